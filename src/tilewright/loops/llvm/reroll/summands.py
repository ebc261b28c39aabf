"""Sums of value trees as lists of terms, and value trees in a canonical form that can be compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tilewright.loops.nests.nest import (
    Access,
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
    Unreadable,
    Value,
)
from tilewright.loops.nests.polynomial import Polynomial

#: Why lanes with such values are not compared: nothing below knows that they are the same.
POINTWISE = "divides, takes roots or chooses between values in copies of a loop"


class NotOneLoop(Exception):
    """Blocks are not provably the copies of one loop; the reason continues "since it ...".

    It is never raised outside of this package.
    """


def summands(value: Value) -> tuple[Value, ...]:
    """The terms of a sum that may be reordered; a subtracted one is a `Minus`, zeros are left out.

    >>> a, b = Number(2), Number(3)
    >>> summands(Sum(Minus(Sum(a, b, True)), Number(0.0), True))
    (Minus(value=Number(value=2)), Minus(value=Number(value=3)))
    """
    found: list[Value] = []
    left: list[tuple[Value, bool]] = [(value, False)]
    while left:
        one, negative = left.pop()
        match one:
            case Sum(first, second, reassociates):
                if not reassociates:
                    raise NotOneLoop("sums in vectors or copies without permission to reassociate")
                left += [(second, negative), (first, negative)]
            case Minus(inner):
                left.append((inner, not negative))
            case Number(0):
                continue
            case Unreadable(reason):
                raise NotOneLoop(reason)
            case Quotient() | SquareRoot() | Select() | FunctionCall():
                raise NotOneLoop(POINTWISE)
            case _:
                found.append(Minus(one) if negative else one)
    return tuple(found)


def key(value: Value) -> str:
    """A text that is the same for values that are equal but for the order of factors and summands.

    Products of three factors are the same in any order: a kernel scales by the third one when it likes.

    >>> a, b = Number(2), Number(3)
    >>> key(Times(a, b, True)) == key(Times(b, a, True))
    True
    """
    match value:
        case Load(access):
            return place_key(access)
        case Times():
            factors, flag = _factors(value)
            return f"({' * '.join(sorted(map(key, factors)))} {flag})"
        case Sum(left, right, flag):
            return f"({' + '.join(sorted((key(left), key(right))))} {flag})"
        case Minus(inner):
            return f"-{key(inner)}"
        case Conversion(inner, dtype):
            return f"{dtype}({key(inner)})"
        case Read(cell):
            return f"read {cell.name}"
        case InvariantScalar(symbol, dtype):
            return f"{symbol.name} {dtype}"
        case Number(number):
            return f"{number!r}"
        case Quotient() | SquareRoot() | Select() | FunctionCall():
            raise NotOneLoop(POINTWISE)
        case Unreadable(reason):
            raise NotOneLoop(reason)


def _factors(value: Times) -> tuple[list[Value], bool]:
    """The factors of a product of products, and whether all of them may stay unrounded."""
    found: list[Value] = []
    left: list[Value] = [value]
    flag = True
    while left:
        match left.pop():
            case Times(one, other, contracts):
                left += [one, other]
                flag = flag and contracts
            case factor:
                found.append(factor)
    return found, flag


def place_key(access: Access) -> str:
    """A text that names an element: its memory, its offset and its type."""
    return f"{access.memory.base.name}[{access.offset}]{access.dtype}"


def reads_in(value: Value) -> Iterator[Read]:
    """Every variable that a value is computed from."""
    match value:
        case Read():
            yield value
        case Times(left, right) | Sum(left, right):
            yield from reads_in(left)
            yield from reads_in(right)
        case Minus(inner) | Conversion(inner):
            yield from reads_in(inner)
        case Quotient() | SquareRoot() | Select() | FunctionCall():
            raise NotOneLoop(POINTWISE)
        case _:
            return


def moved(value: Value, change: Callable[[Polynomial], Polynomial]) -> Value:
    """A value with the offsets of its elements changed."""

    def one(leaf: Value) -> Value:
        return Load(moved_access(leaf.access, change)) if isinstance(leaf, Load) else leaf

    return rebuilt(value, one)


def moved_access(access: Access, change: Callable[[Polynomial], Polynomial]) -> Access:
    """An element at a changed offset."""
    return replace(access, offset=change(access.offset))


def rebuilt(value: Value, change: Callable[[Value], Value]) -> Value:
    """A value with its leaves replaced."""
    match value:
        case Times(left, right) | Sum(left, right):
            return replace(value, left=rebuilt(left, change), right=rebuilt(right, change))
        case Minus(inner) | Conversion(inner):
            return replace(value, value=rebuilt(inner, change))
        case Quotient() | SquareRoot() | Select() | FunctionCall():
            raise NotOneLoop(POINTWISE)
        case _:
            return change(value)
