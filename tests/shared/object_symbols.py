"""What an object file wants from elsewhere."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import llvmlite.binding as llvm


def undefined_symbols(data: bytes) -> set[str]:
    """Names that an ELF64 or Mach-O object wants from elsewhere."""
    return set(_undefined_elf(data) if data.startswith(b"\x7fELF") else _undefined_macho(data))


def _undefined_elf(data: bytes) -> Iterator[str]:
    sections = {section.name(): section.data() for section in llvm.ObjectFileRef.from_data(data).sections()}
    names = sections[b".strtab"]
    for name, _, _, section, _, _ in struct.iter_unpack("<IBBHQQ", sections[b".symtab"]):
        # Linkers define .TOC. themselves: where this object's constants are (POWER ELFv2 ABI 3.6.1).
        if name and section == 0 and names[name : names.index(b"\0", name)] != b".TOC.":  # SHN_UNDEF
            yield names[name : names.index(b"\0", name)].decode()


def _undefined_macho(data: bytes) -> Iterator[str]:
    magic, count = struct.unpack_from("<I12xI", data)
    assert magic == 0xFEEDFACF
    position = 32
    for _ in range(count):
        command, size = struct.unpack_from("<II", data, position)
        if command == 2:  # LC_SYMTAB
            symbols, number, names, _ = struct.unpack_from("<4I", data, position + 8)
            for index in range(number):
                name, kind = struct.unpack_from("<IB", data, symbols + 16 * index)
                if kind & 0x0E == 0:  # N_UNDF
                    yield data[names + name : data.index(b"\0", names + name)].decode()
        position += size
