"""The model of attention: the seed's register tile and blocks, and what every catalogued machine gets."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.errors import BlockNotMultiple, InvalidSize, NoRegisterTile
from tilewright.machine.catalog import find_machine, targets
from tilewright.machine.isa import AVX2, AVX512, GENERIC128, NEON, RVV128, Isa
from tilewright.machine.machine import Cache
from tilewright.ops.attention.cut import (
    BLOCKS_L2_PART,
    FUSED_REGISTERS,
    LEAST_QUERIES,
    LINE_SLACK,
    STRIP_L1_PART,
    AttentionBlocking,
    admits,
    attention_tile,
    attention_tiles,
    block_in_l2,
    choose_attention,
    largest_b1,
    largest_b2,
    largest_b3,
    scores_in_l1,
    values_in_l1,
)
from tilewright.ops.attention.problem import Attention
from tilewright.spec.dtype import BF16, F32, F64, DType

#: The machine of the seed's example: 64 KiB and 512 KiB, heads of 64 f32.
L1, L2, HEAD = 64 << 10, 512 << 10, 64
SEED = AttentionBlocking(mr=5, nr=16, kr=1, b1=160, b2=160, b3=128)
LINES = Cache(L1, ways=4, line=64)

#: mr, nr, b1, b2, b3 of f32, heads of 64. For znver5, by hand: the tile of products; b1 = 192 is 16 of its 12
#: rows; b2 < 48 KiB / 2 / (12 · 4 B) = 512, down to whole 32; b3 < (12288 - 768) / 76, down to whole 32.
EXPECTED: dict[str, tuple[int, int, int, int, int]] = {
    "haswell": (6, 16, 168, 160, 96),
    "cascadelake": (14, 32, 196, 288, 64),
    "sapphirerapids": (12, 32, 192, 480, 128),
    "graniterapids": (12, 32, 192, 480, 128),
    "znver2": (6, 16, 192, 336, 96),
    "znver4": (14, 32, 196, 288, 64),
    "znver5": (12, 32, 192, 480, 128),
    # b2 < 1 MiB / 3 / 512 B = 682.7, down to whole 8.
    "neoverse-n1": (12, 8, 192, 680, 192),
    "neoverse-v1": (12, 8, 192, 680, 192),
    "neoverse-v2": (12, 8, 192, 680, 192),
    "kunpeng-920": (12, 8, 192, 336, 192),
    "a64fx": (14, 32, 196, 576, 192),
    "apple-m4": (32, 32, 192, 480, 288),
    "apple-m1": (8, 12, 192, 2040, 416),
    "pwr9": (20, 12, 200, 204, 64),
    "pwr10": (8, 16, 192, 496, 96),
    "rva23": (7, 16, 196, 672, 224),
    "x86-64-v2": (6, 8, 168, 168, 96),
    "x86-64-v3": (6, 16, 168, 160, 96),
    "x86-64-v4": (14, 32, 196, 288, 64),
}
each_machine = pytest.mark.parametrize("name", targets())
each_dtype = pytest.mark.parametrize("dtype", [F32, F64, BF16], ids=str)


def test_the_seeds_tile_on_neon_takes_every_register() -> None:
    """Fu et al. 2024, §5.2.1: mr = 5, nr = 16, utilising all 32 vector registers."""
    tile = attention_tile(NEON, NEON.tile(F32), LINES, FUSED_REGISTERS)
    assert (tile.mr, tile.nr, tile.accumulators, tile.registers) == (5, 16, 20, 32)
    assert tile.cmr == pytest.approx(2 * 5 * 16 / 21)


def test_the_seeds_caches_admit_its_blocks() -> None:
    """Fu et al. 2024 (3)-(5): 160·64 + 64·16 + 160·16, 160·64 + 64·160 + 160·160, 128·64 + 5·128 + 5·64."""
    assert scores_in_l1(SEED, HEAD) == 13824
    assert block_in_l2(SEED, HEAD) == 46080
    assert values_in_l1(SEED, HEAD) == 9152
    assert admits(L1, L2, SEED, HEAD)


@pytest.mark.parametrize(
    ("l1", "l2", "block"),
    [(13824 * 4, L2, "(3)"), (L1, 46080 * 4, "(4)")],
    ids=str,
)
def test_an_inequality_that_is_met_with_equality_does_not_admit(l1: int, l2: int, block: str) -> None:
    assert not admits(l1, l2, SEED, HEAD), block
    assert admits(l1 + 4, l2 + 4, SEED, HEAD), block


def test_the_block_of_values_is_bounded_by_l1_alone() -> None:
    """(5) where (3) leaves room: few queries, many values."""
    blocking = replace(SEED, b1=5, b3=128)
    assert not admits(9152 * 4, L2, blocking, HEAD)
    assert admits(9152 * 4 + 4, L2, blocking, HEAD)


@given(
    l1=st.integers(16 << 10, 256 << 10),
    l2=st.integers(256 << 10, 4 << 20),
    head=st.integers(1, 128),
    tile=st.sampled_from([(5, 16), (14, 32), (8, 16), (1, 8)]),
    size=st.sampled_from([2, 4, 8]),
)
def test_bounds_are_the_largest_whole_blocks_below_the_caches(
    l1: int, l2: int, head: int, tile: tuple[int, int], size: int
) -> None:
    """What a bound returns is admitted, and one unit more is not; at least one unit comes back."""
    mr, nr = tile
    b1 = largest_b1(l1, head, tile, size)
    b2 = largest_b2(l2, head, b1, nr, size)
    b3 = largest_b3(l1, head, mr, size)
    largest = AttentionBlocking(mr=mr, nr=nr, kr=1, b1=b1, b2=b2, b3=b3)
    for found, unit, cache, needs, name in (
        (b1, mr, l1, scores_in_l1, "b1"),
        (b2, nr, l2, block_in_l2, "b2"),
        (b3, 32, l1, values_in_l1, "b3"),
    ):
        assert found % unit == 0
        limit = cache // size
        assert needs(largest, head) < limit or found == unit
        assert needs(replace(largest, **{name: found + unit}), head) >= limit


def test_the_seeds_blocks_are_below_its_bounds() -> None:
    assert (largest_b1(L1, HEAD, (5, 16)), largest_b2(L2, HEAD, 160, 16), largest_b3(L1, HEAD, 5)) == (
        190,
        528,
        224,
    )


def test_the_table_covers_the_catalogue() -> None:
    assert set(EXPECTED) == set(targets())


@each_machine
def test_blocking_of_every_machine(name: str) -> None:
    found = choose_attention(Attention(HEAD), find_machine(name))
    assert (found.mr, found.nr, found.b1, found.b2, found.b3) == EXPECTED[name]


@each_machine
@each_dtype
@pytest.mark.parametrize("head", [16, 64, 128, 256])
def test_blocks_stay_in_their_parts_of_the_caches(name: str, dtype: DType, head: int) -> None:
    """(3'), (4') and (5), unless not even one tile, panel or unit of depth fits."""
    machine = find_machine(name)
    found = choose_attention(Attention(head, dtype=dtype), machine)
    instruction = machine.isa.tile(dtype)
    acc, element = max(dtype.size, 4), max(dtype.size, instruction.b.size)
    keys = found.b2 * 2 * head * element
    assert found.mr * found.b2 * acc < machine.l1.size / STRIP_L1_PART or found.b2 == found.nr
    assert keys < machine.l2.size / BLOCKS_L2_PART or found.b2 == found.nr
    rows = found.b1 * head * (dtype.size + acc)
    assert rows < machine.l2.size / BLOCKS_L2_PART or found.b1 == found.mr
    assert found.b1 < LEAST_QUERIES + found.mr
    assert values_in_l1(found, head) * element < machine.l1.size or found.b3 <= 32
    assert found.kr == instruction.kr


@pytest.mark.parametrize("isa", [AVX512, AVX2, NEON, RVV128, GENERIC128], ids=lambda isa: isa.name)
def test_no_tile_of_whole_lines_has_a_better_ratio(isa: Isa) -> None:
    """The choice against every tile by hand: best CMR of whole lines within the slack, else of all."""
    tiles = attention_tiles(isa, isa.tile(F32))
    chosen = attention_tile(isa, isa.tile(F32), LINES)
    best = max(tile.cmr for tile in tiles)
    whole = [tile.cmr for tile in tiles if tile.nr % 16 == 0 and tile.cmr >= (1 - LINE_SLACK) * best]
    assert chosen.cmr == max(whole or [best])
    assert chosen.registers <= isa.vector_registers


def test_registers_of_fused_steps_make_the_tile_lower() -> None:
    tile = attention_tile(AVX512, AVX512.tile(F32), LINES, FUSED_REGISTERS)
    assert (tile.mr, tile.nr, tile.registers) == (13, 32, 32)


def test_no_registers_left() -> None:
    with pytest.raises(NoRegisterTile):
        attention_tile(NEON, NEON.tile(F32), LINES, fused=30)


@pytest.mark.parametrize("name", ["mr", "nr", "kr", "b1", "b2", "b3"])
def test_sizes_of_a_blocking_are_positive(name: str) -> None:
    with pytest.raises(InvalidSize, match=name):
        replace(SEED, **{name: 0})


@pytest.mark.parametrize("change", [{"b1": 161}, {"b2": 168}, {"kr": 3, "b2": 160}, {"kr": 32}])
def test_blocks_are_whole_tiles(change: dict[str, int]) -> None:
    with pytest.raises(BlockNotMultiple):
        replace(SEED, **{"b3": 100, **change} if change.get("kr") == 32 else change)
