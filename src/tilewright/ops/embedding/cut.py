"""How embeddings are cut: elements of tasks."""

from __future__ import annotations

from tilewright.errors import InvalidSize
from tilewright.machine.machine import Machine
from tilewright.macro.partition import TASK_ELEMENTS
from tilewright.ops.embedding.problem import Embedding
from tilewright.records import dataclass


@dataclass(frozen=True)
class EmbeddingCut:
    """The elements of y that a task has at most, where several threads share a call."""

    task_elements: int

    def __post_init__(self) -> None:
        if self.task_elements <= 0:
            raise InvalidSize(name="embedding task_elements", found=self.task_elements, required="positive")


def choose_embedding(problem: Embedding, machine: Machine) -> EmbeddingCut:  # noqa: ARG001 - as all cuts
    """The cut of an embedding: the same for all machines, as it does nothing but move memory.

    >>> from tilewright.machine.catalog import find_machine
    >>> choose_embedding(Embedding(), find_machine("znver5")).task_elements
    1048576
    """
    return EmbeddingCut(TASK_ELEMENTS)
