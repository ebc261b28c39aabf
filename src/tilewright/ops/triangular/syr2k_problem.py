"""Products of one or two matrices with their transposes, computed on one triangle (SYRK, SYR2K)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tilewright.cached import cached_property
from tilewright.errors import InvalidSize
from tilewright.records import dataclass
from tilewright.spec.arguments import check_flag, check_size, parse_choice
from tilewright.spec.constructor import constructor_text
from tilewright.spec.dtype import DType
from tilewright.spec.problem import STRIDED_LAYOUTS, Layout, Operand, ProductTypes, exact_dtype
from tilewright.spec.records import set_fields

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tilewright.typing import ElementType, LayoutName


@dataclass(frozen=True, init=False)
class Syrk:
    """C[n, n] = alpha * A[n, k] @ A.T + beta * C of which one triangle is computed, read and written.

    Parameters
    ----------
    n, k : sizes; None means given at run time.
    dtype : element type of A ("f32", "bf16", "i8", "c64", ...).
    out_dtype : that of C; by default A's. Sums, alpha and beta are as in `Gemm`.
    a, c : layouts "row", "col" or "strided" (any two strides, given at run time).
    lower : whether the triangle is the lower one, with the diagonal, or the upper.

    Complex matrices are transposed and not conjugated: C is symmetric, not Hermitian.

    Raises
    ------
    UnsupportedDtype, InvalidSize, InvalidChoice

    Examples
    --------
    >>> Syrk(4, 10).flops
    200

    Source: Kuzma et al., Softw. Pract. Exper. 2023, doi:10.1002/spe.3214, §5.1;
    Dongarra et al., A Set of Level 3 Basic Linear Algebra Subprograms, ACM TOMS
    16(1), 1990.
    """

    operation: ClassVar[str] = "syrk"
    __repr__ = constructor_text
    n: int | None
    k: int | None
    dtype: DType
    out_dtype: DType
    a: Layout
    c: Layout
    lower: bool

    def __init__(
        self,
        n: int | None = None,
        k: int | None = None,
        dtype: DType | ElementType = "f32",
        *,
        a: Layout | LayoutName = Layout.ROW,
        c: Layout | LayoutName = Layout.ROW,
        out_dtype: DType | ElementType | None = None,
        lower: bool = True,
    ) -> None:
        types = ProductTypes.parse(dtype, None, out_dtype)
        set_fields(
            self,
            n=check_size(n, "n"),
            k=check_size(k, "k"),
            dtype=types.a,
            out_dtype=types.c,
            a=parse_choice(Layout, a, "a", STRIDED_LAYOUTS),
            c=parse_choice(Layout, c, "c", STRIDED_LAYOUTS),
            lower=check_flag(lower, "lower"),
        )

    @cached_property
    def types(self) -> ProductTypes:
        """The element types of the factors and of C, and that of the sums."""
        return ProductTypes.parse(self.dtype, None, self.out_dtype)

    @property
    def factors(self) -> tuple[str, ...]:
        """The names of the matrices that are multiplied."""
        return ("a",)

    @property
    def operands(self) -> tuple[Operand, ...]:
        """A (n, k), of `Syr2k` B (n, k), and C (n, n)."""
        factors = (
            Operand(name, self.n, self.k, self.dtype, getattr(self, name), "nk") for name in self.factors
        )
        return *factors, Operand("c", self.n, self.n, self.out_dtype, self.c, "nn")

    @property
    def flops(self) -> int | None:
        """Operations of one call: k·n·(n+1) for each product, of complex numbers 4 times as many.

        None where a size is given at run time.
        """
        if self.n is None or self.k is None:
            return None
        return (4 if self.types.is_complex else 1) * len(self.factors) * self.k * self.n * (self.n + 1)

    @property
    def bytes(self) -> int | None:
        """Bytes that one call with beta = 0 must move: factors read, the triangle written, each once.

        None where a size is given at run time.

        >>> Syrk(4, 10).bytes
        200
        """
        if self.n is None or self.k is None:
            return None
        triangle = self.n * (self.n + 1) // 2
        return len(self.factors) * self.n * self.k * self.dtype.size + triangle * self.out_dtype.size

    def reference(self, *matrices: NDArray[Any], alpha: float = 1, beta: float = 0) -> NDArray[Any]:
        """The meaning of the problem: the triangle in float64, complex128 or 64-bit integers, and zeros.

        Shapes a (n, k), of `Syr2k` b (n, k), c (n, n) -> (n, n). c is not read, and may be missing, when beta
        is 0.
        """
        exact, count = exact_dtype(self.types), len(self.factors)
        factors = [matrix.astype(exact) for matrix in matrices[:count]]
        rows = factors[0].shape[0]
        result = np.zeros((rows, rows), exact)
        if alpha != 0:
            for left, right in zip(factors, reversed(factors), strict=True):
                result += exact.type(alpha) * (left @ right.T)
        if beta != 0:
            if len(matrices) == count:
                raise InvalidSize(name="c", found=None, required="an array when beta is not 0")
            result += exact.type(beta) * matrices[count].astype(exact)
        return np.tril(result) if self.lower else np.triu(result)


@dataclass(frozen=True, init=False)
class Syr2k(Syrk):
    """C[n, n] = alpha * (A[n, k] @ B.T + B[n, k] @ A.T) + beta * C of which one triangle is computed.

    Parameters
    ----------
    n, k, dtype, out_dtype, a, c, lower : as of `Syrk`; B has A's type.
    b : layout of B.

    Raises
    ------
    UnsupportedDtype, InvalidSize, InvalidChoice

    Examples
    --------
    >>> Syr2k(4, 10).flops
    400

    Source: Kuzma et al., Softw. Pract. Exper. 2023, doi:10.1002/spe.3214, §5.1.
    """

    operation: ClassVar[str] = "syr2k"
    __repr__ = constructor_text
    b: Layout

    def __init__(
        self,
        n: int | None = None,
        k: int | None = None,
        dtype: DType | ElementType = "f32",
        *,
        a: Layout | LayoutName = Layout.ROW,
        b: Layout | LayoutName = Layout.ROW,
        c: Layout | LayoutName = Layout.ROW,
        out_dtype: DType | ElementType | None = None,
        lower: bool = True,
    ) -> None:
        super().__init__(n, k, dtype, a=a, c=c, out_dtype=out_dtype, lower=lower)
        set_fields(self, b=parse_choice(Layout, b, "b", STRIDED_LAYOUTS))

    @property
    def factors(self) -> tuple[str, ...]:
        """The names of the matrices that are multiplied."""
        return ("a", "b")
