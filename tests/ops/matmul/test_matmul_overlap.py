"""Promise 7: an out that shares memory with an input gives the result as if it did not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from shares import looped
from support import Array, filled

import tilewright as tw

SIDE = 70

#: Name, and the views (a, b, out) of one square matrix.
Views = Callable[[Array], tuple[Array, Array, Array]]
VIEWS: dict[str, Views] = {
    "a itself": lambda x: (x, x[::-1].copy(), x),
    "b itself": lambda x: (x[::-1].copy(), x, x),
    "both": lambda x: (x, x, x),
    "transpose of a": lambda x: (x, x[::-1].copy(), x.T),
    "transpose of b": lambda x: (x[::-1].copy(), x, x.T),
    "both inputs transposed": lambda x: (x.T, x.T, x),
    "reversed rows": lambda x: (x, x.copy(), x[::-1]),
    "reversed columns": lambda x: (x, x.copy(), x[:, ::-1]),
    "reversed": lambda x: (x.copy(), x, x[::-1, ::-1]),
    "shifted down": lambda x: (x[:-1, :-1], x[1:, 1:], x[1:, :-1]),
    "shifted right": lambda x: (x[:, :-1], x[1:, 1:].copy(), x[:, 1:]),
    "one column shared": lambda x: (x[:, :30], x[:30, :41].copy(), x[:, 29:]),
    "one row shared": lambda x: (x[:30], x[:, :30].copy(), x[29:59, :30]),
    "one element shared": lambda x: (x[:20, :20], x[:20, 40:60].copy(), x[19:39, 19:39]),
    "every other row": lambda x: (x[:35], x[:, :70].copy(), x[::2]),
    "interleaved": lambda x: (x[::2, :35], x[:35, ::2].copy(), x[1::2, ::2]),
    "apart": lambda x: (x[:30, :30], x[:30, 30:60], x[30:60, :30]),
    "column halves": lambda x: (x[:, :35], x[:35, :35], x[:, 35:]),
    "broadcast input": lambda x: (np.broadcast_to(x[0], x.shape), x.copy(), x),
}


@looped("name", VIEWS)
@looped("dtype", [np.float32, np.float64])
@looped(("alpha", "beta"), [(1.0, 0.0), (2.0, 0.0), (1.0, 1.0), (-0.5, 2.0), (0.0, 0.5)])
def test_overlap(name: str, dtype: type, alpha: float, beta: float) -> None:
    base = filled((SIDE, SIDE), dtype)
    a, b, out = VIEWS[name](base)
    untouched = np.ones(base.shape, bool)
    VIEWS[name](untouched)[2][...] = False
    before = base.copy()
    expected = alpha * (a.copy() @ b.copy()) + beta * out.copy()
    if (alpha, beta) == (1, 0):  # without scalars through the native entry
        assert tw.matmul(a, b, out) is out
    else:
        assert tw.matmul(a, b, out=out, alpha=alpha, beta=beta) is out
    assert np.array_equal(out, expected)
    assert np.array_equal(base[untouched], before[untouched])


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", ">f4"])
def test_overlap_through_another_dtype(dtype: str) -> None:
    """The same bytes under two dtypes."""
    buffer = np.zeros(SIDE * SIDE * 8, np.uint8)
    a = buffer[: SIDE * SIDE * np.dtype(dtype).itemsize].view(dtype).reshape(SIDE, SIDE)
    a[...] = filled((SIDE, SIDE), dtype)
    out = buffer.view(np.float64).reshape(SIDE, SIDE)
    b = filled((SIDE, SIDE), np.float64, 1)
    expected = a.astype(np.float64) @ b
    assert np.array_equal(tw.matmul(a, b, out=out), expected)


@pytest.mark.parametrize(
    "views",
    [
        lambda x: (x, x, x),
        lambda x: (x, x[0], x),
        lambda x: (x[1], x, x),
        lambda x: (x, x, x[::-1]),
        lambda x: (x, x, x.transpose(0, 2, 1)),
        lambda x: (x[:2], x[1:], x[:2]),
    ],
)
def test_overlap_of_batches(views: Views) -> None:
    a, b, out = views(filled((3, 9, 9)))
    expected = a.copy() @ b.copy()
    assert tw.matmul(a, b, out=out) is out
    assert np.array_equal(out, expected)


@pytest.mark.parametrize("k", [1, 9, 70])
def test_overlap_of_vectors(k: int) -> None:
    square, vector = filled((k, k)), filled((k,), seed=1)
    expected = square @ vector
    tw.matmul(square, vector, out=vector)
    assert np.array_equal(vector, expected)
    vector = filled((k,), seed=1)
    expected = vector @ square
    tw.matmul(vector, square, out=square[:, 0])
    assert np.array_equal(square[:, 0], expected)
