"""Members of static archives: their names and contents, in the forms of GNU and BSD."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MAGIC = b"!<arch>\n"
THIN_MAGIC = b"!<thin>\n"
#: Magic numbers of LLVM bitcode: plain, and in Apple's wrapper.
BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")

#: Fields of a header (System V ABI, ch. 7): name, 16 bytes; size from 48 on; the end mark.
_HEADER_BYTES = 60
_NAME, _SIZE, _END = slice(0, 16), slice(48, 58), slice(58, 60)
_END_MARK = b"`\n"
#: BSD: this and a length, for a name that begins the content.
_NAME_INSIDE = b"#1/"
#: GNU's tables: the index of symbols, with 32 and 64 bits, and the names that do not fit a header.
_INDICES, _LONG_NAMES = ("/", "/SYM64/"), "//"
#: Names of BSD's index of symbols.
_BSD_INDICES = ("__.SYMDEF", "__.SYMDEF SORTED", "__.SYMDEF_64", "__.SYMDEF_64 SORTED")


class InvalidArchive(ValueError):
    """A file is no archive, or is damaged; the text says where."""


@dataclass(frozen=True)
class ArchiveMember:
    """One file of an archive."""

    name: str
    content: bytes

    @property
    def is_bitcode(self) -> bool:
        """Whether it is a module of LLVM."""
        return self.content.startswith(BITCODE)


@dataclass(frozen=True)
class ArchiveFile:
    """The members of an archive in their order, without index and table of names; names may repeat."""

    members: tuple[ArchiveMember, ...]

    @property
    def has_bitcode(self) -> bool:
        """Whether some member is a module of LLVM."""
        return any(member.is_bitcode for member in self.members)


def is_archive(content: bytes) -> bool:
    """Whether a file begins as an archive does, also a thin one."""
    return content.startswith((MAGIC, THIN_MAGIC))


def read_archive(content: bytes) -> ArchiveFile:
    r"""The members of an archive.

    Raises
    ------
    InvalidArchive : it is thin, or damaged.

    Examples
    --------
    >>> one = b"a.o/            0           0     0     644     3         `\nabc\n"
    >>> read_archive(MAGIC + one).members
    (ArchiveMember(name='a.o', content=b'abc'),)
    """
    if content.startswith(THIN_MAGIC):
        raise InvalidArchive(
            "it is thin: it has the paths of its members, not their contents; write it again without T"
        )
    if not content.startswith(MAGIC):
        raise InvalidArchive("it does not begin with !<arch>")
    table, members = b"", []
    for at, field, body in _files(content):
        if field == _LONG_NAMES:
            table = body
        elif field.startswith(_NAME_INSIDE.decode()):
            length = _number(field[len(_NAME_INSIDE) :], at, "length of a name")
            if length > len(body):
                raise InvalidArchive(f"the name of the member at byte {at} is longer than the member")
            name = body[:length].rstrip(b"\0").decode(errors="surrogateescape")
            if name not in _BSD_INDICES:
                members.append(ArchiveMember(name, body[length:]))
        elif field not in (*_INDICES, *_BSD_INDICES):
            members.append(ArchiveMember(_name(field, table, at), body))
    return ArchiveFile(tuple(members))


def find_bitcode(path: Path) -> bool | None:
    """Whether an archive has bitcode in it; None if it cannot be read, of which a linker knows more."""
    try:
        return read_archive(path.read_bytes()).has_bitcode
    except (OSError, InvalidArchive):
        return None


def _files(content: bytes) -> Iterator[tuple[int, str, bytes]]:
    """Place, name in the header, and content of each file, tables included."""
    at = len(MAGIC)
    while at < len(content):
        header = content[at : at + _HEADER_BYTES]
        if len(header) < _HEADER_BYTES or header[_END] != _END_MARK:
            raise InvalidArchive(f"there is no header of a member at byte {at}")
        size = _number(header[_SIZE].decode(errors="replace"), at, "size")
        start = at + _HEADER_BYTES
        if start + size > len(content):
            raise InvalidArchive(f"the member at byte {at} ends behind the file")
        yield at, header[_NAME].decode(errors="surrogateescape").rstrip(), content[start : start + size]
        at = start + size + size % 2


def _name(field: str, table: bytes, at: int) -> str:
    """The name of a member: from its header, or from the table of long names."""
    if not field.startswith("/"):
        return field.removesuffix("/")
    place = _number(field[1:], at, "place of a name")
    end = table.find(b"\n", place)
    if place >= len(table) or end < 0:
        raise InvalidArchive(f"the name of the member at byte {at} is not in the table of names")
    return table[place:end].removesuffix(b"/").decode(errors="surrogateescape")


def _number(text: str, at: int, meaning: str) -> int:
    if not text.strip().isdecimal():
        raise InvalidArchive(f"the {meaning} of the member at byte {at} is {text.strip()!r}")
    return int(text)
