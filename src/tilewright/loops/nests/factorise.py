"""LU and Cholesky factorisations in place: the textbook's nests in blocks, most of them as products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import takewhile

from tilewright.loops.nests.dependences import Arrays
from tilewright.loops.nests.effects import LoadedElement, Range, Refused, Store, SumOfTerms, Term, effects
from tilewright.loops.nests.nest import (
    Access,
    Assign,
    CountedLoop,
    Extent,
    Factor,
    Load,
    Minus,
    Quotient,
    SquareRoot,
    Statement,
    Sum,
    Times,
    Value,
)
from tilewright.loops.nests.pointwise import elements_of, parts_of
from tilewright.loops.nests.polynomial import Index, Polynomial, Symbol
from tilewright.loops.nests.recognise import product_of
from tilewright.loops.nests.sequence import LoopStep, ProductStep, StripStep
from tilewright.loops.nests.statements import loops_of
from tilewright.loops.nests.strips import LENGTH
from tilewright.records import dataclass
from tilewright.spec.dtype import F32, F64

ROW, COLUMN, DEPTH = Index("row"), Index("column"), Index("depth")


@dataclass(frozen=True)
class _Matrix:
    """A square matrix: one of its elements, its order, and its strides in bytes."""

    element: Access
    count: Polynomial
    row: Polynomial
    column: Polynomial
    start: Polynomial

    def at(self, row: Polynomial | Index, column: Polynomial | Index) -> Access:
        """An element."""
        return replace(self.element, offset=self.start + self.row * row + self.column * column, subscripts=())

    def less(self, target: Access, left: Access, right: Access) -> Assign:
        """target -= left * right."""
        added = Minus(Times(Load(left), Load(right), contracts=True))
        return Assign(target, Sum(Load(target), added, reassociates=True), target.where)

    def over(self, target: Access, divisor: Access) -> Assign:
        """target /= divisor."""
        return Assign(target, Quotient(Load(target), Load(divisor), target.where), target.where)

    def loop(self, index: Index, count: Polynomial | Index, *body: Statement) -> CountedLoop:
        """A loop from 0."""
        return CountedLoop(index, Extent.of(Polynomial.of(count)), body, self.element.where)


def factorisation(
    stores: Sequence[Store], extent: Extent, fresh: Callable[[str], Symbol], arrays: Arrays
) -> StripStep | None:
    """The blocks of a factorisation, if the stores of a nest are exactly those of one.

    Source: Golub, Van Loan, Matrix Computations, 4th ed., algorithms 3.2.1 and 4.2.1, and their block forms.
    """
    matrix = _matrix(stores, extent)
    if matrix is None:
        return None
    found = _canonical(stores)
    for textbook, blocks in ((_lu(matrix), _lu_blocks), (_cholesky(matrix), _cholesky_blocks)):
        if found is not None and found == _canonical(effects(textbook, pointwise=True)):
            begin, end = fresh("begin.block"), fresh("end.block")
            steps = blocks(matrix, Polynomial.of(begin), Polynomial.of(end), arrays)
            return StripStep(begin, end, extent, LENGTH, steps)
    return None


def _matrix(stores: Sequence[Store], extent: Extent) -> _Matrix | None:
    first = stores[0]
    if len(first.ranges) < 2 or len(extent.bounds) != 1 or extent.bounds[0].step != 1 or extent.least:
        return None
    (i, _), (j, _) = first.ranges[:2]
    form = first.target.offset.linear([index for index, _ in first.ranges])
    memories = {access.memory for store in stores for access in _accesses(store)}
    if form is None or len(memories) != 1 or first.target.dtype not in (F32, F64):
        return None
    row, column = form.coefficient(i), form.coefficient(j)
    return _Matrix(first.target, extent.bounds[0].span, row, column, form.rest) if row and column else None


def _accesses(store: Store) -> list[Access]:
    found = [store.target, *(elements_of(store.value) if store.value is not None else ())]
    return found + [element.access for term in store.form.terms for element in term.elements]


# The textbook


def _lu(a: _Matrix) -> CountedLoop:
    def rest(columns: Polynomial | Index, depths: Index) -> CountedLoop:
        return a.loop(DEPTH, depths, a.less(a.at(ROW, columns), a.at(ROW, DEPTH), a.at(DEPTH, columns)))

    right = Polynomial.of(COLUMN) + ROW
    return a.loop(
        ROW,
        a.count,
        a.loop(COLUMN, ROW, rest(COLUMN, COLUMN), a.over(a.at(ROW, COLUMN), a.at(COLUMN, COLUMN))),
        a.loop(COLUMN, a.count - ROW, rest(right, ROW)),
    )


def _cholesky(a: _Matrix) -> CountedLoop:
    root = a.at(ROW, ROW)
    return a.loop(
        ROW,
        a.count,
        a.loop(
            COLUMN,
            ROW,
            a.loop(DEPTH, COLUMN, a.less(a.at(ROW, COLUMN), a.at(ROW, DEPTH), a.at(COLUMN, DEPTH))),
            a.over(a.at(ROW, COLUMN), a.at(COLUMN, COLUMN)),
        ),
        a.loop(DEPTH, ROW, a.less(root, a.at(ROW, DEPTH), a.at(ROW, DEPTH))),
        Assign(root, SquareRoot(Load(root), root.where), root.where),
    )


def _canonical(stores: Sequence[Store]) -> list[tuple[str, ...]] | None:
    """Stores as text, with indices numbered, and the number of loops that each shares with the one before.

    None if sums may not be reordered.
    """
    found: list[tuple[str, ...]] = []
    before: tuple[Range, ...] = ()
    for store in stores:
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, store.ranges)))  # noqa: B905
        before = store.ranges
        (ranges, form) = _inner_sums(store)
        lines = []
        for term in form.terms:
            if not (term.reassociates and term.contracts):
                return None
            names = _names((*ranges, *term.sums))
            elements = sorted(str(element.access.offset.substitute(names)) for element in term.elements)
            lines.append(f"{term.factor} {elements} {_extents(term.sums, names)}")
        names = _names(ranges)
        target = str(store.target.offset.substitute(names))
        value = "" if store.value is None else _text(store.value, names)
        found.append((str(min(shared, len(ranges))), target, value, *_extents(ranges, names), *sorted(lines)))
    return found


def _inner_sums(store: Store) -> tuple[tuple[Range, ...], SumOfTerms]:
    """The loops around a store and its form, with sums that are kept in the target as sums of the term."""
    match store.form.terms:
        case [one, other]:
            own, term = (one, other) if len(one.elements) == 1 else (other, one)
        case _:
            return store.ranges, store.form
    kept = own.factor.is_one and not own.sums and [e.access for e in own.elements] == [store.target]
    ranges = list(store.ranges)
    sums: list[Range] = []
    while kept and ranges and ranges[-1][0] not in store.target.offset.symbols:
        sums.insert(0, ranges.pop())
    moved = replace(term, sums=(*sums, *term.sums))
    return tuple(ranges), replace(store.form, terms=(own, moved))


def _names(ranges: Sequence[Range]) -> dict[Symbol, Index]:
    return {index: Index(f"x{place}") for place, (index, _) in enumerate(ranges)}


def _extents(ranges: Sequence[Range], names: dict[Symbol, Index]) -> list[str]:
    return [
        f"{extent.least} {[(str(bound.span.substitute(names)), bound.step) for bound in extent.bounds]}"
        for _, extent in ranges
    ]


def _text(value: Value, names: dict[Symbol, Index]) -> str:
    own = str(value.access.offset.substitute(names)) if isinstance(value, Load) else type(value).__name__
    parts = [_text(part, names) for part in parts_of(value)]
    return f"{own}({', '.join(parts)})" if parts or isinstance(value, Load) else str(value)


# Blocks: a panel of columns, then the product of the panel and its rows from the rest of the matrix


def _lu_blocks(
    a: _Matrix, begin: Polynomial, end: Polynomial, arrays: Arrays
) -> tuple[LoopStep | ProductStep, ...]:
    wide, rest = end - begin, a.count - end
    i, k = begin + ROW, begin + DEPTH
    right, down = end + COLUMN, end + ROW

    def panel(row: Polynomial, rows: Polynomial, depths: Polynomial | Index) -> CountedLoop:
        column = k + 1 + COLUMN
        update = a.loop(COLUMN, wide - 1 - DEPTH, a.less(a.at(row, column), a.at(row, k), a.at(k, column)))
        return a.loop(ROW, rows, a.loop(DEPTH, depths, a.over(a.at(row, k), a.at(k, k)), update))

    upper = a.loop(
        ROW,
        wide,
        a.loop(DEPTH, ROW, a.loop(COLUMN, rest, a.less(a.at(i, right), a.at(i, k), a.at(k, right)))),
    )
    ranges = ((ROW, Extent.of(rest)), (DEPTH, Extent.of(wide)), (COLUMN, Extent.of(rest)))
    product = _difference(ranges, a.at(down, right), a.at(down, k), a.at(k, right))
    return (
        LoopStep((panel(i, wide, ROW), panel(down, rest, wide), upper)),
        *_product_step(product, arrays),
    )


def _cholesky_blocks(
    a: _Matrix, begin: Polynomial, end: Polynomial, arrays: Arrays
) -> tuple[LoopStep | ProductStep, ...]:
    wide, rest = end - begin, a.count - end
    i, j, k = begin + ROW, begin + COLUMN, begin + DEPTH
    right, down = end + COLUMN, end + ROW

    def row(at: Polynomial, columns: Polynomial | Index) -> CountedLoop:
        update = a.loop(DEPTH, COLUMN, a.less(a.at(at, j), a.at(at, k), a.at(j, k)))
        return a.loop(COLUMN, columns, update, a.over(a.at(at, j), a.at(j, j)))

    root = a.at(i, i)
    square = a.loop(
        ROW,
        wide,
        row(i, ROW),
        a.loop(DEPTH, ROW, a.less(root, a.at(i, k), a.at(i, k))),
        Assign(root, SquareRoot(Load(root), root.where), root.where),
    )
    ranges = ((ROW, Extent.of(rest)), (COLUMN, Extent.of(Polynomial.of(ROW) + 1)), (DEPTH, Extent.of(wide)))
    product = _difference(ranges, a.at(down, right), a.at(down, k), a.at(right, k))
    return (
        LoopStep((square, a.loop(ROW, rest, row(down, wide)))),
        *_product_step(product, arrays),
    )


def _difference(ranges: tuple[Range, ...], target: Access, left: Access, right: Access) -> Store:
    """target -= left * right."""
    own = Term(elements=(LoadedElement(target, target.dtype),))
    elements = LoadedElement(left, left.dtype), LoadedElement(right, right.dtype)
    form = SumOfTerms((own, Term(Factor(-1), elements)), target.dtype)
    return Store(ranges, target, form, 0, target.where)


def _product_step(store: Store, arrays: Arrays) -> tuple[ProductStep | LoopStep, ...]:
    loops = (loops_of(store, arrays),)
    try:
        return (ProductStep(product_of(store.where, [store]), loops),)
    except Refused:
        return (LoopStep(loops),)
