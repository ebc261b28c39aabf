"""Passes along rows whose elements are adjacent: elements as vectors, and the loops over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from tilewright.ir.primitives.rows import PAIR
from tilewright.llvm.build import Function
from tilewright.llvm.convert import Convert
from tilewright.llvm.floats import Floats
from tilewright.llvm.values import Value, element_type, int64, vector_type
from tilewright.machine.isa import Isa
from tilewright.micro.budget import Budget
from tilewright.micro.calls import Operands, Window, value, window
from tilewright.micro.rows.long_sums import long_sums, tree_sum
from tilewright.spec.dtype import DType

#: Vectors per iteration: as many sums hide the latency of each.
UNROLLED = 4


class Spot(NamedTuple):
    """The location of a vector of elements.

    Attributes
    ----------
    row, column : of its first element.
    mask : the lanes that are elements, if some are not.
    part : its row among those that are computed together.
    past : its place in the destination is a multiple of its size, and is written past the caches.
    """

    row: Value
    column: Value
    mask: Value | None = None
    part: int = 0
    past: bool = False


#: Vectors that are summed pairwise before they are added to others, so that errors do not accumulate.
TREE = 16

#: Vectors from which on a row is long: long sums then cost little more than chains.
LONG = 64

#: Turns of a chain of additions that take longer than loading what is added.
CHAIN = 16

#: Turns of a row from which on it spends from the budget in parts: some 10 us.
STRETCH = 1024

#: How a vector is added to sums, and how two lanes of them are combined.
Visit: TypeAlias = Callable[[Spot, list[Value]], list[Value]]
Join: TypeAlias = Callable[[Floats, Value, Value], Value]


class Lines:
    """Elements of rows as vectors, in the type of the arithmetic."""

    def __init__(self, f: Function, isa: Isa, acc: DType, given: Operands) -> None:
        self.f, self.acc, self.given = f, acc, given
        self.lanes = isa.lanes(acc)
        self.fused = isa.fused
        self.vector = vector_type(acc, self.lanes)
        self.v = Floats(f, acc, self.vector, fused=isa.fused)
        self.convert = Convert(f, half=isa.half)
        self.to, self.source = window(given, "to"), window(given, "source")
        self.columns = value(given, "columns")
        self.budget = Budget.of(f, given)

    def number(self, name: str) -> Value:
        """An integer operand; 0 if the primitive does not have it."""
        found = self.given.get(name)
        return found if isinstance(found, Value) else int64(0)

    def count(self) -> Value:
        """The number of columns, as a float."""
        kind = element_type(self.acc)
        return self.f.emit(kind, f"sitofp {self.columns.typed} to {kind.text}")

    def load(self, spot: Spot, others: Value | None = None) -> Value:
        """Elements of the source; `others`, or zeros, in unused lanes."""
        found = self.widened(self.source, self.source.at(self.f, spot.row, spot.column), spot.mask)
        if spot.mask is None or others is None:
            return found
        return self.f.select(spot.mask, found, others)

    def widened(self, place: Window, pointer: Value, mask: Value | None) -> Value:
        """A vector of elements of an operand."""
        kind, size = vector_type(place.dtype, self.lanes), place.dtype.size
        if mask is None:
            found = self.f.load(kind, pointer, size)
        else:
            found = self.f.masked_load(kind, pointer, mask, size)
        return self.same(found, place.dtype)

    def same(self, found: Value, dtype: DType) -> Value:
        """Elements of an operand in the type of the arithmetic."""
        if dtype.bits > self.acc.bits:
            kind = self.vector if found.type.lanes else element_type(self.acc)
            return self.f.emit(kind, f"fptrunc {found.typed} to {kind.text}")
        return self.convert(found, dtype, self.acc)

    def store(self, spot: Spot, values: Value) -> None:
        """Elements of the destination, rounded to its type."""
        f, size = self.f, self.to.dtype.size
        narrow = self.convert(values, self.acc, self.to.dtype)
        pointer = self.to.at(f, spot.row, spot.column)
        if spot.past and spot.mask is None:
            f.store_nontemporal(narrow, pointer, self.lanes * size)
        elif spot.mask is None:
            f.store(narrow, pointer, size)
        else:
            f.masked_store(narrow, pointer, spot.mask, size)

    def lead(self, row: Value) -> Value:
        """Elements from a row's first one up to the first whole vector of the destination, at most all.

        Those of the row, or of the column where rows are adjacent.
        """
        f, size = self.f, self.to.dtype.size
        length = self.columns if self.to.column.known == 1 else value(self.given, "rows")
        address = f.ptrtoint(self.to.at(f, row))
        lead_bytes = f.and_(f.sub(int64(0), address), int64(self.lanes * size - 1))
        return f.minimum(f.ashr(lead_bytes, int64(size.bit_length() - 1)), length)


class AlongRows(Lines):
    """Rows in pairs, each pass over one after the other; the last one alone.

    Vectors start at fixed columns, so that results do not depend on the address of a row. The reduction of
    one row's sums at the end of a pass, a long dependency chain, overlaps with the pass over the other row.

    Parameters
    ----------
    long : whether rows have `LONG` vectors at least; short ones are computed by code of their own.
    """

    rows: list[Value]

    def __init__(self, f: Function, isa: Isa, acc: DType, given: Operands, *, long: bool) -> None:
        super().__init__(f, isa, acc, given)
        self.long, self.long_sums = long, long_sums(self.v)
        #: Whether rows may be so long that they spend from the budget.
        self.stretched = True
        self.stream, self.ahead = self.number("stream"), self.number("ahead")
        #: Arithmetic on what there is one of in each row.
        self.one = Floats(f, acc, element_type(acc), fused=isa.fused)
        #: Rows that are computed together.
        self.parts = 1

    def every(self) -> Iterator[None]:
        """Pairs of rows, then the remaining row."""
        f, rows = self.f, value(self.given, "rows")
        start = int64(0)
        for parts in (PAIR, 1):
            self.parts = parts
            end = f.sub(rows, parts - 1)
            with f.carried_loop(start, end, int64(parts), [start], "row") as (first, _, advance):
                self.rows = [f.add(first, part) for part in range(parts)]
                self._fetch_borders()
                yield
                advance([f.add(first, parts)])
            (start,) = advance.results

    def _fetch_borders(self) -> None:
        """The ends of the next rows of the destination: lines that go past the caches in part only.

        Those are ordinary stores, and behind one that waits for its line all others wait.
        """
        f = self.f
        if self.stream.known != 0:
            for row in self.rows:
                following = self.to.at(f, f.add(row, self.parts))
                for column in (int64(0), self.columns):
                    place = f.at(following, f.mul(column, self.to.dtype.size))
                    f.prefetch(place, write=True, locality=3)

    def _walk(
        self, spot: Spot, state: list[Value], visit: Visit, *, past: bool = False, end: Value | None = None
    ) -> list[Value]:
        """Every vector of a row from a spot on, `UNROLLED` in a turn, which share the state between them."""
        f, lanes = self.f, self.lanes
        each = len(state) // UNROLLED
        begin = spot.column
        behind = self.columns if end is None else end
        whole = f.add(begin, f.and_(f.sub(behind, begin), int64(-lanes)))
        start = begin

        def turns(first: Value, last: Value, step: int, state: list[Value]) -> list[Value]:
            """`count` vectors per iteration; returns the next column and the state."""
            with f.carried_loop(first, last, int64(step * lanes), [first, *state], "vector") as (
                at,
                values,
                advance,
            ):
                now = list(values)[1:]
                for number in range(step):
                    place = spot._replace(column=f.add(at, number * lanes), past=past)
                    now = [*now[each:], *visit(place, now[:each])]
                advance([f.add(at, step * lanes), *now])
            return list(advance.results)

        last, length = f.sub(whole, (UNROLLED - 1) * lanes), STRETCH * UNROLLED * lanes
        if not self.stretched:
            start, *state = turns(start, last, UNROLLED, state)
        else:
            with f.carried_loop(start, last, int64(length), [start, *state], "stretch") as (
                first,
                values,
                onward,
            ):
                onward(turns(first, f.minimum(f.add(first, length), last), UNROLLED, list(values)[1:]))
                with f.when(f.icmp("<=", f.add(first, length), last)):
                    self.budget.spend(int64(length))
            start, *state = onward.results
        start, *state = turns(start, whole, 1, state)
        with f.once_if(f.icmp("<", whole, behind), state) as (values, advance):
            mask = f.lane_mask(f.sub(behind, whole), 0, lanes)
            changed = visit(spot._replace(column=whole, mask=mask), list(values)[:each])
            advance([*changed, *values[each:]])
        return list(advance.results)

    def _starts(self) -> list[Spot]:
        """The first elements of the rows."""
        return [Spot(row, int64(0), part=part) for part, row in enumerate(self.rows)]

    def fetch(self, spot: Spot) -> None:
        """Prefetches later elements to L1; once per vector, in one pass."""
        f = self.f
        if self.ahead.known != 0:
            place = self.source.at(f, spot.row, f.add(spot.column, self.ahead))
            f.prefetch(place, write=False, locality=3)

    def keep(self, spot: Spot, values: Value) -> None:
        """Keeps values in the buffer of rows, or in the destination, where they will be overwritten."""
        place = self.given["kept"]
        if isinstance(place, Window):
            self.f.store(values, place.at(self.f, int64(spot.part), spot.column), self.acc.size)
        else:
            self.store(spot, values)

    def kept(self, spot: Spot) -> Value:
        """The values that `keep` stored."""
        place = self.given["kept"]
        if isinstance(place, Window):
            return self.widened(place, place.at(self.f, int64(spot.part), spot.column), spot.mask)
        return self.widened(self.to, self.to.at(self.f, spot.row, spot.column), spot.mask)

    def reduce(self, starts: Sequence[float], visit: Visit, join: Join) -> list[list[Value]]:
        """Sums, or what else two of become one, over the columns: for each row, one for each start.

        Several side by side, then their lanes by halves.
        """
        state = [self.v.constant(start) for start in starts] * UNROLLED
        return [self._joined(self._walk(spot, state, visit), len(starts), join) for spot in self._starts()]

    def totals(self, addend: Callable[[Spot], Value]) -> list[Value]:
        """The sums of vectors over the columns, one number for each row.

        Rows of several trees of `TREE` vectors are cut into these, whose sums are long sums. What remains,
        and shorter rows, is added up in `UNROLLED` chains.
        """
        f, v, sums, span = self.f, self.v, self.long_sums, TREE * self.lanes
        found = []
        for spot in self._starts():
            total, begin = sums.nothing(), spot.column
            if self.long:

                def at_column(first: Value, number: int, spot: Spot = spot) -> Value:
                    return addend(spot._replace(column=f.add(first, number * self.lanes)))

                begin = f.and_(self.columns, int64(-span))
                stretch = STRETCH * span
                with f.carried_loop(int64(0), begin, int64(stretch), total, "stretch") as (
                    start,
                    state,
                    onward,
                ):
                    self.budget.spend(int64(stretch))
                    behind = f.minimum(f.add(start, stretch), begin)
                    with f.carried_loop(start, behind, int64(span), state, "tree") as (first, now, advance):
                        advance(sums.plus(now, tree_sum(f, TREE, partial(at_column, first))))
                    onward(advance.results)
                total = onward.results
            chains = [v.constant(-0.0)] * UNROLLED
            rest = spot._replace(column=begin)
            chains = self._walk(rest, chains, lambda at, state: [v.add(state[0], addend(at))])
            last = tree_sum(f, UNROLLED, chains.__getitem__)
            found.append(sums.lanes(sums.plus(total, last)) if self.long else sums.few(last))
        return found

    def sums(self, count: int, visit: Visit) -> list[list[Value]]:
        """So many sums over the columns, for each row: in long rows of chains of `CHAIN` turns each.

        Parameters
        ----------
        visit : adds what a vector contributes to the chains of a turn.
        """
        f, v, sums = self.f, self.v, self.long_sums
        state = [v.constant(-0.0)] * (count * UNROLLED)
        if not self.long:
            return self.reduce([-0.0] * count, visit, lambda v, left, right: v.add(left, right))
        span, found = int64(CHAIN * UNROLLED * self.lanes), []
        for spot in self._starts():
            nothing = [*sums.nothing()] * count
            with f.carried_loop(int64(0), self.columns, span, nothing, "chain") as (begin, now, advance):
                self.budget.spend(span)
                end = f.minimum(f.add(begin, span), self.columns)
                chains = self._walk(spot._replace(column=begin), state, visit, end=end)
                totals: list[Value] = []
                for number in range(count):
                    total = now[sums.parts * number : sums.parts * (number + 1)]
                    chain = tree_sum(f, UNROLLED, chains[number::count].__getitem__)
                    totals += sums.plus(total, chain)
                advance(totals)
            parts = range(0, len(advance.results), sums.parts)
            found.append([sums.lanes(advance.results[first : first + sums.parts]) for first in parts])
        return found

    def write(self, row: Value, number: Value) -> None:
        """The result of a row."""
        narrow = self.convert(number, self.acc, self.to.dtype)
        self.f.store(narrow, self.to.at(self.f, row), self.to.dtype.size)

    def _joined(self, state: list[Value], each: int, join: Join) -> list[Value]:
        """One number of all lanes of each sum."""
        f, v = self.f, self.v
        found = []
        for number in range(each):
            first, *others = state[number::each]
            for other in others:
                first = join(v, first, other)
            lanes = self.lanes
            while lanes > 1:
                lanes //= 2
                rotated = [(lane + lanes) % self.lanes for lane in range(self.lanes)]
                first = join(v, first, f.shuffle(first, first, rotated))
            found.append(f.extract(first, 0))
        return found

    def each(self, visit: Callable[[Spot], None]) -> None:
        """In order; past the caches whole vectors, which begin where the destination's do."""
        f = self.f

        def without_state(spot: Spot, state: list[Value]) -> list[Value]:
            visit(spot)
            return state

        stream = self.stream
        if stream.known == 0:
            for spot in self._starts():
                self._walk(spot, [], without_state)
            return
        with f.branch(f.icmp("==", stream, 0)) as (near, past):
            with near:
                for spot in self._starts():
                    self._walk(spot, [], without_state)
            with past:
                for spot in self._starts():
                    lead = self.lead(spot.row)
                    with f.when(f.icmp(">", lead, 0)):
                        visit(spot._replace(mask=f.lane_mask(lead, 0, self.lanes)))
                    self._walk(spot._replace(column=lead), [], without_state, past=True)

    def spread(self, one: Value) -> Value:
        """The same in every lane."""
        return self.f.splat(one, self.lanes)

    def along(self, name: str, spot: Spot) -> Value:
        """Elements beside those of the vector."""
        place = window(self.given, name)
        return self.widened(place, place.at(self.f, int64(0), spot.column), spot.mask)
