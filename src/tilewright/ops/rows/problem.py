"""Functions of rows: softmax, layer norm, sums and their relatives, whose results depend on whole rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tilewright.errors import InvalidChoice, shown
from tilewright.records import dataclass
from tilewright.spec.arguments import parse_choice
from tilewright.spec.constructor import constructor_text
from tilewright.spec.dtype import F32, FUNCTION_DTYPES, DType, parse_dtype
from tilewright.spec.problem import Layout, RunTimeSizes
from tilewright.spec.records import set_fields
from tilewright.spec.row_functions import RowOp, row_meaning

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tilewright.typing import ElementType, LayoutName, RowOpName


#: Layouts of the rows: elements of one adjacent, or elements of one column.
ROW_LAYOUTS = (Layout.ROW, Layout.COL)


@dataclass(frozen=True, init=False)
class RowFunction(RunTimeSizes):
    """y = op(x) of every row of matrices; all sizes, and strides between lines, are given at run time.

    Parameters
    ----------
    op : a member or value of `RowOp`.
    dtype : element type of x and y: f32, f64, bf16 or f16. Computed in f32, of f64 in f64, rounded once.
    layout : "row" where the elements of a row are adjacent in x and y, "col" where those of a column are. Of
        numbers of rows, "col" means that these are adjacent, and "row" nothing.
    weight, bias : element types of what multiplies and is added along each row, or None: norms take a
        weight, layer norm a bias.

    Raises
    ------
    InvalidChoice, UnsupportedDtype

    Examples
    --------
    >>> problem = RowFunction("rms_norm", weight="f32")
    >>> problem.reference(np.array([[3.0, 4.0]]), np.array([1.0, 2.0])).round(3)
    array([[0.849, 2.263]])

    Source: Ba, Kiros and Hinton, arXiv:1607.06450; Zhang and Sennrich, arXiv:1910.07467.
    """

    operation: ClassVar[str] = "rows"
    __repr__ = constructor_text
    op: RowOp
    dtype: DType
    layout: Layout
    weight: DType | None
    bias: DType | None

    def __init__(
        self,
        op: RowOp | RowOpName,
        dtype: DType | ElementType = "f32",
        *,
        layout: Layout | LayoutName = Layout.ROW,
        weight: DType | ElementType | None = None,
        bias: DType | ElementType | None = None,
    ) -> None:
        what = parse_choice(RowOp, op, "op")
        taken = {"weight": what.is_norm, "bias": what is RowOp.LAYER_NORM}
        for name, given in (("weight", weight), ("bias", bias)):
            if given is not None and not taken[name]:
                raise InvalidChoice(name=f"{name} of {what.value}", found=shown(given), allowed="None")
        set_fields(
            self,
            op=what,
            dtype=parse_dtype(dtype, FUNCTION_DTYPES),
            layout=parse_choice(Layout, layout, "layout", ROW_LAYOUTS),
            weight=None if weight is None else parse_dtype(weight, FUNCTION_DTYPES),
            bias=None if bias is None else parse_dtype(bias, FUNCTION_DTYPES),
        )

    @property
    def acc(self) -> DType:
        """The type that a row is computed in."""
        return self.dtype if self.dtype.bits == 64 else F32

    def reference(
        self,
        x: NDArray[Any],
        weight: NDArray[Any] | None = None,
        bias: NDArray[Any] | None = None,
        *,
        eps: float = 0.0,
    ) -> NDArray[Any]:
        """The meaning of the problem, (..., n) -> (..., n) or (...), in float64."""
        with np.errstate(all="ignore"):
            found = row_meaning(self.op, np.asarray(x).astype(np.float64), eps)
            if weight is not None:
                found = found * weight.astype(np.float64)
            return found if bias is None else found + bias.astype(np.float64)
