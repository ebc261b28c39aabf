"""Machine code of whole tiles of POWER10's matrix unit: operands loaded ahead, accumulators left alone."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from functools import cache

import pytest
from assembly_text import AssemblyLoop, functions, innermost_loops, vector_stack_moves
from mma_tiles import GRID, label
from mma_walks import MACHINE, TILES, Walk
from shares import looped
from tiers import sampled
from uncompiled import uncompiled

import tilewright as tw
from tilewright.errors import ToolMissing
from tilewright.llvm.build import Module
from tilewright.llvm.target import data_layout, emit_assembly
from tilewright.machine.isa import TileFma
from tilewright.micro.tiles.depth import UNIT_UNROLL
from tilewright.micro.units.mma import Mma
from tilewright.tools.explore.mca import LoopEstimate, estimate_kernel, find_tool

ACCUMULATORS = GRID[0] * GRID[1]
MOVES = r"^(xxmfacc|xxmtacc|xxsetaccz|xxlor|vor|xvcpsgndp|xscpsgndp)\b"

each_tile = pytest.mark.parametrize("tile", TILES, ids=label)


@cache
def assembly(tile: TileFma, steps: int | None = None) -> str:
    module = Module("walk", MACHINE.triple, data_layout(MACHINE))
    Walk(tile, *GRID, steps).emit(module, "kernel")
    return emit_assembly(str(module), "walk", MACHINE)


def main_loop(tile: TileFma, steps: int | None = None) -> AssemblyLoop:
    return max(
        innermost_loops(assembly(tile, steps), MACHINE.triple), key=lambda loop: len(loop.instructions)
    )


@each_tile
@looped("steps", [None, 64])
def test_a_turn_is_multiplies_and_loads_by_pairs(tile: TileFma, steps: int | None) -> None:
    loop = main_loop(tile, steps)
    counts, (down, across) = loop.counts, GRID
    assert counts[tile.instruction] == UNIT_UNROLL * ACCUMULATORS
    registers = down * (2 if tile.a.bits == 64 else 1) + across
    assert counts["lxvp"] == UNIT_UNROLL * registers // 2
    signs = {None: 0, "row": across + down, "column": down + across}[Mma(MACHINE.isa, tile).bias]
    pointers_and_jump = 3
    expected = counts[tile.instruction] + counts["lxvp"] + UNIT_UNROLL * signs + pointers_and_jump
    assert len(loop.instructions) == expected


@each_tile
def test_loads_stand_between_multiplies(tile: TileFma) -> None:
    """Two at most stand together, so that multiplies are never far from each other."""
    words = [line.split()[0] for line in main_loop(tile).instructions]
    run = longest = 0
    for word in words:
        run = run + 1 if word == "lxvp" else 0
        longest = max(longest, run)
    assert longest <= 2


@each_tile
@looped("steps", [None, 3, 9, 64])
def test_accumulators_stay_in_the_unit(tile: TileFma, steps: int | None) -> None:
    """None moves in a loop, none is primed from vectors, and each is read once."""
    for loop in innermost_loops(assembly(tile, steps), MACHINE.triple):
        assert not loop.matching(MOVES)
        assert not vector_stack_moves(loop)
    counts = functions(assembly(tile, steps), MACHINE.triple)["kernel"].counts
    assert counts["xxmfacc"] == ACCUMULATORS
    assert counts["xxmtacc"] == 0


@each_tile
def test_few_known_steps_are_straight_code(tile: TileFma) -> None:
    steps = 9
    counts = functions(assembly(tile, steps), MACHINE.triple)["kernel"].counts
    assert counts[tile.instruction] == steps * ACCUMULATORS
    assert not innermost_loops(assembly(tile, steps), MACHINE.triple)


#: Least share of the multiplies in the time that llvm-mca 19 gives a turn. Its model has 44 micro-operations
#: under way, of which a step of float64 has 16 and takes 10 cycles; bytes of equal signs have sums and flips
#: beside the multiplies.
SHARES = (
    ("f32", None, None, 0.95),
    ("bf16", None, "f32", 0.95),
    ("f16", None, "f32", 0.95),
    ("f64", None, None, 0.85),
    ("i16", None, "i32", 0.95),
    ("i8", "u8", "i32", 0.95),
    ("i8", "i8", "i32", 0.69),
    ("u8", "i8", "i32", 0.95),
    ("u8", "u8", "i32", 0.69),
)


@pytest.mark.parametrize(("a", "b", "out", "share"), sampled(SHARES, 3))
def test_share_of_the_unit(a: str, b: str | None, out: str | None, share: float) -> None:
    """`make test` estimates one product of each share; how units are walked, all tiles show above."""
    try:
        find_tool()
    except ToolMissing as missing:
        pytest.skip(str(missing))
    problem = tw.Gemm(dtype=a, b_dtype=b, out_dtype=out, strategy="packing")
    loops = estimate_kernel(uncompiled(problem, MACHINE.name)).loops

    def multiplies(loop: LoopEstimate) -> int:
        return loop.multiplies

    best = max(loops, key=multiplies)
    assert best.multiplies >= UNIT_UNROLL * ACCUMULATORS
    assert best.share >= share
