"""Compilers driven: units compiled, changed, linked; statuses and errors passed on."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import ClassVar

import llvmlite.binding as llvm
import pytest
from recognise.toolchains import CLANG, FLANG, RUSTC, ZIG, Toolchain

from tilewright.errors import CompilerMissing, OptimiserFailed, OutputNotWritable
from tilewright.llvm.backends import initialize
from tilewright.loops.driving.build import build
from tilewright.loops.driving.units import UnitCompiler
from tilewright.loops.opt.records import OutputFormat
from tilewright_cc import build as driver

TWICE = "int twice(int x) { return 2 * x; }"
MAIN = "int twice(int); int main(void) { return twice(21); }"


class Changed(UnitCompiler):
    """In the place of what replaces loops: 2 becomes 3 in the text of each module."""

    forms: ClassVar[list[OutputFormat]] = []

    def code(self, bitcode: bytes, form: OutputFormat, name: str) -> bytes:
        self.forms.append(form)
        initialize()
        text = str(llvm.parse_bitcode(bitcode)).replace("mul nsw i32 2,", "mul nsw i32 3,")
        module = llvm.parse_assembly(text)
        machine = llvm.Target.from_triple(module.triple).create_target_machine(reloc="pic")
        match form:
            case OutputFormat.LL:
                return text.encode()
            case OutputFormat.ASSEMBLY:
                return str(machine.emit_assembly(module)).encode()
            case _:
                return bytes(machine.emit_object(module))


class Fails(UnitCompiler):
    """A unit that LLVM cannot compile."""

    def code(self, bitcode: bytes, form: OutputFormat, name: str) -> bytes:
        raise OptimiserFailed(name=name, reason="cannot select")


def skip_without(toolchain: Toolchain) -> str:
    if toolchain.program is None:
        pytest.skip(f"{toolchain.name} is not installed")
    return " ".join(toolchain.program)


@pytest.fixture(autouse=True)
def every_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Units are changed whatever they hold: tests about what is left to the compiler undo it."""
    monkeypatch.setattr(driver, "may_have_products", lambda ir, **_: True)


@pytest.fixture
def units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "twice.c").write_text(TWICE, encoding="utf-8")
    (tmp_path / "main.c").write_text(MAIN, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("toolchain", [CLANG, ZIG], ids=lambda row: row.name)
def test_a_program_of_two_units(units: Path, toolchain: Toolchain) -> None:
    Changed.forms.clear()
    assert build(f"{skip_without(toolchain)} -O2 main.c twice.c -o prog".split(), Changed()) == 0
    assert Changed.forms == [OutputFormat.OBJECT, OutputFormat.OBJECT]
    assert subprocess.run([units / "prog"], check=False).returncode == 63


def test_objects_one_by_one_and_then_the_link(units: Path) -> None:
    clang = skip_without(CLANG)
    for command in ("-O2 -c main.c", "-O2 -MMD -c twice.c -o second.o", "main.o second.o -o prog"):
        assert build(f"{clang} {command}".split(), Changed()) == 0
    assert subprocess.run([units / "prog"], check=False).returncode == 63
    assert (units / "second.d").read_text(encoding="utf-8").split() == ["second.o:", "twice.c"]
    assert not list(units.glob("*.bc"))


def test_assembly_and_ir(units: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    clang = skip_without(CLANG)
    assert build(f"{clang} -O2 -S -emit-llvm twice.c -o -".split(), Changed()) == 0
    assert b"define" in capfdbinary.readouterr().out
    assert build(f"{clang} -O2 -S twice.c".split(), Changed()) == 0
    assert "twice:" in (units / "twice.s").read_text(encoding="utf-8")


def test_the_compiler_status_is_passed_on(units: Path, capfd: pytest.CaptureFixture[str]) -> None:
    clang = skip_without(CLANG)
    (units / "wrong.c").write_text("int x = ;", encoding="utf-8")
    Changed.forms.clear()
    assert build(f"{clang} -c wrong.c".split(), Changed()) == 1
    assert "wrong.c:1" in capfd.readouterr().err
    assert Changed.forms == []
    assert build(f"{clang} -c main.c twice.c -o both.o".split(), Changed()) == 1
    assert build(f"{clang} --version".split(), Changed()) == 0
    assert not (units / "wrong.o").exists()


def test_a_failure_of_ours_writes_nothing(units: Path) -> None:
    clang = skip_without(CLANG)
    with pytest.raises(OptimiserFailed, match=r"main\.c"):
        build(f"{clang} -O2 main.c twice.c -o prog".split(), Fails())
    assert not (units / "prog").exists()


def test_a_file_that_cannot_be_written(units: Path) -> None:
    clang = skip_without(CLANG)
    with pytest.raises(OutputNotWritable, match=r"folder/x\.o"):
        build(f"{clang} -c main.c -o folder/x.o".split(), Changed())


def test_fortran(units: Path) -> None:
    flang = skip_without(FLANG)
    (units / "p.f90").write_text("program p\n  if (6 * 7 == 42) stop 5\nend program\n", encoding="utf-8")
    assert build(f"{flang} -O2 p.f90 -o prog".split(), Changed()) == 0
    assert subprocess.run([units / "prog"], check=False, capture_output=True).returncode == 5


def test_a_compiler_that_is_not_there() -> None:
    with pytest.raises(CompilerMissing, match="clang-999"):
        build(["clang-999", "-O2", "a.c"], Changed())


@pytest.mark.parametrize(
    "words", ["--crate-type=rlib", "--crate-type lib --emit=metadata,link", "--emit asm"]
)
def test_rust_whose_code_no_linker_sees(units: Path, words: str, capfd: pytest.CaptureFixture[str]) -> None:
    rustc = skip_without(RUSTC)
    (units / "a.rs").write_text("pub fn one() -> i32 { 1 }\nfn main() {}\n", encoding="utf-8")
    assert build([rustc, "-O", "a.rs", "--crate-name=a", *words.split()], Changed()) == 0
    assert ("a is compiled without replacing loops" in capfd.readouterr().err) == ("crate-type" in words)
    assert list(units.glob("*a.[rs]*"))


RUST = """
fn main() { let twice: i32 = std::env::args().map(|_| 21).sum(); std::process::exit(twice); }
"""


def test_a_program_of_rust(units: Path) -> None:
    rustc = skip_without(RUSTC)
    (units / "main.rs").write_text(RUST, encoding="utf-8")
    assert build(f"{rustc} -O main.rs -o prog".split(), UnitCompiler()) == 0
    assert subprocess.run([units / "prog"], check=False).returncode == 21
    assert sorted(path.name for path in units.iterdir()) == ["main.c", "main.rs", "prog", "twice.c"]
