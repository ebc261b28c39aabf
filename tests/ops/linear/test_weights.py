"""Products with weights in words: within the bound of their formula, and alike for few and many rows."""

from __future__ import annotations

import math
import pickle
from itertools import product
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from shares import EVERY_TEST_RUNS
from support import Array, gamma, within
from tiers import exhaustive

import tilewright as tw
from tilewright.errors import (
    InvalidChoice,
    InvalidGroup,
    InvalidOperand,
    MissingOut,
    PackedDtype,
    QuantisedRange,
    ScaleShape,
    ShapeMismatch,
)
from tilewright.typing import ActivationName, WeightForm

BF16 = np.dtype(ml_dtypes.bfloat16)
F32 = np.dtype(np.float32)
#: Depths of several blocks, odd ones (words and groups that end early) and less than one word.
SIZES = [(2500, 261), (1024, 128), (999, 70), (65, 33), (7, 130), (1, 1)]
I8: dict[str, Any] = {"bits": 8, "group": None}
I4: dict[str, Any] = {"bits": 4, "group": 64}
#: One scale a column; groups that divide k and that do not, one shorter than every block and one longer.
FORMS: list[dict[str, Any]] = [
    *(I8, I4, {"bits": 8, "group": 64}, {"bits": 4, "group": None}),
    *({"bits": 4, "group": 32}, {"bits": 8, "group": 1024}),
    *({"bits": 8, "group": None, "symmetric": False}, {"bits": 4, "group": 64, "symmetric": False}),
]
#: The rows of each form in `make test`: floats or bfloat16, of the most used forms both.
ROWS: dict[str, tuple[np.dtype[np.generic], ...]] = {
    str(form): dtypes
    for form, dtypes in zip(
        (*FORMS, "bf16", "f16"),
        ((F32, BF16), (F32, BF16), (BF16,), (F32,), (F32,), (BF16,), (BF16,), (F32,), (F32, BF16), (BF16,)),
        strict=True,
    )
}
FORMS_AND_ROWS = [
    pytest.param(form, dtype, marks=() if dtype in ROWS[str(form)] else exhaustive)
    for form, dtype in product([*FORMS, "bf16", "f16"], (F32, BF16))
]


def data(shape: tuple[int, ...], dtype: np.dtype[np.generic] = F32, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def packed_of(form: dict[str, Any] | WeightForm, w: Array) -> Any:
    return tw.pack(w, form=form) if isinstance(form, str) else tw.quantize_weights(w, **form)


def assert_within(found: Array, x: Array, packed: Any) -> None:
    """|found - x·W| ≤ γ(k + groups + 3)·|x||W| and half a unit of the result's last place, W in float64.

    Differences u - z and products of them are exact; each group's sum is rounded at each addition, once when
    it is scaled, and once when it is added to the others.
    """
    wide, w = x.astype(np.float64), tw.unpack(packed).astype(np.float64)
    k = w.shape[0]
    exact, magnitude = wide @ w, abs(wide) @ abs(w)
    # `unpack` itself rounds s · (u - z) to float32.
    bound = (gamma(k + k // 32 + 4, np.float32) + 2.0**-24) * magnitude
    if found.dtype == BF16:
        bound = bound + 2.0**-8 * (abs(exact) + bound) + 2.0**-133
    wrong = ~(abs(found.astype(np.float64) - exact) <= bound)
    assert not wrong.any(), f"{np.count_nonzero(wrong)} of {found.size} outside the bound"


@pytest.mark.parametrize(("form", "dtype"), FORMS_AND_ROWS, ids=str)
def test_few_rows_are_rows_of_many_and_within_the_bound(
    form: dict[str, Any] | WeightForm, dtype: np.dtype[np.generic]
) -> None:
    # Forms that meet both types of rows share the sizes between them.
    shared = len(ROWS[str(form)]) > 1 and not EVERY_TEST_RUNS
    for k, n in SIZES[dtype == BF16 :: 2] if shared else SIZES:
        x, packed = data((64, k), dtype, 1), packed_of(form, data((k, n), seed=2))
        whole = tw.matmul(x, packed)
        assert whole.dtype == dtype
        assert_within(whole, x, packed)
        for rows in (*range(1, 10), 17, 33):
            found = tw.matmul(x[3 : 3 + rows], packed)
            assert found.tobytes() == whole[3 : 3 + rows].tobytes(), (k, n, rows)
        if F32 in ROWS[str(form)] or EVERY_TEST_RUNS:
            as_floats = tw.matmul(x[:5], packed, dtype=np.float32)
            assert as_floats.dtype == F32
            assert as_floats.astype(dtype).tobytes() == whole[:5].tobytes(), (k, n)


@pytest.mark.parametrize("form", [I8, I4], ids=str)
def test_integers_are_exact(form: dict[str, Any]) -> None:
    """Small integers and scales that are powers of two: every sum is exact, few rows and many."""
    random = np.random.default_rng(3)
    bits, group = form["bits"], form["group"]
    k, n = 700, 150
    q = random.integers(-(1 << bits - 1), 1 << bits - 1, (k, n)).astype(np.int8)
    groups = -(-k // group) if group else 1
    scales = 2.0 ** random.integers(-2, 2, (groups, n))
    zeros = random.integers(-(1 << bits - 1), 1 << bits - 1, (groups, n))
    x = random.integers(-3, 4, (40, k)).astype(np.float32)
    packed = tw.pack_quantized(q, scales, zeros, bits=bits, group=group)
    spread = [np.repeat(values, group or k, axis=0)[:k] for values in (scales, zeros)]
    w = spread[0] * (q - spread[1])
    assert np.array_equal(tw.unpack(packed), w)
    for rows in (1, 2, 3, 8, 40):
        assert np.array_equal(tw.matmul(x[:rows], packed), x[:rows] @ w)
        assert np.array_equal(tw.matmul(x[:rows].astype(BF16), packed, dtype=np.float32), x[:rows] @ w)


def test_the_formulas_of_quantising() -> None:
    w = data((100, 5), seed=4)
    w[:, 2] = 0
    found = tw.unpack(tw.quantize_weights(w, bits=8))
    scale = abs(w).max(axis=0) / np.float32(127)
    scale[2] = 1
    assert np.array_equal(found, np.rint(w / scale) * scale)
    found = tw.unpack(tw.quantize_weights(w, bits=4, group=32, symmetric=False))
    part = w[96:]
    low, high = np.minimum(part.min(axis=0), 0), np.maximum(part.max(axis=0), 0)
    scale = high / np.float32(15) - low / np.float32(15)
    scale[2] = 1
    zero = np.rint(-low / scale)
    assert np.array_equal(found[96:], (np.clip(np.rint(part / scale) + zero, 0, 15) - zero) * scale)


def test_signed_and_unsigned_elements_of_others() -> None:
    u = np.arange(16, dtype=np.uint8).reshape(4, 4)
    assert np.array_equal(tw.unpack(tw.pack_quantized(u, np.ones(4), bits=4)), u - 8.0)
    zeros = np.array([[0, 15, 3, 8]])
    assert np.array_equal(tw.unpack(tw.pack_quantized(u, np.ones((1, 4)), zeros, bits=4)), u - 1.0 * zeros)
    signed = (u.astype(np.int8) - 8).astype(ml_dtypes.int4)
    assert np.array_equal(tw.unpack(tw.pack_quantized(signed, np.ones(4), bits=4)), u - 8.0)


@pytest.mark.parametrize("form", [*FORMS[::3], "bf16", "f16"], ids=str)
def test_files_and_pickles(form: dict[str, Any] | WeightForm, tmp_path: Path) -> None:
    packed = packed_of(form, data((130, 70), seed=5))
    assert pickle.loads(pickle.dumps(packed)) == packed
    packed.save(tmp_path / "w")
    for mapped in (True, False):
        loaded = tw.PackedMatrix.load(tmp_path / "w", mmap=mapped)
        assert loaded == packed
        x = data((3, 130), seed=6)
        assert tw.matmul(x, loaded).tobytes() == tw.matmul(x, packed).tobytes()


def test_shapes_and_outs() -> None:
    packed = tw.quantize_weights(data((96, 40)), bits=8)
    x = data((2, 3, 96))
    expected = tw.matmul(x.reshape(6, 96), packed)
    assert tw.matmul(x, packed).tobytes() == expected.tobytes()
    assert (x @ packed).shape == (2, 3, 40)
    assert tw.matmul(x[0, 0], packed).tobytes() == expected[0].tobytes()
    assert tw.matmul(x.astype(np.float16), packed).dtype == F32
    out = np.full((6, 80), 7, np.float32)
    tw.matmul(x.reshape(6, 96), packed, out=out[:, ::2], alpha=2.0)
    assert np.array_equal(out[:, ::2], 2 * expected)
    assert (out[:, 1::2] == 7).all()
    c = data((6, 40))
    assert np.array_equal(tw.matmul(x.reshape(6, 96), packed, out=c.copy(), alpha=0, beta=2), 2 * c)
    assert tw.matmul(np.empty((0, 96), np.float32), packed).shape == (0, 40)
    assert np.array_equal(
        tw.matmul(np.empty((2, 0), np.float32), tw.quantize_weights(np.empty((0, 3)))), np.zeros((2, 3))
    )


@pytest.mark.parametrize(("form", "dtype"), FORMS_AND_ROWS, ids=str)
def test_weights_without_elements(form: dict[str, Any] | WeightForm, dtype: np.dtype[np.generic]) -> None:
    for (k, n), rows in product([(0, 5), (5, 0), (0, 0)], (1, 40)):
        packed, x = packed_of(form, np.empty((k, n))), np.ones((rows, k), dtype)
        assert tw.unpack(packed).shape == (k, n)
        found = tw.matmul(x, packed)
        assert found.shape == (rows, n)
        assert not found.any()
        if form == I8 and dtype == F32:
            assert np.array_equal(tw.linear(x, packed, np.ones(n, np.float32)), np.ones((rows, n)))


@pytest.mark.parametrize("form", [I8, I4, FORMS[-1], "bf16"], ids=str)
def test_many_rows_without_elements(form: dict[str, Any] | WeightForm) -> None:
    with within(20):
        packed = packed_of(form, np.empty((2**32, 0), np.float32))
        assert tw.unpack(packed).shape == (2**32, 0)


def test_an_out_that_shares_memory() -> None:
    packed = tw.quantize_weights(data((64, 64)), bits=4, group=32)
    x = data((5, 64), seed=7)
    expected = tw.matmul(x, packed)
    assert tw.matmul(x, packed, out=x).tobytes() == expected.tobytes()


@pytest.mark.parametrize("rows", [1, 9, 40])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_stays_in_its_row(rows: int, value: float) -> None:
    w = np.abs(data((70, 50))) + 1
    x = np.ones((rows, 70), np.float32)
    x[-1, 69] = value
    found = tw.matmul(x, tw.quantize_weights(w, bits=8))
    assert np.isfinite(found[:-1]).all()
    assert np.array_equal(found[-1], np.full(50, value, np.float32), equal_nan=True)


def test_nan_in_scales_stays_in_its_column() -> None:
    scales = np.ones((2, 33), np.float32)
    scales[1, 5] = np.nan
    packed = tw.pack_quantized(np.ones((40, 33), np.int8), scales, bits=8, group=32)
    for rows in (1, 40):
        found = tw.matmul(np.ones((rows, 40), np.float32), packed)
        assert np.isnan(found[:, 5]).all()
        assert np.isfinite(np.delete(found, 5, axis=1)).all()


def test_bad_input() -> None:
    w = data((64, 6))
    packed = tw.quantize_weights(w)
    with pytest.raises(InvalidChoice, match="bits is 3"):
        tw.quantize_weights(w, bits=3)
    with pytest.raises(InvalidGroup):
        tw.quantize_weights(w, bits=4, group=48)
    with pytest.raises(InvalidOperand, match="NaN"):
        tw.quantize_weights(np.full((4, 4), np.nan))
    with pytest.raises(InvalidOperand, match="matrix"):
        tw.quantize_weights(np.ones(4))
    with pytest.raises(InvalidOperand, match="not an integer"):
        tw.pack_quantized(w, np.ones(6))
    q = np.zeros((64, 6), np.int8)
    for scales in (np.ones(5), np.ones((2, 6)), np.ones((6, 1)), 1.0):
        with pytest.raises(ScaleShape, match=r"must be \(1, 6\)"):
            tw.pack_quantized(q, scales)
    with pytest.raises(ScaleShape, match=r"zeros have shape \(1, 6\), must be \(2, 6\)"):
        tw.pack_quantized(q, np.ones((2, 6)), np.ones((1, 6)), group=32)
    with pytest.raises(QuantisedRange, match="from -8 to 7"):
        tw.pack_quantized(q + 8, np.ones(6), bits=4)
    with pytest.raises(QuantisedRange, match="zeros of 8 bits"):
        tw.pack_quantized(q, np.ones(6), np.full((1, 6), 0.5))
    with pytest.raises(InvalidChoice, match="form"):
        tw.pack(w, form="f8")  # type: ignore[arg-type]
    with pytest.raises(PackedDtype):
        tw.matmul(w.T.astype(np.float64), packed)
    with pytest.raises(InvalidChoice, match="dtype"):
        tw.matmul(w.T, packed, dtype=np.float64)
    with pytest.raises(ShapeMismatch):
        tw.matmul(w, packed)
    with pytest.raises(MissingOut):
        tw.matmul(w.T, packed, beta=1)


#: Each form, each type of rows with and without an activation.
LAYERS = [(I8, F32, None), (I4, F32, "gelu"), (I4, BF16, "gelu"), ("bf16", BF16, "relu")]


@pytest.mark.parametrize(
    ("form", "dtype", "activation"),
    [
        pytest.param(*layer, marks=() if layer in LAYERS else exhaustive)
        for layer in product((I8, I4, "bf16"), (F32, BF16), (None, "relu", "gelu"))
    ],
    ids=str,
)
def test_a_linear_layer_in_one_pass(
    form: dict[str, Any] | WeightForm, activation: ActivationName | None, dtype: np.dtype[np.generic]
) -> None:
    packed, x, bias = (
        packed_of(form, data((1500, 150), seed=8)),
        data((40, 1500), dtype, 9),
        data((150,), seed=10),
    )
    plain = tw.matmul(x, packed, dtype=np.float32)
    found = tw.linear(x, packed, bias, activation)
    assert found.dtype == dtype
    expected = plain.astype(np.float64) + bias
    if activation == "relu":
        expected = np.maximum(expected, 0)
    elif activation == "gelu":
        expected = expected * 0.5 * (1 + np.vectorize(math.erf)(expected / math.sqrt(2)))
    tolerance = 2.0**-8 if dtype == BF16 else 2.0**-20
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=tolerance, atol=tolerance)
    for rows in (1, 3, 8, 33):
        assert tw.linear(x[:rows], packed, bias, activation).tobytes() == found[:rows].tobytes()
    if form == I8 or EVERY_TEST_RUNS:
        by_row = tw.matmul(x, packed, bias=data((40, 1), seed=11), activation=activation)
        assert by_row.tobytes() != found.tobytes()
    assert tw.linear(x.reshape(5, 8, 1500), packed, bias, activation).tobytes() == found.tobytes()


@pytest.mark.parametrize("form", [I8, I4, "f16"], ids=str)
@pytest.mark.parametrize("rows", [1, 8, 40])
def test_threads_change_no_bit(form: dict[str, Any] | WeightForm, rows: int) -> None:
    packed, x = packed_of(form, data((1100, 1500), seed=12)), data((rows, 1100), BF16, 13)
    expected = tw.matmul(x, packed, threads=1)
    for threads in (2, 3, 5):
        found = tw.matmul(x, packed, threads=threads)
        assert found.tobytes() == expected.tobytes(), threads
