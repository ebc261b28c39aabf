"""Batch-reduce problems: their ranges, what is refused and by which class, and their meaning in NumPy."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from shares import looped
from support import filled

import tilewright as tw
from tilewright.errors import InvalidChoice, InvalidSize, UnsupportedDtype
from tilewright.ops.batch_reduce.problem import BatchMode, BatchReduceGemm
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.dtype import F32, F64, I32
from tilewright.spec.problem import Layout, ProductTypes

LIMITS = {"m": 1024, "n": 1024, "k": 2048, "count": 1024}
SIZES: dict[str, Any] = {"m": 5, "n": 6, "k": 7, "count": 2}


def test_defaults() -> None:
    """Those of Breuer, tnzr.compile: column-major, adding to C, a constant stride between matrices."""
    problem = tw.BatchReduceGemm(16, 6, 64)
    assert (problem.m, problem.n, problem.k, problem.count) == (16, 6, 64, 1)
    assert (problem.dtype, problem.beta, problem.batch) == (F32, 1, BatchMode.STRIDE)
    assert (problem.a, problem.b, problem.c) == (Layout.COL,) * 3


def test_words_and_members_say_the_same() -> None:
    words = BatchReduceGemm(5, 6, 7, 2, "f64", a="row", b="col", c="row", beta=0, batch="address")
    row, col = Layout.ROW, Layout.COL
    m, n, k, count = (np.int64(size) for size in (5, 6, 7, 2))
    members = BatchReduceGemm(m, n, k, count, F64, a=row, b=col, c=row, beta=0, batch=BatchMode.ADDRESS)
    assert words == members
    assert hash(words) == hash(members)
    assert [type(getattr(members, name)) for name in SIZES] == [int] * 4
    with pytest.raises(FrozenInstanceError):
        words.m = 3  # type: ignore[misc]


@pytest.mark.parametrize("name", SIZES)
def test_both_ends_of_a_range_are_allowed(name: str) -> None:
    for size in (1, LIMITS[name]):
        assert getattr(BatchReduceGemm(**{**SIZES, name: size}), name) == size


@looped("name", SIZES)
@looped("size", [0, -1, "limit + 1", 2**63, None, 2.5, "8"])
def test_sizes_out_of_range(name: str, size: Any) -> None:
    found = LIMITS[name] + 1 if size == "limit + 1" else size
    with pytest.raises(InvalidSize) as caught:
        BatchReduceGemm(**{**SIZES, name: found})
    assert isinstance(caught.value, ValueError)
    for word in (f"{name} is {found!r}", f"from 1 to {LIMITS[name]}", "tilewright.Gemm"):
        assert word in str(caught.value)


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"dtype": "f9"}, UnsupportedDtype, "dtype f9"),
    ({"dtype": np.uint16}, UnsupportedDtype, "uint16"),
    ({"dtype": object}, UnsupportedDtype, "object"),
    ({"b_dtype": "f33"}, UnsupportedDtype, "f33"),
    ({"b_dtype": "i8"}, UnsupportedDtype, "f32 x i8 .*two floats, two integers or two complex types"),
    ({"b_dtype": "c64"}, UnsupportedDtype, "f32 x c64"),
    ({"out_dtype": "f33"}, UnsupportedDtype, "f33"),
    ({"out_dtype": "f64"}, UnsupportedDtype, "C of f64 for f32 x f32 .*f32 and narrower types"),
    ({"out_dtype": "i32"}, UnsupportedDtype, "C of i32 for f32 x f32"),
    ({"dtype": "i8", "out_dtype": "i64"}, UnsupportedDtype, "C of i64 for i8 x i8 .*i32 and narrower types"),
    ({"dtype": "i8", "out_dtype": "f32"}, UnsupportedDtype, "C of f32 for i8 x i8"),
    ({"dtype": "c64", "out_dtype": "f32"}, UnsupportedDtype, "C of f32 for c64 x c64"),
    ({"dtype": "c64", "out_dtype": "c128"}, UnsupportedDtype, "C of c128 for c64 x c64"),
    ({"a": "strided"}, InvalidChoice, "a is 'strided'"),
    ({"b": Layout.STRIDED}, InvalidChoice, "b is 'strided'"),
    ({"c": "diagonal"}, InvalidChoice, "c is 'diagonal'"),
    ({"c": 1}, InvalidChoice, "c is 1"),
    ({"beta": 2}, InvalidChoice, "beta is 2"),
    ({"beta": 0.5}, InvalidChoice, "beta is 0.5"),
    ({"beta": -1}, InvalidChoice, "beta is -1"),
    ({"beta": None}, InvalidChoice, "beta is None"),
    ({"beta": float("nan")}, InvalidChoice, "beta is nan"),
    ({"batch": "pointer"}, InvalidChoice, "batch is 'pointer'"),
    ({"batch": None}, InvalidChoice, "batch is None"),
    ({"batch": "ahead"}, InvalidChoice, "batch is ahead.* stride, address, where count is not 1"),
]


@looped(("changed", "kind", "words"), WRONG)
def test_what_is_refused(changed: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words) as caught:
        BatchReduceGemm(**SIZES, **changed)
    assert "strided" not in str(caught.value).partition("must be")[2]


def test_operands_and_flops() -> None:
    problem = BatchReduceGemm(5, 6, 7, 2, "f64", a="row", c="row")
    found = [(each.name, each.rows, each.columns, each.layout.value) for each in problem.operands]
    assert found == [("a", 5, 7, "row"), ("b", 7, 6, "col"), ("c", 5, 6, "row")]
    assert {operand.dtype for operand in problem.operands} == {F64}
    assert problem.flops == 2 * 5 * 6 * 7 * 2
    inputs, output = 2 * (5 * 7 + 7 * 6), 5 * 6
    assert problem.bytes == 8 * (inputs + 2 * output), "C is read and written"
    assert BatchReduceGemm(5, 6, 7, 2, "f64", beta=0).bytes == 8 * (inputs + output)


def test_operands_of_several_types() -> None:
    for problem in (
        BatchReduceGemm(5, 6, 7, 2, "u8", b_dtype="i8", out_dtype="i32"),
        Gemm(5, 6, 7, "u8", b_dtype="i8", out_dtype="i32"),
    ):
        assert [str(operand.dtype) for operand in problem.operands] == ["u8", "i8", "i32"]
        assert problem.types == ProductTypes.parse("u8", "i8", "i32")
        assert problem.types.acc is I32
    inputs = 2 * (5 * 7 * 4 + 7 * 6 * 2)
    mixed = BatchReduceGemm(5, 6, 7, 2, "f32", b_dtype="bf16", out_dtype="f16")
    assert mixed.bytes == inputs + 2 * 2 * 5 * 6, "C is read and written"
    assert Gemm(5, 6, 7, "f32", b_dtype="bf16", out_dtype="f16").bytes == inputs // 2 + 2 * 5 * 6


def test_complex_products_are_four_real_ones() -> None:
    for one, other in (("c64", "f32"), ("c128", "f64")):
        assert BatchReduceGemm(5, 6, 7, 2, one).flops == 4 * BatchReduceGemm(5, 6, 7, 2, other).flops
        assert Gemm(5, 6, 7, one).flops == 4 * Gemm(5, 6, 7, other).flops  # type: ignore[operator]


def test_bytes_of_a_gemm() -> None:
    assert Gemm(5, 6, 7, "f64").bytes == 8 * (5 * 7 + 7 * 6 + 5 * 6)
    assert Gemm(5, 6, 0).bytes == 4 * 5 * 6
    for sizes in ((None, 6, 7), (5, None, 7), (5, 6, None)):
        assert Gemm(*sizes).bytes is None


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("beta", [0, 1])
def test_reference(beta: int, count: int) -> None:
    problem = BatchReduceGemm(2, 3, 4, count, beta=beta)
    a, b, c = filled((count, 2, 4), seed=1), filled((count, 4, 3), seed=2), filled((2, 3), seed=3)
    expected = np.zeros((2, 3)) + beta * c
    for i, j, p, number in np.ndindex(2, 3, 4, count):
        expected[i, j] += a[number, i, p] * b[number, p, j]
    found = problem.reference(a, b, c)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(problem.reference(a, b), expected - beta * c)


REFERENCES: dict[str, tuple[Any, Any, Any]] = {
    # A and B with one element each -> their product, added to C of 1.
    "i8": (-128, -128, 16385),
    "i32": (2**31 - 1, 2**31 - 1, (2**31 - 1) ** 2 + 1),
    "i64": (2**62, 6, -(2**63) + 1),  # 64-bit integers wrap around
    "bf16": (1.0078125, 1.0078125, 2.01568603515625),
    "c64": (1 + 2j, 3 - 1j, 6 + 5j),
}


@pytest.mark.parametrize("dtype", REFERENCES)
def test_reference_of_every_kind(dtype: str) -> None:
    a, b, expected = REFERENCES[dtype]
    one = Gemm(dtype=dtype).dtype.numpy
    left, right, c = (np.array([[value]]).astype(one) for value in (a, b, 1))
    found = Gemm(dtype=dtype).reference(left, right, c, beta=1)
    batched = BatchReduceGemm(1, 1, 1, 1, dtype).reference(left[None], right[None], c)
    assert found == batched == expected
    assert found.dtype == batched.dtype
    assert found.dtype == {"i": np.int64, "b": np.float64, "c": np.complex128}[dtype[0]]


def test_types_are_worked_out_once() -> None:
    """Kernels ask for them at each call."""
    for problem in (Gemm(), BatchReduceGemm(1, 1, 1)):
        assert problem.types is problem.types
        assert problem == pickle.loads(pickle.dumps(problem))


def test_reference_does_not_read_c_that_it_replaces() -> None:
    a, b = filled((2, 2, 4), seed=1), filled((2, 4, 3), seed=2)
    found = BatchReduceGemm(2, 3, 4, 2, beta=0).reference(a, b, np.full((2, 3), np.nan, np.float32))
    np.testing.assert_array_equal(found, a[0] @ b[0] + a[1] @ b[1])


def test_reference_sums_in_double_precision() -> None:
    a = np.array([[[1e8, 1.0, -1e8]]], np.float32)
    assert BatchReduceGemm(1, 1, 3).reference(a, np.ones((1, 3, 1), np.float32)) == [[1.0]]
