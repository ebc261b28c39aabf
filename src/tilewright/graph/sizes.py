"""Sizes of axes: integers, or polynomials in sizes that are known when a graph runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from tilewright.errors import GraphShape, UnknownSize
from tilewright.loops.nests.polynomial import Polynomial, Symbol

#: What callers give as a size: a number, a name, or an expression of the sizes of other values.
SizeLike: TypeAlias = "int | str | Polynomial"
Shape: TypeAlias = tuple[Polynomial, ...]
#: Values of the named sizes in one call.
Sizes: TypeAlias = Mapping[str, int]

ONE = Polynomial.of(1)


def size_of(value: SizeLike) -> Polynomial:
    """The size that a caller gives.

    >>> str(size_of("batch") * 2), size_of(3).constant
    ('2*batch', 3)
    """
    if isinstance(value, str):
        return Polynomial.of(Symbol(value))
    return Polynomial.of(value if isinstance(value, Polynomial) else int(value))


def shape_of(values: Sequence[SizeLike]) -> Shape:
    """The shape that a caller gives."""
    return tuple(map(size_of, values))


def is_name(size: Polynomial) -> bool:
    """Return whether a size is one name, and not an expression.

    >>> is_name(size_of("n")), is_name(size_of("n") * 2), is_name(size_of(3))
    (True, False, False)
    """
    return len(size.terms) == 1 and len(size.terms[0][0]) == 1 and size.terms[0][1] == 1


def product(sizes: Sequence[Polynomial]) -> Polynomial:
    """The number of elements of a shape."""
    total = ONE
    for size in sizes:
        total = total * size
    return total


def quotient(total: Polynomial, divisor: Polynomial) -> Polynomial | None:
    """total / divisor where the divisor is one product of sizes that divides every term, else None.

    >>> n = size_of("n")
    >>> str(quotient(n * 12 + n * n * 6, n * 3)), quotient(n + 1, n)
    ('4 + 2*n', None)
    """
    if total == divisor:
        return ONE
    if len(divisor.terms) != 1:
        return None
    ((names, factor),) = divisor.terms
    found = Polynomial()
    for monomial, coefficient in total.terms:
        rest = list(monomial)
        for name in names:
            if name not in rest:
                return None
            rest.remove(name)
        if coefficient % factor:
            return None
        found = found + Polynomial(((tuple(rest), coefficient // factor),))
    return found


def evaluate(size: Polynomial, sizes: Sizes) -> int:
    """The value of a size in a call.

    >>> evaluate(size_of("n") * 2 + 1, {"n": 4})
    9
    """
    total = 0
    for monomial, coefficient in size.terms:
        term = coefficient
        for symbol in monomial:
            if symbol.name not in sizes:
                raise UnknownSize(name=symbol.name, known=", ".join(sorted(sizes)) or "none")
            term *= sizes[symbol.name]
        total += term
    return total


def evaluate_shape(shape: Shape, sizes: Sizes) -> tuple[int, ...]:
    """The lengths of a shape in a call."""
    return tuple(evaluate(size, sizes) for size in shape)


def broadcast(node: str, shapes: Sequence[Shape]) -> Shape:
    """The shape that shapes broadcast to, as NumPy's do; sizes that are not equal for certain do not.

    >>> [str(size) for size in broadcast("add", [shape_of(("n", 3)), shape_of((3,))])]
    ['n', '3']
    """
    result: list[Polynomial] = []
    for place in range(-max(map(len, shapes), default=0), 0):
        found = ONE
        for shape in shapes:
            size = shape[place] if -place <= len(shape) else ONE
            if size in (ONE, found):
                continue
            if found != ONE:
                raise GraphShape(node=node, reason=f"sizes {found} and {size} do not broadcast")
            found = size
        result.append(found)
    return tuple(result)


def shown_shape(shape: Shape) -> str:
    """A shape in words.

    >>> shown_shape(shape_of(("batch", 3)))
    '[batch, 3]'
    """
    return f"[{', '.join(str(size).replace(' ', '') for size in shape)}]"
