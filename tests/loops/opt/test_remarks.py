"""Remarks: names and subscripts as in the source, and the formats of compilers and editors."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from recognise.toolchains import CLANG, FLANG, Toolchain

from tilewright.llvm.canonical import shape_loops
from tilewright.loops.nests.nest import Where
from tilewright.loops.opt.records import OutputFormat, ProductOptions, Remark
from tilewright.loops.opt.rewrite import replace_products
from tilewright.loops.opt.work import Work, read_module_of, target_machine_of
from tilewright_cc.invocation import Invocation
from tilewright_cc.reports import diagnostics, formatted, optimisation_record

C_SOURCE = """
typedef struct { int rows, cols; double *data; } mat;
extern void say(int);
void transposed(int n, const double *A, const double *B, double *C) {
  for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) for (int k = 0; k < n; k++)
    C[i * n + j] += A[k * n + i] * B[j * n + k];
}
void by_columns(int n, const double *A, const double *B, double *C) {
  for (int j = 0; j < n; j++) for (int i = 0; i < n; i++) for (int k = 0; k < n; k++)
    C[i + j * n] += A[i + k * n] * B[k + j * n];
}
void fields(const mat *a, const mat *b, mat *c) {
  for (int i = 0; i < c->rows; i++) for (int j = 0; j < c->cols; j++) {
    double s = 0;
    for (int k = 0; k < a->cols; k++) s += a->data[i * a->cols + k] * b->data[k * b->cols + j];
    c->data[i * c->cols + j] = s;
  }
}
static double G[64][64], H[64][64];
void globals(double (*out)[64]) {
  for (int i = 0; i < 64; i++) for (int j = 0; j < 64; j++) for (int k = 0; k < 64; k++)
    out[i][j] += G[i][k] * H[k][j];
}
"""
#: Line -> what is said with debug information, and without it.
C_REMARKS = {
    5: ("C[m,n] += A[k,m]*B[n,k], m=n, n=n, k=n, f64",) * 2,
    9: ("C[m,n] += B[m,k]*A[k,n], m=n, n=n, k=n, f64",) * 2,
    13: (
        "c->data[m,n] = a->data[m,k]*b->data[k,n], m=c->rows, n=c->cols, k=a->cols, f64",
        "at(c + 8)[m,n] = at(a + 8)[m,k]*at(b + 8)[k,n], m=at(c), n=at(c + 4), k=at(a + 4), f64",
    ),
    21: ("out[m,n] += G[m,k]*H[k,n], m=64, n=64, k=64, f64",) * 2,
}
FORTRAN_SOURCE = """
subroutine plain(n, a, b, c)
  integer :: n, i, j, k
  real(8) :: a(n,n), b(n,n), c(n,n)
  do j = 1, n; do k = 1, n; do i = 1, n
    c(i,j) = c(i,j) + a(k,i) * b(k,j)
  end do; end do; end do
end subroutine
subroutine lower(n, a, c)
  integer :: n, i, j, k
  real(8) :: a(n,n), c(n,n)
  do j = 1, n; do i = j, n; do k = 1, n
    c(i,j) = c(i,j) + a(i,k) * a(j,k)
  end do; end do; end do
end subroutine
"""
FORTRAN_REMARKS = {
    5: ("c[m,n] += a[k,m]*b[k,n], m=n, n=n, k=n, f64",),
    12: ("c[m,n] += a[m,k]*a[n,k], m=n, n=n, k=n, lower triangle, f64",),
}


def remarks(toolchain: Toolchain, source: Path, *options: str) -> dict[int | None, Remark]:
    """Remarks on a source by line, as `tilewright cc` has them; nothing is compiled."""
    if toolchain.program is None:
        pytest.skip(f"{toolchain.name} is not installed")
    text = source.with_suffix(".ll")
    command = [*toolchain.program, "-O2", "-ffast-math", *options, "-c", str(source)]
    invocation = Invocation.read(command)
    subprocess.run(invocation.emitting(invocation.sources[0], text), check=True)
    work = Work(text.read_bytes(), source.name, OutputFormat.LL, ProductOptions())
    module = read_module_of(work)
    shape_loops(module, target_machine_of(module, work))
    return {remark.where.line: remark for remark in replace_products(str(module), work.options).remarks}


@pytest.mark.parametrize("options", [("-g",), ()], ids=["debug", "plain"])
def test_names_of_c(tmp_path: Path, options: tuple[str, ...]) -> None:
    (tmp_path / "a.c").write_text(C_SOURCE, encoding="utf-8")
    found = remarks(CLANG, tmp_path / "a.c", *options)
    assert {line: one.text for line, one in found.items()} == {
        line: texts[0 if options else 1] for line, texts in C_REMARKS.items()
    }
    assert {(one.where.file, one.where.column) for one in found.values()} == {(str(tmp_path / "a.c"), 3)}


def test_subscripts_of_fortran(tmp_path: Path) -> None:
    (tmp_path / "a.f90").write_text(FORTRAN_SOURCE, encoding="utf-8")
    found = remarks(FLANG, tmp_path / "a.f90", "-g")
    assert {line: one.text for line, one in found.items()} == {
        line: texts[0] for line, texts in FORTRAN_REMARKS.items()
    }


REPLACED = Remark(Where("mm", 3, 5, "s/mm.c"), replaced=True, text="c[m,n] = a[m,k]*b[k,n], m=4, f32")
REFUSED = Remark(Where("other", None, None, "s/mm.c"), replaced=False, text="calls 'printf'")


def test_diagnostics_of_a_compiler() -> None:
    both = diagnostics([REPLACED, REFUSED], passed=True, missed=True).splitlines()
    assert both == [
        f"s/mm.c:3:5: remark: loop nest replaced: {REPLACED.text} [-Rpass=tilewright]",
        "s/mm.c: remark: loop nest not replaced, since it calls 'printf' [-Rpass-missed=tilewright]",
    ]
    assert diagnostics([REPLACED, REFUSED], passed=False, missed=True).splitlines() == both[1:]
    assert diagnostics([REPLACED], passed=False, missed=True) == ""


def test_records_of_llvm() -> None:
    assert optimisation_record([REPLACED, REFUSED]) == (
        "--- !Passed\nPass:            tilewright\nName:            Replaced\n"
        "DebugLoc:        { File: 's/mm.c', Line: 3, Column: 5 }\nFunction:        'mm'\n"
        f"Args:\n  - String:          'loop nest replaced: {REPLACED.text}'\n...\n"
        "--- !Missed\nPass:            tilewright\nName:            NotReplaced\nFunction:        'other'\n"
        "Args:\n  - String:          'loop nest not replaced, since it calls ''printf'''\n...\n"
    )


def test_formats_of_files() -> None:
    assert formatted([REPLACED], ".txt") == f"{REPLACED}\n"
    assert formatted([REPLACED], ".yml") == optimisation_record([REPLACED])
    (run,) = json.loads(formatted([REPLACED, REFUSED], ".sarif"))["runs"]
    first, second = run["results"]
    physical = first["locations"][0]["physicalLocation"]
    assert physical == {"artifactLocation": {"uri": "s/mm.c"}, "region": {"startLine": 3, "startColumn": 5}}
    assert (first["ruleId"], second["ruleId"]) == ("replaced", "refused")
    assert "region" not in second["locations"][0]["physicalLocation"]
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == {"replaced", "refused"}


def test_options_of_compilers_that_ask_for_remarks() -> None:
    found = Invocation.read(["clang", "-Rpass=inline", "-Rpass=tile.*", "-Rpass-missed=loop", "-c", "a.c"])
    assert found.reports("-Rpass", "tilewright")
    assert not found.reports("-Rpass-missed", "tilewright")
    assert not Invocation.read(["clang", "-Rpass=(", "a.c"]).reports("-Rpass", "tilewright")
    assert found.record_of("b/a.o") is None
    saved = Invocation.read(["clang", "-fsave-optimization-record", "-c", "a.c"])
    assert saved.record_of("b/a.o") == "b/a.opt.yaml"
    named = Invocation.read(["clang", "-foptimization-record-file=r", "-c", "a.c"])
    assert named.record_of("b/a.o") == "r"
