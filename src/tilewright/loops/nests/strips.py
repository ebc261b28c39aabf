"""Sums over a triangle, cut into strips: a rectangle, which is a product, and a small triangle for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tilewright.loops.nests.effects import LoadedElement, Range, Store, SumOfTerms
from tilewright.loops.nests.nest import Access, Bound, Extent
from tilewright.loops.nests.polynomial import Index, Polynomial, Symbol
from tilewright.records import dataclass

#: Indices of a strip: the triangle in it runs as loops, at a fraction of the speed of the rectangle.
LENGTH = 64


@dataclass(frozen=True)
class Strips:
    """One store as strips of an outer index.

    Attributes
    ----------
    outer, inner : the index that is cut, and the one whose range depends on it.
    far : the part of a strip in which the inner range is the same for every outer index.
    near : the rest of the strip.
    """

    outer: Index
    inner: Index
    begin: Symbol
    end: Symbol
    extent: Extent
    far: Store
    near: Store


def cut(store: Store, fresh: Callable[[str], Symbol]) -> Strips | None:
    """A sum over a triangle in strips; None if not exactly one range depends on exactly one other.

    ``for i: for k < i`` is, for i in begin .. end, k < begin and begin <= k < i.
    """
    terms = [term for term in store.form.terms if len(term.elements) == 2]
    if len(terms) != 1:
        return None
    ranges = (*store.ranges, *terms[0].sums)
    extents = dict(ranges)
    pairs = [
        (outer, index, extent)
        for index, extent in ranges
        for outer in sorted({symbol for bound in extent.bounds for symbol in bound.span.indices})
    ]
    match pairs:
        case [(outer, inner, Extent(bounds=(Bound(span=span, step=1),), least=0))] if outer in extents:
            pass
        case _:
            return None
    form = span.linear([outer])
    if form is None:
        return None
    begin, end = fresh(f"begin.{outer}"), fresh(f"end.{outer}")
    first, last, i, d = map(Polynomial.of, (begin, end, outer, inner))
    shifted = i + first
    rest = form.rest
    if form.coefficient(outer).constant == 1 and (rest.constant or 0) >= 0 and rest.constant is not None:
        far = d, Extent.of(first + rest)
        near = d + first + rest, Extent.of(i)
    elif form.coefficient(outer).constant == -1:
        far = last + d - shifted, Extent.of(rest - last)
        near = d, Extent((Bound(last - shifted), Bound(rest - shifted)))
    else:
        return None
    parts = []
    for place, extent in (far, near):
        moved: dict[Symbol, Polynomial] = {outer: shifted, inner: place}
        changed = {outer: Extent.of(last - first), inner: extent}
        parts.append(moved_store(store, moved, changed))
    return Strips(outer, inner, begin, end, extents[outer], parts[0], parts[1])


def moved_store(store: Store, places: dict[Symbol, Polynomial], extents: dict[Index, Extent]) -> Store:
    """A store with indices replaced by others, and other extents."""

    def access(one: Access) -> Access:
        return replace(one, offset=one.offset.substitute(places))

    def element(one: LoadedElement) -> LoadedElement:
        return replace(one, access=access(one.access))

    def ranges(some: Sequence[Range]) -> tuple[Range, ...]:
        return tuple((index, extents.get(index, extent)) for index, extent in some)

    terms = tuple(
        replace(term, elements=tuple(map(element, term.elements)), sums=ranges(term.sums))
        for term in store.form.terms
    )
    form = SumOfTerms(terms, store.form.dtype)
    return replace(store, ranges=ranges(store.ranges), target=access(store.target), form=form)
