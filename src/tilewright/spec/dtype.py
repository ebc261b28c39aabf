"""Element types: one record each, with its size, kind and NumPy spelling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from tilewright.errors import UnsupportedDtype, shown
from tilewright.preparing import importing
from tilewright.spec.arguments import as_dtype, as_text

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class Kind(Enum):
    """What the bits of an element mean."""

    FLOAT = "float"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    COMPLEX = "complex"


@dataclass(frozen=True)
class DType:
    """One element type.

    Attributes
    ----------
    name : the project's spelling, as in kernel names and on the command line ("f32").
    bits : size of one element in memory. Integers of 4 bits take a byte each, as in ml_dtypes, of which
        the low half counts.
    kind : float, signed or unsigned integer, or complex number.
    numpy_name : what ``numpy.dtype`` accepts for it, or its name in ml_dtypes.
    significand : bits of precision of a float, the hidden one included; all the bits of an integer.
    extension : the type is one of ml_dtypes.
    """

    name: str
    bits: int
    kind: Kind
    numpy_name: str
    significand: int = 0
    extension: bool = False

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return self.bits // 8

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy dtype, native byte order; types that NumPy lacks are those of ml_dtypes."""
        if self.extension:
            with importing:
                import ml_dtypes  # 5 ms that products of NumPy's own types need not pay

            found: np.dtype[np.generic] = np.dtype(getattr(ml_dtypes, self.numpy_name))
            return found
        return np.dtype(self.numpy_name)

    @property
    def is_integer(self) -> bool:
        """Whether arithmetic wraps around instead of rounding."""
        return self.kind in (Kind.SIGNED, Kind.UNSIGNED)

    @property
    def real(self) -> DType:
        """The type of the real and of the imaginary part; the type itself where it is real."""
        return {"c64": F32, "c128": F64}.get(self.name, self)

    @property
    def unit_roundoff(self) -> float:
        """Largest relative error of one rounding; 0 for integers, that of its parts for complex numbers.

        >>> BF16.unit_roundoff == 2.0**-8
        True
        """
        return 0.0 if self.is_integer else 2.0**-self.real.significand

    def holds(self, other: DType) -> bool:
        """Whether every value of another type is a value of this one, of the same kind of number.

        >>> F32.holds(BF16), I16.holds(U8), I8.holds(U8), F64.holds(I32)
        (True, True, False, False)
        """
        if self == other:
            return True
        if self.kind is other.kind and not self.is_integer:
            return self.bits >= 2 * other.bits
        if not (self.is_integer and other.is_integer):
            return False
        if self.kind is other.kind:
            return self.significand >= other.significand
        return self.kind is Kind.SIGNED and self.significand > other.significand

    def __str__(self) -> str:
        return self.name


F64 = DType("f64", 64, Kind.FLOAT, "float64", 53)
F32 = DType("f32", 32, Kind.FLOAT, "float32", 24)
BF16 = DType("bf16", 16, Kind.FLOAT, "bfloat16", 8, extension=True)
F16 = DType("f16", 16, Kind.FLOAT, "float16", 11)
I4 = DType("i4", 8, Kind.SIGNED, "int4", 4, extension=True)
U4 = DType("u4", 8, Kind.UNSIGNED, "uint4", 4, extension=True)
I8 = DType("i8", 8, Kind.SIGNED, "int8", 8)
U8 = DType("u8", 8, Kind.UNSIGNED, "uint8", 8)
I16 = DType("i16", 16, Kind.SIGNED, "int16", 16)
I32 = DType("i32", 32, Kind.SIGNED, "int32", 32)
I64 = DType("i64", 64, Kind.SIGNED, "int64", 64)
C64 = DType("c64", 64, Kind.COMPLEX, "complex64")
C128 = DType("c128", 128, Kind.COMPLEX, "complex128")

#: Every element type the project can name, by name. A new type is a row here.
DTYPES: dict[str, DType] = {
    dtype.name: dtype for dtype in (F64, F32, BF16, F16, I4, U4, I8, U8, I16, I32, I64, C64, C128)
}

#: The types that `matmul` and `Gemm` have kernels for; the first two come first in compiled tables.
GEMM_DTYPES: tuple[DType, ...] = (F32, F64, *(d for d in DTYPES.values() if d not in (F32, F64)))

#: The types that sums are kept in: see `accumulator`.
ACCUMULATORS: tuple[DType, ...] = (F32, F64, I32, I64)

#: The types whose elementwise functions exist beside moves.
FUNCTION_DTYPES: tuple[DType, ...] = (F32, F64, BF16, F16)


def parse_dtype(value: DType | str | DTypeLike, supported: Sequence[DType] | None = None) -> DType:
    """The record for "f32", ``numpy.float32``, ``"float32"`` or a record.

    Parameters
    ----------
    supported : the types that are accepted; all of them by default.

    Raises
    ------
    UnsupportedDtype : if no row matches.

    Examples
    --------
    >>> parse_dtype("f32") is F32 and parse_dtype(np.float32) is F32
    True
    """
    rows = tuple(DTYPES.values()) if supported is None else supported
    found = _find_dtype(value)
    if found is None or found not in rows:
        raise UnsupportedDtype(
            dtype=_said(value) if found is None else found, supported=", ".join(map(str, rows))
        )
    return found


def _said(value: object) -> str:
    """A type as a message names it: text without quotes."""
    text = as_text(value)
    return shown(value) if text is None else shown(text)[1:-1]


def _find_dtype(value: DType | str | DTypeLike) -> DType | None:
    if isinstance(value, DType):
        return value
    text = as_text(value)
    if text is not None and text in DTYPES:
        return DTYPES[text]
    wanted = as_dtype(value if text is None else text)
    return None if wanted is None else find_numpy_dtype(wanted.newbyteorder("="))


@lru_cache(maxsize=64)
def find_numpy_dtype(wanted: np.dtype[np.generic]) -> DType | None:
    """The record of a NumPy dtype of native byte order; None where no row is that type."""
    return next((dtype for dtype in DTYPES.values() if wanted.name == dtype.numpy_name), None)


def accumulator(a: DType, b: DType) -> DType:
    """The type that products of two element types are summed in.

    float32 for all floats up to 32 bits, 32-bit integers for those up to 16 bits (docs/promises.md, 4);
    otherwise the wider of the two. Parts of complex numbers are summed like reals.

    Raises
    ------
    UnsupportedDtype : if one is an integer and the other is not, or one is complex and the other is not.

    >>> str(accumulator(U8, I8)), str(accumulator(BF16, F32)), str(accumulator(I64, I8))
    ('i32', 'f32', 'i64')
    """
    one_kind = a.is_integer == b.is_integer and (a.kind is Kind.COMPLEX) == (b.kind is Kind.COMPLEX)
    if not one_kind:
        raise UnsupportedDtype(dtype=f"{a} x {b}", supported="two floats, two integers or two complex types")
    least = I32 if a.is_integer else F32
    wider = max((a.real, b.real, least), key=lambda dtype: dtype.bits)
    return least if wider.bits == least.bits else wider
