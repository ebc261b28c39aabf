"""Passes over adjacent rows: every lane is a row, and columns are read in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from tilewright.llvm.build import Function
from tilewright.llvm.values import Value, int64, memory_type, vector_type
from tilewright.machine.isa import Isa
from tilewright.micro.calls import Operands, value, window
from tilewright.micro.rows.lines import Lines, Spot
from tilewright.micro.rows.long_sums import ShortSums, long_sums, tree_sum
from tilewright.spec.dtype import DType

#: Registers loaded from one column at once: as many again hold constants of an exponential.
REGISTERS_PER_COLUMN = 4

#: Blocks of columns that are added up before they are added to a long sum.
LONG_TURN = 4

#: The work on the vectors of some columns at the same rows.
Together: TypeAlias = Callable[[Sequence[Spot]], None]


class AcrossRows(Lines):
    """All columns, several at a time, and all rows of each: memory is read in address order.

    Partial results of every row are kept in a buffer that stays in L1. Lanes are independent, so that vectors
    may start at any row.

    Parameters
    ----------
    long : whether there are more columns than meet before they are added to a long sum; fewer are computed by
        code of their own, without such sums.
    """

    def __init__(self, f: Function, isa: Isa, acc: DType, given: Operands, *, long: bool) -> None:
        super().__init__(f, isa, acc, given)
        self.sums = long_sums(self.v) if long else ShortSums(self.v)
        self.rows, self.state = value(given, "rows"), window(given, "state")
        self.stream = self.number("stream")
        self.block = self.block_of(isa)

    @staticmethod
    def block_of(isa: Isa) -> int:
        """Columns that are loaded at once."""
        return isa.vector_registers // REGISTERS_PER_COLUMN

    def get(self, number: int, spot: Spot) -> Value:
        """Loads partial results of the rows of a spot."""
        kind = vector_type(self.acc, self.lanes)
        return self.f.load(kind, self.state.at(self.f, int64(number), spot.row), self.acc.size)

    def put(self, number: int, spot: Spot, known: Value) -> None:
        """Stores partial results of the rows of a spot."""
        self.f.store(known, self.state.at(self.f, int64(number), spot.row), self.acc.size)

    def sum_at(self, number: int, spot: Spot) -> list[Value]:
        """A long sum of the rows of a spot; it takes two numbers of every row."""
        kind, size = self.sums.kind(), self.sums.dtype.size
        return [self.f.load(kind, place, size) for place in self._sum_places(number, spot)]

    def put_sum(self, number: int, spot: Spot, total: Sequence[Value]) -> None:
        """Stores a long sum."""
        for part, place in zip(total, self._sum_places(number, spot), strict=True):
            self.f.store(part, place, self.sums.dtype.size)

    def _sum_places(self, number: int, spot: Spot) -> list[Value]:
        """The addresses of the parts of a long sum, in the memory of two numbers of the state."""
        f, first = self.f, self.state.at(self.f, int64(number))
        places = [f.add(f.mul(self.state.row, part), spot.row) for part in range(self.sums.parts)]
        return [f.at(first, f.mul(place, self.sums.dtype.size)) for place in places]

    def quiet(self, spot: Spot, known: Value) -> Value:
        """1 in lanes beyond the rows, where other values would raise floating-point flags."""
        return known if spot.mask is None else self.f.select(spot.mask, known, self.v.constant(1.0))

    def settle(self, visit: Callable[[Spot], None]) -> None:
        """Visits all rows once, without a column."""
        for spot in self._pieces():
            visit(spot)

    def begin(self, *starts: float) -> None:
        """The initial partial result of every row."""

        def write(spot: Spot) -> None:
            for number, start in enumerate(starts):
                self.put(number, spot, self.v.constant(start))

        self.settle(write)

    def begin_sum(self, number: int) -> None:
        """The initial long sum of every row."""
        self.settle(lambda spot: self.put_sum(number, spot, self.sums.nothing()))

    def over(self, visit: Together) -> None:
        """Visits all columns, several at the same rows."""
        self._over(visit, past=False)

    def add_columns(self, number: int, part: int) -> None:
        """Adds all columns to the long sum of every row at a number of the state.

        `LONG_TURN` blocks of columns meet first, in another number: a long sum is read and written once for
        all of them. More columns in one block would be in more places at once than a set of the first
        cache holds.
        """

        def tree(spots: Sequence[Spot]) -> Value:
            found = [self.load(spot) for spot in spots]
            return tree_sum(self.f, len(spots), found.__getitem__)

        def begin(spots: Sequence[Spot]) -> None:
            self.put(part, spots[0], tree(spots))

        def go_on(spots: Sequence[Spot]) -> None:
            self.put(part, spots[0], self.v.add(self.get(part, spots[0]), tree(spots)))

        def end(spots: Sequence[Spot]) -> None:
            self._add(number, spots[0], self.v.add(self.get(part, spots[0]), tree(spots)))

        def single(spots: Sequence[Spot]) -> None:
            self._add(number, spots[0], tree(spots))

        turn = (begin, *[go_on] * (LONG_TURN - 2), end)
        start = self._blocks(int64(0), self.block, turn)
        start = self._blocks(start, self.block, (single,))
        self._blocks(start, 1, (single,))

    def add_up(self, number: int, spot: Spot, addends: Sequence[Value]) -> None:
        """Adds what some columns contribute to a long sum of the rows of a spot."""
        self._add(number, spot, tree_sum(self.f, len(addends), addends.__getitem__))

    def _add(self, number: int, spot: Spot, addend: Value) -> None:
        self.put_sum(number, spot, self.sums.plus(self.sum_at(number, spot), addend))

    def each(self, visit: Callable[[Spot], None]) -> None:
        """Visits every vector, the last time; past the caches where columns begin alike in their lines."""

        def apart(spots: Sequence[Spot]) -> None:
            for spot in spots:
                visit(spot)

        f = self.f
        if self.stream.known == 0:
            self._over(apart, past=False)
            return
        span = f.mul(self.to.column, self.to.dtype.size)
        uneven = f.and_(span, int64(self.lanes * self.to.dtype.size - 1))
        alike = f.select(f.icmp("==", uneven, 0), self.stream, int64(0))
        with f.branch(f.icmp("==", alike, 0)) as (near, past):
            with near:
                self._over(apart, past=False)
            with past:
                self._over(apart, past=True)

    def _over(self, visit: Together, *, past: bool) -> None:
        start = int64(0)
        for count in (self.block, 1):
            start = self._blocks(start, count, (visit,), past=past)

    def _blocks(self, start: Value, count: int, visits: Sequence[Together], *, past: bool = False) -> Value:
        """Visits blocks of columns, as many as there are whole ones; returns the next column."""
        f, turn = self.f, count * len(visits)
        with f.carried_loop(start, f.sub(self.columns, turn - 1), int64(turn), [start], "column") as (
            first,
            _,
            advance,
        ):
            self.budget.spend(f.mul(self.rows, turn))
            for block, visit in enumerate(visits):
                for spot in self._pieces(past=past):
                    places = range(block * count, (block + 1) * count)
                    visit([spot._replace(column=f.add(first, place)) for place in places])
            advance([f.add(first, turn)])
        return advance.results[0]

    def _pieces(self, *, past: bool = False) -> Iterator[Spot]:
        """Writes what visits all rows; what is written meanwhile is its body, for each kind of vector."""
        f, lanes = self.f, self.lanes
        first = int64(0)
        if past:
            first = self.lead(first)
            with f.when(f.icmp(">", first, 0)):
                yield Spot(int64(0), int64(0), f.lane_mask(first, 0, lanes))
        whole = f.add(first, f.and_(f.sub(self.rows, first), int64(-lanes)))
        with f.loop(first, whole, int64(lanes), "rows") as row:
            yield Spot(row, int64(0), past=past)
        with f.when(f.icmp("<", whole, self.rows)):
            yield Spot(whole, int64(0), f.lane_mask(f.sub(self.rows, whole), 0, lanes))

    def along(self, name: str, spot: Spot) -> Value:
        """The element of the column, for every row."""
        place = window(self.given, name)
        pointer = place.at(self.f, int64(0), spot.column)
        element = self.f.load(memory_type(place.dtype), pointer, place.dtype.size)
        return self.f.splat(self.same(element, place.dtype), self.lanes)
