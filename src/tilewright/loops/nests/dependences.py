"""Dependences between statements of a nest: which may run for all iterations before another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from tilewright.loops.nests.effects import Range
from tilewright.loops.nests.nest import Bound, Extent, MemoryObject, Within
from tilewright.loops.nests.polynomial import Index, Polynomial, Symbol
from tilewright.records import dataclass
from tilewright.spec.dtype import DType

#: No stride of an array is larger.
MOST_BYTES = 1 << 62


@dataclass(frozen=True)
class Difference:
    """left - right <= limit, for the indices of two loops of an iteration."""

    left: Index
    right: Index
    limit: int


@dataclass(frozen=True)
class Box:
    """Loops of independent extents that contain the iterations of a nest, and how far indices are apart.

    Attributes
    ----------
    ranges : the loops, outermost first. An index that counted from an outer one counts from 0.
    differences : what holds beside the extents.
    places : the nest's own indices in terms of these.
    """

    ranges: tuple[Range, ...]
    differences: tuple[Difference, ...]
    places: tuple[tuple[Symbol, Polynomial], ...]

    def moved(self, value: Polynomial) -> Polynomial:
        """A polynomial of the nest's indices in terms of these."""
        return value.substitute(dict(self.places))


def boxed(ranges: Sequence[Range]) -> Box | None:
    """The box of some loops; None if an extent is no sum of a number, an outer index and what is invariant.

    ``for i < n: for j = i .. n`` is all i, j < n with i <= j.
    """
    found: list[Range] = []
    widths: dict[Index, Polynomial] = {}
    differences: list[Difference] = []
    places: dict[Symbol, Polynomial] = {}
    for index, extent in ranges:
        if extent.constant is not None:
            found.append((index, extent))
            widths[index] = Polynomial.of(extent.constant)
            continue
        match extent.bounds:
            case (Bound(span=span, step=1),):
                span = span.substitute(places)
            case _:
                return None
        form = span.linear(list(widths))
        if form is None:
            return None
        match form.coefficients:
            case ():
                found.append((index, extent))
                widths[index] = span
            case ((outer, sign),) if extent.least == 0 and sign.constant in (1, -1):
                width = form.rest
                if sign.constant == 1:
                    width = form.rest + widths[outer] - 1
                    if form.rest.constant is not None:
                        differences.append(Difference(index, outer, form.rest.constant - 1))
                else:
                    places[index] = Polynomial.of(index) - outer
                    differences.append(Difference(outer, index, 0))
                found.append((index, Extent.of(width)))
                widths[index] = width
            case _:
                return None
    return Box(tuple(found), tuple(differences), tuple(places.items()))


@dataclass(frozen=True)
class Touched:
    """An element that the iterations of a box access."""

    memory: MemoryObject
    offset: Polynomial
    dtype: DType
    box: Box
    writes: bool


@dataclass(frozen=True)
class Subscripts:
    """An offset as subscripts: a sum of strides times affine expressions, and a rest."""

    expressions: tuple[Polynomial, ...]
    rest: Polynomial


class Arrays:
    """The strides of the arrays in each memory object, found from all its accesses."""

    def __init__(self, touched: Sequence[Touched]) -> None:
        self._strides: dict[MemoryObject, tuple[Polynomial, ...]] = {}
        for memory in dict.fromkeys(one.memory for one in touched):
            own = [one for one in touched if one.memory == memory]
            self._strides[memory] = _strides(own)

    def subscripts(self, one: Touched) -> Subscripts:
        """The subscripts of an element."""
        left, found = one.offset, []
        for stride in self._strides[one.memory]:
            quotient = _quotient(left, stride)
            found.append(quotient)
            left = left - quotient * stride
        return Subscripts(tuple(found), left)

    def in_range(self, one: Touched) -> Iterator[Within]:
        """What must hold for different subscripts to mean different elements."""
        strides, parts = self._strides[one.memory], self.subscripts(one)
        for outer, stride, expression in zip(strides, strides[1:], parts.expressions[1:], strict=False):
            loops = tuple(own for own in one.box.ranges if own[0] in expression.symbols)
            yield Within(expression * stride, Polynomial(), outer, loops)
        if strides and strides[-1].constant is None:
            yield Within(strides[-1], Polynomial.of(one.dtype.size), Polynomial.of(MOST_BYTES), ())

    def overlaps_itself(self, one: Touched) -> bool:
        """Whether neighbouring elements share bytes."""
        least = self._strides[one.memory][-1:]
        return any(stride.constant is not None and stride.constant < one.dtype.size for stride in least)

    def has_own_elements(self, one: Touched, ranges: Sequence[Range]) -> bool:
        """Whether each iteration of some loops accesses an element that no other one does."""
        parts = self.subscripts(one)
        found = [single(expression) for expression in parts.expressions]
        named = [part[0] for part in found if part is not None and part[0] is not None]
        every = sorted(named) == sorted(own[0] for own in ranges)
        return every and None not in found and not parts.rest.indices and not self.overlaps_itself(one)


def _strides(touched: Sequence[Touched]) -> tuple[Polynomial, ...]:
    """Strides of which all coefficients of indices are sums, largest first; products of sizes are larger."""
    found: set[Polynomial] = set()
    for one in touched:
        form = one.offset.linear([index for index, _ in one.box.ranges])
        for _, coefficient in form.coefficients if form else ():
            if len(coefficient.terms) == 1:
                ((monomial, number),) = coefficient.terms
                found.add(Polynomial(((monomial, abs(number)),)))
    constants = sorted(known for stride in found if (known := stride.constant) is not None)
    sums = {a + b for a, b in combinations(constants, 2)}
    plain = [Polynomial.of(one) for one in reversed(constants) if one not in sums]
    named = sorted((one for one in found if one.constant is None), key=lambda one: -len(one.terms[0][0]))
    return (*named, *plain)


def _quotient(value: Polynomial, stride: Polynomial) -> Polynomial:
    """The part of a value that a stride of one term divides, divided by it; constants are rounded."""
    ((monomial, number),) = stride.terms
    terms: list[tuple[tuple[Symbol, ...], int]] = []
    for symbols, coefficient in value.terms:
        indices = tuple(one for one in symbols if isinstance(one, Index))
        others = tuple(one for one in symbols if not isinstance(one, Index))
        if others == monomial and len(indices) <= 1:
            quotient = round(coefficient / number) if not monomial else coefficient // number
            if quotient:
                terms.append((indices, quotient))
    return Polynomial(tuple(terms)) + 0


class Order:
    """Decides in which order two statements may run, each for all iterations."""

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays

    def may_precede(
        self, first: Touched, second: Touched, shared: Sequence[Index], *, itself: bool = False
    ) -> bool:
        """Whether all iterations of the first statement may run before any of the second.

        Parameters
        ----------
        first, second : elements of the same memory, in program order of the statements within an iteration.
        shared : indices of the loops around both, outermost first.
        itself : whether `first` is of the later statement: whether that may run first.
        """
        if not shared and not itself:
            return True
        known = self._known(first, second)
        if known is None:
            return False
        for place, index in enumerate(shared):
            # An instance of the second before one of the first that touches the same element.
            earlier = [*known, *self._equal(shared[:place]), ((1, index), (0, index), -1)]
            if not _impossible(earlier):
                return False
        return not itself or _impossible([*known, *self._equal(shared)])

    @staticmethod
    def _equal(shared: Sequence[Index]) -> list[_Edge]:
        return [edge for one in shared for edge in (((0, one), (1, one), 0), ((1, one), (0, one), 0))]

    def _known(self, first: Touched, second: Touched) -> list[_Edge] | None:
        """What holds for two iterations that access the same element; None if little is known."""
        parts = [self._arrays.subscripts(one) for one in (first, second)]
        if self._arrays.overlaps_itself(first):
            return None
        if parts[0].rest != parts[1].rest or parts[0].rest.indices:
            return None
        edges: list[_Edge] = []
        for number, one in enumerate((first, second)):
            edges += [((number, d.left), (number, d.right), d.limit) for d in one.box.differences]
        for left, right in zip(parts[0].expressions, parts[1].expressions, strict=True):
            known, other = single(left), single(right)
            if known is None or other is None:
                continue
            x, y = (0, known[0]), (1, other[0])
            edges += [(x, y, other[1] - known[1]), (y, x, known[1] - other[1])]
        return edges


_Node = tuple[int, Index | None]
#: left - right <= limit.
_Edge = tuple[_Node, _Node, int]


def single(value: Polynomial) -> tuple[Index | None, int] | None:
    """An index and a number of which a value is the sum; the index None is 0."""
    number = dict(value.terms).get((), 0)
    match (value - number).terms:
        case ():
            return None, number
        case (((Index() as index,), 1),):
            return index, number
        case _:
            return None


def _impossible(edges: Sequence[_Edge]) -> bool:
    """Whether differences contradict each other: a cycle of them is negative."""
    zero: dict[_Node, _Node] = {(1, None): (0, None)}
    moved = [(zero.get(left, left), zero.get(right, right), limit) for left, right, limit in edges]
    nodes = {node for left, right, _ in moved for node in (left, right)}
    distance = dict.fromkeys(nodes, 0)
    for _ in range(len(nodes) + 1):
        changed = False
        for left, right, limit in moved:
            if distance[right] + limit < distance[left]:
                distance[left], changed = distance[right] + limit, True
        if not changed:
            return False
    return True
