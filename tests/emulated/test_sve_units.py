"""SVE's products at every vector length on an emulated CPU, against NumPy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from arm_units import ARMV9, UnitKernel, sve_tiles, sve_unit, vector_length
from grid_kernel import product

from emulated.emulators import missing_tool
from emulated.unit_runs import Call, bfdot, fillings, run_units
from tilewright.spec.dtype import BF16, F64

LENGTHS = (128, 256, 512, 1024, 2048)
DEPTHS = (0, 1, 8, 19)
OF_VECTORS: tuple[tuple[int, int, tuple[int, ...]], ...] = ((6, 4, ()), (3, 1, (4, 2, 1)), (1, 1, ()))
OF_SQUARES: tuple[tuple[int, int, tuple[int, ...]], ...] = ((4, 4, ()), (2, 3, ()), (1, 1, ()))


def kernels(bits: int) -> Iterator[UnitKernel]:
    for tile in sve_tiles(bits):
        for down, across, narrow in OF_SQUARES if tile.m == 2 else OF_VECTORS:
            widths = tuple(width for width in narrow if width <= tile.n)
            yield UnitKernel(sve_unit(tile, bits), down, across, widths)


def check(call: Call) -> None:
    """To the bit where sums are exact, or rounded as the manual says; else within the bound of k products."""
    tile = call.kernel.unit.tile
    if tile.a == BF16:
        np.testing.assert_array_equal(call.c, bfdot(call.a, call.b), err_msg=call.name)
        return
    expected = product(call.a, call.b, tile.acc.numpy)
    if tile.a.is_integer or call.name.startswith(("exact", "special")):
        np.testing.assert_array_equal(call.c, expected, err_msg=call.name)
        return
    sizes = np.abs(call.a.astype(float)) @ np.abs(call.b.astype(float))
    # The reference is rounded too, where it has no wider type than the kernel.
    bound = (call.a.shape[1] + 2) * tile.acc.unit_roundoff * sizes * (2 if tile.acc == F64 else 1)
    assert np.all(np.abs(call.c - expected) <= bound), call.name


@pytest.mark.parametrize("bits", LENGTHS)
def test_products(bits: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    missing = missing_tool(ARMV9)
    if missing:
        pytest.skip(missing)
    every = list(kernels(bits))
    operands = [
        (number, *each)
        for number, kernel in enumerate(every)
        for k in DEPTHS
        for each in fillings(kernel.unit.tile, *kernel.shape, k)
    ]
    calls = run_units(
        ARMV9,
        every,
        operands,
        tmp_path_factory.mktemp("sve"),
        attributes=vector_length(bits),
        cpu=f",sve-default-vector-length={bits // 8}",
    )
    for call in calls:
        check(call)
    assert {call.kernel.unit.tile for call in calls} == {*sve_tiles(bits)}
