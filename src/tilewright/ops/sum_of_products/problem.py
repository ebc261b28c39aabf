"""Products of elements of one or two arrays, summed or not: einsums without a matrix product."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from tilewright.errors import InvalidChoice, shown
from tilewright.records import dataclass
from tilewright.spec.arguments import as_integer, parse_choice
from tilewright.spec.constructor import constructor_text
from tilewright.spec.dtype import (
    F32,
    DType,
    Use,
    dtypes_for,
    parse_dtype,
)
from tilewright.spec.problem import RunTimeSizes
from tilewright.spec.products import product_meaning
from tilewright.spec.records import set_fields
from tilewright.typing import ElementType, WalkName

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Element types of such products. Those of unsigned integers are the same bits as those of signed ones.
SUM_DTYPES = dtypes_for(Use.SUMS)


class Walk(Enum):
    """How vectors lie in a matrix, and whether its columns are summed.

    ALONG: sums of adjacent elements. ACROSS: sums of columns, of rows that are adjacent. WEIGHTED: the same,
    times one element of y for each column. APART: sums of elements anywhere, one by one. Without a sum, EACH:
    products of adjacent elements. SPREAD: the same, of one element of x for each row. SINGLE: products of
    elements anywhere, one by one.
    """

    ALONG, ACROSS, WEIGHTED, APART, EACH, SPREAD, SINGLE = get_args(WalkName)

    @property
    def sums(self) -> bool:
        """Whether columns are summed."""
        return self in (Walk.ALONG, Walk.ACROSS, Walk.WEIGHTED, Walk.APART)

    @property
    def factors(self) -> tuple[int, ...]:
        """How many arrays may be multiplied."""
        return (1, 2) if self in (Walk.ALONG, Walk.ACROSS, Walk.APART) else (2,)


@dataclass(frozen=True, init=False)
class SumOfProducts(RunTimeSizes):
    """z[b, o, i] = Σ x[b, o, t, i, j] · y[b, o, t, i, j] over t and j, or every product by itself.

    All sizes and strides are given at run time, in elements; a stride of 0 repeats.

    Parameters
    ----------
    walk : a member or value of `Walk`.
    factors : 2, or 1 where there is no y, which only some walks allow.
    dtype : element type of x, y and z. 16-bit floats are summed in f32 and rounded once; integers wrap.

    Raises
    ------
    InvalidChoice, UnsupportedDtype

    Examples
    --------
    >>> import numpy as np
    >>> problem = SumOfProducts("along", 2)
    >>> problem.reference(np.ones((1, 1, 2, 3, 4)), np.full((1, 1, 2, 3, 4), 2.0))
    array([[[16., 16., 16.]]])

    Source: what `numpy.einsum` calls a sum of products (numpy/_core/src/multiarray/einsum_sumprod.c.src).
    """

    operation: ClassVar[str] = "products"
    __repr__ = constructor_text
    walk: Walk
    factors: int
    dtype: DType

    def __init__(
        self, walk: Walk | WalkName = "along", factors: int = 1, dtype: DType | ElementType = "f32"
    ) -> None:
        how = parse_choice(Walk, walk, "walk")
        count = as_integer(factors)
        if count not in how.factors:
            words = " or ".join(map(str, how.factors))
            raise InvalidChoice(name=f"factors of {how.value!r}", found=shown(factors), allowed=words)
        set_fields(self, walk=how, factors=factors, dtype=parse_dtype(dtype, SUM_DTYPES))

    @property
    def acc(self) -> DType:
        """The type of the sums, or of their parts."""
        return F32 if self.dtype.is_narrow_float else self.dtype.real

    def reference(self, x: NDArray[Any], y: NDArray[Any] | None = None) -> NDArray[Any]:
        """The meaning of the problem, of arrays of five axes: in 64 bits, of integers wrapped around."""
        return product_meaning(x, y, (2, 4) if self.walk.sums else None)
