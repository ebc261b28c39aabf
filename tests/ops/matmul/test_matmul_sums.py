"""`matmul(..., sums=...)`: results, operands of every form, errors, and repeated calls without Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from repeated_calls import check
from support import LAYOUTS, rough

import tilewright as tw
from tilewright.errors import InvalidChoice, MissingOut, UnsupportedArgument, UnsupportedSums
from tilewright.ops.gemm.kernel import native_kernels

Array = NDArray[Any]


def apart(shape: tuple[int, ...], seed: int) -> Array:
    """Whole numbers of 11 bits times powers of two: float32 loses the small ones, float64 none."""
    random = np.random.default_rng(seed)
    found: Array = np.ldexp(random.integers(-1024, 1024, shape).astype(float), random.integers(0, 11, shape))
    return found.astype(np.float32)


A, B = apart((37, 300), 1), apart((300, 29), 2)
EXACT = A.astype(np.float64) @ B.astype(np.float64)


def test_sums_in_float64_are_rounded_once() -> None:
    found = tw.matmul(A, B, sums="f64")
    np.testing.assert_array_equal(found, EXACT.astype(np.float32), strict=True)
    assert (tw.matmul(A, B) != found).any(), "sums in float32 are as good"


@pytest.mark.parametrize("sums", ["f64", "float64", np.float64, np.dtype(">f8")])
def test_every_spelling(sums: Any) -> None:
    np.testing.assert_array_equal(tw.matmul(A, B, sums=sums), EXACT.astype(np.float32), strict=True)


def test_the_result_has_the_type_that_dtype_or_out_say() -> None:
    np.testing.assert_array_equal(tw.matmul(A, B, sums="f64", dtype=np.float64), EXACT, strict=True)
    out = np.full((37, 29), np.nan)
    assert tw.matmul(A, B, out, sums="f64") is out
    np.testing.assert_array_equal(out, EXACT)
    small = tw.matmul(A, B, sums="f64", dtype=np.float16, alpha=2.0**-40)
    np.testing.assert_array_equal(small, np.ldexp(EXACT, -40).astype(np.float16), strict=True)


def test_the_usual_sums_give_the_usual_bits() -> None:
    a, b = rough((40, 700)), rough((700, 30), seed=1)
    np.testing.assert_array_equal(tw.matmul(a, b, sums="f32"), tw.matmul(a, b), strict=True)
    wide = a.astype(float), b.astype(float)
    np.testing.assert_array_equal(tw.matmul(*wide, sums="f64"), tw.matmul(*wide), strict=True)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_operands_of_any_layout(layout: str) -> None:
    place = LAYOUTS[layout]
    np.testing.assert_array_equal(tw.matmul(place(A), place(B), sums="f64"), EXACT.astype(np.float32))
    np.testing.assert_array_equal(tw.matmul(place(B.T), place(A.T), sums="f64"), EXACT.T.astype(np.float32))
    out = place(np.full((37, 29), np.nan, np.float32))
    tw.matmul(place(A), place(B), out, sums="f64")
    np.testing.assert_array_equal(out, EXACT.astype(np.float32))


def test_vectors_batches_and_empty_products() -> None:
    assert tw.matmul(A[0], B[:, 0], sums="f64") == np.float32(EXACT[0, 0])
    np.testing.assert_array_equal(tw.matmul(A[0], B, sums="f64"), EXACT[0].astype(np.float32), strict=True)
    np.testing.assert_array_equal(tw.matmul(A, B[:, 1], sums="f64"), EXACT[:, 1].astype(np.float32))
    a, b = apart((3, 1, 5, 60), 5), apart((4, 60, 7), 6)
    expected = (a.astype(float) @ b.astype(float)).astype(np.float32)
    np.testing.assert_array_equal(tw.matmul(a, b, sums="f64"), expected, strict=True)
    np.testing.assert_array_equal(tw.matmul(A[:, :0], B[:0], sums="f64"), np.zeros((37, 29), np.float32))
    assert tw.matmul(A[:0], B, sums="f64").shape == (0, 29)


def test_factors_bias_and_activation_are_of_the_type_of_the_sums() -> None:
    bias, c = np.random.default_rng(8).integers(-(2**40), 2**40, 29).astype(float), apart((37, 29), 9)
    out = c.copy()
    tw.matmul(A, B, out, sums="f64", alpha=-1, beta=2, bias=bias, activation="relu")
    np.testing.assert_array_equal(out, np.maximum(2.0 * c - EXACT + bias, 0).astype(np.float32))
    with pytest.raises(MissingOut):
        tw.matmul(A, B, sums="f64", beta=1)


def test_an_out_that_is_an_operand() -> None:
    a = apart((30, 30), 3)
    expected = (a.astype(float) @ a.astype(float)).astype(np.float32)
    assert tw.matmul(a, a, a, sums="f64") is a
    np.testing.assert_array_equal(a, expected)


def test_integers() -> None:
    random = np.random.default_rng(4)
    a, b = random.integers(-(2**31), 2**31, (20, 90)), random.integers(-(2**31), 2**31, (90, 15))
    narrow = a.astype(np.int32), b.astype(np.int32)
    with np.errstate(over="ignore"):
        expected = a @ b
    np.testing.assert_array_equal(tw.matmul(*narrow, sums="i64", dtype=np.int64), expected, strict=True)
    found = tw.matmul(*narrow, sums=np.uint64)
    np.testing.assert_array_equal(found, expected.astype(np.int32), strict=True)
    u, i = (a % 256).astype(np.uint8), (b % 256 - 128).astype(np.int8)
    out = np.empty((20, 15), np.int64)
    np.testing.assert_array_equal(tw.matmul(u, i, out, sums="i64"), u.astype(int) @ i.astype(int))
    big = np.full((1, 1 << 17), 255, np.uint8)  # sums beyond 32 bits
    assert tw.matmul(big, big.T, sums="i64", dtype=np.int64)[0, 0] == 255 * 255 << 17


def test_complex_numbers_also_by_complex_factors() -> None:
    a = np.array([[2.0**24, 1j, -(2.0**24)]], np.complex64)
    b = np.array([[1], [1j], [1]], np.complex64)
    found = tw.matmul(a, b, sums="c128")
    assert found.dtype == np.complex64
    assert found[0, 0] == -1
    assert tw.matmul(a, b, sums="c128", alpha=2j)[0, 0] == -2j


def test_nothing_is_copied_where_the_result_is_wider() -> None:
    said = str(tw.explain(tw.matmul, A, B, sums="f64", dtype=np.float64))
    assert "sums are f64" in said
    assert "copied" not in said


def test_rows_and_batches_keep_their_bits() -> None:
    a, b = rough((3, 50, 900)), rough((900, 40), seed=1)
    whole = tw.matmul(a, b, sums="f64", dtype=np.float64)
    for rows in (1, 3, 9):
        np.testing.assert_array_equal(
            tw.matmul(a[1, :rows], b, sums="f64", dtype=np.float64), whole[1, :rows]
        )
    np.testing.assert_array_equal(tw.matmul(a, b, sums="f64", dtype=np.float64, threads=1), whole)


def test_repeated_calls_run_no_python() -> None:
    a, b, out = rough((12, 40)), rough((40, 9)), np.empty((12, 9))
    check(tw.matmul, a, b, sums="f64")
    check(tw.matmul, a, b, out, sums=np.float64)
    check(tw.matmul, a, b, np.zeros((12, 9), np.float32), sums="f64", alpha=2.0, beta=1.0)
    check(tw.matmul, a[None].repeat(3, 0), b, sums="f64", dtype=np.float64)


def test_calls_that_differ_in_sums_alone_are_told_apart() -> None:
    for _ in range(3):
        usual, wide = tw.matmul(A, B), tw.matmul(A, B, sums="f64")
        same = tw.matmul(A, B, sums="f32")
        assert (usual == same).all()
        assert (usual != wide).any()
    # The entry of plain products finds a kernel by the types of the arrays: none of these may be there.
    assert all(kernel.types.chosen is None for _, kernel in native_kernels())


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"sums": "f16"}, InvalidChoice, "sums is 'f16', must be one of: float32, float64, int32"),
        ({"sums": "double?"}, InvalidChoice, "sums is 'double\\?'"),
        ({"sums": 64}, InvalidChoice, "sums is 64"),
        (
            {"sums": "i64"},
            UnsupportedSums,
            "sums of i64 for products f32 x f32: no kernel; supported: f32, f64",
        ),
        ({"sums": "f32", "dtype": "f64"}, UnsupportedSums, "sums of f32 for products f64 x f64"),
    ],
)
def test_sums_without_a_kernel_are_refused(options: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        tw.matmul(A, B, **options)


def test_packed_and_logical_operands_have_the_usual_sums() -> None:
    packed = tw.pack(B)
    for call in (tw.matmul, lambda *a, **k: tw.explain(tw.matmul, *a, **k)):
        with pytest.raises(UnsupportedArgument, match="omit it with packed operands"):
            call(A, packed, sums="f64")
    with pytest.raises(UnsupportedArgument, match="logical"):
        tw.matmul(A > 0, B > 0, sums="i64")
