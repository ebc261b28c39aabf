"""Results of a type that does not hold the operands: computed in a type that does, rounded once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from shares import looped
from support import Array

import tilewright as tw
from tilewright.calls.promotion import common_dtype, narrowed, same_kind, store
from tilewright.errors import NoCommonDtype, UnsafeCast, UnsupportedDtype

BF16, I4, U4 = (np.dtype(kind) for kind in (ml_dtypes.bfloat16, ml_dtypes.int4, ml_dtypes.uint4))

#: Types of both operands and of the result, which none of them is wide enough for.
NARROWED: list[tuple[Any, Any, Any]] = [
    ("f8", "f8", BF16),
    ("f8", "f4", "f2"),
    ("f4", BF16, BF16),
    (BF16, "f4", "f2"),
    ("f8", "i2", "f4"),
    ("u2", "u2", BF16),
    ("i8", "f2", BF16),
    ("i4", "f4", "f2"),
    ("i4", "i4", "f4"),
    ("c16", "c8", "c8"),
    ("f8", "c8", "c8"),
    (BF16, "f2", "f2"),
    (BF16, "u2", BF16),
]

#: Bits of operands so few that sums in the wide type are exact; more than the narrow result has.
_BITS = {"f8": 18, "f4": 9, "f2": 8, "c16": 17, "c8": 8}


def operand(kind: Any, shape: tuple[int, ...], seed: int) -> Array:
    """Numbers of few bits, by which sums are exact."""
    rng, dtype = np.random.default_rng(seed), np.dtype(kind)
    if dtype.kind in "iu":
        return rng.integers(0 if dtype.kind == "u" else -511, 512, shape).astype(dtype)
    most = 1 << (7 if dtype == BF16 else _BITS[dtype.str[1:]])
    parts = rng.integers(-most, most, (2, *shape)) * 0.125
    found: Array = (parts[0] + 1j * parts[1] if dtype.kind == "c" else parts[0]).astype(dtype)
    return found


def exactly(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def once(exact: Array, kind: Any) -> Array:
    """float64 values rounded once, by arithmetic: NumPy goes to bfloat16 by way of float32."""
    dtype = np.dtype(kind)
    if dtype.kind == "c":
        return exact.astype(dtype)
    info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    _, exponent = np.frexp(exact)
    unit = np.maximum(exponent - info.nmant - 1, info.minexp - info.nmant)
    with np.errstate(over="ignore"):
        found: Array = np.ldexp(np.rint(np.ldexp(exact, -unit)), unit).astype(dtype)
    return found


def chain(a: Array, b: Array, dtype: Any) -> Array:
    signs = np.ones(b.shape[-1], a.dtype)
    found: Array = tw.einsum("ij,jk,k->i", a, b, signs, dtype=dtype, casting="unsafe")
    return found


Function = Callable[[Array, Array, Any], Any]

#: Each function beside its meaning: shapes of both operands, and what of them.
FUNCTIONS: dict[str, tuple[Function, tuple[Any, Any], Callable[[Array, Array], Array]]] = {
    "dtype": (lambda a, b, t: tw.matmul(a, b, dtype=t), ((5, 6), (6, 9)), np.matmul),
    "out": (lambda a, b, t: tw.matmul(a, b, np.empty((5, 9), t)), ((5, 6), (6, 9)), np.matmul),
    "batch": (lambda a, b, t: tw.matmul(a, b, dtype=t), ((3, 5, 6), (3, 6, 9)), np.matmul),
    "vector": (lambda a, b, t: tw.matvec(a, b, dtype=t), ((5, 6), (6,)), np.matmul),
    "einsum": (
        lambda a, b, t: tw.einsum("ij,jk->ki", a, b, dtype=t, casting="unsafe"),
        ((5, 6), (6, 9)),
        lambda a, b: (a @ b).T,
    ),
    "elements": (
        lambda a, b, t: tw.einsum("ij,ij->ij", a, b, dtype=t, casting="unsafe"),
        ((90, 60), (90, 60)),
        np.multiply,
    ),
    "sums": (
        lambda a, b, t: tw.einsum("ij,ik->i", a, b, dtype=t, casting="unsafe"),
        ((7, 3), (7, 2)),
        lambda a, b: a.sum(1) * b.sum(1),
    ),
    "chain": (chain, ((4, 3), (3, 5)), lambda a, b: (a @ b).sum(-1)),
    "linear": (
        lambda a, b, t: tw.linear(a, b, out=np.empty((5, 9), t)),
        ((5, 6), (9, 6)),
        lambda a, b: a @ b.T,
    ),
}


@looped("function", FUNCTIONS)
@looped(("left", "right", "result"), NARROWED)
def test_results_are_rounded_once(left: Any, right: Any, result: Any, function: str) -> None:
    call, shapes, meaning = FUNCTIONS[function]
    a, b = operand(left, shapes[0], 1), operand(right, shapes[1], 2)
    found = call(a, b, np.dtype(result))
    assert found.dtype == result
    expected = once(meaning(exactly(a), exactly(b)), result)
    np.testing.assert_array_equal(exactly(found), exactly(expected))


def test_factors_are_not_rounded_to_a_narrow_result() -> None:
    """int32 times float32 into float16: 70000 alone is infinite there."""
    a, b = np.full((1, 1), 70000, np.int32), np.full((1, 1), 1e-3, np.float32)
    assert tw.matmul(a, b, dtype=np.float16)[0, 0] == np.float16(70)
    out = np.zeros((1, 1), np.float16)
    assert tw.matmul(a, b, out)[0, 0] == tw.einsum("ij,jk", a, b, out=out, casting="unsafe")[0, 0] == 70


@pytest.mark.parametrize("alpha", [2, 2j])
def test_out_is_read_in_its_type_and_added_in_the_wide_one(alpha: complex) -> None:
    kind = "c16" if isinstance(alpha, complex) else "f8"
    a, b = operand(kind, (5, 6), 1), operand(kind, (6, 9), 2)
    narrow = np.dtype("c8" if isinstance(alpha, complex) else BF16)
    out = operand(narrow, (5, 9), 3)
    expected = alpha * (a @ b) + 3 * exactly(out)
    tw.matmul(a, b, out, alpha=alpha, beta=3)
    np.testing.assert_array_equal(exactly(out), exactly(once(expected, narrow)))


@pytest.mark.parametrize("function", ["syrk", "syr2k", "trmm"])
def test_triangles_into_a_narrow_out(function: str) -> None:
    a = operand("f8", (6, 6), 1)
    out = np.zeros((6, 6), BF16)
    products = {"syrk": (a,), "syr2k": (a, a), "trmm": (np.tril(a), a)}[function]
    getattr(tw, function)(*products, out)
    exact = {"syrk": np.tril(a @ a.T), "syr2k": 2 * np.tril(a @ a.T), "trmm": np.tril(a) @ a}[function]
    np.testing.assert_array_equal(exactly(out), exactly(once(exact, BF16)))


def test_bias_and_activation_of_wide_sums() -> None:
    a, b, bias = operand("f8", (5, 6), 1), operand("f4", (6, 9), 2), operand("f8", (9,), 3)
    found = tw.matmul(a, b, dtype=BF16, bias=bias, activation="relu")
    np.testing.assert_array_equal(exactly(found), exactly(once(np.maximum(a @ exactly(b) + bias, 0), BF16)))


def test_a_packed_operand_is_not_rounded_to_a_narrow_result() -> None:
    a, b = operand(BF16, (5, 6), 1), operand("f4", (6, 9), 2)
    found = tw.matmul(a, tw.pack(b), dtype=BF16)
    np.testing.assert_array_equal(exactly(found), exactly(once(exactly(a) @ exactly(b), BF16)))


# --- einsum of 16-bit floats ----------------------------------------------------------------------


def _terms(text: str, dtype: Any) -> list[Array]:
    rng, size = np.random.default_rng(3), {"i": 64, "j": 6, "k": 5}
    return [
        rng.standard_normal([size[label] for label in labels]).astype(dtype)
        for labels in text.split("->", maxsplit=1)[0].split(",")
    ]


@looped("dtype", [np.dtype(np.float16), BF16])
@looped("optimize", ["auto", False])
@looped("text", ["i,i,i->i", "ij,ik->i", "ij,ik,i->i", "ij,jk,k->i", "i,j,k->ijk", "ij->i"])
def test_steps_of_16_bit_floats_are_rounded_at_the_end(text: str, optimize: Any, dtype: Any) -> None:
    """Within float32's error of one rounding: a second rounding would be off by half a unit more."""
    arrays = _terms(text, dtype)
    wide = [array.astype(np.float64) for array in arrays]
    exact = np.einsum(text, *wide)
    terms = np.einsum(text, *map(np.abs, wide))
    shapes = [array.shape for array in arrays]
    compiled = tw.compile_einsum(text, *shapes, dtype=dtype, optimize=optimize)
    for found in (tw.einsum(text, *arrays, optimize=optimize), compiled(*arrays)):
        assert found.dtype == dtype
        unit = np.spacing(np.abs(exactly(found)).astype(np.float32)) * 2.0 ** (
            13 if dtype == np.float16 else 16
        )
        assert (np.abs(exactly(found) - exact) <= 0.5 * unit + 2.0**-20 * terms + 2.0**-25).all()


def test_asked_float64_is_not_taken_for_nothing() -> None:
    """NumPy says that numpy.dtype("f8") == None."""
    a = np.random.default_rng(0).standard_normal((90, 60)).astype(np.float32)
    for text in ("ij,ij->i", "ij,ij->ij", "ij->i", "ij->ji"):
        arrays = (a,) * (1 + text.count(","))
        found = tw.einsum(text, *arrays, dtype=np.dtype(np.float64))
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, np.einsum(text, *arrays, dtype="f8"), rtol=1e-12, atol=1e-12)


# --- integers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("left", ["u1", "u2", "u4", "u8", U4])
def test_relu_of_unsigned_sums_changes_nothing(left: Any) -> None:
    a = np.arange(6).reshape(2, 3).astype(left)
    b = np.full((3, 4), 15).astype(left)
    plain = tw.matmul(a, b)
    assert tw.matmul(a, b, activation="relu").tobytes() == plain.tobytes()
    if left == "u1":
        assert tw.matmul(a, tw.pack(b), activation="relu").tobytes() == plain.tobytes()


@pytest.mark.parametrize(
    ("left", "right", "result"), [("u2", "u2", "i2"), ("u4", "i4", "i1"), ("u2", "i2", "i2")]
)
def test_relu_sees_the_sign_of_whole_sums(left: str, right: str, result: str) -> None:
    """Not that of sums which are cut to the result's bits already."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 60000, (5, 1)).astype(left)
    b = rng.integers(-20000 if right[0] == "i" else 0, 20000, (1, 7)).astype(right)
    exact = np.maximum(a.astype(np.int64) @ b.astype(np.int64), 0)
    np.testing.assert_array_equal(tw.matmul(a, b, dtype=result, activation="relu"), exact.astype(result))


def test_logical_operands_with_an_out_of_numbers() -> None:
    a, b = np.array([[True, True]]), np.array([[True], [True]])
    out = np.ones((1, 1), np.int16)
    assert tw.matmul(a, b, out, alpha=3, beta=1)[0, 0] == 7


# --- types without a common one -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "wanted"),
    [
        (BF16, "f2", "f4"),
        (I4, U4, "i1"),
        (BF16, "u2", "f4"),
        (BF16, "i4", "f8"),
        (I4, "u2", "i4"),
        (BF16, U4, BF16),
    ],
    ids=str,
)
def test_operands_without_a_common_type(left: Any, right: Any, wanted: Any) -> None:
    """The error says which dtype= to pass; passing it works, and so do calls after it."""
    a, b = np.array([[1, 2]]).astype(left), np.array([[3], [1]]).astype(right)
    products: tuple[Any, ...] = (tw.matmul, tw.vecdot, partial(tw.einsum, "ij,jk"))
    for call in products:
        operands = (a, b) if call is not tw.vecdot else (a[0], b[:, 0])
        with pytest.raises(NoCommonDtype, match=f"dtype={np.dtype(wanted)}"):
            call(*operands)
        named = {"casting": "unsafe"} if call not in (tw.matmul, tw.vecdot) else {}
        for _ in range(2):
            found = call(*operands, dtype=wanted, **named)
            assert found.dtype == wanted
            assert np.ravel(found)[0] == 5
    contractions: tuple[Any, ...] = (partial(tw.tensordot, axes=1), tw.kron, tw.inner)
    for call in contractions:
        with pytest.raises(NoCommonDtype, match=str(np.dtype(wanted))):
            call(a[0], b[:, 0])
    assert tw.matmul(a, b, np.zeros((1, 1), wanted))[0, 0] == 5
    assert tw.matmul(a, b, dtype=wanted)[0, 0] == 5
    with pytest.raises(NoCommonDtype):
        tw.compile_einsum("ij,jk", a, b)


def test_types_that_are_no_numbers() -> None:
    dates = np.zeros((2, 2), "M8[s]")
    with pytest.raises(UnsupportedDtype) as caught:
        tw.matmul(dates, np.ones((2, 2)))
    assert not isinstance(caught.value, NoCommonDtype)
    assert common_dtype(np.dtype("M8[s]"), BF16) is None


def test_kinds_of_ml_dtypes() -> None:
    """ml_dtypes says that complex numbers are of bfloat16's kind, and that float16 is not."""
    assert same_kind(np.dtype("f2"), BF16)
    assert not same_kind(np.dtype("c8"), BF16)
    with pytest.raises(UnsafeCast):
        tw.matmul(np.ones((2, 2), "c8"), np.ones((2, 2), "c8"), dtype=BF16)


def test_float64_to_bfloat16_is_one_rounding() -> None:
    rng = np.random.default_rng(5)
    values = rng.standard_normal(2000) * 2.0 ** rng.integers(-140, 127, 2000)
    halfway = (1 + 2.0**-8 + np.array([-1, 1, 0]) * 2.0**-40)[:, np.newaxis] * np.array([1, -1, 2.0**-130])
    ends = np.array([0.0, -0.0, np.inf, -np.inf, 1e300, -1e-300, 3.39e38])
    every = np.concatenate([values, halfway.ravel(), ends])
    with np.errstate(invalid="ignore"):
        finite = np.isfinite(every)
        expected = np.where(finite, once(np.where(finite, every, 0), BF16).astype("f8"), every)
    np.testing.assert_array_equal(narrowed(every, BF16).astype("f8"), expected)
    out = np.empty(every.shape, BF16)
    store(every, out)
    np.testing.assert_array_equal(out.astype("f8"), expected)
    assert np.isnan(narrowed(np.array(np.nan), BF16))


@pytest.mark.parametrize("function", ["relu", "softmax", "sum", "mmt4d", "attention"])
def test_other_functions_into_a_narrow_out(function: str) -> None:
    """float64 goes into bfloat16 by one rounding: above halfway of two neighbours, to the upper one."""
    halfway = 1 + 2.0**-8 + 2.0**-40
    values, ones = np.full((1, 1, 1, 8), halfway), np.ones((1, 1, 1, 8))
    out = np.zeros(values.shape, BF16)
    if function == "attention":
        tw.attention(ones, ones, values, out=out)
    elif function == "mmt4d":
        out = np.zeros((1, 1, 1, 1), BF16)
        tw.mmt4d(values, np.eye(1, 8)[np.newaxis, np.newaxis], out)
    elif function == "sum":
        out = np.zeros((1, 1, 1), BF16)
        tw.sum(values / 8, axis=-1, out=out)
    elif function == "softmax":
        out = np.zeros((1, 1, 1, 2), BF16)
        x = np.array([[[[np.log(halfway), 0.0]]]])
        np.testing.assert_array_equal(exactly(tw.softmax(x, out=out)), exactly(once(tw.softmax(x), BF16)))
        return
    else:
        getattr(tw, function)(values, out=out)
    assert (out.astype("f8") == 1 + 2.0**-7).all()
