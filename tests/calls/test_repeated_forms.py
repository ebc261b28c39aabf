"""Forms of calls whose steps are functions of NumPy, or whose operands are numbers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from repeated_calls import check, python_lines

import tilewright as tw
from tilewright.calls.layout import native_entry_possible

pytestmark = pytest.mark.skipif(not native_entry_possible(), reason="no native entries in this interpreter")

RNG = np.random.default_rng(5)


def values(*shape: int, dtype: Any = "f4") -> Any:
    found = RNG.standard_normal(shape) * 3
    return (found + 1j * found[::-1]).astype(dtype) if np.dtype(dtype).kind == "c" else found.astype(dtype)


def truths(*shape: int) -> Any:
    return RNG.random(shape) > 0.7


def test_logical_products() -> None:
    a, b, vector = truths(4, 5), truths(5, 3), truths(5)
    check(tw.matmul, a, b)
    check(tw.matmul, a, b, truths(4, 3))
    check(tw.matmul, vector, vector.copy())
    check(tw.matmul, truths(2, 4, 5), b)
    check(tw.matmul, a, b, values(4, 3))
    check(lambda x, y: tw.matmul(x, y, dtype="?", casting="unsafe"), values(4, 5), values(5, 3))
    check(tw.inner, a, truths(3, 5))
    check(tw.vecdot, a, vector)
    check(lambda x, y: tw.einsum("ij,jk->ik", x, y), a, b)
    check(lambda x: tw.einsum("ij->i", x), a)
    check(lambda x: tw.einsum("ii", x), truths(4, 4))


def test_complex_factors() -> None:
    a, b, c = (values(4, 4, dtype="c8") for _ in range(3))
    check(lambda x, y: tw.matmul(x, y, alpha=2j), a, b)
    check(lambda x, y, z: tw.matmul(x, y, z, alpha=2j, beta=1 + 1j), a, b, c)
    check(lambda x, y: tw.matmul(x, y, alpha=0j), a, b)
    factor: Any = np.complex64(2j)
    check(lambda x, y: tw.matmul(x, y, alpha=factor, dtype="c16"), a, b)
    check(lambda x: tw.syrk(x, alpha=2j), a)
    check(lambda x, y: tw.syrk(x, y, alpha=2j, beta=1j), a, c)
    check(lambda x, y: tw.syr2k(x, y, alpha=2j), a, b)
    check(lambda x, y: tw.trmm(x, y, alpha=2j), a, b)
    first = tw.matmul(a, b, alpha=2j)
    assert np.array_equal(tw.matmul(a, b, alpha=-2j), -first)  # a call of its own


@pytest.mark.filterwarnings("error")
def test_results_that_are_rounded_into_out() -> None:
    x, narrow = values(4, 8), values(4, 8, dtype="f2")
    check(lambda a, out: tw.exp(a, out=out), x, narrow)
    check(lambda a, out: tw.softmax(a, -1, out), x, narrow)
    check(lambda a, out: tw.layer_norm(a, out=out), x, narrow)
    check(lambda a, out: tw.sum(a, 1, out), x, values(4, dtype="f2"))
    check(tw.matmul, values(4, 8, dtype="f8"), values(8, 8, dtype="f8"), x)
    heads = [values(1, 2, 3, 4) for _ in range(3)]
    check(lambda q, k, v, out: tw.attention(q, k, v, out=out), *heads, values(1, 2, 3, 4, dtype="f2"))
    large = np.full((4, 8), 1e30, "f4")
    for _ in range(3):  # numbers too large for a type are infinite, without a warning
        assert np.isinf(tw.relu(large, out=narrow)).all()
    with np.errstate(all="raise"):
        assert np.isinf(tw.relu(large, out=narrow)).all()


def test_integers_that_numpy_reduces() -> None:
    for dtype in ("i8", "u8", "i4"):
        large = RNG.integers(0, 9, (70, 80)).astype(dtype)
        for function in (tw.max, tw.min, tw.sum):
            check(function, large)
            check(lambda x, f=function: f(x, 1), large)
            check(lambda x, f=function: f(x, (0,), keepdims=True), large)
    check(lambda x, out: tw.max(x, 1, out), RNG.integers(0, 9, (7, 8)), values(7, dtype="f8"))


def test_elements_multiplied_in_another_type() -> None:
    for first, second in (("f4", "f8"), ("i4", "f4"), ("f4", "c8"), ("u1", "i1")):
        a, b = values(3, 4, dtype=first), values(2, 5, dtype=second)
        check(tw.kron, a, b)
        check(lambda x, y: tw.einsum("i,j->ij", x, y), a[0], b[0])


def test_numbers_as_operands() -> None:
    x = values(4, 8)
    check(lambda a, b: tw.matmul(a, b, bias=2.0), x, values(8, 3))
    check(lambda a: tw.inner(2.0, a), x)
    heads = [values(1, 2, 3, 4) for _ in range(3)]
    check(lambda q, k, v: tw.attention(q, k, v, alibi_slopes=0.5, sinks=0.1), *heads)
    check(lambda a: tw.kron(a, np.float16(2)), x)
    check(lambda a: tw.einsum(",ij->ij", 3.0, a), x)
    numbers: tuple[Any, ...] = (2.0, np.float32(0.5), np.int8(3))
    for number in numbers:
        for _ in range(3):
            found = tw.exp(number)
        assert python_lines(partial(tw.exp, number)) == 0
        assert type(found) is type(tw.exp(np.asarray(number)))
        assert found == tw.exp(np.asarray(number))


def test_numbers_of_numpy_as_options() -> None:
    matmul: Any = tw.matmul  # its options are declared as Python's numbers
    largest: Any = tw.max
    a, b = values(4, 8), values(8, 3)
    for alpha in (np.float16(2), np.int8(2), np.uint64(2), np.longlong(2)):
        check(lambda x, y, f=alpha: matmul(x, y, alpha=f), a, b)
    check(lambda x: largest(x, 1, keepdims=np.True_), a)
    assert largest(a, 1, keepdims=np.False_).shape == (4,)
    doubled = [matmul(a, b, alpha=kind(2)) for kind in (np.float16, np.float32, np.int8)]
    halved = [matmul(a, b, alpha=kind(1)) for kind in (np.float16, np.float32, np.int8)]
    for two, one in zip(doubled, halved, strict=True):
        assert np.array_equal(two, 2 * one)


def test_products_of_bytes_with_zero_points() -> None:
    a, b = (RNG.integers(0, 100, (4, 5)).astype(kind) for kind in ("u1", "i1"))
    b = b.T.copy()
    check(tw.matmul_integer, a, b)
    check(lambda x, y: tw.matmul_integer(x, y, 3, 1), a, b)
    check(lambda x, y: tw.matmul_integer(x, y, 3), a, b)
    check(lambda x, y: tw.matmul_integer(x, y, None, np.int8(-2)), a, b)
    check(lambda x, y, out: tw.matmul_integer(x, y, 3, 1, out=out), a, b, np.zeros((4, 4), "i4"))
    check(lambda x, y: tw.matmul_integer(x, y, 3, 1), a[0], b)
    check(lambda x, y: tw.matmul_integer(x, y, 3, 1), RNG.integers(0, 100, (2, 4, 5)).astype("u1"), b)
    check(tw.matmul_integer, a, b, a[:, 0].copy(), b[0].copy())
    check(tw.matmul_integer, a, b, np.array(3, "u1"), np.array([[1]], "i1"))
