"""Cost model for contracting two operands: predicted cycles of each strategy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tilewright.machine.cores import Core
from tilewright.machine.host import host_machine
from tilewright.macro.cost import copy_cycles, load_cycles, store_cycles
from tilewright.ops.einsum.labels import Axes, Roles, count, neighbours, run_of
from tilewright.ops.einsum.table_pair import LEAST_WORK, TABLE_TYPES

#: How many times faster a product has to be with large copies of operands than by tables: copies take memory.
COPY_GAIN = 1.6
#: No other strategy is considered if multiplying in place costs at most this many times the lower bound.
NEAR_BOUND = 1.02
#: Calls of products up to which a batch of several axes is a loop over all of them but the last.
MOST_STACKS = 32
#: Bytes of the narrowest sums.
_LEAST_BYTES = 4
#: Depths between two visits of a tile of the result, elements from which on adjacent ones count as a run.
_DEPTHS, _RUN = 512, 12


class PairMethod(Enum):
    """How a pair of operands is multiplied; values are the words of explanations."""

    IN_PLACE = "in place"
    LOOPS = "in place, in loops"
    TABLES = "by tables"
    ELEMENTS = "element by element"


class PairStrategy(NamedTuple):
    """One strategy for multiplying a pair, and its cost.

    Attributes
    ----------
    cycles : predicted, copies included.
    method : how the product is computed.
    copied : operands that are copied first: "a", "b", "ab" or "".
    rows, columns, summed : the labels of each role that form one axis of the product, outermost first.
    loops : other labels of rows and columns: one product for each of their positions.
    """

    cycles: float
    method: PairMethod
    copied: str
    rows: str
    columns: str
    summed: str
    loops: str

    def __str__(self) -> str:
        copied = {"": "", "a": ", the first copied", "b": ", the second copied", "ab": ", both copied"}
        return self.method.value + copied[self.copied]


class PairCosts(NamedTuple):
    """The cost model of pairs for one element type on one machine.

    Attributes
    ----------
    itemsize : bytes of an element.
    rate : multiply-adds per cycle.
    by_tables : whether the type has a kernel that uses tables of offsets.
    l2_bytes : size of the second cache.
    core : cycles of everything but multiply-adds.
    """

    itemsize: int
    rate: float
    by_tables: bool
    l2_bytes: int = 1 << 20
    core: Core = Core()

    @classmethod
    def of(cls, dtype: np.dtype[Any] | None, operands: Iterable[Axes] = ()) -> PairCosts:
        """The model for a type on this host; None: any type of elements as large as the least stride."""
        if dtype is not None:
            return _costs(dtype.itemsize, 2 if dtype.kind == "c" else 1, by_tables=dtype in TABLE_TYPES)
        steps = [abs(step) for axes in operands for step in axes.steps.values() if step]
        return _costs(min(steps, default=_LEAST_BYTES), 1, by_tables=True)

    def cheapest(self, roles: Roles, a: Axes, b: Axes, c: Axes | None = None) -> PairStrategy:
        """The cheapest strategy; c is None where the result may have any order in memory.

        Examples
        --------
        >>> sizes = {"b": 32, "i": 64, "j": 64, "k": 64}
        >>> roles, costs = Roles.of("bij", "bjk", "bik"), PairCosts(4, 32.0, by_tables=True)
        >>> def cheapest(a: str, b: str) -> PairStrategy:
        ...     return costs.cheapest(roles, Axes.adjacent(a, sizes, 4), Axes.adjacent(b, sizes, 4))
        >>> cheapest("bij", "bjk").copied, cheapest("ijb", "jkb").copied
        ('', 'ab')
        """
        if not roles.summed:
            return self._by_elements(roles, a, b)
        in_place = self._in_place(roles, a, b, c)
        if in_place is not None and in_place.cycles <= NEAR_BOUND * self._least(roles, a, b):
            return in_place
        found = sorted(self.candidates(roles, a, b, c), key=lambda strategy: strategy.cycles)
        tables = [strategy for strategy in found if strategy.method is PairMethod.TABLES]
        least = found[0]
        close = bool(tables) and tables[0].cycles < COPY_GAIN * least.cycles
        if close and self._takes_memory(least.copied, roles, a, b):
            return next(strategy for strategy in found if not strategy.copied)
        return least

    def _takes_memory(self, copied: str, roles: Roles, a: Axes, b: Axes) -> bool:
        """Whether copies are large: more than the second cache, and than the result."""
        elements = a.elements * ("a" in copied) + b.elements * ("b" in copied)
        result = count(roles.batch + roles.rows + roles.columns, {**a.sizes, **b.sizes})
        return elements * self.itemsize > self.l2_bytes and elements > result

    def _least(self, roles: Roles, a: Axes, b: Axes) -> float:
        """A lower bound for all strategies."""
        sizes = {**a.sizes, **b.sizes}
        written = count(roles.batch + roles.rows + roles.columns, sizes)
        core = self.core
        moved = (a.elements + b.elements) * core.load_cycles + written * core.store_cycles
        work = self._multiply(written * count(roles.summed, sizes))
        return work + moved + core.matrix_cycles + core.call_cycles

    def _multiply(self, work: int) -> float:
        """Cycles of multiply-adds whose operands are in the caches."""
        return work / (self.rate * self.core.peak_share)

    def candidates(self, roles: Roles, a: Axes, b: Axes, c: Axes | None = None) -> Iterator[PairStrategy]:
        """All strategies, those in place first."""
        order = roles._replace(
            rows=(c or a).outermost_first(roles.rows), columns=(c or b).outermost_first(roles.columns)
        )
        sizes = {**a.sizes, **b.sizes}
        tables = self.by_tables and bool(roles.summed) and prod(sizes.values()) >= LEAST_WORK
        by_a, by_b = a.outermost_first(roles.summed), b.outermost_first(roles.summed)

        def copied_a(summed: str) -> Axes:
            return Axes.adjacent(order.batch + order.rows + summed, a.sizes, self.itemsize)

        def copied_b(summed: str) -> Axes:
            return Axes.adjacent(order.batch + summed + order.columns, b.sizes, self.itemsize)

        operands = {"": (a, b), "a": (copied_a(by_b), b), "b": (a, copied_b(by_a))}
        operands["ab"] = (copied_a(by_b), copied_b(by_b))
        for copied, (first, second) in operands.items():
            found = self._in_place(roles, first, second, c)
            if found is not None and copied:
                copies = self._copy(a) * ("a" in copied) + self._copy(b) * ("b" in copied)
                found = found._replace(cycles=found.cycles + copies, copied=copied)
            if found is not None:
                yield found
        if tables:
            yield PairStrategy(self._by_tables(roles, a, b, c), PairMethod.TABLES, "", *order[1:], "")

    def _in_place(self, roles: Roles, a: Axes, b: Axes, c: Axes | None) -> PairStrategy | None:
        """The strategy in place; None where the summed labels do not form one axis."""
        summed = a.outermost_first(roles.summed)
        if not (a.fuse(summed) and b.fuse(summed)):
            return None
        rows, row_loops = run_of(roles.rows, a, c)
        columns, column_loops = run_of(roles.columns, b, c)
        loops = row_loops + column_loops
        sizes = {**a.sizes, **b.sizes}
        m, n, k = count(rows, sizes), count(columns, sizes), count(summed, sizes)
        stacks = neighbours(roles.batch, (a, b, c))
        if loops:
            stacks = (*stacks, *neighbours(row_loops, (a, c)), *neighbours(column_loops, (b, c)))
        items = count(roles.batch + loops, sizes)
        read_a, read_b = self._read(a, rows, summed), self._read(b, columns, summed)
        core, adjacent = self.core, c is None or self._adjacent(c, rows, columns)
        each = self._multiply(m * n * k) + m * k * read_a + k * n * read_b
        each += m * n * store_cycles(core, adjacent=adjacent) + core.matrix_cycles
        call = core.call_cycles
        if len(stacks) > 1:
            calls = count("".join(stacks[:-1]), sizes)
            in_python = core.batch_call_cycles + items * core.batch_item_cycles
            call = call * calls if calls <= MOST_STACKS else in_python
        method = PairMethod.LOOPS if loops else PairMethod.IN_PLACE
        return PairStrategy(items * each + call, method, "", rows, columns, summed, loops)

    def _by_elements(self, roles: Roles, a: Axes, b: Axes) -> PairStrategy:
        """The one strategy where nothing is summed: memory decides."""
        core = self.core
        written = count(roles.batch + roles.rows + roles.columns, {**a.sizes, **b.sizes})
        cycles = written * (core.store_cycles + 2 * core.load_cycles) + core.call_cycles
        return PairStrategy(cycles, PairMethod.ELEMENTS, "", roles.rows, roles.columns, "", "")

    def _by_tables(self, roles: Roles, a: Axes, b: Axes, c: Axes | None) -> float:
        """Cycles of the five loops whose operands are packed through tables of offsets."""
        sizes = {**a.sizes, **b.sizes}
        core = self.core
        cycles = self._multiply(prod(sizes.values())) + core.table_call_cycles
        nearest = "" if c is None else c.outermost_first("".join(roles[:3]))[-1:]
        lead = min(roles.summed, key=lambda label: min(abs(a.steps[label]), abs(b.steps[label])))
        for operand, own in ((a, roles.rows), (b, roles.columns)):
            lanes, _ = run_of(own, operand, c if nearest and nearest in own else None)
            depths, _ = run_of(roles.summed, operand, None)
            runs = self._long(operand, lanes) or (depths[-1:] == lead and self._long(operand, depths))
            cycles += operand.elements * (core.gather_run_cycles if runs else core.gather_cycles)
            if operand.nearest in roles.batch:  # each product reads one element of every cache line
                cycles += operand.elements * self._read(operand, own + roles.summed)
        written = count(roles.batch + roles.rows + roles.columns, sizes)
        visits = -(-count(roles.summed, sizes) // _DEPTHS)
        return cycles + written * visits * self._table_write(roles, c)

    def _table_write(self, roles: Roles, c: Axes | None) -> float:
        """Cycles to write an element of the result through tables of offsets."""
        core = self.core
        if c is None:
            return core.scatter_tile_cycles
        batch = self._read(c, roles.rows + roles.columns) if c.nearest in roles.batch else 0.0
        runs = [run_of(own, c, None) for own in (roles.rows, roles.columns)]
        if not any(others for _, others in runs):
            return batch + core.scatter_tile_cycles
        long_runs = any(self._long(c, run, 2) for run, _ in runs)
        return batch + (core.scatter_run_cycles if long_runs else core.scatter_cycles)

    def _long(self, operand: Axes, run: str, vectors: int = 1) -> bool:
        """Whether at least so many vectors of elements are adjacent along one axis."""
        return bool(run) and self._adjacent(operand, run) and count(run, operand.sizes) >= vectors * _RUN

    def _in_l2(self, operand: Axes) -> bool:
        """Whether an operand fits in the second cache."""
        return operand.elements * self.itemsize <= self.l2_bytes

    def _copy(self, operand: Axes) -> float:
        """Cycles to copy an operand into another order."""
        return copy_cycles(self.core, operand.elements, in_l2=self._in_l2(operand))

    def _read(self, operand: Axes, *runs: str) -> float:
        """Cycles to read an element in loops along these axes."""
        adjacent = self._adjacent(operand, *runs)
        return load_cycles(self.core, adjacent=adjacent, in_l2=adjacent or self._in_l2(operand))

    def _adjacent(self, operand: Axes, *runs: str) -> bool:
        """Whether elements of an operand are contiguous along one of these axes."""
        for run in runs:
            if run and (operand.sizes[run[-1]] == 1 or abs(operand.steps[run[-1]]) == self.itemsize):
                return True
        return not any(runs)


@lru_cache(maxsize=64)
def _costs(itemsize: int, parts: int, *, by_tables: bool) -> PairCosts:
    """The model for elements of some parts, for the host as it was at the first use."""
    machine = host_machine()
    isa = machine.isa
    lanes = isa.vector_bits / (8 * max(itemsize // parts, _LEAST_BYTES))
    return PairCosts(itemsize, lanes * isa.fma_per_cycle / parts**2, by_tables, machine.l2.size, machine.core)
