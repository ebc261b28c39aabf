"""Promise 5: an element's bits do not depend on its row, its batch, alignment, layout or strategy."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product as combinations
from typing import Any

import numpy as np
import pytest
from shares import looped
from support import LAYOUTS, Array, host_rows, rough, unaligned
from tiers import pairwise

import tilewright as tw
from tilewright.compiler.kernel import Kernel

Product = Callable[[Array, Array], Array]

ROWS = [isa.name for isa in host_rows()]
STRATEGIES = ("auto", "tiling", "packing")
#: Depths below and above kc (512 or 768), below and above a vector.
DEPTHS = (1, 9, 64, 513, 1500)


@cache
def kernel(row: str, strategy: str, dtype: str) -> Kernel:
    problem = tw.Gemm(dtype=dtype, a="strided", b="strided", c="strided", strategy=strategy)
    return tw.compile(problem, tw.machine(row))


def product(row: str, strategy: str) -> Product:
    """A product by one row and strategy, for both element types."""

    def multiply(a: Array, b: Array) -> Array:
        code = kernel(row, strategy, "f32" if a.dtype == np.float32 else "f64")
        return code(a, b, np.full((a.shape[0], b.shape[1]), np.nan, a.dtype))

    multiply.__name__ = f"{row}-{strategy}"
    return multiply


WAYS = [tw.matmul, *(product(row, strategy) for row in ROWS for strategy in STRATEGIES)]
each_product = pytest.mark.parametrize(
    ("multiply", "dtype", "k"), pairwise(WAYS, [np.float32, np.float64], DEPTHS)
)
each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def same_bits(left: Array, right: Array) -> bool:
    word = {2: np.uint16, 4: np.uint32, 8: np.uint64}[left.itemsize]
    return np.array_equal(np.ascontiguousarray(left).view(word), np.ascontiguousarray(right).view(word))


@each_product
def test_number_and_position_of_rows(multiply: Product, dtype: type, k: int) -> None:
    """Row i of a product of m rows equals the product of row i alone."""
    a, b = rough((257, k), dtype, 1), rough((k, 70), dtype, 2)
    alone = np.concatenate([multiply(a[i : i + 1], b) for i in range(len(a))])
    for m in (*range(1, 31), 257):
        assert same_bits(multiply(a[:m], b), alone[:m])
    assert same_bits(multiply(a[5:29], b), alone[5:29])
    assert same_bits(multiply(a[::-1], b), alone[::-1])


@each_product
def test_number_and_position_of_columns(multiply: Product, dtype: type, k: int) -> None:
    a, b = rough((15, k), dtype, 1), rough((k, 170), dtype, 2)
    whole = multiply(a, b)
    for n in (2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 65, 97, 129):
        assert same_bits(multiply(a, b[:, :n]), whole[:, :n])
        assert same_bits(multiply(a, b[:, 40 : 40 + n]), whole[:, 40 : 40 + n])


@each_product
def test_layout_and_alignment(multiply: Product, dtype: type, k: int) -> None:
    a, b = rough((29, k), dtype, 1), rough((k, 70), dtype, 2)
    expected = multiply(a, b)
    for layout in LAYOUTS.values():
        assert same_bits(multiply(layout(a), b), expected)
        assert same_bits(multiply(a, layout(b)), expected)
        assert same_bits(multiply(layout(a), layout(b)), expected)
    for shift in range(1, 16, 3):  # elements behind a 64-byte line
        assert same_bits(multiply(shifted(a, shift), shifted(b, shift + 1)), expected)


def shifted(array: Array, elements: int) -> Array:
    base = np.empty(array.size + elements, array.dtype)
    view = base[elements:].reshape(array.shape)
    view[...] = array
    return view


@pytest.mark.parametrize(
    ("row", "dtype", "k", "shape"),
    pairwise(ROWS, [np.float32, np.float64], DEPTHS, [(1, 70), (29, 70), (29, 2), (300, 33), (13, 170)]),
)
def test_strategies_agree(row: str, dtype: type, k: int, shape: tuple[int, int]) -> None:
    m, n = shape
    a, b = rough((m, k), dtype, 1), rough((k, n), dtype, 2)
    auto, tiling, packing = (product(row, strategy)(a, b) for strategy in STRATEGIES)
    assert same_bits(auto, tiling)
    assert same_bits(auto, packing)


@pytest.mark.parametrize(
    ("row", "dtype", "k", "layout"),
    pairwise(ROWS, [np.float32, np.float64], [*DEPTHS, 9000], ["C", "F"]),
)
def test_one_column(row: str, dtype: type, k: int, layout: str) -> None:
    """n = 1 is its own case: of one layout, the same bits wherever a row stands and whatever is beside it."""
    a, b = LAYOUTS[layout](rough((23, k), dtype, 1)), rough((k, 1), dtype, 2)
    multiply = product(row, "auto")
    alone = np.concatenate([multiply(a[i : i + 1], b) for i in range(len(a))])
    for m in range(1, len(a) + 1):
        assert same_bits(multiply(a[:m], b), alone[:m])
        assert same_bits(multiply(a[len(a) - m :], b), alone[len(a) - m :])
    if layout == "C":
        for shift in range(1, 16, 3):
            assert same_bits(multiply(shifted(a, shift), shifted(b, shift + 1)), alone)


@each_dtype
def test_one_column_of_a_batch(dtype: type) -> None:
    a, b = rough((5, 13, 700), dtype, 1), rough((5, 700, 1), dtype, 2)
    together = tw.matmul(a, b)
    for index in range(5):
        assert same_bits(together[index], tw.matmul(a[index], b[index]))
        assert same_bits(together[index][:, 0], tw.matmul(a[index], b[index][:, 0]))
        assert same_bits(together[index, 3, 0], tw.matmul(a[index, 3], b[index][:, 0]))


@looped("layout", LAYOUTS)
@looped(("alpha", "beta"), [(1.0, 0.0), (0.3, 0.7), (-1.7, 1.0)])
@looped("k", [9, 1500])
def test_layout_of_out(layout: str, alpha: float, beta: float, k: int) -> None:
    a, b, c = rough((29, k), seed=1), rough((k, 70), seed=2), rough((29, 70), seed=3)
    expected = tw.matmul(a, b, out=c.copy(), alpha=alpha, beta=beta)
    out = LAYOUTS[layout](c)
    assert same_bits(tw.matmul(a, b, out=out, alpha=alpha, beta=beta), expected)
    odd = unaligned(c)
    assert same_bits(tw.matmul(a, b, out=odd, alpha=alpha, beta=beta), expected)
    for i in (0, 11, 28):
        alone = tw.matmul(a[i : i + 1], b, out=c[i : i + 1].copy(), alpha=alpha, beta=beta)
        assert same_bits(alone, expected[i : i + 1])


@each_dtype
@pytest.mark.parametrize("k", [9, 700])
def test_batch_position(dtype: type, k: int) -> None:
    a, b = rough((4, 3, 13, k), dtype, 1), rough((4, 3, k, 33), dtype, 2)
    together = tw.matmul(a, b)
    shared = tw.matmul(a, b[0, 0])
    for index in np.ndindex(4, 3):
        assert same_bits(together[index], tw.matmul(a[index], b[index]))
        assert same_bits(shared[index], tw.matmul(a[index], b[0, 0]))
    assert same_bits(tw.matmul(a[2, 1, 5], b[2, 1]), together[2, 1, 5])


@each_dtype
def test_repeated_calls(dtype: type) -> None:
    a, b = rough((129, 600), dtype, 1), rough((600, 97), dtype, 2)
    expected = tw.matmul(a, b)
    assert all(same_bits(tw.matmul(a, b), expected) for _ in range(20))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_an_a_that_is_packed_once_for_slices_of_b(dtype: str) -> None:
    """Where L2 keeps panels; an A in place gives the bits, one of several blocks of rows too."""
    for m, n, k in ((70, 900, 400), (2100, 800, 300)):
        a, b = rough((m, k), np.float64, 1).astype(dtype), rough((k, n), np.float64, 2).astype(dtype)
        expected = tw.matmul(a, b)
        assert same_bits(tw.matmul(np.asfortranarray(a), b), expected)
        assert same_bits(tw.matmul(a[40:65], b), expected[40:65])


# --- complex numbers: parts of a product are added in one order, whichever matrix comes first --------


#: What `laid` makes.
ORDERS = "CFS"


def parts(array: Array) -> Array:
    """Real and imaginary parts side by side."""
    return np.stack([array.real, array.imag])


def complex_matrix(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    parts = rough((2, *shape), np.float64, seed)
    found: Array = (parts[0] + 1j * parts[1]).astype(dtype)
    return found


def laid(array: Array, order: str) -> Array:
    """Rows contiguous ("C"), columns ("F"), or neither ("S"); the axes before the last two as they are."""
    if order == "C":
        return np.ascontiguousarray(array)
    if order == "F":
        return np.ascontiguousarray(array.swapaxes(-1, -2)).swapaxes(-1, -2)
    apart = np.zeros((*array.shape[:-2], 2 * array.shape[-2], 3 * array.shape[-1]), array.dtype)
    apart[..., ::2, ::3] = array
    return apart[..., ::2, ::3]


@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(1, 7, 9), (5, 6, 3), (33, 17, 20), (70, 65, 600), (300, 260, 4), (66, 300, 300)],
)
def test_complex_products_in_every_layout(dtype: str, m: int, n: int, k: int) -> None:
    """The imaginary part was summed in the other order where a column-major out was computed transposed."""
    a, b = complex_matrix((m, k), dtype, 1), complex_matrix((k, n), dtype, 2)
    expected = tw.matmul(a, b)
    for left, right, result in combinations(ORDERS, repeat=3):
        out = laid(np.zeros_like(expected), result)
        tw.matmul(laid(a, left), laid(b, right), out)
        assert same_bits(parts(out), parts(expected)), (left, right, result)
    added = [tw.matmul(a, b, laid(np.ones_like(expected), order), alpha=2, beta=1) for order in ORDERS]
    assert all(same_bits(parts(one), parts(added[0])) for one in added)
    rows = [tw.matmul(a[i : i + 1], b, laid(np.zeros((1, n), dtype), "F")) for i in range(0, m, 13)]
    assert same_bits(parts(np.concatenate(rows)), parts(expected[::13]))
    stacks = np.stack([a, a[::-1]]), np.stack([b, b])
    for order in ORDERS:
        out = laid(np.zeros((2, m, n), dtype), order)
        tw.matmul(*stacks, out)
        assert same_bits(parts(out[0]), parts(expected))
        assert same_bits(parts(out[1]), parts(expected[::-1]))


@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize(("m", "k"), [(1, 9), (15, 70), (40, 300), (100, 1200)])
def test_one_complex_column_has_the_bits_of_several(dtype: str, m: int, k: int) -> None:
    """Unless A is column-major, and its product a row of the transposed one."""
    a, b = complex_matrix((m, k), dtype, 1), complex_matrix((k, 3), dtype, 2)
    expected = tw.matmul(a, b)[:, :1]
    for left, right, result in combinations("CS", ORDERS, ORDERS):
        out = laid(np.zeros((m, 1), dtype), result)
        tw.matmul(laid(a, left), laid(b[:, :1], right), out)
        assert same_bits(parts(out), parts(expected)), (left, right, result)
    assert same_bits(parts(tw.matmul(a, b[:, 0])), parts(expected[:, 0]))


@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_compiled_complex_products_in_every_layout(dtype: str) -> None:
    kind = {"c64": "c8", "c128": "c16"}[dtype]
    a, b = complex_matrix((13, 30), kind, 1), complex_matrix((30, 18), kind, 2)
    expected = tw.matmul(a, b)
    for order, name in (("C", "row"), ("F", "col"), ("S", "strided")):
        out = laid(np.zeros_like(expected), order)
        tw.compile(tw.Gemm(dtype=dtype, c=name))(a, b, out)
        assert same_bits(parts(out), parts(expected)), name
        if name != "strided":
            fixed = tw.BatchReduceGemm(13, 18, 30, 1, dtype, a="row", b="row", c=name, beta=0)
            tw.compile(fixed)(a, b, out)
            assert same_bits(parts(out), parts(expected)), name


@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize(("n", "k"), [(1, 9), (6, 3), (70, 40), (150, 600)])
def test_complex_triangles_in_every_layout(dtype: str, n: int, k: int) -> None:
    a, b = complex_matrix((n, k), dtype, 1), complex_matrix((n, k), dtype, 2)
    functions: tuple[tuple[Any, tuple[Array, ...]], ...] = ((tw.syrk, (a,)), (tw.syr2k, (a, b)))
    for function, operands in functions:
        expected = function(*operands)
        for left, result, lower in combinations(ORDERS, ORDERS, (True, False)):
            out = laid(np.zeros_like(expected), result)
            function(*(laid(one, left) for one in operands), out, lower=lower)
            assert same_bits(parts(out if lower else out.T), parts(expected)), (left, result, lower)
