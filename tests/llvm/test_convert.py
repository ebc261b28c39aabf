"""Conversions between element types: every narrow value widened, wide ones narrowed, bit for bit."""

from __future__ import annotations

import ctypes
import re
from functools import cache
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray
from shares import looped
from tiers import first_of

import tilewright as tw
from tilewright.errors import UnsupportedDtype
from tilewright.llvm.build import Module
from tilewright.llvm.convert import Convert
from tilewright.llvm.jit import Linked
from tilewright.llvm.target import data_layout, emit_assembly, emit_object
from tilewright.llvm.values import INT64, POINTER, VOID, element_type, int64, memory_type, vector_type
from tilewright.machine.catalog import find_machine, targets
from tilewright.machine.machine import Machine
from tilewright.spec.dtype import BF16, E4M3, E5M2, F16, F32, F64, I4, I8, I16, I32, I64, U4, U8, DType, Kind

Array: TypeAlias = NDArray[Any]

#: A scalar, an odd vector, vectors narrower and wider than a register.
WIDTHS = (0, 1, 3, 8, 64)
NARROW = (BF16, F16, E4M3, E5M2)
#: With instructions for float16, and without.
HALVES = [False, *([True] if tw.machine().isa.half else [])]


def module_of(machine: Machine, source: DType, to: DType, lanes: int, *, half: bool) -> str:
    """f(count, from, to): so many vectors, or scalars where there are no lanes."""
    module = Module("m", machine.triple, data_layout(machine))
    f = module.define("f", VOID, [("count", INT64), ("from", POINTER), ("to", POINTER)], exported=True)
    kind = vector_type(source, lanes) if lanes else memory_type(source)
    width = lanes or 1
    with f.loop(int64(0), f.arguments["count"], int64(1), "vector") as number:
        value = f.load(kind, f.at(f.arguments["from"], f.mul(number, width * source.size)), source.size)
        value = Convert(f, half=half)(value, source, to)
        f.store(value, f.at(f.arguments["to"], f.mul(number, width * to.size)), to.size)
    f.ret()
    return str(module)


@cache
def compiled(source: DType, to: DType, lanes: int, half: bool) -> tuple[Any, Linked]:
    machine = tw.machine()
    text = module_of(machine, source, to, lanes, half=half)
    code = Linked(emit_object(text, "m", machine), ("f",), {})
    return ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * 2)(code.address("f")), code


def converted(values: Array, source: DType, to: DType, lanes: int, *, half: bool = False) -> Array:
    """The values in another type, as this host converts vectors of some lanes."""
    assert values.dtype == source.numpy
    width = lanes or 1
    count = -(-values.size // width)
    given = np.zeros(count * width, values.dtype)
    given[: values.size] = values
    found = np.zeros(count * width, to.numpy)
    function, _ = compiled(source, to, lanes, half)
    function(count, given.ctypes.data, found.ctypes.data)
    return found[: values.size]


def every(dtype: DType) -> Array:
    """Every value of a type of up to 16 bits."""
    return np.arange(1 << dtype.bits, dtype=f"uint{dtype.bits}").view(dtype.numpy)


def of_bits(bits: Array) -> Array:
    """float32 by their bits."""
    return bits.astype(np.uint32).view(np.float32)


def upper_halves() -> Array:
    """float32 with every sign, exponent and leading bits, and what lies around the ties of both narrow types.

    The places behind bfloat16's last one are 16, those behind float16's 13, more where it is subnormal.
    """
    low = np.array([0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF, 0x3000, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    return of_bits((np.arange(1 << 16, dtype=np.uint32)[:, None] << 16 | low).reshape(-1))


def bits_of(array: Array) -> Array:
    return array.view(f"uint{8 * array.itemsize}")


def are_numbers(array: Array, dtype: DType) -> Array:
    """Which elements are not NaN; a comparison of floats would raise a flag for some of them."""
    places = dtype.significand - 1
    exponent = ((1 << (dtype.bits - 1 - places)) - 1) << places
    if not dtype.infinities:
        exponent += (1 << places) - 2
    found: Array = bits_of(array) & ((1 << (dtype.bits - 1)) - 1) <= exponent
    return found


def assert_bits(found: Array, expected: Array) -> None:
    """Equal bits; a few of those that are not."""
    wrong = np.flatnonzero(bits_of(found) != bits_of(expected))
    assert wrong.size == 0, f"{wrong.size} differ, first {found[wrong[:4]]} instead of {expected[wrong[:4]]}"


# --- integers as floats -----------------------------------------------------------------------------------


@looped("lanes", WIDTHS)
@looped("source", [I8, U8, I4, U4])
@looped("to", [F32, F64, BF16, F16])
def test_integers_are_floats_exactly(source: DType, to: DType, lanes: int) -> None:
    values = np.arange(256, dtype=np.uint8).view(source.numpy)
    found = converted(values, source, to, lanes)
    np.testing.assert_array_equal(found.astype(np.float64), values.astype(np.float64))


# --- floats ---------------------------------------------------------------------------------------------


@looped("half", HALVES)
@looped("lanes", WIDTHS)
@looped("source", NARROW)
@looped("to", [F32, F64])
def test_every_narrow_float_is_widened_exactly(source: DType, to: DType, lanes: int, half: bool) -> None:
    values = every(source)
    found = converted(values, source, to, lanes, half=half)
    numbers = are_numbers(values, source)
    assert_bits(found[numbers], values[numbers].astype(to.numpy))
    # NaN stays NaN, of its sign and payload; instructions make it quiet.
    assert not are_numbers(found[~numbers], to).any()
    words, bits = bits_of(values[~numbers]).astype(np.uint64), bits_of(found[~numbers]).astype(np.uint64)
    places, wide = source.significand - 1, to.significand - 1
    payload = words & ((1 << places) - 1)
    quiet = np.uint64(1 << (wide - 1))
    np.testing.assert_array_equal(bits >> (to.bits - 1), words >> (source.bits - 1))
    np.testing.assert_array_equal(
        bits & ((1 << wide) - 1) | quiet, payload.astype(np.uint64) << np.uint64(wide - places) | quiet
    )


@looped("lanes", WIDTHS)
@looped("half", HALVES)
@looped("to", NARROW)
def test_floats_are_narrowed_to_nearest_even(to: DType, half: bool, lanes: int) -> None:
    """Normal and subnormal numbers, ties, overflow to infinity, underflow to zero of the same sign."""
    random = np.random.default_rng(0).integers(0, 1 << 32, 1 << 14, np.uint32)
    values = np.concatenate((upper_halves() if lanes == 8 else upper_halves()[::7], of_bits(random)))
    found = converted(values, F32, to, lanes, half=half)
    numbers = are_numbers(values, F32)
    with np.errstate(over="ignore"):
        assert_bits(found[numbers], values[numbers].astype(to.numpy))
    # NaN is quiet, of the same sign, with the upper bits of its payload.
    nans, kept = bits_of(values[~numbers]), to.significand - 1
    sign = nans >> 31 << (to.bits - 1)
    payload = (nans & 0x7FFFFF) >> (23 - kept) | 1 << (kept - 1)
    if not to.infinities:
        payload |= (1 << kept) - 1
    exponent = ((1 << to.exponent) - 1) << kept
    np.testing.assert_array_equal(bits_of(found[~numbers]).astype(np.uint32), sign | payload | exponent)


@looped(
    ("to", "value", "expected"),
    [
        (BF16, 1 + 2.0**-8, 1.0),  # a tie, to even
        (BF16, 1 + 3 * 2.0**-8, 1 + 2.0**-6),
        (BF16, 1 + 2.0**-8 + 2.0**-23, 1 + 2.0**-7),
        (BF16, 2.0**-133, 2.0**-133),  # the smallest bfloat16
        (BF16, 2.0**-134, 0.0),
        (BF16, 3 * 2.0**-134, 2.0**-132),
        (BF16, 3.4e38, float("inf")),
        (F16, 1 + 2.0**-11, 1.0),
        (F16, 1 + 3 * 2.0**-11, 1 + 2.0**-9),
        (F16, 65504.0, 65504.0),
        (F16, 65519.0, 65504.0),
        (F16, 65520.0, float("inf")),
        (F16, 2.0**-24, 2.0**-24),  # the smallest float16
        (F16, 2.0**-25, 0.0),
        (F16, 2.0**-25 + 2.0**-40, 2.0**-24),
        (F16, 2.0**-14 - 2.0**-26, 2.0**-14),  # rounds up to the smallest normal number
        (E4M3, 464.0, 448.0),  # a tie between the largest number and what would be the next
        (E4M3, 2.0**-9, 2.0**-9),  # the smallest float8_e4m3fn
        (E4M3, 2.0**-10, 0.0),
        (E5M2, 57344.0, 57344.0),
        (E5M2, 61440.0, float("inf")),
        (E5M2, 2.0**-16, 2.0**-16),  # the smallest float8_e5m2
    ],
)
@looped("half", HALVES)
def test_narrowed_by_hand(to: DType, value: float, expected: float, half: bool) -> None:
    for sign in (1, -1):
        found = converted(np.array([sign * value], np.float32), F32, to, 0, half=half)
        assert float(found[0]) == sign * expected
        assert np.signbit(found[0].astype(np.float32)) == (sign < 0)


@pytest.mark.parametrize("lanes", WIDTHS)
def test_between_the_wide_floats(lanes: int) -> None:
    random = np.random.default_rng(0)
    single = of_bits(random.integers(0, 1 << 32, 1 << 12, np.uint32))
    double = random.standard_normal(1 << 12) * 10.0 ** random.integers(-50, 50, 1 << 12)
    with np.errstate(all="ignore"):
        numbers = are_numbers(single, F32)
        assert_bits(converted(single, F32, F64, lanes)[numbers], single[numbers].astype(np.float64))
        assert_bits(converted(double, F64, F32, lanes), double.astype(np.float32))


@looped("to", NARROW)
@looped("half", HALVES)
@looped("lanes", WIDTHS)
def test_double_precision_is_narrowed_with_one_rounding(to: DType, half: bool, lanes: int) -> None:
    """1 + 2^-8 + 2^-40 is above bfloat16's tie; through float32 it would be the tie, and rounded to even.

    So does ml_dtypes, and the expected value is computed here.
    """
    places = to.significand
    ties = 1 + np.arange(1, min(64, 1 << places), 2) * 2.0**-places
    values = np.concatenate([ties, ties + 2.0**-40, ties - 2.0**-40])
    rounded = np.rint(values * 2.0 ** (places - 1)) / 2.0 ** (places - 1)
    scales = np.array([1.0, -1.0, 2.0 ** (1 - to.bias), 2.0 ** (to.bias - 1)])[:, None]
    expected = (scales * rounded).reshape(-1).astype(to.numpy)
    values = (scales * values).reshape(-1)
    assert_bits(converted(values, F64, to, lanes, half=half), expected)


# --- integers -------------------------------------------------------------------------------------------

INTEGERS = (I4, U4, I8, U8, I16, I32, I64)


def wrapped(values: Array, dtype: DType) -> Array:
    """64-bit integers modulo the size of a type, 4 bits as ml_dtypes has them."""
    if dtype.significand != 4:
        return values.astype(dtype.numpy)
    low = values & 15
    return (low - 16 * (low > 7) if dtype.kind is Kind.SIGNED else low).astype(np.int8).astype(dtype.numpy)


@pytest.mark.parametrize(("source", "to"), list(product(INTEGERS, INTEGERS)), ids=str)
def test_integers_are_extended_or_wrap_around(source: DType, to: DType) -> None:
    """Of integers of four bits only the lower half of the byte counts, whatever the other one holds."""
    random = np.random.default_rng(0)
    raw = (
        random.integers(0, 256, 256 * source.size, np.uint8)
        if source.bits > 8
        else np.arange(256).astype(np.uint8)
    )
    values = raw.view(np.int8 if source.significand == 4 else source.numpy)
    meant = wrapped(values.astype(np.int64), source).astype(np.int64)
    for lanes in WIDTHS:
        found = converted(values.view(source.numpy), source, to, lanes)
        if to.significand == 4:  # the upper half of a byte that is stored may hold anything
            np.testing.assert_array_equal(bits_of(found) & 15, bits_of(wrapped(meant, to)) & 15)
        else:
            np.testing.assert_array_equal(found, wrapped(meant, to))


# --- targets --------------------------------------------------------------------------------------------


def instructions_of(name: str) -> tuple[object, ...]:
    """What conversions are written with: the row, its vectors, and which halves it has."""
    machine = find_machine(name)
    return machine.arch, machine.isa.name, machine.isa.vector_bits, machine.isa.half, machine.features


@pytest.mark.parametrize("name", first_of(targets(), instructions_of))
def test_no_target_calls_a_library(name: str) -> None:
    """compiler-rt has __truncsfhf2 and __extendhfsf2, which kernels may not need."""
    machine = find_machine(name)
    floats = [(one, F32) for one in NARROW] + [(F32, one) for one in NARROW] + [(F16, F64), (F64, F32)]
    for (source, to), lanes in product(floats, (0, 1, machine.isa.lanes(F32))):
        text = emit_assembly(module_of(machine, source, to, lanes, half=machine.isa.half), "m", machine)
        assert not re.search(r"^\s(callq?|bl)\s", text, re.MULTILINE), f"{source} to {to}, {lanes} lanes"


def test_floats_whose_bits_nobody_described_are_refused() -> None:
    unknown = DType("f8", 8, Kind.FLOAT, "float8", 4)
    for source, to in ((unknown, F32), (F32, unknown)):
        with pytest.raises(UnsupportedDtype, match="known exponent"):
            module_of(tw.machine(), source, to, 8, half=True)
    with pytest.raises(UnsupportedDtype, match="f8 in arithmetic"):
        element_type(unknown)
