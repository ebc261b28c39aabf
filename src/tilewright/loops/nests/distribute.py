"""Distribution: a nest with several statements as products and loops, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tilewright.loops.nests.dependences import Arrays, Order, Touched, boxed, single
from tilewright.loops.nests.effects import LoadedElement, Range, Refused, Store, SumOfTerms, Term, effects
from tilewright.loops.nests.factorise import factorisation
from tilewright.loops.nests.finishing import finished
from tilewright.loops.nests.nest import (
    Access,
    Condition,
    CountedLoop,
    MatrixOperand,
    MatrixProduct,
    Refusal,
    Where,
)
from tilewright.loops.nests.pointwise import elements_of
from tilewright.loops.nests.polynomial import Index, Symbol
from tilewright.loops.nests.recognise import product_of
from tilewright.loops.nests.sequence import (
    Apart,
    Distribution,
    Footprint,
    LoopStep,
    ProductStep,
    Step,
    StripStep,
)
from tilewright.loops.nests.shared import MatrixSharing, shared
from tilewright.loops.nests.statements import accumulated, loops_of
from tilewright.loops.nests.strips import LENGTH, cut
from tilewright.spec.dtype import F32, F64, I32, I64
from tilewright.spec.roles import DimensionRole

#: Element types that loops between products compute in.
TYPES = (F32, F64, I32, I64)


def distribute(nest: CountedLoop, fresh: Callable[[str], Symbol]) -> Distribution | Refusal:
    """A nest as several statements, of which at least one is a product, or why it is none.

    Before: ``for i: (for j: t[i] += A[i,j]*x[j]; for j: y[j] += A[i,j]*t[i])``.
    After: ``t += A*x; y += Aᵀ*t``.

    Parameters
    ----------
    fresh : makes a symbol of an integer that steps are given, from a name.
    """
    try:
        stores = effects(nest, pointwise=True)
        return _Distributor(nest, stores, fresh).run()
    except Refused as refused:
        return refused.refusal


class _Distributor:
    """Orders the stores of one nest, and finds the products among them."""

    def __init__(self, nest: CountedLoop, stores: Sequence[Store], fresh: Callable[[str], Symbol]) -> None:
        self.nest, self.stores, self.fresh = nest, list(stores), fresh
        self._written = {store.target.memory for store in stores}
        self.touched = {number: list(self._touched(store)) for number, store in enumerate(stores)}
        self.arrays = Arrays([one for own in self.touched.values() for one in own])
        self._names = 0
        self._products: dict[MatrixProduct, Sequence[Store]] = {}

    def run(self) -> Distribution:
        """The steps, or `Refused`."""
        blocks = factorisation(self.stores, self.nest.extent, self.fresh, self.arrays)
        steps = finished(tuple(self._steps(self._ordered())) if blocks is None else (blocks,))
        sharing = MatrixSharing(self._products, self._symbol, _product, self._loops)
        by_strips = tuple(shared(steps, sharing))
        found = Distribution(by_strips, tuple(self._guards()), tuple(self._conditions()), self.nest.where)
        if not found.products:
            raise Refused(self.nest.where, "has several statements, none of which is a product")
        return found

    # What statements access

    def _touched(self, store: Store) -> Iterator[Touched]:
        if store.target.dtype not in TYPES:
            raise Refused(store.where, f"has several statements that compute in {store.target.dtype}")
        yield self._access(store, store.target, store.ranges, writes=True)
        for access in elements_of(store.value) if store.value is not None else ():
            yield self._access(store, access, store.ranges, writes=False)
        for term in store.form.terms:
            for element in term.elements:
                access = element.access
                if element.dtype != access.dtype or access.dtype != store.target.dtype:
                    raise Refused(store.where, f"has several statements, and converts {access.dtype}")
                if access.memory in self._written and element.version != store.version:
                    raise Refused(store.where, f"keeps elements of {access.memory.name} across stores")
                yield self._access(store, access, (*store.ranges, *term.sums), writes=False)

    def _access(self, store: Store, access: Access, ranges: Sequence[Range], *, writes: bool) -> Touched:
        box = boxed(ranges)
        if access.dtype is None or box is None:
            raise Refused(store.where, "has several statements in loops whose trip counts depend on others")
        if access.dtype != store.target.dtype:
            raise Refused(store.where, f"has several statements, and converts {access.dtype}")
        return Touched(access.memory, box.moved(access.offset), access.dtype, box, writes)

    # The order of statements

    def _ordered(self) -> list[Store]:
        """The stores in an order in which each may run for all iterations before the next one does."""
        count = len(self.stores)
        before: dict[int, set[int]] = {number: set() for number in range(count)}
        for one in range(count):
            for other in range(one + 1, count):
                forward, backward = self._may(one, other)
                if not forward and not backward:
                    first, second = self.stores[one], self.stores[other]
                    raise Refused(
                        second.where,
                        f"stores into {second.target.memory.name} what {first.target.memory.name} needs"
                        if first.target.memory != second.target.memory
                        else f"stores into {second.target.memory.name} twice in an order that cannot change",
                    )
                if not backward:
                    before[other].add(one)
                if not forward:
                    before[one].add(other)
        found: list[int] = []
        while len(found) < count:
            ready = [number for number in before if number not in found and before[number] <= set(found)]
            if not ready:
                raise Refused(self.nest.where, "has statements in a circle of dependences")
            last = self.stores[found[-1]].target.memory if found else None
            found.append(next((n for n in ready if self.stores[n].target.memory == last), ready[0]))
        return [self.stores[number] for number in found]

    def _may(self, one: int, other: int) -> tuple[bool, bool]:
        """Whether the first of two stores may run before the second one, and the other way round."""
        order = Order(self.arrays)
        shared: list[Index] = []
        for own, its in zip(self.stores[one].ranges, self.stores[other].ranges, strict=False):
            if own != its:
                break
            shared.append(own[0])
        forward = backward = True
        for x in self.touched[one]:
            for y in self.touched[other]:
                if x.memory == y.memory and (x.writes or y.writes):
                    forward = forward and order.may_precede(x, y, shared)
                    backward = backward and order.may_precede(y, x, shared, itself=True)
        return forward, backward

    # Run-time conditions

    def _conditions(self) -> list[Condition]:
        """Different subscripts are different elements, in memory that is written."""
        found: dict[Condition, None] = {}
        for own in self.touched.values():
            for one in own:
                if one.memory in self._written:
                    found |= dict.fromkeys(self.arrays.in_range(one))
        return list(found)

    def _guards(self) -> list[Apart]:
        """Different memory is different at run time, too, where one statement writes it."""
        every = [one for own in self.touched.values() for one in own]
        found: dict[Apart, None] = {}
        for one in every:
            for other in every:
                known = one.memory.private or other.memory.private
                if one.writes and one.memory != other.memory and not known:
                    pair = [_footprint(part, self.nest.where) for part in (one, other)]
                    if not other.writes or Apart(pair[1], pair[0]) not in found:
                        found[Apart(*pair)] = None
        return list(found)

    # Steps

    def _steps(self, stores: Sequence[Store]) -> Iterator[Step]:
        place = 0
        while place < len(stores):
            end = place + 1
            while end < len(stores) and stores[end].target.memory == stores[place].target.memory:
                end += 1
            for stop in range(end, place, -1):
                product = _product(stores[place:stop])
                if product is not None:
                    self._products[product] = stores[place:stop]
                    yield ProductStep(product, self._loops(stores[place:stop]))
                    place = stop
                    break
            else:
                yield from self._single(stores[place])
                place += 1

    def _single(self, store: Store) -> Iterator[Step]:
        """The steps of one store that is no product as it is."""
        if store.value is not None:
            yield LoopStep(self._loops([store]))
            return
        sums = [term for term in store.form.terms if _is_product(store, term)]
        plain = [term for term in store.form.terms if term not in sums]
        own = [term for term in plain if _is_own(store, term)]
        free = store.target.dtype.is_integer if store.target.dtype else False
        together = len(sums) == 1 and plain == own and all(term.factor.is_one for term in own) and own
        if not sums or not (free or together or all(term.reassociates for term in store.form.terms)):
            yield LoopStep(self._loops([store]))
            return
        if not together:
            adds = len(own) == 1 and own[0].factor.is_one
            if not adds and not self.arrays.has_own_elements(self._touched_by(store), store.ranges):
                yield LoopStep(self._loops([store]))
                return
            if any(
                access.memory == store.target.memory and access != store.target for access in _reads(store)
            ):
                yield LoopStep(self._loops([store]))
                return
            plainly = replace(store, form=replace(store.form, terms=tuple(plain)))
            yield LoopStep(self._loops([plainly]))
        element = LoadedElement(store.target, store.target.dtype, version=store.version)
        for term in sums:
            form = SumOfTerms((Term(elements=(element,)), term), store.form.dtype)
            yield self._added(replace(store, form=form))

    def _added(self, store: Store) -> Step:
        """C += one sum of products."""
        product = _product([store])
        if product is not None:
            self._products[product] = [store]
            return ProductStep(product, self._loops([store]))
        strips = cut(store, self._symbol)
        far = None if strips is None else _product([strips.far])
        if strips is None or far is None or not self._may_cut(store, strips.outer, strips.inner):
            return LoopStep(self._loops([store]))
        near = accumulated(strips.near, strips.outer, self.arrays)
        steps = (LoopStep((near,)), ProductStep(far, self._loops([strips.far])))
        return StripStep(strips.begin, strips.end, strips.extent, LENGTH, steps)

    def _may_cut(self, store: Store, outer: Index, inner: Index) -> bool:
        """Whether strips of a store may run, in each the part near the diagonal first.

        That is so if no factor is in the memory of C; or if factors are elements of C that later strips
        write, or later iterations of the same strip.
        """
        write, *reads = self._touched(store)
        for read in reads:
            if read.memory != write.memory or read.offset == write.offset:
                continue
            if outer not in dict(store.ranges):
                return False
            shared = [index for index, _ in store.ranges]
            first = shared.index(outer)
            later = Order(self.arrays).may_precede(read, write, shared[: first + 1], itself=True)
            pairs = zip(
                self.arrays.subscripts(write).expressions,
                self.arrays.subscripts(read).expressions,
                strict=True,
            )
            rows = [(single(one), single(other)) for one, other in pairs]
            below = any(
                one == (outer, 0) and other is not None and other[0] == inner and other[1] >= 0
                for one, other in rows
            )
            if not later or not below:
                return False
        return True

    def _touched_by(self, store: Store) -> Touched:
        return self._access(store, store.target, store.ranges, writes=True)

    def _symbol(self, name: str) -> Symbol:
        self._names += 1
        return self.fresh(f"{name}.{self._names}")

    def _loops(self, stores: Sequence[Store]) -> tuple[CountedLoop, ...]:
        return tuple(loops_of(store, self.arrays) for store in stores)


def _reads(store: Store) -> Iterator[Access]:
    if store.value is not None:
        yield from elements_of(store.value)
    for term in store.form.terms:
        yield from (element.access for element in term.elements)


def _is_own(store: Store, term: Term) -> bool:
    return len(term.elements) == 1 and term.elements[0].access == store.target and not term.sums


def _is_product(store: Store, term: Term) -> bool:
    """Whether a term is a sum of products of two elements over some loop."""
    named = store.target.offset.symbols
    summed = bool(term.sums) or any(index not in named for index, _ in store.ranges)
    return len(term.elements) == 2 and summed


def _product(stores: Sequence[Store]) -> MatrixProduct | None:
    """The product that stores are, if a kernel may compute it."""
    if any(store.value is not None for store in stores):
        return None
    try:
        found = product_of(stores[-1].where, stores)
    except Refused:
        return None
    roles = {dimension.role for dimension in found.dimensions}
    sums = DimensionRole.K in roles and roles & {DimensionRole.M, DimensionRole.N}
    return found if sums else None


def _footprint(one: Touched, where: Where) -> Footprint:
    ranges = one.box.ranges
    form = one.offset.linear([index for index, _ in ranges])
    if form is None:
        raise Refused(where, "has subscripts that are not affine in loop indices")
    operand = MatrixOperand(one.memory, form.rest, one.dtype)
    moves = tuple((index, extent, form.coefficient(index)) for index, extent in ranges)
    return Footprint(operand, tuple(move for move in moves if move[2]))
