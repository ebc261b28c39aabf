"""Every routine, type and option of the BLAS library against its formula, beside guard pages."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from blas_calls import DTYPES, Matrix, is_complex, operated, run_c, run_fortran
from support import GUARD_PAGES, Array
from tiers import exhaustive

from tilewright.aot.blas.routines import COLUMN_MAJOR, ROUTINES, ROW_MAJOR, Routine, Transposes

pytestmark = pytest.mark.skipif(not GUARD_PAGES, reason="pages cannot be made inaccessible")

#: m, n, k: with blocks on the diagonal of one and of several, of one element, of none.
SIZES = ((1, 1, 1), (5, 7, 3), (70, 37, 9), (37, 150, 20), (0, 3, 2), (3, 0, 2), (4, 5, 0))
FACTORS = ((1.0, 0.0), (0.7, 1.3), (0.0, 1.3), (0.7, 1.0), (0.0, 1.0))
COMPLEX_FACTORS = (*FACTORS, (0.7 - 0.3j, 1.3 + 0.2j), (0.4j, 0.0))


def cases(routine: Routine, letter: str) -> Iterator[dict[str, str]]:
    """All values of the flags."""
    transposes = "NTC"
    if is_complex(letter):
        transposes = {Transposes.SYMMETRIC: "NT", Transposes.HERMITIAN: "NC"}.get(routine.transposes, "NTC")
    letters = {"side": "LR", "uplo": "UL", "diag": "NU"}
    flags = [one for one in routine.arguments if one in letters or one.startswith("trans")]
    for values in product(*(letters.get(flag, transposes) for flag in flags)):
        yield dict(zip(flags, values, strict=True))


def draw(rng: np.random.Generator, shape: tuple[int, int], letter: str) -> Array:
    parts = rng.standard_normal((2, *shape))
    found = parts[0] + 1j * parts[1] if is_complex(letter) else parts[0]
    drawn: Array = found.astype(DTYPES[letter])
    return drawn


def triangle(matrix: Array, uplo: str) -> Array:
    return np.tril(matrix) if uplo == "L" else np.triu(matrix)


def whole(matrix: Array, uplo: str, *, hermitian: bool) -> Array:
    """The matrix of which a triangle is stored."""
    stored = triangle(matrix, uplo)
    diagonal = np.diag(np.diag(stored))
    beside = stored - diagonal
    found: Array = beside + (beside.conj().T + diagonal.real if hermitian else beside.T + diagonal)
    return found


class Problem:
    """The operands of one call, the result that is right, and how far rounding may lead from it."""

    def __init__(
        self, routine: Routine, letter: str, flags: dict[str, str], sizes: tuple[int, int, int]
    ) -> None:
        self.routine, self.letter, self.flags = routine, letter, flags
        self.m, self.n, self.k = sizes
        self.rng = np.random.default_rng(sum(sizes) + len(routine.name))

    def shape(self, name: str) -> tuple[int, int]:
        """Rows and columns of a matrix as it is stored."""
        sizes, flags = {"m": self.m, "n": self.n, "k": self.k}, self.flags
        rows = self.routine.rows[name]
        second = rows.flag and flags[rows.flag] not in "NL"
        high = sizes[rows.otherwise if second else rows.size]
        if name == "c":
            return high, self.n
        if "diag" in flags or "side" in flags:
            return (high, high) if name == "a" else (high, self.n)
        other = {"a": {"m": "k", "n": "k", "k": rows.size}, "b": {"k": "n", "n": "k"}}[name]
        if "trans" in flags:
            return (self.k, self.n) if second else (self.n, self.k)
        if name == "b":
            return (self.n, self.k) if second else (self.k, self.n)
        return (high, sizes[other["k"] if second else "k"])

    def expected(self, given: dict[str, Array], alpha: complex, beta: complex) -> Any:
        """The formula, in double precision."""
        a, b, c = self.widened(given)
        flags, name = self.flags, self.routine.name
        if self.routine.form in ("trmm", "trsm"):
            return self.by_triangle(a, b, alpha)
        kept = 0 if beta == 0 else beta * c
        if self.routine.form == "symm":
            full = whole(a, flags["uplo"], hermitian=self.routine.hermitian)
            return alpha * (full @ b if flags["side"] == "L" else b @ full) + kept
        if "trans" in flags:
            left = a if flags["trans"] == "N" else operated(a, "C" if self.routine.hermitian else "T")
            adjoint = "C" if self.routine.hermitian else "T"
            if b is None:
                found = alpha * left @ operated(left, adjoint)
            else:
                right = b if flags["trans"] == "N" else operated(b, adjoint)
                second = np.conj(alpha) if self.routine.hermitian else alpha
                found = alpha * left @ operated(right, adjoint) + second * right @ operated(left, adjoint)
            full = found + kept
            if self.routine.hermitian and (alpha, beta) != (0, 1) and not (self.k == 0 and beta == 1):
                np.fill_diagonal(full, np.diag(full).real)
        else:
            full = alpha * operated(a, flags["transa"]) @ operated(b, flags["transb"]) + kept
        if name.startswith("gemm") and name != "gemmt":
            return full
        # Beyond the triangle nothing changes.
        return triangle(full, flags["uplo"]) + (c - triangle(c, flags["uplo"]))

    def widened(self, given: dict[str, Array]) -> list[Any]:
        """A, B and C in double precision; None for one that the routine does not have."""
        wide = np.complex128 if is_complex(self.letter) else np.float64
        return [given[name].astype(wide) if name in given else None for name in "abc"]

    def by_triangle(self, a: Array, b: Array, alpha: complex) -> Any:
        """Products with a triangle and solutions of triangular systems."""
        if alpha == 0:
            return np.zeros_like(b)
        stored = triangle(a, self.flags["uplo"])
        if self.flags["diag"] == "U":
            np.fill_diagonal(stored, 1)
        found, left = operated(stored, self.flags["transa"]), self.flags["side"] == "L"
        if self.routine.form == "trmm":
            return alpha * (found @ b if left else b @ found)
        return np.linalg.solve(found, alpha * b) if left else np.linalg.solve(found.T, alpha * b.T).T

    def draw(self, name: str) -> Array:
        """A filling; a triangle that is well conditioned, with NaN where it must not be read."""
        matrix = draw(self.rng, self.shape(name), self.letter)
        if name == "a" and "uplo" in self.flags and self.routine.form in ("trmm", "trsm", "symm"):
            rows = matrix.shape[0]
            if self.routine.form != "symm":
                matrix = (matrix / max(2 * rows, 1) + 2 * np.eye(rows)).astype(matrix.dtype)
            beyond = ~triangle(np.ones((rows, rows), bool), self.flags["uplo"])
            matrix[beyond] = np.nan
            if self.flags.get("diag") == "U":
                np.fill_diagonal(matrix, np.nan)
        return matrix

    def clean(self, matrix: Array) -> Array:
        """A copy without the NaN of what is not read."""
        return np.nan_to_num(matrix)


def check(problem: Problem, alpha: complex, beta: complex, *, c_layout: int = 0, wide: bool = False) -> None:
    """One call; with a layout by the C function, whose matrices are the transposes when it is row-major."""
    routine, letter = problem.routine, problem.letter
    drawn = {name: problem.draw(name) for name in routine.rows}
    written = routine.written
    wanted = problem.expected({name: problem.clean(one) for name, one in drawn.items()}, alpha, beta)
    if written == "c" and beta == 0 and alpha != 0 and "uplo" not in problem.flags:
        drawn["c"][...] = np.nan
    row = c_layout == ROW_MAJOR
    matrices = {
        name: Matrix(one.T if row else one, gap, at_end=bool(problem.m % 2))
        for gap, (name, one) in enumerate(drawn.items())
    }
    given: dict[str, Any] = {**problem.flags, "alpha": alpha, "beta": beta, **matrices}
    given |= {"m": problem.m, "n": problem.n, "k": problem.k, "batch": 1}
    given |= {f"ld{name}": one.leading for name, one in matrices.items()}
    given |= {f"stride{name}": 0 for name in matrices}
    if c_layout:
        run_c(routine.name, letter, given, c_layout, wide=wide)
    else:
        run_fortran(routine.name, letter, given, wide=wide)
    for name, one in matrices.items():
        one.check_outside()
        if name != written:
            assert np.array_equal(one.view, drawn[name].T if row else drawn[name], equal_nan=True)
    found = matrices[written].view.T if row else matrices[written].view
    if not wanted.size:
        return
    depth = max(problem.m, problem.n, problem.k) + 8
    scale = max(1.0, float(np.abs(wanted).max()))
    assert np.abs(found - wanted).max() <= 4 * depth * np.finfo(DTYPES[letter]).eps * scale


def factors_of(routine: Routine, letter: str) -> Iterator[tuple[complex, complex]]:
    """Factors that a routine takes."""
    for alpha, beta in COMPLEX_FACTORS if is_complex(letter) else FACTORS:
        yield (
            alpha.real if "alpha" in routine.real else alpha,
            beta.real if "beta" in routine.real else beta,
        )


ALL = [(routine, letter) for routine in ROUTINES for letter in routine.types if letter in DTYPES]
NAMES = [f"{letter}{routine.name}" for routine, letter in ALL]


@pytest.mark.parametrize(("routine", "letter"), ALL, ids=NAMES)
def test_fortran(routine: Routine, letter: str) -> None:
    """All flags; sizes and factors in turn."""
    factors = list(factors_of(routine, letter))
    for number, flags in enumerate(cases(routine, letter)):
        for at in range(3):
            sizes = SIZES[(3 * number + at) % len(SIZES)]
            check(Problem(routine, letter, flags, sizes), *factors[(number + at) % len(factors)])


@pytest.mark.parametrize(("routine", "letter"), ALL, ids=NAMES)
def test_c(routine: Routine, letter: str) -> None:
    """All flags in both layouts."""
    factors = list(factors_of(routine, letter))
    for number, (flags, layout) in enumerate(product(cases(routine, letter), (ROW_MAJOR, COLUMN_MAJOR))):
        sizes = SIZES[1 + number % 3]
        check(Problem(routine, letter, flags, sizes), *factors[number % len(factors)], c_layout=layout)


@pytest.mark.parametrize(("routine", "letter"), ALL, ids=NAMES)
def test_sizes_of_64_bits(routine: Routine, letter: str) -> None:
    """The names that end with 64_."""
    flags = next(iter(cases(routine, letter)))
    factors = next(iter(factors_of(routine, letter)))
    for layout in (0, ROW_MAJOR):
        check(Problem(routine, letter, flags, (5, 7, 3)), *factors, c_layout=layout, wide=True)


@exhaustive
@pytest.mark.parametrize(("routine", "letter"), ALL, ids=NAMES)
def test_large(routine: Routine, letter: str) -> None:
    """Sizes with several levels of recursion, and more than one block of copies."""
    factors = list(factors_of(routine, letter))
    for number, flags in enumerate(cases(routine, letter)):
        check(Problem(routine, letter, flags, (300, 261, 530)), *factors[number % len(factors)])


@pytest.mark.parametrize("name", ["trmm", "trsm"])
def test_triangles_multiply_by_no_zero(name: str) -> None:
    """An infinity in the last row of B leaves the rows before it alone, whatever is beyond the triangle."""
    rows, columns = 70, 3
    a = Matrix(np.eye(rows), 0, at_end=True)
    filled = np.ones((rows, columns))
    filled[-1] = np.inf
    b = Matrix(filled, 0, at_end=True)
    given = {"side": "L", "uplo": "L", "transa": "N", "diag": "N", "m": rows, "n": columns, "alpha": 1.0}
    run_fortran(name, "d", {**given, "a": a, "lda": rows, "b": b, "ldb": rows})
    assert np.array_equal(b.view[:-1], np.ones((rows - 1, columns)))
