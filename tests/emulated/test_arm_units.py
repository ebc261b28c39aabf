"""Arm's dot products and 2×2 products on an emulated CPU, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from arm_units import ARMV8, DOTS, SQUARES, UnitKernel, label, neon_unit
from grid_kernel import product

from emulated.emulators import missing_tool
from emulated.unit_runs import Call, bfdot, fillings, run_units
from tilewright.machine.isa import TileFma
from tilewright.spec.dtype import BF16, I8

#: Depths: none, one, a step and its neighbours, several steps and a tail.
DEPTHS = (0, 1, 3, 8, 9, 67)
#: Down, across, narrow vectors.
OF_DOTS: tuple[tuple[int, int, tuple[int, ...]], ...] = (
    (8, 3, ()),
    (7, 2, (2, 1)),
    (6, 1, (2,)),
    (1, 1, (1,)),
    (12, 1, ()),
)
OF_SQUARES: tuple[tuple[int, int, tuple[int, ...]], ...] = ((4, 4, ()), (2, 3, ()), (1, 1, ()), (3, 2, ()))


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> list[Call]:
    missing = missing_tool(ARMV8)
    if missing:
        pytest.skip(missing)
    kernels = [UnitKernel(neon_unit(tile), *grid) for tile in DOTS for grid in OF_DOTS]
    kernels += [UnitKernel(neon_unit(tile), *grid) for tile in SQUARES for grid in OF_SQUARES]
    operands = [
        (number, *each)
        for number, kernel in enumerate(kernels)
        for k in DEPTHS
        for each in fillings(kernel.unit.tile, *kernel.shape, k)
    ]
    for number, kernel in enumerate(kernels):
        tile, (m, n) = kernel.unit.tile, kernel.shape
        end, k = (-128, 140_000) if tile.a == I8 else (255, 33_030)
        if tile.a == tile.b and tile.a.is_integer and m <= 2:
            a, b = np.full((m, k), end, tile.a.numpy), np.full((k, n), end, tile.b.numpy)
            operands.append((number, "wrap", a, b))
    return run_units(ARMV8, kernels, operands, tmp_path_factory.mktemp("arm"))


@pytest.mark.parametrize("tile", [tile for tile in (*DOTS, *SQUARES) if tile.a != BF16], ids=label)
def test_products(tile: TileFma, calls: list[Call]) -> None:
    """Integers modulo 2^32 and exact sums to the bit; others within the bound of a sum of k products."""
    mine = [call for call in calls if call.kernel.unit.tile == tile]
    assert len(mine) >= len(DEPTHS) * 4
    for call in mine:
        expected = product(call.a, call.b, tile.acc.numpy)
        if tile.a.is_integer or call.name.startswith(("exact", "special")):
            np.testing.assert_array_equal(call.c, expected, err_msg=call.name)
            continue
        sizes = np.abs(call.a.astype(float)) @ np.abs(call.b.astype(float))
        bound = (call.a.shape[1] + 2) * tile.acc.unit_roundoff * sizes
        assert np.all(np.abs(call.c - expected) <= bound), call.name


@pytest.mark.parametrize("tile", [tile for tile in (*DOTS, *SQUARES) if tile.a == BF16], ids=label)
def test_bfloat16_rounds_to_odd_and_flushes(tile: TileFma, calls: list[Call]) -> None:
    """To the bit what the manual's pseudocode gives, and within the bound of a sum of k products."""
    mine = [call for call in calls if call.kernel.unit.tile == tile]
    assert len(mine) >= len(DEPTHS) * 4
    rounded = 0
    for call in mine:
        np.testing.assert_array_equal(call.c, bfdot(call.a, call.b), err_msg=call.name)
        if call.name.startswith(("exact", "rough")):
            expected = product(call.a, call.b, np.float32)
            sizes = np.abs(call.a.astype(float)) @ np.abs(call.b.astype(float))
            bound = (call.a.shape[1] + 2) * tile.acc.unit_roundoff * sizes
            assert np.all(np.abs(call.c - expected) <= bound), call.name
            rounded += int(np.sum(call.c != expected))
        if call.name.startswith("special") and call.a.shape[1]:
            assert np.all(call.c[:2] == 0), "subnormal operands count as zero"
    assert rounded, "no case told rounding to odd from rounding to nearest"


def test_integers_wrap_around(calls: list[Call]) -> None:
    """255·255·33030 is more than 2^31, and 128·128·140000 too."""
    wrapped = [call for call in calls if call.name.startswith("wrap")]
    assert {call.kernel.unit.tile for call in wrapped} == {
        tile for tile in (*DOTS, *SQUARES) if tile.a == tile.b and tile.a.is_integer
    }
    for call in wrapped:
        assert np.all(call.c < 0)
        np.testing.assert_array_equal(call.c, product(call.a, call.b, np.int32))
