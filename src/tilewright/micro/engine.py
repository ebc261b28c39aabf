"""Tiles of matrix units: a grid of accumulators of several rows and columns (seed 004, Algorithm 2)."""

from __future__ import annotations

from tilewright.ir.nodes import Tile
from tilewright.llvm.build import Function
from tilewright.llvm.values import Value
from tilewright.machine.isa import Edge, Isa, TileFma
from tilewright.micro.instructions import find_multiply
from tilewright.micro.kernel import MicroKernel, Part, Source
from tilewright.spec.dtype import DType


class EngineKernel(MicroKernel):
    """acc[i, j] += A[i] · B[j] for m rows and n columns at a time, both from packed panels.

    Each operand is loaded once a step: those of A serve a row of the grid, those of B a column. Accumulators
    are taken apart once, after the depth. Units compute whole operations: what is beyond the rows and columns
    of C goes through a buffer and no further.
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
        # Vectors of C are those that the rows of accumulators come in.
        self.lanes = max(self.lanes, instruction.n)
        self.vectors = -(-tile.nr // self.lanes)
        self.edge = Edge.SPILL
        self._resident: list[Value] = []

    @property
    def attributes(self) -> str | None:
        """Those of the unit."""
        return self.unit.attributes

    def _grid(self, part: Part) -> tuple[int, int]:
        return part.rows // self.instruction.m, sum(part.widths) // self.instruction.n

    def _biases(self, part: Part) -> int:
        """Sums beside the grid: see `Multiply.bias`."""
        down, across = self._grid(part)
        return {None: 0, "row": down, "column": across}[self.unit.bias]

    def begin(self, f: Function, part: Part) -> list[Value]:
        """The empty grid, and the sums beside it."""
        down, across = self._grid(part)
        self.unit.begin(f, down, self.tile.nr // self.instruction.n)
        grid = [self.unit.zero(f, i, j) for i in range(down) for j in range(across)]
        if self.unit.resident:
            self._resident, grid = grid, []
        return [*grid, *(self.unit.bias_zero(f) for _ in range(self._biases(part)))]

    def depth_step(
        self,
        f: Function,
        part: Part,
        rows: list[Value],
        b: Value,
        masks: list[Value | None],  # noqa: ARG002
        acc: list[Value],
        *,
        fresh: bool,  # noqa: ARG002
    ) -> list[Value]:
        """One instruction for each place of the grid."""
        one, unit = self.instruction, self.unit
        down, across = self._grid(part)
        count = 0 if unit.resident else down * across
        grid = list(self._resident if unit.resident else acc[:count])
        biases = list(acc[count:])
        b_bytes = one.n * one.kr * one.b.size
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

    def finish(self, f: Function, part: Part, acc: list[Value]) -> list[Value]:
        """Every row of every accumulator, the sums beside the grid taken off."""
        unit, (down, across) = self.unit, self._grid(part)
        count = 0 if unit.resident else down * across
        grid, biases = (self._resident if unit.resident else acc[:count]), acc[count:]
        extra = [unit.bias_rows(f, total) for total in biases]
        found: list[Value] = []
        for i in range(down):
            for number, vectors in enumerate(unit.rows(f, grid[i * across : (i + 1) * across])):
                for j, vector in enumerate(vectors):
                    taken_off = extra[i if unit.bias == "row" else j][number] if extra else None
                    found.append(vector if taken_off is None else f.minus(vector, taken_off))
        unit.end(f)
        return found
