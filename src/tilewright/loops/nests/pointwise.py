"""Values that are computed element by element, such as the quotient of a sum and a number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tilewright.loops.nests.nest import (
    Access,
    Cell,
    Conversion,
    FunctionCall,
    InvariantScalar,
    Load,
    Minus,
    Number,
    Quotient,
    Read,
    Select,
    SquareRoot,
    Sum,
    Times,
    Value,
)


def split(value: Value, target: Access) -> tuple[Value, Cell | None] | None:
    """A value in terms of elements and of the only variable in it, which the target holds meanwhile.

    ``c = max(s, 0)`` is ``c = s; c = max(c, 0)``: the value ``max(c, 0)``, and s. None if the value reads
    several variables, or a variable beside elements of the target's memory.
    """
    cells = list(dict.fromkeys(_cells(value)))
    own = any(access.memory == target.memory for access in elements_of(value))
    found = _replaced(value, Load(target))
    if found is None or len(cells) > 1 or (cells and own):
        return None
    return found, cells[0] if cells else None


def parts_of(value: Value) -> tuple[Value, ...]:
    """The operands of a value."""
    match value:
        case Sum(left=left, right=right) | Times(left=left, right=right) | Quotient(left=left, right=right):
            return left, right
        case Minus(value=inner) | SquareRoot(value=inner) | Conversion(value=inner):
            return (inner,)
        case Select():
            return value.left, value.right, value.then, value.otherwise
        case FunctionCall(operands=operands):
            return operands
        case _:
            return ()


def elements_of(value: Value) -> Iterator[Access]:
    """The elements that a value reads."""
    if isinstance(value, Load):
        yield value.access
    for part in parts_of(value):
        yield from elements_of(part)


def _cells(value: Value) -> Iterator[Cell]:
    if isinstance(value, Read):
        yield value.cell
    for part in parts_of(value):
        yield from _cells(part)


def _replaced(value: Value, held: Load) -> Value | None:
    """A value with variables replaced by an element; None if it contains what is not computed here."""
    match value:
        case Read():
            return held
        case Load() | Number() | InvariantScalar():
            return value
        case Sum() | Times() | Quotient():
            left, right = _replaced(value.left, held), _replaced(value.right, held)
            return replace(value, left=left, right=right) if left and right else None
        case Minus() | SquareRoot():
            inner = _replaced(value.value, held)
            return replace(value, value=inner) if inner else None
        case Select():
            left, right, then, otherwise = (_replaced(part, held) for part in parts_of(value))
            if not (left and right and then and otherwise):
                return None
            return replace(value, left=left, right=right, then=then, otherwise=otherwise)
        case FunctionCall(operands=operands):
            parts = [_replaced(part, held) for part in operands]
            found = tuple(part for part in parts if part is not None)
            return replace(value, operands=found) if len(found) == len(parts) else None
        case _:
            return None
