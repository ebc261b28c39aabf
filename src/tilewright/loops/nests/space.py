"""Iteration spaces: blocked loops merged, triangles recognised, adjacent loops fused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilewright.loops.nests.effects import Range
from tilewright.loops.nests.nest import Bound, Condition, Extent, Within
from tilewright.loops.nests.polynomial import Index, Polynomial, Symbol
from tilewright.records import dataclass


@dataclass(frozen=True)
class IterationSpace:
    """Loops, and the offsets of some operands in terms of their indices.

    Attributes
    ----------
    ranges : loops, outermost first.
    offsets : offset of each operand's element, as a polynomial in the loop indices.
    ordered : two indices of equal range, the first of which never exceeds the second.
    conditions : what must hold for this space to equal the original one.
    """

    ranges: tuple[Range, ...]
    offsets: tuple[Polynomial, ...]
    ordered: tuple[Index, Index] | None = None
    conditions: tuple[Condition, ...] = ()

    def strides(self, index: Index) -> tuple[Polynomial, ...] | None:
        """The stride of each operand along an index, or None if it varies between iterations."""
        indices = [index for index, _ in self.ranges]
        forms = [offset.linear(indices) for offset in self.offsets]
        return tuple(form.coefficient(index) for form in forms if form) if all(forms) else None

    @property
    def is_linear(self) -> bool:
        """Whether every offset is a sum of strides times indices."""
        indices = [index for index, _ in self.ranges]
        return all(offset.linear(indices) is not None for offset in self.offsets)

    @property
    def starts(self) -> tuple[Polynomial, ...]:
        """The offsets in the first iteration."""
        first: dict[Symbol, int] = {index: 0 for index, _ in self.ranges}
        return tuple(offset.substitute(first) for offset in self.offsets)

    def with_index(self, index: Index, value: Polynomial) -> IterationSpace:
        """The space with an index replaced by a value."""
        places: dict[Symbol, Polynomial] = {index: value}
        ranges = tuple((own, _replaced(extent, places)) for own, extent in self.ranges)
        return replace(self, ranges=ranges, offsets=tuple(o.substitute(places) for o in self.offsets))

    def without(self, gone: Index) -> IterationSpace:
        """The space without a loop."""
        return replace(self, ranges=tuple(own for own in self.ranges if own[0] != gone))

    def with_extent(self, index: Index, extent: Extent) -> IterationSpace:
        """The space with another extent of one loop."""
        ranges = tuple((own, extent if own == index else kept) for own, kept in self.ranges)
        return replace(self, ranges=ranges)

    def names(self, index: Index) -> bool:
        """Whether an offset or the extent of another loop contains an index."""
        bounds = (b for own, extent in self.ranges if own != index for b in extent.bounds)
        return any(index in o.symbols for o in self.offsets) or any(index in b.span.symbols for b in bounds)


def normalised(space: IterationSpace) -> IterationSpace:
    """The same iterations in fewer loops: single iterations, blocks and triangles are resolved.

    ``for ii in range(0, n, 64): for i in range(ii, min(ii + 64, n))`` is ``for i in range(n)``.
    """
    for index, extent in space.ranges:
        if extent.constant == 1:
            return normalised(space.with_index(index, Polynomial()).without(index))
    space = replace(space, ranges=tuple((index, _needed(extent, space)) for index, extent in space.ranges))
    for position, (outer, outer_extent) in enumerate(space.ranges):
        for inner, inner_extent in space.ranges[position + 1 :]:
            merged = _unblocked(space, (outer, outer_extent), (inner, inner_extent))
            if merged is not None:
                return normalised(merged)
    for outer, outer_extent in space.ranges:
        for inner, inner_extent in space.ranges:
            if outer in _indices(inner_extent) and space.ordered is None:
                triangle = _triangle(space, (outer, outer_extent), (inner, inner_extent))
                if triangle is not None:
                    return normalised(triangle)
    return space


def ascending(space: IterationSpace) -> IterationSpace:
    """The space with descending loops reversed if all operands descend.

    ``C[i, j] for i in range(m - 1, -1, -1)`` is ``C[i, j] for i in range(m)``: fusing loops later requires
    ascending addresses.
    """
    for index, extent in space.ranges:
        strides, count = space.strides(index), _count(extent)
        apart = index in (space.ordered or ()) or not _independent(space, index)
        if strides is None or count is None or apart or not any(strides):
            continue
        if all(coefficient < 0 for stride in strides for _, coefficient in stride.terms):
            space = space.with_index(index, count - 1 - index)
    return space


def fused(space: IterationSpace) -> IterationSpace:
    """The space with two loops fused if the outer one continues where the inner one ends.

    ``C[i*n + j] for i in range(m) for j in range(n)`` is ``C[x] for x in range(m*n)``. If n is known at run
    time only, a condition requires that it is not negative.
    """
    space = ascending(space)
    for outer, outer_extent in space.ranges:
        for inner, inner_extent in space.ranges:
            together = outer == inner or {outer, inner} & set(space.ordered or ())
            if together or not _independent(space, outer) or not _independent(space, inner):
                continue
            many, few = _count(outer_extent), _count(inner_extent)
            wide, narrow = space.strides(outer), space.strides(inner)
            if many is None or few is None or wide is None or narrow is None:
                continue
            if all(far == near * few for far, near in zip(wide, narrow, strict=True)):
                merged = space.with_index(outer, Polynomial()).without(outer)
                merged = merged.with_extent(inner, Extent.of(many * few))
                if few.constant is None and many.constant is None:
                    known = Within(few, Polynomial(), few + 1, ())
                    merged = replace(merged, conditions=(*merged.conditions, known))
                return fused(merged)
    return space


def dependent(space: IterationSpace) -> tuple[Index, Index] | None:
    """A loop whose extent is the index of another loop, and that other loop."""
    for index, extent in space.ranges:
        own = {other for other, _ in space.ranges}
        for other in sorted(_indices(extent) & own):
            return index, other
    return None


def _independent(space: IterationSpace, index: Index) -> bool:
    extents = dict(space.ranges)
    return not _indices(extents[index]) and not any(index in _indices(extent) for extent in extents.values())


def _count(extent: Extent) -> Polynomial | None:
    """The trip count as a polynomial, which may be negative if there are no iterations."""
    if extent.constant is not None:
        return Polynomial.of(extent.constant) if extent.constant > 0 else None
    match extent:
        case Extent(bounds=(Bound(span=span, step=1),), least=0):
            return span
        case _:
            return None


def _indices(extent: Extent) -> frozenset[Index]:
    return frozenset(index for bound in extent.bounds for index in bound.span.indices)


def _replaced(extent: Extent, places: Mapping[Symbol, Polynomial]) -> Extent:
    bounds = tuple(Bound(bound.span.substitute(places), bound.step) for bound in extent.bounds)
    return Extent(tuple(dict.fromkeys(bounds)), extent.least)


def _needed(extent: Extent, space: IterationSpace) -> Extent:
    """An extent without redundant bounds: those that another bound never exceeds."""
    kept = list(extent.bounds)
    for bound in extent.bounds:
        others = [other for other in kept if other != bound]
        if any(_never_more(other, bound, space) for other in others):
            kept = others
    return Extent(tuple(kept), extent.least)


def _never_more(one: Bound, other: Bound, space: IterationSpace) -> bool:
    """Whether a constant bound never exceeds another bound within constant ranges."""
    limit = one.span.constant
    if limit is None:
        return False
    lowest = 0
    form = other.span.linear([index for index, _ in space.ranges])
    if form is None or form.rest.constant is None:
        return False
    lowest = form.rest.constant
    extents = dict(space.ranges)
    for index, coefficient in form.coefficients:
        counts = [bound.span.constant for bound in extents[index].bounds if bound.step == 1]
        most = min((count for count in counts if count is not None), default=extents[index].constant)
        if coefficient.constant is None or (coefficient.constant < 0 and most is None):
            return False
        lowest += min(0, coefficient.constant * max((most or 1) - 1, 0))
    return -(-limit // one.step) <= -(-lowest // other.step)


def _unblocked(space: IterationSpace, outer: Range, inner: Range) -> IterationSpace | None:
    """One loop in place of a loop over blocks and one within a block; the last block may be shorter."""
    (block, blocks), (index, extent) = outer, inner
    inside = [bound for bound in extent.bounds if block not in bound.span.symbols]
    ends = [bound for bound in extent.bounds if block in bound.span.symbols]
    if len(inside) != 1 or len(ends) != 1 or len(blocks.bounds) != 1:
        return None
    size, end = Extent((inside[0],)).constant, ends[0]
    if size is None or size < 1:
        return None
    whole = end.span + Polynomial.of(block) * (size * end.step)
    count = Extent((Bound(whole, size * end.step),))
    same = blocks.bounds == count.bounds or (
        blocks.constant is not None and blocks.constant == count.constant
    )
    if block in whole.symbols or not same:
        return None
    merged = space.with_index(index, Polynomial.of(index) - Polynomial.of(block) * size)
    result = Extent((Bound(whole, end.step),), min(blocks.least, extent.least))
    merged = merged.without(block).with_extent(index, result)
    return None if merged.names(block) else merged


def _triangle(space: IterationSpace, outer: Range, inner: Range) -> IterationSpace | None:
    """A loop nest over a triangle as two loops over the square with ordered indices."""
    (first, extent), (second, inner_extent) = outer, inner
    count, length = _count(extent), inner_extent.bounds
    if count is None or first in count.symbols or len(length) != 1 or length[0].step != 1:
        return None
    square = space.with_extent(second, extent)
    match length[0].span:
        case span if span == Polynomial.of(first) + 1:  # second <= first
            return replace(square, ordered=(second, first))
        case span if span == count - first:  # second counts from first
            moved = square.with_index(second, Polynomial.of(second) - first)
            return replace(moved, ordered=(first, second))
        case _:
            return None
