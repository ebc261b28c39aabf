"""Archives, read back by a parser that shares nothing with the writer, and by the linker's own tools."""

from __future__ import annotations

import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tilewright.aot.archive import Member, archive

SHORT = Member("short.o", b"\x7fELF odd", ("first", "second"))
EDGE = Member("fifteen_chars.o", b"even", ("third",))
LONG = Member("a_name_of_more_than_fifteen.o", b"", ())
LONGER = Member("another_name_of_more_than_fifteen.o", b"x", ("fourth",))
LISTS = ((), (SHORT,), (SHORT, EDGE), (LONG, LONGER), (LONGER, SHORT, LONG, EDGE))


@dataclass(frozen=True)
class Found:
    """A header and what follows it, as they stand in the file."""

    offset: int
    name: str
    size: int
    content: bytes


def read_members(data: bytes) -> list[Found]:
    """Every member, the special ones included; the layout of <ar.h>."""
    assert data[:8] == b"!<arch>\n"
    found, offset = [], 8
    while offset < len(data):
        name, date, owner, group, mode, size, end = struct.unpack_from("16s12s6s6s8s10s2s", data, offset)
        assert end == b"`\n"
        assert offset % 2 == 0
        if name.strip() != b"//":
            assert (int(date), int(owner), int(group)) == (0, 0, 0)
            int(mode, 8)
        begin = offset + 60
        content = data[begin : begin + int(size)]
        assert len(content) == int(size)
        found.append(Found(offset, name.decode().rstrip(" "), int(size), content))
        offset = begin + int(size)
        if offset % 2:
            assert data[offset : offset + 1] == b"\n"
            offset += 1
    return found


def file_name(header: str, table: bytes) -> str:
    if header[1:].isdigit():
        begin = int(header[1:])
        return table[begin : table.index(b"/\n", begin)].decode()
    assert header.endswith("/")
    return header[:-1]


@pytest.mark.parametrize("members", LISTS, ids=len)
def test_read_back(members: tuple[Member, ...]) -> None:
    found = read_members(archive(members))
    assert found[0].name == "/"
    table = b"".join(one.content for one in found if one.name == "//")
    files = [one for one in found if one.name not in ("/", "//")]
    assert [file_name(one.name, table) for one in files] == [member.name for member in members]
    assert [one.content for one in files] == [member.content for member in members]

    index = found[0].content
    (count,) = struct.unpack_from(">I", index)
    offsets = struct.unpack_from(f">{count}I", index, 4)
    names = index[4 + 4 * count :].decode().split("\0")[:-1]
    owners = {one.offset: member for one, member in zip(files, members, strict=True)}
    assert [(name, owners[offset].name) for name, offset in zip(names, offsets, strict=True)] == [
        (symbol, member.name) for member in members for symbol in member.symbols
    ]


def test_equal_members_give_equal_bytes() -> None:
    assert archive([SHORT, LONG]) == archive([SHORT, LONG])


def test_binutils_reads_it(tmp_path: Path) -> None:
    tool = shutil.which("ar")
    if tool is None:
        pytest.skip("no ar here")
    path = tmp_path / "lib.a"
    path.write_bytes(archive(LISTS[-1]))
    listed = subprocess.run([tool, "t", str(path)], capture_output=True, text=True, check=True).stdout
    assert listed.split() == [member.name for member in LISTS[-1]]
    printed = subprocess.run([tool, "p", str(path), SHORT.name], capture_output=True, check=True).stdout
    assert printed == SHORT.content
