"""Gradients of attention as a record, its kernels' names, and its meaning against finite differences."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import numpy as np
import pytest
from support import Array

from tilewright.compiler.operation import kernel_name
from tilewright.errors import InvalidSize, UnsupportedDtype
from tilewright.ops.attention.backward_problem import AttentionBackward, AttentionGradients, reference

PROBLEMS = [
    AttentionBackward(64),
    AttentionBackward(64, 80, "bf16", bounded=True),
    AttentionBackward(32, mask="u8", softcap=True, slopes=True),
    AttentionBackward(32, bounded=True, mask="bf16"),
]


def test_every_problem_has_a_name_of_its_own() -> None:
    assert len({kernel_name(problem, "avx2") for problem in PROBLEMS}) == len(PROBLEMS)


@pytest.mark.parametrize("dtype", ["f64", "f16", "i8"])
def test_types_without_gradients(dtype: str) -> None:
    with pytest.raises(UnsupportedDtype):
        AttentionBackward(64, dtype=dtype)


@pytest.mark.parametrize("size", [0, 1025, 2.5])
def test_sizes_of_heads(size: int) -> None:
    with pytest.raises(InvalidSize):
        AttentionBackward(64, size)


@pytest.mark.parametrize("softcap", [0.0, 1.5])
def test_reference_is_the_slope_of_the_result(softcap: float) -> None:
    """Central differences of Σ dO ∘ O in random directions; two heads share their keys."""
    random = np.random.default_rng(3)
    q, dout = random.standard_normal((2, 1, 2, 5, 4))
    k, v = random.standard_normal((2, 1, 1, 7, 4))
    bias = np.where(random.random((5, 7)) < 0.3, -np.inf, random.standard_normal((5, 7)))
    bias[2] = -np.inf

    def gradients(q: Array, k: Array, v: Array) -> AttentionGradients:
        return reference(q, k, v, dout, 0.5, bias=bias, softcap=softcap)

    def total(q: Array, k: Array, v: Array) -> float:
        return float((dout * gradients(q, k, v).out).sum())

    found = gradients(q, k, v)
    for place, gradient in enumerate((found.dq, found.dk, found.dv)):
        step = np.zeros_like(gradient)
        for _ in range(3):
            step[...] = 1e-5 * random.standard_normal(gradient.shape)
            ends = []
            for sign in (1, -1):
                arrays = [q, k, v]
                arrays[place] = arrays[place] + sign * step
                ends.append(total(arrays[0], arrays[1], arrays[2]))
            assert (ends[0] - ends[1]) / 2 == pytest.approx(float((gradient * step).sum()), abs=1e-12)
    assert (found.dq[:, :, 2] == 0).all()
