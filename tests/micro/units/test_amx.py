"""AMX: machine code of the grid, compiled on any machine, and its kernels on a model of the unit."""

from __future__ import annotations

import ctypes
import itertools
from functools import cache

import llvmlite.binding as llvm
import numpy as np
import pytest
from amx_model import AmxModel, modelled
from assembly_text import AssemblyLoop, functions, innermost_loops
from grid_kernel import GridKernel, pack, panels, product
from support import Array
from tiers import crossed
from uncompiled import uncompiled

import tilewright as tw
from tilewright.llvm.build import Module
from tilewright.llvm.jit import Linked
from tilewright.llvm.target import data_layout, emit_assembly
from tilewright.machine.catalog import find_machine
from tilewright.machine.isa import TileFma
from tilewright.micro.units.amx import Amx, configuration
from tilewright.spec.dtype import BF16, F16, F32, I8, I32, U8, DType

#: It has every instruction; those of float16 are its own.
MACHINE = find_machine("graniterapids")
GRID = (2, 2)


def _tile(instruction: str, a: DType, b: DType, acc: DType, feature: str) -> TileFma:
    k, kr = 64 // a.size, 4 // a.size
    return TileFma(
        instruction, a, b, acc, 16, 16, k, kr, k, feature, per_cycle=1 / 16, latency=52, accumulators=4
    )


TILES = (
    _tile("tdpbf16ps", BF16, BF16, F32, "amx-bf16"),
    _tile("tdpfp16ps", F16, F16, F32, "amx-fp16"),
    _tile("tdpbssd", I8, I8, I32, "amx-int8"),
    _tile("tdpbsud", I8, U8, I32, "amx-int8"),
    _tile("tdpbusd", U8, I8, I32, "amx-int8"),
    _tile("tdpbuud", U8, U8, I32, "amx-int8"),
)
each_tile = pytest.mark.parametrize("tile", TILES, ids=lambda tile: tile.instruction)

# --- machine code -------------------------------------------------------------------------------------


@cache
def assembly(tile: TileFma) -> str:
    name = "graniterapids" if tile.feature == "amx-fp16" else "sapphirerapids"
    machine = find_machine(name)
    module = Module("unit", machine.triple, data_layout(machine))
    GridKernel(Amx(machine.isa, tile), *GRID).emit(module, "kernel")
    return emit_assembly(str(module), "unit", machine)


def whole(tile: TileFma) -> AssemblyLoop:
    return functions(assembly(tile), MACHINE.triple)["kernel"]


@each_tile
def test_a_step_is_four_loads_and_four_products(tile: TileFma) -> None:
    (loop,) = innermost_loops(assembly(tile), MACHINE.triple)
    counts = loop.counts
    assert counts[tile.instruction] == counts["tileloadd"] == 4
    rest = [line for line in loop.instructions if not line.startswith(("tileloadd", tile.instruction))]
    assert len(rest) <= 7, "addresses, the counter and the jump"
    assert not [line for line in rest if "rsp" in line or "mm" in line]
    products = [line.split(maxsplit=1)[1].replace(" ", "") for line in loop.matching(rf"^{tile.instruction}")]
    assert products == [f"%tmm{b},%tmm{a},%tmm{2 * (a - 4) + b - 6}" for a in (4, 5) for b in (6, 7)]


@each_tile
def test_the_unit_is_configured_and_released_once(tile: TileFma) -> None:
    counts = whole(tile).counts
    assert [counts[name] for name in ("ldtilecfg", "tilezero", "tilestored", "tilerelease")] == [1, 4, 4, 1]


def test_the_configuration_is_eight_whole_tiles() -> None:
    """Intel SDM vol. 2, LDTILECFG: palette, start row, 14 reserved, 16 lengths of 2 bytes, 16 counts."""
    block = configuration()
    assert len(block) == 64
    assert block[:16] == bytes([1]) + bytes(15)
    assert block[16:48] == b"\x40\x00" * 8 + bytes(16)
    assert block[48:] == b"\x10" * 8 + bytes(8)


@pytest.mark.parametrize("grid", [(2, 3), (1, 4), (3, 2)])
def test_grids_that_do_not_fit_are_refused(grid: tuple[int, int]) -> None:
    module = Module("unit", MACHINE.triple, data_layout(MACHINE))
    with pytest.raises(AssertionError, match="eight tiles"):
        GridKernel(Amx(MACHINE.isa, TILES[0]), *grid).emit(module, "kernel")


# --- operands -----------------------------------------------------------------------------------------


def test_where_an_element_is_in_a_panel() -> None:
    """Row i of a tile of A is lane i; row g of a tile of B is depths 2g and 2g + 1 of 16 lanes."""
    tile = TILES[0]
    i, p, j = 21, 13, 18
    a, b = np.zeros((32, 32), np.int16), np.zeros((32, 32), np.int16)
    a[i, p] = b[j, p] = 1
    (in_a,), (in_b,) = (
        np.flatnonzero(pack(lanes, kr, tile.k)) for lanes, kr in ((a, tile.interleave_a), (b, tile.kr))
    )
    down, across = i // 16, j // 16
    assert 2 * in_a == down * 16 * 64 + (i % 16) * 64 + 2 * p
    assert 2 * in_b == across * 64 + (p // 2) * 2 * 64 + (j % 16) * 4 + 2 * (p % 2)


# --- numbers, on the model ----------------------------------------------------------------------------


@cache
def object_code(tile: TileFma, grid: tuple[int, int]) -> bytes:
    """The kernel for this CPU, with the model's functions in place of the instructions."""
    triple = llvm.get_default_triple()
    machine = llvm.Target.from_triple(triple).create_target_machine(reloc="pic", codemodel="default", opt=1)
    module = Module("unit", triple, str(machine.target_data))
    GridKernel(Amx(MACHINE.isa, tile), *grid).emit(module, "kernel")
    return bytes(machine.emit_object(llvm.parse_assembly(modelled(str(module)))))


def run(tile: TileFma, grid: tuple[int, int], a: Array, b: Array) -> tuple[Array, AmxModel]:
    unit = AmxModel()
    code = Linked(object_code(tile, grid), ("kernel",), unit.imports())
    left, right = panels(tile, a, b)
    c = np.empty((a.shape[0], b.shape[1]), tile.acc.numpy)
    c.view(np.uint8)[...] = 0xFF
    pointers = [ctypes.c_char_p(left), ctypes.c_char_p(right), ctypes.c_void_p(c.ctypes.data)]
    steps = ctypes.c_int64(-(-a.shape[1] // tile.k))
    ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * 3)(code.address("kernel"))(
        steps, *(ctypes.cast(pointer, ctypes.c_void_p) for pointer in pointers)
    )
    assert not unit.errors
    assert not unit.configured, "the unit is released"
    return c, unit


@pytest.mark.parametrize(
    ("tile", "grid", "depth"),
    crossed(TILES, itertools.product([(2, 2), (1, 3), (3, 1), (1, 1)], [0, 1, 64, 131]), 4),
    ids=lambda part: getattr(part, "instruction", None),
)
def test_products(tile: TileFma, grid: tuple[int, int], depth: int) -> None:
    """Every sum is exact: small integers in floats, all values of bytes."""
    random = np.random.default_rng(depth)
    shapes = ((16 * grid[0], depth), (depth, 16 * grid[1]))
    a, b = (
        random.integers(*((-4, 5) if not dtype.is_integer else _range(dtype)), shape).astype(dtype.numpy)
        for dtype, shape in zip((tile.a, tile.b), shapes, strict=True)
    )
    c, unit = run(tile, grid, a, b)
    np.testing.assert_array_equal(c, product(a, b, tile.acc.numpy))
    steps = -(-depth // tile.k)
    assert unit.calls.count(tile.instruction) == steps * grid[0] * grid[1]
    assert unit.calls.count("tileloadd64") == steps * (grid[0] + grid[1])


def _range(dtype: DType) -> tuple[int, int]:
    return (0, 256) if dtype == U8 else (-128, 128)


@each_tile
def test_extremes(tile: TileFma) -> None:
    depth = 2 * tile.k
    if tile.a.is_integer:
        for end_a in np.array(_range(tile.a)) - (0, 1):
            for end_b in np.array(_range(tile.b)) - (0, 1):
                a, b = np.full((32, depth), end_a), np.full((depth, 32), end_b)
                a, b = a.astype(tile.a.numpy), b.astype(tile.b.numpy)
                np.testing.assert_array_equal(run(tile, GRID, a, b)[0], product(a, b, np.int32))
        return
    a, b = np.ones((32, depth)), np.ones((depth, 32))
    a[3, 5], a[17, 7], b[1, 30] = np.inf, np.nan, -np.inf
    a, b = a.astype(tile.a.numpy), b.astype(tile.b.numpy)
    np.testing.assert_array_equal(run(tile, GRID, a, b)[0], product(a, b, np.float32))


# --- tasks ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "problem",
    [
        tw.Gemm(dtype="bf16", strategy="packing"),
        tw.Gemm(dtype="bf16", a="strided", b="packed", c="strided", epilogue="bias,gelu"),
        tw.Gemm(dtype="u8", b_dtype="i8", out_dtype="i32", m=64, n=64, k=256),
    ],
    ids=["strided", "packed", "known"],
)
def test_a_task_configures_the_unit_once_for_all_of_its_tiles(problem: tw.Gemm) -> None:
    """LDTILECFG waits for the multiplies before it, so tiles leave it to the function that calls them."""
    kernel = uncompiled(problem, "sapphirerapids")
    found = functions(kernel.assembly, find_machine("sapphirerapids").triple)
    tiles = {name: loop for name, loop in found.items() if name.startswith("tile_")}
    assert sum(loop.counts["tileloadd"] for loop in tiles.values()) > 0
    assert not any(loop.matching("^(ldtilecfg|tilerelease)") for loop in tiles.values())
    # Few rows of a packed weight go through vectors, in tasks of their own.
    engine = r"^callq\s+tile_(?!\w*_rows_)"
    callers = {name for name, loop in found.items() if loop.matching(engine)} - set(tiles)
    assert callers
    for name in callers:
        assert (found[name].counts["ldtilecfg"], found[name].counts["tilerelease"]) == (1, 1), name
