"""Wide tiles with operands in place, some of which copy B: the same bits as others, between guard pages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path as File
from typing import Any

import numpy as np
import pytest
from support import GUARD_PAGES, Array, GuardedMemory, rough

from tilewright.machine.catalog import find_machine
from tilewright.machine.host import host_machine
from tilewright.machine.isa import Edge
from tilewright.machine.machine import Machine
from tilewright.macro.prediction import Path, Product
from tilewright.ops.gemm.paths import GemmPaths
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.dtype import F32, parse_dtype
from tilewright.threads.pool import limited

sys.path.append(str(File(__file__).resolve().parents[3] / "benchmarks"))

pytestmark = [
    pytest.mark.compiled_well,
    pytest.mark.skipif(not GUARD_PAGES, reason="needs pages that cannot be accessed"),
]


@cache
def golden_cove() -> Machine:
    """This host's instructions beside the caches of a server that has the path."""
    host, server = host_machine(), find_machine("sapphirerapids")
    if host.isa.edge is not Edge.MASK or not host.isa.folds_loads:
        pytest.skip("the path is for rows that fold loads and have masks")
    return replace(host, core=server.core, l1=server.l1, l2=server.l2, l3=server.l3)


@cache
def kernel(dtype: str, path: Path) -> Any:
    from predictions import kernel_of

    return kernel_of(Gemm(dtype=parse_dtype(dtype)), golden_cove(), path)


@cache
def memory(operand: str) -> GuardedMemory:
    return GuardedMemory(1 << 22)


def sizes_of_copies() -> Iterator[tuple[int, int, int]]:
    """From one tile of rows on; columns beside each width of a tile; depths that end a block or a chain."""
    machine = golden_cove()
    tile = machine.isa.lanes(parse_dtype("f32"))
    for number, rows in enumerate((8, 9, 13, 16, 30)):
        for columns in (1, tile - 1, 3 * tile, 4 * tile + 3, 13 * tile):
            yield rows, columns, (1, 9, 255, 257, 1300)[(number + columns) % 5]


def sizes_in_place() -> Iterator[tuple[int, int, int]]:
    """From two whole tiles of rows on; columns beside each number of vectors; as many depths as are taken."""
    machine = golden_cove()
    tile = machine.isa.lanes(parse_dtype("f32"))
    for number, rows in enumerate((16, 17, 30, 37)):
        for columns in (2 * tile + 1, 3 * tile, 4 * tile - 1, 4 * tile, 5 * tile, 7 * tile + 3, 13 * tile):
            yield rows, columns, (1, 2, 9, 64, 192)[(number + columns) % 5]


def test_which_products_may_copy() -> None:
    paths = GemmPaths.of(Gemm(dtype=F32), golden_cove())
    assert Path.COPYING not in paths.possible(Product.contiguous(3, 100, 9)), "a tile has more rows"
    assert all(Path.COPYING in paths.possible(Product.contiguous(*sizes)) for sizes in sizes_of_copies())


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("path", [Path.COPYING, Path.IN_PLACE], ids=lambda path: path.name)
def test_wide_tiles_have_the_bits_of_panels(path: Path, dtype: str) -> None:
    """Each operand ends at a guard page, with bytes between its rows; C is written where it is C alone."""
    one = parse_dtype(dtype).numpy
    sizes = sizes_of_copies if path is Path.COPYING else sizes_in_place
    for number, (m, n, k) in enumerate(sizes()):
        arrays: dict[str, Array] = {}
        for name, shape in {"a": (m, k), "b": (k, n), "c": (m, n)}.items():
            values = rough(shape, one, number + len(arrays))
            steps = (values.strides[0] + (number % 3) * 5 * values.itemsize, values.itemsize)
            arrays[name] = memory(name).place(values, steps, at_end=number % 2 == 0)
        a, b, c = arrays.values()
        packed, before, outside = c.copy(), c.copy(), memory("c").outside(c)
        for alpha, beta in ((1.0, 0.0), (2.0, -1.0), (0.0, 0.5)):
            c[...] = packed[...] = np.nan if beta == 0 else before
            kernel(dtype, Path.PACKED)(a, b, packed, alpha=alpha, beta=beta)
            kernel(dtype, path)(a, b, c, alpha=alpha, beta=beta)
            np.testing.assert_array_equal(c, packed, f"{m}x{n}x{k}, {alpha}, {beta}")
        np.testing.assert_array_equal(memory("c").outside(c), outside, "bytes between rows changed")


@pytest.mark.parametrize("threads", [2, 3])
def test_each_task_has_a_panel_of_its_own(threads: int) -> None:
    """Tasks are columns: the same bits with any number of threads."""
    a, b = rough((20, 1300), np.float32, 1), rough((1300, 2000), np.float32, 2)
    found = []
    for number in (1, threads):
        c = np.full((20, 2000), np.nan, np.float32)
        with limited(number):
            kernel("f32", Path.COPYING)(a, b, c)
        found.append(c)
    np.testing.assert_array_equal(found[0], found[1])
    assert np.allclose(found[0], a @ b, rtol=1e-3, atol=1e-2)
