"""Python code that tells how far the subscripts of an element reach in the loops around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilewright.loops.nests.effects import Refused
from tilewright.loops.nests.nest import Where
from tilewright.loops.nests.polynomial import Index, Polynomial, Symbol
from tilewright.loops.python.elements import SLICE
from tilewright.loops.python.vector_statements import ArrayElement, VectorLoop

#: Loops around an element; each doubles the code.
MOST_LOOPS = 6


def reach_lines(
    element: ArrayElement, loops: Sequence[VectorLoop], symbols: Mapping[Symbol, str]
) -> list[str]:
    """Lines that call ``note(array, subscripts...)`` at the corners of what loops reach.

    Affine subscripts are least and largest at a corner, in which each variable is at an end of its range.
    Ranges are without the values for which an inner loop has no iterations, but for those of slices: what
    else is in their statements is read all the same.
    """
    needed = [
        loop
        for place, loop in enumerate(loops)
        if loop.index in element.indices
        or (
            not loop.index.name.startswith(SLICE)
            and any(loop.index in one.first.indices | one.end.indices for one in loops[place + 1 :])
        )
        or (not loop.index.name.startswith(SLICE) and (loop.first.indices or loop.end.indices))
    ]
    if len(needed) > MOST_LOOPS:
        raise Refused(Where(""), "has too many loops around an element")
    for subscript in element.subscripts:
        if any(len([one for one in term if isinstance(one, Index)]) > 1 for term, _ in subscript.terms):
            raise Refused(Where(""), f"has a subscript of {element.array} that is a product of variables")
    return list(_corners(element, needed, dict(symbols), 1))


def _corners(
    element: ArrayElement, loops: Sequence[VectorLoop], names: dict[Symbol, str], depth: int
) -> Iterator[str]:
    indent = "    " * depth
    if not loops:
        subscripts = "".join(f", {_text(one, names)}" for one in element.subscripts)
        yield f"{indent}note({element.array!r}{subscripts})"
        return
    loop, *rest = loops
    lows, highs = [_text(loop.first, names)], [_text(loop.end - 1, names)]
    known = {*names, loop.index}
    for inner in rest:
        form = inner.count.linear([loop.index])
        slope = None if form is None else form.coefficient(loop.index).constant
        if form is None or slope not in (1, -1) or not form.rest.symbols <= known:
            continue
        if slope == 1:
            lows.append(_text(1 - form.rest, names))
        else:
            highs.append(_text(form.rest - 1, names))
    low, high = f"low{depth}", f"high{depth}"
    yield f"{indent}{low} = max({', '.join([*lows, lows[0]])})"
    yield f"{indent}{high} = min({', '.join([*highs, highs[0]])})"
    yield f"{indent}if {low} <= {high}:"
    yield f"{indent}    for v{depth} in ({low}, {high}):"
    yield from _corners(element, rest, {**names, loop.index: f"v{depth}"}, depth + 2)


def _text(value: Polynomial, names: Mapping[Symbol, str]) -> str:
    parts = ("*".join([str(number), *(names[one] for one in term)]) for term, number in value.terms)
    return f"({' + '.join(parts) or '0'})"
