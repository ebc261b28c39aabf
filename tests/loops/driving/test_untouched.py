"""`tilewright cc` beside files without products: the compiler's own code, options that pass, a fast start."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from recognise.toolchains import CLANG, FLANG, ZIG, Toolchain

from tilewright_cc.build import build_units
from tilewright_cc.launch import split
from tilewright_cc.nests import may_have_products
from tilewright_cc.reports import RemarkOfNest

LOOPS = """
#include <stddef.h>
int twice(int x) { return 2 * x; }
double sum(const double *x, size_t n) {
  double s = 0;
  for (size_t i = 0; i < n; i++) s += x[i] * x[i];
  return s;
}
void blur(float *o, const float *x, int w, int h) {
  for (int y = 1; y < h - 1; y++) for (int i = 1; i < w - 1; i++) o[i] = 2.0f * x[i] - x[i - 1];
}
"""
PRODUCT = """
void mm(int n, const float *a, const float *b, float *c) {
  for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) for (int p = 0; p < n; p++)
    c[i * n + j] += a[i * n + p] * b[p * n + j];
}
"""
FORTRAN = """
subroutine twice(n, x)
  integer :: n, i
  real :: x(n)
  do i = 1, n
    x(i) = 2 * x(i)
  end do
end subroutine
"""


_COMMENT = re.compile(r"\s*#.*")


class NoUnits:
    """Fails where a module is to be compiled by Tilewright."""

    every_nest = False

    def write(self, modules: Sequence[Path], form: str, output: str, name: str) -> Sequence[RemarkOfNest]:
        raise AssertionError(f"{name} holds no product")

    def write_archive(self, source: Path, output: Path) -> Sequence[RemarkOfNest]:
        raise AssertionError(f"{source} holds no product")


def program(toolchain: Toolchain) -> list[str]:
    if toolchain.program is None:
        pytest.skip(f"{toolchain.name} is not installed")
    return list(toolchain.program)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.c").write_text(LOOPS, encoding="utf-8")
    (tmp_path / "mm.c").write_text(PRODUCT, encoding="utf-8")
    (tmp_path / "a.f90").write_text(FORTRAN, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("options", ["-O2 -c", "-O3 -g -ffast-math -fPIC -ffunction-sections -c", "-O1 -S"])
def test_code_is_what_the_compiler_writes_alone(folder: Path, options: str) -> None:
    command = [*program(CLANG), *options.split(), "a.c", "-o"]
    subprocess.run([*command, "alone"], check=True)
    assert build_units([*command, "here"], NoUnits()) == 0
    alone, here = (folder / name for name in ("alone", "here"))
    if "-S" in command:  # comments have names of blocks, which only assembly shows
        assert _COMMENT.sub("", here.read_text()) == _COMMENT.sub("", alone.read_text())
    else:
        assert here.read_bytes() == alone.read_bytes()


@pytest.mark.parametrize(("toolchain", "source"), [(ZIG, "a.c"), (FLANG, "a.f90")], ids=["zig", "flang"])
def test_other_compilers_finish_their_code(folder: Path, toolchain: Toolchain, source: str) -> None:
    assert build_units([*program(toolchain), "-O2", "-c", source, "-o", "a.o"], NoUnits()) == 0
    assert (folder / "a.o").read_bytes().startswith(b"\x7fELF")


def test_warnings_are_shown_once_and_dependencies_written(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.c").write_text('#include "a.h"\nint f(void) { int unused; return N; }', encoding="utf-8")
    (folder / "a.h").write_text("#define N 3", encoding="utf-8")
    words = ["-std=c11", "-Wall", "-MMD", "-I", ".", "-DX=1", "-O2", "-c", "a.c"]
    assert build_units([*program(CLANG), *words], NoUnits()) == 0
    assert capfd.readouterr().err.count("warning:") == 1
    assert (folder / "a.d").read_text(encoding="utf-8").split() == ["a.o:", "a.c", "a.h"]


@pytest.mark.parametrize(
    "option", ["-fsanitize=undefined,address", "--coverage", "-fprofile-generate", "-pg"]
)
def test_instrumented_code_is_left_to_the_compiler(
    folder: Path, option: str, capfd: pytest.CaptureFixture[str]
) -> None:
    # Names of one length: coverage writes them into the object.
    command = [*program(CLANG), "-O2", "-ffast-math", option, "-c", "mm.c", "-o"]
    subprocess.run([*command, "only.o"], check=True)
    assert build_units([*command, "here.o"], NoUnits()) == 0
    assert f"warning: {option} needs passes of clang" in capfd.readouterr().err
    assert (folder / "here.o").stat().st_size == (folder / "only.o").stat().st_size


def ir(*functions: str) -> str:
    return "\n\n".join(functions) + "\n\nattributes #0 = { noinline optnone }\n"


def function(*blocks: str, name: str = "f", group: str = "") -> str:
    body = "\n\n".join(blocks)
    return f"define void @{name}(i32 %n, float %x, float %y){group} {{\nentry:\n  br label %a\n\n{body}\n}}"


OUTER = "a:\n  br i1 %t, label %b, label %e"
INNER = "b:\n  %z = fmul fast float %x, %y\n  br i1 %u, label %b, label %c"
CALLS = "b:\n  call void @g(i32 %n, float %x, float %y)\n  br label %c"
LATCH = "c:\n  br label %a"
EXIT = "e:\n  ret void"
LOOP = "b:\n  %z = fmul fast float %x, %y\n  br i1 %u, label %a, label %e"
AGAIN = "g:\n  br i1 %u, label %g, label %h"

NEST = function(OUTER, INNER, LATCH, EXIT)
ONE = function("a:\n  br label %b", LOOP, EXIT)
TWO = function("a:\n  br label %b", INNER, "c:\n  br label %g", AGAIN, "h:\n  ret void")
CALLING = function(OUTER, CALLS, LATCH, EXIT)
QUOTED = function(OUTER, INNER, LATCH, EXIT, name='"operator()"')

#: Modules: whether they may hold a product, and whether one that was optimised may.
MODULES = {
    "nest": (ir(NEST), True, True),
    "without optimisation": (ir(function(OUTER, INNER, LATCH, EXIT, group=" #0")), False, False),
    "one loop": (ir(ONE), False, True),
    "two loops, one after the other": (ir(TWO), False, True),
    "multiplies by a constant": (ir(NEST.replace("%y\n", "2.0\n")), False, False),
    "calls a loop in a loop": (ir(CALLING, ONE.replace("@f", "@g")), True, True),
    "calls what has no loop": (ir(CALLING, function("a:\n  ret void", name="g")), False, False),
    "matrix types": (ir("declare <4 x float> @llvm.matrix.multiply.v4f32()"), True, True),
    "quoted names": (ir(QUOTED.replace("%b", '%"b 1"').replace("b:", '"b 1":')), True, True),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_that_may_hold_products(name: str) -> None:
    text, found, optimised = MODULES[name]
    assert may_have_products(text) is found
    assert may_have_products(text, least_loops=1) is optimised
    nested = found or name == "multiplies by a constant"
    assert may_have_products(text, any_nest=True) is nested


def test_what_the_launcher_reads_itself() -> None:
    assert split(["--remarks=x", "--assume-reassociation", "clang", "a.c"]) is not None
    for threads in (["--threads", "own"], ["--threads=own"]):
        found = split([*threads, "--", "clang"])
        assert found is not None
        assert found[0].threads == "own"
    for words in (
        [],
        ["--help"],
        ["--threads", "many", "--", "clang"],
        ["--threads"],
        ["--target", "x", "--", "clang"],
        ["--", "rustc", "a.rs"],
        ["--"],
    ):
        assert split(words) is None


def test_nothing_heavy_is_imported(folder: Path) -> None:
    command = [*program(CLANG), "-O2", "-c", "a.c"]
    script = (
        "import sys; from tilewright_cc.launch import compile_command; "
        f"status = compile_command(['--', *{command!r}]); "
        "heavy = {'tilewright', 'numpy', 'llvmlite', 'typer'} & set(sys.modules); "
        "sys.exit(status or bool(heavy))"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_the_scripts(folder: Path) -> None:
    clang = program(CLANG)
    module = [sys.executable, "-m", "tilewright_cc"]
    words = ["--remarks", "r", "--", *clang, "-O2", "-ffast-math", "-c", "mm.c"]
    assert subprocess.run([*module, *words], check=False).returncode == 0
    assert (folder / "r").read_text(encoding="utf-8").startswith("replaced mm:3: ")
    for command in (["gcc", "-c", "mm.c"], ["no-such-clang", "a.c"]):
        done = subprocess.run([*module, "--", *command], check=False, capture_output=True, text=True)
        assert done.returncode == 2
        assert done.stderr.startswith("tilewright: ")
    version = subprocess.run(
        [*module, "--", *clang, "--version"], check=False, capture_output=True, text=True
    )
    assert "clang" in version.stdout
