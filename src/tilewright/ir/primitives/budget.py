"""The budget of a task, which cancels long-running calls."""

from __future__ import annotations

from typing import ClassVar

from tilewright.ir.expressions import Expression
from tilewright.ir.nodes import Primitive, PrimitiveOperands
from tilewright.records import dataclass


@dataclass(frozen=True)
class Spend(Primitive):
    """Subtracts elements or multiply-adds from the budget of the task, which ends if the call was cancelled.

    Used in loops of a task with an unbounded number of iterations; without parallel loops it does nothing.
    """

    word: ClassVar[str] = "spend"
    emission: ClassVar[str] = "budget:emit_spend"
    long: ClassVar[bool] = True

    work: Expression

    def run(self, at: PrimitiveOperands) -> None:
        """Changes no buffer."""
