"""Products with a triangular matrix, of which only the triangle is multiplied."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, get_args

import numpy as np

from tilewright.cached import cached_property
from tilewright.records import dataclass
from tilewright.spec.arguments import check_flag, check_size, parse_choice
from tilewright.spec.constructor import constructor_text
from tilewright.spec.dtype import DType
from tilewright.spec.problem import STRIDED_LAYOUTS, Layout, Operand, ProductTypes, exact_dtype
from tilewright.spec.records import set_fields
from tilewright.typing import ElementType, LayoutName, SideName

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Side(Enum):
    """Position of the triangular matrix in the product."""

    LEFT, RIGHT = get_args(SideName)


@dataclass(frozen=True, init=False)
class Trmm:
    """C[m, n] = alpha * T @ B[m, n] or alpha * B @ T, where T is one triangle of the square matrix A.

    Parameters
    ----------
    m, n : sizes of B and C; None means given at run time. A is (m, m) on the left, (n, n) on the right.
    dtype : element type of A and B ("f32", "bf16", "i8", "c64", ...).
    out_dtype : that of C; by default A's. Sums and alpha are as in `Gemm`.
    a, b, c : layouts "row", "col" or "strided" (any two strides, given at run time).
    side : "left" or "right".
    lower : whether T is the lower triangle of A or the upper.
    unit : whether the diagonal of T is 1, regardless of the elements of A.

    Elements of A outside the triangle are ignored: no element of B is multiplied by a zero in their place.

    Raises
    ------
    UnsupportedDtype, InvalidSize, InvalidChoice

    Examples
    --------
    >>> Trmm(4, 10).flops
    200

    Source: Dongarra et al., A Set of Level 3 Basic Linear Algebra Subprograms, ACM TOMS 16(1), 1990.
    """

    operation: ClassVar[str] = "trmm"
    __repr__ = constructor_text
    m: int | None
    n: int | None
    dtype: DType
    out_dtype: DType
    a: Layout
    b: Layout
    c: Layout
    side: Side
    lower: bool
    unit: bool

    def __init__(
        self,
        m: int | None = None,
        n: int | None = None,
        dtype: DType | ElementType = "f32",
        *,
        a: Layout | LayoutName = Layout.ROW,
        b: Layout | LayoutName = Layout.ROW,
        c: Layout | LayoutName = Layout.ROW,
        out_dtype: DType | ElementType | None = None,
        side: Side | SideName = Side.LEFT,
        lower: bool = True,
        unit: bool = False,
    ) -> None:
        types = ProductTypes.parse(dtype, None, out_dtype)
        set_fields(
            self,
            m=check_size(m, "m"),
            n=check_size(n, "n"),
            dtype=types.a,
            out_dtype=types.c,
            side=parse_choice(Side, side, "side"),
            lower=check_flag(lower, "lower"),
            unit=check_flag(unit, "unit"),
            a=parse_choice(Layout, a, "a", STRIDED_LAYOUTS),
            b=parse_choice(Layout, b, "b", STRIDED_LAYOUTS),
            c=parse_choice(Layout, c, "c", STRIDED_LAYOUTS),
        )

    @cached_property
    def types(self) -> ProductTypes:
        """The element types of A, B and C, and that of the sums."""
        return ProductTypes.parse(self.dtype, None, self.out_dtype)

    @property
    def order(self) -> int | None:
        """Rows and columns of A."""
        return self.m if self.side is Side.LEFT else self.n

    @property
    def operands(self) -> tuple[Operand, Operand, Operand]:
        """A, square, B (m, n) and C (m, n)."""
        return (
            Operand(
                "a", self.order, self.order, self.dtype, self.a, "mm" if self.side is Side.LEFT else "nn"
            ),
            Operand("b", self.m, self.n, self.dtype, self.b, "mn"),
            Operand("c", self.m, self.n, self.out_dtype, self.c, "mn"),
        )

    @property
    def flops(self) -> int | None:
        """Operations of one call: m·n·(m+1), on the right m·n·(n+1), of complex numbers 4 times as many.

        None where a size is given at run time.
        """
        if self.m is None or self.n is None or self.order is None:
            return None
        return (4 if self.types.is_complex else 1) * self.m * self.n * (self.order + 1)

    @property
    def bytes(self) -> int | None:
        """Bytes that one call must move: the triangle and B read, C written, each once.

        None where a size is given at run time.

        >>> Trmm(4, 10).bytes
        360
        """
        if self.m is None or self.n is None or self.order is None:
            return None
        triangle = self.order * (self.order + 1) // 2
        read = (triangle + self.m * self.n) * self.dtype.size
        return read + self.m * self.n * self.out_dtype.size

    def reference(self, a: NDArray[Any], b: NDArray[Any], *, alpha: float = 1) -> NDArray[Any]:
        """The meaning of the problem in float64, complex128 or 64-bit integers: a square, b (m, n) -> (m, n).

        Of finite numbers; beyond the triangle this has zeros.
        """
        exact = exact_dtype(self.types)
        if alpha == 0:
            return np.zeros(b.shape, exact)
        triangle = (np.tril if self.lower else np.triu)(a.astype(exact))
        if self.unit:
            np.fill_diagonal(triangle, 1)
        left, right = (triangle, b.astype(exact))[:: 1 if self.side is Side.LEFT else -1]
        found: NDArray[Any] = exact.type(alpha) * (left @ right)
        return found
