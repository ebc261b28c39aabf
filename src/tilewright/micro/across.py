"""The vectors of rows that stand side by side: every lane is a row; columns are read in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from tilewright.llvm.build import Function
from tilewright.llvm.values import Value, int64, memory_type, vector_type
from tilewright.machine.isa import Isa
from tilewright.micro.calls import Operands, value, window
from tilewright.micro.lines import Lines, Spot
from tilewright.spec.dtype import DType

#: One column in so many registers is loaded at once: as many again hold constants of an exponential.
REGISTERS_PER_COLUMN = 4

#: What is done with the vectors of some columns at the same rows.
Together: TypeAlias = Callable[[Sequence[Spot]], None]


class AcrossRows(Lines):
    """All columns, some at a time, and of each all rows: memory is read in the order in which it stands.

    What is known of every row waits in a buffer that stays in the first cache. No lane meets another, so that
    vectors may begin anywhere.
    """

    def __init__(self, f: Function, isa: Isa, acc: DType, given: Operands) -> None:
        super().__init__(f, isa, acc, given)
        self.rows, self.state = value(given, "rows"), window(given, "state")
        self.stream = self.number("stream")
        self.block = isa.vector_registers // REGISTERS_PER_COLUMN

    def get(self, number: int, spot: Spot) -> Value:
        """What is known of the rows of a spot."""
        kind = vector_type(self.acc, self.lanes)
        return self.f.load(kind, self.state.at(self.f, int64(number), spot.row), self.acc.size)

    def put(self, number: int, spot: Spot, known: Value) -> None:
        """Remembers something of the rows of a spot."""
        self.f.store(known, self.state.at(self.f, int64(number), spot.row), self.acc.size)

    def quiet(self, spot: Spot, known: Value) -> Value:
        """1 in lanes that are no rows, for what would raise flags there."""
        return known if spot.mask is None else self.f.select(spot.mask, known, self.v.constant(1.0))

    def settle(self, visit: Callable[[Spot], None]) -> None:
        """Visits all rows once, of no column."""
        for spot in self._pieces():
            visit(spot)

    def begin(self, *starts: float) -> None:
        """What is known of every row before its first column."""

        def write(spot: Spot) -> None:
            for number, start in enumerate(starts):
                self.put(number, spot, self.v.constant(start))

        self.settle(write)

    def over(self, visit: Together) -> None:
        """Visits all columns, several at the same rows."""
        self._over(visit, past=False)

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
        uneven = f.both(span, int64(self.lanes * self.to.dtype.size - 1))
        alike = f.select(f.compare("==", uneven, 0), self.stream, int64(0))
        with f.branch(f.compare("==", alike, 0)) as (near, past):
            with near:
                self._over(apart, past=False)
            with past:
                self._over(apart, past=True)

    def _over(self, visit: Together, *, past: bool) -> None:
        f, start = self.f, int64(0)
        for count in (self.block, 1):
            end, step = f.sub(self.columns, count - 1), int64(count)
            with f.carried_loop(start, end, step, [start], "column") as (first, _, advance):
                for spot in self._pieces(past=past):
                    visit([spot._replace(column=f.add(first, number)) for number in range(count)])
                advance([f.add(first, count)])
            (start,) = advance.results

    def _pieces(self, *, past: bool = False) -> Iterator[Spot]:
        """Writes what visits all rows; what is written meanwhile is its body, for each kind of vector."""
        f, lanes = self.f, self.lanes
        first = int64(0)
        if past:
            first = self.lead(first)
            with f.when(f.compare(">", first, 0)):
                yield Spot(int64(0), int64(0), f.first_lanes(first, 0, lanes))
        whole = f.add(first, f.both(f.sub(self.rows, first), int64(-lanes)))
        with f.loop(first, whole, int64(lanes), "rows") as row:
            yield Spot(row, int64(0), past=past)
        with f.when(f.compare("<", whole, self.rows)):
            yield Spot(whole, int64(0), f.first_lanes(f.sub(self.rows, whole), 0, lanes))

    def along(self, name: str, spot: Spot) -> Value:
        """The element of the column, for every row."""
        place = window(self.given, name)
        pointer = place.at(self.f, int64(0), spot.column)
        element = self.f.load(memory_type(place.dtype), pointer, place.dtype.size)
        return self.f.splat(self.same(element, place.dtype), self.lanes)

    def total(self, addends: Sequence[Value]) -> Value:
        """The sum of some vectors, by halves."""
        sums = list(addends)
        while len(sums) > 1:
            half = len(sums) // 2
            sums = [*map(self.v.add, sums[:half], sums[half : 2 * half]), *sums[2 * half :]]
        return sums[0]
