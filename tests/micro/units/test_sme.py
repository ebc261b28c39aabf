"""SME in assembly: four loads for four outer products, streaming mode around them, no run-time library."""

from __future__ import annotations

import re

import pytest
from arm_units import MATRIX, UnitKernel, assembly, label, sme_tiles, sme_unit, streaming
from assembly_text import AssemblyLoop, functions, innermost_loops

from tilewright.machine.isa import TileFma

LENGTHS = (256, 512)
CASES = [(bits, tile) for bits in LENGTHS for tile in sme_tiles(bits)]
each_case = pytest.mark.parametrize(
    ("bits", "tile"), CASES, ids=[f"{bits}-{label(tile)}" for bits, tile in CASES]
)
BOOKKEEPING = {"add", "b", "cmp", "mov", "ldr"}


def text_of(tile: TileFma, bits: int, down: int, across: int) -> str:
    return assembly(UnitKernel(sme_unit(tile, bits), down, across), MATRIX, streaming(bits))


def whole(text: str) -> AssemblyLoop:
    return functions(text, MATRIX.triple)["unit"]


@each_case
def test_four_loads_for_four_outer_products(bits: int, tile: TileFma) -> None:
    (loop,) = (
        loop
        for loop in innermost_loops(text_of(tile, bits, 2, 2), MATRIX.triple)
        if loop.counts[tile.instruction]
    )
    assert loop.counts[tile.instruction] == 4
    assert len(loop.matching(r"^ldr\s+z\d+, \[x\d+")) == loop.counts["ldr"] == 4
    assert set(loop.counts) - {tile.instruction} <= BOOKKEEPING
    assert not loop.matching(r"^mov\s+[zp]")


@each_case
def test_every_tile_is_used(bits: int, tile: TileFma) -> None:
    body = whole(text_of(tile, bits, 2, tile.acc.size // 2))
    used = {found for line in body.matching(f"^{tile.instruction}") for found in re.findall(r"za\d", line)}
    assert used == {f"za{number}" for number in range(tile.acc.size)}
    size = {4: "s", 8: "d"}[tile.acc.size]
    cleared = {f"zero\t{{za{number}.{size}}}" for number in range(tile.acc.size)}
    assert cleared == {*body.matching("^zero")}


@each_case
def test_streaming_mode_is_entered_and_left(bits: int, tile: TileFma) -> None:
    """No call, not even to the routines of the ABI, and no Neon instruction in between."""
    body = whole(text_of(tile, bits, 2, 2))
    start, stop = body.matching(r"^smstart"), body.matching(r"^smstop")
    assert [line.split()[1] for line in start] == ["sm", "za"]
    assert [line.split()[1] for line in stop] == ["za", "sm"]
    assert not body.matching(r"^blr?\s")
    assert not body.matching(r"\bv\d+\.|\bq\d+")


@each_case
def test_rows_are_read_once(bits: int, tile: TileFma) -> None:
    body = whole(text_of(tile, bits, 2, 2))
    assert len(body.matching(r"^mova?\s+z\d+\.[sd], p\d/m, za\dh")) == 4 * tile.m
    assert len(body.matching(r"^st(r|1[bwd])\s+({ )?z\d")) == 4 * tile.m
