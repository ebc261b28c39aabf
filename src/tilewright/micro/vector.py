"""Tiles of vector units: one element of A, or a word of adjacent depths, times a vector of B."""

from __future__ import annotations

from tilewright.ir.nodes import Tile
from tilewright.llvm.build import Function
from tilewright.llvm.values import Value, memory_type, vector_of, vector_type, zero
from tilewright.machine.isa import Broadcast, Isa, TileFma
from tilewright.micro.instructions import find_multiply
from tilewright.micro.kernel import MicroKernel, Part, Source
from tilewright.micro.multiply import VectorMultiply
from tilewright.spec.dtype import DType


class VectorKernel(MicroKernel):
    """acc[row] += splat(A[row, p]) · B[p, vector].

    Elements in place are converted to the instruction's types as they are loaded.
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

    def begin(self, f: Function, part: Part) -> list[Value]:
        rows = part.rows + self.unit.biased
        return [zero(vector_type(self.acc, width)) for _ in range(rows) for width in part.widths]

    def finish(self, f: Function, part: Part, acc: list[Value]) -> list[Value]:
        if not self.unit.biased:
            return acc
        count = len(part.widths)
        sums, bias = acc[:-count], acc[-count:]
        return [f.minus(value, bias[index % count]) for index, value in enumerate(sums)]

    def depth_step(
        self, f: Function, part: Part, rows: list[Value], b: Value, masks: list[Value | None], acc: list[Value],
        *, fresh: bool,
    ) -> list[Value]:  # fmt: skip
        unit, widths = self.unit, part.widths
        step_bytes = self.instruction.kr * self.b.dtype.size
        vectors_b = [
            self.load_b(f, f.at(b, sum(widths[:v]) * step_bytes), width, masks[v])
            for v, width in enumerate(widths)
        ]
        operands = self.load_a(f, rows, max(widths))
        if unit.biased:
            operands.append(unit.biased_word(f, max(widths)))
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

    def load_a(self, f: Function, pointers: list[Value], widest: int) -> list[Value]:
        """A splat per row: a broadcasting load, or a lane of a vector load where FMA takes lanes."""
        if not (self.adjacent_a and self.isa.broadcast is Broadcast.LANE):
            return [f.splat(self.unit.prepare_a(f, self._word(f, pointer)), widest) for pointer in pointers]
        if self.a.dtype == self.instruction.a:
            return self.unit.load_lanes(f, pointers[0], len(pointers))
        return self._converted_lanes(f, pointers)

    def _converted_lanes(self, f: Function, pointers: list[Value]) -> list[Value]:
        """Adjacent rows of another type: a register of them at a time."""
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
        return f.cast(self.convert(f, several, source, to), self.unit.word)

    def load_b(self, f: Function, pointer: Value, width: int, mask: Value | None) -> Value:
        """One vector of B; masked lanes are not touched.

        They repeat the first element, so that they multiply what a real column multiplies: a zero
        would raise the invalid flag beside an infinity of A.
        """
        size = self.b.dtype.size
        if self.b.packed:  # whole panels: what is behind the last column may be read
            return f.load(vector_of(self.unit.word, width), pointer, size)
        kind = vector_type(self.b.dtype, width)
        if mask is None:
            value = f.load(kind, pointer, size)
        else:
            first = f.splat(f.load(memory_type(self.b.dtype), pointer, size), width)
            value = f.masked_load(kind, pointer, mask, size, first)
        return self.convert(f, value, self.b.dtype, self.instruction.b)
