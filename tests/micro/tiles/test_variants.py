"""Which straight-line variants a register tile has, and that they cover every edge."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shares import looped

from tilewright.ir.nodes import Tile
from tilewright.ir.partial_tiles import LEAST_REPEATING, covering
from tilewright.machine.catalog import find_machine, targets
from tilewright.machine.isa import Edge, Isa, TileFma
from tilewright.machine.isa_rows import AVX2, AVX512, GENERIC128, ISAS, NEON
from tilewright.macro.blocking import choose_blocking
from tilewright.micro.packing.pack import chunks
from tilewright.micro.tiles.dispatch import Dispatch
from tilewright.micro.tiles.operands import Source, TilePart
from tilewright.micro.tiles.signature import TileSignature
from tilewright.micro.tiles.vector import VectorKernel
from tilewright.spec.dtype import BF16, F32, F64, DType


def kernel(isa: Isa, mr: int, vectors: int, dtype: DType = F32, *, adjacent_a: bool = False) -> VectorKernel:
    one = replace(isa, tiles=tuple(tile for tile in isa.tiles if tile.in_place)).tile(dtype)
    tile, operands = Tile(mr, vectors * isa.lanes(dtype)), (Source(dtype), Source(dtype))
    return VectorKernel(isa, one, tile, operands, dtype, adjacent_a=adjacent_a)


# --- vectors of half the width -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cpu", "widths"),
    [
        ("znver4", [(16,) * vectors + (last,) for vectors in range(4) for last in (8, 16)]),
        ("znver5", [(16,), (16, 16), (16, 16, 16), (16, 16, 16, 16)]),
    ],
)
def test_the_last_vector_is_half_where_that_takes_half_the_time(
    cpu: str, widths: list[tuple[int, ...]]
) -> None:
    parts = Dispatch(kernel(find_machine(cpu).isa, 4, 4)).parts(4)
    assert [part.widths for part in parts if part.masked] == widths
    quick = Dispatch(kernel(find_machine(cpu).isa, 4, 4), quick=True).parts(2)
    assert [part.widths for part in quick] == [(16,) * count for count in range(1, 5)]


# --- rows -----------------------------------------------------------------------------------------------


@given(st.integers(1, 30).flatmap(lambda mr: st.tuples(st.just(mr), st.integers(1, mr))))
def test_any_height_is_a_sum_of_variants(case: tuple[int, int]) -> None:
    mr, rows = case
    for adjacent_a in (False, True):
        unit = Dispatch(kernel(AVX512, mr, 1, adjacent_a=adjacent_a))
        variants, repeats = unit.row_variants(), unit.signature.repeats
        assert repeats is (mr > LEAST_REPEATING and not adjacent_a)
        assert sorted(set(variants), reverse=True) == list(variants)
        assert variants[0] == mr
        tiles = covering(rows, mr, repeats=repeats)
        assert set(tiles) <= set(variants)
        computed = sum(height * count for height, count in tiles.items())
        assert rows <= computed <= rows + repeats
        assert sum(tiles.values()) <= 6, "an edge takes few calls"


@pytest.mark.parametrize(("rows", "tiles"), [(3, 1), (5, 1), (6, 1), (7, 1), (9, 2), (11, 2)])
def test_few_rows_are_one_tile(rows: int, tiles: int) -> None:
    assert sum(covering(rows, 12, repeats=True).values()) == tiles


@pytest.mark.parametrize(
    ("mr", "variants", "packed"),
    [
        (1, (1,), (1,)),
        (2, (2, 1), (2, 1)),
        (4, (4, 2, 1), (4, 2, 1)),
        (6, (6, 4, 2, 1), (6, 4, 2, 1)),
        (8, (8, 6, 4, 2, 1), (8, 4, 2, 1)),
        (12, (12, 8, 6, 4, 2, 1), (12, 8, 4, 2, 1)),
        (14, (14, 8, 6, 4, 2, 1), (14, 8, 4, 2, 1)),
    ],
)
def test_row_variants(mr: int, variants: tuple[int, ...], packed: tuple[int, ...]) -> None:
    """Rows in place may be computed twice; those of a panel are as many as its tiles'."""
    assert Dispatch(kernel(AVX2, mr, 2)).row_variants() == variants
    assert Dispatch(kernel(AVX2, mr, 2, adjacent_a=True)).row_variants() == packed


# --- columns --------------------------------------------------------------------------------------------


@looped("isa", ISAS)
@looped("vectors", [1, 2, 3, 6])
def test_parts_cover_every_number_of_columns(isa: Isa, vectors: int) -> None:
    unit = Dispatch(kernel(isa, 6, vectors))
    lanes = isa.lanes(F32)
    for rows in unit.row_variants():
        parts = unit.parts(rows)
        assert all(part.rows == rows for part in parts)
        if isa.edge is Edge.SPILL:
            assert parts == (TilePart(rows, (lanes,) * vectors, masked=False),)
            continue
        assert all(set(part.widths) == {lanes} for part in parts), "sizes at run time take whole vectors"
        masked = [len(part.widths) for part in parts if part.masked]
        assert masked == list(range(1, vectors + 1))
        for columns in range(1, vectors * lanes + 1):
            chosen = next(count for count in masked if columns <= count * lanes)
            assert (chosen - 1) * lanes < columns, "only the last vector is partial"
        assert (parts[0] == TilePart(rows, (lanes,) * vectors, masked=False)) is (rows == 6)


@pytest.mark.parametrize(
    ("isa", "dtype", "adjacent", "name"),
    [
        (AVX512, F32, False, "tile_f32_f32_f32_multiply_add_6x32"),
        (AVX2, F64, False, "tile_f64_f64_f64_multiply_add_6x8"),
        (NEON, F32, True, "tile_f32_f32_f32_multiply_add_6x8_packed"),
        (GENERIC128, F64, False, "tile_f64_f64_f64_multiply_add_6x4"),
    ],
)
def test_names(isa: Isa, dtype: DType, adjacent: bool, name: str) -> None:
    assert Dispatch(kernel(isa, 6, 2, dtype, adjacent_a=adjacent)).name == name


def test_names_tell_tiles_apart() -> None:
    """Whatever the code of a tile depends on is in the name of its function."""
    tile, one = Tile(6, 32), AVX512.limited(frozenset()).tile(F32)
    dot = AVX512.limited(frozenset(("avx512bf16",))).tile(BF16)

    def kernel_of(instruction: TileFma, a: Source, b: Source, c: DType) -> VectorKernel:
        return VectorKernel(AVX512, instruction, tile, (a, b), c, adjacent_a=a.packed)

    kernels = [
        kernel_of(one, Source(F32), Source(F32), F32),
        kernel_of(one, Source(BF16), Source(F32), F32),
        kernel_of(one, Source(F32), Source(BF16), F32),
        kernel_of(one, Source(F32), Source(F32), BF16),
        kernel_of(one, Source(F32), Source(F32, packed=True), F32),
        kernel_of(one, Source(F32, packed=True), Source(F32, packed=True), F32),
        kernel_of(dot, Source(BF16, packed=True), Source(BF16, packed=True), F32),
    ]
    dispatches = [
        Dispatch(unit, TileSignature(pairs=pairs, carries=carries))
        for unit, pairs, carries in product(kernels, (False, True), (False, True))
    ]
    assert len({dispatch.name for dispatch in dispatches}) == len(dispatches)


# --- chunks of a packed run --------------------------------------------------------------------------------

CHUNKS: dict[tuple[int, int], tuple[tuple[int, int], ...]] = {
    (1, 16): ((0, 1),),
    (2, 4): ((0, 2),),
    (3, 4): ((0, 2), (2, 1)),
    (4, 4): ((0, 4),),
    (6, 4): ((0, 4), (4, 2)),
    (6, 8): ((0, 4), (4, 2)),
    (8, 4): ((0, 4), (4, 4)),
    (12, 16): ((0, 8), (8, 4)),
    (13, 4): ((0, 4), (4, 4), (8, 4), (12, 1)),
    (14, 16): ((0, 8), (8, 4), (12, 2)),
    (15, 8): ((0, 8), (8, 4), (12, 2), (14, 1)),
    (32, 16): ((0, 16), (16, 16)),
    (0, 8): (),
}


@pytest.mark.parametrize(("count", "lanes"), CHUNKS)
def test_chunks(count: int, lanes: int) -> None:
    assert chunks(count, lanes) == CHUNKS[count, lanes]


@given(st.integers(0, 200), st.sampled_from((2, 4, 8, 16)))
def test_chunks_tile_the_run(count: int, lanes: int) -> None:
    position = 0
    for start, width in chunks(count, lanes):
        assert start == position
        assert width & (width - 1) == 0
        assert width <= lanes
        position += width
    assert position == count


@looped("name", targets())
@looped("dtype", [F32, F64])
def test_chunks_of_equal_width_stand_together(name: str, dtype: DType) -> None:
    """The transposing pack loops over the chunks of a width from the first to the last of them."""
    machine = find_machine(name)
    blocking = choose_blocking(machine, machine.isa.tile(dtype))
    for panel in (blocking.mr, blocking.nr):
        found = chunks(panel, machine.isa.lanes(dtype))
        widths = [width for _, width in found]
        assert widths == sorted(widths, reverse=True)
