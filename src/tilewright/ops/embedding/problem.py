"""Embeddings: rows gathered from a table by their indices, as they are or times a number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tilewright.records import dataclass
from tilewright.spec.arguments import check_flag
from tilewright.spec.constructor import constructor_text
from tilewright.spec.dtype import F32, FUNCTION_DTYPES, I8, DType, parse_dtype
from tilewright.spec.problem import RunTimeSizes
from tilewright.spec.records import set_fields

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tilewright.typing import ElementType

#: Element types of tables: floats, and int8 with a scale for each row.
TABLE_DTYPES = (*FUNCTION_DTYPES, I8)


@dataclass(frozen=True, init=False)
class Embedding(RunTimeSizes):
    """y[i] = table[indices[i]] for every row i; all sizes and strides are given at run time.

    Parameters
    ----------
    dtype : element type of the table, and of y: f32, f64, bf16 or f16; or i8, with a float32 scale for each
        row of the table, where y is f32.
    scaled : whether y is multiplied by a number, in f32 (of f64 in f64), and rounded once.

    Raises
    ------
    InvalidFlag, UnsupportedDtype

    Examples
    --------
    >>> Embedding("f64").reference(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 1]))
    array([[3., 4.],
           [3., 4.]])
    """

    operation: ClassVar[str] = "embedding"
    __repr__ = constructor_text
    dtype: DType
    scaled: bool

    def __init__(self, dtype: DType | ElementType = "f32", scaled: bool = False) -> None:
        element = parse_dtype(dtype, TABLE_DTYPES)
        set_fields(self, dtype=element, scaled=check_flag(scaled, "scaled"))

    @property
    def quantised(self) -> bool:
        """Whether each row of the table has a scale."""
        return self.dtype == I8

    @property
    def result(self) -> DType:
        """The element type of y."""
        return F32 if self.quantised else self.dtype

    def reference(
        self,
        table: NDArray[Any],
        indices: NDArray[Any],
        scales: NDArray[Any] | None = None,
        *,
        scale: float = 1.0,
    ) -> NDArray[Any]:
        """The meaning of the problem in float64."""
        found: NDArray[Any] = table[indices].astype(np.float64) * scale
        return found if scales is None else found * scales[indices][..., np.newaxis].astype(np.float64)
