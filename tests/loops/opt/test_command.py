"""`tilewright opt`: files in and out, the remarks, and what is left behind by a command that fails."""

from __future__ import annotations

import os
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tilewright.atomic import replacing
from tilewright.errors import InputNotReadable, InvalidChoice, OutputNotWritable
from tilewright.loops.opt import files
from tilewright.loops.opt.files import form_of, read_source, write_file
from tilewright.loops.opt.records import OutputFormat
from tilewright.tools.cli import app

SOURCE = Path(__file__).parent / "product.ll"
runner = CliRunner()


def run(*words: str, given: bytes = b"") -> str:
    result = runner.invoke(app, ["opt", *words], input=given, catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def refused(*words: str) -> str:
    result = runner.invoke(app, ["opt", *words])
    assert result.exit_code == 2, result.stderr
    (line,) = result.stderr.splitlines()
    return line


def test_files(tmp_path: Path) -> None:
    shown = run(
        str(SOURCE), "-o", str(tmp_path / "a.o"), "--remarks", str(tmp_path / "remarks"), "--dump",
        "--target", "x86-64-v4", "--strategy", "packing", "--l2", "512K", "--l3", "4M",
    )  # fmt: skip
    assert "product:2" in shown
    assert "1 more" in shown
    assert "does not multiply two elements" in shown
    assert (tmp_path / "a.o").read_bytes().startswith(b"\x7fELF")
    lines = (tmp_path / "remarks").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["replaced", "refused", "replaced", "refused"]
    assert "alloca" not in (tmp_path / "a.shaped.ll").read_text()
    assert "call i1 @tilewright_0_" in (tmp_path / "a.spliced.ll").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.o",
        "a.shaped.ll",
        "a.spliced.ll",
        "remarks",
    ]


def test_standard_input_and_output() -> None:
    text = run("-", "--remarks", "-", given=SOURCE.read_bytes())
    assert text.startswith("; ModuleID")
    assert "tilewright_0_" in text


def test_nothing_is_written_where_anything_fails(tmp_path: Path) -> None:
    source, output = tmp_path / "a.ll", tmp_path / "a.s"
    source.write_text("define nothing")
    output.write_text("before")
    assert f"{source} is not a module" in refused(
        str(source), "-o", str(output), "--remarks", str(tmp_path / "r")
    )
    assert output.read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 2


def test_words_that_are_refused(tmp_path: Path) -> None:
    assert "name of a function" in refused(str(SOURCE), "--arena", "a b")
    assert "strategy" in refused(str(SOURCE), "--strategy", "luck")
    assert "off, openmp, own" in refused(str(SOURCE), "--threads", "many")
    assert "cannot read" in refused(str(tmp_path / "none.ll"))
    assert ".ll, .bc, .o, .s" in refused(str(SOURCE), "-o", "a.exe")
    assert "ll, bc, o, s" in refused(str(SOURCE), "--emit", "exe")


def test_forms_follow_suffixes() -> None:
    assert form_of(Path("x.bc"), None) is OutputFormat.BITCODE
    assert form_of(Path("x.txt"), "s") is OutputFormat.ASSEMBLY
    with pytest.raises(InvalidChoice):
        form_of(Path("x"), None)


def test_files_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(InputNotReadable, match="none"):
        read_source(tmp_path / "none")
    with pytest.raises(OutputNotWritable):
        write_file(tmp_path / "no folder" / "x", b"")


def test_files_appear_at_once(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"before")

    def half() -> None:
        with replacing(path) as stream:
            stream.write(b"half")
            assert path.read_bytes() == b"before"
            raise KeyError

    with pytest.raises(KeyError):
        half()
    assert path.read_bytes() == b"before"
    assert [one.name for one in tmp_path.iterdir()] == ["x"]


def test_links_and_devices_stay_what_they_are(tmp_path: Path) -> None:
    path, link = tmp_path / "x", tmp_path / "link"
    path.write_bytes(b"before")
    link.symlink_to(path)
    write_file(link, b"behind")
    assert link.is_symlink()
    assert path.read_bytes() == b"behind"
    device = Path("/dev/null")
    if device.exists():
        write_file(device, b"gone")
        assert stat.S_ISCHR(device.stat().st_mode)


@pytest.mark.skipif(shutil.which("true") is None, reason="needs a POSIX system")
def test_permissions_are_those_of_new_files(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.touch()
    write_file(tmp_path / "ours", b"")
    assert plain.stat().st_mode == (tmp_path / "ours").stat().st_mode


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have names on POSIX")
def test_what_is_read_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path, reason in ((Path("/dev/zero"), "a device"), (tmp_path, "a directory"), (Path("a\0b"), "null")):
        with pytest.raises(InputNotReadable, match=reason):
            read_source(path)
    monkeypatch.setattr(files, "MOST_BYTES", 10)
    (tmp_path / "long").write_bytes(bytes(11))
    with pytest.raises(InputNotReadable, match="it has 11 bytes, at most 10"):
        read_source(tmp_path / "long")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for content in (b"module", bytes(11)):
        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(pipe.write_bytes, content)
            if len(content) <= 10:
                assert read_source(pipe) == content
            else:
                with pytest.raises(InputNotReadable, match="more than 10 bytes"):
                    read_source(pipe)
            writing.result()


def test_files_of_killed_writers_go(tmp_path: Path) -> None:
    target = tmp_path / ("n" * 255)
    with replacing(target) as stream:
        stream.flush()
        (left,) = tmp_path.iterdir()
        shutil.copy(left, tmp_path / f"{left.name}-killed")
    target.unlink()
    (killed,) = tmp_path.iterdir()
    with replacing(target):
        pass
    assert killed.exists(), "another writer may be at work on it"
    os.utime(killed, (1, 1))
    with replacing(tmp_path / "other"):
        pass
    assert killed.exists(), "it belongs to another file"
    with replacing(target):
        pass
    assert not killed.exists()
