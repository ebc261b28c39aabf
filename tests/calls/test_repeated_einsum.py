"""Calls of einsum and of products by other names that machine code repeats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from repeated_calls import check
from support import Array

import tilewright as tw
from tilewright.calls.fastcall import native_entry_possible

pytestmark = pytest.mark.skipif(not native_entry_possible(), reason="no native entries in this interpreter")

RNG = np.random.default_rng(18)


def values(*shape: int, dtype: str = "f8") -> Array:
    return RNG.standard_normal(shape).astype(dtype)


A, B, X, Y = values(8, 8), values(8, 8), values(8), values(8)
STACK, OTHER = values(2, 8, 8), values(2, 8, 8)
SINGLE = values(8, 8, dtype="f4")


@pytest.mark.parametrize(
    ("function", "operands", "options"),
    [
        (tw.vecdot, (A, B), {}),
        (tw.vecdot, (X, Y), {}),
        (tw.vecdot, (X, Y), {"keepdims": True}),
        (tw.vecdot, (STACK, B), {"axis": 1}),
        (tw.vecdot, (STACK, OTHER), {"axes": [0, 0, 0], "keepdims": True}),
        (tw.vecdot, (SINGLE, B), {"dtype": "f4"}),
        (tw.matvec, (STACK, X), {}),
        (tw.matvec, (A, STACK), {"axes": [(0, 1), 2, 0]}),
        (tw.vecmat, (X, STACK), {}),
        (tw.vecmat, (A[:2], STACK), {"casting": "unsafe", "dtype": "f4"}),
        (tw.inner, (A, B), {}),
        (tw.inner, (X, Y), {}),
        (tw.inner, (STACK, B), {}),
        (tw.inner, (SINGLE, B), {}),
        (tw.tensordot, (A, B), {"axes": 1}),
        (tw.tensordot, (A, B), {}),
        (tw.tensordot, (X, Y), {"axes": 0}),
        (tw.tensordot, (STACK, OTHER), {"axes": ([1, 2], [1, 2])}),
        (tw.tensordot, (STACK, OTHER), {"axes": ([0, 2], [0, 1])}),
        (tw.kron, (A, B), {}),
        (tw.kron, (X, B), {}),
        (tw.kron, (X[8:], B), {}),
        (tw.matmul, (A, B), {"axes": [(1, 0), (0, 1), (1, 0)]}),
        (tw.matmul, (A, B), {"order": "F"}),
        (tw.matmul, (A, B), {"casting": "safe", "subok": False}),
        (tw.matmul, (SINGLE, B), {"casting": "unsafe", "dtype": "f4", "alpha": 2.0}),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
def test_products(function: Callable[..., Any], operands: tuple[Any, ...], options: dict[str, Any]) -> None:
    check(function, *operands, **options)
