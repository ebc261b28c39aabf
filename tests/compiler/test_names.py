"""Kernel names: one for each problem and row, and C symbols."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import product

import pytest
from shares import looped

from tilewright.compiler.operation import Problem, kernel_name
from tilewright.errors import UnsupportedDtype
from tilewright.ir.verify import is_name
from tilewright.machine.isa_rows import ISAS
from tilewright.ops.batch_reduce.problem import BatchMode, BatchReduceGemm
from tilewright.ops.binary.problem import BinaryFunction
from tilewright.ops.chain.problem import LinearChain
from tilewright.ops.elementwise.problem import Elementwise
from tilewright.ops.embedding.problem import TABLE_DTYPES, Embedding
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.mmt4d.problem import Mmt4d
from tilewright.ops.packing.problem import Packing
from tilewright.ops.rotary.problem import Rotary
from tilewright.ops.rows.problem import RowFunction
from tilewright.ops.sum_of_products.problem import SUM_DTYPES, SumOfProducts, Walk
from tilewright.ops.triangular.syr2k_problem import Syr2k, Syrk
from tilewright.ops.triangular.trmm_problem import Side, Trmm
from tilewright.ops.unary.problem import Unary
from tilewright.spec.binary_functions import BinaryOp
from tilewright.spec.dtype import BF16, F32, FUNCTION_DTYPES, GEMM_DTYPES
from tilewright.spec.epilogue import ACTIVATIONS
from tilewright.spec.functions import UnaryOp
from tilewright.spec.problem import STRIDED_LAYOUTS, Layout, ProductTypes, Role, Strategy
from tilewright.spec.rotary import Pairing
from tilewright.spec.row_functions import RowOp
from tilewright.spec.weights import Weights

DENSE = (Layout.ROW, Layout.COL)
ROWS = [isa.name for isa in ISAS]


def triples() -> Iterator[ProductTypes]:
    """Every combination of element types that a product has."""
    for a, b, c in product(GEMM_DTYPES, repeat=3):
        with suppress(UnsupportedDtype):
            yield ProductTypes.parse(a, b, c)


def gemms() -> Iterator[Gemm]:
    for (m, n, k), dtype in product(product((None, 0, 64), repeat=3), (F32, BF16)):
        for (a, b, c), strategy in product(product(Layout, repeat=3), Strategy):
            if c is Layout.COL and Layout.PACKED in (a, b):
                continue
            yield Gemm(m, n, k, dtype, a=a, b=b, c=c, strategy=strategy)
    for types in triples():
        if not (types.uniform and types.a == F32) and types != ProductTypes.parse(BF16):
            yield Gemm(dtype=types.a, b_dtype=types.b, out_dtype=types.c)


def batch_reduces() -> Iterator[BatchReduceGemm]:
    sizes = ((1, 1, 1, 1), (64, 48, 64, 16), (16, 6, 1, 1), (1024, 1, 2048, 1024))
    for (m, n, k, count), dtype, beta, batch in product(sizes, (F32, BF16), (0, 1), BatchMode):
        if batch is BatchMode.AHEAD and count > 1:  # it is of one product
            continue
        for a, b, c in product(DENSE, repeat=3):
            yield BatchReduceGemm(m, n, k, count, dtype, a=a, b=b, c=c, beta=beta, batch=batch)
    for types in triples():
        yield BatchReduceGemm(7, 7, 7, 7, types.a, b_dtype=types.b, out_dtype=types.c)


def unaries() -> Iterator[Unary]:
    for op, (m, n), b in product(UnaryOp, ((None, None), (64, None), (1, 7)), DENSE):
        yield from (Unary(op, m, n, dtype, b=b) for dtype in FUNCTION_DTYPES)
    for dtype in ("i8", "i64", "c128"):
        yield Unary("identity", dtype=dtype, a="strided", b="strided")


def packings() -> Iterator[Packing]:
    for role, dtype, other in product(Role, GEMM_DTYPES, GEMM_DTYPES):
        with suppress(UnsupportedDtype):
            yield Packing(role, dtype, other)


def mmt4ds() -> Iterator[Mmt4d]:
    for counts, tiles in product(product((None, 0, 64), repeat=3), ((1, 2, 3), (16, 16, 1))):
        m1, n1, k1 = counts
        yield Mmt4d(*tiles, "u8", b_dtype="i8", m1=m1, n1=n1, k1=k1)


def chains() -> Iterator[LinearChain]:
    for sizes, bias in product(((3, 4), (64, 256, 64), (5, 6, 7, 8)), (False, True)):
        for ops in product((None, "relu", "gelu_tanh"), repeat=len(sizes) - 1):
            yield LinearChain(sizes, ops, "bf16" if bias else "f32", bias=bias)


def row_functions() -> Iterator[RowFunction]:
    for op, dtype, layout in product(RowOp, FUNCTION_DTYPES, DENSE):
        yield RowFunction(op, dtype, layout=layout)
        if op.is_norm:
            yield RowFunction(op, dtype, layout=layout, weight="f32")
    yield RowFunction("layer_norm", "bf16", weight="f32", bias="bf16")
    yield RowFunction("layer_norm", bias="f32")


def elementwise() -> Iterator[Elementwise]:
    for op, dtype in product(UnaryOp, FUNCTION_DTYPES):
        if op.computes:
            yield Elementwise(op, dtype)


def binary() -> Iterator[BinaryFunction]:
    for op, dtype, activation in product(BinaryOp, FUNCTION_DTYPES, (None, *ACTIVATIONS)):
        yield BinaryFunction(op, dtype, activation)


def rotary() -> Iterator[Rotary]:
    for dtype, tables, pairing in product(FUNCTION_DTYPES, FUNCTION_DTYPES, Pairing):
        yield Rotary(dtype, tables, pairing)


def embeddings() -> Iterator[Embedding]:
    for dtype, scaled in product(TABLE_DTYPES, (False, True)):
        yield Embedding(dtype, scaled)


def symmetric() -> Iterator[Syrk]:
    for (n, k), lower, c in product(((None, None), (64, None), (0, 7)), (True, False), STRIDED_LAYOUTS):
        yield Syrk(n, k, "bf16", a="col", c=c, out_dtype="f32", lower=lower)
        yield from (Syr2k(n, k, dtype, b=b, c=c, lower=lower) for dtype in ("f32", "c64") for b in DENSE)


def sums_of_products() -> Iterator[SumOfProducts]:
    for walk, dtype in product(Walk, SUM_DTYPES):
        yield from (SumOfProducts(walk, factors, dtype) for factors in walk.factors)


def trmms() -> Iterator[Trmm]:
    for (m, n), side, lower, unit in product(((None, 7), (64, None)), Side, (True, False), (True, False)):
        for b, c in product(STRIDED_LAYOUTS, DENSE):
            yield Trmm(m, n, "f16", b=b, c=c, side=side, lower=lower, unit=unit)
        yield Trmm(m, n, "i8", out_dtype="i32", side=side, lower=lower, unit=unit)


def test_names_are_unique_symbols() -> None:
    problems: list[Problem] = [
        *gemms(),
        *batch_reduces(),
        *unaries(),
        *packings(),
        *mmt4ds(),
        *chains(),
        *row_functions(),
        *elementwise(),
        *binary(),
        *rotary(),
        *embeddings(),
        *symmetric(),
        *sums_of_products(),
        *trmms(),
    ]
    names = [kernel_name(problem, ROWS[number % len(ROWS)]) for number, problem in enumerate(problems)]
    assert len(set(names)) == len(problems)
    assert [name for name in names if not is_name(name)] == [], "they are C symbols too"


NAMES: dict[str, Gemm | BatchReduceGemm | Unary] = {
    "gemm_f32_mxnxk_rrr_auto_avx2": Gemm(),
    "gemm_f32_3xnxk_rrr_auto_neon": Gemm(m=3),
    "gemm_f64_64x0xk_rcs_packing_avx512": Gemm(64, 0, None, "f64", b="col", c="strided", strategy="packing"),
    "brgemm_f32_64x48x64x16_ccc_avx512": BatchReduceGemm(64, 48, 64, 16),
    "brgemm_f64_5x6x7x1_rcr_replace_neon": BatchReduceGemm(5, 6, 7, 1, "f64", a="row", c="row", beta=0),
    "brgemm_f32_5x6x7x2_ccc_address_avx2": BatchReduceGemm(5, 6, 7, 2, batch="address"),
    "brgemm_f32_5x6x7x2_crc_replace_address_generic128": BatchReduceGemm(
        5, 6, 7, 2, b="row", beta=0, batch="address"
    ),
    "gemm_bf16_mxnxk_rrr_auto_avx512": Gemm(dtype="bf16", out_dtype="bf16"),
    "gemm_bf16f32_mxnxk_rrr_auto_avx512": Gemm(dtype="bf16", b_dtype="bf16", out_dtype="f32"),
    "gemm_f32bf16f32_mxnxk_rrr_auto_avx512": Gemm(b_dtype="bf16"),
    "gemm_u8i8i32_mx3xk_rcr_auto_avx2": Gemm(n=3, dtype="u8", b_dtype="i8", b="col"),
    "gemm_c64c128c128_mxnxk_rrr_auto_neon": Gemm(dtype="c64", b_dtype="c128"),
    "brgemm_i8i32_5x6x7x1_ccc_avx2": BatchReduceGemm(5, 6, 7, 1, "i8", out_dtype="i32"),
    "unary_relu_f32_64x48_cr_avx512": Unary("relu", 64, 48, b="row"),
    "unary_gelu_tanh_f64_mx48_cc_neon": Unary("gelu_tanh", None, 48, "f64"),
    "unary_identity_c128_mxn_ss_avx2": Unary("identity", dtype="c128", a="strided", b="strided"),
}


@looped("name", NAMES)
def test_names_by_hand(name: str) -> None:
    row = name.rpartition("_")[2]
    assert kernel_name(NAMES[name], row) == name


def test_names_tell_the_rows_apart() -> None:
    for problem in (Gemm(m=3), BatchReduceGemm(3, 3, 3), Unary("zero", 3, 3)):
        assert len({kernel_name(problem, row) for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("form", ["bf16", "f16", "i8", "i4g64", "i8g128z", "i4z"])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_names_of_products_with_weights(form: str, dtype: str) -> None:
    problem = Gemm(dtype=dtype, weights=Weights.parse(form), epilogue="bias,gelu", out_dtype="f32")
    expected = f"gemm_{problem.types.name}_mxnxk_rpr_{form}_with_bias_then_gelu_auto_avx2"
    assert kernel_name(problem, "avx2") == expected
