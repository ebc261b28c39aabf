"""What problems are made of: layouts, operands, element types and strategies of products."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from math import prod
from typing import Any, get_args

import numpy as np

from tilewright.errors import SizeOverflow, UnsupportedDtype, UnsupportedSums
from tilewright.records import dataclass
from tilewright.spec.arguments import MAX_SIZE
from tilewright.spec.dtype import DTYPES, GEMM_DTYPES, DType, Kind, accumulator, parse_dtype, wider_sums
from tilewright.spec.epilogue import Epilogue, widened
from tilewright.typing import ElementType, LayoutName, RoleName, StrategyName

#: Elements of an array at most: 16 bytes are the largest element.
MAX_ELEMENTS = MAX_SIZE // 16

#: Run-time parameters of every GEMM program, in the order of its C signature.
PRODUCT_SIZES = ("m", "n", "k", "rs_a", "cs_a", "rs_b", "cs_b", "rs_c", "cs_c")
#: Those of kernels of hardcoded sizes (Breuer, tnzr.compile, Listing 7.2.1), all in elements.
FIXED_STRIDES = ("ld_a", "ld_b", "ld_c", "br_stride_a", "br_stride_b")


class Layout(Enum):
    """Which axis of a matrix is contiguous; STRIDED leaves both strides to run time.

    PACKED is the tiled layout of linalg.mmt4d with the tile sizes of the machine's register tile: A as
    [M1, K1, M0, K0], B as [N1, K1, N0, K0], C as [M1, N1, M0, N0].
    """

    ROW, COL, STRIDED, PACKED = get_args(LayoutName)

    @property
    def letter(self) -> str:
        """The letter used in kernel names: r, c, s or p."""
        return str(self.value)[0]


#: The layouts of matrices whose elements have two strides.
STRIDED_LAYOUTS = (Layout.ROW, Layout.COL, Layout.STRIDED)


class Strategy(Enum):
    """The strategies for a GEMM of Kuzma et al. 2023, §4.1.3; AUTO chooses by size and layout at run time."""

    AUTO, TILING, PACKING = get_args(StrategyName)


class Role(Enum):
    """Which operand of a product a packed matrix is: A (m, k), whose lanes are rows, or B (k, n), columns."""

    A, B = get_args(RoleName)

    def lanes_and_depth(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """Which of the two sizes of a matrix are lanes, which the depth.

        >>> Role.B.lanes_and_depth((300, 20))
        (20, 300)
        """
        return (shape[0], shape[1]) if self is Role.A else (shape[1], shape[0])

    def shape(self, lanes: int, depth: int) -> tuple[int, int]:
        """The sizes of the matrix: the inverse of `lanes_and_depth`."""
        return (lanes, depth) if self is Role.A else (depth, lanes)


@dataclass(frozen=True)
class Operand:
    """One matrix of a problem: its name in messages, sizes (None at run time), layout, names of the sizes."""

    name: str
    rows: int | None
    columns: int | None
    dtype: DType
    layout: Layout
    axes: str = ""

    @property
    def sizes(self) -> tuple[tuple[str, int | None], ...]:
        """The names of rows and columns, each with its size."""
        return tuple(zip(self.axes, (self.rows, self.columns), strict=True)) if self.axes else ()


class RunTimeSizes:
    """Problems whose kernels take arrays of any sizes: no operands to check, no counts of a call."""

    @property
    def operands(self) -> tuple[Operand, ...]:
        """None: the operation checks the arrays of a call itself."""
        return ()

    @property
    def flops(self) -> int | None:
        """None: sizes are given at run time."""
        return None

    @property
    def bytes(self) -> int | None:
        """None: sizes are given at run time."""
        return None


def check_elements(what: str, shape: Sequence[int]) -> None:
    """Refuses an array that no memory has room for; lengths of 0 do not count, as in NumPy.

    Raises
    ------
    SizeOverflow
    """
    total = prod(shape) or prod(filter(None, shape))
    if total > MAX_ELEMENTS:
        raise SizeOverflow(what=what, found=total, limit=MAX_ELEMENTS)


@dataclass(frozen=True)
class ProductTypes:
    """The element types of C += A·B, and the type its sums are kept in.

    Attributes
    ----------
    a, b, c : in memory.
    acc : of the sums; they are converted once, when C is stored.
    """

    a: DType
    b: DType
    c: DType
    acc: DType

    def __hash__(self) -> int:
        return hash((self.a.name, self.b.name, self.c.name))  # keys of caches; strings keep their hash

    @classmethod
    def parse(
        cls,
        dtype: DType | ElementType | str,
        b_dtype: DType | ElementType | str | None = None,
        out_dtype: DType | ElementType | str | None = None,
        *,
        epilogue: Epilogue | None = None,
        sums: DType | ElementType | str | None = None,
    ) -> ProductTypes:
        """From the arguments of a problem: B is of A's type and C of their common type by default.

        Where an epilogue makes floats of integer sums, C is of these floats by default, or of narrower ones.
        Sums may be of a wider type than that of `accumulator`; those of complex products are complex.

        Raises
        ------
        UnsupportedDtype : an unknown type, or types of different kinds.
        StepDtype : a step of the epilogue has no meaning on its type.

        >>> ProductTypes.parse("u8", "i8", "i32").acc.name
        'i32'
        >>> ProductTypes.parse("i8", epilogue=Epilogue([Scale()])).c.name
        'f32'
        >>> ProductTypes.parse("f32", sums="f64").acc.name, ProductTypes.parse("c64", sums="c128").acc.name
        ('f64', 'f64')
        """
        a = parse_dtype(dtype, GEMM_DTYPES)
        b = a if b_dtype is None else parse_dtype(b_dtype, GEMM_DTYPES)
        acc = _sums_type(a, b, sums)
        c = None if out_dtype is None else parse_dtype(out_dtype, GEMM_DTYPES)
        total = widened(acc, is_complex=a.kind is Kind.COMPLEX)
        steps = Epilogue() if epilogue is None else epilogue
        value = steps.result(total, c)
        if c is None:
            common = a if a.holds(b) else b if b.holds(a) else acc
            c = common if value == total else value
        alike = c.is_integer if value.is_integer else c.kind is value.kind
        if not (alike or steps.saturates) or c.real.bits > value.real.bits:
            raise UnsupportedDtype(
                dtype=f"C of {c} for {a} x {b}", supported=f"{value.real} and narrower types of its kind"
            )
        return cls(a, b, c, acc)

    @property
    def is_complex(self) -> bool:
        """Whether elements are pairs of numbers of the type of the sums."""
        return self.a.kind is Kind.COMPLEX

    @property
    def numbers(self) -> ProductTypes:
        """The same of the numbers that complex elements are pairs of.

        >>> ProductTypes.parse("c64").numbers.a.name
        'f32'
        """
        return ProductTypes(self.a.real, self.b.real, self.c.real, self.acc)

    @property
    def uniform(self) -> bool:
        """Whether A, B, C and the sums have one type."""
        return self.a == self.b == self.c == self.acc

    @property
    def chosen(self) -> DType | None:
        """The type of the sums where it is wider than the default one.

        >>> ProductTypes.parse("bf16", sums="f32").chosen, ProductTypes.parse("bf16", sums="f64").chosen
        (None, <DType f64>)
        """
        return None if self.acc == accumulator(self.a, self.b) else self.acc

    @property
    def sums(self) -> DType:
        """What an epilogue is given: the type of the sums, complex where C is."""
        return widened(self.acc, is_complex=self.is_complex)

    @property
    def narrows(self) -> bool:
        """Whether C can't take unfinished sums: each store would round them."""
        return not self.acc.is_integer and self.c.real.bits < self.acc.bits

    @property
    def name(self) -> str:
        """As kernel names spell it: the one type, or those of A, B and C; then that of sums that are wider.

        >>> ProductTypes.parse("f32").name, ProductTypes.parse("u8", "i8", "i32").name
        ('f32', 'u8i8i32')
        >>> ProductTypes.parse("f32", sums="f64").name
        'f32_sums_f64'
        """
        sums = "" if self.chosen is None else f"_sums_{self.sums}"
        if self.a == self.b:
            return f"{self.a}{sums}" if self.c == self.a else f"{self.a}{self.c}{sums}"
        return f"{self.a}{self.b}{self.c}{sums}"


def _sums_type(a: DType, b: DType, wanted: DType | ElementType | str | None) -> DType:
    """The type of the sums, of complex products that of their parts: the default one, or a wider one."""
    usual, is_complex = accumulator(a, b), a.kind is Kind.COMPLEX
    if wanted is None:
        return usual
    choices = {widened(one, is_complex=is_complex): one for one in (usual, *wider_sums(usual))}
    found = parse_dtype(wanted)
    if found not in choices:
        raise UnsupportedSums(sums=found, dtypes=f"{a} x {b}", supported=", ".join(map(str, choices)))
    return choices[found]


def parse_types(
    dtype: str | DType,
    out_dtype: str | DType | None = None,
    epilogue: Epilogue | None = None,
    sums: str | None = None,
) -> ProductTypes:
    """The element types of "bf16", or of A and B as in "u8i8", and of C where it is said.

    An epilogue may make floats of integer sums, and then C is of floats.

    >>> parse_types("u8i8").name, parse_types("i8", "i32").name, parse_types("float32").name
    ('u8i8i32', 'i8i32', 'f32')
    """
    pairs = {f"{a}{b}": (a, b) for a in DTYPES for b in DTYPES}
    a, b = pairs.get(dtype, (dtype, None)) if isinstance(dtype, str) else (dtype, None)
    return ProductTypes.parse(a, b, out_dtype, epilogue=epilogue, sums=sums)


def exact_dtype(types: ProductTypes) -> np.dtype[Any]:
    """What the meaning of a product is evaluated in: the widest NumPy type of its kind."""
    if types.a.is_integer:
        return np.dtype(np.int64)
    return np.dtype(np.complex128 if types.is_complex else np.float64)
