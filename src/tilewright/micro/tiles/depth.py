"""The loop over the depth of one straight-line tile: pointers, unrolled steps, and the prefetch of C."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import nullcontext
from math import ceil
from typing import NamedTuple

from tilewright.ir.nodes import Tile
from tilewright.llvm.build import Function
from tilewright.llvm.values import INT64, Value, int64
from tilewright.machine.isa import Isa, TileFma
from tilewright.machine.machine import CACHE_LINE
from tilewright.micro.tiles.operands import Fetch, FetchSlot, Source, TileCall, TilePart

#: C is prefetched when this many depths remain: 64 steps of 12 cycles cover a DRAM access (100 ns and
#: more), and few lines are evicted from L1 before their use. Prefetching at the start measured 2-4 %
#: slower at n = 4096, not at all 6 % (docs/decisions/001-prefetch-c-late.md).
PREFETCH_DEPTH = 64

#: Rows of B in place are prefetched so many cycles of multiply-adds before their use: each is a line or a few
#: of its own, which no prefetcher follows where rows are long. A busy L3 takes half as long, 80 ns at 4 GHz,
#: memory as long (docs/decisions/059-rows-of-b.md).
CYCLES_AHEAD = 640
#: Rows at multiples of this distance fall into four sets of L1 at most, where lines on their way would evict
#: each other: they are prefetched into L2, and earlier.
CROWDED_BYTES = 1024
CROWDED_CYCLES_AHEAD = 960
#: Rows over so many bytes are beyond L2. They too are prefetched into L2, which waits for more lines at once
#: than L1 does (docs/decisions/076-copied-rows.md).
FAR_BYTES = 4 << 20
#: At most so many rows ahead: three lines of each are a third of an L1 of 48 KiB.
ROWS_AHEAD = 80

#: What is read after the tile is prefetched by one line of each two: they follow each other, and so hardware
#: fetches the others (docs/decisions/074-next-products.md).
FETCHED_TOGETHER = 2 * CACHE_LINE

#: LLVM's localities of a prefetch.
L1, L2 = 3, 2
INT64_BYTES = 8

#: Tiles up to this height address all rows of A from one pointer; taller ones have one pointer per 8 rows.
ROWS_OF_ONE_POINTER = 14
ROWS_PER_POINTER = 8

#: A known depth is unrolled to about this many multiply-adds per iteration, so that the loop's own
#: instructions are negligible; with more, LLVM hoists loads and spills accumulators.
UNROLLED_FMAS = 32

#: Two steps of a whole tile share an iteration where one has at most so many multiply-adds. A step of 12
#: has 20 instructions, and the loop 5 more: a core that issues 4 a cycle and multiplies twice is kept from
#: its 6 cycles by them (llvm-mca for Haswell: 96 % of the multiplies' bound, 100 % by twos).
PAIRED_FMAS = 16
#: Instructions of a loop besides those of its steps: two pointers, the counter, the jump.
LOOP_INSTRUCTIONS = 4

#: Steps of a matrix unit per iteration of its loop, so that the loop's own instructions leave the reorder
#: window to operands that are being loaded.
UNIT_UNROLL = 4

#: A product with fewer multiply-adds than this is written without any loop.
STRAIGHT_FMAS = 256

#: With fewer free registers than this, besides accumulators and operands, unrolled loads spill accumulators.
FREE_REGISTERS = 4


class RowPointers(NamedTuple):
    """Pointers that advance with the depth, and for each row of A its pointer and byte offset."""

    bases: list[Value]
    rows: list[tuple[int, Value]]


class _DepthLoop(NamedTuple):
    """The loop over one product: the part and its call, depths in steps of the instruction.

    With `fetch`, each step prefetches a row of B.
    """

    f: Function
    part: TilePart
    call: TileCall
    pointers: RowPointers
    masks: list[Value | None]
    fetch: Fetch | None


class DepthLoops(ABC):
    """All depths of one product, step by step; a subclass emits the step.

    Attributes
    ----------
    isa, instruction, tile, a, b, adjacent_a : as of `MicroKernel`.
    """

    isa: Isa
    instruction: TileFma
    tile: Tile
    a: Source
    b: Source
    adjacent_a: bool

    @abstractmethod
    def depth_step(
        self,
        f: Function,
        part: TilePart,
        rows: list[Value],
        b: Value,
        masks: list[Value | None],
        acc: list[Value],
        *,
        fresh: bool,
    ) -> list[Value]:
        """One step of the depth, given the addresses of each row of A and of the vectors of B.

        With `fresh`, zero accumulators become products instead of sums that start with zero.
        """

    def copy_b(self, f: Function, part: TilePart, b: Value, to: Value, masks: list[Value | None]) -> None:
        """Writes the vectors of B of a step, which it has loaded, to a panel."""
        raise NotImplementedError

    def step_bytes(self, f: Function, call: TileCall) -> tuple[Value, Value]:
        """Bytes of A and of B from one step of the depth to the next."""
        return f.bytes_of(call.a.depth, self.a.dtype.bits), f.bytes_of(call.b.depth, self.b.dtype.bits)

    def loop_depth(
        self,
        f: Function,
        part: TilePart,
        call: TileCall,
        masks: list[Value | None],
        acc: list[Value],
        *,
        prefetched: bool,
    ) -> list[Value]:
        """The accumulators after all depths; C is `prefetched` before the last ones."""
        walk = self.begin_walk(f, part, call, masks)
        steps, pointers = walk.call.depth, walk.pointers
        known = steps.known
        if known is not None:
            unroll = self._unroll(part, known)
            whole = known // unroll * unroll
            state = [*pointers.bases, call.b.pointer, *acc]
            if whole == unroll:
                whole, tail = 0, known
            else:
                state = self.loop_span(walk, (int64(0), int64(whole), unroll), state)
                tail = known - whole
            for _ in range(tail):
                state = self._step(walk, state)
            return state[len(pointers.bases) + 1 :]
        state = [*pointers.bases, call.b.pointer, *acc]
        if self.instruction.has_accumulators:
            # Never around a prefetch: in a nested loop, LLVM moves the accumulators of a unit out and back in
            # at every multiply.
            end = f.sub(steps, UNIT_UNROLL - 1)
            state = self.loop_span(walk, (int64(0), end, UNIT_UNROLL), state)
            done = f.mul(f.ashr(steps, int64(UNIT_UNROLL.bit_length() - 1)), UNIT_UNROLL)
            state = self.loop_span(walk, (done, steps, 1), state)
        elif not prefetched:
            state = self.loop_span(walk, (int64(0), steps, 1), state)
        else:
            state = self._loop_around_prefetch(walk, state)
        return state[len(pointers.bases) + 1 :]

    def begin_walk(
        self, f: Function, part: TilePart, call: TileCall, masks: list[Value | None]
    ) -> _DepthLoop:
        """The loop over the depth of a call, whose depth becomes one in steps."""
        steps = call.depth if self.instruction.k == 1 else f.ceildiv(call.depth, int64(self.instruction.k))
        return self._depth_loop(f, part, call._replace(depth=steps), masks)

    def loop_rest(
        self, f: Function, part: TilePart, call: TileCall, span: tuple[Value, Value], state: list[Value]
    ) -> list[Value]:
        """Steps that another loop has left: pointers of A and of B, and accumulators, after them."""
        walk = self._depth_loop(f, part, call, [None] * len(part.widths))
        return self.loop_span(walk, (*span, 1), state)

    def _depth_loop(
        self, f: Function, part: TilePart, call: TileCall, masks: list[Value | None]
    ) -> _DepthLoop:
        fetch = self.fetch_of(f, part, call) if call.fetch is None else call.fetch
        pointers = self._row_pointers(f, call, part.rows)
        others = (call.ahead, call.copied)
        pointers.bases.extend(one.pointer for one in others if one is not None)
        return _DepthLoop(f, part, call, pointers, masks, fetch)

    def _unroll(self, part: TilePart, depth: int) -> int:
        """Depths unrolled per iteration; one if few registers are free for early loads."""
        free = self.isa.vector_registers - part.fmas - len(part.widths) - 1
        if free < FREE_REGISTERS:
            return 1
        if part.fmas * depth <= STRAIGHT_FMAS:
            return depth
        return max(1, min(depth, round(UNROLLED_FMAS / part.fmas)))

    def _loop_around_prefetch(self, walk: _DepthLoop, state: list[Value]) -> list[Value]:
        """Splits the depth in two, the last `PREFETCH_DEPTH` steps after the prefetch of C."""
        f, call = walk.f, walk.call
        before = f.maximum(f.sub(call.depth, PREFETCH_DEPTH), int64(0))
        with f.carried_loop(int64(0), int64(2), int64(1), state, "half") as (half, values, advance):
            first = f.icmp("==", half, 0)
            begin = f.select(first, int64(0), before)
            end = f.select(first, before, call.depth)
            with f.when(f.not_(first)):
                self.prefetch_rows(f, walk.part, call)
            advance(self.loop_span(walk, (begin, end, 1), list(values)))
        return advance.results

    def loop_span(self, walk: _DepthLoop, span: tuple[Value, Value, int], state: list[Value]) -> list[Value]:
        """Steps from one to another, so many an iteration: pointers and accumulators after them."""
        begin, end, unroll = span
        with walk.f.carried_loop(begin, end, int64(unroll), state, "depth") as (_, values, advance):
            inner = self._separate(walk, list(values))
            for _ in range(unroll):
                inner = self._step(walk, inner)
            advance(inner)
        return advance.results

    def loop_pairs(self, walk: _DepthLoop, span: tuple[Value, Value], state: list[Value]) -> list[Value]:
        """Steps from an even one to another, by twos where steps are short; the last one may be alone."""
        begin, end = span
        if not self._has_short_steps(walk):
            return self.loop_span(walk, (begin, end, 1), state)
        f = walk.f
        with f.carried_loop(begin, f.and_(end, int64(-2)), int64(2), state, "depth") as (_, values, advance):
            between = self._apart(walk, self._step(walk, list(values)))
            advance(self._step(walk, between))
        with f.once_if(f.icmp("!=", f.and_(end, int64(1)), 0), advance.results) as (values, advance):
            advance(self._step(walk, list(values)))
        return advance.results

    def _apart(self, walk: _DepthLoop, state: list[Value]) -> list[Value]:
        """Pointers in the middle of an iteration, whose rows of A have the same offsets as at its start.

        LLVM would rather keep the sums of an unknown stride and each offset, for 6 rows more registers than
        x86 has, and load some of them in the loop. It doesn't see through `freeze`. (Were B's
        pointer frozen too, the loop would be an instruction longer.)
        """
        a_bytes, _ = self.step_bytes(walk.f, walk.call)
        return state if a_bytes.known is not None else self._hidden(walk, state)

    def _separate(self, walk: _DepthLoop, state: list[Value]) -> list[Value]:
        """Pointers at the start of an iteration, where A has several: LLVM must not merge them.

        It would make them one pointer and as many offsets as a tile has rows, most of them on the stack. Of a
        known depth it would do the opposite with one pointer: a pointer for each row, where x86 has no
        registers for them.
        """
        # Elsewhere a pointer for each row costs nothing, and saves additions where steps are unrolled.
        by_row = self.isa.folds_loads and walk.call.depth.known is not None
        return self._hidden(walk, state) if by_row or len(walk.pointers.bases) > 1 else state

    @staticmethod
    def _hidden(walk: _DepthLoop, state: list[Value]) -> list[Value]:
        """The state with pointers of A whose origin LLVM does not see."""
        groups = len(walk.pointers.bases)
        return [*map(walk.f.freeze, state[:groups]), *state[groups:]]

    def _has_short_steps(self, walk: _DepthLoop) -> bool:
        """Whether a step of a part is worth its code twice: whole tiles are, edges are rarely run.

        Not where a multiply needs a register of its own before the sum: two steps at once would spill.
        """
        part = walk.part
        whole = part.rows == self.tile.mr and not part.masked
        return whole and self.isa.fused and (part.fmas <= PAIRED_FMAS or self._fills_half_of_the_issue(walk))

    def _fills_half_of_the_issue(self, walk: _DepthLoop) -> bool:
        """Whether single steps are more instructions than half of what a core issues in their cycles.

        The other half is another thread's. A step of 12x32 has 38 for 12 cycles, of which a core of six a
        cycle issues 36 (docs/decisions/065-busy-siblings.md). Only if A's rows are at distances known at run
        time: LLVM moves up loads from known places, for which so many accumulators leave no registers.
        """
        part = walk.part
        if self.adjacent_a or walk.call.a.lane.known is not None:
            return False
        instructions = part.fmas + part.rows + len(part.widths) + LOOP_INSTRUCTIONS
        issued = self.isa.issue_per_cycle / 2 * part.fmas / self.isa.rate(self.instruction)
        return 0 < issued < instructions

    def _step(self, walk: _DepthLoop, state: list[Value]) -> list[Value]:
        """One step of the depth, and the pointers of the next."""
        f, pointers = walk.f, walk.pointers
        groups = len(pointers.bases)
        bases, b, acc = state[:groups], state[groups], state[groups + 1 :]
        rows = [f.at(bases[group], step) for group, step in pointers.rows]
        if walk.fetch is not None:
            self._prefetch_b(walk, walk.fetch, b)
        following = self.depth_step(f, walk.part, rows, b, walk.masks, acc, fresh=walk.call.update.added)
        a_bytes, b_bytes = self.step_bytes(f, walk.call)
        moves = [a_bytes] * groups
        if walk.call.copied is not None:
            step = walk.call.copied.step
            moves[-1] = int64(step)
            self.copy_b(f, walk.part, b, bases[-1], walk.masks)
        elif walk.call.ahead is not None:
            step = walk.call.ahead.step
            moves[-1] = int64(step)
            for line in range(0, step, FETCHED_TOGETHER):
                f.prefetch(f.at(bases[-1], line), write=False, locality=L2)
        return [*map(f.at, bases, moves), f.at(b, b_bytes), *following]

    def fetches(self, fmas: int) -> bool:
        """Whether tiles of so many multiply-adds a step have time to prefetch a row of B."""
        return not self.b.packed and self.instruction.k == 1 and self.isa.fetches(fmas)

    def fetch_of(self, f: Function, part: TilePart, call: TileCall) -> Fetch | None:
        """Which rows of B a part prefetches, if any."""
        asked = call.far or call.first_read is not None
        if not asked or call.depth.known is not None or not self.fetches(part.fmas):
            return None
        row_bytes, width = self.step_bytes(f, call)[1], sum(part.widths) * self.b.dtype.size
        rate = self.isa.rate(self.instruction) / part.fmas
        near, early = (
            int64(min(ceil(cycles * rate), ROWS_AHEAD)) for cycles in (CYCLES_AHEAD, CROWDED_CYCLES_AHEAD)
        )
        if row_bytes.known is not None:  # of a panel, behind which is the next one
            return Fetch(call.first_read, f.mul(row_bytes, near))
        span, rows = f.mul(row_bytes, call.depth), near
        far = into_l2 = f.icmp("<", int64(FAR_BYTES), span)
        if width > CACHE_LINE:
            crowded = f.icmp("==", f.and_(row_bytes, int64(CROWDED_BYTES - 1)), 0)
            rows = f.select(far, near, f.select(crowded, early, near))
            into_l2 = f.or_(crowded, far)
        ahead = f.freeze(f.mul(row_bytes, rows))
        turn = f.ptrtoint(f.at(call.b.pointer, f.sub(span, ahead)))
        slots = f.alloca(INT64, len(FetchSlot), INT64_BYTES)
        values = {
            FetchSlot.INTO_L2: f.zext(into_l2, INT64),
            FetchSlot.TURN: turn,
            FetchSlot.BESIDE: f.sub(f.add(ahead, width), span),
        }
        for place, value in values.items():
            f.store(value, f.at(slots, place.value * INT64_BYTES), INT64_BYTES)
        return Fetch(call.first_read, ahead, slots)

    def _prefetch_b(self, walk: _DepthLoop, fetch: Fetch, b: Value) -> None:
        """Prefetches a later row of B, up to the line in which it ends if it does not begin with a line."""
        f, size = walk.f, sum(walk.part.widths) * self.b.dtype.size
        places = [*range(0, size, CACHE_LINE)]
        if not walk.call.far or walk.call.copied is not None:  # rows of panels are whole lines
            places.append(size - 1)

        def slot(place: FetchSlot) -> Value:
            assert fetch.slots is not None
            return f.reload(INT64, f.at(fetch.slots, place.value * INT64_BYTES), INT64_BYTES)

        def into(locality: int) -> None:
            ahead = fetch.ahead
            if fetch.slots is not None and locality == L2:
                turn, beside = slot(FetchSlot.TURN), slot(FetchSlot.BESIDE)
                ahead = f.select(f.icmp("<", f.ptrtoint(b), turn), ahead, beside)
            later = f.at(b, ahead)
            for place in places:
                f.prefetch(f.at(later, place), write=False, locality=locality)

        with nullcontext() if fetch.first_read is None else f.when(fetch.first_read):
            if fetch.slots is None or walk.call.copied is not None:
                into(L1 if fetch.slots is None else L2)
                return
            with f.branch(f.icmp("!=", slot(FetchSlot.INTO_L2), 0)) as (then, otherwise):
                with then:
                    into(L2)
                with otherwise:
                    into(L1)

    def _row_pointers(self, f: Function, call: TileCall, rows: int) -> RowPointers:
        """Addresses of the rows of A: frozen odd multiples of the stride, times 1, 2, 4 or 8.

        x86 scales an index register for free, so 12 rows need 6 registers and no additions in the
        loop; LLVM alone would compute the addresses by a chain of 12 dependent additions. Taller tiles would
        run out of registers: they have one base pointer for every 8 rows instead.
        """
        bits = self.a.dtype.bits
        if self.adjacent_a or call.a.lane.known is not None:
            lane = self.instruction.interleave_a if self.adjacent_a else call.a.lane.known
            assert lane is not None
            known = [(0, int64(row * lane * bits // 8)) for row in range(rows)]
            if call.last_row is not None:
                known[-1] = (0, _last_row(f, call.last_row, rows, known[-2:]))
            return RowPointers([call.a.pointer], known)
        stride = f.bytes_of(call.a.lane, bits)
        together = rows if rows <= ROWS_OF_ONE_POINTER else ROWS_PER_POINTER
        offsets: dict[int, Value] = {0: int64(0)}
        for row in range(1, together):
            shift = min((row & -row).bit_length() - 1, 3)
            odd = offsets.get(row >> shift)
            if odd is not None and shift:
                offsets[row] = f.shl(odd, int64(shift))
            else:
                offsets[row] = f.freeze(f.mul(stride, row))
        firsts = range(together, rows, together)
        bases = [call.a.pointer, *(f.at(call.a.pointer, f.freeze(f.mul(stride, first))) for first in firsts)]
        found = [(row // together, offsets[row % together]) for row in range(rows)]
        if call.last_row is not None:
            found[-1] = (found[-1][0], _last_row(f, call.last_row, rows, found[-2:]))
        return RowPointers(bases, found)

    def prefetch_rows(self, f: Function, part: TilePart, call: TileCall) -> None:
        """Prefetches the rows of C, or what is read next."""
        place = call.prefetch
        assert place is not None
        row_bytes = f.mul(place.row, place.size)
        for row in range(part.rows):
            start = f.at(place.pointer, f.mul(row_bytes, row))
            for line in range(0, self.tile.nr * place.size, CACHE_LINE):
                f.prefetch(f.at(start, line), write=True, locality=3)


def _last_row(f: Function, last: Value, rows: int, offsets: list[tuple[int, Value]]) -> Value:
    """The offset of the last of some rows, or of the one before, from the pointer they have in common.

    It is one of both to LLVM, which would multiply the distance of rows by a number of the row in each step.
    """
    (group, before), (own_group, own) = offsets
    assert group == own_group, "two rows with one pointer"
    return f.freeze(f.select(f.icmp("==", last, rows - 1), own, before))
