"""`tilewright.accelerate` of functions that Numba compiles: kernels in its code, the rest as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tiers import crossed

import tilewright as tw
from tilewright.errors import ThreadsInNumba

numba = pytest.importorskip("numba")

Array = np.ndarray[Any, Any]


def plain_product(A: Array, B: Array, C: Array) -> None:
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            s = C.dtype.type(0)
            for k in range(A.shape[1]):
                s += A[i, k] * B[k, j]
            C[i, j] = s


def columns(A: Array, B: Array, C: Array, first: int) -> None:
    for i in range(30):
        for j in range(first, 20):
            for k in range(A.shape[1]):
                C[i, j] += A[i, k] * B[k, j]


def arrays_of(dtype: str, *sizes: int) -> tuple[Array, Array, Array]:
    m, n, k = sizes
    rng = np.random.default_rng(0)
    shapes = [(m, k), (k, n), (m, n)]
    a, b, c = (rng.integers(-4, 5, shape).astype(dtype) for shape in shapes)
    return a, b, c


@pytest.fixture(scope="module")
def fast() -> Any:
    return tw.accelerate(numba.njit(fastmath=True)(plain_product))


@pytest.mark.parametrize(
    ("dtype", "sizes"),
    crossed(["f4", "i8"], ([sizes] for sizes in [(70, 50, 60), (3, 2, 4), (0, 3, 3), (3, 3, 0)]), 2),
    ids=str,
)
def test_products(fast: Any, dtype: str, sizes: tuple[int, int, int]) -> None:
    a, b, c = arrays_of(dtype, *sizes)
    fast(a, b, c)
    np.testing.assert_array_equal(c, a @ b)


def test_report(fast: Any) -> None:
    a, b, c = arrays_of("f4", 20, 20, 20)
    fast(a, b, c)
    first = plain_product.__code__.co_firstlineno
    nests = tw.accelerate.report(fast)
    assert any(nest.replaced for nest in nests)
    (nest, *_) = (nest for nest in nests if nest.replaced)
    assert nest.subscripts == "mk,kn->mn"
    assert nest.line >= first
    assert "C[m,n] = " in nest.text
    assert ".shape[" in nest.text


def test_other_views_and_overlap(fast: Any) -> None:
    a, b, _ = arrays_of("f4", 40, 40, 40)
    expected = a.T @ b[::-1]
    c = np.zeros((40, 40), "f4")
    fast(a.T, b[::-1], c)
    np.testing.assert_array_equal(c, expected)
    numbers = arrays_of("i8", 40, 40, 40)[0]
    ours, theirs, b = numbers.copy(), numbers.copy(), b.astype("i8")
    fast(ours, b, ours)
    with np.errstate(over="ignore"):
        plain_product(theirs, b, theirs)
    np.testing.assert_array_equal(ours, theirs)


def test_declared_signatures_stay_the_only_ones() -> None:
    declared = numba.njit("void(f8[:,:], f8[:,:], f8[:,:])", fastmath=True)(plain_product)
    made = tw.accelerate(declared)
    assert made.signatures == declared.signatures
    a, b, c = arrays_of("f8", 30, 40, 50)
    made(a, b, c)
    np.testing.assert_array_equal(c, a @ b)
    with pytest.raises(TypeError, match="No matching definition"):
        made(a.astype("f4"), b, c)


def test_subscripts_that_may_count_from_the_end() -> None:
    made = tw.accelerate(numba.njit(fastmath=True)(columns))
    a, b, c = arrays_of("f8", 40, 40, 40)
    expected = c.copy()
    columns(a, b, expected, 0)
    made(a, b, c, 0)
    np.testing.assert_array_equal(c, expected)
    assert [nest.subscripts for nest in tw.accelerate.report(made) if nest.replaced] == ["mk,kn->mn"]
    columns(a, b, expected, -3)
    made(a, b, c, -3)
    np.testing.assert_array_equal(c, expected)


def test_sums_of_floats_need_fastmath() -> None:
    made = tw.accelerate(numba.njit(plain_product))
    a, b, c = arrays_of("f4", 30, 40, 50)
    made(a, b, c)
    np.testing.assert_array_equal(c, a @ b)
    nests = tw.accelerate.report(made)
    assert not any(nest.replaced for nest in nests)
    assert any("without permission to reassociate" in nest.text for nest in nests)


def test_products_have_one_thread() -> None:
    function = numba.njit(fastmath=True)(plain_product)
    with pytest.raises(ThreadsInNumba, match="threads is 2"):
        tw.accelerate(function, threads=2)
    assert tw.accelerate(function, threads=1) is not None
