"""mmt4d: products of matrices in tiles, linalg.mmt4d of MLIR."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tilewright.cached import cached_property
from tilewright.errors import UnsupportedDtype
from tilewright.records import dataclass
from tilewright.spec.arguments import MAX_TILE, check_integer, check_size
from tilewright.spec.constructor import constructor_text
from tilewright.spec.dtype import DType
from tilewright.spec.problem import Layout, Operand, ProductTypes, exact_dtype
from tilewright.spec.records import set_fields

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tilewright.typing import ElementType

#: The sizes of one operation, in the order of its parameters: how many tiles, then how large they are.
TILE_COUNTS = ("m1", "n1", "k1")
TILE_SIZES = ("m0", "n0", "k0")


@dataclass(frozen=True, init=False)
class Mmt4d:
    """out[M1, N1, M0, N0] (+)= Σ lhs[M1, K1, M0, K0] · rhs[N1, K1, N0, K0]ᵀ, tile by tile.

    Parameters
    ----------
    m0, n0, k0 : tile sizes, 1 to 4096.
    dtype : element type of lhs.
    b_dtype : that of rhs; by default the same. The result is of the type of the sums: f32 of floats up to
        32 bits, i32 of integers up to 16.
    m1, n1, k1 : numbers of tiles; None means given at run time.

    beta is given with each call: 1 adds to out, 0 replaces it without reading it.

    Raises
    ------
    InvalidSize, UnsupportedDtype

    Examples
    --------
    >>> Mmt4d(8, 8, 4, "i8").out_dtype.name
    'i32'

    Source: IREE, Matrix Multiplication with MMT4D (2021).
    """

    operation: ClassVar[str] = "mmt4d"
    __repr__ = constructor_text
    m0: int
    n0: int
    k0: int
    dtype: DType
    b_dtype: DType
    m1: int | None
    n1: int | None
    k1: int | None

    def __init__(
        self,
        m0: int,
        n0: int,
        k0: int,
        dtype: DType | ElementType = "f32",
        *,
        b_dtype: DType | ElementType | None = None,
        m1: int | None = None,
        n1: int | None = None,
        k1: int | None = None,
    ) -> None:
        types = ProductTypes.parse(dtype, b_dtype)
        if types.is_complex:
            raise UnsupportedDtype(dtype=f"{types.a} in mmt4d", supported="real types")
        values: dict[str, object] = {"dtype": types.a, "b_dtype": types.b}
        for name, size in zip(TILE_SIZES, (m0, n0, k0), strict=True):
            values[name] = check_integer(size, name, 1, MAX_TILE)
        for name, count in zip(TILE_COUNTS, (m1, n1, k1), strict=True):
            values[name] = check_size(count, name)
        set_fields(self, **values)

    @cached_property
    def types(self) -> ProductTypes:
        """The element types of lhs, rhs and out, and that of the sums, which is out's."""
        acc = ProductTypes.parse(self.dtype, self.b_dtype).acc
        return ProductTypes.parse(self.dtype, self.b_dtype, acc)

    @property
    def out_dtype(self) -> DType:
        """The element type of the result."""
        return self.types.c

    @property
    def operands(self) -> tuple[Operand, Operand, Operand]:
        """lhs (m, k), rhs (n, k) and out (m, n), in tiles."""

        def size(count: int | None, tile: int) -> int | None:
            return None if count is None else count * tile

        m, n, k = size(self.m1, self.m0), size(self.n1, self.n0), size(self.k1, self.k0)
        return (
            Operand("lhs", m, k, self.dtype, Layout.PACKED),
            Operand("rhs", n, k, self.b_dtype, Layout.PACKED),
            Operand("out", m, n, self.out_dtype, Layout.PACKED),
        )

    @property
    def flops(self) -> int | None:
        """2·m·n·k of whole tiles; None where a number of tiles is given at run time."""
        if self.m1 is None or self.n1 is None or self.k1 is None:
            return None
        return 2 * self.m1 * self.n1 * self.k1 * self.m0 * self.n0 * self.k0

    @property
    def bytes(self) -> int | None:
        """Bytes that one call with beta = 0 must move: each operand once."""
        if self.m1 is None or self.n1 is None or self.k1 is None:
            return None
        m, n, k = self.m1 * self.m0, self.n1 * self.n0, self.k1 * self.k0
        return k * (m * self.dtype.size + n * self.b_dtype.size) + m * n * self.out_dtype.size

    def reference(
        self, lhs: NDArray[Any], rhs: NDArray[Any], out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """The meaning of the problem, in float64 or in 64-bit integers; adds to `out` where it is given."""
        exact = exact_dtype(self.types)
        total: NDArray[Any] = np.einsum("mkij,nkhj->mnih", lhs.astype(exact), rhs.astype(exact))
        return total if out is None else total + out.astype(exact)
