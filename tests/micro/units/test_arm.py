"""Arm's dot products and 2×2 products in assembly: by element, no copies, no spills."""

from __future__ import annotations

import re

import pytest
from arm_units import ARMV8, DOTS, SQUARES, UnitKernel, assembly, label, neon_unit, unit_module
from assembly_text import AssemblyLoop, innermost_loops, quadwords_loaded, vector_stack_moves

from tilewright.llvm.values import POINTER, VOID
from tilewright.machine.isa import TileFma
from tilewright.micro.units.arm import ArmDot
from tilewright.spec.dtype import I8, U8

#: What a depth loop counts and jumps with.
BOOKKEEPING = {"add", "b", "cmp", "mov", "subs"}


def depth_loop(tile: TileFma, down: int, across: int) -> AssemblyLoop:
    (loop,) = innermost_loops(assembly(UnitKernel(neon_unit(tile), down, across), ARMV8), ARMV8.triple)
    assert vector_stack_moves(loop) == []
    assert loop.matching(r"^(mov|dup)\s+v") == []
    assert loop.matching("bl\\s") == []
    return loop


@pytest.mark.parametrize("tile", DOTS, ids=label)
def test_dot_products_take_a_by_element(tile: TileFma) -> None:
    """8 rows of 12 columns: 24 products, each with an element of A; A is two registers, or one of float16."""
    loop = depth_loop(tile, 8, 3)
    by_element = loop.matching(r"v\d+\.(4b|2h|h)\[\d\]$")
    assert len(by_element) == 24
    (name,) = {line.split()[0] for line in by_element}
    swapped = (tile.a, tile.b) == (U8, I8)
    assert name == ("sudot" if swapped else tile.instruction)
    loads = loop.matching(r"^ld")
    assert set(loop.counts) - {name} - {line.split()[0] for line in loads} <= BOOKKEEPING
    assert len(loads) <= 4
    if tile.kr > 1:
        assert quadwords_loaded(loop) + 2 * len(loop.matching(r"^ld1\s+{ v\d+\.8h, v\d+\.8h }")) == 2 + 3


@pytest.mark.parametrize("tile", DOTS, ids=label)
@pytest.mark.parametrize("down", [4, 12])
def test_four_and_twelve_rows_by_element(down: int, tile: TileFma) -> None:
    loop = depth_loop(tile, down, 2)
    assert len(loop.matching(r"v\d+\.(4b|2h|h)\[\d\]$")) == 2 * down


@pytest.mark.parametrize("tile", DOTS, ids=label)
def test_the_first_sum_is_as_wide_as_b(tile: TileFma) -> None:
    """Also where an operand of A fills a register of which half is read (fmlal)."""
    unit = neon_unit(tile)
    assert isinstance(unit, ArmDot)
    f = unit_module(ARMV8).define("first", VOID, [("a", POINTER), ("b", POINTER)])
    (a,) = unit.load_lanes(f, f.arguments["a"], 1)
    b = unit.load_b(f, f.arguments["b"], 0)
    assert unit.first(f, a, b).type == unit.zero(f, 0, 0).type


@pytest.mark.parametrize("tile", SQUARES, ids=label)
def test_squares_load_each_operand_once(tile: TileFma) -> None:
    """8 rows of 12 columns: 4 × 6 products of two loads of 4 and 6 registers."""
    loop = depth_loop(tile, 4, 6)
    assert loop.counts[tile.instruction] == 24
    assert quadwords_loaded(loop) == 4 + 6
    assert set(loop.counts) - {tile.instruction, "ldp", "ldr", "ldur"} <= BOOKKEEPING


@pytest.mark.parametrize("tile", SQUARES, ids=label)
def test_rows_of_squares_are_zipped_once(tile: TileFma) -> None:
    """Two accumulators side by side become two rows of four columns by one instruction each, and a copy.

    LLVM writes zip1 of pairs as the insertion of a lane, the same on every CPU.
    """
    text = assembly(UnitKernel(neon_unit(tile), 4, 4), ARMV8)
    inserted = len(re.findall(r"\tmov\tv\d+\.d\[1\], v\d+\.d\[0\]", text))
    if (tile.a, tile.b) == (I8, U8):  # accumulators hold columns
        assert (text.count("\tuzp1\t"), text.count("\tuzp2\t"), inserted) == (8, 8, 0)
    else:
        assert (inserted, text.count("\tzip2\t")) == (8, 8)
    assert len(re.findall(r"\t(ins|ext|trn\d|tbl|fmov|umov)\t", text)) == 0
