"""Kernel names: unique, C symbols, and read back into the problem and the row they were written from."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import InvalidChoice, TilewrightError
from tilewright.ir.verify import is_name
from tilewright.machine.isa import ISAS
from tilewright.spec.dtype import GEMM_DTYPES, DType
from tilewright.spec.names import kernel_name, parse_kernel_name
from tilewright.spec.problem import BatchMode, BatchReduceGemm, Gemm, Layout, Strategy
from tilewright.spec.unary import Unary, UnaryOp

DENSE = (Layout.ROW, Layout.COL)
ROWS = [isa.name for isa in ISAS]


def gemms() -> Iterator[Gemm]:
    for (m, n, k), dtype in product(product((None, 0, 64), repeat=3), GEMM_DTYPES):
        for (a, b, c), strategy in product(product(Layout, repeat=3), Strategy):
            yield Gemm(m, n, k, dtype, a=a, b=b, c=c, strategy=strategy)


def batch_reduces() -> Iterator[BatchReduceGemm]:
    sizes = ((1, 1, 1, 1), (64, 48, 64, 16), (16, 6, 1, 1), (1024, 1, 2048, 1024))
    for (m, n, k, count), dtype, beta, batch in product(sizes, GEMM_DTYPES, (0, 1), BatchMode):
        for a, b, c in product(DENSE, repeat=3):
            yield BatchReduceGemm(m, n, k, count, dtype, a=a, b=b, c=c, beta=beta, batch=batch)


def unaries() -> Iterator[Unary]:
    for op, (m, n), b in product(UnaryOp, ((None, None), (64, None), (1, 7)), DENSE):
        yield from (Unary(op, m, n, dtype, b=b) for dtype in GEMM_DTYPES)
    for dtype in ("i8", "i64", "c128"):
        yield Unary("identity", dtype=dtype, a="strided", b="strided")


def test_names_are_unique_symbols_and_read_back() -> None:
    problems: list[Gemm | BatchReduceGemm | Unary] = [*gemms(), *batch_reduces(), *unaries()]
    names = [kernel_name(problem, ROWS[number % len(ROWS)]) for number, problem in enumerate(problems)]
    assert len(set(names)) == len(problems)
    for number, (problem, name) in enumerate(zip(problems, names, strict=True)):
        assert is_name(name), "it is a C symbol too"
        assert parse_kernel_name(name) == (problem, ROWS[number % len(ROWS)])


@given(
    st.tuples(st.integers(1, 1024), st.integers(1, 1024), st.integers(1, 2048), st.integers(1, 1024)),
    st.tuples(*(st.sampled_from(DENSE) for _ in range(3))),
    st.sampled_from(GEMM_DTYPES),
    st.sampled_from((0, 1)),
    st.sampled_from(BatchMode),
    st.sampled_from(ROWS),
)
def test_any_batch_reduce_reads_back(
    sizes: tuple[int, int, int, int],
    layouts: tuple[Layout, Layout, Layout],
    dtype: DType,
    beta: int,
    batch: BatchMode,
    row: str,
) -> None:
    a, b, c = layouts
    problem = BatchReduceGemm(*sizes, dtype, a=a, b=b, c=c, beta=beta, batch=batch)
    assert parse_kernel_name(kernel_name(problem, row)) == (problem, row)


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
    "unary_relu_f32_64x48_cr_avx512": Unary("relu", 64, 48, b="row"),
    "unary_gelu_tanh_f64_mx48_cc_neon": Unary("gelu_tanh", None, 48, "f64"),
    "unary_identity_c128_mxn_ss_avx2": Unary("identity", dtype="c128", a="strided", b="strided"),
}


@pytest.mark.parametrize("name", NAMES)
def test_names_by_hand(name: str) -> None:
    row = name.rpartition("_")[2]
    assert kernel_name(NAMES[name], row) == name
    assert parse_kernel_name(name) == (NAMES[name], row)


def test_names_tell_the_rows_apart() -> None:
    for problem in (Gemm(m=3), BatchReduceGemm(3, 3, 3), Unary("zero", 3, 3)):
        assert len({kernel_name(problem, row) for row in ROWS}) == len(ROWS)


#: What no problem is called, and the class that says so.
NOT_NAMES = [
    "",
    "gemm",
    "gemm_f32_mxnxk_rrr_auto",
    "gemm_f32_mxnxk_rrr_auto_",
    "gemm_f32_nxmxk_rrr_auto_avx2",
    "gemm_f32_mxnxk_rrx_auto_avx2",
    "gemm_f32_mxnxk_rrr_auto_avx2 ",
    "xgemm_f32_mxnxk_rrr_auto_avx2",
    "gemm_f32_mxnxk_rrr_sometimes_avx2",
    "gemm_f16_mxnxk_rrr_auto_avx2",
    "brgemm_f32_mxnxkx1_ccc_avx2",
    "brgemm_f32_8x8x8_ccc_avx2",
    "brgemm_f32_8x8x8x1_css_avx2",
    "brgemm_f32_0x8x8x1_ccc_avx2",
    "brgemm_f32_8x8x2049x1_ccc_avx2",
    "unary_f32_8x8_cc_avx2",
    "unary_sqrt_f32_8x8_cc_avx2",
    "unary_relu_i32_8x8_cc_avx2",
    "unary_relu_f32_nxm_cc_avx2",
    "unary_relu_f32_0x8_cc_avx2",
    "unary_relu_f32_8x8_rc_avx2",
    "unary_relu_f32_8x8_cs_avx2",
]


@pytest.mark.parametrize("name", NOT_NAMES)
def test_what_no_kernel_is_called(name: str) -> None:
    with pytest.raises(TilewrightError):
        parse_kernel_name(name)


@pytest.mark.parametrize(
    "name", [name for name in NOT_NAMES if name[:2] not in ("br", "un") and "f16" not in name]
)
def test_the_refusal_names_what_it_was_given(name: str) -> None:
    with pytest.raises(InvalidChoice) as caught:
        parse_kernel_name(name)
    assert repr(name) in str(caught.value) or "strategy" in str(caught.value)
