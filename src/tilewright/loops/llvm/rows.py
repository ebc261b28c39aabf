"""Rows behind pointers: when the table that they are read from may be read in front of the nest."""

from __future__ import annotations

from collections.abc import Callable, Set

from tilewright.loops.llvm.evolution import Evolutions
from tilewright.loops.llvm.instruction import Instruction
from tilewright.loops.llvm.symbols import names_rows
from tilewright.loops.nests.nest import CountedLoop, Extent
from tilewright.loops.nests.polynomial import Index, Polynomial


def check_rows(
    evolutions: Evolutions,
    nest: CountedLoop,
    reached: Set[str],
    refuse: Callable[[str, Instruction | None], Exception],
) -> None:
    """Refuse nests that may leave pointers unread, and trip counts that depend on where rows are.

    A pointer that the program never reads need not be one. It reads all of those that a load in a block which
    every iteration runs gets, and no others.

    Parameters
    ----------
    reached : blocks that run in the first iterations.
    refuse : makes the exception of a reason.
    """
    for found in evolutions.rows.values():
        forms = {_form(offset) for _, offset in found}
        known = {_form(offset) for one, offset in found if evolutions.function.homes[one.result] in reached}
        if forms != known:
            raise refuse("reads pointers to rows in some iterations only", found[0][0])
    for loop in nest.walk():
        if isinstance(loop, CountedLoop) and _depends_on_rows(loop.extent):
            raise refuse("has a trip count that depends on where rows are", None)


def _depends_on_rows(extent: Extent) -> bool:
    return any(names_rows(bound.span) for bound in extent.bounds)


def _form(offset: Polynomial) -> tuple[tuple[tuple[str, ...], int], ...]:
    """An offset without the names of indices, which differ between loops over the same rows."""
    terms = [
        (tuple("index" if isinstance(symbol, Index) else symbol.name for symbol in monomial), coefficient)
        for monomial, coefficient in offset.terms
    ]
    return tuple(sorted(terms))
