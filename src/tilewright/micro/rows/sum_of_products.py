"""Products of elements and their sums, as vectors: along rows, across rows, or one element after the other.

Sums have several accumulators. For floats, these are added to a sum of more precision (`long_sums.py`) after
a number of iterations, so that errors do not grow with the length, at no cost in speed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tilewright.ir.primitives.products import SIDE_BYTES
from tilewright.llvm.build import Function
from tilewright.llvm.floats import Floats
from tilewright.llvm.values import Value, element_type, int64
from tilewright.machine.isa import Isa
from tilewright.micro.budget import Budget
from tilewright.micro.calls import Operands, PrimitiveFunction, Window, value, window
from tilewright.micro.rows.long_sums import long_sums, tree_sum
from tilewright.micro.rows.numbers import Number, Numbers

#: Vectors of a turn along a row: as many accumulators keep two loads a cycle busy while additions take three.
UNROLLED = 4

#: Turns until accumulators of integers, and of rows that are short anyway, are added to others.
BLOCK_TURNS = 256

#: Turns until the accumulators of a long sum are added to it.
CHAIN_TURNS = 16

#: Share of the registers that hold sums of adjacent rows, and vectors of rows where fewer are left.
ACCUMULATOR_SHARE = 2
FEW_PARTS = (4, 1)

#: Columns of floats whose sums are made of all rows, before those of others are added: as many places in as
#: many pages as the table of pages holds at once.
BLOCK_COLUMNS = 64

#: Columns that are added to one another before they meet an accumulator.
TOGETHER = 4

#: Bytes of a line of the caches.
_LINE = 64

#: Adds the products at a column of one turn to accumulators.
Visit: TypeAlias = Callable[[Value, Value, Number], Number]


class _Sums:
    """The parts common to the three ways of summing: factors, turns, blocks of columns."""

    def __init__(
        self, f: Function, isa: Isa, given: Operands, *, single: bool = False, long: bool = False
    ) -> None:
        self.f, self.isa, self.given, self.long = f, isa, given, long
        self.to, self.left = window(given, "to"), window(given, "left")
        self.right = window(given, "right") if given["right"] is not None else None
        self.numbers = Numbers(f, isa, self.to.dtype, single=single)
        self.rows, self.columns, self.turns = (value(given, name) for name in ("rows", "columns", "turns"))
        self.registers = isa.vector_registers
        self.budget = Budget.of(f, given)

    def added(self, turn: Value, row: Value, column: Value, acc: Number, mask: Value | None = None) -> Number:
        """acc + products at a place."""
        factors = []
        for name, place in (("left", self.left), ("right", self.right)):
            if place is None:
                continue
            pointer = self._place(place, f"{name}_turn", turn, row, column)
            one_for_all = place.row.known == 0 and bool(self.numbers.lanes)
            factors.append(self.numbers.spread(pointer) if one_for_all else self.numbers.load(pointer, mask))
        if len(factors) == 1:
            return self.numbers.add(acc, factors[0])
        return self.numbers.multiply_add(factors[0], factors[1], acc)

    def element(self, turn: Value, row: Value, column: Value, mask: Value | None = None) -> Number:
        """The first factor at a place."""
        return self.numbers.load(self._place(self.left, "left_turn", turn, row, column), mask)

    def _place(self, place: Window, step: str, turn: Value, row: Value, column: Value) -> Value:
        base = self.f.at(
            place.pointer, self.f.mul(self.f.mul(turn, value(self.given, step)), place.dtype.size)
        )
        return place._replace(pointer=base).at(self.f, row, column)

    def single(self) -> _Sums:
        """The same of single elements."""
        return _Sums(self.f, self.isa, self.given, single=True)

    def finish(self, total: Number, pointer: Value, mask: Value | None = None) -> None:
        """Stores sums, or adds them to the previous values."""
        f, added = self.f, value(self.given, "added")
        if added.known != 0:
            with f.once_if(f.icmp("!=", added, 0), total) as (sums, changed):
                changed(self.numbers.add(list(sums), self.numbers.load(pointer, mask)))
            total = changed.results
        self.numbers.store(total, pointer, mask)

    def total(self, unit: int, block: Callable[[Value, Value, Value, Number], Number]) -> Number:
        """The sum of `UNROLLED` accumulators over all turns and columns, one number of all lanes.

        Parameters
        ----------
        unit, block : as of `over_turns`.
        """
        f, numbers = self.f, self.numbers
        parts = numbers.parts
        if not self.long:
            found = self.over_turns(UNROLLED, unit, block)
            while len(found) > parts:
                half = len(found) // 2
                found = [f.plus(*pair) for pair in zip(found[:half], found[half:], strict=True)]
            return numbers.joined(found) if numbers.lanes else found
        kind = numbers.zeros()[0].type
        sums = long_sums(Floats(f, numbers.acc, kind, fused=numbers.fused))
        start, length = [*sums.nothing()] * parts, int64(CHAIN_TURNS * unit)
        with f.carried_loop(int64(0), self.turns, int64(1), start, "turn") as (turn, state, advance):
            with f.carried_loop(int64(0), self.columns, length, state, "block") as (first, now, following):
                behind = f.minimum(f.add(first, length), self.columns)
                self.budget.spend(f.sub(behind, first))
                found = block(turn, first, behind, numbers.zeros(UNROLLED))
                totals: list[Value] = []
                for part in range(parts):
                    chain = tree_sum(f, UNROLLED, found[part::parts].__getitem__)
                    totals += sums.plus(now[sums.parts * part : sums.parts * (part + 1)], chain)
                following(totals)
            advance(following.results)
        each = range(0, len(advance.results), sums.parts)
        whole = [advance.results[first : first + sums.parts] for first in each]
        return [sums.lanes(one) if numbers.lanes else sums.rounded(one) for one in whole]

    def over_turns(
        self, accumulators: int, unit: int, block: Callable[[Value, Value, Value, Number], Number]
    ) -> Number:
        """The sums over all turns and columns, each block of columns by itself first.

        Parameters
        ----------
        accumulators : how many there are.
        unit : columns of one turn of the inner loop.
        block : (turn, first column, the column behind the last, zeros) to the sums of that block.
        """
        f, numbers = self.f, self.numbers
        totals = numbers.zeros(accumulators)
        length = int64(BLOCK_TURNS * unit)
        with f.carried_loop(int64(0), self.turns, int64(1), totals, "turn") as (turn, state, advance):
            with f.carried_loop(int64(0), self.columns, length, state, "block") as (first, now, following):
                behind = f.minimum(f.add(first, length), self.columns)
                self.budget.spend(f.mul(f.sub(behind, first), accumulators))
                part = block(turn, first, behind, numbers.zeros(accumulators))
                following([f.plus(*pair) for pair in zip(now, part, strict=True)])
            advance(following.results)
        return advance.results


def _by_length(
    f: Function, isa: Isa, given: Operands, write: Callable[[_Sums], None], *, single: bool
) -> None:
    """Writes sums of few addends, and of many, which are long sums; of integers one code for both."""
    short = _Sums(f, isa, given, single=single)
    if short.numbers.acc.is_integer:
        write(short)
        return
    span = CHAIN_TURNS * UNROLLED * (short.numbers.lanes or 1)
    few = f.and_(f.icmp("==", short.turns, 1), f.icmp("<=", short.columns, span))
    with f.branch(few) as (inside, otherwise):
        with inside:
            write(short)
        with otherwise:
            write(_Sums(f, isa, given, single=single, long=True))


def _along(f: Function, isa: Isa, given: Operands) -> None:
    """Row by row; vectors begin at fixed columns, so that no bit depends on where a row is."""
    _by_length(f, isa, given, _write_along, single=False)


def _write_along(sums: _Sums) -> None:
    f = sums.f
    numbers, lanes, parts = sums.numbers, sums.numbers.lanes, sums.numbers.parts

    with f.loop(int64(0), sums.rows, int64(1), "row") as row:

        def block(turn: Value, first: Value, behind: Value, state: Number) -> Number:
            whole = f.add(first, f.and_(f.sub(behind, first), int64(-lanes)))
            at: Sequence[Value] = [first]
            for step in (UNROLLED, 1):
                end = whole if step == 1 else f.sub(whole, (step - 1) * lanes)
                with f.carried_loop(at[0], end, int64(step * lanes), [*at, *state], "vector") as (
                    column,
                    now,
                    advance,
                ):
                    acc = list(now)[1:]
                    for number in range(step):
                        place = f.add(column, number * lanes)
                        acc = [*acc[parts:], *sums.added(turn, row, place, acc[:parts])]
                    advance([f.add(column, step * lanes), *acc])
                at, state = advance.results[:1], advance.results[1:]
            with f.once_if(f.icmp("<", whole, behind), state) as (before, changed):
                mask = numbers.mask(f.sub(behind, whole))
                last = sums.added(turn, row, whole, list(before)[:parts], mask)
                changed([*last, *before[parts:]])
            return changed.results

        sums.single().finish(sums.total(UNROLLED * lanes, block), sums.to.at(f, row))


def _across(f: Function, isa: Isa, given: Operands) -> None:
    """Several vectors of rows at once, then fewer, the last one under a mask; column by column."""
    sums = _Sums(f, isa, given)
    if sums.numbers.acc.is_integer:
        _across_few(sums)
        return
    few = f.and_(f.icmp("==", sums.turns, 1), f.icmp("<=", sums.columns, BLOCK_COLUMNS))
    with f.branch(few) as (inside, otherwise):
        with inside:
            _across_few(sums)
        with otherwise:
            _across_many(sums)


def _groups(sums: _Sums, visit: Callable[[Value, int, Value | None], None]) -> None:
    """Visits all rows: as many vectors as there are accumulators, then fewer, the last one under a mask."""
    f, numbers = sums.f, sums.numbers
    most = sums.registers // (ACCUMULATOR_SHARE * numbers.parts)
    start = int64(0)
    for vectors in (most, *(few for few in FEW_PARTS if few < most)):
        end = sums.rows if vectors == 1 else f.sub(sums.rows, vectors * numbers.lanes - 1)
        step = int64(vectors * numbers.lanes)
        with f.carried_loop(start, end, step, [start], "rows") as (row, _, onward):
            visit(row, vectors, numbers.mask(f.sub(sums.rows, row)) if vectors == 1 else None)
            onward([f.add(row, step)])
        (start,) = onward.results


def _columns(
    sums: _Sums, rows: tuple[Value, int, Value | None], turn: Value, span: tuple[Value, Value], state: Number
) -> Number:
    """Adds the columns of one turn to accumulators of some vectors of rows.

    Floats that are not multiplied meet in fours first: as many additions, in shorter chains.
    """
    f, numbers, (row, vectors, mask) = sums.f, sums.numbers, rows
    parts, (start, end) = numbers.parts, span
    fours = sums.right is None and not numbers.acc.is_integer
    for step in (TOGETHER, 1) if fours else (1,):
        last = f.sub(end, step - 1)
        with f.carried_loop(start, last, int64(step), [start, *state], "column") as (column, now, advance):
            changed: Number = []
            for vector in range(vectors):
                acc = list(now[1 + vector * parts : 1 + (vector + 1) * parts])
                place = f.add(row, vector * numbers.lanes)
                if step == 1:
                    changed += sums.added(turn, place, column, acc, mask)
                    continue
                found = [sums.element(turn, place, f.add(column, number), mask) for number in range(step)]
                tree = [tree_sum(f, step, [one[part] for one in found].__getitem__) for part in range(parts)]
                changed += numbers.add(acc, tree)
            advance([f.add(column, step), *changed])
        start, state = advance.results[0], advance.results[1:]
    return list(state)


def _across_few(sums: _Sums) -> None:
    """Sums in registers, of all columns of some rows; integers are exact in any order."""
    f, parts, lanes = sums.f, sums.numbers.parts, sums.numbers.lanes

    def visit(row: Value, vectors: int, mask: Value | None) -> None:
        def block(turn: Value, first: Value, behind: Value, state: Number) -> Number:
            return _columns(sums, (row, vectors, mask), turn, (first, behind), state)

        total = sums.over_turns(vectors, 1, block)
        for vector in range(vectors):
            at = sums.to.at(f, f.add(row, vector * lanes))
            sums.finish(total[vector * parts : (vector + 1) * parts], at, mask)

    _groups(sums, visit)


def _across_many(sums: _Sums) -> None:
    """Long sums of all rows, in memory of the function: some columns of all rows are added after others."""
    f, numbers = sums.f, sums.numbers
    lanes, parts = numbers.lanes, numbers.parts
    long = long_sums(Floats(f, numbers.acc, numbers.zeros()[0].type, fused=numbers.fused))
    size = long.dtype.size
    memory = f.alloca(element_type(long.dtype), 2 * SIDE_BYTES // size, _LINE)

    def places(row: Value, part: int) -> list[Value]:
        first = f.at(memory, f.mul(row, parts * long.parts * size))
        return [f.at(first, (part * long.parts + number) * lanes * size) for number in range(long.parts)]

    def put(row: Value, part: int, total: Sequence[Value]) -> None:
        for value_, place in zip(total, places(row, part), strict=True):
            f.store(value_, place, size)

    def get(row: Value, part: int) -> list[Value]:
        return [f.load(long.kind(), place, size) for place in places(row, part)]

    with f.loop(int64(0), sums.rows, int64(lanes), "row") as row:
        for part in range(parts):
            put(row, part, long.nothing())
    length = int64(BLOCK_COLUMNS)
    with (
        f.loop(int64(0), sums.turns, int64(1), "turn") as turn,
        f.loop(int64(0), sums.columns, length, "block") as first,
    ):
        span = (first, f.minimum(f.add(first, length), sums.columns))
        sums.budget.spend(f.mul(sums.rows, f.sub(span[1], first)))

        def visit(row: Value, vectors: int, mask: Value | None) -> None:
            found = _columns(sums, (row, vectors, mask), turn, span, numbers.zeros(vectors))
            for vector in range(vectors):
                at = f.add(row, vector * lanes)
                for part in range(parts):
                    put(at, part, long.plus(get(at, part), found[vector * parts + part]))

        _groups(sums, visit)

    def finish(row: Value, vectors: int, mask: Value | None) -> None:
        for vector in range(vectors):
            at = f.add(row, vector * lanes)
            total = [long.rounded(get(at, part)) for part in range(parts)]
            sums.finish(total, sums.to.at(f, at), mask)

    _groups(sums, finish)


def _apart(f: Function, isa: Isa, given: Operands) -> None:
    """Element by element, into accumulators that take turns."""
    _by_length(f, isa, given, _write_apart, single=True)


def _write_apart(sums: _Sums) -> None:
    f, parts = sums.f, sums.numbers.parts

    with f.loop(int64(0), sums.rows, int64(1), "row") as row:

        def block(turn: Value, first: Value, behind: Value, state: Number) -> Number:
            at: Sequence[Value] = [first]
            for step in (UNROLLED, 1):
                end = f.sub(behind, step - 1)
                with f.carried_loop(at[0], end, int64(step), [*at, *state], "element") as (
                    column,
                    now,
                    advance,
                ):
                    acc = list(now)[1:]
                    for number in range(step):
                        acc = [*acc[parts:], *sums.added(turn, row, f.add(column, number), acc[:parts])]
                    advance([f.add(column, step), *acc])
                at, state = advance.results[:1], advance.results[1:]
            return state

        sums.finish(sums.total(UNROLLED, block), sums.to.at(f, row))


def emit_sum_products(f: Function, isa: Isa, given: Operands) -> None:
    """Calls the function of a `SumProducts`."""
    to, left = window(given, "to"), window(given, "left")
    across = to.row.known == 1 and left.row.known == 1
    write = _along if left.column.known == 1 else _across if across else _apart
    numbers = Numbers(f, isa, to.dtype)
    PrimitiveFunction(f, isa, "sum_products", numbers.acc, given).call(
        lambda inner, given: write(inner, isa, given)
    )


def _products(f: Function, isa: Isa, given: Operands) -> None:
    """Row by row, several vectors in a turn."""
    to, left, right = (window(given, name) for name in ("to", "left", "right"))
    if to.column.known != 1:
        _single_products(f, isa, given)
        return
    numbers = Numbers(f, isa, to.dtype)
    lanes, columns = numbers.lanes, value(given, "columns")
    whole = f.and_(columns, int64(-lanes))
    with f.loop(int64(0), value(given, "rows"), int64(1), "row") as row:
        spread = numbers.spread(left.at(f, row)) if left.column.known == 0 else None

        def visit(column: Value, mask: Value | None = None) -> None:
            first = spread or numbers.load(left.at(f, row, column), mask)
            found = numbers.multiply(first, numbers.load(right.at(f, row, column), mask))
            numbers.store(found, to.at(f, row, column), mask)

        start = int64(0)
        for step in (UNROLLED, 1):
            end = whole if step == 1 else f.sub(whole, (step - 1) * lanes)
            with f.carried_loop(start, end, int64(step * lanes), [start], "vector") as (column, _, advance):
                for number in range(step):
                    visit(f.add(column, number * lanes))
                advance([f.add(column, step * lanes)])
            (start,) = advance.results
        with f.when(f.icmp("<", whole, columns)):
            visit(whole, numbers.mask(f.sub(columns, whole)))


def _single_products(f: Function, isa: Isa, given: Operands) -> None:
    """Element by element."""
    to, left, right = (window(given, name) for name in ("to", "left", "right"))
    numbers = Numbers(f, isa, to.dtype, single=True)
    rows, columns = (value(given, name) for name in ("rows", "columns"))
    with f.loop(int64(0), rows, int64(1), "row") as row, f.loop(int64(0), columns, int64(1)) as column:
        factors = [numbers.load(place.at(f, row, column)) for place in (left, right)]
        numbers.store(numbers.multiply(*factors), to.at(f, row, column))


def emit_multiply_rows(f: Function, isa: Isa, given: Operands) -> None:
    """Calls the function of a `MultiplyRows`."""
    numbers = Numbers(f, isa, window(given, "to").dtype)
    PrimitiveFunction(f, isa, "multiply_rows", numbers.acc, given).call(
        lambda inner, given: _products(inner, isa, given)
    )
