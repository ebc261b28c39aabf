"""Element types: what their records say, which values they hold, and in what products of them are summed."""

from __future__ import annotations

from itertools import product
from typing import Any, get_args

import ml_dtypes
import numpy as np
import pytest
from shares import looped

from tilewright.errors import InvalidOperand, UnsupportedDtype
from tilewright.spec.dtype import (
    BF16,
    BUFFER_DTYPES,
    C64,
    C128,
    DTYPES,
    E4M3,
    E5M2,
    F16,
    F32,
    F64,
    GEMM_DTYPES,
    I4,
    I4X2,
    I8,
    I16,
    I32,
    I64,
    U4,
    U8,
    DType,
    Kind,
    accumulator,
    find_numpy_dtype,
    parse_dtype,
)
from tilewright.spec.problem import ProductTypes, exact_dtype
from tilewright.typing import DTypeName

FLOATS, INTEGERS, COMPLEX = (F64, F32, BF16, F16, E4M3, E5M2), (I4, U4, I8, U8, I16, I32, I64), (C64, C128)
LIMITS: Any = ml_dtypes.iinfo
FACTS_OF: Any = ml_dtypes.finfo
each_dtype = pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)


def test_the_groups_are_all_types() -> None:
    assert {*FLOATS, *INTEGERS, *COMPLEX} == set(DTYPES.values()) == set(GEMM_DTYPES)
    assert GEMM_DTYPES[:2] == (F32, F64), "compiled tables are laid out so"


# --- records --------------------------------------------------------------------------------------------


@each_dtype
def test_a_record_is_what_numpy_says(dtype: DType) -> None:
    kind: Any = dtype.numpy
    assert kind.itemsize == dtype.size == dtype.bits // 8
    assert kind.name == dtype.numpy_name
    assert find_numpy_dtype(kind) is parse_dtype(kind) is parse_dtype(dtype.name) is dtype
    if dtype.is_integer:
        limits = LIMITS(kind)
        assert limits.bits == dtype.significand
        assert (limits.min < 0) is (dtype.kind is Kind.SIGNED)
    else:
        assert dtype.kind is not Kind.FLOAT or FACTS_OF(kind).nexp == dtype.exponent
        digits = FACTS_OF(dtype.real.numpy).nmant + 1
        assert dtype.real.significand == digits
        assert dtype.unit_roundoff == 2.0**-digits == float(FACTS_OF(dtype.real.numpy).eps) / 2


def test_elements_that_share_a_byte() -> None:
    """They have the values of a type of arrays, which is never found by their own name."""
    assert set(BUFFER_DTYPES) - set(DTYPES) == {"i4x2"}
    assert (I4X2.cell, I4X2.held, I4X2.size, I4X2.bytes(8), I4X2.c_name) == (U8, 2, 1, 4, "uint8_t")
    assert (I4.cell, I4.held, I4.size, I4.bytes(8)) == (I4, 1, 1, 8)
    assert parse_dtype(I4X2.numpy) is I4
    with pytest.raises(UnsupportedDtype):
        parse_dtype("i4x2")


@pytest.mark.parametrize("cell", [1, np.float32, "u8"])
def test_what_holds_several_elements_is_a_type(cell: Any) -> None:
    with pytest.raises(InvalidOperand, match="packed_in"):
        DType("i4", 4, Kind.SIGNED, "int4", packed_in=cell)


@each_dtype
def test_an_array_of_another_byte_order_is_of_the_same_type(dtype: DType) -> None:
    if dtype.size > 1 and not dtype.extension:
        assert parse_dtype(dtype.numpy.newbyteorder()) is dtype
        assert find_numpy_dtype(dtype.numpy.newbyteorder("S").newbyteorder("S")) is dtype


@pytest.mark.parametrize(
    "value", ["f9", "float8", "u16", np.uint32, object, 3, ml_dtypes.float8_e4m3b11fnuz], ids=str
)
def test_types_without_a_record(value: Any) -> None:
    with pytest.raises(UnsupportedDtype, match=r"supported: f64, f32, bf16, f16, i4, u4, i8, .*c128"):
        parse_dtype(value)


def test_only_some_types() -> None:
    assert parse_dtype("f32", (F32, F64)) is F32
    with pytest.raises(UnsupportedDtype, match=r"dtype bf16 .*supported: f32, f64;"):
        parse_dtype("bf16", (F32, F64))


# --- which values a type holds ---------------------------------------------------------------------------


def values_of(dtype: DType) -> list[Any]:
    """Values that tell types of a kind apart: the ends of the range, and the finest steps."""
    if dtype.is_integer:
        limits = LIMITS(dtype.numpy)
        return [int(limits.min), int(limits.max)]
    info = FACTS_OF(dtype.real.numpy)
    reals = [float(info.max), float(info.smallest_subnormal), 1 + float(info.eps)]
    return [complex(0, value) for value in reals] if dtype.kind is Kind.COMPLEX else reals


def survives(value: Any, dtype: DType) -> bool:
    """Whether a value of the same kind of number is the same as an element."""
    if dtype.is_integer:
        limits = LIMITS(dtype.numpy)
        return bool(limits.min <= value <= limits.max)
    with np.errstate(over="ignore"):
        return bool(np.array(value).astype(dtype.numpy).astype(np.complex128) == value)


@pytest.mark.parametrize("group", [FLOATS, INTEGERS, COMPLEX], ids=["floats", "integers", "complex"])
def test_a_type_holds_what_survives_it(group: tuple[DType, ...]) -> None:
    for wide, narrow in product(group, repeat=2):
        kept = all(survives(value, wide) for value in values_of(narrow))
        assert wide.holds(narrow) is kept, f"{wide}.holds({narrow})"


def test_no_type_holds_another_kind_of_number() -> None:
    for group, others in (
        (FLOATS, INTEGERS + COMPLEX),
        (INTEGERS, FLOATS + COMPLEX),
        (COMPLEX, FLOATS + INTEGERS),
    ):
        assert not any(one.holds(other) for one, other in product(group, others))


# --- sums ---------------------------------------------------------------------------------------------------

#: The type of the sums by the wider operand (promise 4).
SUMS = {
    **dict.fromkeys((E4M3, E5M2, BF16, F16, F32, C64), F32),
    **dict.fromkeys((F64, C128), F64),
    **dict.fromkeys((I4, U4, I8, U8, I16, I32), I32),
    I64: I64,
}


@looped("a", DTYPES.values())
@looped("b", DTYPES.values())
def test_the_type_of_sums(a: DType, b: DType) -> None:
    group = next(group for group in (FLOATS, INTEGERS, COMPLEX) if a in group)
    if b not in group:
        with pytest.raises(UnsupportedDtype, match=f"{a} x {b}"):
            accumulator(a, b)
        with pytest.raises(UnsupportedDtype, match=f"{a} x {b}"):
            ProductTypes.parse(a, b)
        return
    acc = accumulator(a, b)
    assert acc is max((SUMS[a], SUMS[b]), key=lambda dtype: dtype.bits)
    assert acc is accumulator(b, a)
    types = ProductTypes.parse(a, b)
    common = [dtype for dtype in (a, b) if dtype.holds(a) and dtype.holds(b)]
    assert types.c is (common[0] if common else acc), "the wider of A's and B's, or else that of the sums"
    assert (types.a, types.b, types.acc) == (a, b, acc)
    for c in DTYPES.values():
        if c in group and c.real.bits <= acc.bits:
            assert ProductTypes.parse(a, b, c) == ProductTypes(a, b, c, acc)
        else:
            with pytest.raises(UnsupportedDtype, match=f"C of {c} for {a} x {b}"):
                ProductTypes.parse(a, b, c)


FACTS = [
    # types -> complex, uniform, narrows, name, what the meaning is evaluated in
    (("f32",), False, True, False, "f32", np.float64),
    (("f64", "f64", "f32"), False, False, True, "f64f32", np.float64),
    (("bf16",), False, False, True, "bf16", np.float64),
    (("bf16", None, "f32"), False, False, False, "bf16f32", np.float64),
    (("f32", "bf16"), False, False, False, "f32bf16f32", np.float64),
    (("i32",), False, True, False, "i32", np.int64),
    (("i8",), False, False, False, "i8", np.int64),  # the low bits of a sum need not wait
    (("u8", "i8"), False, False, False, "u8i8i32", np.int64),
    (("c64",), True, False, False, "c64", np.complex128),
    (("c128", None, "c64"), True, False, True, "c128c64", np.complex128),
]


@pytest.mark.parametrize(("given", "is_complex", "uniform", "narrows", "name", "exact"), FACTS)
def test_facts_of_a_product(
    given: tuple[str, ...], is_complex: bool, uniform: bool, narrows: bool, name: str, exact: Any
) -> None:
    types = ProductTypes.parse(*given)
    assert (types.is_complex, types.uniform, types.narrows) == (is_complex, uniform, narrows)
    assert types.name == name
    assert exact_dtype(types) == exact


def test_type_checkers_know_the_names() -> None:
    names = [*DTYPES, *(dtype.numpy_name for dtype in DTYPES.values())]
    assert list(get_args(DTypeName)) == names
