"""Element types: one record each, with its size, kind and NumPy spelling."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from enum import Enum, Flag, auto
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.cached import cached_property
from tilewright.errors import InvalidOperand, UnsupportedDtype, shown
from tilewright.preparing import importing
from tilewright.records import dataclass
from tilewright.spec.arguments import as_dtype, as_text
from tilewright.spec.records import set_fields

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class Kind(Enum):
    """What the bits of an element mean."""

    FLOAT = "float"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    COMPLEX = "complex"


class Use(Flag):
    """Features that take a type, beside products, copies and transposes, which take all of them."""

    NONE = 0
    FUNCTIONS = auto()  # elementwise functions, softmax, norms and reductions of rows
    ATTENTION = auto()
    ATTENTION_GRADIENTS = auto()
    SCATTERED = auto()  # operands and results that a product gathers and scatters through tables
    SUMS = auto()  # sums of products over any axes, one result at a time
    ACCUMULATOR = auto()  # sums are kept in it
    ACTIVATIONS = auto()  # left operands of products with packed weights of narrower elements
    QUANTISED_ROWS = auto()  # activations that are quantised without a conversion to float32


@dataclass(frozen=True)
class DType:
    """One element type: everything that the package knows of it.

    Attributes
    ----------
    name : the project's spelling, as in kernel names and on the command line ("f32").
    bits : size of one element in memory. In arrays integers of 4 bits take a byte each, as in ml_dtypes, of
        which the low half counts.
    kind : float, signed or unsigned integer, or complex number.
    numpy_name : what ``numpy.dtype`` accepts for it, or its name in ml_dtypes.
    significand : bits of precision of a float, the hidden one included; all the bits of an integer.
    exponent : bits of the exponent of a float, from which its conversions follow; its bias is
        2^(exponent - 1) - 1.
    infinities : the largest exponent is that of infinities and NaNs. Without, only the pattern of all ones
        is NaN, and what is too large becomes NaN.
    extension : the type is one of ml_dtypes.
    llvm_name : LLVM's type of an element in arithmetic; of integers "i" and their bits. Empty where LLVM has
        none: such elements are widened before anything is computed.
    c_name : the type in C; of integers the one of ``stdint.h``. "void" where C and C++ have no common name.
    uses : which features beside products take the type.
    packed_in : of elements narrower than a byte: the type of the bytes that hold several, the first in the
        lowest bits. Arrays have no such elements; packed panels have.
    """

    name: str
    bits: int
    kind: Kind
    numpy_name: str
    significand: int = 0
    exponent: int = 0
    infinities: bool = True
    extension: bool = False
    llvm_name: str = ""
    c_name: str = "void"
    uses: Use = Use.NONE
    packed_in: DType | None = None

    def __post_init__(self) -> None:
        if self.packed_in is not None and not isinstance(self.packed_in, DType):
            raise InvalidOperand(
                name="packed_in", reason=f"found {shown(self.packed_in)}, must be a DType or None"
            )
        if self.packed_in is not None:
            set_fields(self, c_name=self.packed_in.c_name)
        elif self.is_integer:
            unsigned = "u" * (self.kind is Kind.UNSIGNED)
            set_fields(self, llvm_name=self.bits_type, c_name=f"{unsigned}int{self.bits}_t")

    def __repr__(self) -> str:
        return f"<DType {self.name}>"

    def __hash__(self) -> int:
        return hash(self.name)  # problems are keys of caches, and are hashed with their types

    def __eq__(self, other: object) -> bool:
        # Rows are one object each but for copies that were pickled; names tell them apart.
        return self is other or (isinstance(other, DType) and self.name == other.name)

    @property
    def cell(self) -> DType:
        """The type that loads and stores address: this one, or that of the bytes it is packed in."""
        return self.packed_in or self

    @property
    def held(self) -> int:
        """Elements in one `cell`."""
        return self.cell.bits // self.bits

    @property
    def size(self) -> int:
        """Bytes of one `cell`: of one element, unless several share a byte."""
        return self.cell.bits // 8

    def bytes(self, count: int) -> int:
        """Bytes of some elements that fill whole cells.

        >>> F32.bytes(8), I4X2.bytes(8)
        (32, 4)
        """
        return count * self.bits // 8

    @cached_property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy dtype, native byte order; types that NumPy lacks are those of ml_dtypes."""
        if self.extension:
            with importing:
                import ml_dtypes  # 5 ms that products of NumPy's own types need not pay

            found: np.dtype[np.generic] = np.dtype(getattr(ml_dtypes, self.numpy_name))
            return found
        return np.dtype(self.numpy_name)

    @property
    def ctypes(self) -> Any:
        """The type of an argument in ctypes: that of `c_name`.

        >>> F32.ctypes.__name__, I32.ctypes is getattr(ctypes, "c_int32")
        ('c_float', True)
        """
        return getattr(ctypes, f"c_{self.c_name.removesuffix('_t')}")

    @property
    def bits_type(self) -> str:
        """LLVM's integer type of as many bits."""
        return f"i{self.bits}"

    @property
    def bias(self) -> int:
        """Of a float's exponent."""
        return (1 << self.exponent - 1) - 1

    @property
    def is_narrow_float(self) -> bool:
        """Whether values are floats that are widened before anything is computed of them."""
        return self.kind is Kind.FLOAT and self.bits < 32

    @property
    def is_nibble(self) -> bool:
        """Whether values are integers of 4 bits: of a byte in an array only the low half counts."""
        return self.is_integer and self.significand == 4

    @property
    def unsigned_numpy_name(self) -> str | None:
        """NumPy's unsigned type whose products and sums have the same bits; None for types without one."""
        return f"u{self.numpy_name}" if self.kind is Kind.SIGNED and self.significand > 8 else None

    @cached_property
    def is_integer(self) -> bool:
        """Whether arithmetic wraps around instead of rounding."""
        return self.kind is Kind.SIGNED or self.kind is Kind.UNSIGNED

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
            own, its = self.real, other.real
            return own.significand >= its.significand and own.exponent >= its.exponent
        if not (self.is_integer and other.is_integer):
            return False
        if self.kind is other.kind:
            return self.significand >= other.significand
        return self.kind is Kind.SIGNED and self.significand > other.significand

    def __str__(self) -> str:
        return self.name


_FLOATS = Use.FUNCTIONS | Use.ATTENTION | Use.SCATTERED | Use.SUMS
_FULL = _FLOATS | Use.ACCUMULATOR
_TRAINED = _FLOATS | Use.ATTENTION_GRADIENTS | Use.ACTIVATIONS | Use.QUANTISED_ROWS
_WHOLE = Use.SUMS | Use.ACCUMULATOR

F64 = DType(
    "f64", 64, Kind.FLOAT, "float64", 53, exponent=11, llvm_name="double", c_name="double", uses=_FULL
)
F32 = DType(
    "f32",
    32,
    Kind.FLOAT,
    "float32",
    24,
    exponent=8,
    llvm_name="float",
    c_name="float",
    uses=_TRAINED | Use.ACCUMULATOR,
)
BF16 = DType(
    "bf16",
    16,
    Kind.FLOAT,
    "bfloat16",
    8,
    exponent=8,
    extension=True,
    llvm_name="bfloat",
    uses=_TRAINED,
)
F16 = DType(
    "f16", 16, Kind.FLOAT, "float16", 11, exponent=5, llvm_name="half", uses=_FLOATS | Use.QUANTISED_ROWS
)
I4 = DType("i4", 8, Kind.SIGNED, "int4", 4, extension=True)
U4 = DType("u4", 8, Kind.UNSIGNED, "uint4", 4, extension=True)
I8 = DType("i8", 8, Kind.SIGNED, "int8", 8, uses=Use.SUMS)
U8 = DType("u8", 8, Kind.UNSIGNED, "uint8", 8)
I4X2 = DType("i4x2", 4, Kind.SIGNED, "int4", 4, extension=True, packed_in=U8)
I16 = DType("i16", 16, Kind.SIGNED, "int16", 16, uses=Use.SUMS)
I32 = DType("i32", 32, Kind.SIGNED, "int32", 32, uses=_WHOLE)
I64 = DType("i64", 64, Kind.SIGNED, "int64", 64, uses=_WHOLE)
C64 = DType("c64", 64, Kind.COMPLEX, "complex64", uses=Use.SUMS)
C128 = DType("c128", 128, Kind.COMPLEX, "complex128", uses=Use.SUMS)
E4M3 = DType("f8e4m3", 8, Kind.FLOAT, "float8_e4m3fn", 4, exponent=4, infinities=False, extension=True)
E5M2 = DType("f8e5m2", 8, Kind.FLOAT, "float8_e5m2", 3, exponent=5, extension=True)

#: Every element type the project can name, by name. A new type is a row here.
DTYPES: dict[str, DType] = {
    dtype.name: dtype for dtype in (F64, F32, BF16, F16, I4, U4, I8, U8, I16, I32, I64, C64, C128, E4M3, E5M2)
}

#: Every element type that a buffer of tile IR may have, by name: also those that only packed panels have.
BUFFER_DTYPES: dict[str, DType] = {**DTYPES, I4X2.name: I4X2}

#: The types that `matmul` and `Gemm` have kernels for; the first two come first in compiled tables.
GEMM_DTYPES: tuple[DType, ...] = (F32, F64, *(d for d in DTYPES.values() if d not in (F32, F64)))


def dtypes_for(use: Use) -> tuple[DType, ...]:
    """The types that a feature takes, in the order of `GEMM_DTYPES`.

    >>> [str(dtype) for dtype in dtypes_for(Use.ATTENTION)]
    ['f32', 'f64', 'bf16', 'f16']
    """
    return tuple(dtype for dtype in GEMM_DTYPES if use in dtype.uses)


#: The types that sums are kept in: see `accumulator`.
ACCUMULATORS: tuple[DType, ...] = dtypes_for(Use.ACCUMULATOR)

#: The types whose elementwise functions exist beside moves.
FUNCTION_DTYPES: tuple[DType, ...] = dtypes_for(Use.FUNCTIONS)

#: The float types in LLVM's spelling, and the integers whose signs are their instructions'.
_LLVM_NAMES = {dtype.llvm_name: dtype for dtype in (F64, F32, BF16, F16, I8, I16, I32, I64)}


def find_llvm_type(name: str) -> DType | None:
    """The element type of one of LLVM's; integers count as signed. None for types that no array has.

    >>> find_llvm_type("bfloat").name, find_llvm_type("i8").name, find_llvm_type("ptr")
    ('bf16', 'i8', None)
    """
    return _LLVM_NAMES.get(name)


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


@lru_cache(maxsize=64)
def named_numpy_dtype(name: str) -> np.dtype[Any] | None:
    """The NumPy dtype that other libraries call by this name; None where there is none.

    >>> named_numpy_dtype("float32"), named_numpy_dtype("bfloat16"), named_numpy_dtype("qint8")
    (dtype('float32'), dtype(bfloat16), None)
    """
    record = next((dtype for dtype in DTYPES.values() if dtype.numpy_name == name), None)
    if record is not None:
        return record.numpy
    try:
        found = np.dtype(name)
    except TypeError:
        return None
    return found if found.isbuiltin == 1 else None  # not the other types of ml_dtypes


def accumulator(a: DType, b: DType) -> DType:
    """The type that products of two element types are summed in.

    float32 for all floats up to 32 bits, 32-bit integers for those up to 16 bits (promise 4);
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


def wider_sums(usual: DType) -> tuple[DType, ...]:
    """The types that sums of one type may be kept in instead, narrowest first.

    >>> wider_sums(F32), wider_sums(I64)
    ((<DType f64>,), ())
    """
    wider = (one for one in ACCUMULATORS if one.kind is usual.kind and one.bits > usual.bits)
    return tuple(sorted(wider, key=lambda one: one.bits))


def integer_range(dtype: DType) -> tuple[int, int]:
    """The least and the largest value of an integer type.

    >>> integer_range(I4), integer_range(U8)
    ((-8, 7), (0, 255))
    """
    signed = dtype.kind is Kind.SIGNED
    least = -(1 << dtype.significand - 1) if signed else 0
    return least, least + (1 << dtype.significand) - 1
