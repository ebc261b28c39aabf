"""Statements of a nest as operations on whole arrays: their loops by the values of the variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.loops.nests.effects import Range, Refused, Store, effects
from tilewright.loops.nests.names import accesses
from tilewright.loops.nests.nest import Access, Bound, Extent, Factor, Value
from tilewright.loops.nests.pointwise import elements_of
from tilewright.loops.nests.polynomial import Index, Polynomial, Symbol
from tilewright.loops.python.elements import PythonNest
from tilewright.records import dataclass


@dataclass(frozen=True)
class VectorLoop:
    """A loop, whose index is the value of its variable.

    Attributes
    ----------
    first, end : the least value, and the one behind the largest.
    descends : whether the values come in descending order.
    """

    index: Index
    first: Polynomial
    end: Polynomial
    descends: bool = False

    @property
    def count(self) -> Polynomial:
        """The number of iterations, if that is not negative."""
        return self.end - self.first


@dataclass(frozen=True)
class ArrayElement:
    """An element of an array: its subscripts in terms of the values of variables."""

    array: str
    subscripts: tuple[Polynomial, ...]

    @property
    def indices(self) -> frozenset[Index]:
        """The loops that move it."""
        return frozenset().union(*(one.indices for one in self.subscripts))


@dataclass(frozen=True)
class VectorTerm:
    """A factor times elements, summed over loops."""

    factor: Factor
    elements: tuple[ArrayElement, ...]
    sums: tuple[VectorLoop, ...]


@dataclass(frozen=True)
class VectorStatement:
    """One store for all iterations of its loops.

    Attributes
    ----------
    loops : those around it, outermost first.
    terms : what is stored, unless it is `value`.
    adds : whether it is added to the target, for which the order of iterations does not matter.
    value : an expression whose elements are those of `places`.
    line : in the source.
    """

    loops: tuple[VectorLoop, ...]
    target: ArrayElement
    terms: tuple[VectorTerm, ...]
    adds: bool
    value: Value | None
    places: tuple[tuple[Access, ArrayElement], ...]
    line: int | None

    @property
    def reads(self) -> tuple[tuple[ArrayElement, tuple[VectorLoop, ...]], ...]:
        """The elements that it reads beside the target that it adds to, with the loops around each."""
        found = [(element, self.loops + term.sums) for term in self.terms for element in term.elements]
        return (*found, *((element, self.loops) for _, element in self.places))


def statements_of(nest: PythonNest) -> list[VectorStatement]:
    """The statements of a nest in program order; raises `Refused`."""
    stores = effects(nest.loop, pointwise=True)
    written = {store.target.memory for store in stores}
    needed: set[Access] = set()
    for store in stores:
        reads = [element for term in store.form.terms for element in term.elements]
        for element in reads:
            if element.access.memory in written and element.version != store.version:
                raise Refused(store.where, f"keeps elements of {element.access.memory.name} across stores")
            if element.dtype is not None:
                raise Refused(store.where, f"has several statements, and converts to {element.dtype}")
        needed |= {store.target, *(element.access for element in reads)}
        needed |= set() if store.value is None else set(elements_of(store.value))
    if idle := [access for access in accesses(nest.loop) if access not in needed]:
        raise Refused(idle[0].where, f"reads elements of {idle[0].memory.name} that no statement needs")
    if any(axes == 0 for axes in nest.arrays.values()):
        raise Refused(nest.loop.where, "has several statements, and a sum that is read behind it")
    return [_Converted(nest, store).statement() for store in stores]


class _Converted:
    """One store in terms of the values of variables."""

    def __init__(self, nest: PythonNest, store: Store) -> None:
        self.nest, self.store = nest, store
        self.places: dict[Symbol, Polynomial] = {}

    def statement(self) -> VectorStatement:
        """The statement that a store is."""
        store = self.store
        loops = tuple(self.loops(store.ranges))
        target = self.element(store.target)
        own = [t for t in store.form.terms if [e.access for e in t.elements] == [store.target] and not t.sums]
        adds = len(own) == 1 and own[0].factor.is_one
        terms = []
        for term in store.form.terms:
            if adds and term is own[0]:
                continue
            sums = tuple(self.loops(term.sums))
            elements = tuple(self.element(element.access) for element in term.elements)
            terms.append(VectorTerm(term.factor, elements, sums))
        read = [] if store.value is None else list(dict.fromkeys(elements_of(store.value)))
        places = tuple((access, self.element(access)) for access in read)
        return VectorStatement(loops, target, tuple(terms), adds, store.value, places, store.where.line)

    def element(self, access: Access) -> ArrayElement:
        """An element in terms of the values of variables."""
        subscripts = tuple(one.substitute(self.places) for one in access.subscripts)
        return ArrayElement(access.memory.name, subscripts)

    def loops(self, ranges: Sequence[Range]) -> Iterator[VectorLoop]:
        """Loops by the values of their variables; remembers what indices are in terms of them."""
        made = []
        for index, extent in ranges:
            match extent:
                case Extent(bounds=(Bound(span=span, step=1),), least=0):
                    count = span.substitute(self.places)
                case Extent(bounds=(Bound(span=span, step=step),), least=0) if not span.indices:
                    count = self.nest.count_of(span, step)
                case _:
                    raise Refused(self.store.where, "has several statements in blocks of loops")
            value = self.nest.values.get(index, Polynomial.of(index))
            form = value.linear([index])
            slope = None if form is None else form.coefficient(index).constant
            if form is None or slope not in (1, -1):
                made.append(VectorLoop(index, Polynomial(), count))
                continue
            start = form.rest.substitute(self.places)
            if slope == 1:
                self.places[index] = index - start
                made.append(VectorLoop(index, start, start + count))
            else:
                self.places[index] = start - index
                made.append(VectorLoop(index, start - count + 1, start + 1, descends=True))
        return iter(made)
