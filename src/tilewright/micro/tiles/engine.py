"""Tiles of matrix units: a grid of accumulators (Kuzma et al. 2023, Algorithm 2)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from math import gcd

from tilewright.ir.nodes import Tile
from tilewright.llvm.build import Function
from tilewright.llvm.values import Value, constant, int64, zero
from tilewright.machine.isa import Edge, Isa, TileFma
from tilewright.machine.machine import CACHE_LINE
from tilewright.micro.tiles.chains import Strip, Totals
from tilewright.micro.tiles.depth import L2, UNIT_UNROLL
from tilewright.micro.tiles.kernel import MicroKernel
from tilewright.micro.tiles.operands import SCALE, GroupCall, Source, TileCall, TilePart
from tilewright.micro.units.instructions import find_multiply
from tilewright.spec.dtype import DType

#: Sets of bias sums, used by successive steps in turn: an addition takes 6 cycles on POWER10, a step 4.
BIAS_SETS = 2

#: Steps of the depth by which few rows prefetch B, into L2: L1 has too few lines on their way for that and
#: the loads of tiles. One row reads 100 MB of weights at 0.78 of the rate of vectors so; 0.70 if into L1.
PANEL_STEPS_AHEAD = 8

#: Vectors of sums that are read from a unit's own accumulators before they are stored: half of the registers;
#: the others hold as many vectors of C.
STRIP_VECTORS = 16

#: Vectors of sums in one iteration of the loop over rows that a unit has stored.
LOOP_VECTORS = 4


class EngineKernel(MicroKernel):
    """acc[i, j] += A[i] · B[j] for m rows and n columns at a time, both from packed panels.

    Each operand is loaded once per step: those of A serve a row of the grid, those of B a column.
    Accumulators are read out once, after the loop over the depth. Units compute whole operations: a partial
    tile goes through a buffer, and its results beyond C are discarded.
    """

    chains = False

    def __init__(
        self,
        isa: Isa,
        instruction: TileFma,
        tile: Tile,
        operands: tuple[Source, Source],
        c: DType,
        *,
        adjacent_a: bool,
    ) -> None:
        assert adjacent_a, "operands of matrix units are packed"
        super().__init__(isa, instruction, tile, operands, c, adjacent_a=adjacent_a)
        self.unit = find_multiply(isa, instruction)
        # Vectors of C are as wide as the rows of accumulators.
        self.lanes = max(self.lanes, instruction.n)
        self.vectors = -(-tile.nr // self.lanes)
        self.edge = Edge.SPILL
        self.walks_ahead = self.unit.ahead > 0
        self._resident: list[Value] = []
        self._far = False

    @property
    def attributes(self) -> str | None:
        """The attributes that the unit needs."""
        return self.unit.attributes

    def _grid(self, part: TilePart) -> tuple[int, int]:
        return part.rows // self.instruction.m, sum(part.widths) // self.instruction.n

    def _biases(self, part: TilePart) -> int:
        """The number of bias sums: see `Multiply.bias`."""
        down, across = self._grid(part)
        return {None: 0, "row": down, "column": across}[self.unit.bias]

    @property
    def configured(self) -> bool:
        """Whether the unit has a configuration of the thread."""
        return self.unit.configured

    def configure(self, f: Function) -> None:
        """Before the first tile of any number."""
        self.unit.configure(f)

    def release(self, f: Function) -> None:
        """After the last tile."""
        self.unit.release(f)

    def enter(self, f: Function) -> None:
        """Begins the grid of a whole panel, also where a part of it is walked."""
        one = self.instruction
        self.unit.begin(f, self.tile.mr // one.m, self.tile.nr // one.n)

    def leave(self, f: Function) -> None:
        """Leaves the unit as it was found."""
        self.unit.end(f)

    def begin(self, f: Function, part: TilePart) -> list[Value]:
        """The zeroed grid, and the bias sums."""
        down, across = self._grid(part)
        grid = [self.unit.zero(f, i, j) for i in range(down) for j in range(across)]
        if self.unit.resident:
            self._resident, grid = grid, []
        return [*grid, *(self.unit.bias_zero(f) for _ in range(self._biases(part)))]

    def depth_step(
        self,
        f: Function,
        part: TilePart,
        rows: list[Value],
        b: Value,
        masks: list[Value | None],  # noqa: ARG002
        acc: list[Value],
        *,
        fresh: bool,  # noqa: ARG002
    ) -> list[Value]:
        """One instruction for each accumulator of the grid."""
        one, unit = self.instruction, self.unit
        down, across = self._grid(part)
        if unit.resident and (self._far or part.rows < self.tile.mr):
            self._prefetch_panel(f, b)
        count = 0 if unit.resident else down * across
        grid = list(self._resident if unit.resident else acc[:count])
        biases = list(acc[count:])
        b_bytes = one.b.bytes(one.n * one.kr)
        operands_b = [unit.load_b(f, f.at(b, j * b_bytes), j) for j in range(across)]
        if unit.bias == "column":
            pairs = zip(operands_b, biases, strict=True)
            biases = [unit.bias_multiply(f, operand, total) for operand, total in pairs]
        for i in range(down):
            a = unit.load_a(f, rows[i * one.m], i)
            if unit.bias == "row":
                biases[i] = unit.bias_multiply(f, a, biases[i])
            for j, operand in enumerate(operands_b):
                grid[i * across + j] = unit.multiply(f, a, operand, grid[i * across + j])
        return [*grid[:count], *biases]

    def fetches(self, fmas: int) -> bool:  # noqa: ARG002
        """Whether the first tile of a panel prefetches it: steps on accumulators of the unit have time."""
        return self.unit.resident

    def fetch_of(self, f: Function, part: TilePart, call: TileCall) -> None:
        """Steps prefetch panels themselves."""

    def _prefetch_panel(self, f: Function, b: Value) -> None:
        """Prefetches B for a later step: few rows read each panel once, and its first tile from far away."""
        step = self.instruction.b.bytes(self.tile.nr * self.instruction.k)
        later = f.at(b, PANEL_STEPS_AHEAD * step)
        for line in range(0, step, CACHE_LINE):
            f.prefetch(f.at(later, line), write=False, locality=L2)

    # --- operands loaded ahead ----------------------------------------------------------------

    def walk_ahead(self, f: Function, part: TilePart, call: TileCall, acc: list[Value]) -> list[Value]:
        """Software pipelining: loads the operands of a step while those of previous steps are multiplied.

        before: load 0, multiply 0, load 1, multiply 1, ...
        after:  load 0, load 1, load 2 and multiply 0, load 3 and multiply 1, ..., multiply n - 1

        The loop ends before it would load beyond the panels. If the depth is known, the last steps multiply
        the operands that are loaded; else a plain loop does them, and loads its operands again.
        """
        steps, count = self._count_steps(f, call.depth), len(acc)
        call = call._replace(depth=steps)
        biases = acc[count - self._biases(part) :]
        ahead = self.unit.ahead if steps.known is None else min(self.unit.ahead, steps.known)
        under_way = [
            operand
            for step in range(ahead)
            for run in self._loads(f, part, *self._place(f, call, step))
            for operand in run
        ]
        acc = [*acc, *(self.unit.bias_zero(f) for _ in biases * (BIAS_SETS - 1))]
        state, turns = [call.a.pointer, call.b.pointer, *acc, *under_way], self._turns(f, steps)
        if turns.known != 0:
            with f.carried_loop(int64(0), turns, int64(1), state, "depth") as (_, values, advance):
                advance(self._steps(f, part, call, list(values), (UNIT_UNROLL, UNIT_UNROLL)))
            state = advance.results
        done = f.mul(turns, UNIT_UNROLL)
        if done.known is not None and steps.known is not None:
            rest = steps.known - done.known
            state = self._steps(f, part, call, state, (rest, rest - ahead))
        a, b, *acc = state[: 2 + len(acc)]
        acc = self._added_biases(f, acc, count, len(biases))
        if steps.known is None:
            _, _, *acc = self.loop_rest(f, part, call, (done, steps), [a, b, *acc])
        return acc

    def _count_steps(self, f: Function, depth: Value) -> Value:
        """The number of steps of a depth, including a partial last one."""
        k = self.instruction.k
        return f.ceildiv(depth, int64(k)) if depth.known is None else int64(-(-depth.known // k))

    def _turns(self, f: Function, steps: Value) -> Value:
        """Iterations of the unrolled loop that load nothing beyond the last step."""
        if steps.known is not None:
            turns = max(0, steps.known - self.unit.ahead) // UNIT_UNROLL
            return int64(turns if turns > 1 else 0)
        most = f.maximum(f.sub(steps, self.unit.ahead), int64(0))
        return f.ashr(most, int64(UNIT_UNROLL.bit_length() - 1))

    def _place(self, f: Function, call: TileCall, step: int) -> tuple[Value, Value]:
        """Addresses of the operands of one of the first steps; those of step 0 if there is no such step."""
        found = []
        for pointer, depth, bits in (
            (call.a.pointer, call.a.depth, self.a.dtype.bits),
            (call.b.pointer, call.b.depth, self.b.dtype.bits),
        ):
            offset = f.bytes_of(depth, step * bits)
            if step and call.depth.known is None:
                offset = f.select(f.icmp(">", call.depth, step), offset, int64(0))
            found.append(f.at(pointer, offset))
        return found[0], found[1]

    def _loads(self, f: Function, part: TilePart, a: Value, b: Value) -> Iterator[list[Value]]:
        """The operands of a step, those of A first; each run of them is loaded when it is requested."""
        (down, across), unit, one = self._grid(part), self.unit, self.instruction
        a_bytes, b_bytes = one.a.bytes(one.m * one.interleave_a), one.b.bytes(one.n * one.kr)
        for i in range(0, down, unit.together):
            yield unit.load_run_a(f, f.at(a, i * a_bytes), range(i, min(i + unit.together, down)))
        for j in range(0, across, unit.together):
            yield unit.load_run_b(f, f.at(b, j * b_bytes), range(j, min(j + unit.together, across)))

    def _steps(
        self, f: Function, part: TilePart, call: TileCall, state: list[Value], counts: tuple[int, int]
    ) -> list[Value]:
        """Emits `counts[0]` steps, of which `counts[1]` load; returns the state of the loop after them."""
        a_bytes, b_bytes = self.step_bytes(f, call)
        (steps, loading), (down, across) = counts, self._grid(part)
        a, b, *rest = state
        sums = down * across + BIAS_SETS * self._biases(part)
        acc, under_way = rest[:sums], rest[sums:]
        for step in range(steps):
            loads: Iterator[list[Value]] = iter(())
            if step < loading:
                later = step + self.unit.ahead
                loads = self._loads(f, part, f.at(a, f.mul(a_bytes, later)), f.at(b, f.mul(b_bytes, later)))
            operands, under_way = under_way[: down + across], under_way[down + across :]
            acc, loaded = self._step_loading(f, part, acc, operands, loads)
            under_way += loaded
        return [f.at(a, f.mul(a_bytes, steps)), f.at(b, f.mul(b_bytes, steps)), *acc, *under_way]

    def _step_loading(
        self,
        f: Function,
        part: TilePart,
        acc: list[Value],
        operands: list[Value],
        loads: Iterator[list[Value]],
    ) -> tuple[list[Value], list[Value]]:
        """One step, the loads of a later one spread over its multiplies: the sums and the loaded operands.

        The bias sums that the step used are moved behind the others.
        """
        unit, (down, across) = self.unit, self._grid(part)
        grid, biases = acc[: down * across], acc[down * across :]
        left, right = operands[:down], operands[down:]
        runs = -(-down // unit.together) - (-across // unit.together)
        every = max(1, down * across // runs)
        loaded: list[Value] = []
        for number, total in enumerate(grid):
            if number % every == 0:
                loaded += next(loads, [])
            grid[number] = unit.multiply(f, left[number // across], right[number % across], total)
        for run in loads:
            loaded += run
        biased = {None: [], "row": left, "column": right}[unit.bias]
        pairs = zip(biased, biases, strict=False)
        taken = [unit.bias_multiply(f, operand, total) for operand, total in pairs]
        return [*grid, *biases[len(taken) :], *taken], loaded

    def _added_biases(self, f: Function, acc: list[Value], count: int, biases: int) -> list[Value]:
        """The accumulators, with the sets of bias sums added up."""
        if not biases:
            return acc
        first = count - biases
        for begin in range(count, len(acc), biases):
            pairs = zip(acc[first:count], acc[begin : begin + biases], strict=True)
            acc[first:count] = [f.plus(*pair) for pair in pairs]
        return acc[:count]

    # --- the way to C -------------------------------------------------------------------------

    def compute(self, f: Function, part: TilePart, call: TileCall) -> None:
        """Stores sums to C where they may go there unchanged; else to a buffer, and from there in a loop.

        Vectors of all rows in a straight line would be 13 KiB of code for a tile of AMX, and cost more time
        than 64 depths do (docs/decisions/067-ends-of-amx-tiles.md).
        """
        self._far = call.far
        if not self.unit.stores:
            super().compute(f, part, call)
            return
        if call.groups is not None:
            self._compute_groups(f, part, call, call.groups)
            return
        own = Totals.of(f, part, self.acc, self.tile.nr, in_loops=True)
        totals, done = own, None
        for condition, place, row in self._destinations(f, call):
            step = f.mul(row, self.acc.size)
            if condition is None:
                self.close_all(f, part, call, [], Totals(part, self.acc, place, step))
                return
            pointer = f.select(condition, place, totals.pointer)
            totals = Totals(part, self.acc, pointer, f.select(condition, step, totals.row_bytes))
            done = condition if done is None else f.or_(done, condition)
        self.close_all(f, part, call, [], totals)
        if done is None:
            self._end_rows(f, part, call, own)
        else:
            with f.when(f.not_(done)):
                self._end_rows(f, part, call, own)

    def _compute_groups(self, f: Function, part: TilePart, call: TileCall, groups: GroupCall) -> None:
        """The sums of groups of depths, times the scales of their columns; the last group goes on to C.

        before: the sums of each group into vectors, straight, and into totals; all totals, straight, to C
        after:  the sums of each group to a buffer; rows of it, in a loop, into totals; of the last one to C
        """
        totals, sums = (Totals.of(f, part, self.acc, self.tile.nr, in_loops=True) for _ in range(2))
        last = f.mul(f.sub(f.ceildiv(call.depth, groups.depth), 1), groups.depth)
        last = f.maximum(last, int64(0))
        state = groups.pointers(call)

        def scaled(row: Value, count: int, scale: Value, begun: Value) -> list[Value]:
            """Totals of some rows with the sums of one more group; `begun`: there are some before."""
            added = sums.load(f, row, count)
            with f.once_if(begun, [zero(value.type) for value in added]) as (_, advance):
                advance(totals.load(f, row, count))
            places = groups.places(f, scale, part, self.acc.size) * count
            factors = [f.load(value.type, at, self.acc.size) for value, at in zip(added, places, strict=True)]
            trios = zip(factors, added, advance.results, strict=True)
            return [f.multiply_add(*trio, fused=self.isa.fused) for trio in trios]

        with f.carried_loop(int64(0), last, groups.depth, state, "group") as (first, values, advance):
            self.close_all(f, part, groups.one(f, call, first, values), [], sums)
            with self._rows_together(f, part) as (row, count):
                totals.store(f, row, scaled(row, count, values[SCALE], f.icmp(">", first, 0)))
            advance(self.next_group(f, call, groups, values))
        pointers = advance.results
        self.close_all(f, part, groups.one(f, call, last, pointers), [], sums)
        with self._rows_together(f, part) as (row, count):
            found = scaled(row, count, pointers[SCALE], f.icmp(">", last, 0))
            strip = part._replace(rows=count)
            self.end(f, strip, self.below(f, call, row), found, [None] * len(part.widths))

    def _destinations(self, f: Function, call: TileCall) -> Iterator[tuple[Value | None, Value, Value]]:
        """Where sums may go unchanged: on which condition (None: always), the place, elements of a row."""
        update, carry = call.update, call.carry
        if carry is not None:
            yield f.and_(carry.first, f.not_(carry.last)), carry.sums, carry.row
        if self.c != self.acc or call.steps is not None or update.added:
            return
        tests = [] if carry is None else [carry.first, carry.last]
        if update.alpha is not None:
            tests.append(f.not_(f.not_equal(update.alpha, constant(self.acc, 1))))
        if update.beta is not None:
            tests.append(f.not_(f.not_equal(update.beta, zero(self.element))))
        yield reduce(f.and_, tests) if tests else None, call.c.pointer, call.c.row

    def _close(
        self, f: Function, part: TilePart, acc: list[Value], totals: Totals, later: Value | None
    ) -> None:
        """A unit that stores its sums stores later ones beside the totals, from where they are added."""
        if not self.unit.stores:
            super()._close(f, part, acc, totals, later)
        elif later is None:
            self._store_grid(f, part, totals)
        else:
            with f.branch(later) as (adding, beginning):
                with beginning:
                    self._store_grid(f, part, totals)
                with adding:
                    more = Totals.of(f, part, self.acc, self.tile.nr, in_loops=True)
                    self._store_grid(f, part, more)
                    with f.loop(int64(0), int64(part.rows), int64(1), "row") as row:
                        pairs = zip(totals.load(f, row, 1), more.load(f, row, 1), strict=True)
                        totals.store(f, row, [f.plus(*pair) for pair in pairs])

    def _store_grid(self, f: Function, part: TilePart, totals: Totals) -> None:
        """Stores every accumulator."""
        m, (down, across) = self.instruction.m, self._grid(part)
        for i in range(down):
            place = f.at(totals.pointer, f.mul(totals.row_bytes, i * m))
            accs = self._resident[i * across : (i + 1) * across]
            self.unit.store(f, accs, place, totals.row_bytes)

    def _end_rows(self, f: Function, part: TilePart, call: TileCall, sums: Totals) -> None:
        """Sums on their way to C, some rows at a time."""
        with self._rows_together(f, part) as (row, count):
            strip, values = part._replace(rows=count), sums.load(f, row, count)
            self.end(f, strip, self.below(f, call, row), values, [None] * len(part.widths))

    @staticmethod
    @contextmanager
    def _rows_together(f: Function, part: TilePart) -> Iterator[tuple[Value, int]]:
        """A loop over the rows of a part: the first of an iteration, and how many it has."""
        together = gcd(part.rows, max(1, LOOP_VECTORS // len(part.widths)))
        with f.loop(int64(0), int64(part.rows), int64(together), "row") as row:
            yield row, together

    def strips(self, f: Function, part: TilePart, acc: list[Value]) -> Iterator[Strip]:
        """Accumulators inside a unit are read in strips of as many rows as fit in vector registers."""
        if not self.unit.resident:
            yield from super().strips(f, part, acc)
            return
        m, (down, across) = self.instruction.m, self._grid(part)
        together = min(m, max(1, STRIP_VECTORS // len(part.widths)))
        for i in range(down):
            rows = iter(self.unit.rows(f, self._resident[i * across : (i + 1) * across]))
            for first in range(0, m, together):
                count = min(together, m - first)
                yield i * m + first, count, [vector for _ in range(count) for vector in next(rows)]

    def finish(self, f: Function, part: TilePart, acc: list[Value]) -> list[Value]:
        """Every row of every accumulator, less the bias sums."""
        unit, (down, across) = self.unit, self._grid(part)
        grid, biases = acc[: down * across], acc[down * across :]
        extra = [unit.bias_rows(f, total) for total in biases]
        found: list[Value] = []
        for i in range(down):
            for number, vectors in enumerate(unit.rows(f, grid[i * across : (i + 1) * across])):
                for j, vector in enumerate(vectors):
                    taken_off = extra[i if unit.bias == "row" else j][number] if extra else None
                    found.append(vector if taken_off is None else f.minus(vector, taken_off))
        return found
