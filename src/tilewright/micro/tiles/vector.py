"""Tiles of vector units: one element of A, or a word of adjacent depths, times a vector of B."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from tilewright.ir.nodes import Tile
from tilewright.llvm.build import Function
from tilewright.llvm.values import Value, int64, memory_type, vector_of, vector_type, zero
from tilewright.machine.isa import Broadcast, Isa, TileFma
from tilewright.micro.packing.transpose import interleave
from tilewright.micro.tiles.kernel import MicroKernel
from tilewright.micro.tiles.operands import Source, TileCall, TilePart
from tilewright.micro.units.instructions import find_multiply
from tilewright.micro.units.multiply import VectorMultiply
from tilewright.spec.dtype import DType

#: So many vector registers are few.
FEW_REGISTERS = 16

#: Registers for B where those of A hold several depths: AArch64 loads them in pairs (ldp).
PAIR_OF_B = 2


class VectorKernel(MicroKernel):
    """acc[row] += splat(A[row, p]) · B[p, vector].

    Elements that are read in place are converted to the instruction's types as they are loaded.
    """

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
        super().__init__(isa, instruction, tile, operands, c, adjacent_a=adjacent_a)
        multiply = find_multiply(isa, instruction)
        assert isinstance(multiply, VectorMultiply)
        self.unit = multiply
        self.repeats_rows = not adjacent_a
        self._b_row: Value | None = None

    def emit_part(self, f: Function, part: TilePart, call: TileCall) -> None:
        """Writes one straight-line tile at the current position."""
        self._b_row = call.b.row
        super().emit_part(f, part, call)

    def begin(self, f: Function, part: TilePart) -> list[Value]:  # noqa: ARG002
        """Zero vectors for every row, and for the bias sums."""
        rows = part.rows + self.unit.biased
        return [zero(vector_type(self.acc, width)) for _ in range(rows) for width in part.widths]

    def finish(self, f: Function, part: TilePart, acc: list[Value]) -> list[Value]:
        """The sums, less the bias."""
        if not self.unit.biased:
            return acc
        count = len(part.widths)
        sums, bias = acc[:-count], acc[-count:]
        return [f.minus(value, bias[index % count]) for index, value in enumerate(sums)]

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
        """One word of A for each row times the vectors of B."""
        unit, widths = self.unit, part.widths
        step_bytes = self.b.dtype.size * (self.instruction.kr if self.b.packed else 1)
        vectors_b = [
            self.load_b(f, f.at(b, sum(widths[:v]) * step_bytes), width, masks[v])
            for v, width in enumerate(widths)
        ]
        splats = self.load_a(f, rows, max(widths))
        # LLVM more or less keeps to the order of the text: with all splats first, steps in pairs run out of
        # 16 registers; with each beside its multiply-adds, large tiles run out of more.
        operands: Iterable[Value] = splats if self.isa.vector_registers <= FEW_REGISTERS else [*splats]
        if unit.biased:
            operands = chain(operands, (unit.biased_word(f, max(widths)),))
        following = list(acc)
        for row, a in enumerate(operands):
            for v, vector_b in enumerate(vectors_b):
                index = row * len(widths) + v
                narrow = unit.narrowed(f, a, widths[v])
                if fresh and acc[index] == zero(acc[index].type):
                    following[index] = unit.first(f, narrow, vector_b)
                else:
                    following[index] = unit.multiply(f, narrow, vector_b, acc[index])
        return following

    def copy_b(self, f: Function, part: TilePart, b: Value, to: Value, masks: list[Value | None]) -> None:
        """Writes the vectors of B of a step, which it has loaded, to a panel."""
        size = self.b.dtype.size
        for v, width in enumerate(part.widths):
            before = sum(part.widths[:v]) * size
            # Behind a store LLVM loads the next vector again. Were they kept until the sums are done, a step
            # would take 1.02 of its time.
            f.store(self.load_b(f, f.at(b, before), width, masks[v]), f.at(to, before), size)

    def holds_depths(self, part: TilePart, call: TileCall, depth: int) -> bool:
        """True if depths of A are adjacent, multiply-adds take a lane, and every row has a register."""
        return (
            self.isa.broadcast is Broadcast.LANE
            and call.a.depth.known == 1
            and not self.adjacent_a
            and self.instruction.k == 1
            and self.instruction.a == self.a.dtype
            and depth >= self.lanes
            and part.fmas + part.rows + PAIR_OF_B <= self.isa.vector_registers
        )

    def walk_held(
        self, f: Function, part: TilePart, call: TileCall, depth: int, acc: list[Value]
    ) -> list[Value]:
        """One iteration for as many depths as a vector has lanes."""
        stride = f.mul(call.a.lane, self.a.dtype.size)
        rows = [
            call.a.pointer,
            *(f.at(call.a.pointer, f.freeze(f.mul(stride, row))) for row in range(1, part.rows)),
        ]
        whole = depth // self.lanes * self.lanes
        state = [*rows, call.b.pointer, *acc]
        if whole > self.lanes:
            span = (int64(0), int64(whole), int64(self.lanes))
            with f.carried_loop(*span, state, "depth") as (_, values, advance):
                advance(self._held_step(f, part, call, self.lanes, list(values)))
            state = advance.results
        else:
            state = self._held_step(f, part, call, self.lanes, state)
        if depth > whole:
            state = self._held_step(f, part, call, depth - whole, state)
        return state[part.rows + 1 :]

    def _held_step(
        self, f: Function, part: TilePart, call: TileCall, count: int, state: list[Value]
    ) -> list[Value]:
        """`count` depths from one load of each row of A, vector of B by vector of B."""
        size_a, size_b, rows = self.a.dtype.size, self.b.dtype.size, part.rows
        bases, b, acc = state[:rows], state[rows], state[rows + 1 :]
        held = [f.load(vector_type(self.a.dtype, count), base, size_a) for base in bases]
        for lane in range(count):
            for v, width in enumerate(part.widths):
                vector_b = self.load_b(f, f.at(b, sum(part.widths[:v]) * size_b), width, None)
                for row, depths in enumerate(held):
                    index = row * len(part.widths) + v
                    a = f.shuffle(depths, depths, [lane] * width)
                    if call.update.added and acc[index] == zero(acc[index].type):
                        acc[index] = self.unit.first(f, a, vector_b)
                    else:
                        acc[index] = self.unit.multiply(f, a, vector_b, acc[index])
            b = f.at(b, f.mul(call.b.depth, size_b))
        return [*(f.at(base, count * size_a) for base in bases), b, *acc]

    def load_a(self, f: Function, pointers: list[Value], widest: int) -> Iterator[Value]:
        """A splat per row, loaded as it is asked for: by a broadcast, or as a lane where FMA takes lanes."""
        if not (self.adjacent_a and self.isa.broadcast is Broadcast.LANE):
            for pointer in pointers:
                yield f.splat(self.unit.prepare_a(f, self._word(f, pointer)), widest)
        elif self.a.dtype == self.instruction.a:
            yield from self.unit.load_lanes(f, pointers[0], len(pointers))
        else:
            yield from self._converted_lanes(f, pointers)

    def _converted_lanes(self, f: Function, pointers: list[Value]) -> list[Value]:
        """Adjacent rows of another type, converted a register at a time."""
        source, to = self.a.dtype, self.instruction.a
        splats: list[Value] = []
        while len(splats) < len(pointers):
            count = min(self.isa.lanes(to), len(pointers) - len(splats))
            several = f.load(vector_type(source, count), pointers[len(splats)], source.size)
            splats += self.unit.spread(f, self.convert(f, several, source, to))
        return splats

    def _word(self, f: Function, pointer: Value) -> Value:
        """The adjacent depths of one row in the instruction's type."""
        source, kr, to = self.a.dtype, self.instruction.kr, self.instruction.a
        if source == to:
            return f.load(self.unit.word, pointer, source.size)
        if kr == 1:
            return self.convert(f, f.load(memory_type(source), pointer, source.size), source, to)
        several = f.load(vector_type(source, kr), pointer, source.size)
        return f.bitcast(self.convert(f, several, source, to), self.unit.word)

    def load_b(self, f: Function, pointer: Value, width: int, mask: Value | None) -> Value:
        """One vector of B; masked lanes are not touched.

        They repeat the first element, so that they compute what a real column computes: zero times an
        infinity of A would raise the invalid flag.
        """
        size = self.b.dtype.size
        if self.b.packed:  # whole panels: lanes beyond the last column may be read
            return f.load(vector_of(self.unit.word, width), pointer, size)
        kind = vector_type(self.b.dtype, width)
        if self.instruction.kr > 1:
            return self._interleaved(f, pointer, width)
        if mask is None:
            value = f.load(kind, pointer, size)
        else:
            first = f.splat(f.load(memory_type(self.b.dtype), pointer, size), width)
            value = f.masked_load(kind, pointer, mask, size, first)
        return self.convert(f, value, self.b.dtype, self.instruction.b)

    def _interleaved(self, f: Function, pointer: Value, width: int) -> Value:
        """Adjacent columns of several rows of B, interleaved as in a packed panel."""
        assert self._b_row is not None, "steps of several depths need the distance of two"
        size, kind = self.b.dtype.size, vector_type(self.b.dtype, width)
        row = f.mul(self._b_row, size)
        runs = [f.load(kind, f.at(pointer, f.mul(row, q)), size) for q in range(self.instruction.kr)]
        converted = [self.convert(f, run, self.b.dtype, self.instruction.b) for run in runs]
        return f.bitcast(interleave(f, converted), vector_of(self.unit.word, width))
