"""Few rows of A in place: tiles that compute their last row twice read and write what they would anyway."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from support import GUARD_PAGES, GuardedMemory

import tilewright as tw

#: Every number of rows of one tile or two, of which 3 and 5 to 7 may be computed as 4, 6 and 8.
ROWS = range(1, 14)

pytestmark = [
    pytest.mark.compiled_well,
    pytest.mark.skipif(not GUARD_PAGES, reason="needs pages that cannot be accessed"),
]


@cache
def memory(operand: str) -> GuardedMemory:
    return GuardedMemory(1 << 20)


@pytest.mark.parametrize("columns", [1, 33, 96, 130])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_few_rows_at_a_guard_page(dtype: type[np.floating], columns: int) -> None:
    """Sums of small integers are exact, so a row that is counted twice, or another one's, is seen."""
    random = np.random.default_rng(columns)
    for rows in ROWS:
        depth = 9 + 37 * rows
        shapes = {"a": (rows, depth), "b": (depth, columns), "c": (rows, columns)}
        arrays = {}
        for name, shape in shapes.items():
            values = random.integers(-2, 3, shape).astype(dtype)
            steps = (values.strides[0] + 3 * values.itemsize, values.itemsize)  # rows of a larger matrix
            arrays[name] = memory(name).place(values, steps, at_end=True)
        a, b, c = arrays.values()
        product, before, outside = a.astype(float) @ b.astype(float), c.copy(), memory("c").outside(c)
        tw.matmul(a, b, out=c, alpha=2.0, beta=-1.0)
        np.testing.assert_array_equal(c, 2 * product - before, f"{rows} rows, beta")
        tw.matmul(a, b, out=c)
        np.testing.assert_array_equal(c, product, f"{rows} rows")
        np.testing.assert_array_equal(memory("c").outside(c), outside, "bytes between rows changed")
