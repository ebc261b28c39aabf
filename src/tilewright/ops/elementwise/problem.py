"""Functions of single elements of arrays, matrix by matrix; without threads and for one matrix: `Unary`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from tilewright.errors import InvalidChoice, shown
from tilewright.records import dataclass
from tilewright.spec.arguments import parse_choice
from tilewright.spec.constructor import constructor_text
from tilewright.spec.dtype import F32, FUNCTION_DTYPES, DType, parse_dtype
from tilewright.spec.functions import UnaryOp, meaning
from tilewright.spec.problem import RunTimeSizes
from tilewright.spec.records import set_fields

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tilewright.typing import ElementType, UnaryName


@dataclass(frozen=True, init=False)
class Elementwise(RunTimeSizes):
    """y = op(x) of matrices whose rows' elements are adjacent; all sizes and strides are given at run time.

    Parameters
    ----------
    op : a member or value of `UnaryOp` that computes.
    dtype : element type of x and y: f32, f64, bf16 or f16. Computed in f32, of f64 in f64, rounded once.

    Raises
    ------
    InvalidChoice, UnsupportedDtype

    Examples
    --------
    >>> Elementwise("relu", "bf16").op
    <UnaryOp.RELU: 'relu'>
    """

    operation: ClassVar[str] = "elementwise"
    __repr__ = constructor_text
    op: UnaryOp
    dtype: DType

    def __init__(self, op: UnaryOp | UnaryName, dtype: DType | ElementType = "f32") -> None:
        what = parse_choice(UnaryOp, op, "op")
        if not what.computes:
            words = ", ".join(one.value for one in UnaryOp if one.computes)
            raise InvalidChoice(name="op", found=shown(what.value), allowed=words)
        set_fields(self, op=what, dtype=parse_dtype(dtype, FUNCTION_DTYPES))

    @property
    def acc(self) -> DType:
        """The type that is computed in."""
        return self.dtype if self.dtype.bits == 64 else F32

    def reference(self, x: NDArray[Any]) -> NDArray[Any]:
        """The meaning of the problem, element by element, in float64."""
        return meaning(self.op, x)
