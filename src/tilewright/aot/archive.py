"""Static archives in the System V form that ELF linkers read: a symbol index, long names, members."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.records import dataclass

_MAGIC = b"!<arch>\n"
_HEADER_BYTES = 60
#: A name, and the slash that ends it, must fit the header's field; longer ones stand in a table.
_LONGEST_NAME = 15
#: Members start on even offsets.
_PADDING = b"\n"
#: The index counts in 32 bits.
_LIMIT = 1 << 32


@dataclass(frozen=True)
class Member:
    """One object file of an archive.

    Attributes
    ----------
    name : of the file.
    content : its bytes.
    symbols : what it defines for others.
    """

    name: str
    content: bytes
    symbols: tuple[str, ...]


def archive(members: Sequence[Member]) -> bytes:
    r"""The archive of members, in their order; equal members give equal bytes (no times, no owners).

    Examples
    --------
    >>> archive([Member("a.o", b"abc", ("f",))])[:24]
    b'!<arch>\n/               '

    Source: System V ABI ch. 7 "Archive File"; the table of long names is that of GNU ar
    (binutils, bfd/archive.c).
    """
    names, table = _long_names(members)
    symbols = [(symbol, number) for number, member in enumerate(members) for symbol in member.symbols]
    strings = b"".join(symbol.encode() + b"\0" for symbol, _ in symbols)
    index_bytes = 4 * (1 + len(symbols)) + len(strings)
    offset = len(_MAGIC) + _span(index_bytes) + (_span(len(table)) if table else 0)
    offsets = []
    for member in members:
        offsets.append(offset)
        offset += _span(len(member.content))
    assert offset < _LIMIT, "an archive of 4 GiB needs the 64-bit index"
    numbers = [len(symbols), *(offsets[number] for _, number in symbols)]
    index = b"".join(number.to_bytes(4, "big") for number in numbers) + strings
    parts = [_MAGIC, *_file("/", index, mode=0)]
    if table:
        parts += _file("//", table, mode=None)
    for name, member in zip(names, members, strict=True):
        parts += _file(name, member.content, mode=0o100644)
    return b"".join(parts)


def _span(size: int) -> int:
    """Bytes from one member's header to the next."""
    return _HEADER_BYTES + size + size % 2


def _long_names(members: Sequence[Member]) -> tuple[list[str], bytes]:
    """What stands in each header, and the table of the names that do not fit there."""
    names, table = [], b""
    for member in members:
        if len(member.name) <= _LONGEST_NAME and member.name.isascii():
            names.append(f"{member.name}/")
        else:
            names.append(f"/{len(table)}")
            table += member.name.encode(errors="surrogateescape") + b"/\n"
    return names, table


def _file(name: str, content: bytes, mode: int | None) -> Iterator[bytes]:
    """Header and content; the table of long names has a size only."""
    if mode is None:
        fields = f"{name:<48}"
    else:
        date, owner, group = 0, 0, 0
        fields = f"{name:<16}{date:<12}{owner:<6}{group:<6}{mode:<8o}"
    yield f"{fields}{len(content):<10}`\n".encode()
    yield content
    yield _PADDING * (len(content) % 2)
