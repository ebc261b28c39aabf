"""Names that occur in the statements of a loop nest."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.loops.nests.nest import Access, Assign, CountedLoop
from tilewright.loops.nests.pointwise import elements_of


def accesses(nest: CountedLoop) -> Iterator[Access]:
    """Every element that a nest reads or stores, in the order of its text."""
    for statement in nest.walk():
        if isinstance(statement, Assign):
            yield from elements_of(statement.value)
            if isinstance(statement.target, Access):
                yield statement.target
