"""Products whose operands are located by tables that the caller fills: rows behind pointers, convolutions."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tilewright.errors import UnsupportedDtype
from tilewright.records import dataclass
from tilewright.spec.constructor import constructor_text
from tilewright.spec.dtype import ACCUMULATORS, DType, parse_dtype
from tilewright.spec.problem import ProductTypes, RunTimeSizes
from tilewright.spec.records import set_fields

if TYPE_CHECKING:
    from tilewright.typing import ElementType


@dataclass(frozen=True, init=False)
class TableProduct(RunTimeSizes):
    """C = alpha·A·B + beta·C, with the places of all rows, columns and depths in tables.

    The C function at `address` takes C, A and B, the tables of `tables.nest.TABLES` and their sizes, then
    alpha and beta, which are of the type of the sums, as C is. Elements of A and B are widened to it when
    they are packed.

    Parameters
    ----------
    dtype : element type of A.
    b_dtype : that of B; by default A's.
    sums : type of the sums and of C; by default as in `Gemm`.

    Raises
    ------
    UnsupportedDtype : if sums can't hold the elements of A and B.

    Examples
    --------
    >>> TableProduct("f32", sums="f64").sums.name
    'f64'

    Source: Matthews, High-performance tensor contraction without transposition, SIAM J. Sci. Comput. 40(1),
    2018, doi:10.1137/16M108968X.
    """

    operation: ClassVar[str] = "table_product"
    dtype: DType
    b_dtype: DType
    sums: DType

    def __init__(
        self,
        dtype: DType | ElementType = "f32",
        *,
        b_dtype: DType | ElementType | None = None,
        sums: DType | ElementType | None = None,
    ) -> None:
        types = ProductTypes.parse(dtype, b_dtype)
        acc = types.acc if sums is None else parse_dtype(sums, ACCUMULATORS)
        if not (acc.holds(types.a) and acc.holds(types.b)):
            raise UnsupportedDtype(dtype=f"sums of {acc} for {types.a} x {types.b}", supported=f"{types.acc}")
        set_fields(self, dtype=types.a, b_dtype=types.b, sums=acc)

    __repr__ = constructor_text
