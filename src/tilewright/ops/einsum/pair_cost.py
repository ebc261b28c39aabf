"""What two operands that are summed over shared labels cost to multiply, in each of the ways there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tilewright.machine.host import host_machine
from tilewright.ops.einsum.labels import Axes, Roles, count, neighbours, run_of
from tilewright.ops.einsum.scattered_pairs import LEAST_WORK, TABLE_TYPES

# Costs are in cycles of one core, figures per element as measured on Zen 5 (AVX-512, float32 and float64
# alike): whole products less their multiply-adds, divided by the elements concerned.

#: Reading an element into a panel, or in place: along adjacent ones, each from a line of its own in L2, and
#: each from a line beyond it.
READ_NEAR, READ_FAR, READ_BEYOND = 0.4, 4.5, 15.0
#: Writing an element of the result: along adjacent ones, and apart.
WRITE_NEAR, WRITE_FAR = 0.25, 1.5
#: The same where tables say where elements stand: runs as long as a vector, or shorter ones.
TABLE_NEAR, TABLE_FAR = 1.2, 2.5
#: Writing an element where tables say: of a matrix, into runs as long as two vectors, into shorter ones.
TABLE_WRITE, TABLE_WRITE_RUNS, TABLE_WRITE_FAR = 0.8, 2.5, 4.0
#: Copying an element into another order, in L2 and beyond it; and the call that does so.
MOVE, MOVE_BEYOND, MOVE_CALL = 1.5, 3.0, 4_000.0
#: What each product of a batch takes beside its work, one call of products, one by tables.
ITEM, CALL, TABLE_CALL = 40.0, 4_000.0, 20_000.0
#: A call of products with several axes of a batch, in which Python has a part, and each of these; or few
#: calls, one for each position of all of these axes but the last.
STACKS_CALL, STACKS_ITEM, MOST_STACKS = 200_000.0, 900.0, 32
#: Share of the peak that a product reaches whose operands are at hand.
SHARE = 0.88
#: How many times faster a product has to be by large copies of operands than by tables: they take memory.
COPY_GAIN = 1.6
#: Other ways are not looked at if the straight one costs so little more than the least that is possible.
ALIKE = 1.02
#: Bytes of the narrowest sums.
_LEAST_BYTES = 4
#: Depths between two visits of a tile of the result, elements that adjacent ones are counted from.
_DEPTHS, _RUN = 512, 12


class Way(Enum):
    """How a pair is multiplied; the value says it in words."""

    IN_PLACE = "in place"
    LOOPS = "in place, in loops"
    TABLES = "by tables"
    ELEMENTS = "element by element"


class Price(NamedTuple):
    """A way to multiply a pair, and what it costs.

    Attributes
    ----------
    cycles : of the whole of it.
    way : what the product does.
    moved : "a", "b" or "ab": operands that are copied first, "" if none is.
    rows, columns, summed : the labels of each role that are one axis of the product, outermost first.
    loops : other labels of rows and columns: a product for each of their positions.
    """

    cycles: float
    way: Way
    moved: str
    rows: str
    columns: str
    summed: str
    loops: str


class Pricing(NamedTuple):
    """What decides costs beside operands.

    Attributes
    ----------
    itemsize : bytes of an element.
    rate : multiply-adds in a cycle.
    by_tables : whether the type has a kernel that follows tables.
    near_bytes : of the second cache.
    """

    itemsize: int
    rate: float
    by_tables: bool
    near_bytes: int = 1 << 20

    @classmethod
    def of(cls, dtype: np.dtype[Any] | None, operands: Iterable[Axes]) -> Pricing:
        """Costs of a type on this host; of None, any type of elements as large as the smallest step."""
        machine = host_machine()
        isa = machine.isa
        if dtype is None:
            steps = [abs(step) for axes in operands for step in axes.steps.values() if step]
            itemsize, parts = min(steps, default=_LEAST_BYTES), 1
        else:
            itemsize, parts = dtype.itemsize, (2 if dtype.kind == "c" else 1)
        lanes = isa.vector_bits / (8 * max(itemsize // parts, _LEAST_BYTES))
        by_tables = dtype is None or dtype in TABLE_TYPES
        return cls(itemsize, lanes * isa.fma_per_cycle / parts**2, by_tables, machine.l2.size)

    def cheapest(self, roles: Roles, a: Axes, b: Axes, c: Axes | None = None) -> Price:
        """The way that costs least; c is None where the result may stand in any order.

        Examples
        --------
        >>> sizes = {"b": 32, "i": 64, "j": 64, "k": 64}
        >>> roles, pricing = Roles.of("bij", "bjk", "bik"), Pricing(4, 32.0, by_tables=True)
        >>> def cheapest(a: str, b: str) -> Price:
        ...     return pricing.cheapest(roles, Axes.adjacent(a, sizes, 4), Axes.adjacent(b, sizes, 4))
        >>> cheapest("bij", "bjk").moved, cheapest("ijb", "jkb").moved
        ('', 'ab')
        """
        straight = self._in_place(roles, a, b, c)
        if straight is not None and straight.cycles <= ALIKE * self._least(roles, a, b):
            return straight
        found = sorted(self.ways(roles, a, b, c), key=lambda price: price.cycles)
        tables = [price for price in found if price.way is Way.TABLES]
        least = found[0]
        close = bool(tables) and tables[0].cycles < COPY_GAIN * least.cycles
        if close and self._takes_memory(least.moved, roles, a, b):
            return next(price for price in found if not price.moved)
        return least

    def _takes_memory(self, moved: str, roles: Roles, a: Axes, b: Axes) -> bool:
        """Whether copies are large: more than the second cache, and than the result."""
        copied = a.elements * ("a" in moved) + b.elements * ("b" in moved)
        result = count(roles.batch + roles.rows + roles.columns, {**a.sizes, **b.sizes})
        return copied * self.itemsize > self.near_bytes and copied > result

    def _least(self, roles: Roles, a: Axes, b: Axes) -> float:
        """What no way costs less than."""
        sizes = {**a.sizes, **b.sizes}
        written = count(roles.batch + roles.rows + roles.columns, sizes)
        work = written * count(roles.summed, sizes) / (self.rate * SHARE)
        return work + (a.elements + b.elements) * READ_NEAR + written * WRITE_NEAR + ITEM + CALL

    def ways(self, roles: Roles, a: Axes, b: Axes, c: Axes | None = None) -> Iterator[Price]:
        """All ways that there are, in place ones first."""
        order = roles._replace(
            rows=(c or a).outermost_first(roles.rows), columns=(c or b).outermost_first(roles.columns)
        )
        sizes = {**a.sizes, **b.sizes}
        tables = self.by_tables and bool(roles.summed) and prod(sizes.values()) >= LEAST_WORK
        by_a, by_b = a.outermost_first(roles.summed), b.outermost_first(roles.summed)

        def moved_a(summed: str) -> Axes:
            return Axes.adjacent(order.batch + order.rows + summed, a.sizes, self.itemsize)

        def moved_b(summed: str) -> Axes:
            return Axes.adjacent(order.batch + summed + order.columns, b.sizes, self.itemsize)

        operands = {"": (a, b), "a": (moved_a(by_b), b), "b": (a, moved_b(by_a))}
        operands["ab"] = (moved_a(by_b), moved_b(by_b))
        for moved, (first, second) in operands.items():
            found = self._in_place(roles, first, second, c)
            if found is not None and moved:
                copies = self._move(a) * ("a" in moved) + self._move(b) * ("b" in moved)
                cycles = found.cycles + copies
                found = found._replace(cycles=cycles, moved=moved)
            if found is not None:
                yield found
        if tables:
            yield Price(self._by_tables(roles, a, b, c), Way.TABLES, "", *order[1:], "")

    def _in_place(self, roles: Roles, a: Axes, b: Axes, c: Axes | None) -> Price | None:
        """The cost of operands as they stand; None where sums are not one axis."""
        summed = a.outermost_first(roles.summed)
        if not (a.fuse(summed) and b.fuse(summed)):
            return None
        rows, row_loops = run_of(roles.rows, a, c)
        columns, column_loops = run_of(roles.columns, b, c)
        loops = row_loops + column_loops
        sizes = {**a.sizes, **b.sizes}
        m, n, k = (count(labels, sizes) for labels in (rows, columns, summed))
        stacks = (
            *neighbours(roles.batch, (a, b, c)),
            *neighbours(row_loops, (a, c)),
            *neighbours(column_loops, (b, c)),
        )
        items = count(roles.batch + loops, sizes)
        read_a, read_b = self._read(a, rows, summed), self._read(b, columns, summed)
        near = c is None or self._near(c, rows, columns)
        each = m * n * k / (self.rate * SHARE) + m * k * read_a + k * n * read_b
        each += m * n * (WRITE_NEAR if near else WRITE_FAR) + ITEM
        call, calls = CALL, count("".join(stacks[:-1]), sizes)
        if len(stacks) > 1:
            call = CALL * calls if calls <= MOST_STACKS else STACKS_CALL + items * STACKS_ITEM
        way = Way.LOOPS if loops else Way.IN_PLACE
        return Price(items * each + call, way, "", rows, columns, summed, loops)

    def _by_tables(self, roles: Roles, a: Axes, b: Axes, c: Axes | None) -> float:
        """The cost of operands wherever they stand."""
        sizes = {**a.sizes, **b.sizes}
        cycles = prod(sizes.values()) / (self.rate * SHARE) + TABLE_CALL
        nearest = "" if c is None else c.outermost_first("".join(roles[:3]))[-1:]
        lead = min(roles.summed, key=lambda label: min(abs(a.steps[label]), abs(b.steps[label])))
        for operand, own in ((a, roles.rows), (b, roles.columns)):
            lanes, _ = run_of(own, operand, c if nearest and nearest in own else None)
            depths, _ = run_of(roles.summed, operand, None)
            runs = self._long(operand, lanes) or (depths[-1:] == lead and self._long(operand, depths))
            cycles += operand.elements * (TABLE_NEAR if runs else TABLE_FAR)
            if operand.nearest in roles.batch:  # each product takes an element of every line
                cycles += operand.elements * self._read(operand, own + roles.summed)
        written = count(roles.batch + roles.rows + roles.columns, sizes)
        visits = -(-count(roles.summed, sizes) // _DEPTHS)
        return cycles + written * visits * self._table_write(roles, c)

    def _table_write(self, roles: Roles, c: Axes | None) -> float:
        """Writing an element of the result where tables say."""
        if c is None:
            return TABLE_WRITE
        batch = self._read(c, roles.rows + roles.columns) if c.nearest in roles.batch else 0.0
        runs = [run_of(own, c, None) for own in (roles.rows, roles.columns)]
        if not any(others for _, others in runs):
            return batch + TABLE_WRITE
        return batch + (
            TABLE_WRITE_RUNS if any(self._long(c, run, 2) for run, _ in runs) else TABLE_WRITE_FAR
        )

    def _long(self, operand: Axes, run: str, vectors: int = 1) -> bool:
        """Whether as many elements as vectors have are adjacent along one axis."""
        return bool(run) and self._near(operand, run) and count(run, operand.sizes) >= vectors * _RUN

    def _move(self, operand: Axes) -> float:
        """Copying an operand into another order."""
        near = operand.elements * self.itemsize <= self.near_bytes
        return operand.elements * (MOVE if near else MOVE_BEYOND) + MOVE_CALL

    def _read(self, operand: Axes, *runs: str) -> float:
        """Reading an element, where these axes are walked."""
        if self._near(operand, *runs):
            return READ_NEAR
        return READ_FAR if operand.elements * self.itemsize <= self.near_bytes else READ_BEYOND

    def _near(self, operand: Axes, *runs: str) -> bool:
        """Whether adjacent elements of an operand stand along one of these axes."""
        return any(
            operand.sizes[label] == 1 or abs(operand.steps[label]) == self.itemsize
            for run in runs
            for label in run[-1:]
        ) or not any(runs)
