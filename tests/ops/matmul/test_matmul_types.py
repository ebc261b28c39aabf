"""`matmul` of every element type against NumPy: promotion, wrap-around, widening, narrowing, determinism."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from shares import looped
from support import Array

import tilewright as tw
from tilewright.calls.repeated import replay
from tilewright.errors import InvalidScalar, OutDtype

INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
FLOATS = ["f2", "f4", "f8", "c8", "c16"]
#: Rows, columns and depths: one of each, tails of every interleave, several blocks of depth (2,100 > kc).
SHAPES = [(1, 1, 1), (1, 37, 8), (37, 1, 9), (5, 7, 3), (33, 40, 65), (3, 50, 2100), (20, 17, 2103)]


def random(shape: tuple[int, ...], dtype: Any, seed: int) -> Array:
    rng, kind = np.random.default_rng(seed), np.dtype(dtype)
    if kind == np.bool_:
        return rng.random(shape) > 0.9
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        return rng.integers(limits.min, limits.max, shape, dtype=kind, endpoint=True)
    values = rng.standard_normal(shape)
    return (values + 1j * rng.standard_normal(shape) if kind.kind == "c" else values).astype(kind)


def wide(a: Array, b: Array) -> tuple[Array, Array]:
    """The product in float64 or complex128, and the sum of the magnitudes of its terms."""
    exact = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
    a, b = a.astype(exact), b.astype(exact)
    return a @ b, np.abs(a) @ np.abs(b)


def assert_close(found: Array, a: Array, b: Array, roundoff: float, of_sums: float) -> None:
    exact, terms = wide(a, b)
    bound = 2 * (a.shape[-1] + 2) * of_sums * terms + roundoff * np.abs(exact) * (1 + 1e-6)
    assert (np.abs(found.astype(exact.dtype) - exact) <= bound + 2.0**-25).all()


@looped("dtype", [*INTEGERS, "?"])
@looped("shape", SHAPES)
def test_integers_are_numpys(dtype: str, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = random((m, k), dtype, 1), random((k, n), dtype, 2)
    for left, right in ((a, b), (np.asfortranarray(a), b), (a, np.asfortranarray(b))):
        found = tw.matmul(left, right)
        expected = np.matmul(a, b)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("left", ["i1", "u1", "i2", "u4"])
@pytest.mark.parametrize("right", ["i1", "u1", "i4"])
def test_mixed_integers_are_promoted(left: str, right: str) -> None:
    a, b = random((19, 45), left, 1), random((45, 21), right, 2)
    found, expected = tw.matmul(a, b), np.matmul(a, b)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("left", ["i1", "u1"])
@pytest.mark.parametrize("right", ["i1", "u1"])
def test_extremes_of_bytes_in_int32(left: str, right: str) -> None:
    """Instructions that saturate sums of two products would show here."""
    for first in (np.iinfo(left).min, np.iinfo(left).max):
        for second in (np.iinfo(right).min, np.iinfo(right).max):
            a, b = np.full((13, 131), first, left), np.full((131, 33), second, right)
            out = np.zeros((13, 33), np.int32)
            tw.matmul(a, b, out=out)
            assert (out == 131 * int(first) * int(second)).all()
            assert (tw.matmul(a, b, dtype=np.int32) == out).all()


@looped("dtype", FLOATS)
@looped("shape", SHAPES)
def test_floats(dtype: str, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = random((m, k), dtype, 1), random((k, n), dtype, 2)
    of_sums = 2.0**-53 if dtype in ("f8", "c16") else 2.0**-24
    roundoff = 2.0**-11 if dtype == "f2" else of_sums
    for left, right in ((a, b), (np.asfortranarray(a), b), (a, np.asfortranarray(b))):
        found = tw.matmul(left, right)
        assert found.dtype == a.dtype
        assert_close(found, a, b, roundoff, of_sums)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bfloat16_and_its_widening(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = random((m, k), ml_dtypes.bfloat16, 1), random((k, n), ml_dtypes.bfloat16, 2)
    assert_close(tw.matmul(a, b), a, b, 2.0**-8, 2.0**-24)
    widened = tw.matmul(a, b, dtype="f32")
    assert widened.dtype == np.float32
    assert_close(widened, a, b, 2.0**-24, 2.0**-24)
    np.testing.assert_array_equal(tw.matmul(a, b, out=np.empty((m, n), np.float32)), widened)


def test_narrowing_rounds_once() -> None:
    a, b = random((9, 2100), "f4", 1), random((2100, 11), "f4", 2)
    single = tw.matmul(a, b)
    np.testing.assert_array_equal(tw.matmul(a, b, dtype=np.float16), single.astype(np.float16))
    bf16 = ml_dtypes.bfloat16
    np.testing.assert_array_equal(tw.matmul(a, b, dtype=bf16), single.astype(bf16))


@pytest.mark.parametrize("dtype", ["f2", "i1", "c8", ml_dtypes.bfloat16])
def test_a_row_does_not_depend_on_the_others(dtype: Any) -> None:
    for k, n in ((64, 300), (1030, 257), (2100, 40)):
        a, b = random((30, k), dtype, 1), random((k, n), dtype, 2)
        whole = tw.matmul(a, b)
        for rows in (1, 2, 5, 8, 13):
            np.testing.assert_array_equal(tw.matmul(a[:rows], b).view("u1"), whole[:rows].view("u1"))


def test_complex_factors() -> None:
    a, b, out = random((5, 6), "c16", 1), random((6, 7), "c16", 2), random((5, 7), "c16", 3)
    expected = 2j * (a @ b) + (1 - 3j) * out
    np.testing.assert_allclose(tw.matmul(a, b, out=out.copy(), alpha=2j, beta=1 - 3j), expected, rtol=1e-13)
    with pytest.raises(InvalidScalar, match="real"):
        tw.matmul(a.real, b.real, alpha=2j)


def test_factors_of_integers() -> None:
    a, b = random((5, 6), "i4", 1), random((6, 7), "i4", 2)
    out = random((5, 7), "i4", 3)
    expected = 3 * np.matmul(a, b) - 2 * out
    np.testing.assert_array_equal(tw.matmul(a, b, out=out.copy(), alpha=3, beta=-2), expected)
    with pytest.raises(InvalidScalar, match="an integer"):
        tw.matmul(a, b, alpha=0.5)


def test_bytes_in_batches_and_vectors() -> None:
    a, b = random((3, 1, 4, 9), "u1", 1), random((2, 9, 5), "i1", 2)
    np.testing.assert_array_equal(tw.matmul(a, b), np.matmul(a, b))
    np.testing.assert_array_equal(tw.matmul(a[0, 0, 0], b[0]), np.matmul(a[0, 0, 0], b[0]))
    np.testing.assert_array_equal(tw.matmul(a[0, 0], b[0, :, 0]), np.matmul(a[0, 0], b[0, :, 0]))


def test_parts_of_complex_elements_apart() -> None:
    """Aligned, but not a whole number of elements from one to the next."""
    records = np.zeros((6, 5), np.dtype([("z", "c8"), ("x", "f4")]))
    records["z"] = random((6, 5), "c8", 1)
    a, b = records["z"], random((5, 4), "c8", 2)
    for _ in range(3):
        np.testing.assert_allclose(tw.matmul(a, b), np.matmul(a, b), rtol=1e-5)


def test_a_narrower_out_of_another_kind_is_refused() -> None:
    with pytest.raises(OutDtype):
        tw.matmul(np.ones((2, 2), "f2"), np.ones((2, 2), "f2"), out=np.ones((2, 2), "i4"))


@pytest.mark.parametrize("most", [2**31 - 1, 3])
@pytest.mark.parametrize(
    "shapes", [((5, 7), (7, 9)), ((7,), (7, 9)), ((5, 7), (7,)), ((2, 1, 5, 7), (3, 7, 4))]
)
def test_truths(monkeypatch: pytest.MonkeyPatch, most: int, shapes: tuple[Any, Any]) -> None:
    """Pairs are counted in 32 bits, or in 64 where there may be more of them."""
    monkeypatch.setattr("tilewright.ops.gemm.call._MOST_PAIRS", most)
    replay().table.clear()
    for seed in range(3):
        a, b = (random(shape, np.bool_, seed + 7 * index) for index, shape in enumerate(shapes))
        found = tw.matmul(a, b)
        assert found.dtype == np.bool_
        np.testing.assert_array_equal(found, np.matmul(a, b))
        np.testing.assert_array_equal(np.asarray(found).view(np.uint8) > 1, False)
    out = np.empty_like(np.matmul(a, b))
    assert tw.matmul(a, b, out) is out
    np.testing.assert_array_equal(out, np.matmul(a, b))
