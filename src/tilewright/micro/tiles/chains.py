"""Chains of sums: at most `TileFma.sum_depths` depths are added to one another before they join a total.

Rounding errors grow with the number of sums that depend on each other. A tile closes a chain by adding its
accumulators to totals on the stack, which stay in L1. The last chain takes the totals in registers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

from tilewright.llvm.build import Function
from tilewright.llvm.values import POINTER, Value, int64, memory_type, vector_type, zero
from tilewright.machine.machine import CACHE_LINE
from tilewright.micro.tiles.depth import PREFETCH_DEPTH, DepthLoops
from tilewright.micro.tiles.operands import TileCall, TilePart
from tilewright.spec.dtype import DType

#: Some rows of sums: the first row, how many, and their vectors.
Strip = tuple[int, int, list[Value]]


class Chains(DepthLoops):
    """The finished sums of one tile, from chains of bounded length."""

    acc: DType
    #: Whether `walk_depth` is `loop_depth` where the depth is not known.
    loops_over_depth = True

    @abstractmethod
    def begin(self, f: Function, part: TilePart) -> list[Value]:
        """The zeroed accumulators of a part, in the order that `strips` expects."""

    @abstractmethod
    def strips(self, f: Function, part: TilePart, acc: list[Value]) -> Iterator[Strip]:
        """Rows of the part that are finished and stored together."""

    @abstractmethod
    def walk_depth(
        self, f: Function, part: TilePart, call: TileCall, masks: list[Value | None], acc: list[Value]
    ) -> list[Value]:
        """All depths of one product."""

    @abstractmethod
    def prefetches(self, part: TilePart, call: TileCall) -> bool:
        """Whether rows are prefetched before the depth ends."""

    @abstractmethod
    def group_bytes(self, f: Function, call: TileCall, depth: Value) -> tuple[Value, Value]:
        """Bytes of A and of B from one group of depths to the next."""

    def closes(self, call: TileCall) -> bool:
        """Whether the depth of a call may be more than one chain."""
        if not self.instruction.sum_depths:
            return False
        products = 1 if call.batch is None else call.batch.products.known
        most = call.most_depth if call.depth.known is None else call.depth.known
        return most is None or products is None or most * products > self.instruction.sum_depths

    def finished(
        self, f: Function, part: TilePart, call: TileCall, masks: list[Value | None]
    ) -> Iterator[Strip]:
        """The sums of all depths, of a batch those of all its products."""
        if not self.closes(call):
            walk = self.walk_depth if call.batch is None else self._walk_batch
            yield from self.strips(f, part, walk(f, part, call, masks, self.begin(f, part)))
            return
        totals = Totals.of(f, part, self.acc, self.tile.nr)
        if call.batch is not None:
            self._close_batch(f, part, call, masks, totals)
            yield from totals.rows(f)
        elif call.depth.known is not None:
            yield from self._close_known(f, part, call, masks, totals, call.depth.known)
        elif self.instruction.is_matrix_engine:
            self._close_each(f, part, call, masks, totals)
            yield from totals.rows(f)
        elif self.loops_over_depth and self.prefetches(part, call):
            yield from self._close_around_prefetch(f, part, call, masks, totals)
        else:
            yield from self._close_any(f, part, call, masks, totals)

    def close_all(
        self, f: Function, part: TilePart, call: TileCall, masks: list[Value | None], totals: Totals
    ) -> None:
        """The sums of all depths, of a batch those of all its products, as totals."""
        if not self.closes(call):
            walk = self.walk_depth if call.batch is None else self._walk_batch
            self._close(f, part, walk(f, part, call, masks, self.begin(f, part)), totals, None)
        elif call.batch is not None:
            self._close_batch(f, part, call, masks, totals)
        else:
            self._close_each(f, part, call, masks, totals)

    def _close(
        self, f: Function, part: TilePart, acc: list[Value], totals: Totals, later: Value | None
    ) -> None:
        """Adds accumulators to the totals, which begin with them unless `later`; None: they do."""
        for first, _, sums in self.strips(f, part, acc):
            totals.add(f, first, sums, later)

    def _close_any(
        self, f: Function, part: TilePart, call: TileCall, masks: list[Value | None], totals: Totals
    ) -> Iterator[Strip]:
        """A depth known at run time only: one loop, whose last chain stays in the accumulators."""
        chain = self.instruction.sum_depths
        a_bytes, b_bytes = self.group_bytes(f, call, int64(chain))
        state = [call.a.pointer, call.b.pointer, *self.begin(f, part)]
        call = call._replace(fetch=self.fetch_of(f, part, call))
        end = f.maximum(call.depth, int64(1))
        with f.carried_loop(int64(0), end, int64(chain), state, "chain") as (first, values, advance):
            left = f.sub(call.depth, first)
            more = f.icmp(">", left, chain)
            one = call.moved(*values[:2]).copied_from(f, first)._replace(depth=f.minimum(int64(chain), left))
            acc = self.walk_depth(f, part, one, masks, self.begin(f, part))
            with f.when(more):
                self._close(f, part, acc, totals, f.icmp(">", first, 0))
            advance([f.at(values[0], a_bytes), f.at(values[1], b_bytes), *acc])
        several = f.icmp(">", call.depth, chain)
        for first_row, rows, sums in self.strips(f, part, advance.results[2:]):
            yield first_row, rows, totals.added(f, first_row, sums, several)

    def _close_around_prefetch(
        self, f: Function, part: TilePart, call: TileCall, masks: list[Value | None], totals: Totals
    ) -> Iterator[Strip]:
        """The same with a prefetch before the last depths: one loop over what lies between both events.

        A loop inside another would cost a tile of 64 depths 4 % of its time.
        """
        walk = self.begin_walk(f, part, call, masks)
        steps, chain = walk.call.depth, self.instruction.sum_depths // self.instruction.k
        before = f.and_(f.maximum(f.sub(steps, PREFETCH_DEPTH), int64(0)), int64(-2))  # an even step
        empty = self.begin(f, part)
        state = [*walk.pointers.bases, call.b.pointer, *empty]
        kept = len(state) - len(empty)
        with f.carried_walk(int64(0), steps, state, "chain") as (first, values, advance):
            early = f.icmp("<", first, before)
            with f.when(f.icmp("==", first, before)):
                self.prefetch_rows(f, part, call)
            closing = f.add(f.and_(first, int64(-chain)), chain)
            end = f.minimum(closing, f.select(early, before, steps))
            following = self.loop_pairs(walk, (first, end), list(values))
            closes = f.and_(f.icmp("==", end, closing), f.icmp("<", end, steps))
            with f.once_if(closes, following[kept:]) as (ended, begin_anew):
                self._close(f, part, list(ended), totals, f.icmp(">", end, chain))
                begin_anew(empty)
            advance([end, *following[:kept], *begin_anew.results])
        several = f.icmp(">", steps, chain)
        for first_row, rows, sums in self.strips(f, part, advance.results[kept:]):
            yield first_row, rows, totals.added(f, first_row, sums, several)

    def _close_each(
        self,
        f: Function,
        part: TilePart,
        call: TileCall,
        masks: list[Value | None],
        totals: Totals,
        later: Value | None = None,
    ) -> None:
        """Every chain of a product is added to the totals: accumulators of a unit stay inside its loop.

        `later` says that the totals have sums of other products.
        """
        chain = self.instruction.sum_depths
        a_bytes, b_bytes = self.group_bytes(f, call, int64(chain))
        end = f.maximum(call.depth, int64(1))
        state = [call.a.pointer, call.b.pointer]
        with f.carried_loop(int64(0), end, int64(chain), state, "chain") as (first, values, advance):
            left = f.sub(call.depth, first)
            length = f.minimum(int64(chain), left)
            if self.prefetches(part, call):
                with f.when(f.icmp("<=", left, chain)):
                    self.prefetch_rows(f, part, call)
            one = call.moved(*values)._replace(depth=length, prefetch=None)
            acc = self.walk_depth(f, part, one, masks, self.begin(f, part))
            begun = f.icmp(">", first, 0)
            self._close(f, part, acc, totals, begun if later is None else f.or_(begun, later))
            advance([f.at(values[0], a_bytes), f.at(values[1], b_bytes)])

    def _close_known(
        self,
        f: Function,
        part: TilePart,
        call: TileCall,
        masks: list[Value | None],
        totals: Totals,
        depth: int,
    ) -> Iterator[Strip]:
        """A known depth: a loop over whole chains, then the rest of the depth."""
        chain = self.instruction.sum_depths
        whole = (depth - 1) // chain * chain
        a_bytes, b_bytes = self.group_bytes(f, call, int64(chain))
        state = [call.a.pointer, call.b.pointer]
        with f.carried_loop(int64(0), int64(whole), int64(chain), state, "chain") as (first, values, advance):
            one = call.moved(*values)._replace(depth=int64(chain))
            acc = self.walk_depth(f, part, one, masks, self.begin(f, part))
            self._close(f, part, acc, totals, f.icmp(">", first, 0))
            advance([f.at(values[0], a_bytes), f.at(values[1], b_bytes)])
        rest = call.moved(*advance.results)._replace(depth=int64(depth - whole))
        acc = self.walk_depth(f, part, rest, masks, self.begin(f, part))
        for first_row, rows, sums in self.strips(f, part, acc):
            yield first_row, rows, totals.added(f, first_row, sums)

    # --- batches --------------------------------------------------------------------------------

    def _close_batch(
        self, f: Function, part: TilePart, call: TileCall, masks: list[Value | None], totals: Totals
    ) -> None:
        """As many products as a chain has depths for run in the same accumulators."""
        batch, chain = call.batch, self.instruction.sum_depths
        assert batch is not None
        together = 0 if call.depth.known is None else chain // max(call.depth.known, 1)
        a_bytes, b_bytes = self._product_bytes(f, call)
        state = [call.a.pointer, call.b.pointer]
        step = int64(max(together, 1))
        a_step, b_step = f.mul(a_bytes, step), f.mul(b_bytes, step)
        end = f.maximum(batch.products, int64(1))
        with f.carried_loop(int64(0), end, step, state, "products") as (first, values, advance):
            later = f.icmp(">", first, 0)
            if together:
                left = f.minimum(step, f.sub(batch.products, first))
                some = call.moved(*values)._replace(batch=batch._replace(products=left))
                acc = self._walk_batch(f, part, some, masks, self.begin(f, part))
                self._close(f, part, acc, totals, later)
            else:
                one = self._product(f, call, *values)._replace(batch=None)
                self._close_each(f, part, one, masks, totals, later)
            advance([f.at(values[0], a_step), f.at(values[1], b_step)])

    def _product_bytes(self, f: Function, call: TileCall) -> tuple[Value, Value]:
        """Bytes from one product of a batch to the next, of A and of B: of pointers or of elements."""
        batch = call.batch
        assert batch is not None
        bits = (64, 64) if batch.addresses else (self.a.dtype.bits, self.b.dtype.bits)
        return f.bytes_of(batch.a_step, bits[0]), f.bytes_of(batch.b_step, bits[1])

    def _product(self, f: Function, call: TileCall, a: Value, b: Value) -> TileCall:
        """The call for one product of a batch, given its operands or their pointers."""
        batch = call.batch
        assert batch is not None
        if not batch.addresses:
            return call.moved(a, b)
        starts = (f.load(POINTER, a, 8), f.load(POINTER, b, 8))
        return call.moved(f.at(starts[0], batch.a_offset), f.at(starts[1], batch.b_offset))

    def _walk_batch(
        self, f: Function, part: TilePart, call: TileCall, masks: list[Value | None], acc: list[Value]
    ) -> list[Value]:
        """Accumulates every product of a batch in the same registers."""
        assert call.batch is not None
        a_bytes, b_bytes = self._product_bytes(f, call)
        state = [call.a.pointer, call.b.pointer, *acc]
        with f.carried_loop(int64(0), call.batch.products, int64(1), state, "batch") as (_, values, advance):
            a, b, *sums = values
            sums = self.walk_depth(f, part, self._product(f, call, a, b), masks, sums)
            advance((f.at(a, a_bytes), f.at(b, b_bytes), *sums))
        return advance.results[2:]


class Totals:
    """The sums of closed chains of a part in memory, in the type of the accumulators.

    Parameters
    ----------
    part : the part.
    acc : type of the sums.
    pointer, row_bytes : the first sum, and bytes from one row to the next.
    """

    def __init__(self, part: TilePart, acc: DType, pointer: Value, row_bytes: Value) -> None:
        self._size, self.pointer, self.row_bytes = acc.size, pointer, row_bytes
        self._kinds = [vector_type(acc, width) for width in part.widths]
        self._offsets = [sum(part.widths[:v]) * acc.size for v in range(len(part.widths))]
        self._count = part.rows
        self._fixed: list[Value] = []

    @classmethod
    def of(cls, f: Function, part: TilePart, acc: DType, nr: int, *, in_loops: bool = False) -> Totals:
        """Totals on the stack, which stay in L1; places of rows that no loop visits are computed once."""
        memory = f.alloca(memory_type(acc), part.rows * nr, CACHE_LINE)
        found = cls(part, acc, memory, int64(nr * acc.size))
        if not in_loops:
            found._fixed = found.places(f, 0, part.rows)
        return found

    def places(self, f: Function, first: Value | int, rows: int) -> list[Value]:
        """The places of the vectors of some rows from one on."""
        if self._fixed and isinstance(first, int):
            begin = first * len(self._offsets)
            return self._fixed[begin : begin + rows * len(self._offsets)]
        found = []
        for row in range(rows):
            start = f.mul(self.row_bytes, f.add(first, row) if isinstance(first, Value) else first + row)
            if start.known is not None:
                found += [f.at(self.pointer, start.known + offset) for offset in self._offsets]
            else:
                line = f.at(self.pointer, start)
                found += [f.at(line, offset) for offset in self._offsets]
        return found

    def clear(self, f: Function) -> list[Value]:
        """Makes all sums zero; their places, row by row."""
        found = self.places(f, 0, self._count)
        self._stored(f, [zero(kind) for _ in range(self._count) for kind in self._kinds], found)
        return found

    def load(self, f: Function, first: Value | int, rows: int) -> list[Value]:
        """The vectors of some rows from one on."""
        return self._loaded(f, self.places(f, first, rows))

    def store(self, f: Function, first: Value | int, sums: list[Value]) -> None:
        """Stores the vectors of rows from one on."""
        self._stored(f, sums, self.places(f, first, len(sums) // len(self._kinds)))

    def add(self, f: Function, first: int, sums: list[Value], later: Value | None) -> None:
        """Adds sums from a row on; where there are no totals yet, they are the totals."""
        places = self.places(f, first, len(sums) // len(self._kinds))
        self._stored(f, sums if later is None else self._added(f, places, sums, later), places)

    def added(
        self, f: Function, first: int, sums: list[Value], condition: Value | None = None
    ) -> list[Value]:
        """Sums from a row on plus their totals, if the condition holds."""
        return self._added(f, self.places(f, first, len(sums) // len(self._kinds)), sums, condition)

    def _loaded(self, f: Function, places: list[Value]) -> list[Value]:
        kinds = self._kinds * (len(places) // len(self._kinds))
        return [f.load(kind, place, self._size) for kind, place in zip(kinds, places, strict=True)]

    def _stored(self, f: Function, sums: list[Value], places: list[Value]) -> None:
        for value, place in zip(sums, places, strict=True):
            f.store(value, place, self._size)

    def _added(
        self, f: Function, places: list[Value], sums: list[Value], condition: Value | None
    ) -> list[Value]:
        def plus(values: list[Value]) -> list[Value]:
            return [
                f.plus(value, total) for value, total in zip(values, self._loaded(f, places), strict=True)
            ]

        if condition is None:
            return plus(sums)
        with f.once_if(condition, sums) as (values, advance):
            advance(plus(list(values)))
        return advance.results

    def rows(self, f: Function) -> Iterator[Strip]:
        """Every row of the totals."""
        for row in range(self._count):
            yield row, 1, self.load(f, row, 1)
