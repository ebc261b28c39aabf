"""Linear layers in machine code: weights as arrays, packed and quantised, in every form."""

from __future__ import annotations

import gc
from functools import partial
from typing import Any

import numpy as np
import pytest
from repeated_calls import check, python_lines
from support import Array
from tiers import each_value

import tilewright as tw
from tilewright.calls.layout import native_entry_possible
from tilewright.calls.repeated import replay

pytestmark = pytest.mark.skipif(not native_entry_possible(), reason="no native entries in this interpreter")

RNG = np.random.default_rng(7)
WEIGHT = RNG.standard_normal((64, 32)).astype(np.float32)
BIAS = RNG.standard_normal(64).astype(np.float32)


def values(*shape: int, dtype: Any = "f4") -> Array:
    return RNG.standard_normal(shape).astype(dtype)


WEIGHTS: dict[str, Any] = {
    "array": WEIGHT,
    "packed": tw.pack(WEIGHT.T),
    "int8": tw.quantize_weights(WEIGHT.T),
    "int4": tw.quantize_weights(WEIGHT.T, bits=4),
}


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("shape", [(8, 32), (2, 3, 32), (32,)], ids=str)
@each_value
def test_linear(weight: Any, shape: tuple[int, ...]) -> None:
    def call(x: Array, **options: Any) -> Array:
        return tw.linear(x, weight, **options)

    x = values(*shape)
    check(call, x)
    check(call, x, bias=BIAS, activation="gelu")
    check(call, x, threads=1)

    def product(x: Array) -> Array:
        return tw.matmul(x, weight.T if isinstance(weight, np.ndarray) else weight, alpha=2.0)

    check(product, x)


@pytest.mark.parametrize("name", ["array", "packed", "int8"])
def test_out(name: str) -> None:
    x = values(8, 32)
    expected = tw.linear(x, WEIGHTS[name])
    for _ in range(3):
        out = np.full((8, 64), np.nan, np.float32)
        assert tw.linear(x, WEIGHTS[name], out=out) is out
        np.testing.assert_array_equal(out, expected)


def test_another_weight_of_the_same_shape_has_its_own_result() -> None:
    x = values(8, 32)
    for seed in range(4):
        weight = np.random.default_rng(seed).standard_normal((64, 32)).astype(np.float32)
        packed = tw.pack(weight.T)
        for _ in range(3):
            np.testing.assert_allclose(tw.linear(x, packed), x @ weight.T, rtol=1e-4, atol=1e-4)
        del packed


@pytest.mark.parametrize("shape", [(8, 32), (2, 3, 32), (32,), (0, 32)])
@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_quantising_rows(shape: tuple[int, ...], dtype: str) -> None:
    """The third call makes an object of the class, whose slots hold new arrays, without Python."""
    for _ in range(2):
        tw.quantize_rows(values(*shape, dtype=dtype))
    x, found = values(*shape, dtype=dtype), []
    assert python_lines(lambda: found.append(tw.quantize_rows(x))) == 0
    replay().table.clear()
    expected = tw.quantize_rows(x)
    assert type(found[0]) is tw.QuantizedRows
    assert gc.is_tracked(found[0])
    for part, other in zip(found[0].parts(), expected.parts(), strict=True):
        assert (part.dtype, part.shape) == (other.dtype, other.shape)
        np.testing.assert_array_equal(part, other)


def test_quantised_rows() -> None:
    linear: Any = tw.linear
    for options in ((), (BIAS, "gelu")):
        call = partial(
            linear, weight=WEIGHTS["int8"], **dict(zip(("bias", "activation"), options, strict=False))
        )
        for _ in range(2):
            call(tw.quantize_rows(values(8, 32)))
        rows = tw.quantize_rows(values(8, 32))  # others of the same shape
        assert python_lines(partial(call, rows)) == 0
        found = call(rows)
        replay().table.clear()
        np.testing.assert_array_equal(found, call(rows))
