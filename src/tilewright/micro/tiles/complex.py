"""Tiles of complex numbers in place in both operands: real ones of twice the depth and columns."""

from __future__ import annotations

from dataclasses import replace

from tilewright.ir.nodes import Tile
from tilewright.llvm.build import Function
from tilewright.llvm.values import Value, memory_type, vector_of, vector_type, zero
from tilewright.machine.isa import Isa, TileFma
from tilewright.micro.packing.rotated import times_i
from tilewright.micro.tiles.operands import Source, TilePart
from tilewright.micro.tiles.vector import VectorKernel
from tilewright.spec.dtype import DType
from tilewright.spec.parts import Parts


class ComplexKernel(VectorKernel):
    """acc[row] += re(A[row, p]) · B[p, vector], then + im(A[row, p]) · i·B[p, vector].

    A step is a depth of complex numbers, two of real ones: a vector of B is loaded once for both, and i times
    it is its parts exchanged, one of them negated. Sums have the order that panels give them (`Parts`).
    """

    def __init__(
        self, isa: Isa, instruction: TileFma, tile: Tile, operands: tuple[Source, Source], c: DType
    ) -> None:
        depths = Parts.ROTATED.spread[1]
        super().__init__(isa, replace(instruction, k=depths), tile, operands, c, adjacent_a=False)

    @property
    def name(self) -> str:
        """The part of the functions' names that identifies this tile in a module."""
        return f"{super().name}_complex"

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
        """One complex number of A for each row times the vectors of B."""
        size, widths, following = self.b.dtype.size, part.widths, list(acc)
        starts = [f.at(b, sum(widths[:v]) * size) for v in range(len(widths))]
        whole = [self.load_b(f, *one) for one in zip(starts, widths, masks, strict=True)]
        for depth, vectors in enumerate((whole, [times_i(f, vector) for vector in whole])):
            places = [f.at(row, depth * self.a.dtype.size) for row in rows]
            for row, a in enumerate(self.load_a(f, places, max(widths))):
                for v, vector in enumerate(vectors):
                    index = row * len(widths) + v
                    narrow = self.unit.narrowed(f, a, widths[v])
                    if fresh and depth == 0 and acc[index] == zero(acc[index].type):
                        following[index] = self.unit.first(f, narrow, vector)
                    else:
                        following[index] = self.unit.multiply(f, narrow, vector, following[index])
        return following

    def load_b(self, f: Function, pointer: Value, width: int, mask: Value | None) -> Value:
        """One vector of B; masked lanes repeat the first number, and compute what a real column computes."""
        size, part = self.b.dtype.size, memory_type(self.b.dtype)
        if mask is None:
            return f.load(vector_type(self.b.dtype, width), pointer, size)
        first = f.load(vector_of(part, 2), pointer, size)
        others = f.shuffle(first, first, [lane % 2 for lane in range(width)])
        return f.masked_load(vector_type(self.b.dtype, width), pointer, mask, size, others)
