"""Symbols that an ELF object defines for others, as the index of an archive lists them."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tilewright.records import dataclass

_MAGIC = b"\x7fELF"
#: Objects of Apple's systems, little-endian and of several architectures, and of Windows on x86-64 and Arm.
_FOREIGN = (b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\x64\x86", b"\x64\xaa")

#: Bytes of the identification that tell the class (32 or 64 bits) and the byte order.
_CLASS, _ORDER = 4, 5
_SYMBOL_TABLE = 2  # sh_type: SHT_SYMTAB
_UNDEFINED = 0  # st_shndx: SHN_UNDEF
#: Bindings that other objects see: STB_GLOBAL, STB_WEAK, STB_GNU_UNIQUE.
_PUBLIC = (1, 2, 10)


class NotElf(ValueError):
    """The bytes are not an ELF object that can be read."""


@dataclass(frozen=True)
class _Layout:
    """Formats of the structures of one class, as `struct` takes them.

    Attributes
    ----------
    sections_at, sections : offset and format of the fields e_shoff to e_shnum.
    section, symbol : formats of a section's header and of a symbol.
    picked : positions of a symbol's name, info and section among its fields.

    Source: System V ABI, ch. 4 "Object Files".
    """

    sections_at: int
    sections: str
    section: str
    symbol: str
    picked: tuple[int, int, int]


#: 32 bits: section (name, type, flags, addr, offset, size, link), symbol (name, value, size, info, other,
#: shndx); 64 bits have the fields of a symbol in another order.
_LAYOUTS = {
    1: _Layout(32, "I10xHH", "7I12x", "IIIBBH", (0, 3, 5)),
    2: _Layout(40, "Q10xHH", "IIQQQQI20x", "IBBHQQ", (0, 1, 3)),
}


def is_foreign_object(content: bytes) -> bool:
    """Whether a file is an object, but not ELF."""
    return content.startswith(_FOREIGN)


def public_symbols(content: bytes) -> tuple[str, ...]:
    """Global, weak and unique symbols that an object defines, in its order; none for other files.

    Raises
    ------
    NotElf : it begins like an object, but is damaged.
    """
    if not content.startswith(_MAGIC):
        return ()
    try:
        layout = _LAYOUTS[content[_CLASS]]
        order = {1: "<", 2: ">"}[content[_ORDER]]
        return tuple(_public(content, layout, order))
    except (KeyError, IndexError, ValueError, struct.error) as error:
        raise NotElf(f"its tables are not those of an object ({error})") from error


def _public(content: bytes, layout: _Layout, order: str) -> Iterator[str]:
    sections = list(_sections(content, layout, order))
    entry = struct.Struct(order + layout.symbol)
    for kind, start, size, link in sections:
        if kind != _SYMBOL_TABLE:
            continue
        _, names, length, _ = sections[link]
        strings = content[names : names + length]
        for fields in entry.iter_unpack(content[start : start + size]):
            name, info, home = (fields[place] for place in layout.picked)
            if info >> 4 in _PUBLIC and home != _UNDEFINED:
                yield strings[name : strings.index(b"\0", name)].decode(errors="surrogateescape")


def _sections(content: bytes, layout: _Layout, order: str) -> Iterator[tuple[int, int, int, int]]:
    """Type, offset, size and linked section of each section."""
    place, step, count = struct.unpack_from(order + layout.sections, content, layout.sections_at)
    section = struct.Struct(order + layout.section)
    if not count and place:  # more than 65279: the first section's size tells how many
        count = section.unpack_from(content, place)[5]
    for number in range(count):
        _, kind, _, _, start, size, link = section.unpack_from(content, place + number * step)
        yield kind, start, size, link
