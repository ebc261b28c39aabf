"""The budget of a task: the work left until it checks whether its call was cancelled.

A task of unbounded work spends from its budget. When the budget is used up, the task asks its team, which
lets signal handlers run (`threads/pool_code.py`), and either begins a new budget or ends. The budget is in
the frame of the task: a pointer to the team, and what is left. Spending costs a load, a store and a branch
that is hardly ever taken.
"""

from __future__ import annotations

from typing import NamedTuple

from tilewright.llvm.build import Function
from tilewright.llvm.team import Team
from tilewright.llvm.values import INT64, POINTER, Value, int64
from tilewright.machine.isa import Isa
from tilewright.micro.calls import Operands, value

#: Elements or multiply-adds between two checks: 0.1 to 20 ms; a check takes 30 ns.
WHOLE = 1 << 22

#: The value of a budget after a cancelled call: lower than any spending reaches.
STOPPED = -(1 << 62)

#: The name of the operand that long primitives get besides their fields.
OPERAND = "budget"

_WORD_BYTES = 8


class Budget(NamedTuple):
    """The budget of the task that a function belongs to; without a place it is unlimited."""

    f: Function
    place: Value | None

    @classmethod
    def begin(cls, f: Function, team: Value) -> Budget:
        """A whole budget in the frame of a function."""
        place = f.alloca(INT64, 2, _WORD_BYTES)
        f.store(team, place, _WORD_BYTES)
        f.store(int64(WHOLE), f.at(place, _WORD_BYTES), _WORD_BYTES)
        return cls(f, place)

    @classmethod
    def of(cls, f: Function, given: Operands) -> Budget:
        """The budget among the operands of a primitive."""
        found = given.get(OPERAND)
        return cls(f, found if isinstance(found, Value) else None)

    def spend(self, work: Value) -> None:
        """Subtracts work; returns from the function if the budget is used up and the call was cancelled."""
        if self.place is None:
            return
        f, place = self.f, self.f.at(self.place, _WORD_BYTES)
        left = f.sub(f.load(INT64, place, _WORD_BYTES), work)
        f.store(left, place, _WORD_BYTES)
        with f.when(f.icmp("<", left, 0)):
            f.store(int64(STOPPED), place, _WORD_BYTES)
            Team.end_if_cancelled(f, f.load(POINTER, self.place, _WORD_BYTES))
            f.store(int64(WHOLE), place, _WORD_BYTES)

    def end_if_stopped(self) -> None:
        """Returns from the function if a primitive that it called has ended early."""
        assert self.place is not None
        left = self.f.load(INT64, self.f.at(self.place, _WORD_BYTES), _WORD_BYTES)
        with self.f.when(self.f.icmp("==", left, STOPPED)):
            self.f.ret()


def emit_spend(f: Function, _: Isa, given: Operands) -> None:
    """The code of a `Spend`, in place."""
    Budget.of(f, given).spend(value(given, "work"))
