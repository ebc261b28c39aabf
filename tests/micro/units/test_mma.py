"""Machine code of POWER10's outer products, compiled on any machine: what a step holds, and what it keeps."""

from __future__ import annotations

from functools import cache

import pytest
from assembly_text import AssemblyLoop, functions, innermost_loops, vector_stack_moves
from grid_kernel import GridKernel
from mma_tiles import GRID, TILES, label

from tilewright.llvm.build import Module
from tilewright.llvm.target import data_layout, emit_assembly
from tilewright.machine.catalog import find_machine
from tilewright.machine.isa import TileFma
from tilewright.micro.units.mma import Mma

MACHINE = find_machine("pwr10")
#: Registers of 16 bytes that a load fills.
LOADED = {"lxv": 1, "lxvx": 1, "lxvp": 2, "lxvpx": 2}

each_tile = pytest.mark.parametrize("tile", TILES, ids=label)


@cache
def assembly(tile: TileFma) -> str:
    module = Module("unit", MACHINE.triple, data_layout(MACHINE))
    GridKernel(Mma(MACHINE.isa, tile), *GRID).emit(module, "kernel")
    return emit_assembly(str(module), "unit", MACHINE)


def loop(tile: TileFma) -> AssemblyLoop:
    (only,) = innermost_loops(assembly(tile), MACHINE.triple)
    return only


def whole(tile: TileFma) -> AssemblyLoop:
    return functions(assembly(tile), MACHINE.triple)["kernel"]


def bias(tile: TileFma) -> str | None:
    return Mma(MACHINE.isa, tile).bias


@each_tile
def test_a_step_multiplies_once_for_each_accumulator(tile: TileFma) -> None:
    down, across = GRID
    counts = loop(tile).counts
    assert counts[tile.instruction] == down * across
    assert sum(LOADED[name] * count for name, count in counts.items() if name in LOADED) == (
        down * (2 if tile.a.bits == 64 else 1) + across
    )
    flips = {None: 0, "row": across, "column": down}[bias(tile)]
    sums = {None: 0, "row": down, "column": across}[bias(tile)]
    assert counts["vsububm"] + counts["vaddubm"] + counts["xxlxor"] == flips
    assert counts["vmsummbm"] == sums
    pointers_and_jump = 2 + 1
    loads = sum(count for name, count in counts.items() if name in LOADED)
    most = down * across + loads + flips + sums + pointers_and_jump + 1
    assert len(loop(tile).instructions) <= most


@each_tile
def test_accumulators_stay_in_the_unit(tile: TileFma) -> None:
    """No accumulator moves in the loop, none is primed from vectors, and each is read once after it."""
    inside = loop(tile)
    assert not inside.matching(r"^(xxmfacc|xxmtacc|xxsetaccz|xxlor|vor)\b")
    assert not vector_stack_moves(inside)
    counts = whole(tile).counts
    assert counts["xxmfacc"] == GRID[0] * GRID[1]
    assert counts["xxmtacc"] == 0


@each_tile
def test_bytes_of_equal_signs_are_biased(tile: TileFma) -> None:
    equal = {("i8", "i8"): "row", ("u8", "u8"): "column"}
    assert bias(tile) == equal.get((tile.a.name, tile.b.name))
