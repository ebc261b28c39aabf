"""Unary primitives: B = op(A), element by element, with or without transposition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from tilewright.errors import InvalidChoice, UnsupportedDtype, shown
from tilewright.records import dataclass
from tilewright.spec.arguments import check_integer, parse_choice
from tilewright.spec.constructor import constructor_text
from tilewright.spec.dtype import DTYPES, FUNCTION_DTYPES, DType, parse_dtype
from tilewright.spec.functions import UnaryOp, meaning
from tilewright.spec.problem import STRIDED_LAYOUTS, Layout, Operand
from tilewright.spec.records import set_fields

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tilewright.typing import ElementType, LayoutName, UnaryName

#: Hardcoded sizes stay below this, so that m·n·16 bytes cannot overflow 64 bits.
MAX_UNARY_SIDE = 2**29 - 1

#: What zero and identity move: whole bytes, up to one 128-bit register.
UNARY_BITS = (8, 16, 32, 64, 128)


def _check_side(value: int | None, name: str) -> int | None:
    if value is None:
        return None
    return check_integer(value, name, 1, MAX_UNARY_SIDE, "None or an integer from 1 to 2**29 - 1")


def check_unary_dtype(op: UnaryOp, dtype: DType | ElementType) -> DType:
    """The requested element type; `UnsupportedDtype` if the function does not support it."""
    element = parse_dtype(dtype)
    if op.computes and element not in FUNCTION_DTYPES:
        words = ", ".join(map(str, FUNCTION_DTYPES))
        raise UnsupportedDtype(dtype=f"{element} of {op.value}", supported=words)
    if element.bits not in UNARY_BITS:
        supported = [row for row in DTYPES.values() if row.bits in UNARY_BITS]
        raise UnsupportedDtype(dtype=element, supported=", ".join(map(str, supported)))
    return element


@dataclass(frozen=True, init=False)
class Unary:
    """B = op(A) on m×n matrices.

    Parameters
    ----------
    op : a member or value of `UnaryOp`.
    m, n : sizes, 1 to 2**29 - 1; None means given at run time, so that one kernel serves every size.
    dtype : element type of A and B: "f32", "f64", or "bf16" and "f16", which are computed in float32 and
        rounded once; zero and identity take every type.
    a : layout of A: "col", or "strided" (any two strides, of identity only, for B too).
    b : layout of B: "col"; "row", for which A is transposed; "strided" where A is.

    Leading dimensions are given with each call. The zero kernel has no A.

    Raises
    ------
    UnsupportedDtype, InvalidSize, InvalidChoice

    Examples
    --------
    >>> Unary("relu", 64, 48, b="row").operands[1].layout
    <Layout.ROW: 'row'>
    >>> import numpy as np
    >>> Unary("square", 2, 2).reference(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[ 1.,  4.],
           [ 9., 16.]])

    Source: scalable.uni-jena.de/opt/pbtc, §7.3.
    """

    operation: ClassVar[str] = "unary"
    __repr__ = constructor_text
    op: UnaryOp
    m: int | None
    n: int | None
    dtype: DType
    a: Layout
    b: Layout

    def __init__(
        self,
        op: UnaryOp | UnaryName,
        m: int | None = None,
        n: int | None = None,
        dtype: DType | ElementType = "f32",
        *,
        a: Layout | LayoutName = Layout.COL,
        b: Layout | LayoutName = Layout.COL,
    ) -> None:
        what = parse_choice(UnaryOp, op, "op")
        of_a, of_b = (
            parse_choice(Layout, given, name, STRIDED_LAYOUTS) for given, name in ((a, "a"), (b, "b"))
        )
        strided = of_a is Layout.STRIDED
        if of_a is Layout.ROW or (strided and what is not UnaryOp.IDENTITY):
            raise InvalidChoice(name="a", found=shown(of_a.value), allowed="col (or strided, of identity)")
        if strided is not (of_b is Layout.STRIDED):
            raise InvalidChoice(
                name="b", found=shown(of_b.value), allowed="strided" if strided else "col, row"
            )
        set_fields(
            self,
            op=what,
            m=_check_side(m, "m"),
            n=_check_side(n, "n"),
            dtype=check_unary_dtype(what, dtype),
            a=of_a,
            b=of_b,
        )

    @property
    def operands(self) -> tuple[Operand, Operand]:
        """A (m, n) and B (m, n); the zero kernel does not read A."""
        return (
            Operand("a", self.m, self.n, self.dtype, self.a, "mn"),
            Operand("b", self.m, self.n, self.dtype, self.b, "mn"),
        )

    @property
    def flops(self) -> int | None:
        """One operation per element, none for zero and identity; None if a size is given at run time."""
        if self.m is None or self.n is None:
            return None
        return self.m * self.n * self.op.computes

    @property
    def bytes(self) -> int | None:
        """Bytes that one call must move: A read (not by zero), B written; None where a size is open.

        >>> Unary("zero", 4, 5).bytes, Unary("relu", 4, 5).bytes
        (80, 160)
        """
        if self.m is None or self.n is None:
            return None
        return self.m * self.n * self.dtype.size * (1 if self.op is UnaryOp.ZERO else 2)

    def reference(self, a: NDArray[Any]) -> NDArray[Any]:
        """The meaning of the problem, (m, n) -> (m, n): in float64, or exactly for zero and identity.

        Of A the zero kernel takes the shape alone.
        """
        return meaning(self.op, a)
