"""Types and values of LLVM IR: what an instruction takes and gives, as text with a type."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from tilewright.errors import UnsupportedDtype
from tilewright.spec.dtype import DType, find_llvm_type


class Type(NamedTuple):
    """An LLVM type: its spelling, and how intrinsic names spell it."""

    text: str
    suffix: str
    lanes: int = 0


INT1 = Type("i1", "i1")
INT8 = Type("i8", "i8")
INT16 = Type("i16", "i16")
INT32 = Type("i32", "i32")
INT64 = Type("i64", "i64")
POINTER = Type("ptr", "p0")
VOID = Type("void", "")


@cache
def element_type(dtype: DType) -> Type:
    """The LLVM type of one element, or of a part of a complex one.

    Raises
    ------
    UnsupportedDtype : LLVM has no such type; its elements are converted before they are computed with.

    >>> from tilewright.spec.dtype import BF16, I8
    >>> element_type(BF16), element_type(I8)
    (Type(text='bfloat', suffix='bf16', lanes=0), Type(text='i8', suffix='i8', lanes=0))
    """
    dtype = dtype.real
    if not dtype.llvm_name:
        raise UnsupportedDtype(dtype=f"{dtype} in arithmetic", supported="types that LLVM has")
    return Type(dtype.llvm_name, dtype.bits_type if dtype.is_integer else dtype.name)


def memory_type(dtype: DType) -> Type:
    """The LLVM type that loads and stores of one `DType.cell` use: integers for floats of 16 bits and fewer.

    Not every target can hold such floats in registers; conversions work on their bits.
    """
    cell = dtype.cell
    return Type(cell.bits_type, cell.bits_type) if cell.bits < 32 else element_type(cell)


def named_type(name: str) -> Type:
    """A scalar type from LLVM's spelling: "ptr", "bfloat", "i17".

    >>> named_type("half")
    Type(text='half', suffix='f16', lanes=0)
    """
    dtype = find_llvm_type(name)
    if dtype is not None:
        return element_type(dtype)
    return POINTER if name == POINTER.text else Type(name, name)


def vector_of(element: Type, lanes: int) -> Type:
    """<lanes x element>."""
    return Type(f"<{lanes} x {element.text}>", f"v{lanes}{element.suffix}", lanes)


def vector_type(dtype: DType, lanes: int) -> Type:
    """<lanes x element> as loads and stores use it; LLVM treats one lane as a vector too."""
    return vector_of(memory_type(dtype), lanes)


def element_of(kind: Type) -> Type:
    """The type of one lane."""
    return Type(kind.text.split(" x ", 1)[1].rstrip(">"), kind.suffix.lstrip("v0123456789"))


def is_float(kind: Type) -> bool:
    """Whether values, or the lanes of vectors, of this type are floats."""
    return "f" in kind.suffix


class Value(NamedTuple):
    """A typed operand: a name of this function, a global, or a constant (then `known` may hold it)."""

    type: Type
    text: str
    known: int | None = None

    @property
    def typed(self) -> str:
        """Type and operand, as most instructions want them."""
        return f"{self.type.text} {self.text}"


def int64(value: int) -> Value:
    """A 64-bit constant."""
    return Value(INT64, str(value), value)


def int32(value: int) -> Value:
    """A 32-bit constant."""
    return Value(INT32, str(value), value)


def constant(dtype: DType, value: float) -> Value:
    """A constant; floats by their bits: LLVM spells f32 as the double of the same value."""
    if dtype.is_integer:
        return Value(element_type(dtype), str(int(value)), int(value))
    dtype = dtype.real
    exact = struct.unpack("f", struct.pack("f", value))[0] if dtype.bits == 32 else value
    (bits,) = struct.unpack("<Q", struct.pack("<d", exact))
    return Value(element_type(dtype), f"0x{bits:016X}")


def poison(kind: Type) -> Value:
    """A value nobody reads."""
    return Value(kind, "poison")


def zero(kind: Type) -> Value:
    """All bits zero, of any type."""
    return Value(kind, "zeroinitializer")


def null() -> Value:
    """The null pointer."""
    return Value(POINTER, "null")


def integer(value: Value | int, like: Value) -> Value:
    """A constant of the type of another value; a value stays what it is."""
    return Value(like.type, str(value), value) if isinstance(value, int) else value


def every_lane(like: Value, number: int) -> Value:
    """An integer constant in every lane of a value of the type of another one."""
    kind = like.type
    if not kind.lanes:
        return Value(kind, str(number))
    bits = kind.suffix.rpartition("i")[2]
    return Value(kind, f"splat (i{bits} {number})")


def truth_of(kind: Type) -> Type:
    """What a comparison of such values gives: one bit, or one for each lane."""
    return vector_of(INT1, kind.lanes) if kind.lanes else INT1


def vector_constant(element: Type, values: Sequence[int]) -> Value:
    """A vector of integer constants."""
    text = ", ".join(f"{element.text} {value}" for value in values)
    return Value(vector_of(element, len(values)), f"<{text}>")
