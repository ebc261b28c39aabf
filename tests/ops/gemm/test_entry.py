"""The native entry on every combination of axes: NumPy's shapes and values, references, errors, bits."""

from __future__ import annotations

import sys
from itertools import product
from typing import Any

import numpy as np
import pytest
from shares import looped
from support import LAYOUTS, Array, rough

import tilewright as tw
from tilewright.calls.layout import native_entry_possible
from tilewright.errors import BatchMismatch, OutShape, ShapeMismatch
from tilewright.ops.gemm import call as arrays

pytestmark = pytest.mark.skipif(not native_entry_possible(), reason="the entry is not native here")

M, N, K, BATCH = 3, 5, 4, 6

#: Shapes of a and b of one to three axes, with batch axes that are equal, 1 or missing.
LEFT = [(K,), (M, K), (1, K), (BATCH, M, K), (1, M, K), (BATCH, 1, K)]
RIGHT = [(K,), (K, N), (K, 1), (BATCH, K, N), (1, K, N), (BATCH, K, 1)]


@pytest.fixture(autouse=True)
def _compiled() -> None:
    """The first product and the first batch of a process are made ready in Python."""
    for dtype, shape in product((np.float32, np.float64), ((2, 2), (2, 2, 2))):
        tw.matmul(np.ones(shape, dtype), np.ones(shape, dtype))


@pytest.fixture
def python_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for each call that goes through Python."""
    calls: list[str] = []
    original = arrays.matmul

    def seen(*args: Any, **kwargs: Any) -> Any:
        calls.append("matmul")
        return original(*args, **kwargs)

    monkeypatch.setattr(arrays, "matmul", seen)
    return calls


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@looped(("left", "right"), list(product(LEFT, RIGHT)))
def test_shapes_and_values(
    dtype: type, left: tuple[int, ...], right: tuple[int, ...], python_calls: list[str]
) -> None:
    a: Array = np.arange(np.prod(left)).reshape(left).astype(dtype)
    b: Array = np.arange(np.prod(right)).reshape(right).astype(dtype)
    expected = np.matmul(a, b)
    found = tw.matmul(a, b)
    assert type(found) is type(expected)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)  # small integers: exact
    if expected.ndim:
        out = np.full_like(expected, np.nan)
        assert tw.matmul(a, b, out=out) is out
        np.testing.assert_array_equal(out, expected)
    assert python_calls == []


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("left", "right"), list(product(LEFT[1:3], RIGHT[1:3])), ids=str)
def test_layouts_of_batches(layout: str, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    """Each matrix of a batch in each layout, and the batch itself backwards."""
    a, b = rough((BATCH, *left), seed=1), rough((BATCH, *right), seed=2)
    laid = [np.stack([array] * 2)[0] for array in (a, b)]
    for which in range(2):
        matrices = [LAYOUTS[layout](matrix) for matrix in laid[which]]
        step = np.lib.stride_tricks.as_strided
        operands = [a, b]
        for matrix in matrices:
            operands[which] = step(matrix, (BATCH, *matrix.shape), (0, *matrix.strides))
            found = tw.matmul(*operands)
            for index in range(BATCH):
                expected = tw.matmul(*(operand[index] for operand in operands))
                np.testing.assert_array_equal(found[index], expected)
    np.testing.assert_array_equal(tw.matmul(a[::-1], b), tw.matmul(a, b[::-1])[::-1])


@pytest.mark.parametrize("order", list(product("CF", repeat=2)), ids="".join)
def test_a_shared_b_makes_one_tall_product(order: tuple[str, str]) -> None:
    """Whether the rows of the batch merge or not, the bits are those of each product."""
    a, b = LAYOUTS[order[0]](rough((7, 5, 33), seed=1)), LAYOUTS[order[1]](rough((33, 19), seed=2))
    found = tw.matmul(a, b)
    for index in range(7):
        np.testing.assert_array_equal(found[index], tw.matmul(a[index], b))
    gapped = np.full((7, 6, 20), np.nan, np.float32)
    out = gapped[:, :5, :19]
    tw.matmul(a, b, out=out)
    np.testing.assert_array_equal(out, found)
    assert np.isnan(gapped[:, 5]).all()
    assert np.isnan(gapped[:, :, 19]).all()


def test_scalars_of_vectors() -> None:
    a, b = rough((100,), np.float64, 1), rough((100,), np.float64, 2)
    found = tw.matmul(a, b)
    assert isinstance(found, np.float64)
    assert found == tw.matmul(a[np.newaxis], b[:, np.newaxis])[0, 0]
    assert isinstance(tw.matmul(a.astype(np.float32), b.astype(np.float32)), np.float32)
    assert tw.matmul(a[:0], b[:0]) == 0
    backwards = tw.matmul(a[::-1], b[::-1])
    np.testing.assert_allclose(backwards, found, rtol=1e-12)


@pytest.mark.parametrize(
    "shapes", [((K,), (K,)), ((K,), (K, N)), ((BATCH, M, K), (K,)), ((M, K), (1, K, N))], ids=str
)
def test_no_reference_is_lost(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = (rough(shape) for shape in shapes)
    out = np.empty_like(tw.matmul(a, b))
    kept = [a, b, out, a.dtype]
    before = [sys.getrefcount(thing) for thing in kept]
    for _ in range(1000):
        found = tw.matmul(a, b)
        if out.ndim:
            tw.matmul(a, b, out=out)
    assert sys.getrefcount(found) == 2
    del found
    assert [sys.getrefcount(thing) for thing in kept] == before


@pytest.mark.parametrize(
    ("left", "right", "out", "error"),
    [
        ((K,), (K + 1,), None, ShapeMismatch),
        ((M, K), (K + 1,), None, ShapeMismatch),
        ((K,), (K + 1, N), None, ShapeMismatch),
        ((2, M, K), (3, K, N), None, BatchMismatch),
        ((0, M, K), (3, K, N), None, BatchMismatch),
        ((K,), (K, N), (1, 1), OutShape),
        ((K,), (K, N), (N + 1,), OutShape),
        ((M, K), (K,), (M, 1), OutShape),
        ((BATCH, M, K), (K, N), (M, N), OutShape),
        ((M, K), (BATCH, K, N), (BATCH - 1, M, N), OutShape),
        ((K,), (BATCH, K, N), (BATCH, 1, N), OutShape),
    ],
)
def test_errors(
    left: tuple[int, ...], right: tuple[int, ...], out: tuple[int, ...] | None, error: type[Exception]
) -> None:
    target = None if out is None else np.full(out, 7, np.float32)
    with pytest.raises(error):
        tw.matmul(rough(left), rough(right), out=target)
    assert target is None or (target == 7).all()


def test_overlap_of_a_vector_with_its_result() -> None:
    a, x = rough((K, K), seed=1), rough((K,), seed=2)
    expected = np.matmul(a, x)
    tw.matmul(a, x, out=x)
    np.testing.assert_allclose(x, expected, rtol=1e-5)
    whole = rough((3, K, K), seed=3)
    expected = np.matmul(whole, whole[1])
    tw.matmul(whole, whole[1], out=whole)
    np.testing.assert_allclose(whole, expected, rtol=1e-5)


def test_a_long_vector_product_releases_the_gil() -> None:
    import threading

    a, x = rough((4000, 4000), seed=1), rough((4000,), seed=2)
    expected = tw.matmul(a, x)
    found: list[Array] = []

    def work() -> None:
        found.extend(tw.matmul(a, x) for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    assert all(np.array_equal(one, expected) for one in found)
