"""Unary functions of bf16 and f16: computed in float32, rounded once; every row that this host has."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from support import host_rows
from tiers import crossed, named

import tilewright as tw
from tilewright.spec.dtype import BF16, F16, DType
from tilewright.spec.functions import UnaryOp

FUNCTIONS = [op for op in UnaryOp if op.computes]
#: The function itself may be wrong by 3.4 units of float32, far below half a place of the result.
SLACK = 1.001


@pytest.mark.parametrize(
    ("row", "dtype", "layout", "op"),
    crossed(product((isa.name for isa in host_rows()), (BF16, F16), ("col", "row")), FUNCTIONS, 8),
    ids=named,
)
def test_one_rounding(row: str, dtype: DType, layout: str, op: UnaryOp) -> None:
    rng = np.random.default_rng(3)
    for m, n in ((1, 1), (7, 5), (33, 70), (200, 3)):
        known = m == 7  # sizes of one are in the kernel
        problem = tw.Unary(op.value, m if known else None, n if known else None, dtype, b=layout)
        kernel = tw.compile(problem, tw.machine(row))
        # exp(11) is still a float16.
        a = np.asfortranarray(np.clip(3 * rng.standard_normal((m, n)), -11, 11).astype(dtype.numpy))
        b = np.full((m, n), np.nan, dtype.numpy, order="F" if layout == "col" else "C")
        kernel(a, b)
        exact = problem.reference(a)
        # Half a place of the result, at least of the smallest normal number.
        least = 2.0 ** (-14 if dtype == F16 else -126)
        bound = SLACK * dtype.unit_roundoff * np.maximum(np.abs(exact), least)
        assert (np.abs(b.astype(np.float64) - exact) <= bound).all()


@pytest.mark.parametrize("dtype", [BF16, F16], ids=str)
def test_special_values(dtype: DType) -> None:
    values = np.array([[np.nan, np.inf, -np.inf, 0.0, -0.0]]).astype(dtype.numpy)
    for op in FUNCTIONS:
        problem = tw.Unary(op.value, 1, 5, dtype)
        found = tw.compile(problem)(np.asfortranarray(values), np.zeros((1, 5), dtype.numpy, order="F"))
        np.testing.assert_array_equal(found.astype(np.float64), problem.reference(values), op.value)
