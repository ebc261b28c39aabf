"""Products that read a matrix once: their accuracy, special values, floating-point flags and bits.

One column (dot products), one row over a deep B (squares turned in registers), one row and few rows over
a wide B (whole rows of B added to sums in cache).
"""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from shares import looped
from support import FENV, Array, assert_accurate, filled, host_rows, no_flags, rough
from tiers import pairwise

import tilewright as tw
from tilewright.macro.cost import STREAMED_ROWS
from tilewright.ops.gemm.streaming import DOT_DEPTH

ROWS = [isa.name for isa in host_rows()]


@cache
def kernel(row: str, dtype: str, strategy: str = "auto") -> Any:
    problem = tw.Gemm(dtype=dtype, a="strided", b="strided", c="strided", strategy=strategy)
    found: Any = tw.compile(problem, tw.machine(row))
    return found


class Kind(NamedTuple):
    """Sizes, and in which order A and B lie: C along rows, F along columns."""

    sizes: tuple[int, int, int]
    order_a: str = "C"
    order_b: str = "C"


#: Each kind beside its edges: lanes, turns of four vectors, runs of squares, blocks of sums, cache blocks.
KINDS: dict[str, tuple[Kind, ...]] = {
    "dots": (
        Kind((1, 1, 1)),
        Kind((3, 1, 31)),
        Kind((5, 1, 67)),
        Kind((7, 1, 1043)),
        Kind((3, 1, 2 * DOT_DEPTH + 37)),
    ),
    "turned": (
        Kind((1, 33, 16), order_b="F"),
        Kind((1, 37, 61), order_b="F"),
        Kind((1, 19, 2077), order_b="F"),
    ),
    "one row": (Kind((1, 2, 1)), Kind((1, 67, 9)), Kind((1, 131, 1571)), Kind((1, 8301, 21))),
}


def kinds(code: Any) -> Iterator[tuple[str, Kind]]:
    """Every kind with its name; few rows need a B that the second-level cache does not hold."""
    for name, found in KINDS.items():
        yield from ((name, kind) for kind in found)
    far = code.machine.l2.size // code.types.b.size
    for number, m in enumerate((2, 3, 5, STREAMED_ROWS)):
        n = (4133, 131)[number % 2]
        yield "few rows", Kind((m, n, far // n + 1 + number), order_a="CF"[m % 2])


def mirrored(a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
    """The transposed product in the same memory."""
    return b.T, a.T, c.T


def placed(array: Array, order: str) -> Array:
    """The array with rows or columns contiguous."""
    return np.asfortranarray(array) if order == "F" else np.ascontiguousarray(array)


def operands(kind: Kind, dtype: str, make: object = rough) -> tuple[Array, Array, Array]:
    (m, n, k), number = kind.sizes, {"f32": np.float32, "f64": np.float64}[dtype]
    a, b, c = (make(shape, number, seed) for seed, shape in enumerate(((m, k), (k, n), (m, n))))  # type: ignore[operator]
    return placed(a, kind.order_a), placed(b, kind.order_b), c


each_row = pytest.mark.parametrize("row", ROWS)
each_dtype = pytest.mark.parametrize("dtype", ["f32", "f64"])
SCALARS = [(1.0, 0.0), (0.5, 0.0), (1.0, 1.0), (-2.0, 0.5), (0.0, 0.5)]


# --- promise 4: accuracy ------------------------------------------------------------------------------


@pytest.mark.parametrize(("row", "dtype", "scalars"), pairwise(ROWS, ["f32", "f64"], SCALARS))
def test_accuracy(row: str, dtype: str, scalars: tuple[float, float]) -> None:
    code, (alpha, beta) = kernel(row, dtype), scalars
    for _, kind in kinds(code):
        a, b, c = operands(kind, dtype)
        for left, right, out in ((a, b, c.copy()), mirrored(a, b, c.copy())):
            before = out.copy()
            if beta == 0:
                out[...] = np.nan
            code(left, right, out, alpha=alpha, beta=beta)
            assert_accurate(out, left, right, before, alpha=alpha, beta=beta)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_accuracy_of_terms_that_cancel(dtype: str) -> None:
    """Large terms that vanish in pairs: the bound counts their magnitudes, not their sum."""
    code = kernel(ROWS[0], dtype)
    for _, kind in kinds(code):
        a, b, c = operands(kind, dtype)
        a[:, 1::2] = -a[:, : a.shape[1] // 2 * 2 : 2] * (1 + 8 * np.finfo(a.dtype).eps)
        b[1::2] = b[: b.shape[0] // 2 * 2 : 2]
        code(a, b, c)
        assert_accurate(c, a, b)


# --- promise 5: an order that no other row, column or layout changes --------------------------------------


def same_bits(left: Array, right: Array) -> bool:
    word = {4: np.uint32, 8: np.uint64}[left.itemsize]
    return np.array_equal(np.ascontiguousarray(left).view(word), np.ascontiguousarray(right).view(word))


@each_row
@each_dtype
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 0.0), (0.3, -0.7), (-1.7, 1.0)])
def test_all_but_one_column_equal_the_tiles(row: str, dtype: str, alpha: float, beta: float) -> None:
    code, tiles = kernel(row, dtype), kernel(row, dtype, "tiling")
    for name, kind in kinds(code):
        a, b, c = operands(kind, dtype)
        if name == "dots":
            continue
        found, expected = c.copy(), c.copy()
        code(a, b, found, alpha=alpha, beta=beta)
        tiles(a, b, expected, alpha=alpha, beta=beta)
        assert same_bits(found, expected), kind
        turned = np.asfortranarray(c)
        code(a, b, turned, alpha=alpha, beta=beta)
        assert same_bits(turned, expected), kind


# --- promise 2: NaN, infinities and signed zeros -------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "dtype", "content", "where"),
    pairwise(ROWS, ["f32", "f64"], [np.nan, np.inf, -np.inf], range(3)),
)
def test_nan_and_inf_propagate(row: str, dtype: str, content: float, where: int) -> None:
    """One special value, at the first place, at the last one and between: values equal NumPy's in float64."""
    code = kernel(row, dtype)
    for _, kind in kinds(code):
        for fraction in (0.0, 0.37, 1.0):
            arrays = list(operands(kind, dtype, filled))
            place = tuple(int(fraction * (extent - 1)) for extent in arrays[where].shape)
            arrays[where][place] = content
            a, b, c = arrays
            with np.errstate(invalid="ignore"):
                wide = a.astype(np.float64) @ b.astype(np.float64) + 2 * c.astype(np.float64)
            code(a, b, c, beta=2)
            np.testing.assert_array_equal(c, wide)


@each_row
@each_dtype
def test_special_scalars(row: str, dtype: str) -> None:
    """As in the formula; an infinite alpha multiplies the sum of each cache block, so it takes one block."""
    code = kernel(row, dtype)
    pairs = ((np.nan, 0.0), (1.0, np.nan), (np.inf, 1.0), (1.0, -np.inf), (np.nan, -0.0), (-np.inf, np.nan))
    for _, kind in kinds(code):
        a, b, content = operands(kind, dtype, filled)
        for alpha, beta in pairs:
            if np.isinf(alpha) and a.shape[1] > code.blocking.kc:
                continue
            c = content if beta != 0 else np.full_like(content, np.nan)
            with np.errstate(invalid="ignore"):
                expected = np.asarray(alpha, c.dtype) * (a @ b)
                expected = expected + np.asarray(beta, c.dtype) * content if beta != 0 else expected
            c = c.copy()
            code(a, b, c, alpha=alpha, beta=beta)
            np.testing.assert_array_equal(c, expected)


@each_row
@each_dtype
@looped("signs", [(1, 1), (-1, 1), (1, -1), (-1, -1)])
def test_signed_zeros(row: str, dtype: str, signs: tuple[int, int]) -> None:
    """A sum starts from +0, so products of either sign that are 0 leave it there."""
    code = kernel(row, dtype)
    for _, kind in kinds(code):
        a, b, c = operands(kind, dtype, filled)
        a[...], b[...] = signs[0] * np.zeros_like(a), signs[1]
        for alpha, beta, content in (
            (1.0, 0.0, -1.0),
            (-1.0, 0.0, -1.0),
            (1.0, 1.0, -0.0),
            (-1.0, 1.0, -0.0),
            (-1.0, 1.0, 0.0),
            (0.0, 1.0, -0.0),
            (0.0, -1.0, 0.0),
        ):
            c[...] = content
            sums = np.zeros_like(c)  # none where alpha is 0: the product has no depth then
            expected = sums if alpha == 0 else np.asarray(alpha, c.dtype) * sums
            expected = expected + np.asarray(beta, c.dtype) * c if beta != 0 else expected
            code(a, b, c, alpha=alpha, beta=beta)
            assert same_bits(c, expected), (kind, alpha, beta, content)


# --- promise 6: the floating-point environment -----------------------------------------------------------

needs_fenv = pytest.mark.skipif(not FENV, reason="the C library's fenv.h is not known here")


@needs_fenv
@each_row
@each_dtype
def test_no_flags_from_ordinary_values(row: str, dtype: str) -> None:
    code = kernel(row, dtype)
    for _, kind in kinds(code):
        a, b, c = operands(kind, dtype)
        for alpha, beta in SCALARS:
            with no_flags():
                code(a, b, c, alpha=alpha, beta=beta)


@needs_fenv
@each_row
@each_dtype
@pytest.mark.parametrize("where", range(3))
def test_no_flags_from_infinities_that_meet_no_zero(row: str, dtype: str, where: int) -> None:
    code = kernel(row, dtype)
    for _, kind in kinds(code):
        a, b, c = (abs(array) + 1 for array in operands(kind, dtype))
        (a, b, c)[where][...] = np.inf
        with no_flags():
            code(a, b, c, beta=2)
        assert np.isposinf(c).all()


@needs_fenv
@each_row
@each_dtype
def test_no_flags_from_what_scratch_held(row: str, dtype: str) -> None:
    """Old sums and old squares would overflow, or be NaN, where they met new elements."""
    code = kernel(row, dtype)
    largest = {"f32": np.finfo(np.float32).max, "f64": np.finfo(np.float64).max}[dtype]
    for of_a in (largest, np.nan):
        for _, kind in kinds(code):
            a, b, c = (np.ones_like(array) for array in operands(kind, dtype))
            with np.errstate(over="ignore", invalid="ignore"):
                code(a * of_a, b, c.copy())
            with no_flags():
                code(a, b, c)
            assert (c == a.shape[1]).all()


@each_row
@each_dtype
def test_subnormals_are_kept(row: str, dtype: str) -> None:
    code = kernel(row, dtype)
    number = code.problem.dtype.numpy.type
    small = number({"f32": 2.0**-140, "f64": 2.0**-1060}[dtype])
    half = np.sqrt(small)
    for _, kind in kinds(code):
        a, b, c = operands(kind, dtype, filled)
        expected = (a @ b) * small
        for left, right, alpha in ((a * small, b, 1.0), (a * half, b * half, 1.0), (a, b, float(small))):
            code(left, right, c, alpha=alpha)
            assert same_bits(c + number(0), expected + number(0)), kind
        code(a * 0, b, c, beta=1)
        assert same_bits(c + number(0), expected + number(0)), kind
