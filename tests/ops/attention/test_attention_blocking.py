"""The model of attention: what every catalogued machine gets."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shares import looped

from tilewright.errors import BlockNotMultiple, InvalidSize
from tilewright.machine.catalog import find_machine, targets
from tilewright.ops.attention.cut import (
    BLOCKS_L2_PART,
    DEPTH_UNIT,
    LEAST_QUERIES,
    STRIP_L1_PART,
    AttentionBlocking,
    choose_attention,
    largest_b3,
)
from tilewright.ops.attention.problem import Attention
from tilewright.spec.dtype import BF16, F32, F64, DType

HEAD = 64
#: The blocks of Fu et al. 2024 (doi:10.1145/3650200.3656620), §5.2.1.
PAPER = AttentionBlocking(mr=5, nr=16, kr=1, b1=160, b2=160, b3=128)

#: mr, nr, b1, b2, b3 of f32, heads of 64. For znver5, by hand: the tile of products; b1 = 192 is 16 of its 12
#: rows; b2 < 48 KiB / 2 / (12 · 4 B) = 512, down to whole 32; b3 < (12288 - 768) / 76, down to whole 32.
EXPECTED: dict[str, tuple[int, int, int, int, int]] = {
    "haswell": (6, 16, 168, 160, 96),
    "cascadelake": (6, 64, 192, 640, 96),
    "sapphirerapids": (12, 32, 192, 480, 128),
    "graniterapids": (12, 32, 192, 480, 128),
    "znver2": (6, 16, 192, 336, 96),
    "znver4": (6, 64, 192, 640, 96),
    "znver5": (12, 32, 192, 480, 128),
    # b2 < 1 MiB / 3 / 512 B = 682.7, down to whole 8.
    "neoverse-n1": (12, 8, 192, 680, 192),
    "neoverse-v1": (12, 8, 192, 680, 192),
    "neoverse-v2": (12, 8, 192, 680, 192),
    "kunpeng-920": (12, 8, 192, 336, 192),
    "a64fx": (14, 32, 196, 576, 192),
    "apple-m4": (32, 32, 192, 480, 288),
    "apple-m1": (8, 12, 192, 2040, 416),
    "pwr9": (6, 36, 192, 324, 96),
    "pwr10": (8, 16, 192, 496, 96),
    "rva23": (7, 16, 196, 672, 224),
    "x86-64-v2": (6, 8, 168, 168, 96),
    "x86-64-v3": (6, 16, 168, 160, 96),
    "x86-64-v4": (14, 32, 196, 288, 64),
}
each_machine = pytest.mark.parametrize("name", targets())
each_dtype = pytest.mark.parametrize("dtype", [F32, F64, BF16], ids=str)


@given(
    l1=st.integers(16 << 10, 256 << 10),
    head=st.integers(1, 128),
    mr=st.sampled_from([1, 5, 8, 14]),
    size=st.sampled_from([2, 4, 8]),
)
def test_the_most_values_below_l1(l1: int, head: int, mr: int, size: int) -> None:
    """What the bound returns is admitted, and one unit more is not; at least one unit comes back."""
    b3 = largest_b3(l1, head, mr, size)
    assert b3 % DEPTH_UNIT == 0
    needs = [values * head + mr * values + mr * head for values in (b3, b3 + DEPTH_UNIT)]
    assert needs[0] < l1 // size or b3 == DEPTH_UNIT
    assert needs[1] >= l1 // size


def test_the_table_covers_the_catalogue() -> None:
    assert set(EXPECTED) == set(targets())


@each_machine
def test_blocking_of_every_machine(name: str) -> None:
    found = choose_attention(Attention(HEAD), find_machine(name))
    assert (found.mr, found.nr, found.b1, found.b2, found.b3) == EXPECTED[name]


@each_machine
@each_dtype
@looped("head", [16, 64, 128, 256])
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
    in_l1 = found.b3 * head + found.mr * found.b3 + found.mr * head
    assert in_l1 * element < machine.l1.size or found.b3 <= 32
    assert found.kr == instruction.kr


@pytest.mark.parametrize("name", ["mr", "nr", "kr", "b1", "b2", "b3"])
def test_sizes_of_a_blocking_are_positive(name: str) -> None:
    with pytest.raises(InvalidSize, match=name):
        replace(PAPER, **{name: 0})


@pytest.mark.parametrize("change", [{"b1": 161}, {"b2": 168}, {"kr": 3, "b2": 160}, {"kr": 32}])
def test_blocks_are_whole_tiles(change: dict[str, int]) -> None:
    with pytest.raises(BlockNotMultiple):
        replace(PAPER, **{"b3": 100, **change} if change.get("kr") == 32 else change)
