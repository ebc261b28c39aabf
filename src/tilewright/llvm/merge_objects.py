"""Merges the ELF objects of a module's parts into one object, as if the module had been compiled whole.

The format is that of the System V ABI, chapter 4, and of its supplements for AMD64, AArch64, 64-bit POWER
and RISC-V.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from tilewright.records import dataclass

_FILE_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")

#: Kinds of section: SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_X86_64_UNWIND, SHT_RISCV_ATTRIBUTES.
_PROGBITS, _SYMTAB, _STRTAB, _RELA, _UNWIND, _ATTRIBUTES = 1, 2, 3, 4, 0x70000001, 0x70000003
#: SHF_INFO_LINK: the number in `info` is that of a section.
_INFO_LINK = 0x40
#: STB_LOCAL, the binding of a symbol; STT_SECTION and STT_FILE, its type.
_LOCAL, _SECTION, _FILE = 0, 3, 4
#: The bits of `other` that are the visibility; the rest are the ABI's, such as the local entry of POWER.
_VISIBILITY = 3
#: The scope of symbols that all parts share; those of one part have its number.
_SHARED = -1


def _write_distance(content: bytearray, offset: int, distance: int) -> None:
    struct.pack_into("<i", content, offset, distance)


def _write_branch(content: bytearray, offset: int, distance: int) -> None:
    """B and BL of AArch64: the low 26 bits are the distance in instructions."""
    (instruction,) = struct.unpack_from("<I", content, offset)
    struct.pack_into("<I", content, offset, instruction | distance >> 2 & (1 << 26) - 1)


class _Architecture(NamedTuple):
    """What lies between functions, and relocations that an assembler resolves within a section."""

    nop: bytes
    distances: Mapping[int, Callable[[bytearray, int, int], None]]


#: By `e_machine`. Calls of POWER and RISC-V stay relocations, as an assembler leaves them: a
#: linker chooses the entry, or the length of the jump.
_ARCHITECTURES = {
    # EM_X86_64: R_X86_64_PC32, R_X86_64_PLT32
    62: _Architecture(b"\x90", {2: _write_distance, 4: _write_distance}),
    # EM_AARCH64: R_AARCH64_JUMP26, R_AARCH64_CALL26
    183: _Architecture(b"\x1f\x20\x03\xd5", {282: _write_branch, 283: _write_branch}),
    # EM_PPC64, EM_RISCV
    21: _Architecture(b"\x00\x00\x00\x60", {}),
    243: _Architecture(b"\x01\x00", {}),
}


class _Target(NamedTuple):
    """What a relocation refers to: a symbol, or the beginning of a section.

    Names of local symbols occur several times in one object: `$x`, where instructions of AArch64 begin. Their
    number in the part tells them apart.
    """

    name: bytes
    scope: int
    number: int = 0
    is_section: bool = False


@dataclass
class _Symbol:
    """Type and binding, bits of the ABI, the section or a reserved number, and the place in the section."""

    info: int
    other: int
    section: bytes | int
    value: int = 0
    size: int = 0


@dataclass
class _Section:
    """A section of the merged object."""

    kind: int
    flags: int
    entry_bytes: int
    content: bytearray = field(default_factory=bytearray)
    alignment: int = 1
    relocations: list[tuple[int, int, _Target, int]] = field(default_factory=list)

    def append(self, content: bytes, alignment: int, padding: bytes) -> int:
        """Adds the content of one part; where it begins."""
        self.alignment = max(self.alignment, alignment)
        self.content += padding * (-len(self.content) % max(alignment, 1) // len(padding))
        start = len(self.content)
        self.content += content
        return start


class _Object:
    """The tables of one object file."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        header = _FILE_HEADER.unpack_from(content)
        start, count, names = header[6], header[12], header[13]
        size = count * _SECTION_HEADER.size
        self.headers = list(_SECTION_HEADER.iter_unpack(content[start : start + size]))
        self.names = [self.text(names, section[0]) for section in self.headers]

    def data(self, number: int) -> bytes:
        """The bytes of a section."""
        header = self.headers[number]
        return self.content[header[4] : header[4] + header[5]]

    def text(self, table: int, position: int) -> bytes:
        """A name in a table of names."""
        start = self.headers[table][4] + position
        return self.content[start : self.content.index(b"\0", start)]

    def of_kind(self, kind: int) -> Iterator[int]:
        """Numbers of the sections of one kind."""
        return (number for number, header in enumerate(self.headers) if header[1] == kind)


class _Merged:
    """Sections, symbols and relocations of the parts that were added."""

    def __init__(self, architecture: _Architecture) -> None:
        self.architecture = architecture
        self.sections: dict[bytes, _Section] = {}
        self.symbols: dict[_Target, _Symbol] = {}

    def add(self, scope: int, part: _Object) -> None:
        """Appends the sections of a part, and takes over its symbols and relocations."""
        starts: dict[int, tuple[bytes, int]] = {}
        for number, header in enumerate(part.headers):
            name = part.names[number]
            # The instructions that a part may use are those of the others.
            repeated = header[1] == _ATTRIBUTES and name in self.sections
            if header[1] in {_PROGBITS, _UNWIND, _ATTRIBUTES} and not repeated:
                section = self.sections.setdefault(name, _Section(header[1], header[2], header[9]))
                padding = self.architecture.nop if name == b".text" else b"\0"
                starts[number] = name, section.append(part.data(number), header[8], padding)
        targets = [
            self._add_symbol(scope, number, part.text(part.headers[table][6], symbol[0]), symbol, starts)
            for table in part.of_kind(_SYMTAB)
            for number, symbol in enumerate(_SYMBOL.iter_unpack(part.data(table)))
        ]
        for table in part.of_kind(_RELA):
            name, start = starts[part.headers[table][7]]
            for offset, info, addend in _RELOCATION.iter_unpack(part.data(table)):
                target, moved = targets[info >> 32]
                kind = info & 0xFFFFFFFF
                self.sections[name].relocations.append((offset + start, kind, target, addend + moved))

    def _add_symbol(
        self,
        scope: int,
        number: int,
        name: bytes,
        symbol: tuple[int, ...],
        starts: dict[int, tuple[bytes, int]],
    ) -> tuple[_Target, int]:
        """The symbol in the merged object, and what is added to the addends of its relocations."""
        _, info, other, index, value, size = symbol
        kind, binding = info & 15, info >> 4
        if kind == _SECTION:
            section, start = starts[index]
            target = _Target(section, _SHARED, is_section=True)
            self.symbols.setdefault(target, _Symbol(_SECTION, 0, section))
            return target, start
        own = binding == _LOCAL and kind != _FILE
        target = _Target(name, scope, number) if own else _Target(name, _SHARED)
        hidden, other = other & _VISIBILITY, other & ~_VISIBILITY
        if index in starts:
            section, start = starts[index]
            # What is hidden is shared by the parts alone: it becomes local.
            self.symbols[target] = _Symbol(kind if hidden else info, other, section, start + value, size)
        elif name:  # the name of the file, or a symbol of another part or object
            self.symbols.setdefault(target, _Symbol(info, other, index))
        return target, 0

    def resolve(self) -> None:
        """Writes the distances between functions of one section, as an assembler does."""
        distances = self.architecture.distances
        for name, section in self.sections.items():
            left = []
            for relocation in section.relocations:
                offset, kind, target, addend = relocation
                symbol = self.symbols[target]
                if kind in distances and symbol.section == name and not target.is_section:
                    distances[kind](section.content, offset, symbol.value + addend - offset)
                else:
                    left.append(relocation)
            section.relocations = left


class _Writer:
    """An object file that grows section by section."""

    def __init__(self) -> None:
        self.content = bytearray(_FILE_HEADER.size)
        self.headers = [bytes(_SECTION_HEADER.size)]
        self.names = bytearray(b"\0")

    def name(self, text: bytes) -> int:
        """The place of a name in the table of names."""
        if not text:
            return 0
        self.names += text + b"\0"
        return len(self.names) - len(text) - 1

    def place(
        self,
        name: bytes,
        kind: int,
        content: bytes | bytearray,
        alignment: int,
        entry_bytes: int = 0,
        *,
        flags: int = 0,
        link: int = 0,
        info: int = 0,
    ) -> None:
        """Writes a section."""
        place = self.name(name)
        self._align(alignment)
        sizes = len(self.content), len(content)
        self.headers.append(
            _SECTION_HEADER.pack(place, kind, flags, 0, *sizes, link, info, alignment, entry_bytes)
        )
        self.content += content

    def finish(self, header: tuple[int, ...]) -> bytes:
        """The table of names, the table of sections, and what is kept of a part's header."""
        names = self.name(b".strtab")
        self.place(b"", _STRTAB, self.names, 1)
        self.headers[-1] = names.to_bytes(4, "little") + self.headers[-1][4:]
        self._align(8)
        count = len(self.headers)
        fields = (*header[:6], len(self.content), *header[7:12], count, count - 1)
        _FILE_HEADER.pack_into(self.content, 0, *fields)
        return bytes(self.content + b"".join(self.headers))

    def _align(self, alignment: int) -> None:
        self.content += bytes(-len(self.content) % max(alignment, 1))


def _write(merged: _Merged, header: tuple[int, ...]) -> bytes:
    """The object file: the sections, their relocations, the symbols."""
    writer = _Writer()
    numbers: dict[bytes | int, int] = {}
    for name, section in merged.sections.items():
        numbers[name] = len(numbers) + 1
        sizes = section.alignment, section.entry_bytes
        writer.place(name, section.kind, section.content, *sizes, flags=section.flags)
    relocated = [(name, section) for name, section in merged.sections.items() if section.relocations]
    symbol_table = len(numbers) + len(relocated) + 1
    # Local symbols come first.
    symbols = sorted(merged.symbols.items(), key=lambda item: item[1].info >> 4)
    places = {target: number + 1 for number, (target, _) in enumerate(symbols)}
    for name, section in relocated:
        rows = b"".join(
            _RELOCATION.pack(offset, places[target] << 32 | kind, addend)
            for offset, kind, target, addend in section.relocations
        )
        links = {"flags": _INFO_LINK, "link": symbol_table, "info": numbers[name]}
        writer.place(b".rela" + name, _RELA, rows, 8, _RELOCATION.size, **links)
    table = bytearray(_SYMBOL.size)
    for target, symbol in symbols:
        place = 0 if target.is_section else writer.name(target.name)
        index = numbers.get(symbol.section, symbol.section)
        table += _SYMBOL.pack(place, symbol.info, symbol.other, index, symbol.value, symbol.size)
    first_global = 1 + sum(symbol.info >> 4 == _LOCAL for _, symbol in symbols)
    links = {"link": symbol_table + 1, "info": first_global}
    writer.place(b".symtab", _SYMTAB, table, 8, _SYMBOL.size, **links)
    return writer.finish(header)


def merge_objects(parts: Sequence[bytes]) -> bytes:
    """One relocatable object of the parts of a module, each an ELF object of one architecture.

    Symbols that parts share are hidden in each, and local in the result. Before: a part calls `tile`, which
    another part defines. After: a call within one section, without a relocation.
    """
    header = _FILE_HEADER.unpack_from(parts[0])
    merged = _Merged(_ARCHITECTURES[header[2]])
    for scope, part in enumerate(parts):
        merged.add(scope, _Object(part))
    merged.resolve()
    return _write(merged, header)
