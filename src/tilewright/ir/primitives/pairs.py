"""The primitive of functions of pairs of elements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import ClassVar

from tilewright.ir.expressions import ADJACENT, Constant, Expression
from tilewright.ir.nodes import Primitive, PrimitiveOperands, Slice
from tilewright.records import dataclass
from tilewright.spec.binary_functions import BinaryOp, binary_meaning
from tilewright.spec.dtype import DType
from tilewright.spec.epilogue import ACTIVATIONS
from tilewright.spec.functions import UnaryOp


@dataclass(frozen=True)
class CombineRows(Primitive):
    """to[i, j] = op(left[i, j], activation(right[i, j])), rounded once.

    Elements of rows are adjacent in `to`, and in `left` and `right` or one for each row. `to` may be one of
    them, and shares no other memory with them.

    Attributes
    ----------
    stream : results are stored past the caches if it is not 0.
    activation : of `ACTIVATIONS`; None for right's elements as they are.
    """

    word: ClassVar[str] = "combine_rows"
    emission: ClassVar[str] = "rows.combine:emit_combine_rows"
    choices: ClassVar[Mapping[str, type[Enum]]] = {"op": BinaryOp, "activation": UnaryOp}

    op: BinaryOp
    to: Slice
    left: Slice
    right: Slice
    rows: Expression
    columns: Expression
    stream: Expression
    activation: UnaryOp | None = None

    def rules(self, types: Mapping[str, DType]) -> Iterator[tuple[bool, str]]:
        """One type, adjacent elements, and an activation that padding with zeros raises no flag of."""
        yield self.to.strides[1] == ADJACENT, "elements of rows must be adjacent in to"
        for name, operand in (("left", self.left), ("right", self.right)):
            known = operand.strides[1] in (Constant(0), ADJACENT)
            yield known, f"{name} has adjacent elements, or one for each row"
        yield types["to"] == types["left"] == types["right"], "operands and results have one type"
        words = ", ".join(op.value for op in ACTIVATIONS)
        yield self.activation is None or self.activation in ACTIVATIONS, f"activation is one of {words}"

    def run(self, at: PrimitiveOperands) -> None:
        """The function in float64."""
        shape = (at.number("rows"), at.number("columns"))
        left, right = (at.window(name, *shape) for name in ("left", "right"))
        at.window("to", *shape)[...] = binary_meaning(self.op, left, right, self.activation)
