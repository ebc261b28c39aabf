"""Register tiles of every row and every type: what their loops move between registers and the stack.

A row or a tile that is added is compiled here without another edit. `SPILLS` lists the tiles that are known
to spill, and why they stay.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from assembly_text import AssemblyLoop, innermost_loops, vector_stack_moves
from shares import EVERY_TEST_RUNS

from tilewright.ir.nodes import Tile
from tilewright.llvm.build import Module
from tilewright.llvm.target import data_layout, emit_assembly, tuning
from tilewright.machine.catalog import CATALOG
from tilewright.machine.isa import TileFma
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import machine_tile
from tilewright.macro.cost import RegisterTile
from tilewright.micro.tiles.dispatch import Dispatch
from tilewright.micro.tiles.engine import EngineKernel
from tilewright.micro.tiles.operands import Source
from tilewright.micro.tiles.signature import EntryPoint
from tilewright.micro.tiles.vector import VectorKernel

#: Tiles that spill, by row, type of the sums and size: the most moves of one loop.
#:
#: LLVM starts as many products as their latency allows before it adds the first one, so that products whose
#: sum is an instruction of its own need several registers, where the budget of `register_tiles` counts one.
#: int32 in AVX-512 does so in LLVM's models of Intel cores (latency 10), not in those of Zen (latency 3).
#: Products of int64 without VPMULLQ are three multiplies, two shifts and two sums.
SPILLS = {
    ("avx2", "i32", "6x16"): 6,
    ("avx2", "i64", "6x8"): 10,
    ("avx512", "i32", "14x32"): 28,
    ("avx512", "i64", "14x16"): 16,
    ("generic128", "i64", "6x4"): 20,
}


class RowTile(NamedTuple):
    """The tile that a row multiplies some types with, on machines of one vector length."""

    row: str
    vector_bits: int
    instruction: TileFma
    tile: RegisterTile

    @property
    def name(self) -> tuple[str, str, str]:
        return self.row, str(self.instruction.acc), f"{self.tile.mr}x{self.tile.nr}"


def row_tiles() -> dict[RowTile, Machine]:
    """The tiles of all catalogued machines, each with the first machine that has it."""
    found: dict[RowTile, Machine] = {}
    for machine in (entry.machine for entry in CATALOG):
        isa = machine.isa
        for one in isa.tiles:
            if isa.tile(one.a, one.b) == one:
                found.setdefault(RowTile(isa.name, isa.vector_bits, one, machine_tile(machine, one)), machine)
    return found


def assembly(case: RowTile, machine: Machine) -> str:
    """The micro-kernel of a tile whose operands are packed."""
    isa, one, tile = machine.isa, case.instruction, case.tile
    operands = (Source(one.a, packed=True), Source(one.b, packed=True))
    kind = EngineKernel if one.is_matrix_engine else VectorKernel
    kernel = kind(isa, one, Tile(tile.mr, tile.nr), operands, one.acc, adjacent_a=one.is_matrix_engine)
    module = Module("tile", machine.triple, data_layout(machine), tuning(machine), machine.function_bits)
    dispatch = Dispatch(kernel)
    callee = dispatch.emit(module)
    parameters = dispatch.signature.parameters(EntryPoint.ANY_SIZE, dispatch.element)
    f = module.define("keep", callee.result, parameters, exported=True)
    f.call(callee, list(f.arguments.values()))
    f.ret()
    return emit_assembly(str(module), "tile", machine)


def spills(loop: AssemblyLoop) -> int:
    """Moves of vectors from and to the stack, but for alpha and beta, which loops over rows of C may load."""
    moves = len(vector_stack_moves(loop))
    updates_c = len(loop.instructions) < 35 and moves <= 2
    return 0 if updates_c else moves


def kept(cases: dict[RowTile, Machine]) -> dict[RowTile, Machine]:
    """In `make test` one tile of each kind: others multiply bytes of another sign, or on another CPU."""
    if EVERY_TEST_RUNS:
        return cases
    kinds: dict[Hashable, RowTile] = {}
    for case in cases:
        one = case.instruction
        kinds.setdefault((*case.name, case.vector_bits, one.m, one.n, one.k, one.is_matrix_engine), case)
    return {case: cases[case] for case in kinds.values()}


def test_tiles_stay_in_registers() -> None:
    broken = []
    cases = row_tiles()
    for case, machine in kept(cases).items():
        loops = innermost_loops(assembly(case, machine), machine.triple)
        most = max(map(spills, loops))
        allowed = SPILLS.get(case.name, 0)
        if most > allowed:
            broken.append(f"{machine.name}: {case.instruction.instruction} {case.name}: {most} > {allowed}")
    assert not broken, "\n".join(broken)
    assert SPILLS.keys() <= {case.name for case in cases}, "a tile that is gone is still listed"


def test_tiles_fit_the_budget() -> None:
    for case, machine in row_tiles().items():
        assert case.tile.registers <= machine.isa.registers(case.instruction)
