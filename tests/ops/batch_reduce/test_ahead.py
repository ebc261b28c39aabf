"""Products that prefetch the next one: what they prefetch, their bits, and memory that is not there."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import GUARD_PAGES, GuardedMemory

import tilewright as tw
from tilewright.calls.batch import fixed_batch_function
from tilewright.calls.operands import data_address
from tilewright.ir.expressions import Constant
from tilewright.ops.batch_reduce.ahead import NextMatrix, share_tiles
from tilewright.ops.batch_reduce.problem import BatchMode
from tilewright.spec.dtype import BF16, C64, F32, F64, DType
from tilewright.spec.problem import Layout

parts = st.lists(st.tuples(st.integers(1, 16), st.integers(1, 9)), min_size=1, max_size=3).map(tuple)


@given(heights=parts, widths=parts, depth=st.integers(1, 99), sizes=st.tuples(*[st.integers(1, 9999)] * 3))
def test_every_element_is_prefetched_once(
    heights: tuple[tuple[int, int], ...],
    widths: tuple[tuple[int, int], ...],
    depth: int,
    sizes: tuple[int, int, int],
) -> None:
    """Of as many matrices as there are tiles along the longer axis, from the largest down."""
    matrices = [NextMatrix(name, Constant(0), size, 4) for name, size in zip("abc", sizes, strict=True)]
    shares = share_tiles(matrices, heights, widths, depth)
    tiles = {name: [count for _, count in runs] for name, runs in (("rows", heights), ("columns", widths))}
    longer = max(map(sum, tiles.values()))
    found: dict[str, list[int]] = {}
    for row, column in product(shares.rows, shares.columns):
        for i, j in product(range(row.tiles), range(column.tiles)):
            ahead = shares.of_tile(row, column, Constant(i), Constant(j))
            assert isinstance(ahead.offset, Constant)
            found.setdefault(ahead.buffer, []).append(ahead.offset.value)
    largest = sorted(matrices, key=lambda matrix: -matrix.elements)[:longer]
    assert set(found) == {matrix.buffer for matrix in largest}
    assert sum(map(len, found.values())) == sum(tiles["rows"]) * sum(tiles["columns"])
    for matrix in largest:
        places = sorted(found[matrix.buffer])
        step = -(-matrix.elements // (len(places) * depth))
        assert places == [number * step * depth for number in range(len(places))], "in turn, without gaps"
        assert len(places) * step * depth >= matrix.elements


@cache
def memory(operand: str) -> GuardedMemory:
    return GuardedMemory(1 << 20)


SIZES = [(96, 24, 64), (37, 6, 90), (60, 60, 16), (16, 100, 20), (8, 8, 8), (5, 2, 1), (70, 130, 33)]


@pytest.mark.skipif(not GUARD_PAGES, reason="needs pages that cannot be accessed")
@pytest.mark.parametrize("layouts", ["row row", "col row", "row col"])
@pytest.mark.parametrize("dtype", [F32, F64, BF16, C64], ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_product_after_the_last_is_not_there(
    size: tuple[int, int, int], dtype: DType, layouts: str
) -> None:
    """Behind each operand a page cannot be accessed. Bits are those of products that prefetch nothing."""
    (m, n, k), (a, b), count = size, map(Layout, layouts.split()), 3
    problems = [
        tw.BatchReduceGemm(m, n, k, 1, dtype, a=a, b=b, c="row", beta=0, batch=batch)
        for batch in (BatchMode.AHEAD, BatchMode.STRIDE)
    ]
    kernel, plain = map(tw.compile, problems)
    random, types = np.random.default_rng(m), kernel.problem.types
    given, expected = {}, np.empty((count, m, n), types.c.numpy)
    for name, (shape, layout) in {"a": ((m, k), a), "b": ((k, n), b), "c": ((m, n), Layout.ROW)}.items():
        stored = (count, *(shape if layout is Layout.ROW else shape[::-1]))
        values = random.integers(-3, 4, stored).astype(types.c.numpy)
        given[name] = memory(name).place(values, values.strides, at_end=True)
    for number in range(count):
        pair = zip((given["a"][number], given["b"][number]), (a, b), strict=True)
        plain(*(one if layout is Layout.ROW else one.T for one, layout in pair), expected[number])
    outside = memory("c").outside(given["c"])
    steps = [array.strides[0] for array in given.values()]
    elements = [step // types.a.size for step in steps[:2]]
    leading = [array.shape[2] for array in given.values()]
    run = fixed_batch_function()
    run(kernel.address, count, *steps, *map(data_address, given.values()), *leading, *elements, None)
    np.testing.assert_array_equal(given["c"].view(np.uint8), expected.view(np.uint8))
    np.testing.assert_array_equal(memory("c").outside(given["c"]), outside, "bytes outside of C changed")


def test_a_product_alone() -> None:
    """Called with arrays, there is no next one."""
    kernel = tw.compile(tw.BatchReduceGemm(12, 20, 9, a="row", b="row", c="row", batch="ahead"))
    a, b, c = (np.ones(shape, np.float32) for shape in ((12, 9), (9, 20), (12, 20)))
    np.testing.assert_array_equal(kernel(a, b, c), np.full((12, 20), 10))
