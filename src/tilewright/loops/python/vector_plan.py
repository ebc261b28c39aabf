"""The order in which statements on whole arrays run, and the loops that stay around them.

Before::

    for i in range(n):                     S:  t[:] += A[:, :] * x[:]        (a product)
        for j in range(m):                 T:  y[:] += A[:, :].T * t[:]      (a product)
            t[i] += A[i, j] * x[j]  # S
        for j in range(m):
            y[j] += A[i, j] * t[i]  # T

After, on the right. Statements that need one another's results run in the loops that carry them.

Source: Allen, Kennedy, Automatic translation of Fortran programs to vector form, ACM TOPLAS 9(4), 1987,
doi:10.1145/29873.29875.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from tilewright.loops.nests.effects import Refused
from tilewright.loops.nests.nest import Where
from tilewright.loops.nests.polynomial import Index, Polynomial
from tilewright.loops.python.elements import SLICE
from tilewright.loops.python.vector_dependences import feeds_itself, follows, reads_ahead
from tilewright.loops.python.vector_statements import VectorLoop, VectorStatement
from tilewright.records import dataclass

#: Nothing is serial.
NONE: frozenset[Index] = frozenset()


@dataclass(frozen=True)
class SerialLoop:
    """A loop that stays, with the steps of each of its iterations."""

    loop: VectorLoop
    steps: tuple[PlanStep, ...]


@dataclass(frozen=True)
class WholeStatement:
    """A statement for all iterations of its loops but those of `serial`."""

    statement: VectorStatement
    serial: frozenset[Index]

    @property
    def free(self) -> tuple[VectorLoop, ...]:
        """The loops that it is an array operation over."""
        return tuple(loop for loop in self.statement.loops if loop.index not in self.serial)


@dataclass(frozen=True)
class StripLoop:
    """A statement over a triangle in strips of `outer`: in each, what all rows share is one operation.

    Attributes
    ----------
    inner : the loop whose range depends on `outer`.
    """

    whole: WholeStatement
    outer: VectorLoop
    inner: VectorLoop


PlanStep: TypeAlias = SerialLoop | WholeStatement | StripLoop


def planned(statements: Sequence[VectorStatement], where: Where) -> tuple[PlanStep, ...]:
    """The steps that compute some statements; raises `Refused`."""
    if not any(_multiplies(one) for one in statements):
        raise Refused(where, "has several statements, none of which is a product")
    for one in statements:
        outer = frozenset(loop.index for loop in one.loops if not loop.index.name.startswith(SLICE))
        if len(outer) < len(one.loops) and feeds_itself(one, outer):
            reason = f"stores slices of {one.target.array} that it also reads"  # as a whole, before it stores
            raise Refused(Where(where.function, one.line), reason)
    return tuple(_steps(list(statements), NONE, where))


def _multiplies(statement: VectorStatement) -> bool:
    """Whether a statement sums products of two elements."""
    named = statement.target.indices
    summed = any(loop.index not in named for loop in statement.loops)
    return any(len(term.elements) == 2 and (term.sums or summed) for term in statement.terms)


def _steps(statements: list[VectorStatement], serial: frozenset[Index], where: Where) -> Iterator[PlanStep]:
    for group in _ordered(statements, serial):
        only = group[0]
        free = [loop for loop in only.loops if loop.index not in serial]
        if len(group) == 1 and (not free or not feeds_itself(only, serial)):
            yield _whole(only, serial, where)
            continue
        first = free[0] if free else None
        for other in group[1:]:
            own = next((loop for loop in other.loops if loop.index not in serial), None)
            if own != first or own is None:
                raise Refused(
                    Where(where.function, other.line), "needs results of another statement in between"
                )
        if first is None:
            raise Refused(where, "has statements in a circle of dependences")
        inner = _steps(group, serial | {first.index}, where)
        yield SerialLoop(first, tuple(inner))


def _ordered(statements: list[VectorStatement], serial: frozenset[Index]) -> Iterator[list[VectorStatement]]:
    """Statements in groups that depend on one another in a circle, each group behind those that it needs."""
    count = range(len(statements))
    reach = [[False] * len(statements) for _ in count]
    for one in count:
        for other in count:
            if one != other:
                pair = statements[one], statements[other]
                reach[one][other] = follows(*pair, serial, later=one < other)
    for middle in count:
        for one in count:
            for other in count:
                reach[one][other] |= reach[one][middle] and reach[middle][other]
    waiting = list(count)
    while waiting:
        for one in waiting:
            group = [other for other in waiting if other == one or (reach[one][other] and reach[other][one])]
            if not any(reach[other][one] for other in waiting if other not in group):
                break
        yield [statements[other] for other in group]
        waiting = [other for other in waiting if other not in group]


def _whole(statement: VectorStatement, serial: frozenset[Index], where: Where) -> PlanStep:
    """A statement that does not feed itself, with a loop around it for each range that is no rectangle."""
    whole = WholeStatement(statement, serial)
    free = whole.free
    every = (*free, *(loop for term in statement.terms for loop in term.sums))
    outer = next((loop for loop in free if any(loop.index in _bounds(other) for other in every)), None)
    ahead = bool(free) and reads_ahead(statement, serial)
    if outer is None:
        outer = _repeated(whole)
        if outer is None:
            return whole
    elif (strips := _strips(whole, outer, every, ahead=ahead)) is not None:
        return strips
    if ahead:
        outer = free[0]
    return SerialLoop(outer, (_whole(statement, serial | {outer.index}, where),))


def _bounds(loop: VectorLoop) -> frozenset[Index]:
    return loop.first.indices | loop.end.indices


def _repeated(whole: WholeStatement) -> VectorLoop | None:
    """A loop over elements that are stored several times in one operation; None if there is none."""
    free = {loop.index: loop for loop in whole.free}
    seen: set[Index] = set()
    for subscript in whole.statement.target.subscripts:
        own = sorted(subscript.indices & free.keys())
        if len(own) > 1 or seen & set(own):
            return free[own[0]]
        seen.update(own)
    return None


def _strips(
    whole: WholeStatement, outer: VectorLoop, every: Sequence[VectorLoop], *, ahead: bool
) -> StripLoop | None:
    """A triangle in strips; None if its rows are not all alike but for the end of one range."""
    dependent = [loop for loop in every if outer.index in _bounds(loop)]
    others = [loop for loop in every if loop not in dependent and _bounds(loop) - whole.serial]
    if len(dependent) != 1 or others or _bounds(outer) - whole.serial:
        return None
    (inner,) = dependent
    begins, ends = inner.first.indices - whole.serial, inner.end.indices - whole.serial
    one = Polynomial.of(outer.index)
    rest = inner.end - one if ends else inner.first - one
    if (begins and ends) or (rest.indices - whole.serial):
        return None
    summed = [term for term in whole.statement.terms if inner in term.sums]
    if summed and (len(summed) > 1 or len(whole.statement.terms) > 1 or len(summed[0].elements) != 2):
        return None
    if not summed and whole.statement.value is not None:
        return None
    if ahead and not (begins and whole.free[0] == outer and _reads_below(whole, outer, inner)):
        return None
    return StripLoop(whole, outer, inner)


def _reads_below(whole: WholeStatement, outer: VectorLoop, inner: VectorLoop) -> bool:
    """Whether what is read of the target's array are rows behind the one that is written."""
    target = whole.statement.target
    away = (inner.first - outer.index).constant
    if outer.descends or away is None or away < 1:
        return False
    for element, _ in whole.statement.reads:
        pairs = zip(target.subscripts, element.subscripts, strict=True)
        if element.array == target.array and not any(
            one == Polynomial.of(outer.index)
            and ((other - inner.index).constant or 0) >= 0
            and (other - inner.index).constant is not None
            for one, other in pairs
        ):
            return False
    return True
