"""Whole tiles of POWER10's matrix unit on an emulated CPU: every depth around the loop's turns, exact sums.

Panels end at a page that may not be read, so a step that does not exist is not loaded.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from grid_kernel import panels, product
from mma_tiles import GRID, label
from mma_walks import MACHINE, TILES, Walk
from shares import share
from support import Array

from emulated.elements import ends
from emulated.emulators import link, missing_tool, run_emulated
from tilewright.llvm.build import Module
from tilewright.llvm.target import data_layout, emit_object
from tilewright.machine.isa import TileFma
from tilewright.spec.dtype import DType

CALLER = Path(__file__).parent / "panels.c"
GRIDS = (GRID, (1, 4), (2, 2), (1, 1), (1, 2))
#: None, those before the first turn, and several turns with every number of steps behind them.
STEPS = range(21)
#: Of the numbers of steps that a kernel knows, `make test` compiles one in so many for a tile.
KNOWN = 3


def walks(tile: TileFma) -> list[Walk]:
    """Steps given at run time in every grid, and known ones in the whole one."""
    given = [Walk(tile, *grid) for grid in GRIDS if grid[1] * tile.n % MACHINE.isa.lanes(tile.acc) == 0]
    known = share(STEPS, KNOWN, TILES.index(tile))
    return [*given, *(Walk(tile, *GRID, steps) for steps in known)]


def values(random: np.random.Generator, dtype: DType, shape: tuple[int, int]) -> Array:
    """All of a type of bytes or narrower; of others small integers, whose sums are exact."""
    if dtype.is_integer and dtype.bits <= 8:
        low, high = ends(dtype)
        return random.integers(low, high + 1, shape).astype(dtype.numpy)
    return random.integers(-4, 5, shape).astype(dtype.numpy)


@pytest.mark.parametrize("tile", TILES, ids=label)
def test_every_depth(tile: TileFma, tmp_path: Path) -> None:
    missing = missing_tool(MACHINE)
    if missing:
        pytest.skip(missing)
    module, random = Module("walks", MACHINE.triple, data_layout(MACHINE)), np.random.default_rng(tile.k)
    calls: list[tuple[str, Array]] = []
    packed = []
    kernels = walks(tile)
    for number, walk in enumerate(kernels):
        walk.emit(module, f"kernel_{number}")
        m, n = walk.shape
        for steps in STEPS if walk.steps is None else (walk.steps,):
            # The last step is not whole where it has several depths; a panel of none is scratch memory.
            k = max(0, steps * tile.k - tile.k // 2)
            a, b = values(random, tile.a, (m, k)), values(random, tile.b, (k, n))
            left, right = panels(tile, a, b) if k else (bytes(m * tile.k * 8), bytes(n * tile.k * 8))
            calls.append((f"{walk.down}x{walk.across} {walk.steps} {steps}", product(a, b, tile.acc.numpy)))
            head = number, steps, len(left), len(right), calls[-1][1].nbytes
            packed += [struct.pack("<5q", *head), left, right]
    (tmp_path / "cases").write_bytes(struct.pack("<q", len(calls)) + b"".join(packed))
    names = [f"kernel_{number}" for number in range(len(kernels))]
    declared = "".join(f"void {name}(void);\n" for name in names)
    listed = ", ".join(f"(void *){name}" for name in names)
    (tmp_path / "table.c").write_text(f"{declared}void *const kernels[] = {{{listed}}};\n")
    (tmp_path / "walks.o").write_bytes(emit_object(str(module), "walks", MACHINE))
    link(MACHINE, [CALLER, tmp_path / "table.c"], [tmp_path / "walks.o"], tmp_path / "walks")
    status, output, complaints = run_emulated(
        MACHINE, tmp_path / "walks", str(tmp_path / "cases"), str(tmp_path / "results")
    )
    assert status == 0, output + complaints
    written = memoryview((tmp_path / "results").read_bytes())
    for name, expected in calls:
        found = np.frombuffer(written[: expected.nbytes], expected.dtype).reshape(expected.shape)
        np.testing.assert_array_equal(found, expected, err_msg=name)
        written = written[expected.nbytes :]
    assert not written
