"""Tiles lowered by LLVM: one matrix intrinsic per depth, for comparison with our own lowering."""

from __future__ import annotations

from dataclasses import replace

from tilewright.ir.nodes import Tile
from tilewright.llvm.build import Function
from tilewright.llvm.matrix import add_product, column_of, multiply_matrices
from tilewright.llvm.values import Value, vector_of, vector_type, zero
from tilewright.machine.isa import MULTIPLY_ADD, Broadcast, Isa, TileFma
from tilewright.micro.tiles.operands import Source, TileCall, TilePart
from tilewright.micro.tiles.vector import VectorKernel
from tilewright.spec.dtype import DType


class GenericKernel(VectorKernel):
    """acc += A[rows, p] · B[p, columns] by `llvm.matrix.multiply`, which is independent of the target.

    The columns of B are in one vector, so the product is computed transposed, as column times row:
    Bᵀ[columns, 1] · Aᵀ[1, rows], whose columns are the rows of C. One depth at a time, since LLVM sums a
    product of several depths separately from the accumulators and spills both
    (docs/decisions/014-matrix-intrinsic.md).

    Source: Kuzma et al. 2023, §3.2, the generic lowering.
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
        instruction = replace(instruction, instruction=MULTIPLY_ADD)  # with the operands of a multiply-add
        super().__init__(isa, instruction, tile, operands, c, adjacent_a=adjacent_a)

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
        """One depth: a product with all whole vectors of B, another with the masked one."""
        column, across = self._as_sums(f, self._column(f, rows)), len(part.widths)
        whole = across - 1 if part.masked else across
        following = list(acc)
        for first, last in ((0, whole), (whole, across)):
            if first == last:
                continue
            columns, before = sum(part.widths[first:last]), sum(part.widths[:first])
            row = self.load_b(f, f.at(b, before * self.b.dtype.size), columns, masks[first])
            product = multiply_matrices(f, self._as_sums(f, row), column, (columns, 1, column.type.lanes))
            for index in range(part.rows):
                start = index * columns
                for v in range(first, last):
                    place, lanes = index * across + v, range(start, start + part.widths[v])
                    start += part.widths[v]
                    piece = f.shuffle(product, product, lanes)
                    begins = fresh and acc[place] == zero(acc[place].type)
                    following[place] = piece if begins else add_product(f, acc[place], piece)
        return following

    def _as_sums(self, f: Function, vector: Value) -> Value:
        """Elements in the type of the sums; scalable rows load them as integers."""
        return f.bitcast(vector, vector_of(self.element, vector.type.lanes))

    def holds_depths(self, part: TilePart, call: TileCall, depth: int) -> bool:
        """Never: every depth goes through `depth_step`."""
        del part, call, depth
        return False

    def _column(self, f: Function, rows: list[Value]) -> Value:
        """One element of each row of A, loaded as our own lowering loads them.

        If loaded as vectors, the number of lanes is a power of two; results of lanes beyond the rows are
        discarded.
        """
        if not (self.adjacent_a and self.isa.broadcast is Broadcast.LANE):
            return column_of(f, [self._word(f, pointer) for pointer in rows])
        source, lanes = self.a.dtype, self.lanes
        pieces = []
        for first in range(0, len(rows), lanes):
            count = min(lanes, len(rows) - first)
            piece = f.load(vector_type(source, count), rows[first], source.size)
            piece = self.convert(f, piece, source, self.instruction.a)
            pieces.append(f.shuffle(piece, piece, [min(lane, count - 1) for lane in range(lanes)]))
        return f.concatenate(pieces + pieces[:1] * ((1 << (len(pieces) - 1).bit_length()) - len(pieces)))
