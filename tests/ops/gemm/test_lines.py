"""Columns of tiles that begin with cache lines of B: the same bits wherever rows begin, between guards."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from support import GUARD_PAGES, Array, GuardedMemory, rough

import tilewright as tw
from tilewright.ops.gemm.kernel import GemmKernel
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.gemm.product_nest import LINED_TILES
from tilewright.spec.dtype import parse_dtype
from tilewright.spec.problem import Layout

LINE = 64
#: Columns of the widest tile of any row are half of this, in lines.
COLUMNS = 2 * LINED_TILES * 64


@cache
def kernel(dtype: str, layout: str) -> GemmKernel:
    """Any sizes; with C of columns, B has the role of A."""
    one, lay = parse_dtype(dtype), Layout(layout)
    found = tw.compile(Gemm(dtype=one, a=lay, b=lay, c=lay, strategy="tiling"))
    assert isinstance(found, GemmKernel)
    return found


@cache
def memory(operand: str) -> GuardedMemory:
    return GuardedMemory(1 << 21)


@pytest.mark.skipif(not GUARD_PAGES, reason="no pages can be protected")
@pytest.mark.parametrize("layout", ["row", "col", "strided"])
@pytest.mark.parametrize("dtype", ["f32", "f64", "i32"])
def test_rows_may_begin_anywhere_in_a_line(dtype: str, layout: str) -> None:
    """Sizes on both sides of the limit; the rows of B are whole lines apart, or not."""
    one = parse_dtype(dtype)
    line, call = LINE // one.size, kernel(dtype, layout)
    reference: dict[tuple[int, ...], Array] = {}
    for m, n, k in ((1, COLUMNS, 5), (13, COLUMNS + 3, 7), (30, COLUMNS - line, 4), (5, 40, 9)):
        a, b = rough((m, k), one.numpy, 1), rough((k, n), one.numpy, 2)
        for begin, apart in ((0, 0), (1, 0), (line // 4, 0), (line - 1, 0), (3, 1), (line // 2, 3)):
            width = -(-(n + begin) // line) * line + apart
            held = np.full((k + 1, width), 77, one.numpy)
            at = (-held.ctypes.data % LINE) // one.size + begin
            rows = np.lib.stride_tricks.as_strided(held.reshape(-1)[at:], (k, n), held.strides)
            rows[...] = b
            c = np.full((m, n), 77, one.numpy)
            if layout == "col":  # the transposed product: what was B is the A of the call
                call(rows.T, a.T, c.T)
            else:
                call(a, rows, c)
            expected = reference.setdefault((m, n, k), c)
            assert np.array_equal(c, expected), (m, n, k, begin, apart)
        if one.is_integer:
            assert np.array_equal(expected, (a.astype(np.int64) @ b).astype(one.numpy))
        else:
            assert np.allclose(expected, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(not GUARD_PAGES, reason="no pages can be protected")
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("at_end", [False, True])
def test_nothing_beyond_the_operands_is_touched(dtype: str, at_end: bool) -> None:
    """Tiles of fewer columns at both ends; every operand lies beside a page that may not be touched."""
    one = parse_dtype(dtype)
    line = LINE // one.size
    for m, n, k in ((5, COLUMNS + 1, 6), (14, COLUMNS + line // 2, 3)):
        a, b = rough((m, k), one.numpy, 1), rough((k, n), one.numpy, 2)
        apart = -(-n // line) * line
        placed = [
            memory(name).place(array, (columns * one.size, one.size), at_end=at_end)
            for name, array, columns in (
                ("a", a, k),
                ("b", b, apart),
                ("c", np.full((m, n), np.nan, one.numpy), apart),
            )
        ]
        before = memory("c").outside(placed[2])
        kernel(dtype, "row")(*placed)
        assert np.array_equal(memory("c").outside(placed[2]), before)
        assert np.allclose(placed[2], a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)
