"""Records of contractions: dimensions, and what is refused."""

from __future__ import annotations

import pytest

from tilewright.errors import ContractionDimension, ContractionPrimitive, InvalidChoice
from tilewright.spec.contraction import Contraction, Dimension, Main

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
