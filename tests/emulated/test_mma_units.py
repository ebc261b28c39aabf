"""POWER10's outer products of every type on an emulated CPU, against NumPy: values, order, wrapping, NaN."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from grid_kernel import GridKernel, panels, product
from mma_tiles import GRID, TILES, label
from support import Array

from emulated.emulators import link, missing_tool, run_emulated
from tilewright.llvm.build import Module
from tilewright.llvm.target import data_layout, emit_object
from tilewright.machine.catalog import find_machine
from tilewright.machine.isa import TileFma
from tilewright.micro.units.mma import Mma
from tilewright.spec.dtype import DType

MACHINE = find_machine("pwr10")
CALLER = Path(__file__).parent / "panels.c"
#: Depths: none, one, a step and its neighbours, several steps and a tail.
DEPTHS = (0, 1, 3, 8, 9, 67)
GRIDS = (GRID, (1, 1), (2, 2))
#: The smallest subnormal numbers.
LEAST = {"bf16": 2.0**-133, "f16": 2.0**-24, "f32": 2.0**-149, "f64": 2.0**-1074}


class Run(NamedTuple):
    """One call: its operands, and what it left in C."""

    tile: TileFma
    name: str
    a: Array
    b: Array
    c: Array


def bounds(dtype: DType) -> tuple[int, int]:
    """The least and the greatest integer of a type."""
    bits = dtype.significand
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype.kind.value == "signed" else (0, (1 << bits) - 1)


def fillings(tile: TileFma, m: int, n: int, k: int) -> Iterator[tuple[str, Array, Array]]:
    """Operands by name."""
    random = np.random.default_rng(m * n + k)
    if not tile.a.is_integer:
        small = random.integers(-4, 5, (m, k)), random.integers(-4, 5, (k, n))
        yield "exact", small[0].astype(tile.a.numpy), small[1].astype(tile.b.numpy)
        rough = random.standard_normal((m, k)), random.standard_normal((k, n))
        yield "rough", rough[0].astype(tile.a.numpy), rough[1].astype(tile.b.numpy)
        return
    (low_a, high_a), (low_b, high_b) = bounds(tile.a), bounds(tile.b)
    a, b = random.integers(low_a, high_a + 1, (m, k)), random.integers(low_b, high_b + 1, (k, n))
    yield "random", a.astype(tile.a.numpy), b.astype(tile.b.numpy)
    for end_a in (low_a, high_a):
        for end_b in (low_b, high_b):
            whole = np.full((m, k), end_a), np.full((k, n), end_b)
            yield f"{end_a}*{end_b}", whole[0].astype(tile.a.numpy), whole[1].astype(tile.b.numpy)


def special(tile: TileFma, m: int, n: int) -> tuple[str, Array, Array]:
    """Infinities, NaN and subnormals in some rows, with the identity and a constant as B."""
    least = LEAST[tile.a.name]
    k = n
    a, b = np.zeros((m, k)), np.eye(k, n)
    a[0], a[1], a[2] = np.arange(k) * least, -least, 1.0
    a[2, 0], a[3, k - 1] = np.inf, np.nan
    b[:, n - 1] = 1
    return "special", a.astype(tile.a.numpy), b.astype(tile.b.numpy)


def runs(folder: Path) -> tuple[Run, ...]:
    """Every call, in one run of one binary."""
    module = Module("units", MACHINE.triple, data_layout(MACHINE))
    kernels: list[GridKernel] = []
    operands: list[tuple[int, str, Array, Array]] = []
    for tile in TILES:
        for grid in GRIDS:
            kernel = GridKernel(Mma(MACHINE.isa, tile), *grid)
            kernel.emit(module, f"kernel_{len(kernels)}")
            m, n = kernel.shape
            filled = [each for k in DEPTHS for each in fillings(tile, m, n, k)]
            if not tile.a.is_integer:
                filled.append(special(tile, m, n))
            operands += [(len(kernels), *each) for each in filled]
            kernels.append(kernel)
    packed, results = [struct.pack("<q", len(operands))], []
    for number, _, a, b in operands:
        tile = kernels[number].tile
        left, right = panels(tile, a, b)
        c = np.empty((a.shape[0], b.shape[1]), tile.acc.numpy)
        head = number, -(-a.shape[1] // tile.k), len(left), len(right), c.nbytes
        packed += [struct.pack("<5q", *head), left, right]
        results.append(c)
    (folder / "cases").write_bytes(b"".join(packed))
    table = "".join(f"void kernel_{number}(void);\n" for number in range(len(kernels)))
    listed = ", ".join(f"(void *)kernel_{number}" for number in range(len(kernels)))
    (folder / "table.c").write_text(f"{table}void *const kernels[] = {{{listed}}};\n")
    (folder / "units.o").write_bytes(emit_object(str(module), "units", MACHINE))
    link(MACHINE, [CALLER, folder / "table.c"], [folder / "units.o"], folder / "units")
    status, output, complaints = run_emulated(
        MACHINE, folder / "units", str(folder / "cases"), str(folder / "results")
    )
    assert status == 0, output + complaints
    written = memoryview((folder / "results").read_bytes())
    done = []
    for (number, name, a, b), c in zip(operands, results, strict=True):
        c[...] = np.frombuffer(written[: c.nbytes], c.dtype).reshape(c.shape)
        written = written[c.nbytes :]
        done.append(Run(kernels[number].tile, f"{name} {a.shape} {b.shape}", a, b, c))
    assert not written
    return tuple(done)


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, ...]:
    missing = missing_tool(MACHINE)
    if missing:
        pytest.skip(missing)
    return runs(tmp_path_factory.mktemp("units"))


@pytest.mark.parametrize("tile", TILES, ids=label)
def test_products(tile: TileFma, calls: tuple[Run, ...]) -> None:
    """Integers modulo 2^32 and exact sums to the bit; others within the bound of a sum of k products."""
    mine = [call for call in calls if call.tile == tile]
    assert len(mine) >= len(GRIDS) * (len(DEPTHS) + 1)
    for call in mine:
        expected = product(call.a, call.b, tile.acc.numpy)
        if "rough" not in call.name:
            np.testing.assert_array_equal(call.c, expected, err_msg=call.name)
            continue
        sizes = np.abs(call.a.astype(float)) @ np.abs(call.b.astype(float))
        bound = (call.a.shape[1] + 2) * tile.acc.unit_roundoff * sizes
        assert np.all(np.abs(call.c - expected) <= bound), call.name


def test_sums_wrap_around(calls: tuple[Run, ...]) -> None:
    """Twice the square of the least int16 is 2^31: it becomes -2^31, where the saturating form would stop."""
    wrapped = [
        call
        for call in calls
        if call.tile.a.name == "i16" and np.all(call.a == -32768) and np.all(call.b == -32768)
    ]
    values = {call.a.shape[1]: set(call.c.ravel().tolist()) for call in wrapped if call.a.size}
    assert values == {1: {1 << 30}, 3: {-(1 << 30)}, 8: {0}, 9: {1 << 30}, 67: {-(1 << 30)}}


@pytest.mark.parametrize("name", ["bf16", "f16", "f32", "f64"])
def test_subnormal_operands_count(name: str, calls: tuple[Run, ...]) -> None:
    for call in calls:
        if call.tile.a.name == name and call.name.startswith("special"):
            assert np.all(call.c[0, 1:-1] == call.a[0, 1:-1].astype(call.c.dtype))
            assert np.all(call.c[0, 1:] != 0)
