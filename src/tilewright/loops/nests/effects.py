"""Effects of a loop nest: every store as a sum of products of loaded elements, with local variables
eliminated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TypeAlias

from tilewright.loops.nests.nest import (
    Access,
    Assign,
    Cell,
    Conversion,
    CountedLoop,
    Extent,
    Factor,
    FunctionCall,
    InvariantScalar,
    Load,
    Minus,
    Number,
    Obstacle,
    Quotient,
    Read,
    Refusal,
    Select,
    SquareRoot,
    Statement,
    Sum,
    Times,
    Unreadable,
    Value,
    Where,
)
from tilewright.loops.nests.pointwise import split
from tilewright.loops.nests.polynomial import Index
from tilewright.records import dataclass
from tilewright.spec.dtype import DType, Kind

#: A loop without its body: its index and extent.
Range: TypeAlias = tuple[Index, Extent]


class Refused(Exception):
    """Raised to stop reading a nest; `recognise` returns the refusal it holds."""

    def __init__(self, where: Where, reason: str) -> None:
        super().__init__(reason)
        self.refusal = Refusal(where, reason)


@dataclass(frozen=True)
class LoadedElement:
    """An element of memory as a factor of a product.

    Attributes
    ----------
    dtype : the type that it was converted to.
    exact : whether the conversion kept its value.
    version : number of stores before the point where it was read.
    """

    access: Access
    dtype: DType | None
    exact: bool = True
    version: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Before:
    """The value of a variable at the start of the loop body, followed by type conversions."""

    cell: Cell
    converts: tuple[DType, ...] = ()


ONE = Factor()


@dataclass(frozen=True)
class Term:
    """A constant factor times elements and variables, summed over loops.

    Attributes
    ----------
    sums : loops around this term that are not around the whole value.
    reassociates, contracts : whether every sum and every product in it permits it.
    acc : the narrowest type of its partial sums; None before any summation.
    """

    factor: Factor = ONE
    elements: tuple[LoadedElement, ...] = ()
    cells: tuple[Before, ...] = ()
    sums: tuple[Range, ...] = ()
    reassociates: bool = True
    contracts: bool = True
    acc: DType | None = None

    def __mul__(self, other: Term) -> Term:
        return Term(
            times(self.factor, other.factor),
            self.elements + other.elements,
            self.cells + other.cells,
            self.sums + other.sums,
            self.reassociates and other.reassociates,
            self.contracts and other.contracts,
            narrower(self.acc, other.acc),
        )


@dataclass(frozen=True)
class SumOfTerms:
    """A sum of terms of one type. A sum without terms is the number 0."""

    terms: tuple[Term, ...] = ()
    dtype: DType | None = None


@dataclass(frozen=True)
class Store:
    """A store `target = form`, executed in every iteration of some loops.

    Attributes
    ----------
    ranges : the loops around it, outermost first.
    version : number of stores before it.
    mirrored : a variable assumed to equal the target when the loops begin; this has still to be proved.
    value : what is stored, where it is no sum of products but computed from elements one by one; the form has
        no terms then.
    """

    ranges: tuple[Range, ...]
    target: Access
    form: SumOfTerms
    version: int
    where: Where
    mirrored: Cell | None = None
    value: Value | None = None


@dataclass(frozen=True)
class Effects:
    """Effects of statements: final values of variables, and stores.

    A variable whose value is None keeps the value of the last iteration.
    """

    cells: Mapping[Cell, SumOfTerms | None]
    stores: tuple[Store, ...]


def effects(nest: CountedLoop, *, pointwise: bool = False) -> tuple[Store, ...]:
    """The stores of a nest, in program order.

    Sums that a scalar variable accumulates become terms over the accumulating loops:
    ``s = 0; for k: s += A[k]*B[k]; C = s`` is the store ``C = sum over k of A[k]*B[k]``.

    Parameters
    ----------
    pointwise : values that are no sums of products may be stored, too. One that is computed from a sum is
        two stores: ``C = s / n`` is ``C = s; C = C / n``.

    Raises
    ------
    Refused : a statement or value cannot be part of a sum of products, or a variable carries a value other
        than its own sum from one iteration to the next.
    """
    found = _Reader(pointwise=pointwise).body((nest,))
    for store in found.stores:
        if unset := [term.cells[0].cell for term in store.form.terms if term.cells]:
            raise Refused(store.where, f"does not set {unset[0].name} before it adds to it")
        if store.mirrored is not None:
            raise Refused(store.where, f"does not set {store.mirrored.name} before it adds to it")
    return found.stores


def narrower(one: DType | None, other: DType | None) -> DType | None:
    """The type of fewer bits; unknown types are ignored."""
    if one is None or other is None:
        return one or other
    return one if one.bits <= other.bits else other


def times(one: Factor, other: Factor) -> Factor:
    """The product of two factors."""
    return Factor(one.number * other.number, one.scalars + other.scalars)


class _Reader:
    """Reads statements in program order and counts stores."""

    def __init__(self, *, pointwise: bool) -> None:
        self.version = 0
        self.pointwise = pointwise

    def body(self, statements: tuple[Statement, ...]) -> Effects:
        """Effects of statements in terms of the values of variables before them."""
        cells: dict[Cell, SumOfTerms | None] = {}
        stores: list[Store] = []
        for statement in statements:
            match statement:
                case CountedLoop():
                    self.loop(statement, cells, stores)
                case Assign(target=Cell() as cell):
                    cells[cell] = self.value(statement.value, cells, statement.where)
                case Assign(target=Access() as target):
                    self.assign(target, statement, cells, stores)
                case Obstacle(reason=reason, where=where):
                    raise Refused(where, reason)
        return Effects(cells, tuple(stores))

    def assign(
        self, target: Access, statement: Assign, cells: Mapping[Cell, SumOfTerms | None], stores: list[Store]
    ) -> None:
        """Appends the stores of an assignment to an element."""
        where = statement.where
        try:
            form = self.value(statement.value, cells, where)
        except Refused:
            found = split(statement.value, target) if self.pointwise else None
            if found is None:
                raise
            value, cell = found
            if cell is not None:
                form = self.value(Read(cell), cells, where)
                if form.dtype != target.dtype:
                    raise
                self.store(Store((), target, form, self.version, where), stores)
            stores.append(Store((), target, SumOfTerms(), self.version, where, value=value))
            self.version += 1
        else:
            self.store(Store((), target, form, self.version, where), stores)

    def store(self, store: Store, stores: list[Store]) -> None:
        """Appends a store, and removes an earlier store to the same element that is not read in between."""
        last = stores[-1] if stores else None
        if last is not None and not last.ranges and last.target == store.target and last.value is None:
            own = [
                e
                for term in store.form.terms
                for e in term.elements
                if e.access.memory == store.target.memory
            ]
            if all(element.version <= last.version for element in own):
                store = replace(store, version=stores.pop().version)
        stores.append(store)
        self.version += 1

    def loop(self, loop: CountedLoop, cells: dict[Cell, SumOfTerms | None], stores: list[Store]) -> None:
        """Adds the effects of a loop to the variables and stores of the statements before it."""
        before = self.version
        writes = any(isinstance(s, Assign) and isinstance(s.target, Access) for s in loop.walk())
        self.version += writes  # what was read outside may be another iteration's
        found = repeated(loop, self.body(loop.body))
        for store in found.stores:
            shown = self.mirror(store, cells, stores, before) if store.mirrored in cells else store
            stores.append(replace(shown, form=substitute(shown.form, cells, shown.where)))
        self.version += writes
        after: dict[Cell, SumOfTerms | None] = {}
        for cell, form in found.cells.items():
            known = form is not None and all(cells.get(b.cell, form) for t in form.terms for b in t.cells)
            after[cell] = substitute(form, cells, loop.where) if form is not None and known else None
        for store in found.stores:
            if store.mirrored in cells:
                kept = LoadedElement(store.target, store.target.dtype, version=self.version)
                after[store.mirrored] = SumOfTerms((Term(elements=(kept,)),), store.target.dtype)
        cells.update(after)

    def mirror(
        self, store: Store, cells: Mapping[Cell, SumOfTerms | None], stores: list[Store], version: int
    ) -> Store:
        """A store of a variable that equals the target; the statements before the loop must prove it."""
        assert store.mirrored is not None
        held = cells[store.mirrored]
        match held:
            case SumOfTerms(terms=(Term(elements=(element,)) as term,)):
                loaded = term == Term(elements=(element,)) and element.access.offset == store.target.offset
                if loaded and element.access.memory == store.target.memory and element.version == version:
                    return replace(store, mirrored=None)
            case _:
                pass
        if stores and held is not None and not stores[-1].ranges and stores[-1].target == store.target:
            last = stores[-1]
            earlier = all(e.version <= last.version for term in held.terms for e in term.elements)
            if last.form.terms == held.terms and earlier:
                return replace(store, mirrored=None)
        raise Refused(store.where, f"carries {store.mirrored.name} from one iteration to the next")

    def value(self, value: Value, cells: Mapping[Cell, SumOfTerms | None], where: Where) -> SumOfTerms:
        """A value as a sum of products."""
        match value:
            case Load(access=access):
                element = LoadedElement(access, access.dtype, version=self.version)
                return SumOfTerms((Term(elements=(element,)),), access.dtype)
            case Read(cell=cell):
                return substitute(SumOfTerms((Term(cells=(Before(cell),)),)), cells, where)
            case Number(value=number):
                return SumOfTerms((Term(Factor(number)),) if number else ())
            case InvariantScalar(dtype=dtype):
                return SumOfTerms((Term(Factor(1, (value,))),), dtype)
            case Sum():
                left = self.value(value.left, cells, where)
                right = self.value(value.right, cells, where)
                terms = (
                    replace(term, reassociates=term.reassociates and value.reassociates)
                    for term in left.terms + right.terms
                )
                return SumOfTerms(tuple(terms), left.dtype or right.dtype)
            case Times():
                left = self.value(value.left, cells, where)
                right = self.value(value.right, cells, where)
                if not (left.terms and right.terms):
                    raise Refused(where, "multiplies by 0, which does not remove NaN and infinity")
                return multiply(left, right, where, contracts=value.contracts)
            case Minus():
                form = self.value(value.value, cells, where)
                minus = Term(Factor(-1))
                return replace(form, terms=tuple(minus * term for term in form.terms))
            case Conversion():
                return converted(self.value(value.value, cells, where), value.dtype, where)
            case Quotient(where=place):
                raise Refused(place, "divides")
            case SquareRoot(where=place):
                raise Refused(place, "computes square roots")
            case Select(where=place):
                raise Refused(place, "chooses between values")
            case FunctionCall(function=function, where=place):
                raise Refused(place, f"calls {function}")
            case Unreadable(reason=reason, where=place):
                raise Refused(place, reason)


def multiply(left: SumOfTerms, right: SumOfTerms, where: Where, *, contracts: bool) -> SumOfTerms:
    """The product of two sums, at least one of which is a single term."""
    if len(left.terms) > 1 and len(right.terms) > 1:
        raise Refused(where, "multiplies sums")
    flag = Term(contracts=contracts)
    terms = (one * other * flag for one in left.terms for other in right.terms)
    return SumOfTerms(tuple(terms), left.dtype or right.dtype)


def substitute(form: SumOfTerms, cells: Mapping[Cell, SumOfTerms | None], where: Where) -> SumOfTerms:
    """A form with variables replaced by their values; variables missing in `cells` stay."""
    if not any(before.cell in cells for term in form.terms for before in term.cells):
        return form
    terms: list[Term] = []
    dtype = form.dtype
    for term in form.terms:
        result = SumOfTerms((replace(term, cells=()),))
        for before in term.cells:
            factor = SumOfTerms((Term(cells=(before,)),))
            if before.cell in cells:
                held = cells[before.cell]
                if held is None:
                    raise Refused(
                        where, f"reads {before.cell.name}, which the last iteration of a loop assigned"
                    )
                factor = held
                for kind in before.converts:
                    factor = converted(factor, kind, where)
                dtype = dtype or factor.dtype
            result = multiply(factor, result, where, contracts=True)
        terms += result.terms
    return SumOfTerms(tuple(terms), dtype)


def converted(form: SumOfTerms, dtype: DType, where: Where) -> SumOfTerms:
    """A form converted to another type.

    Integers wrap around: narrowing a sum equals narrowing its terms, but widening does not.
    """
    source = form.dtype
    if source == dtype:
        return form
    numbers = not any(term.elements or term.cells or term.factor.scalars for term in form.terms)
    if source is not None and not numbers and not _alike(source, dtype):
        raise Refused(where, f"converts {source} to {dtype}")
    if source is not None and source.is_integer and dtype.bits > source.bits and len(form.terms) > 1:
        raise Refused(where, f"accumulates in {source} and widens the sum to {dtype}")
    return SumOfTerms(tuple(_converted_term(term, source, dtype, where) for term in form.terms), dtype)


def _alike(one: DType, other: DType) -> bool:
    return one.kind is other.kind or (one.is_integer and other.is_integer)


def _converted_term(term: Term, source: DType | None, dtype: DType, where: Where) -> Term:
    match term:
        case Term(elements=(), cells=(before,)):
            return replace(term, cells=(replace(before, converts=(*before.converts, dtype)),))
        case Term(elements=(element,), cells=(), sums=(), factor=Factor(number=1, scalars=())):
            held = element.access.dtype
            exact = element.exact and (held is None or dtype.holds(held))
            return replace(term, elements=(replace(element, dtype=dtype, exact=exact),))
        case Term(elements=()):
            return term
        case _:
            widens = source is not None and source.is_integer and dtype.bits > source.bits
            if widens and source is not None and not _fits(term, source):
                raise Refused(where, f"accumulates in {source} and widens the sum to {dtype}")
            return term


def _fits(term: Term, dtype: DType) -> bool:
    """Whether the type represents every product of the elements: bits of both, and a sign bit if unsigned."""
    read = [element.access.dtype for element in term.elements]
    if term.sums or term.cells or term.factor not in (ONE, Factor(-1)) or dtype.kind is not Kind.SIGNED:
        return False
    known = [kind for kind in read if kind is not None]
    unsigned = any(kind.kind is Kind.UNSIGNED for kind in known)
    return len(known) == len(read) and sum(kind.significand for kind in known) + unsigned <= dtype.bits


def repeated(loop: CountedLoop, body: Effects) -> Effects:
    """Effects of a loop, from the effects of its body."""
    around: Range = (loop.index, loop.extent)
    cells = {cell: _summed(cell, form, around, body) for cell, form in body.cells.items()}
    stores = []
    for store in body.stores:
        carried = [b.cell for term in store.form.terms for b in term.cells if b.cell in body.cells]
        if store.mirrored is not None and not _mirrors(store, store.mirrored, loop, body):
            raise Refused(store.where, f"carries {store.mirrored.name} from one iteration to the next")
        own = _mirroring(store, carried[0], loop, body) if carried else store
        stores.append(replace(own, ranges=(around, *store.ranges)))
    return Effects(cells, tuple(stores))


def _summed(cell: Cell, form: SumOfTerms | None, around: Range, body: Effects) -> SumOfTerms | None:
    """The value of a variable after a loop as its previous value plus a sum; None if it has another form."""
    if form is None:
        return None
    own = [term for term in form.terms if any(before.cell in body.cells for before in term.cells)]
    match own:
        case [Term(elements=(), cells=(Before(cell=held, converts=converts),), sums=()) as start] if (
            held == cell and start.factor.is_one
        ):
            acc = form.dtype
            for kind in converts:
                acc = narrower(acc, kind)
            summed = (
                replace(term, sums=(around, *term.sums), acc=narrower(term.acc, acc))
                for term in form.terms
                if term is not start
            )
            return replace(form, terms=(start, *summed))
        case _:
            return None


def _mirrors(store: Store, cell: Cell, loop: CountedLoop, body: Effects) -> bool:
    """Whether a variable that equals the target of the only store before an iteration also does after it."""
    summed = _summed(cell, body.cells[cell], NOWHERE, body)
    if summed is None or len(body.stores) > 1 or loop.index in store.target.offset.symbols:
        return False
    held = [replace(term, sums=term.sums[1:], acc=None) for term in summed.terms if not term.cells]
    own = [term for term in store.form.terms if not term.cells and store.target not in _accesses(term)]
    return held == [replace(term, sums=(*store.ranges, *term.sums), acc=None) for term in own]


def _accesses(term: Term) -> list[Access]:
    return [element.access for element in term.elements]


def _mirroring(store: Store, cell: Cell, loop: CountedLoop, body: Effects) -> Store:
    """A store that repeats the partial sum of a variable in every iteration, rewritten as an accumulation.

    ``for k: s += x; C = s`` is ``for k: C += x`` if s equals C before the loop.
    """
    same = store.form == body.cells[cell] and not store.ranges
    if not (same and _mirrors(store, cell, loop, body)):
        raise Refused(store.where, f"carries {cell.name} from one iteration to the next")
    loaded = LoadedElement(store.target, store.target.dtype, version=store.version)
    terms = tuple(
        replace(term, elements=(loaded,), cells=())
        if any(before.cell == cell for before in term.cells)
        else term
        for term in store.form.terms
    )
    return replace(store, form=replace(store.form, terms=terms), mirrored=cell)


#: A loop that sums nothing, passed to `_summed` when only the form of a value matters.
NOWHERE: Range = (Index(""), Extent.of(1))
