"""SME's outer products at several streaming lengths on an emulated CPU, against NumPy.

The emulated CPU refuses, in streaming mode, the instructions that a CPU without FEAT_SME_FA64 refuses.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from arm_units import MATRIX, UnitKernel, sme_tiles, sme_unit, streaming, unit_module
from grid_kernel import product
from support import Array

from emulated.emulators import emulator_of, link, missing_tool
from emulated.test_sve_units import check
from emulated.unit_runs import Call, fillings, run_units
from tilewright.llvm.target import emit_object
from tilewright.spec.dtype import F32

LENGTHS = (128, 256, 512, 1024)
DEPTHS = (0, 1, 8, 19)
CALLER = Path(__file__).parent / "lazy_save.c"


def kernels(bits: int) -> Iterator[UnitKernel]:
    for tile in sme_tiles(bits):
        for down, across in ((2, 2), (1, tile.acc.size), (tile.acc.size, 1), (1, 1)):
            yield UnitKernel(sme_unit(tile, bits), down, across)


def paired(whole: Array) -> Array:
    """What qemu 7.2 leaves of a product of bytes: it takes two rows and two columns of 32 bits for one of 64.

    Even rows only; in them, the columns of even number are right, and those of odd number are the next row's.
    So every row of A and every column of B is seen, half of their products are.
    """
    seen = np.zeros_like(whole)
    seen[::2, ::2] = whole[::2, ::2]
    seen[::2, 1::2] = whole[1::2, 1::2]
    return seen


@pytest.fixture(autouse=True)
def tools() -> None:
    missing = missing_tool(MATRIX)
    if missing:
        pytest.skip(missing)


def whole_product(call: Call) -> Array:
    return product(call.a, call.b, np.int32)


@pytest.mark.parametrize("bits", LENGTHS)
def test_products(bits: int, tmp_path: Path) -> None:
    every = list(kernels(bits))
    operands = [
        (number, *each)
        for number, kernel in enumerate(every)
        for k in DEPTHS
        for each in fillings(kernel.unit.tile, *kernel.shape, k)
    ]
    cpu = f",sme_fa64=off,sme-default-vector-length={bits // 8}"
    calls = run_units(MATRIX, every, operands, tmp_path, attributes=streaming(bits), cpu=cpu)
    integers = [call for call in calls if call.kernel.unit.tile.a.is_integer]
    faulty = not np.array_equal(integers[-1].c, whole_product(integers[-1]))
    for call in calls:
        if faulty and call.kernel.unit.tile.a.is_integer:
            np.testing.assert_array_equal(call.c, paired(whole_product(call)), err_msg=call.name)
        else:
            check(call)
    assert {call.kernel.unit.tile for call in calls} == {*sme_tiles(bits)}


@pytest.mark.parametrize("bits", LENGTHS)
def test_the_content_of_za_is_saved_for_its_owner(bits: int, tmp_path: Path) -> None:
    """And nothing is needed of a run-time library: the link is static, without one for SME."""
    tile = next(tile for tile in sme_tiles(bits) if tile.a == F32)
    module = unit_module(MATRIX, streaming(bits))
    UnitKernel(sme_unit(tile, bits), 2, 2).emit(module, "unit")
    (tmp_path / "unit.o").write_bytes(emit_object(str(module), "unit", MATRIX))
    link(MATRIX, [CALLER], [tmp_path / "unit.o"], tmp_path / "lazy")
    command = emulator_of(MATRIX).command(MATRIX)
    command[-1] += f",sme_fa64=off,sme-default-vector-length={bits // 8}"
    done = subprocess.run([*command, str(tmp_path / "lazy")], check=False)
    assert done.returncode == 0
