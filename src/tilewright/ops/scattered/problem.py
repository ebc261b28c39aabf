"""Matrix products whose rows, columns and depths are located by tables of offsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.spec.dtype import DType, Use, accumulator, dtypes_for, parse_dtype
from tilewright.spec.problem import RunTimeSizes
from tilewright.spec.records import set_fields

#: Element types whose products by tables have kernels.
SCATTERED_DTYPES = dtypes_for(Use.SCATTERED)


@dataclass(frozen=True, init=False)
class ScatteredGemm(RunTimeSizes):
    """C[cm[i] + cn[j]] = alpha · Σ_p A[am[i] + ak[p]] · B[bn[j] + bk[p]] + beta · C[cm[i] + cn[j]].

    Every binary contraction is such a product: i counts the dimensions of A and C in some order, j those of B
    and C, p those of A and B; what offsets the elements have is in tables. So no operand is permuted first.
    C has the type of the sums, which are never rounded between blocks of depths.

    Source: Matthews, High-Performance Tensor Contraction without Transposition, SIAM J. Sci. Comput. 40(1),
    2018 (block-scatter matrices); scalable.uni-jena.de/opt/pbtc for the contraction itself.

    Examples
    --------
    >>> str(ScatteredGemm("bf16").acc)
    'f32'
    """

    operation: ClassVar[str] = "scattered"
    dtype: DType

    def __init__(self, dtype: DType | str = "f32") -> None:
        set_fields(self, dtype=parse_dtype(dtype, SCATTERED_DTYPES))

    @property
    def acc(self) -> DType:
        """The type of the sums."""
        return accumulator(self.dtype, self.dtype)
