"""Attention for a CPU that is not here: what llvm-mca says of its inner loops."""

from __future__ import annotations

import pytest
from uncompiled import uncompiled

from tilewright.errors import ToolMissing
from tilewright.ops.attention.problem import Attention
from tilewright.tools.explore.mca import estimate_kernel, find_tool

#: What both products are to reach of the multiply unit.
SHARE = 0.9


def test_both_inner_loops_keep_the_multiply_unit_of_a_neoverse_busy() -> None:
    """Q·Kᵀ, whose operands stand in panels, and P·V, where V stands as it was given; nothing is spilled."""
    try:
        find_tool()
    except ToolMissing as missing:
        pytest.skip(str(missing))
    loops = estimate_kernel(uncompiled(Attention(64), "neoverse-v2")).loops
    tallest = max(loop.multiplies for loop in loops)
    inner = [loop for loop in loops if loop.multiplies == tallest]
    assert {loop.function for loop in inner} == {
        "tile_f32_f32_f32_multiply_add_12x8_packed_12",
        "tile_f32_f32_f32_multiply_add_12x8_12",
    }
    for loop in inner:
        assert loop.spills == 0
        assert loop.share >= SHARE, loop
