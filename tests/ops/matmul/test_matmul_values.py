"""Promises 2 and 6: what is never read, NaN and Inf by the formula, and the floating-point environment."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import ctypes
import platform
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from support import ARCH, EXCEPTIONS, FENV, LAYOUTS, Array, filled, host_rows, libm, no_flags, rough
from tiers import pairwise

import tilewright as tw

SIZES = [(1, 1, 1), (3, 5, 2), (13, 33, 9), (37, 100, 30), (70, 150, 1030)]
ROWS = [isa.name for isa in host_rows()]


@cache
def kernel(row: str, strategy: str = "auto", dtype: str = "f32") -> Any:
    problem = tw.Gemm(dtype=dtype, a="strided", b="strided", c="strided", strategy=strategy)
    return tw.compile(problem, tw.machine(row))


each_row = pytest.mark.parametrize("row", ROWS)
STRATEGIES = ("auto", "tiling", "packing")
RESULTS = ("C", "F", "strided")
each_strategy = pytest.mark.parametrize("strategy", STRATEGIES)
each_layout = pytest.mark.parametrize("layout", RESULTS)
each_product = pytest.mark.parametrize(
    ("row", "strategy", "layout", "size"), pairwise(ROWS, STRATEGIES, RESULTS, SIZES)
)


# --- promise 2 -----------------------------------------------------------------------------------


@each_product
def test_beta_zero_does_not_read_c(row: str, strategy: str, layout: str, size: tuple[int, int, int]) -> None:
    m, n, k = size
    a, b = filled((m, k), seed=1), filled((k, n), seed=2)
    for content in (np.nan, np.inf):
        c = LAYOUTS[layout](np.full((m, n), content, np.float32))
        kernel(row, strategy)(a, b, c)
        assert np.array_equal(c, a @ b)
        c[...] = content
        kernel(row, strategy)(a, b, c, beta=-0.0)
        assert np.array_equal(c, a @ b)


@each_product
def test_alpha_zero_does_not_read_a_and_b(
    row: str, strategy: str, layout: str, size: tuple[int, int, int]
) -> None:
    m, n, k = size
    a, b, content = np.full((m, k), np.nan, np.float32), np.full((k, n), np.inf, np.float32), filled((m, n))
    for alpha in (0.0, -0.0):
        for beta in (0.0, 1.0, -0.5):
            c = LAYOUTS[layout](content if beta else np.full_like(content, np.nan))
            kernel(row, strategy)(a, b, c, alpha=alpha, beta=beta)
            assert np.array_equal(c, beta * content if beta else np.zeros_like(content))


@pytest.mark.parametrize(
    ("row", "strategy", "layout", "alpha"),
    pairwise(ROWS, STRATEGIES, RESULTS, [1.0, 0.0, np.inf, -np.inf, np.nan]),
)
def test_no_depth_gives_beta_c(row: str, strategy: str, layout: str, alpha: float) -> None:
    for m, n in ((1, 1), (3, 5), (13, 33), (37, 100)):
        a, b, content = np.empty((m, 0), np.float32), np.empty((0, n), np.float32), filled((m, n))
        for beta in (0.0, 1.0, 0.5):
            c = LAYOUTS[layout](content if beta else np.full_like(content, np.nan))
            kernel(row, strategy)(a, b, c, alpha=alpha, beta=beta)
            assert np.array_equal(c, beta * content)


def test_the_same_through_matmul() -> None:
    a, b, c = filled((13, 9), seed=1), filled((9, 33), seed=2), filled((13, 33), seed=3)
    nan = np.full_like(c, np.nan)
    assert np.array_equal(tw.matmul(a, b, out=nan.copy(), beta=0, alpha=2), 2 * (a @ b))
    assert np.array_equal(tw.matmul(a * np.nan, b * np.nan, alpha=0), np.zeros_like(c))
    assert np.array_equal(tw.matmul(a * np.nan, b, out=c.copy(), alpha=0, beta=3), 3 * c)
    assert np.array_equal(tw.matmul(a[:, :0], b[:0], out=c.copy(), alpha=np.inf, beta=0.5), 0.5 * c)
    assert np.array_equal(tw.matmul(a[:, :0], b[:0], out=nan.copy()), np.zeros_like(c))


@pytest.mark.parametrize(
    ("row", "strategy", "content", "position"),
    pairwise(ROWS, STRATEGIES, [np.nan, np.inf, -np.inf], [0, 5, 31, 32, -1]),
)
def test_nan_and_inf_propagate(row: str, strategy: str, content: float, position: int) -> None:
    """Masks and values equal NumPy's, one special value at a time, also at tile edges."""
    m, n, k = 37, 71, 33
    with np.errstate(invalid="ignore"):
        for where in range(3):
            arrays = [filled((m, k), seed=1), filled((k, n), seed=2), filled((m, n), seed=3)]
            arrays[where][position, position] = content
            a, b, c = arrays
            expected = a @ b + 2 * c
            out = c.copy()
            kernel(row, strategy)(a, b, out, beta=2)
            assert np.array_equal(out, expected, equal_nan=True)
            if where < 2:
                assert np.array_equal(tw.matmul(a, b), a @ b, equal_nan=True)


@each_row
@each_layout
def test_special_scalars(row: str, layout: str) -> None:
    """NaN and Inf as alpha and beta: the formula, no shortcut."""
    a, b, content = filled((13, 9), seed=1), filled((9, 35), seed=2), filled((13, 35), seed=3)
    with np.errstate(invalid="ignore"):
        for alpha, beta in ((np.nan, 0.0), (1.0, np.nan), (np.inf, 1.0), (1.0, -np.inf)):
            c = LAYOUTS[layout](content)
            kernel(row)(a, b, c, alpha=alpha, beta=beta)
            expected: Array = np.float32(alpha) * (a @ b)
            if beta != 0:
                expected = expected + np.float32(beta) * content
            assert np.array_equal(c, expected, equal_nan=True)


# --- promise 6 -----------------------------------------------------------------------------------

needs_fenv = pytest.mark.skipif(not FENV, reason="the C library's fenv.h is not known here")
#: glibc's fenv_t on x86-64 ends with MXCSR; its low six bits are the flags.
MXCSR_OFFSET, MXCSR_FLAGS = 28, 0x3F

ODD_SIZES = [(1, 1, 1), (1, 17, 3), (13, 33, 9), (37, 71, 30), (5, 3, 600), (129, 150, 130)]


@needs_fenv
@pytest.mark.parametrize(
    ("row", "strategy", "dtype", "layout"), pairwise(ROWS, STRATEGIES, ["f32", "f64"], RESULTS)
)
def test_no_flags_from_ordinary_values(row: str, strategy: str, layout: str, dtype: str) -> None:
    code = kernel(row, strategy, dtype)
    for m, n, k in ODD_SIZES:
        kind = code.problem.dtype.numpy
        a, b, c = rough((m, k), kind, 1), rough((k, n), kind, 2), LAYOUTS[layout](rough((m, n), kind, 3))
        with no_flags():
            code(a, b, c)
        with no_flags():
            code(a, b, c, alpha=0.5, beta=-2)
        with no_flags():
            tw.matmul(a, b, c)


@needs_fenv
@pytest.mark.parametrize(
    ("row", "strategy", "dtype", "where"), pairwise(ROWS, STRATEGIES, ["f32", "f64"], ["a", "b", "c"])
)
def test_no_flags_from_infinities_that_meet_no_zero(row: str, strategy: str, dtype: str, where: str) -> None:
    """Inf times a positive number is no exception; Inf times the zero of a padding lane would be one."""
    code = kernel(row, strategy, dtype)
    kind = code.problem.dtype.numpy
    for (m, n, k), orders in product(ODD_SIZES, product("CF", repeat=3)):
        shapes = ((m, k), (k, n), (m, n))
        arrays = {name: abs(rough(shape, kind)) + 1 for name, shape in zip("abc", shapes, strict=True)}
        arrays[where][...] = np.inf
        a, b, c = (np.array(array, order=order) for array, order in zip(arrays.values(), orders, strict=True))  # type: ignore[call-overload]
        with no_flags():
            code(a, b, c, beta=2)
        assert np.isposinf(c).all()


@needs_fenv
@each_row
@pytest.mark.parametrize("strategy", ["tiling", "packing"])
def test_no_flags_from_what_an_earlier_call_left(row: str, strategy: str) -> None:
    """Padding lanes are written anew: old elements of both panels would overflow where they meet."""
    code = kernel(row, strategy)
    for of_a, of_b in ((3e38, 1e-30), (1e-30, 3e38)):
        a, b = np.full((70, 90), of_a, np.float32), np.full((90, 150), of_b, np.float32, order="F")
        code(a, b, np.empty((70, 150), np.float32))
    for (m, n, k), orders in product(ODD_SIZES, product("CF", repeat=2)):
        a, b = (
            np.ones(shape, np.float32, order=order)  # type: ignore[call-overload]
            for shape, order in zip(((m, k), (k, n)), orders, strict=True)
        )
        c = np.empty((m, n), np.float32)
        with no_flags():
            code(a, b, c)
        assert (c == k).all()


@needs_fenv
def test_an_exception_is_seen() -> None:
    """The instrument itself: Inf times 0 raises the invalid flag."""
    a, b = np.full((3, 3), np.inf, np.float32), np.zeros((3, 3), np.float32)
    with pytest.raises(AssertionError, match="were raised"), no_flags(EXCEPTIONS[ARCH][0]):
        kernel(ROWS[0])(a, b, np.empty_like(a))


def control_word() -> int:
    """MXCSR without its flags."""
    environment = (ctypes.c_uint8 * 64)()
    libm().fegetenv(environment)
    word = int.from_bytes(bytes(environment)[MXCSR_OFFSET : MXCSR_OFFSET + 4], "little")
    return word & ~MXCSR_FLAGS


@pytest.mark.skipif(ARCH != "x86_64" or platform.libc_ver()[0] != "glibc", reason="reads glibc's fenv_t")
def test_control_word_is_left_as_found() -> None:
    before = control_word()
    assert before == 0x1F80  # round to nearest, no FTZ, no DAZ, all exceptions masked
    a = rough((200, 200))
    tw.matmul(a, a)
    assert control_word() == before


@pytest.mark.parametrize(("row", "strategy", "dtype"), pairwise(ROWS, STRATEGIES, ["f32", "f64"]))
def test_subnormals_are_kept(row: str, strategy: str, dtype: str) -> None:
    code, small = kernel(row, strategy, dtype), {"f32": 2.0**-140, "f64": 2.0**-1060}[dtype]
    kind = code.problem.dtype.numpy
    a: Array = filled((13, 9), kind, 1)
    b = filled((9, 35), kind, 2)
    tiny = a * np.asarray(small, kind)
    half = np.asarray(np.sqrt(small), kind)
    c = np.empty((13, 35), kind)
    expected = (a @ b) * np.asarray(small, kind)
    assert np.count_nonzero(expected)
    code(tiny, b, c)  # a subnormal operand
    assert np.array_equal(c, expected)
    code(a * half, b * half, c)  # a subnormal product
    assert np.array_equal(c, expected)
    code(a, b, c, alpha=small)
    assert np.array_equal(c, expected)
    code(a, b, c, alpha=0, beta=1)
    assert np.array_equal(c, expected)


@pytest.mark.parametrize(("dtype", "small"), [(np.float32, 2.0**-140), (np.float64, 2.0**-1060)])
def test_matmul_keeps_subnormals(dtype: type, small: float) -> None:
    a, b = filled((13, 9), dtype, 1), filled((9, 35), dtype, 2)
    assert np.array_equal(tw.matmul(a * dtype(small), b), (a @ b) * dtype(small))
