"""Records of contractions: dimensions, and what is refused."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import filled

from tilewright.errors import (
    ContractionDimension,
    ContractionMemory,
    ContractionPrimitive,
    InvalidChoice,
    InvalidSize,
    SizeOverflow,
)
from tilewright.ops.contraction.dimension import Dimension
from tilewright.ops.contraction.main import Main
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.einsum.contraction import StridedOperand, einsum_dimensions

M = Dimension("m", "primitive", 4, in0=1, out=1)
N = Dimension("n", "primitive", 5, in1=6, out=4)
K = Dimension("k", "primitive", 6, in0=4, in1=1)


def test_a_product() -> None:
    product = Contraction([M, N, K], main="gemm")
    assert product.main is Main.GEMM
    assert (product.loops, product.primitive) == ((), (M, N, K))
    assert (product.flops, product.bytes) == (240, 4 * (24 + 30 + 20))


@pytest.mark.parametrize(("kind", "strides"), [("m", {"in1": 1}), ("n", {"in0": 1}), ("k", {"out": 1})])
def test_an_operand_without_the_dimension_has_no_stride(kind: str, strides: dict[str, int]) -> None:
    with pytest.raises(ContractionDimension, match="a stride of 1"):
        Dimension(kind, "sequential", 2, **strides)


def test_sums_do_not_run_in_parallel() -> None:
    with pytest.raises(ContractionDimension, match="has parallel, must be sequential or primitive"):
        Dimension("k", "parallel", 2, in0=1)


@pytest.mark.parametrize("main", ["gemm", "brgemm"])
def test_two_primitive_rows_have_no_kernel(main: str) -> None:
    with pytest.raises(ContractionPrimitive, match="2 primitive dimensions of type m"):
        Contraction([M, M, N, K], main=main)
    Contraction([M, M, N, K], main="packed_gemm")


def test_a_loop_inside_of_the_primitive() -> None:
    with pytest.raises(ContractionPrimitive, match="dimension 1"):
        Contraction([M, Dimension("n", "sequential", 5, in1=6, out=4), K], main="gemm")


def test_one_operand_has_one_type_of_dimension() -> None:
    with pytest.raises(ContractionPrimitive, match="all of type c"):
        Contraction([Dimension("m", "sequential", 4, in0=1, out=1)], main="relu")


def test_an_unknown_primitive() -> None:
    with pytest.raises(InvalidChoice, match="main is 'gem'"):
        Contraction([M, N, K], main="gem")


def sums_of_rows(**changes: Any) -> Contraction:
    """A product whose dimensions interleave, one of them reversed, and two of unknown size."""
    return Contraction(
        [
            Dimension("c", "sequential", 2, in0=4, out=3),
            Dimension("m", "parallel", 3, in0=-8, out=1),
            Dimension("n", "sequential", None, in1=1, out=6, bias=1),
            Dimension("k", "primitive", None, in0=1, in1=5),
        ],
        **{"main": "gemm", "first": "bias", "last": "relu", **changes},
    )


def test_the_meaning_is_that_of_einsum() -> None:
    a, b, bias = filled((3, 2, 4), seed=1), filled((4, 5), seed=2), filled((5,), seed=3)
    out = np.full(30, np.nan, np.float32)
    product = sums_of_rows().sized([5, 4])
    expected = np.einsum("mck,kn->cmn", a[::-1], b)
    found = product.reference(a[::-1], b, bias=bias)
    assert np.array_equal(found, np.maximum(expected + bias, 0))
    product.view("out", out)[...] = found  # (c, m, n), and n is the slowest in memory
    assert np.array_equal(out.reshape(5, 2, 3).transpose(1, 2, 0), found)
    added = sums_of_rows(first="none", last=None).sized([5, 4]).reference(a[::-1], b, out)
    assert np.array_equal(added, expected + found)
    plain = sums_of_rows(first="zero", last=None).sized([5, 4]).reference(a[::-1], b)
    assert np.array_equal(plain, expected)


def test_an_operand_beyond_its_array() -> None:
    product = sums_of_rows().sized([5, 4])
    a, b, bias = (np.zeros(size, np.float32) for size in (24, 20, 5))
    with pytest.raises(ContractionMemory, match=r"in0 accesses elements -16 to 7; .* passed has 0 to 23"):
        product.reference(a, b, bias=bias)
    with pytest.raises(ContractionMemory, match=r"bias accesses elements 0 to 4; .* 0 to 3"):
        product.reference(a.reshape(3, 8)[::-1], b, bias=bias[:4])


def test_sizes_of_a_call() -> None:
    with pytest.raises(InvalidSize, match="2 integers, one for each dimension"):
        sums_of_rows().sized([5])
    with pytest.raises(InvalidSize, match="known: call sized"):
        sums_of_rows().reference(*(np.zeros(40, np.float32),) * 2)
    assert sums_of_rows().sized([5, 4]).flops == 2 * 2 * 3 * 5 * 4


def test_an_epilogue_with_operands() -> None:
    with pytest.raises(ContractionPrimitive, match="the step bias"):
        Contraction([M, N, K], main="gemm", last="bias")


def test_tables_are_for_floats() -> None:
    with pytest.raises(ContractionPrimitive, match="elements of i8 x i8"):
        Contraction([M, N, K], "i8", out_dtype="i32", main="packed_gemm")
    Contraction([M, N, K], "i8", out_dtype="i32", main="gemm")


def test_sums_that_loops_would_round() -> None:
    outer = Dimension("k", "sequential", 3, in0=100, in1=100)
    Contraction([M, N, K], "bf16", main="gemm")
    with pytest.raises(ContractionPrimitive, match="an out of bf16 by the loop k sequential 3"):
        Contraction([outer, M, N, K], "bf16", main="gemm")
    with pytest.raises(ContractionPrimitive, match="an out of bf16, must be an out of f32"):
        Contraction([M, N, K], "bf16", main="packed_gemm")
    Contraction([outer, M, N, K], "bf16", out_dtype="f32", main="gemm")


@pytest.mark.parametrize("changes", [{"first": "bias"}, {"last": "relu"}, {"out_dtype": "f16"}])
def test_a_function_is_all_of_its_operation(changes: dict[str, str]) -> None:
    with pytest.raises(ContractionPrimitive, match="square: found"):
        Contraction([Dimension("c", "primitive", 4, in0=1, out=1)], main="square", **changes)


#: Sizes of i, j and k in ij,jk->ik, and what needs too many elements.
TOO_LONG = (
    ((2**61, 4, 2**61), "its iteration space needs"),
    ((2**62, 1, 1), "in0 needs 4611686018427387904 elements, more than 2305843009213693951"),
    ((2**31, 2**20, 2**31), "its iteration space needs"),
    ((2**40, 0, 2**40), "its iteration space needs"),
    ((2**30, 0, 2**31), "out needs"),
    ((10**30, 1, 1), "must be"),
)


@pytest.mark.parametrize(("sizes", "reason"), TOO_LONG)
def test_sizes_beyond_64_bits(sizes: tuple[int, int, int], reason: str) -> None:
    i, j, k = sizes
    with pytest.raises((SizeOverflow, InvalidSize), match=reason):
        Contraction(einsum_dimensions("ij,jk->ik", [StridedOperand((i, j)), StridedOperand((j, k))]))


def test_strides_beyond_64_bits() -> None:
    far = Dimension("c", "primitive", 3, in0=2**61, out=1)
    with pytest.raises(SizeOverflow, match="in0 needs 4611686018427387905 elements"):
        Contraction([far], main="relu")
    with pytest.raises(InvalidSize, match=r"in0 is 2\*\*16609 or more, must be an integer of 64 bits"):
        Contraction([Dimension("c", "primitive", None, in0=10**5000, out=1)], main="relu")
    assert Contraction([Dimension("c", "primitive", 1, in0=2**61 - 1, out=1)], main="relu").flops is not None
    line = Contraction([Dimension("c", "primitive", None, in0=3, out=1)], main="relu")
    with pytest.raises(SizeOverflow, match="contraction: in0 needs"):
        line.sized([2**60])
