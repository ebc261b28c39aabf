"""Values of tile IR's expressions together with how they change along the loops around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tilewright.errors import InvalidTileIr
from tilewright.ir.expressions import (
    AnyOf,
    Binary,
    Constant,
    Expression,
    Lead,
    Name,
    Operator,
    Relation,
    TableEntry,
    Threads,
    Unless,
    apply,
)


class Sloped(NamedTuple):
    """An integer, and how much it grows when an axis grows by one; axes that are missing do not change it."""

    value: int
    slopes: Mapping[str, float]


_FLAT: Mapping[str, float] = {}


def flat(value: int) -> Sloped:
    """An integer that no loop changes."""
    return Sloped(value, _FLAT)


class Evaluator:
    """Evaluates expressions for a call of given tables; scalars are not 0, and there is one thread.

    Buffers of integers that are not given hold zeros: flags that a call raises, as for NaN.

    Examples
    --------
    >>> from tilewright.ir.expressions import minimum
    >>> names = {"i": Sloped(8, {"i": 1}), "m": flat(10)}
    >>> Evaluator({}).integer(minimum(4, Name("m") - Name("i")), names).value
    2
    >>> Evaluator({}).integer(Name("i") * 100 + 7, names)
    Sloped(value=807, slopes={'i': 100})
    """

    def __init__(self, tables: Mapping[str, Sequence[int]]) -> None:
        self.tables = tables

    def integer(self, node: Expression, names: Mapping[str, Sloped]) -> Sloped:
        """The value and slopes of an expression."""
        match node:
            case Constant(value):
                return flat(value)
            case Name(name):
                return names[name]
            case Binary(operator, left, right):
                return _combined(operator, self.integer(left, names), self.integer(right, names))
            case Unless(_, value):
                return self.integer(value, names)
            case TableEntry(buffer, index):
                return self._entry(self.tables.get(buffer, ()), self.integer(index, names))
            case Lead():
                return flat(0)
            case Threads():
                return flat(1)
            case _:
                raise InvalidTileIr(where=repr(node), reason="is not an expression")

    @staticmethod
    def _entry(table: Sequence[int], index: Sloped) -> Sloped:
        """An element of a table; its slope is the distance to the next one."""
        if not table:
            return flat(0)
        value = table[index.value]
        after = table[index.value + 1] - value if index.value + 1 < len(table) else 0
        return Sloped(value, {axis: slope * after for axis, slope in index.slopes.items()})

    def holds(self, condition: AnyOf, names: Mapping[str, Sloped]) -> bool:
        """Whether a condition holds."""
        return any(
            all(
                _TESTS[term.relation](
                    self.integer(term.left, names).value, self.integer(term.right, names).value
                )
                for term in conjunction.terms
            )
            for conjunction in condition.terms
        )


_TESTS: dict[Relation, Callable[[int, int], bool]] = {
    Relation.EQ: int.__eq__,
    Relation.LE: int.__le__,
    Relation.LT: int.__lt__,
}


def _combined(operator: Operator, left: Sloped, right: Sloped) -> Sloped:
    """An operator on two values."""
    value = apply(operator, left.value, right.value)
    match operator:
        case Operator.ADD:
            slopes = _weighted(left, 1, right, 1)
        case Operator.SUB:
            slopes = _weighted(left, 1, right, -1)
        case Operator.MUL:
            slopes = _weighted(left, right.value, right, left.value)
        case Operator.MIN | Operator.MAX:
            slopes = left.slopes if value == left.value else right.slopes
        case Operator.CEILDIV:
            slopes = _weighted(left, 1 / right.value, right, 0)
        case Operator.ROUNDUP:
            slopes = left.slopes
    return Sloped(value, slopes)


def _weighted(left: Sloped, of_left: float, right: Sloped, of_right: float) -> Mapping[str, float]:
    """A weighted sum of slopes."""
    if not left.slopes and not right.slopes:
        return _FLAT
    found = {axis: slope * of_left for axis, slope in left.slopes.items()}
    for axis, slope in right.slopes.items():
        found[axis] = found.get(axis, 0) + slope * of_right
    return {axis: slope for axis, slope in found.items() if slope}


def parts_of(node: Expression) -> Iterator[Expression]:
    """The expressions directly inside one."""
    match node:
        case Binary(_, left, right):
            yield left
            yield right
        case Unless(_, value) | TableEntry(_, value) | Lead(offset=value):
            yield value
