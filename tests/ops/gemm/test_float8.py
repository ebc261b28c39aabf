"""Floats of 8 bits: every pair of values multiplied, weights that are stored so, transposes."""

from __future__ import annotations

from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray
from shares import looped
from tiers import crossed

import tilewright as tw
from tilewright.spec.dtype import BF16, E4M3, E5M2, F16, F32, DType

Array: TypeAlias = NDArray[Any]

TYPES = (E4M3, E5M2)
each_type = pytest.mark.parametrize("dtype", TYPES, ids=str)


def every(dtype: DType) -> Array:
    """All 256 values."""
    return np.arange(256, dtype=np.uint8).view(dtype.numpy)


def wholes(dtype: DType, *shape: int) -> Array:
    """Small integers, whose sums float32 holds."""
    return np.random.default_rng(sum(shape)).integers(-8, 9, shape).astype(dtype.numpy)


def assert_same(found: Array, exact: Array) -> None:
    """Equal values, all NaN being equal, rounded once from float64 where the type is narrower."""
    with np.errstate(all="ignore"):
        wanted = exact.astype(found.dtype)
    np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(np.float64))


def products(a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        found: Array = a.astype(np.float64) * b.astype(np.float64)
    return found


@pytest.mark.parametrize(
    ("a", "b", "to"), crossed(product(TYPES, TYPES), [F32, BF16, F16, *TYPES], 4), ids=str
)
def test_all_pairs_of_values(a: DType, b: DType, to: DType) -> None:
    left, right = every(a)[:, np.newaxis], every(b)[np.newaxis]
    assert_same(tw.matmul(left, right, dtype=to.numpy), products(left, right))


@each_type
def test_products_are_of_the_type_of_their_operands(dtype: DType) -> None:
    a, b = wholes(dtype, 5, 7), wholes(dtype, 7, 6)
    found = tw.matmul(a, b)
    assert found.dtype == np.result_type(a, b) == dtype.numpy
    assert_same(found, a.astype(np.float64) @ b.astype(np.float64))


@looped(("a", "b"), list(product(TYPES, (*TYPES, F32, BF16))))
@looped("sizes", [(1, 1, 1), (3, 5, 2), (1, 70, 90), (70, 1, 33), (65, 130, 257)])
def test_sums_are_exact(a: DType, b: DType, sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    left, right = wholes(a, m, k), wholes(b, k, n)
    exact = left.astype(np.float64) @ right.astype(np.float64)
    out = np.empty((m, n), np.float32)
    assert_same(tw.matmul(left, right, out), exact)
    assert_same(tw.matmul(right.T, left.T, dtype="f4"), exact.T)


def test_types_without_a_promotion_name_one_that_holds_both() -> None:
    with pytest.raises(tw.errors.NoCommonDtype, match="bfloat16"):
        tw.matmul(wholes(E4M3, 2, 2), wholes(BF16, 2, 2))


@each_type
def test_transposes_move_every_value(dtype: DType) -> None:
    x = np.resize(every(dtype), (37, 53))
    found = tw.transpose(x)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found.view(np.uint8), x.view(np.uint8).T)


@pytest.mark.parametrize(
    ("dtype", "activation", "rows"), crossed(product(TYPES, [F32, BF16]), [1, 3, 40, 200], 2), ids=str
)
def test_stored_weights(dtype: DType, activation: DType, rows: int) -> None:
    """Depths and columns that end within a word and within a panel; few rows, and panels of many."""
    weight, x = wholes(dtype, 65, 333), wholes(activation, rows, 333)
    packed = tw.pack(weight.T, form=dtype.name)  # type: ignore[arg-type]
    assert packed.form.weights is not None
    assert packed.form.weights.name == dtype.name
    assert packed.data4d.itemsize == 1
    found = tw.linear(x, packed)
    assert found.dtype == activation.numpy
    assert_same(found, x.astype(np.float64) @ weight.T.astype(np.float64))


@each_type
@pytest.mark.parametrize("activation", [F32, BF16], ids=str)
def test_every_value_of_a_weight(dtype: DType, activation: DType) -> None:
    weight, one = every(dtype)[np.newaxis], np.ones((1, 1), activation.numpy)
    packed = tw.pack(weight, form=dtype.name)  # type: ignore[arg-type]
    assert_same(tw.matmul(one, packed), weight.astype(np.float64))


@each_type
def test_a_weight_of_wider_floats_is_rounded_to_the_form_that_is_asked_for(dtype: DType) -> None:
    weight = np.random.default_rng(0).standard_normal((40, 30)).astype(np.float32)
    packed = tw.pack(weight, form=dtype.name)  # type: ignore[arg-type]
    np.testing.assert_array_equal(tw.unpack(packed), weight.astype(dtype.numpy).astype(np.float32))


@each_type
def test_functions_that_compute_in_no_8_bits_refuse_them(dtype: DType) -> None:
    x = wholes(dtype, 4, 4)
    for function in (tw.exp, tw.softmax, tw.sum):
        with pytest.raises(tw.errors.UnsupportedDtype, match=dtype.numpy_name):
            function(x)
