"""A chosen type of sums: exact where sums of the default type would round or wrap, between guard pages.

Operands are numbers whose sums of products are exact in the wider type, so results are compared for equality.
tests/ops/gemm/test_gemm_nests.py interprets the nests for other machines.
"""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from support import ARCH, EXCEPTIONS, FENV, GUARD_PAGES, Array, GuardedMemory, no_flags

import tilewright as tw
from tilewright.errors import InvalidChoice, InvalidScalar, TilewrightError, UnsupportedSums
from tilewright.ops.gemm.kernel import GemmKernel
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.dtype import DType, Kind, integer_range
from tilewright.spec.problem import exact_dtype


class Case(NamedTuple):
    """Element types of A, B, C and the sums, and the layouts of A, B and C."""

    a: str
    b: str
    c: str
    sums: str
    layouts: tuple[str, str, str] = ("strided", "strided", "strided")


#: Every operand that is widened, each kind of result, and each layout that has a nest of its own.
CASES = (
    Case("f32", "f32", "f32", "f64"),
    Case("f32", "f32", "f64", "f64", ("row", "row", "row")),
    Case("f32", "bf16", "f64", "f64", ("row", "col", "row")),
    Case("bf16", "bf16", "f32", "f64", ("row", "row", "row")),
    Case("f16", "f16", "f16", "f64", ("col", "row", "col")),
    Case("f8e4m3", "f8e4m3", "f64", "f64"),
    Case("i8", "i8", "i64", "i64"),
    Case("u8", "i8", "i64", "i64", ("row", "row", "row")),
    Case("i16", "i16", "i64", "i64", ("row", "col", "row")),
    Case("i32", "i32", "i64", "i64"),
    Case("i32", "i32", "i32", "i64", ("col", "col", "col")),
    Case("c64", "c64", "c64", "c128"),
    Case("c64", "c64", "c128", "c128", ("row", "row", "row")),
)
#: Dots, a deep row, few rows streamed, tiles in place, strips, packed panels, no depth, several depth blocks.
SIZES = (
    *((1, 1, 1), (1, 333, 70), (40, 1, 900), (5, 70, 64), (3, 600, 90), (33, 45, 17)),
    *((6, 9, 0), (61, 30, 1500), (90, 100, 150)),
)
#: alpha and beta; the first makes sums of any type here fit a float16.
FACTORS = ((2.0**-40, 0.0), (2.0**-40, 2.0), (0.0, 1.0))
INTEGER_FACTORS = ((1, 0), (3, -2), (0, 1))
GAP = 3


def problem_of(case: Case) -> Gemm:
    a, b, c = case.layouts
    return Gemm(dtype=case.a, b_dtype=case.b, out_dtype=case.c, sums=case.sums, a=a, b=b, c=c)


@cache
def compiled(case: Case) -> GemmKernel:
    kernel = tw.compile(problem_of(case))
    assert isinstance(kernel, GemmKernel)
    return kernel


def spread(random: np.random.Generator, dtype: DType, shape: tuple[int, int]) -> Array:
    """Integers of the whole range; floats far apart, of which the default sums lose the smaller ones."""
    if dtype.is_integer:
        least, most = integer_range(dtype)
        return random.integers(least, most, shape, np.int64, endpoint=True).astype(dtype.numpy)
    if dtype.kind is Kind.COMPLEX:
        found: Array = (drawn(random, 11, 0, shape) + 1j * drawn(random, 11, 0, shape)).astype(dtype.numpy)
        return found
    bits = min(dtype.significand, 11)
    return drawn(random, bits, 5 if dtype.exponent < 8 else 10, shape).astype(dtype.numpy)


def drawn(random: np.random.Generator, bits: int, powers: int, shape: tuple[int, int]) -> Array:
    """Whole numbers of so many bits, times powers of two."""
    whole = random.integers(-(1 << bits - 1), 1 << bits - 1, shape).astype(np.float64)
    if bits == 4:
        whole = np.clip(whole, -7, 7)  # times 2^5 a float8 holds it
    return np.asarray(np.ldexp(whole, random.integers(0, powers + 1, shape)))


@cache
def memory(operand: str) -> GuardedMemory:
    return GuardedMemory(1 << 21)


def steps(shape: tuple[int, int], layout: str, size: int) -> tuple[int, int]:
    rows, columns = shape
    row, column = (1, rows + GAP) if layout == "col" else (columns + GAP, 1)
    twice = 2 if layout == "strided" else 1
    return row * size * twice, column * size * twice


@pytest.mark.skipif(not GUARD_PAGES, reason="no pages can be protected")
@pytest.mark.parametrize(
    "case",
    CASES,
    ids=lambda case: problem_of(case).types.name + "".join(layout[0] for layout in case.layouts),
)
def test_sums_are_exact_between_guard_pages(case: Case) -> None:
    kernel, problem, random = compiled(case), problem_of(case), np.random.default_rng(1)
    types, rounded = problem.types, 0
    exact = exact_dtype(types)
    serious = EXCEPTIONS[ARCH][0] if FENV else 0
    for turn, (m, n, k) in enumerate(SIZES):
        alpha, beta = (INTEGER_FACTORS if types.c.is_integer else FACTORS)[turn % 3]
        a, b = spread(random, types.a, (m, k)), spread(random, types.b, (k, n))
        c = random.integers(-9, 9, (m, n)).astype(types.c.numpy)
        expected = problem.reference(a, b, c, alpha=alpha, beta=beta).astype(types.c.numpy)
        unread = c if beta else np.full_like(c, 77 if types.c.is_integer else np.nan)
        placed = [
            memory(operand.name).place(
                array,
                steps(array.shape, operand.layout.value, operand.dtype.size),
                at_end=turn >> place & 1 == 0,
            )
            for place, (operand, array) in enumerate(zip(problem.operands, (a, b, unread), strict=True))
        ]
        before = memory("c").outside(placed[2])
        with no_flags(serious) if FENV else nullcontext():
            kernel(*placed, alpha=alpha, beta=beta)
        np.testing.assert_array_equal(placed[2], expected)
        assert np.array_equal(memory("c").outside(placed[2]), before), "bytes outside C changed"
        if alpha and k > 1 and not types.is_complex:
            usual = np.int32 if types.a.is_integer else np.float32
            narrow = a.astype(usual) @ b.astype(usual)
            rounded += int(np.count_nonzero(narrow.astype(exact) != a.astype(exact) @ b.astype(exact)))
    assert rounded or types.is_complex or types.a.bits == 8, "sums of the default type are as good"


def test_complex_sums_are_in_double_precision() -> None:
    a = np.array([[2.0**24, 1j, -(2.0**24)]], np.complex64)
    b = np.array([[1], [1j], [1]], np.complex64)
    c = np.empty((1, 1), np.complex64)
    assert compiled(Case("c64", "c64", "c64", "c128"))(a, b, c)[0, 0] == -1
    many = np.full((1, 1 << 13), 2.0**12 + 1j, np.complex64)
    assert tw.matmul(many, many.T, sums="c128", dtype="c128")[0, 0] == (1 << 13) * (
        2.0**24 - 1 + 2.0**13 * 1j
    )


def test_special_values_go_through() -> None:
    kernel = compiled(Case("f32", "f32", "f32", "f64"))
    a, b = np.ones((8, 40), np.float32), np.ones((40, 20), np.float32)
    a[2, 5], a[3, 6], a[4, 7] = np.nan, np.inf, 2.0**100
    b[:, 3] = -0.0
    b[:, 4] = 2.0**100
    c = np.empty((8, 20), np.float32)
    kernel(a, b, c)
    assert np.isnan(c[2]).all()
    assert (c[3, :3] == np.inf).all()
    assert np.isnan(c[3, 3])
    assert c[4, 4] == np.inf  # 2^200 fits the sums and not C
    assert kernel(a, b, c, alpha=2.0**-100)[4, 4] == 2.0**100
    assert (kernel(a[:, :0], b[:0], c) == 0).all()


def test_an_epilogue_computes_in_the_type_of_the_sums() -> None:
    problem = Gemm(sums="f64", epilogue="bias,scale:row,residual,clamp:0:1e300")
    assert {operand.dtype.name for operand in problem.step_operands} == {"f64", "f32"}
    random = np.random.default_rng(3)
    a, b = spread(random, problem.dtype, (9, 50)), spread(random, problem.b_dtype, (50, 21))
    bias, scale = random.integers(-(2**40), 2**40, 21).astype(np.float64), np.full(9, 2.0**-50)
    residual, c = np.full((9, 21), 0.5, np.float32), np.empty((9, 21), np.float32)
    found = tw.compile(problem)(a, b, c, bias=bias, scale=scale, residual=residual)
    exact = np.maximum((a.astype(np.float64) @ b.astype(np.float64) + bias) * 2.0**-50 + 0.5, 0)
    np.testing.assert_array_equal(found, exact.astype(np.float32))


# --- problems ------------------------------------------------------------------------------------------


def test_the_default_sums_are_no_choice() -> None:
    for dtype, sums in (("f32", "f32"), ("bf16", "f32"), ("f64", "f64"), ("i8", "i32"), ("c64", "c64")):
        assert Gemm(dtype=dtype, sums=sums) == Gemm(dtype=dtype)
        assert Gemm(dtype=dtype, sums=sums).sums is None
    assert Gemm(dtype="bf16", sums="f32").types.acc.name == "f32"


def test_a_choice_is_in_the_text_the_name_and_the_header() -> None:
    problem = Gemm(4, 5, 6, sums="f64", epilogue="bias")
    assert repr(problem) == "Gemm(m=4, n=5, k=6, epilogue='bias', sums='f64')"
    assert problem != Gemm(4, 5, 6, epilogue="bias")
    assert problem.with_epilogue(None) == Gemm(4, 5, 6, sums="f64")
    kernel = tw.compile(problem, target="znver5")
    assert kernel.name.startswith("gemm_f32_sums_f64_4x5x6_rrr_with_bias_")
    assert "double alpha" in kernel.header
    assert "sums are kept in f64" in kernel.header
    assert "scalars alpha beta : f64" in kernel.tile_ir
    assert "vfmadd" in kernel.assembly
    assert "pd" in kernel.assembly
    assert "vfmadd231ps" not in kernel.assembly


@pytest.mark.parametrize(
    ("problem", "error", "text"),
    [
        (
            {"sums": "f16"},
            UnsupportedSums,
            "sums of f16 for products f32 x f32: no kernel; supported: f32, f64",
        ),
        ({"dtype": "f64", "sums": "f32"}, UnsupportedSums, "supported: f64"),
        ({"dtype": "i8", "sums": "f32"}, UnsupportedSums, "supported: i32, i64"),
        ({"dtype": "i64", "sums": "i32"}, UnsupportedSums, "supported: i64"),
        ({"dtype": "c64", "sums": "f64"}, UnsupportedSums, "supported: c64, c128"),
        ({"sums": "f64", "b": "packed"}, InvalidChoice, "None where a or b is packed"),
        ({"sums": "double", "out_dtype": "c128"}, TilewrightError, "C of c128"),
    ],
)
def test_types_without_a_kernel_are_refused(
    problem: dict[str, str], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        Gemm(**problem)


def test_alpha_is_of_the_type_of_the_sums() -> None:
    kernel = compiled(Case("i8", "i8", "i64", "i64"))
    one = np.ones((1, 1), np.int8)
    assert kernel(one, one, np.zeros((1, 1), np.int64), alpha=2**40)[0, 0] == 2**40
    with pytest.raises(InvalidScalar):
        kernel(one, one, np.zeros((1, 1), np.int64), alpha=0.5)
