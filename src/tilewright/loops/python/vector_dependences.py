"""Dependences between statements on whole arrays: which iterations need what earlier ones do.

Iterations that access the same element are a system of differences of two values, each at most a constant. It
has no solution if a cycle of them is negative.

Source: Allen, Kennedy, Automatic translation of Fortran programs to vector form, ACM TOPLAS 9(4), 1987,
doi:10.1145/29873.29875; Bellman, On a routing problem, 1958.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import TypeAlias

from tilewright.loops.nests.polynomial import Index, Polynomial, Symbol
from tilewright.loops.python.vector_statements import ArrayElement, VectorLoop, VectorStatement

#: A loop variable of the first or second iteration, an invariant integer, or zero.
_Node: TypeAlias = "tuple[int, Symbol] | None"
#: left - right <= limit.
_Edge: TypeAlias = "tuple[_Node, _Node, int]"
#: An element and the loops around it.
_Reach: TypeAlias = "tuple[ArrayElement, tuple[VectorLoop, ...]]"


def follows(
    first: VectorStatement, second: VectorStatement, serial: frozenset[Index], *, later: bool
) -> bool:
    """Whether an iteration of the second statement needs to run after an earlier one of the first.

    Parameters
    ----------
    serial : loops that run one iteration after the other: both iterations are in the same one of these.
    later : whether the second statement is behind the first in the program.
    """
    return any(_meet(one, other, serial, later=later) for one, other in _pairs(first, second))


def feeds_itself(statement: VectorStatement, serial: frozenset[Index]) -> bool:
    """Whether an iteration stores what a later one reads or stores.

    What an earlier one reads is no obstacle: an array operation reads all of its operands first.
    """
    target = (statement.target, statement.loops)
    others = [*([] if statement.adds else [target]), *statement.reads]
    return any(_meet(target, other, serial, later=False) for other in others if _same(target, other))


def reads_ahead(statement: VectorStatement, serial: frozenset[Index]) -> bool:
    """Whether an iteration reads what a later one stores."""
    target = (statement.target, statement.loops)
    return any(_meet(other, target, serial, later=False) for other in statement.reads if _same(target, other))


def _same(one: _Reach, other: _Reach) -> bool:
    return one[0].array == other[0].array


def _pairs(first: VectorStatement, second: VectorStatement) -> Iterator[tuple[_Reach, _Reach]]:
    """Pairs of elements of one array, of which one is stored."""
    one, other = (first.target, first.loops), (second.target, second.loops)
    for left, right in (
        (one, other),
        *((one, read) for read in second.reads),
        *((read, other) for read in first.reads),
    ):
        if _same(left, right):
            yield left, right


def _meet(one: _Reach, other: _Reach, serial: frozenset[Index], *, later: bool) -> bool:
    """Whether an iteration around the first element may precede one around the second, and be at the same."""
    known = [*_domain(0, one[1]), *_domain(1, other[1])]
    for left, right in zip(one[0].subscripts, other[0].subscripts, strict=True):
        edges = _equal(left, right)
        if edges is None:
            return False
        known += edges
    shared = [a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(one[1], other[1], strict=False))]
    for loop in shared:
        if loop.index in serial:
            known += _alike(loop)
    free = [loop for loop in shared if loop.index not in serial]
    for place, loop in enumerate(free):
        ahead, behind = (
            ((1, loop.index), (0, loop.index)) if loop.descends else ((0, loop.index), (1, loop.index))
        )
        before: _Edge = (ahead, behind, -1)
        if not _impossible([*known, *(edge for same in free[:place] for edge in _alike(same)), before]):
            return True
    return later and not _impossible([*known, *(edge for same in free for edge in _alike(same))])


def _alike(loop: VectorLoop) -> list[_Edge]:
    return [((0, loop.index), (1, loop.index), 0), ((1, loop.index), (0, loop.index), 0)]


def _domain(number: int, loops: Sequence[VectorLoop]) -> Iterator[_Edge]:
    """What the bounds of loops say of the variables of one iteration."""
    for loop in loops:
        own = (number, loop.index)
        if (first := _single(loop.first, number)) is not None:
            yield first[0], own, -first[1]
        if (end := _single(loop.end, number)) is not None:
            yield own, end[0], end[1] - 1


def _equal(left: Polynomial, right: Polynomial) -> list[_Edge] | None:
    """What equal subscripts say; None if they are never equal."""
    one, other = _single(left, 0), _single(right, 1)
    if one is not None and other is not None:
        return [(one[0], other[0], other[1] - one[1]), (other[0], one[0], one[1] - other[1])]
    forms = [_stepped(left), _stepped(right)]
    if forms[0] is None or forms[1] is None:
        return []
    (index, step, rest), (its, its_step, its_rest) = forms[0], forms[1]
    away = (its_rest - rest).constant
    if step != its_step or away is None:
        return []
    if away % step:
        return None
    nodes: tuple[_Node, _Node] = ((0, index), (1, its))
    return [(*nodes, away // step), (nodes[1], nodes[0], -away // step)]


def _stepped(value: Polynomial) -> tuple[Index, int, Polynomial] | None:
    """A constant times an index, and the rest."""
    match sorted(value.indices):
        case [index]:
            form = value.linear([index])
            step = None if form is None else form.coefficient(index).constant
            return None if form is None or not step else (index, step, form.rest)
        case _:
            return None


def _single(value: Polynomial, number: int) -> tuple[_Node, int] | None:
    """A variable, and a number that is added to it."""
    away = dict(value.terms).get((), 0)
    match (value - away).terms:
        case ():
            return None, away
        case (((symbol,), 1),):
            return (number if isinstance(symbol, Index) else 0, symbol), away
        case _:
            return None


def _impossible(edges: Sequence[_Edge]) -> bool:
    """Whether differences contradict each other: a cycle of them is negative."""
    nodes = {node for left, right, _ in edges for node in (left, right)}
    distance = dict.fromkeys(nodes, 0)
    for _ in range(len(nodes) + 1):
        changed = False
        for left, right, limit in edges:
            if distance[right] + limit < distance[left]:
                distance[left], changed = distance[right] + limit, True
        if not changed:
            return False
    return True
