"""Functions of pairs of elements: y = op(left, activation(right)), with operands that broadcast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from tilewright.records import dataclass
from tilewright.spec.arguments import parse_choice
from tilewright.spec.binary_functions import BinaryOp, binary_meaning
from tilewright.spec.constructor import constructor_text
from tilewright.spec.dtype import F32, FUNCTION_DTYPES, DType, parse_dtype
from tilewright.spec.epilogue import ACTIVATIONS
from tilewright.spec.functions import UnaryOp
from tilewright.spec.problem import RunTimeSizes
from tilewright.spec.records import set_fields

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tilewright.typing import ActivationName, BinaryName, ElementType


@dataclass(frozen=True, init=False)
class BinaryFunction(RunTimeSizes):
    """y = op(left, activation(right)) of matrices whose rows' elements are adjacent in y.

    All sizes and strides are given at run time: a stride of 0 repeats an operand along rows or matrices, and
    along columns one operand may have one element for each row.

    Parameters
    ----------
    op : a member or value of `BinaryOp`: "add", "subtract", "multiply", "divide", "maximum", "minimum".
    dtype : element type of both operands and y: f32, f64, bf16 or f16. Computed in f32, of f64 in f64,
        rounded once.
    activation : a function of right's elements, as those of products; None for the elements themselves.

    Raises
    ------
    InvalidChoice, UnsupportedDtype

    Examples
    --------
    >>> import numpy as np
    >>> BinaryFunction("multiply", activation="relu").reference(np.array([2.0, 2.0]), np.array([3.0, -3.0]))
    array([6., 0.])

    Source: Shazeer, GLU Variants Improve Transformer, arXiv:2002.05202, for products with activations.
    """

    operation: ClassVar[str] = "binary"
    __repr__ = constructor_text
    op: BinaryOp
    dtype: DType
    activation: UnaryOp | None

    def __init__(
        self,
        op: BinaryOp | BinaryName,
        dtype: DType | ElementType = "f32",
        activation: UnaryOp | ActivationName | None = None,
    ) -> None:
        given = activation
        set_fields(
            self,
            op=parse_choice(BinaryOp, op, "op"),
            dtype=parse_dtype(dtype, FUNCTION_DTYPES),
            activation=None if given is None else parse_choice(UnaryOp, given, "activation", ACTIVATIONS),
        )

    @property
    def acc(self) -> DType:
        """The type that is computed in."""
        return self.dtype if self.dtype.bits == 64 else F32

    def reference(self, left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
        """The meaning of the problem, element by element, in float64."""
        return binary_meaning(self.op, left, right, self.activation)
