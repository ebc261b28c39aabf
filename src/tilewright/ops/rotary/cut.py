"""How rotary embeddings are cut: rows of tasks."""

from __future__ import annotations

from tilewright.errors import InvalidSize
from tilewright.machine.machine import Machine
from tilewright.macro.partition import TASK_ELEMENTS
from tilewright.ops.rotary.problem import Rotary
from tilewright.records import dataclass

#: Elements that are read for one that is written, about: of x, and of the tables half as much each.
_READ = 2


@dataclass(frozen=True)
class RotaryCut:
    """The elements of x that a task has at most, where several threads share a call."""

    task_elements: int

    def __post_init__(self) -> None:
        if self.task_elements <= 0:
            raise InvalidSize(name="rotary task_elements", found=self.task_elements, required="positive")


def choose_rotary(problem: Rotary, machine: Machine) -> RotaryCut:  # noqa: ARG001 - as all cuts are chosen
    """The cut of a rotary embedding: the same for all machines.

    >>> from tilewright.machine.catalog import find_machine
    >>> choose_rotary(Rotary(), find_machine("znver5")).task_elements
    524288
    """
    return RotaryCut(TASK_ELEMENTS // _READ)
