"""Columns of tiles that begin with cache lines of B: the same bits wherever rows begin, between guards."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from support import GUARD_PAGES, Array, GuardedMemory, rough

import tilewright as tw
from tilewright.ops.gemm.kernel import GemmKernel
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.gemm.product_nest import LINED_PANELS, LINED_TILES
from tilewright.spec.dtype import parse_dtype
from tilewright.spec.problem import Layout, Strategy

LINE = 64
#: So many columns are walked by lines on every row: the widest tiles have 64.
COLUMNS = 64 * max(LINED_TILES, LINED_PANELS)


@cache
def kernel(dtype: str, layout: str, strategy: Strategy) -> GemmKernel:
    """Any sizes; with C of columns, B has the role of A."""
    one, lay = parse_dtype(dtype), Layout(layout)
    found = tw.compile(Gemm(dtype=one, a=lay, b=lay, c=lay, strategy=strategy))
    assert isinstance(found, GemmKernel)
    return found


def begun(array: Array, line: int, begin: int, apart: int) -> Array:
    """The array where rows begin so many elements behind a line; they are whole lines and `apart` long."""
    rows, columns = array.shape
    width = -(-(columns + begin) // line) * line + apart
    held = np.full((rows + 1, width), 77, array.dtype)
    at = (-held.ctypes.data % LINE) // array.itemsize + begin
    placed: Array = np.lib.stride_tricks.as_strided(held.reshape(-1)[at:], array.shape, held.strides)
    placed[...] = array
    return placed


@cache
def memory(operand: str) -> GuardedMemory:
    return GuardedMemory(1 << 21)


@pytest.mark.skipif(not GUARD_PAGES, reason="no pages can be protected")
@pytest.mark.parametrize("layout", ["row", "col", "strided"])
@pytest.mark.parametrize("dtype", ["f32", "f64", "i32"])
@pytest.mark.parametrize("strategy", [Strategy.TILING, Strategy.PACKING], ids=str)
def test_rows_may_begin_anywhere_in_a_line(strategy: Strategy, dtype: str, layout: str) -> None:
    """Sizes on both sides of the limit; the rows of B and of C are whole lines apart, or not."""
    one = parse_dtype(dtype)
    line, call = LINE // one.size, kernel(dtype, layout, strategy)
    reference: dict[tuple[int, ...], Array] = {}
    for m, n, k in ((1, COLUMNS, 5), (13, COLUMNS + 3, 7), (30, COLUMNS - line, 4), (5, 40, 9)):
        a, b = rough((m, k), one.numpy, 1), rough((k, n), one.numpy, 2)
        for begin, apart in ((0, 0), (1, 0), (line // 4, 0), (line - 1, 0), (3, 1), (line // 2, 3)):
            rows, c = (
                begun(np.full(shape, 77, one.numpy), line, begin, apart)
                for shape, begin in (((k, n), begin), ((m, n), line - begin))
            )
            rows[...] = b
            if layout == "col":  # the transposed product: what was B is the A of the call
                call(rows.T, a.T, c.T)
            else:
                call(a, rows, c)
            expected = reference.setdefault((m, n, k), c.copy())
            assert np.array_equal(c, expected), (m, n, k, begin, apart)
        if one.is_integer:
            assert np.array_equal(expected, (a.astype(np.int64) @ b).astype(one.numpy))
        else:
            assert np.allclose(expected, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(not GUARD_PAGES, reason="no pages can be protected")
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("at_end", [False, True])
@pytest.mark.parametrize("strategy", [Strategy.TILING, Strategy.PACKING], ids=str)
def test_nothing_beyond_the_operands_is_touched(strategy: Strategy, dtype: str, at_end: bool) -> None:
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
        kernel(dtype, "row", strategy)(*placed)
        assert np.array_equal(memory("c").outside(placed[2]), before)
        assert np.allclose(placed[2], a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)


def test_tasks_share_columns_that_begin_before_the_first() -> None:
    """Three threads pack and multiply parts of the columns, in place and packed, with the bits of one."""
    for m, n, k in ((700, 4112, 9), (300, 2064, 300), (40, 4112, 700)):
        a, b = rough((m, k), np.float32, 1), rough((k, n), np.float32, 2)
        for begin in (0, 4, 15):
            placed = begun(b, 16, begin, 0)
            alone, together = (
                tw.matmul(
                    a, placed, out=begun(np.full((m, n), np.nan, np.float32), 16, begin, 0), threads=threads
                )
                for threads in (1, 3)
            )
            assert np.array_equal(alone, together), (m, n, k, begin)
            assert np.allclose(alone, a @ b, rtol=1e-4, atol=1e-4)
