"""Calls of kernels of attention's gradients on random operands, and what they have to give."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from support import Array

from tilewright.ops.attention.backward_cut import BACKWARD_FIELDS
from tilewright.ops.attention.backward_kernel import BackwardCall
from tilewright.ops.attention.backward_nest import backward_sizes
from tilewright.ops.attention.backward_problem import AttentionBackward, AttentionGradients, reference
from tilewright.ops.attention.kernel import element_steps

#: What rounding leaves of gradients that are 0.
NOTHING = 1e-9

#: A bound that excludes nothing.
FAR = 1 << 40


@dataclass(frozen=True)
class Case:
    """Sizes and what modifies scores; `range` is (low, high)."""

    batch: int = 1
    heads: int = 1
    kv_heads: int = 1
    queries: int = 1
    keys: int = 1
    head_dim: int = 64
    value_dim: int = 64
    dtype: str = "f32"
    range: tuple[int, int] | None = None
    mask: str | None = None
    softcap: float = 0.0
    slopes: bool = False

    @property
    def problem(self) -> AttentionBackward:
        return AttentionBackward(
            *(self.head_dim, self.value_dim, self.dtype),
            bounded=self.range is not None,
            mask=self.mask,
            softcap=bool(self.softcap),
            slopes=self.slopes,
        )


class Drawn(NamedTuple):
    """A call whose outputs hold NaN, and the gradients in float64."""

    call: BackwardCall
    expected: AttentionGradients


def draw(case: Case, seed: int = 0, hidden_key: int | None = None) -> Drawn:
    """Standard normal operands; of a mask a third is hidden, and one query and one key wholly."""
    random = np.random.default_rng(seed)
    dtype = np.dtype(np.float32 if case.dtype == "f32" else ml_dtypes.bfloat16)

    def normal(heads: int, rows: int, columns: int) -> Array:
        return random.standard_normal((case.batch, heads, rows, columns)).astype(dtype)

    q, dout = (normal(case.heads, case.queries, size) for size in (case.head_dim, case.value_dim))
    k, v = (normal(case.kv_heads, case.keys, size) for size in (case.head_dim, case.value_dim))
    shape = (case.batch, case.heads, case.queries, case.keys)
    i, j = np.ogrid[: case.queries, : case.keys]
    bias = np.zeros(shape)
    mask: Array | None = None
    slopes = None
    if case.slopes:
        slopes = (2.0 ** -np.arange(1, case.heads + 1)).astype(np.float32)
        bias -= slopes[:, None, None] * abs(j - i - (case.keys - case.queries))
    if case.mask is not None:
        seen = random.random(shape[2:]) > 1 / 3
        seen[0] = False
        seen[:, hidden_key if hidden_key is not None else []] = False
        numbers = np.where(seen, random.standard_normal(shape[2:]), np.finfo(np.float32).min)
        mask = (seen if case.mask == "u8" else numbers).astype(np.uint8 if case.mask == "u8" else np.float32)
        bias += np.where(seen, 0 if case.mask == "u8" else mask, -np.inf)
        mask = np.broadcast_to(mask, shape)
    if case.range is not None:
        bias += np.where((case.range[0] + i <= j) & (j < case.range[1] + i), 0, -np.inf)
    scale = case.head_dim**-0.5
    expected = reference(q, k, v, dout, scale, bias=bias, softcap=case.softcap)
    dq, dk, dv = (np.full(array.shape, np.nan, dtype) for array in (q, k, v))
    lse = np.ascontiguousarray(expected.lse, np.float32)
    call = BackwardCall(
        q=q,
        k=k,
        v=v,
        out=expected.out.astype(dtype),
        dout=dout,
        dq=dq,
        dk=dk,
        dv=dv,
        items=np.zeros((case.batch, 16), np.int64),
        lse=lse,
        delta=np.full(lse.shape, np.nan, np.float32),
        scale=scale,
        softcap=case.softcap,
        mask=mask,
        slopes=slopes,
    )
    low, high = case.range or (-FAR, FAR)
    numbers_of = {"queries": case.queries, "keys": case.keys, "low": low, "high": high}
    steps: dict[str, Any] = {"state": case.heads * case.queries}
    for name in ("q", "k", "v", "out", "dout", "dq", "dk", "dv", "mask"):
        array = getattr(call, name)
        if array is not None:
            (steps[name],) = element_steps(array, (0,))
    for name, step in steps.items():
        call.items[:, BACKWARD_FIELDS.index(name)] = step * np.arange(case.batch)
    for name, number in numbers_of.items():
        call.items[:, BACKWARD_FIELDS.index(name)] = number
    return Drawn(call, expected)


def sizes_of(case: Case, call: BackwardCall) -> dict[str, int]:
    """Run-time sizes of the nest, by name."""
    numbers = [case.batch, case.kv_heads, case.heads // case.kv_heads, case.queries, case.keys]
    for array in (call.q, call.k, call.v):
        numbers += element_steps(array, (1, 2, 3))
    for array in (call.out, call.dout, call.dq, call.dk, call.dv):
        numbers += element_steps(array, (1, 2))
    numbers.append(call.lse.shape[-1])
    numbers += [] if call.mask is None else element_steps(call.mask, (1, 2, 3))
    return dict(zip(backward_sizes(case.problem), numbers, strict=True))


def errors_of(drawn: Drawn) -> list[float]:
    """The largest error of dq, dk and dv, each beside its largest element if there is any."""
    pairs = ((getattr(drawn.call, name), getattr(drawn.expected, name)) for name in ("dq", "dk", "dv"))
    found = []
    for array, expected in pairs:
        error, largest = np.abs(array.astype(np.float64) - expected).max(), np.abs(expected).max()
        found.append(float(error / (largest if largest > NOTHING else 1.0)))
    return found
