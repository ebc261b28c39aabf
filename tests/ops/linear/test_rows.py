"""Quantised activations: their formula to the bit, and products of integers that are exact."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from shares import looped
from support import Array

import tilewright as tw
from tilewright.errors import (
    InvalidChoice,
    InvalidOperand,
    QuantisedWeight,
    ScalarOperand,
    ScaleShape,
    UnsupportedArgument,
)
from tilewright.typing import ActivationName

BF16 = np.dtype(ml_dtypes.bfloat16)
TYPES = [np.dtype(np.float32), np.dtype(np.float16), BF16]


def data(shape: tuple[int, ...], dtype: np.dtype[np.generic] = TYPES[0], seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def formula(x: Array) -> tuple[Array, Array]:
    """q and the scales of finite rows, in float32."""
    wide = x.astype(np.float32)
    scales = abs(wide).max(axis=1, initial=0) / np.float32(127)
    scales[scales == 0] = 1
    return np.clip(np.rint(wide / scales[:, None]), -127, 127).astype(np.int8), scales


@looped("dtype", TYPES)
@looped("k", [0, 1, 7, 15, 16, 17, 63, 64, 65, 129, 1000])
def test_the_formula_to_the_bit(k: int, dtype: np.dtype[np.generic]) -> None:
    x = data((5, k), dtype, k) * np.array([[1], [1e-3], [100], [0], [1]]).astype(dtype)
    rows = tw.quantize_rows(x)
    q, scales = formula(x)
    assert np.array_equal(rows.q, q)
    assert rows.scales.tobytes() == scales.tobytes()
    assert rows.sums is not None
    assert np.array_equal(rows.sums, q.sum(axis=1, dtype=np.int32))


def test_halves_go_to_the_even_integer_and_extremes_stay() -> None:
    x = np.array([[127, 0.5, 1.5, 2.5, -0.5, -1.5, -126.5, -127]], np.float32)
    assert tw.quantize_rows(x).q.tolist() == [[127, 0, 2, 2, 0, -2, -126, -127]]


@pytest.mark.parametrize("power", [-149, -140, -126, -100, 100, 127])
def test_scales_at_the_ends_of_the_range(power: int) -> None:
    x = np.ldexp(np.array([[1, -1, 0.5]]), power).astype(np.float32)
    q, scales = formula(x)
    rows = tw.quantize_rows(x)
    assert np.array_equal(rows.q, q)
    assert np.array_equal(rows.scales, scales)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("column", [0, 40, 99])
def test_a_row_that_is_not_finite_gives_nan(value: float, column: int) -> None:
    x, packed = data((3, 100)), tw.quantize_weights(data((100, 20), seed=1))
    x[1, column] = value
    rows = tw.quantize_rows(x)
    assert np.isnan(rows.scales[1])
    assert not rows.q[1].any()
    found = tw.linear(rows, packed)
    assert np.isnan(found[1]).all()
    assert np.isfinite(found[[0, 2]]).all()


def test_strides_and_other_types() -> None:
    x = data((40, 300))
    for given in (x[::2, ::3], x.T, x.astype(np.float64), x[:, ::-1]):
        rows = tw.quantize_rows(given)
        assert np.array_equal(rows.q, formula(np.asarray(given, np.float32))[0])
    assert np.array_equal(np.asarray(rows), rows.q * rows.scales[:, None])
    assert rows.shape == (40, 300)


@pytest.mark.parametrize(
    ("m", "n", "k"), [(1, 1, 1), (1, 130, 999), (3, 33, 65), (9, 64, 4096), (64, 70, 2500)]
)
def test_sums_of_integers_are_exact(m: int, n: int, k: int) -> None:
    """Scales are powers of two, so that each result is its sum, rounded once to float32."""
    random = np.random.default_rng(m)
    q = random.integers(-128, 128, (m, k)).astype(np.int8)
    w = random.integers(-128, 128, (k, n)).astype(np.int8)
    q[0], w[:, 0] = -128, -128  # the largest product in every place
    of_rows, of_columns = 2.0 ** random.integers(-3, 3, m), 2.0 ** random.integers(-3, 3, n)
    packed = tw.pack_quantized(w, of_columns)
    sums = q.astype(np.int64) @ w.astype(np.int64)
    expected = (sums * of_rows[:, None] * of_columns).astype(np.float32)
    rows = tw.QuantizedRows(q, of_rows)
    found = tw.linear(rows, packed)
    assert found.dtype == np.float32
    assert np.array_equal(found, expected)
    for few in range(1, min(m, 9)):
        part = tw.QuantizedRows(q[:few], of_rows[:few])
        assert tw.linear(part, packed).tobytes() == found[:few].tobytes()
    narrow = tw.matmul(rows, packed, dtype=BF16)
    assert np.array_equal(narrow, expected.astype(BF16))


@pytest.mark.parametrize("activation", [None, "relu", "silu"])
def test_bias_and_activation_in_one_pass(activation: ActivationName | None) -> None:
    x, w, bias = data((17, 500), seed=2), data((500, 45), seed=3), data((45,), seed=4)
    rows, packed = tw.quantize_rows(x), tw.quantize_weights(w)
    found = tw.linear(rows, packed, bias, activation)
    expected = np.asarray(rows).astype(np.float64) @ tw.unpack(packed).astype(np.float64) + bias
    if activation == "relu":
        expected = np.maximum(expected, 0)
    elif activation == "silu":
        expected = expected / (1 + np.exp(-expected))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    exact = x.astype(np.float64) @ w
    assert abs(np.asarray(tw.linear(rows, packed)) - exact).max() < 0.05 * abs(exact).max()


def test_an_out_and_what_it_shares() -> None:
    rows, packed = tw.quantize_rows(data((6, 64))), tw.quantize_weights(data((64, 32), seed=5))
    expected = tw.linear(rows, packed)
    out = np.full((6, 64), 7, np.float32)
    tw.matmul(rows, packed, out=out[:, ::2])
    assert np.array_equal(out[:, ::2], expected)
    assert (out[:, 1::2] == 7).all()
    wide = np.empty((6, 32))
    assert np.array_equal(tw.matmul(rows, packed, out=wide), expected)


def test_bad_input() -> None:
    rows, w = tw.quantize_rows(data((2, 64))), data((64, 6))
    others: list[Any] = [
        tw.quantize_weights(w, bits=4),
        tw.quantize_weights(w, bits=8, group=32),
        tw.quantize_weights(w, symmetric=False),
        tw.pack(w, form="bf16"),
        tw.pack(w),
    ]
    for packed in others:
        with pytest.raises(QuantisedWeight, match="one scale for each column"):
            tw.linear(rows, packed)
    packed = tw.quantize_weights(w)
    with pytest.raises(InvalidChoice, match="dtype"):
        tw.matmul(rows, packed, dtype=np.float64)
    with pytest.raises(UnsupportedArgument, match="alpha"):
        tw.matmul(rows, packed, alpha=2)
    with pytest.raises(ScalarOperand, match="quantize_rows: operand x has 0 dimensions"):
        tw.quantize_rows(np.float32(3))
    with pytest.raises(InvalidOperand):
        tw.quantize_rows(np.ones((2, 2), complex))
    with pytest.raises(InvalidOperand):
        tw.QuantizedRows(np.ones((2, 2)), np.ones(2))
    with pytest.raises(ScaleShape, match=r"must be \(2,\): one for each row of q"):
        tw.QuantizedRows(np.ones((2, 2), np.int8), np.ones(3))
    with pytest.raises(ScaleShape):
        tw.QuantizedRows(np.ones((2, 2), np.int8), np.ones(2), np.ones(1))


@pytest.mark.parametrize("rows", [1, 8, 40])
def test_threads_change_no_bit(rows: int) -> None:
    packed, x = tw.quantize_weights(data((1100, 1500), seed=6)), tw.quantize_rows(data((rows, 1100), seed=7))
    expected = tw.linear(x, packed, threads=1)
    for threads in (2, 3, 5):
        assert tw.linear(x, packed, threads=threads).tobytes() == expected.tobytes(), threads
