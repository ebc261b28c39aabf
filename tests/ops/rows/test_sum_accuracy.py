"""Sums, means and what is made of them are as exact along long axes as along short ones."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from shares import looped
from support import Array

import tilewright as tw
from tilewright.spec.dtype import BF16, F16, F32, F64, DType

every_dtype = pytest.mark.parametrize("dtype", [F32, F64, BF16, F16], ids=str)

#: Units in the last place of a sum of equal numbers: half of one is rounding; of a short one, chains of a few
#: additions in the type of the sums are the rest.
EQUAL_UNITS, SHORT_UNITS, SHORT = 1.0, 2.0, 2000

#: Units of a sum of positive numbers: the lanes of a vector are added up in the type of the sums.
POSITIVE_UNITS = 1.5


def units(found: Any, exact: Any, dtype: DType) -> float:
    """The largest error in units in the last place of the exact results."""
    expected = np.asarray(exact, np.float64)
    exponents = np.floor(np.log2(np.abs(expected)))
    error = np.abs(np.asarray(found).astype(np.float64) - expected)
    return float((error / 2.0 ** (exponents + 1 - dtype.significand)).max())


def exact_sums(x: Array, axis: int) -> Array:
    """Along an axis of a matrix, rounded once to float64."""
    lines = x.astype(np.float64) if axis else x.astype(np.float64).T
    return np.array([math.fsum(line) for line in lines])


#: Shapes, and the axis of sums: long rows, many columns, few rows side by side, ends of every kind.
SHAPES = [
    ((1, 4_000_000), 1),
    ((1, 1_000_001), 1),
    ((3, 12_345), 1),
    ((50, 1000), 1),
    ((200_000, 10), 0),
    ((20_003, 37), 0),
    ((1000, 300), 0),
    ((257, 5), 0),
]


@every_dtype
@looped(("shape", "axis"), SHAPES)
def test_equal_numbers(shape: tuple[int, int], axis: int, dtype: DType) -> None:
    """Where rounding errors are alike, they would add up in chains of additions."""
    x = np.full(shape, 0.1, np.float64).astype(dtype.numpy)
    count = shape[axis]
    if dtype == F16 and count > 100_000:
        x = x / dtype.numpy.type(100)  # no sum beyond 65504
    most = EQUAL_UNITS if count > SHORT else SHORT_UNITS
    exact = float(Fraction(float(x[0, 0])) * count)
    assert units(tw.sum(x, axis), exact, dtype) <= most
    assert units(tw.mean(x, axis), float(x[0, 0]), dtype) <= most
    apart = np.repeat(x[:, :500], 2, 1)[:, ::2] if axis == 0 else x
    assert units(tw.sum(apart, axis), exact, dtype) <= most


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_positive_numbers(dtype: DType, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for shape, axis in (((4, 200_000), 1), ((100_000, 6), 0), ((100, 100), 1), ((40, 1000), 1)):
        x = rng.random(shape).astype(dtype.numpy)
        assert units(tw.sum(x, axis), exact_sums(x, axis), dtype) <= POSITIVE_UNITS, shape


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_numbers_that_cancel(dtype: DType, axis: int) -> None:
    """The errors of many sums together are below those of NumPy's pairwise sums."""
    rng = np.random.default_rng(axis)
    for length in (1000, 20_000):
        x = rng.standard_normal((64, length)).astype(dtype.numpy)
        exact = exact_sums(x, 1)
        found = tw.sum(x, 1) if axis else tw.sum(np.ascontiguousarray(x.T), 0)
        ours, theirs = (
            float(np.square(sums.astype(np.float64) - exact).mean()) for sums in (found, x.sum(1))
        )
        assert ours <= theirs


def test_infinities_and_nan_of_long_sums() -> None:
    for dtype in (F32, F64):
        for axis, shape in ((1, (4, 5000)), (0, (5000, 4))):
            x = np.ones(shape, dtype.numpy)
            lines = x if axis else x.T
            lines[0, 17] = np.inf
            lines[1, 4999] = -np.inf
            lines[2, [3, 4000]] = np.inf, -np.inf
            lines[3, 2500] = np.nan
            np.testing.assert_array_equal(tw.sum(x, axis), [np.inf, -np.inf, np.nan, np.nan])
            zeros = np.full(shape, -0.0, dtype.numpy)
            assert np.signbit(tw.sum(zeros, axis)).all()
            large = np.full(
                shape, np.finfo(np.float64).max if dtype == F64 else np.finfo(np.float32).max, dtype.numpy
            )
            assert (tw.sum(large, axis) == np.inf).all()


#: Units of elements of the results: of softmax, x - max x has been rounded before its exponential is taken.
FUNCTION_UNITS = {"softmax": 12.0, "log_softmax": 2.0, "layer_norm": 3.0, "rms_norm": 3.0}


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "layer_norm", "rms_norm"])
def test_functions_along_long_axes(name: str, axis: int) -> None:
    """As exact of rows side by side as of adjacent elements."""
    for length, lines in ((8192, 24), (300_000, 2)):
        x = np.random.default_rng(length).standard_normal((lines, length)).astype(np.float32)
        exact = getattr(tw, name)(x.astype(np.float64), axis=1)
        found = (
            getattr(tw, name)(x, axis=1) if axis else getattr(tw, name)(np.ascontiguousarray(x.T), axis=0).T
        )
        whole = np.abs(exact) > (1 if name == "layer_norm" else 0)  # near the mean a difference cancels
        assert units(found[whole], exact[whole], F32) <= FUNCTION_UNITS[name]


#: Subscripts, the shape of the operands and how many products each number of the result is the sum of: along
#: rows, rows side by side, elements apart, one element of the second factor for a whole row.
EINSUMS = [
    ("i->", (1_000_003,), 1_000_003),
    ("ij->i", (3, 50_000), 50_000),
    ("ij->j", (50_000, 37), 50_000),
    ("ijk->k", (200, 300, 70), 60_000),
    ("ii->", (3000, 3000), 3000),
    ("i,i->", (1_000_003,), 1_000_003),
    ("ij,ij->i", (3, 50_000), 50_000),
    ("ij,ij->j", (50_000, 37), 50_000),
]

#: Of products of equal numbers across rows, 64 meet in one chain.
EINSUM_UNITS = {1: 2.0, 2: 12.0}


@looped("dtype", [F32, F64])
@looped(("text", "shape", "count"), EINSUMS)
def test_einsum(text: str, shape: tuple[int, ...], count: int, dtype: DType) -> None:
    factors = text.count(",") + 1
    x = np.full(shape, 0.1, dtype.numpy)
    exact = float(Fraction(float(x.flat[0])) ** factors * count)
    assert units(tw.einsum(text, *[x] * factors), exact, dtype) <= EINSUM_UNITS[factors]
    if text == "i->":
        assert units(tw.einsum(text, np.repeat(x, 2)[::2]), exact, dtype) <= EINSUM_UNITS[factors]


def test_einsum_of_complex_numbers() -> None:
    x = np.full(400_000, 0.1 + 0.3j, np.complex64)
    for factors, text in ((1, "i->"), (2, "i,i->")):
        expected = complex(x[0]) ** factors * 400_000
        assert abs(complex(tw.einsum(text, *[x] * factors)) - expected) <= 1e-6 * abs(expected)
    many = np.full((20_000, 5), 0.1 + 0.3j, np.complex64)
    np.testing.assert_allclose(tw.einsum("ij->j", many), np.full(5, complex(many[0, 0]) * 20_000), rtol=1e-6)


def test_einsum_of_infinities() -> None:
    for dtype in (np.float32, np.float64):
        x = np.ones((3000, 4), dtype)
        x[17, 0], x[2999, 1], x[[3, 2000], 2], x[2500, 3] = np.inf, -np.inf, (np.inf, -np.inf), np.nan
        for found in (tw.einsum("ij->j", x), tw.einsum("ij->i", np.ascontiguousarray(x.T))):
            np.testing.assert_array_equal(found, [np.inf, -np.inf, np.nan, np.nan])
