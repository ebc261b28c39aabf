"""Products of bytes with zero points, against exact integers."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from support import Array
from tiers import pairwise

import tilewright as tw
from tilewright.errors import (
    InvalidZeroPoint,
    NotAnArray,
    OutDtype,
    OutReadOnly,
    OutShape,
    ShapeMismatch,
    UnsupportedDtype,
)

TYPES = ("u1", "i1")
each_pair = pytest.mark.parametrize(("left", "right"), list(product(TYPES, TYPES)))


def drawn(shape: tuple[int, ...], kind: str, seed: int) -> Array:
    limits, rng = np.iinfo(kind), np.random.default_rng(seed)
    return rng.integers(limits.min, limits.max + 1, shape).astype(kind)


def exact(a: Array, b: Array, zero_a: Any, zero_b: Any) -> Array:
    """int32 of the product of 64-bit integers."""
    left, right = a.astype(np.int64), b.astype(np.int64)
    zero_a, zero_b = (np.asarray(zero).astype(np.int64) for zero in (zero_a, zero_b))
    if zero_a.ndim == 1 and a.ndim > 1:
        zero_a = zero_a[:, np.newaxis]
    found: Array = ((left - zero_a) @ (right - zero_b)).astype(np.int32)
    return found


ZEROS = (None, "one", "each")


@pytest.mark.parametrize(("left", "right", "by_row", "by_column"), pairwise(TYPES, TYPES, ZEROS, ZEROS))
def test_matrices(left: str, right: str, by_row: str | None, by_column: str | None) -> None:
    for m, n, k in ((1, 1, 1), (5, 7, 3), (33, 70, 65), (17, 1, 300), (1, 40, 9), (3, 4, 0)):
        a, b = drawn((m, k), left, 1), drawn((k, n), right, 2)
        zero_a = {None: None, "one": drawn((), left, 3), "each": drawn((m,), left, 3)}[by_row]
        zero_b = {None: None, "one": drawn((), right, 4), "each": drawn((n,), right, 4)}[by_column]
        expected = exact(a, b, 0 if zero_a is None else zero_a, 0 if zero_b is None else zero_b)
        found = tw.matmul_integer(a, b, zero_a, zero_b)
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, expected)
        for out in (np.zeros((m, n), "i4"), np.zeros((n, m), "i4").T, np.zeros((2 * m, n), "i4")[::2]):
            assert tw.matmul_integer(np.asfortranarray(a), b, zero_a, zero_b, out=out) is out
            np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    ("shape_a", "shape_b"), [((3, 5, 6), (6, 7)), ((3, 5, 6), (3, 6, 7)), ((5, 6), (2, 1, 6, 7))]
)
def test_batches(shape_a: tuple[int, ...], shape_b: tuple[int, ...]) -> None:
    a, b = drawn(shape_a, "u1", 1), drawn(shape_b, "i1", 2)
    rows, columns = drawn((*shape_a[:-1], 1), "u1", 3), drawn((*shape_b[:-2], 1, 7), "i1", 4)
    pairs: Any = product((np.uint8(7), rows[(0,) * (len(shape_a) - 2)][:, 0], rows), (-3, columns))
    for zero_a, zero_b in pairs:
        expected = exact(a, b, zero_a, zero_b)
        np.testing.assert_array_equal(tw.matmul_integer(a, b, zero_a, zero_b), expected)
        out = np.zeros(expected.shape, np.int32)
        tw.matmul_integer(a, b, zero_a, zero_b, out=out)
        np.testing.assert_array_equal(out, expected)


def test_vectors() -> None:
    a, b, x = drawn((5, 6), "u1", 1), drawn((6, 7), "i1", 2), drawn((6,), "u1", 3)
    np.testing.assert_array_equal(tw.matmul_integer(x, b, 128, 3), exact(x, b, 128, 3))
    np.testing.assert_array_equal(tw.matmul_integer(a, x, 128, 3), exact(a, x, 128, 3))
    assert tw.matmul_integer(x, x, 1, 2) == exact(x, x, 1, 2)
    out = np.zeros(7, np.int32)
    np.testing.assert_array_equal(tw.matmul_integer(x, b, 128, 3, out=out), exact(x, b, 128, 3))


def test_sums_wrap_around() -> None:
    a, b = np.full((2, 40_000), 255, np.uint8), np.full((40_000, 3), 255, np.uint8)
    assert 255 * 255 * 40_000 > 2**31
    np.testing.assert_array_equal(tw.matmul_integer(a, b, 1, [2, 0, 255]), exact(a, b, 1, [2, 0, 255]))
    np.testing.assert_array_equal(tw.matmul_integer(a, b, 1, 2), exact(a, b, 1, 2))


def test_an_out_in_the_memory_of_an_operand() -> None:
    words = drawn((8, 8), "u1", 1)
    out = words.view(np.int32)[:, :2]
    a, b = words[:, :5], drawn((5, 2), "i1", 2)
    expected = exact(a, b, 9, 3)
    np.testing.assert_array_equal(tw.matmul_integer(a, b, 9, 3, out=out), expected)


A, B = drawn((5, 6), "u1", 1), drawn((6, 7), "i1", 2)


@pytest.mark.parametrize(
    ("zero_a", "zero_b", "words"),
    [
        (256, None, "a_zero_point is from 256 to 256"),
        (-1, None, "a_zero_point"),
        (None, 128, "b_zero_point"),
        (0.5, None, "float64"),
        (np.zeros(6, np.uint8), None, r"\(5,\)"),
        (None, np.zeros((7, 1), np.int8), r"\(7,\)"),
        (np.zeros((2, 5, 1), np.uint8), None, r"\(2, 5, 1\)"),
    ],
)
def test_zero_points_that_are_none(zero_a: Any, zero_b: Any, words: str) -> None:
    out = np.full((5, 7), 7, np.int32)
    with pytest.raises(InvalidZeroPoint, match=words):
        tw.matmul_integer(A, B, zero_a, zero_b, out=out)
    assert (out == 7).all()


def test_refusals() -> None:
    with pytest.raises(NotAnArray, match="a_zero_point"):
        tw.matmul_integer(A, B, "seven")
    with pytest.raises(UnsupportedDtype, match="int16"):
        tw.matmul_integer(A.astype("i2"), B)
    with pytest.raises(ShapeMismatch):
        tw.matmul_integer(A, A)
    with pytest.raises(OutShape):
        tw.matmul_integer(A, B, out=np.zeros((5, 8), np.int32))
    with pytest.raises(OutDtype):
        tw.matmul_integer(A, B, out=np.zeros((5, 7), np.uint8))
    fixed = np.zeros((5, 7), np.int32)
    fixed.flags.writeable = False
    with pytest.raises(OutReadOnly):
        tw.matmul_integer(A, B, out=fixed)
