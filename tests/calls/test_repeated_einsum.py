"""Calls of einsum and of products by other names that machine code repeats."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from repeated_calls import check
from shares import looped
from support import Array

import tilewright as tw
from tilewright.calls.layout import native_entry_possible

pytestmark = pytest.mark.skipif(not native_entry_possible(), reason="no native entries in this interpreter")

RNG = np.random.default_rng(18)


def values(*shape: int, dtype: str = "f8") -> Array:
    return RNG.standard_normal(shape).astype(dtype)


A, B, X, Y = values(8, 8), values(8, 8), values(8), values(8)
STACK, OTHER = values(2, 8, 8), values(2, 8, 8)
SINGLE = values(8, 8, dtype="f4")


@looped(
    ("function", "operands", "options"),
    [
        (tw.vecdot, (A, B), {}),
        (tw.vecdot, (X, Y), {}),
        (tw.vecdot, (X, Y), {"keepdims": True}),
        (tw.vecdot, (STACK, B), {"axis": 1}),
        (tw.vecdot, (STACK, OTHER), {"axes": [0, 0, 0], "keepdims": True}),
        (tw.vecdot, (SINGLE, B), {"dtype": "f4"}),
        (tw.vecdot, (values(8, 8, dtype="c16"), values(8, 8, dtype="c16")), {}),
        (tw.vecmat, (values(8, dtype="c8"), values(8, 8, dtype="c8")), {}),
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
)
def test_products(function: Callable[..., Any], operands: tuple[Any, ...], options: dict[str, Any]) -> None:
    check(function, *operands, **options)


FOURTH, BACKWARDS = values(2, 3, 8, 8), values(3, 2, 8, 8)
HALF, SHORT = values(8, 8, dtype="f2"), values(8, 8, dtype="f4").astype("i2")


@looped(
    ("text", "operands", "options"),
    [
        ("ij,jk->ik", (A, B), {}),
        ("ij,jk->ki", (A, B), {"order": "F"}),
        ("ij,jk->ik", (A, B), {"dtype": "f4", "casting": "same_kind"}),
        ("ij,jk->ik", (SINGLE, B), {"threads": 1}),
        ("ij,jk->ik", (SHORT, HALF), {}),
        ("ij,jk,kl->il", (A, B, STACK[1]), {}),
        ("ij,jk,kl->il", (A, B, STACK[1]), {"optimize": False}),
        ("ij,jk,kl->il", (A, B, STACK[1]), {"optimize": [(0, 1), (0, 1)]}),
        ("ij,jk,kl->il", (A, B, STACK[1]), {"optimize": ("greedy", 1000)}),
        ("ij,jk,kl->il", (HALF, values(8, 8, dtype="f2"), values(8, 8, dtype="f2")), {}),
        ("abij,bajk->abik", (FOURTH, BACKWARDS), {}),
        ("aib,bja->ij", (values(8, 8, 8), values(8, 8, 8)), {}),
        ("ij->i", (SINGLE,), {"dtype": "f8"}),
        ("ij->ji", (A,), {}),
        ("iji->ij", (values(3, 4, 3),), {}),
        ("i...->...i", (STACK,), {}),
        ("ij,ij->ij", (A, B), {}),
        ("abcdef,abcdef->abcdef", (values(*[4] * 6)[..., ::2], values(*[4] * 6)[..., ::-2]), {}),  # by NumPy
        ("ijab,jack->ibck", (values(24, 12, 12, 24), values(12, 12, 24, 24)), {}),
    ],
)
def test_einsum(text: str, operands: tuple[Any, ...], options: dict[str, Any]) -> None:
    check(partial(tw.einsum, text), *operands, **options)


def test_out_of_einsum() -> None:
    out = np.empty((8, 8))
    for text, given in (("ij,jk->ki", (A, B)), ("ij,jk->ik", (SINGLE, B)), ("ij->ji", (A,))):
        for _ in range(3):
            out.fill(np.nan)
            assert tw.einsum(text, *given, out=out) is out
            np.testing.assert_allclose(out, np.einsum(text, *given), rtol=1e-12)
    memory = values(16, 8)
    expected = memory[:8].T.copy()
    for at in (8, 8, 4, 4, 0, 0):  # disjoint, overlapping, in place
        memory[:8] = expected.T
        tw.einsum("ij->ji", memory[:8], out=memory[at : at + 8])
        np.testing.assert_array_equal(memory[at : at + 8], expected)


def test_a_view_is_of_its_own_argument() -> None:
    """Arguments that are alike, also read-only ones: memory, owner and flag are those of this call."""
    fixed = values(8, 8)
    fixed.flags.writeable = False
    for array in (values(8, 8), values(8, 8), fixed, fixed):
        seen = tw.einsum("ij->ji", array)
        assert seen.base is array
        assert seen.flags.writeable is array.flags.writeable
        assert np.shares_memory(seen, array)
    part = values(9, 8)
    for _ in range(3):
        assert tw.einsum("ij->ji", part[1:]).base is part


def test_lists_are_read_at_every_call() -> None:
    rows = [[1.0, 2.0], [3.0, 4.0]]
    for value in (1.0, 2.0, 3.0):
        rows[0][0] = value
        expected = np.asarray(rows) @ np.asarray(rows)
        np.testing.assert_array_equal(tw.einsum("ij,jk", rows, rows), expected)
        np.testing.assert_array_equal(tw.tensordot(rows, rows, 1), expected)
