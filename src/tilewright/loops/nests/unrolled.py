"""Loops that somebody has unrolled: terms at equal distances are one term, summed over a loop again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.loops.nests.effects import LoadedElement, Term
from tilewright.loops.nests.nest import Extent
from tilewright.loops.nests.polynomial import Index, Polynomial

#: The index of the loop that is made; no language has such a name.
UNROLLED = Index("unrolled loop")


def rolled(terms: Sequence[Term]) -> tuple[Term, ...]:
    """Products of two elements that stand at equal distances in both arrays, as one; others as they are.

    ``a[k]*b[k*n] + a[k+1]*b[k*n+n] + a[k+2]*b[k*n+2*n]`` is the sum of ``a[k+u]*b[k*n+u*n]`` over u < 3.
    """
    if len(terms) < 2:
        return tuple(terms)
    first = terms[0]
    distances = [_distances(first, term) for term in terms]
    known = [pair for pair in distances if pair is not None]
    if len(known) < len(terms):
        return tuple(terms)
    order = sorted(range(len(terms)), key=lambda place: _number(known[place]))
    start, second = known[order[0]], known[order[1]]
    step = second[0] - start[0], second[1] - start[1]
    if len(terms) == 2 and not step[0] + step[1]:
        return tuple(terms)  # SYR2K, of two blocks of one array
    for count, place in enumerate(order):
        moved = step[0] * count + start[0], step[1] * count + start[1]
        if known[place] != moved or not all(step) or step[0].indices or step[1].indices:
            return tuple(terms)
    elements = tuple(
        replace(
            element, access=replace(element.access, offset=element.access.offset + begin + far * UNROLLED)
        )
        for element, begin, far in zip(first.elements, start, step, strict=True)
    )
    return (
        replace(
            first,
            elements=elements,
            sums=(*first.sums, (UNROLLED, Extent.of(len(terms)))),
            reassociates=all(term.reassociates for term in terms),
            contracts=all(term.contracts for term in terms),
        ),
    )


def _distances(first: Term, term: Term) -> tuple[Polynomial, Polynomial] | None:
    """How far the elements of a term are from those of another one; None where more than that differs."""
    if (first.factor, first.sums, first.acc) != (term.factor, term.sums, term.acc):
        return None
    (a, b), found = first.elements, term.elements
    for left, right in (found, found[::-1]):
        pairs = ((a, left), (b, right))
        alike = all(
            (x.access.memory, x.dtype, x.exact) == (y.access.memory, y.dtype, y.exact) for x, y in pairs
        )
        away = left.access.offset - a.access.offset, right.access.offset - b.access.offset
        if alike and not away[0].indices and not away[1].indices:
            return away
    return None


def _kind(element: LoadedElement) -> tuple[object, ...]:
    """What has to be the same of two elements but for the place."""
    return element.access.memory, element.access.dtype, element.dtype, element.exact


def _number(distances: tuple[Polynomial, Polynomial]) -> int:
    """What distances are sorted by: the first one that is a number."""
    return next((one.constant for one in distances if one.constant is not None), 0)
