"""SVE at several vector lengths in assembly: whole registers, replicating loads, predicates."""

from __future__ import annotations

import re

import pytest
from arm_units import (
    ARMV9,
    UnitKernel,
    assembly,
    label,
    sve_tiles,
    sve_unit,
    unit_module,
    vector_length,
)
from assembly_text import AssemblyLoop, functions, innermost_loops

from tilewright.llvm.target import emit_assembly
from tilewright.llvm.values import INT64, POINTER, VOID, vector_of
from tilewright.machine.isa import TileFma
from tilewright.micro.units.sve import SveMultiplyAdd
from tilewright.spec.dtype import I8, U8

LENGTHS = (256, 512, 2048)
BOOKKEEPING = {"add", "b", "cmp", "sub"}
CASES = [(bits, tile) for bits in LENGTHS for tile in sve_tiles(bits)]
each_case = pytest.mark.parametrize(
    ("bits", "tile"), CASES, ids=[f"{bits}-{label(tile)}" for bits, tile in CASES]
)


def depth_loop(tile: TileFma, bits: int, down: int, across: int) -> AssemblyLoop:
    text = assembly(UnitKernel(sve_unit(tile, bits), down, across), ARMV9, vector_length(bits))
    (loop,) = innermost_loops(text, ARMV9.triple)
    return loop


@each_case
def test_operands_are_loaded_once_and_nothing_is_moved(bits: int, tile: TileFma) -> None:
    """Of A one replicating load for each row, or pair of rows; of B whole registers."""
    down, across = (6, 4) if tile.m == 1 else (4, 5)
    loop = depth_loop(tile, bits, down, across)
    name = tile.instruction
    assert loop.counts[name] == down * across
    assert loop.counts["fmlalt"] == (24 if name == "fmlalb" else 0)
    replicated = loop.matching(r"^ld1rq[bh]\s" if tile.m == 2 else r"^ld1r[wd]\s")
    assert len(replicated) == down
    whole = loop.matching(r"^ldr\s+z\d+, \[x\d+(, #-?\d+, mul vl)?\]$")
    assert len(whole) == across
    operations = {*loop.counts} - BOOKKEEPING - {name, "fmlalt", "ldr"}
    assert operations == {replicated[0].split()[0]}


SQUARE_CASES = [(bits, tile) for bits, tile in CASES if tile.m == 2]


@pytest.mark.parametrize(
    ("bits", "tile"), SQUARE_CASES, ids=[f"{bits}-{label(tile)}" for bits, tile in SQUARE_CASES]
)
def test_rows_of_squares_are_unzipped(bits: int, tile: TileFma) -> None:
    """Two accumulators are two rows after two instructions."""
    text = assembly(UnitKernel(sve_unit(tile, bits), 2, 2), ARMV9, vector_length(bits))
    lanes = "s" if (tile.a, tile.b) == (I8, U8) else "d"
    names = re.findall(rf"\t(uzp1|uzp2)\tz\d+\.{lanes}", text)
    assert sorted(names) == ["uzp1", "uzp1", "uzp2", "uzp2"]
    assert not re.search(r"\t(tbl|splice|ext|trn\d|sel|mov)\tz", text)


@pytest.mark.parametrize("bits", LENGTHS)
def test_edges_are_predicated(bits: int) -> None:
    """A mask of the first lanes is a comparison, and the bytes of other lanes are not touched."""
    unit = sve_unit(sve_tiles(bits)[0], bits)
    assert isinstance(unit, SveMultiplyAdd)
    module = unit_module(ARMV9, vector_length(bits))
    f = module.define("edge", VOID, [("n", INT64), ("a", POINTER), ("c", POINTER)], exported=True)
    mask = f.lane_mask(f.arguments["n"], 0, unit.tile.n)
    kind = vector_of(unit.word, unit.tile.n)
    value = f.masked_load(kind, f.arguments["a"], mask, 4)
    f.masked_store(value, f.arguments["c"], mask, 4)
    f.ret()
    edge = functions(emit_assembly(str(module), "edge", ARMV9), ARMV9.triple)["edge"]
    (load,), (store,) = edge.matching(r"^ld1w"), edge.matching(r"^st1w")
    assert "p0/z" in load
    assert "p0," in store
    assert set(edge.counts) == {"index", "mov", "ptrue", "cmpgt", "ld1w", "st1w", "ret"}
