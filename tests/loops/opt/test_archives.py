"""`tilewright opt lib.a`: modules become objects, other members stay, damaged archives are refused."""

from __future__ import annotations

import subprocess
from pathlib import Path

import llvmlite.binding as llvm
import pytest
from recognise.toolchains import CLANG
from typer.testing import CliRunner

from tilewright.aot.archive import Member, archive
from tilewright.errors import ArchiveInvalid, NotAModule
from tilewright.llvm.backends import initialize
from tilewright.loops.opt.archives import optimise_archive
from tilewright.loops.opt.elf import NotElf, public_symbols
from tilewright.tools.cli import app
from tilewright_cc.archives import MAGIC, InvalidArchive, read_archive

PRODUCT = (Path(__file__).parent / "product.ll").read_text(encoding="utf-8")
#: Definitions of every kind that an index lists, or leaves out.
KINDS = """
target triple = "{triple}"
@number = global i32 3
@shared = common global i32 0
@own = internal global i32 4
@other = external global i32
@name = alias i32, ptr @number
define weak i32 @weak() {{
  ret i32 1
}}
define hidden i32 @inside() {{
  %x = load i32, ptr @own
  %y = load i32, ptr @other
  %z = add i32 %x, %y
  store i32 %z, ptr @own
  ret i32 %z
}}
declare i32 @elsewhere()
"""
PUBLIC = {"number", "shared", "name", "weak", "inside"}
LONG = "a name of more than sixteen bytes.o"


def bitcode(text: str) -> bytes:
    initialize()
    return bytes(llvm.parse_assembly(text).as_bitcode())


def native(triple: str) -> bytes:
    initialize()
    module = llvm.parse_assembly(KINDS.format(triple=triple))
    target = llvm.Target.from_triple(triple).create_target_machine()
    return bytes(target.emit_object(module))


def bsd(*members: tuple[str, bytes]) -> bytes:
    """An archive as BSD's ar writes it, names ahead of contents, with an index that nobody reads."""
    parts = [MAGIC]
    for name, content in (("__.SYMDEF", b"\0" * 8), *members):
        text = name.encode() + b"\0" * 3
        size = len(text) + len(content)
        head = f"{f'#1/{len(text)}':<16}{0:<12}{0:<6}{0:<6}{'644':<8}{size:<10}`\n"
        parts += [head.encode(), text, content, b"\n" * (size % 2)]
    return b"".join(parts)


def index_of(content: bytes) -> list[tuple[str, str]]:
    """Each symbol of an index, with the name of the member that it points to."""
    size = int(content[56:66])
    index = content[68 : 68 + size]
    count = int.from_bytes(index[:4], "big")
    places = [int.from_bytes(index[4 * n + 4 : 4 * n + 8], "big") for n in range(count)]
    names = index[4 * count + 4 :].split(b"\0")[:count]
    found = []
    for name, place in zip(names, places, strict=True):
        member = read_archive(content[: len(MAGIC)] + _table(content) + content[place:]).members[0]
        found.append((name.decode(), member.name))
    return found


def _table(content: bytes) -> bytes:
    """The table of long names with its header."""
    start = 68 + int(content[56:66]) + int(content[56:66]) % 2
    if not content[start:].startswith(b"//"):
        return b""
    size = int(content[start + 48 : start + 58])
    return content[start : start + 60 + size + size % 2]


@pytest.fixture(scope="module")
def mixed() -> list[Member]:
    """Modules and others; two members have one name."""
    one = 'target triple = "x86_64-linux-gnu"\ndefine i32 @one() {\n  ret i32 1\n}'
    return [
        Member(LONG, bitcode(PRODUCT), ()),
        Member("n.o", native("x86_64-linux-gnu"), tuple(PUBLIC)),
        Member("readme", b"odd", ()),
        Member("n.o", bitcode(one), ("one",)),
    ]


def test_members_of_every_kind(mixed: list[Member]) -> None:
    source = archive(mixed)
    done = optimise_archive(source, name="lib.a", forks=True)
    before, after = read_archive(source).members, read_archive(done.content).members
    assert [one.name for one in after] == [LONG, "n.o", "readme", "n.o"]
    assert [one.content[:4] == b"\x7fELF" for one in after] == [True, True, False, True]
    assert after[1:3] == before[1:3]
    assert done.replaced == 2
    assert {one.where.file for one in done.remarks} == {"product.c"}
    index = index_of(done.content)
    assert {name for name, member in index if member == "n.o"} == PUBLIC | {"one"}
    assert "product" in {name for name, member in index if member == LONG}
    assert len(index) == len(set(index))


def test_long_names_of_bsd(mixed: list[Member]) -> None:
    source = bsd(*((one.name, one.content) for one in mixed))
    assert [(one.name, one.content) for one in read_archive(source).members] == [
        (one.name, one.content) for one in mixed
    ]
    source = bsd(*((one.name, one.content) for one in mixed[1:]))
    done = optimise_archive(source, forks=True).content
    assert done == optimise_archive(archive(mixed[1:]), forks=True).content


def test_without_bitcode_nothing_changes(mixed: list[Member]) -> None:
    source = bsd(*((one.name, one.content) for one in mixed[1:3]))
    assert optimise_archive(source).content == source


DAMAGED = {
    "thin": (b"!<thin>\n", "it is thin"),
    "other": (b"!<arch>x", "does not begin"),
    "short": (MAGIC + b"a.o/", "no header of a member at byte 8"),
    "size": (MAGIC + f"{'a.o/':<48}{'x':<10}`\n".encode(), "size of the member at byte 8 is 'x'"),
    "behind": (MAGIC + f"{'a.o/':<48}{4:<10}`\nabc".encode(), "ends behind the file"),
    "name": (MAGIC + f"{'/7':<48}{0:<10}`\n".encode(), "not in the table of names"),
    "inside": (MAGIC + f"{'#1/9':<48}{2:<10}`\nab".encode(), "longer than the member"),
}


@pytest.mark.parametrize(("content", "reason"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_archives(content: bytes, reason: str) -> None:
    with pytest.raises(InvalidArchive, match=reason):
        read_archive(content)
    with pytest.raises(ArchiveInvalid, match=f"lib.a is not an archive .*{reason}"):
        optimise_archive(content, name="lib.a")


def test_objects_that_are_refused(mixed: list[Member]) -> None:
    apple = Member("apple.o", b"\xcf\xfa\xed\xfe", ())
    with pytest.raises(ArchiveInvalid, match=r"apple\.o is not ELF"):
        optimise_archive(archive([apple, mixed[3]]))
    cut = Member("cut.o", mixed[1].content[:100], ())
    with pytest.raises(ArchiveInvalid, match=r"cut\.o is damaged"):
        optimise_archive(archive([cut, mixed[3]]))
    with pytest.raises(NotAModule, match=r"lib\.a\(b\.o\)"):
        optimise_archive(archive([Member("b.o", b"BC\xc0\xde and no more", ())]), name="lib.a")


@pytest.mark.parametrize(
    "triple", ["x86_64-linux-gnu", "powerpc-linux-gnu", "s390x-linux-gnu", "armv7-linux-gnueabi"]
)
def test_symbols_of_both_classes_and_orders(triple: str) -> None:
    try:
        content = native(triple)
    except RuntimeError:
        pytest.skip(f"this LLVM has no {triple}")
    found = public_symbols(content)
    assert set(found) == PUBLIC
    assert len(found) == len(PUBLIC)
    with pytest.raises(NotElf):
        public_symbols(content[:-20])


def test_a_command_that_fails_writes_nothing(tmp_path: Path, mixed: list[Member]) -> None:
    output = tmp_path / "out.a"
    (tmp_path / "lib.a").write_bytes(b"!<thin>\n")
    for words in (
        ["lib.a", "-o", "out.a"], ["good.a", "-o", "out.o"], ["good.a", "-o", "out.a", "--emit", "bc"],
        ["good.a", "-o", "out.a", "--dump"], ["bad.a", "-o", "out.a"], ["one.bc", "-o", "out.a"],
    ):  # fmt: skip
        (tmp_path / "good.a").write_bytes(archive(mixed))
        (tmp_path / "bad.a").write_bytes(archive([*mixed, Member("b.o", b"BC\xc0\xde and no more", ())]))
        (tmp_path / "one.bc").write_bytes(mixed[3].content)
        result = CliRunner().invoke(
            app, ["opt", str(tmp_path / words[0]), "-o", str(tmp_path / words[2]), *words[3:]]
        )
        assert result.exit_code == 2, result.output
        assert not output.exists()
        assert not (tmp_path / "out.o").exists()


def test_an_archive_as_a_command_writes_it(tmp_path: Path, mixed: list[Member]) -> None:
    (tmp_path / "lib.a").write_bytes(archive(mixed))
    result = CliRunner().invoke(app, ["opt", str(tmp_path / "lib.a"), "-o", str(tmp_path / "lib.a")])
    assert result.exit_code == 0, result.output
    assert "product:2" in result.stdout
    assert not read_archive((tmp_path / "lib.a").read_bytes()).has_bitcode


def test_a_linker_takes_it(tmp_path: Path) -> None:
    if CLANG.program is None:
        pytest.skip("clang is not installed")
    (tmp_path / "sum.c").write_text("int twice(int x) { return 2 * x; }\n", encoding="utf-8")
    (tmp_path / "main.c").write_text(
        "int twice(int);\nint main(void) { return twice(21); }\n", encoding="utf-8"
    )
    subprocess.run([*CLANG.program, "-O1", "-flto", "-c", "sum.c"], cwd=tmp_path, check=True)
    module = Member("sum.o", (tmp_path / "sum.o").read_bytes(), ())
    content = optimise_archive(archive([module]), forks=True).content
    (tmp_path / "lib.a").write_bytes(content)
    subprocess.run([*CLANG.program, "main.c", "lib.a", "-o", "program"], cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "program"], check=False).returncode == 42
