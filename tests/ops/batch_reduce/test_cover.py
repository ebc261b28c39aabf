"""Covers: known sizes cut into register tiles, exactly, within the registers, for every machine."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiers import crossed, draws

from tilewright.ir.nodes import Tile
from tilewright.machine.catalog import find_machine, targets
from tilewright.machine.isa import Broadcast, TileFma
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Cover, _even, choose_cover, machine_tile
from tilewright.micro.tiles.operands import Source
from tilewright.micro.tiles.vector import VectorKernel
from tilewright.ops.batch_reduce.nest import LOCAL_PANEL_BYTES, _narrowed, cover_of
from tilewright.ops.batch_reduce.problem import BatchReduceGemm
from tilewright.spec.dtype import BF16, F32, F64, I8, DType, accumulator

each_machine = pytest.mark.parametrize(("name", "dtype"), crossed(targets(), [F32, F64], 2), ids=str)
extents = st.one_of(st.integers(1, 40), st.integers(1, 130), st.integers(1, 1024))
depths = st.sampled_from((1, 7, 64, 512, 2048 * 1024))


def total(parts: tuple[tuple[int, int], ...]) -> int:
    return sum(size * count for size, count in parts)


def vector_instruction(machine: Machine, dtype: DType) -> TileFma:
    """The instruction that takes one row of A for a type; units of several rows cut whole tiles."""
    vectors = tuple(tile for tile in machine.isa.tiles if tile.m == 1)
    return replace(machine.isa, tiles=vectors).tile(dtype)


def cover(machine: Machine, dtype: DType, sizes: tuple[int, int, int]) -> Cover:
    """The cover of a product of one type."""
    return choose_cover(machine, vector_instruction(machine, dtype), machine.isa.edge_of(dtype), sizes)


def registers_needed(machine: Machine, dtype: DType, rows: int, columns: int) -> int:
    """Registers of one tile as the micro-kernel writes it: a partial vector may take several."""
    isa, one = machine.isa, vector_instruction(machine, dtype)
    operands = (Source(dtype), Source(dtype))
    kernel = VectorKernel(isa, one, Tile(rows, columns), operands, dtype, adjacent_a=False)
    part = kernel.exact_part(rows, columns)
    word_lanes = isa.vector_bits // (one.a.bits * one.kr)
    of_a = {Broadcast.MEMORY: 1, Broadcast.LANE: math.ceil(rows / word_lanes), Broadcast.SCALAR: 0}
    bias = len(part.widths) if one.biased else 0
    product = 1 if one.separate or not isa.fused else 0
    return part.fmas + bias + len(part.widths) + of_a[isa.broadcast] + product


@each_machine
@draws(30)
@given(rows=extents, columns=extents, depth=depths)
def test_a_cover_is_exact_and_even(name: str, dtype: DType, rows: int, columns: int, depth: int) -> None:
    machine = find_machine(name)
    lanes = machine.isa.lanes(accumulator(dtype, dtype))
    found = cover(machine, dtype, (rows, columns, depth))
    assert (total(found.heights), total(found.widths)) == (rows, columns)
    assert min(*(value for parts in (found.heights, found.widths) for part in parts for value in part), 9) > 0
    heights = [height for height, _ in found.heights]
    vectors = [math.ceil(width / lanes) for width, _ in found.widths]
    assert max(heights) - min(heights) <= 1, "no small tile is left over"
    assert max(vectors) - min(vectors) <= 1
    assert (heights, vectors) == (sorted(heights, reverse=True), sorted(vectors, reverse=True))
    partial = [(width, count) for width, count in found.widths if width % lanes]
    assert partial in ([], [(found.widths[-1][0], 1)]), "only the last tile ends in a partial vector"


@each_machine
@draws(30)
@given(rows=extents, columns=extents, depth=depths)
def test_every_tile_of_a_cover_fits_the_registers(
    name: str, dtype: DType, rows: int, columns: int, depth: int
) -> None:
    machine = find_machine(name)
    found = cover(machine, dtype, (rows, columns, depth))
    for height, _ in found.heights:
        for width, _ in found.widths:
            assert registers_needed(machine, dtype, height, width) <= machine.isa.vector_registers


@pytest.mark.parametrize("name", ["cascadelake", "znver5", "haswell", "neoverse-v2", "x86-64-v2"])
@pytest.mark.parametrize("dtype", [BF16, I8], ids=str)
@draws(10)
@given(rows=extents, columns=extents, depth=depths)
def test_tiles_of_instructions_that_take_several_depths(
    name: str, dtype: DType, rows: int, columns: int, depth: int
) -> None:
    machine = find_machine(name)
    found = cover(machine, dtype, (rows, columns, depth))
    assert (total(found.heights), total(found.widths)) == (rows, columns)
    for (height, _), (width, _) in product(found.heights, found.widths):
        assert registers_needed(machine, dtype, height, width) <= machine.isa.vector_registers


#: Rows, columns and depth on znver5 in f32 -> cover. 32 registers hold h·v accumulators, v vectors and a
#: broadcast. 23 columns are 2 vectors, so 12 + 11 rows; 64 columns are 4, so 6 rows at most; over 16 times
#: the depth the vectors come from L2 for each row of tiles, and two halves of 11 rows read less.
#: 13 rows of one vector hide the latency; so do 5 rows nearly, and nothing is wider.
EXPECTED: dict[tuple[int, int, int], Cover] = {
    (5, 5, 5): Cover(((5, 1),), ((5, 1),)),
    (13, 13, 13): Cover(((13, 1),), ((13, 1),)),
    (23, 23, 23): Cover(((12, 1), (11, 1)), ((23, 1),)),
    (64, 64, 64): Cover(((6, 9), (5, 2)), ((64, 1),)),
    (64, 64, 1024): Cover(((11, 4), (10, 2)), ((32, 2),)),
    (100, 100, 100): Cover(((6, 15), (5, 2)), ((64, 1), (36, 1))),
    (6, 16, 64): Cover(((6, 1),), ((16, 1),)),
    (1, 1, 1): Cover(((1, 1),), ((1, 1),)),
}


@pytest.mark.parametrize("sizes", EXPECTED, ids=lambda sizes: "x".join(map(str, sizes)))
def test_covers_by_hand(sizes: tuple[int, int, int]) -> None:
    assert cover(find_machine("znver5"), F32, sizes) == EXPECTED[sizes]


@pytest.mark.parametrize("name", ["sapphirerapids", "pwr10"])
def test_units_of_several_rows_cut_their_own_tile(name: str) -> None:
    """As often as it fits, then what remains."""
    machine = find_machine(name)
    one = machine.isa.tile(BF16)
    tile = machine_tile(machine, one)
    for rows, columns in ((tile.mr, tile.nr), (2 * tile.mr + 3, tile.nr - 1), (1, 3 * tile.nr + 1)):
        found = choose_cover(machine, one, machine.isa.edge, (rows, columns, 64))
        assert (total(found.heights), total(found.widths)) == (rows, columns)
        assert [size for size, _ in found.heights[:-1]] == [tile.mr] * (len(found.heights) - 1)
        assert found.heights[0][0] == min(tile.mr, rows)
        assert found.widths[0] == ((tile.nr, columns // tile.nr) if columns >= tile.nr else (columns, 1))


def test_the_tile_of_seed_002() -> None:
    """16×6 column-major: the 6 columns are broadcast, the 16 rows are 4 Neon vectors, 24 accumulators."""
    assert cover_of(BatchReduceGemm(16, 6, 64), find_machine("neoverse-v2")) == Cover(((6, 1),), ((16, 1),))
    turned = BatchReduceGemm(6, 16, 64, a="row", b="row", c="row")
    assert cover_of(turned, find_machine("neoverse-v2")) == Cover(((6, 1),), ((16, 1),))


@given(st.integers(1, 2000).flatmap(lambda total: st.tuples(st.just(total), st.integers(1, total))))
def test_even_parts(case: tuple[int, int]) -> None:
    whole, parts = case
    found = _even(whole, parts)
    assert total(found) == whole
    assert sum(count for _, count in found) == parts
    assert max(found)[0] - min(found)[0] <= 1


# --- panels in the frame --------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(1, 100), st.integers(1, 5)), min_size=1, max_size=4),
    st.integers(1, 120),
    st.sampled_from((2, 4, 8, 16)),
)
def test_narrowed(widths: list[tuple[int, int]], limit: int, lanes: int) -> None:
    found = _narrowed(Cover(((3, 1),), tuple(widths)), limit, lanes)
    assert found.heights == ((3, 1),)
    assert total(found.widths) == total(tuple(widths))
    assert max(width for width, _ in found.widths) <= max(lanes, limit)


@pytest.mark.parametrize("name", ["znver5", "haswell", "neoverse-v2"])
def test_equal_tiles_that_follow_each_other_are_one_run(name: str) -> None:
    """A run is one loop of the nest; as single tiles the largest kernel would be 50 times the code."""
    problem = BatchReduceGemm(64, 1024, 2048, 2, "f64", b="col", c="row")
    widths = [width for width, _ in cover_of(problem, find_machine(name)).widths]
    assert all(width != after for width, after in pairwise(widths))


@pytest.mark.parametrize(
    ("name", "sizes", "dtype"),
    crossed(
        targets(),
        product([(8, 100, 64), (1024, 1024, 2048), (1023, 1021, 2047), (7, 70, 700)], [F32, F64]),
        8,
    ),
)
def test_a_packed_panel_fits_the_frame(name: str, dtype: DType, sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    problem = BatchReduceGemm(m, n, k, 3, dtype, b="col", c="row")
    cover = cover_of(problem, find_machine(name))
    assert (total(cover.heights), total(cover.widths)) == (m, n)
    assert max(width for width, _ in cover.widths) * k * dtype.size <= LOCAL_PANEL_BYTES == 128 << 10
