"""Element types: one record each, with its size, kind and NumPy spelling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from tilewright.errors import UnsupportedDtype

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
    bits : size of one element.
    kind : float, signed or unsigned integer, or complex number.
    numpy_name : what ``numpy.dtype`` accepts for it.
    """

    name: str
    bits: int
    kind: Kind
    numpy_name: str

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return self.bits // 8

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy dtype, native byte order."""
        return np.dtype(self.numpy_name)

    @property
    def unit_roundoff(self) -> float:
        """Largest relative error of one rounding; 0 for integers and for complex numbers."""
        return float(np.finfo(self.numpy_name).eps) / 2 if self.kind is Kind.FLOAT else 0.0

    def __str__(self) -> str:
        return self.name


F64 = DType("f64", 64, Kind.FLOAT, "float64")
F32 = DType("f32", 32, Kind.FLOAT, "float32")
I8 = DType("i8", 8, Kind.SIGNED, "int8")
U8 = DType("u8", 8, Kind.UNSIGNED, "uint8")
I16 = DType("i16", 16, Kind.SIGNED, "int16")
I32 = DType("i32", 32, Kind.SIGNED, "int32")
I64 = DType("i64", 64, Kind.SIGNED, "int64")
C64 = DType("c64", 64, Kind.COMPLEX, "complex64")
C128 = DType("c128", 128, Kind.COMPLEX, "complex128")

#: Every element type the project can name, by name. A new type is a row here.
DTYPES: dict[str, DType] = {dtype.name: dtype for dtype in (F64, F32, I8, U8, I16, I32, I64, C64, C128)}

#: The types that `matmul` and `Gemm` have kernels for.
GEMM_DTYPES: tuple[DType, ...] = (F32, F64)


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
        raise UnsupportedDtype(dtype=value if found is None else found, supported=", ".join(map(str, rows)))
    return found


def _find_dtype(value: DType | str | DTypeLike) -> DType | None:
    if isinstance(value, DType):
        return value
    if isinstance(value, str) and value in DTYPES:
        return DTYPES[value]
    try:
        wanted = np.dtype(value).newbyteorder("=")
    except TypeError:
        return None
    return next((dtype for dtype in DTYPES.values() if dtype.numpy == wanted), None)
