"""Invalid arguments: the numbers that the reference implementation reports, and who is told."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from blas_calls import DTYPES, Matrix, library, library_folder, run_c, run_fortran

from tilewright.aot.blas.routines import (
    COLUMN_MAJOR,
    ROLES,
    ROUTINES,
    ROW_MAJOR,
    ArgumentRole,
    Routine,
    find_routine,
)


def valid(routine: Routine) -> dict[str, Any]:
    """Arguments of a small call that is right."""
    flags = {"transa": "N", "transb": "N", "trans": "N", "side": "L", "uplo": "U", "diag": "N"}
    matrix = Matrix(np.ones((4, 4)), 0, at_end=True)
    given: dict[str, Any] = {**flags, "m": 3, "n": 3, "k": 3, "batch": 1, "alpha": 1.0, "beta": 0.5}
    for name in "abc":
        given |= {name: matrix, f"ld{name}": 4, f"stride{name}": 0}
    return {name: given[name] for name in routine.arguments}


CHECKED = (ArgumentRole.FLAG, ArgumentRole.SIZE, ArgumentRole.LEADING)
CASES = [
    (routine, letter, argument)
    for routine in ROUTINES
    for letter in routine.types
    if letter in DTYPES
    for argument in routine.arguments
    if ROLES[argument] in CHECKED
]


def spoil(routine: Routine, argument: str) -> dict[str, Any]:
    wrong = {ArgumentRole.FLAG: "x", ArgumentRole.SIZE: -1, ArgumentRole.LEADING: 2}
    return valid(routine) | {argument: wrong[ROLES[argument]]}


def test_fortran_numbers(capfd: pytest.CaptureFixture[str]) -> None:
    """An argument is told by its place; C is not written."""
    for routine, letter, argument in CASES:
        given = spoil(routine, argument)
        before = given[routine.written].view.copy()
        run_fortran(routine.name, letter, given)
        title = f"{letter}{routine.name}".upper().ljust(6)
        number = routine.number(argument)
        found = capfd.readouterr().err
        assert found == f" ** On entry to {title} parameter number {number:2} had an illegal value\n"
        assert np.array_equal(given[routine.written].view, before)


def test_c_numbers(capfd: pytest.CaptureFixture[str]) -> None:
    """The layout is the first argument; a row-major call names the argument that the caller sees."""
    for routine, letter, argument in CASES:
        for layout in (ROW_MAJOR, COLUMN_MAJOR):
            run_c(routine.name, letter, spoil(routine, argument), layout)
            number = routine.number(argument) + 1
            name = f"cblas_{letter}{routine.name}"
            assert capfd.readouterr().err == f"Parameter {number} to routine {name} was incorrect\n"
    run_c("gemm", "d", valid(find_routine("gemm")), 7)
    assert capfd.readouterr().err == "Parameter 1 to routine cblas_dgemm was incorrect\n"


@pytest.mark.parametrize(
    ("letter", "name", "transpose"), [("c", "syrk", "C"), ("z", "herk", "T"), ("z", "her2k", "T")]
)
def test_transposes_of_complex_updates(
    capfd: pytest.CaptureFixture[str], letter: str, name: str, transpose: str
) -> None:
    """A symmetric update is not conjugated, a Hermitian one not only transposed."""
    run_fortran(name, letter, valid(find_routine(name)) | {"trans": transpose})
    assert "parameter number  2" in capfd.readouterr().err


def test_the_first_invalid_argument_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    run_fortran("gemm", "s", valid(find_routine("gemm")) | {"m": -1, "lda": 0, "transb": "?"})
    assert "parameter number  2" in capfd.readouterr().err


def test_small_letters() -> None:
    """Flags may be small letters."""
    a, c = Matrix(np.arange(6.0).reshape(2, 3), 0, at_end=True), Matrix(np.zeros((3, 3)), 0, at_end=True)
    given = {"uplo": "l", "trans": "t", "n": 3, "k": 2, "alpha": 1.0, "beta": 0.0}
    run_fortran("syrk", "d", {**given, "a": a, "lda": 2, "c": c, "ldc": 3})
    assert np.array_equal(c.view, np.tril(a.view.T @ a.view))


PROGRAM = """
#include <stdio.h>
#include "tilewright_blas.h"
void xerbla_(const char *name, const int *info, size_t length) { printf("%.6s %d\\n", name, *info); }
void cblas_xerbla(int number, const char *name, const char *form, ...) { printf("%s %d\\n", name, number); }
int main(void) {
    double a[4] = {1, 2, 3, 4}, b[4] = {1, 1, 0, 1}, c[4] = {0, 0, 0, 0}, one = 1, zero = 0;
    int two = 2, bad = -1;
    dgemm_("N", "T", &two, &two, &bad, &one, a, &two, b, &two, &zero, c, &two);
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, -1, 2, 2, 1, a, 2, b, 2, 0, c, 2);
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, 2, 2, 2, 1, a, 2, b, 2, 0, c, 2);
    printf("%g %g %g %g\\n", c[0], c[1], c[2], c[3]);
    return tilewright_blas_variant() == 0;
}
"""


@pytest.mark.parametrize("shared", [False, True], ids=["static", "shared"])
def test_programs_have_functions_of_their_own(tmp_path: Path, shared: bool) -> None:
    """A program that defines `xerbla` is told by it, whichever way it is linked.

    `cblas_xerbla` is given the number in the column-major call, as the reference gives it.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(PROGRAM, encoding="utf-8")
    folder = library_folder()
    library = folder / f"libtilewright_blas.{'so' if shared else 'a'}"
    command = [compiler, "-std=c99", "-Wall", "-Werror", f"-I{folder}", str(source), str(library)]
    subprocess.run([*command, "-lpthread", "-ldl", f"-Wl,-rpath,{folder}", "-o", str(program)], check=True)
    done = subprocess.run([str(program)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["DGEMM  5", "cblas_dgemm 5", "4 6 3 4"]


def test_the_variant_is_told() -> None:
    function = library().tilewright_blas_variant
    function.restype = ctypes.c_char_p
    assert function() == b"host"
