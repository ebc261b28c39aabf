"""Weights in words on every row, its instructions written as plain LLVM: alike for few and many rows, exact.

Values are small integers, scales powers of two: every sum is exact, whatever its order, and equal to the bit.
"""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from itertools import product

import ml_dtypes
import numpy as np
import pytest
from emulated_rows import emulated_kernel
from support import Array
from tiers import crossed

import tilewright as tw
from tilewright.compiler.target import resolve_target
from tilewright.spec.weights import Elements, Weights

ROWS = ("pwr10", "neoverse-v2", "haswell", "sapphirerapids", "apple-m4", "x86-64-v2", "pwr9")
FORMS = ("i8", "i4g64z", "bf16", "f16")
#: Columns of whole blocks of panels and a rest; depths of an odd group and an odd word.
K, N = 203, 141


def weight(form: Weights, target: str, random: np.random.Generator) -> tuple[tw.PackedMatrix, Array]:
    """A weight and the matrix that it stands for."""
    if form.elements in (Elements.BF16, Elements.F16):
        w = random.integers(-8, 9, (K, N)).astype(np.float32)
        return tw.pack(w, form=form.elements.value, target=target), w
    bits, groups = form.elements.bits, form.groups(K)
    q = random.integers(-(1 << bits - 1), 1 << bits - 1, (K, N)).astype(np.int8)
    scales = 2.0 ** random.integers(-2, 2, (groups, N))
    zeros = random.integers(-3, 4, (groups, N)) if form.zeros else None
    packed = tw.pack_quantized(q, scales, zeros, bits=bits, group=form.group or None, target=target)
    return packed, tw.unpack(packed)


@pytest.mark.parametrize(
    ("row", "name", "dtype"),
    crossed(ROWS, product(FORMS, (np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16))), len(ROWS)),
    ids=str,
)
def test_rows_multiply_weights(row: str, name: str, dtype: np.dtype[np.generic]) -> None:
    target, random = f"emulate:{row}", np.random.default_rng(0)
    form = Weights.parse(name)
    name = {"float32": "f32"}.get(str(dtype), "bf16")
    kernel = emulated_kernel(tw.Gemm(dtype=name, out_dtype="f32", weights=form), resolve_target(target))
    packed, w = weight(form, target, random)
    x = random.integers(-3, 4, (40, K)).astype(dtype)
    expected = x.astype(np.float64) @ w
    for rows in (1, 2, 7, 33, 40):
        c = np.full((rows, N), np.nan, np.float32)
        kernel(x[:rows], packed, c)
        assert np.array_equal(c, expected[:rows]), rows
    c = np.ones((3, N), np.float32)
    assert np.array_equal(kernel(x[:3], packed, c, alpha=2, beta=-1), 2 * expected[:3] - 1)
