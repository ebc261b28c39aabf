"""Whole tiles of POWER10's matrix unit over two panels, as tests call them: void (steps, a, b, c)."""

from __future__ import annotations

from typing import NamedTuple

from grid_kernel import ARGUMENTS

from tilewright.ir.nodes import Tile
from tilewright.llvm.build import Module
from tilewright.llvm.values import VOID, int64
from tilewright.machine.catalog import find_machine
from tilewright.machine.isa import TileFma
from tilewright.micro.tiles.engine import EngineKernel
from tilewright.micro.tiles.operands import OperandA, OperandB, OperandC, Source, TileCall

MACHINE = find_machine("pwr10")
TILES = tuple(tile for tile in MACHINE.isa.tiles if tile.accumulators)


class Walk(NamedTuple):
    """One tile: its instruction, the grid of accumulators, and the steps if they are known when compiling."""

    tile: TileFma
    down: int
    across: int
    steps: int | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of C."""
        return self.down * self.tile.m, self.across * self.tile.n

    def emit(self, module: Module, name: str) -> None:
        """Defines the function."""
        tile, (rows, columns) = self.tile, self.shape
        sources = Source(tile.a, packed=True), Source(tile.b, packed=True)
        kernel = EngineKernel(
            MACHINE.isa, tile, Tile(rows, columns, tile.kr), sources, tile.acc, adjacent_a=True
        )
        f = module.define(name, VOID, ARGUMENTS, exported=True)
        given = f.arguments["steps"] if self.steps is None else int64(self.steps)
        call = TileCall(
            columns=int64(columns),
            depth=f.mul(given, tile.k),
            a=OperandA(f.arguments["a"], int64(tile.interleave_a), int64(rows * tile.k)),
            b=OperandB(f.arguments["b"], int64(columns * tile.k)),
            c=OperandC(f.arguments["c"], int64(columns)),
        )
        kernel.emit_inline(f, rows, columns, call)
        f.ret()
