"""Names that occur in the statements of a loop nest."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.loops.nests.nest import (
    Access,
    Assign,
    Conversion,
    CountedLoop,
    Load,
    Minus,
    Sum,
    Times,
    Value,
)


def accesses(nest: CountedLoop) -> Iterator[Access]:
    """Every element that a nest reads or stores, in the order of its text."""
    for statement in nest.walk():
        if isinstance(statement, Assign):
            yield from _read(statement.value)
            if isinstance(statement.target, Access):
                yield statement.target


def _read(value: Value) -> Iterator[Access]:
    match value:
        case Load(access=access):
            yield access
        case Sum(left=left, right=right) | Times(left=left, right=right):
            yield from _read(left)
            yield from _read(right)
        case Minus(value=inner) | Conversion(value=inner):
            yield from _read(inner)
        case _:
            return
