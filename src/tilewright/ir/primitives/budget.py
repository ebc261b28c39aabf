"""The budget of a task, which cancels long-running calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir.nodes import Expression, Primitive, PrimitiveOperands


@dataclass(frozen=True)
class Spend(Primitive):
    """Takes so many elements or multiply-adds off the budget of the task: the end of a cancelled call.

    Stands in loops of a task that may take any number of turns; without parallel loops it does nothing.
    """

    word: ClassVar[str] = "spend"
    emission: ClassVar[str] = "budget:emit_spend"
    long: ClassVar[bool] = True

    work: Expression

    def run(self, at: PrimitiveOperands) -> None:
        """Changes no buffer."""
