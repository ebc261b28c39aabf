"""`tilewright cc -- clang -flto`: calls are followed from one unit into another."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from recognise.toolchains import CLANG

from tilewright.aot.archive import Member, archive
from tilewright.errors import NotAModule
from tilewright.loops.driving.build import build
from tilewright.loops.driving.units import UnitCompiler
from tilewright.loops.opt.linked import link_modules
from tilewright_cc.invocation import Invocation

DOT = """
int dot(int n, const int *x, const int *y, int step) {
  int s = 0;
  for (int p = 0; p < n; p++) s += x[p] * y[p * step];
  return s;
}
"""
MAIN = """
int dot(int n, const int *x, const int *y, int step);
void mm(int n, const int *a, const int *b, int *c) {
  for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) c[i * n + j] = dot(n, a + i * n, b + j, n);
}
static int a[900], b[900], c[900];
int main(void) {
  int wrong = 0;
  for (int i = 0; i < 900; i++) { a[i] = i % 7; b[i] = i % 5 - 2; }
  mm(30, a, b, c);
  for (int i = 0; i < 30; i++) for (int j = 0; j < 30; j++) {
    int s = 0;
    for (int p = 0; p < 30; p++) { s += a[i * 30 + p] * b[p * 30 + j]; __asm__ volatile(""); }
    wrong += s != c[i * 30 + j];
  }
  return wrong ? 1 : 42;
}
"""


@pytest.fixture
def clang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    if CLANG.program is None:
        pytest.skip("clang is not installed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dot.c").write_text(DOT, encoding="utf-8")
    (tmp_path / "main.c").write_text(MAIN, encoding="utf-8")
    return " ".join(CLANG.program)


def test_a_product_across_units(tmp_path: Path, clang: str) -> None:
    units = UnitCompiler()
    assert build(f"{clang} -O2 -flto -MMD -c dot.c".split(), units) == 0
    assert (tmp_path / "dot.o").read_bytes().startswith(b"BC")
    assert (tmp_path / "dot.d").exists()
    assert units.remarks == []
    assert build(f"{clang} -O2 -flto main.c dot.o -o prog".split(), units) == 0
    (replaced,) = [str(one) for one in units.remarks if one.replaced and one.where.function == "mm"]
    assert replaced.endswith("c[m,n] = a[m,k]*b[k,n], m=n, n=n, k=n, i32")
    assert subprocess.run([tmp_path / "prog"], check=False).returncode == 42


def test_an_archive_of_bitcode(tmp_path: Path, clang: str) -> None:
    """Its modules are compiled for the link, which needs no plug-in; the archive itself stays."""
    (tmp_path / "mm.c").write_text(DOT + MAIN.partition("static int")[0].partition(";")[2], encoding="utf-8")
    (tmp_path / "use.c").write_text(
        "void mm(int n, const int *a, const int *b, int *c);\nstatic int" + MAIN.partition("static int")[2],
        encoding="utf-8",
    )
    assert build(f"{clang} -O2 -flto -c mm.c".split(), UnitCompiler()) == 0
    content = archive([Member("mm.o", (tmp_path / "mm.o").read_bytes(), ())])
    (tmp_path / "libmm.a").write_bytes(content)
    units = UnitCompiler()
    assert build(f"{clang} -O2 -flto use.c libmm.a -o prog".split(), units) == 0
    (replaced,) = [one for one in units.remarks if one.replaced]
    assert (replaced.where.function, replaced.where.file) == ("mm", "mm.c")
    assert subprocess.run([tmp_path / "prog"], check=False).returncode == 42
    assert (tmp_path / "libmm.a").read_bytes() == content


def test_without_it_the_call_is_a_reason(tmp_path: Path, clang: str) -> None:
    units = UnitCompiler()
    assert build(f"{clang} -O2 -flto -fno-lto -c main.c".split(), units) == 0
    assert not (tmp_path / "main.o").read_bytes().startswith(b"BC")
    (refused,) = [one for one in units.remarks if one.where.function == "mm"]
    assert not refused.replaced


def test_units_that_cannot_be_linked(tmp_path: Path, clang: str) -> None:
    assert build(f"{clang} -O2 -flto -c dot.c".split(), UnitCompiler()) == 0
    content = (tmp_path / "dot.o").read_bytes()
    with pytest.raises(NotAModule, match="dot"):
        link_modules(content, [content], "prog")
    assert build(f"{clang} -O2 -flto -c no.c".split(), UnitCompiler()) != 0


def test_commands_of_the_link() -> None:
    found = Invocation.read(["clang", "-O2", "-flto=thin", "-MMD", "a.c", "b.o", "c.o", "-lm", "-o", "p"])
    assert found.is_whole_program
    assert found.linking_merged(Path("m.o"), {"b.o"}, {}) == ["clang", "m.o", "-O2", "c.o", "-lm", "-o", "p"]
    archive = Invocation.read(["clang", "-flto", "a.c", "b.a"])
    assert archive.linking_merged(Path("m.o"), set(), {}) == ["clang", "m.o", "-flto", "b.a"]
    assert archive.linking_merged(Path("m.o"), set(), {"b.a": "t/b.a"}) == ["clang", "m.o", "t/b.a"]
    assert archive.linking_merged(None, set(), {"b.a": "b.a"}) == ["clang", "b.a"]
    assert not Invocation.read(["clang", "-flto", "-fno-lto", "a.c"]).is_whole_program
    assert not Invocation.read(["flang", "-flto", "a.f90"]).is_whole_program
