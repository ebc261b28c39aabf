"""Functions of single elements of arrays, matrix by matrix; without threads and for one matrix: `Unary`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from tilewright.errors import InvalidChoice, UnsupportedDtype, shown
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
    op : a member or value of `UnaryOp` that computes; identity where y has another type than x.
    dtype : element type of x and y: f32, f64, bf16 or f16. Computed in f32, of f64 in f64, rounded once.
    y_dtype : element type of y, of identity, which then converts: as `numpy.ndarray.astype`.

    Raises
    ------
    InvalidChoice, UnsupportedDtype

    Examples
    --------
    >>> Elementwise("relu", "bf16").op
    <UnaryOp.RELU: 'relu'>
    >>> str(Elementwise("identity", "f32", y_dtype="bf16").y_dtype)
    'bf16'
    """

    operation: ClassVar[str] = "elementwise"
    __repr__ = constructor_text
    op: UnaryOp
    dtype: DType
    y_dtype: DType

    def __init__(
        self,
        op: UnaryOp | UnaryName,
        dtype: DType | ElementType = "f32",
        *,
        y_dtype: DType | ElementType | None = None,
    ) -> None:
        what, of_x = parse_choice(UnaryOp, op, "op"), parse_dtype(dtype, FUNCTION_DTYPES)
        of_y = of_x if y_dtype is None else parse_dtype(y_dtype, FUNCTION_DTYPES)
        converts = what is UnaryOp.IDENTITY and of_y != of_x
        if not what.computes and not converts:
            words = ", ".join(one.value for one in UnaryOp if one.computes)
            raise InvalidChoice(name="op", found=shown(what.value), allowed=words)
        if what.computes and of_y != of_x:
            raise UnsupportedDtype(dtype=f"{of_y} results of {what.value} of {of_x}", supported=of_x)
        set_fields(self, op=what, dtype=of_x, y_dtype=of_y)

    @property
    def acc(self) -> DType:
        """The type that is computed in."""
        return self.dtype if self.dtype.bits == 64 else F32

    @property
    def converts(self) -> bool:
        """Whether elements of y have another type than those of x."""
        return self.y_dtype != self.dtype

    def reference(self, x: NDArray[Any]) -> NDArray[Any]:
        """The meaning of the problem, element by element: in float64; of identity the numbers themselves."""
        return meaning(self.op, x)
