"""The pack kernel, run on every row of this host, against the interpreter's `Pack`.

What a pack may write: the micro-panels themselves. Everything around the destination must stay.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeAlias, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from support import host_rows

import tilewright as tw
from tilewright.ir.interpret import Run
from tilewright.ir.nodes import Constant, Pack, Slice
from tilewright.llvm.build import Module
from tilewright.llvm.jit import Linked
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT64, POINTER, VOID
from tilewright.machine.isa import Isa
from tilewright.macro.blocking import choose_blocking
from tilewright.micro.pack import PackKernel
from tilewright.spec.dtype import GEMM_DTYPES, DType

Array: TypeAlias = NDArray[Any]

ARGUMENTS = ("destination", "source", "lane_stride", "depth_stride", "lanes", "depth")
GUARD = 40
SENTINEL = -77.0


@cache
def native_pack(isa: Isa, dtype: DType, panel: int) -> Callable[..., None]:
    machine = tw.machine().with_isa(isa)
    module = Module("pack", machine.triple, data_layout(machine))
    kinds = [(name, POINTER if name in ARGUMENTS[:2] else INT64) for name in ARGUMENTS]
    f = module.define("pack", VOID, kinds, exported=True)
    f.call(PackKernel(isa, dtype, panel).emit(module), list(f.arguments.values()))
    f.ret()
    code = Linked(emit_object(str(module), "pack", machine), ("pack",), {})
    native = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 4
    function: Any = ctypes.CFUNCTYPE(None, *native)(code.address("pack"))
    function.owner = code  # the code lives as long as the function
    return cast("Callable[..., None]", function)


def interpreted_pack(source: Array, origin: int, strides: tuple[int, int], node: Pack, size: int) -> Array:
    flat = np.full(size, np.nan, source.dtype)
    run = Run({"panels": (flat, 0), "source": (source, origin)}, {})
    run.pack(node, {"lane": strides[0], "depth": strides[1]})
    return flat


def cases(panel: int) -> Iterator[tuple[int, int]]:
    for lanes in sorted({1, panel - 1, panel, panel + 1, 2 * panel, 2 * panel + 3} - {0}):
        for depth in (0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33):
            yield lanes, depth


#: Strides as functions of lanes and depth: every way the kernel knows, and both signs.
STRIDES: dict[str, Callable[[int, int], tuple[int, int]]] = {
    "lanes adjacent": lambda lanes, depth: (1, lanes + 3),
    "lanes adjacent, no gap": lambda lanes, depth: (1, lanes),
    "lanes adjacent, depth backwards": lambda lanes, depth: (1, -(lanes + 1)),
    "depths adjacent": lambda lanes, depth: (depth + 5, 1),
    "depths adjacent, no gap": lambda lanes, depth: (depth, 1),
    "depths adjacent, lanes backwards": lambda lanes, depth: (-(depth + 1), 1),
    "neither": lambda lanes, depth: (2 * depth + 1, 2),
    "neither, backwards": lambda lanes, depth: (-3, -3 * (lanes + 1)),
    "both adjacent": lambda lanes, depth: (1, 1),
    "one lane repeated": lambda lanes, depth: (0, 1),
    "one depth repeated": lambda lanes, depth: (1, 0),
}


def panels_of(isa: Isa, dtype: DType) -> tuple[int, ...]:
    blocking = choose_blocking(tw.machine().with_isa(isa), dtype)
    return tuple(sorted({1, 5, 13, blocking.mr, blocking.nr}))


@pytest.mark.parametrize("how", STRIDES)
@pytest.mark.parametrize("dtype", GEMM_DTYPES, ids=str)
@pytest.mark.parametrize("isa", host_rows(), ids=lambda isa: isa.name)
def test_native_pack_equals_the_interpreter(isa: Isa, dtype: DType, how: str) -> None:
    random = np.random.default_rng(0)
    for panel in panels_of(isa, dtype):
        pack = native_pack(isa, dtype, panel)
        for lanes, depth in cases(panel):
            strides = STRIDES[how](lanes, depth)
            reach = ((lanes - 1) * strides[0], max(depth - 1, 0) * strides[1])
            origin = -sum(min(0, step) for step in reach)
            length = origin + sum(max(0, step) for step in reach) + 1
            source = random.standard_normal(length).astype(dtype.numpy)
            size = -(-lanes // panel) * panel * depth
            node = Pack(
                Slice("panels", Constant(0), (Constant(1), Constant(panel))),
                Slice("source", Constant(0), (Constant(strides[0]), Constant(strides[1]))),
                Constant(lanes),
                Constant(depth),
                panel,
            )
            expected = interpreted_pack(source, origin, strides, node, size)
            found = np.full(GUARD + size + GUARD, SENTINEL, dtype.numpy)
            start = found.ctypes.data + GUARD * dtype.size
            pack(start, source.ctypes.data + origin * dtype.size, *strides, lanes, depth)
            where = f"panel {panel}, {lanes} lanes, depth {depth}"
            np.testing.assert_array_equal(found[GUARD : GUARD + size], expected, where)
            assert (found[:GUARD] == SENTINEL).all(), f"{where}: wrote before the panels"
            assert (found[GUARD + size :] == SENTINEL).all(), f"{where}: wrote behind the panels"


@pytest.mark.parametrize("isa", host_rows(), ids=lambda isa: isa.name)
@pytest.mark.parametrize("dtype", GEMM_DTYPES, ids=str)
def test_values_are_copied_bit_by_bit(isa: Isa, dtype: DType) -> None:
    """NaN payloads, signed zeros, infinities and subnormals pass through unchanged."""
    panel = choose_blocking(tw.machine().with_isa(isa), dtype).nr
    depth = 16
    bits = np.random.default_rng(1).integers(0, 256, panel * depth * dtype.size, np.uint8)
    source = bits.view(dtype.numpy)
    smallest = np.nextafter(np.zeros(1, dtype.numpy_name), 1)[0]
    source[:4] = (np.nan, -0.0, np.inf, smallest)
    for strides in ((1, panel), (depth, 1)):
        found = np.zeros(panel * depth, dtype.numpy)
        native_pack(isa, dtype, panel)(found.ctypes.data, source.ctypes.data, *strides, panel, depth)
        shape = (depth, panel) if strides[0] == 1 else (panel, depth)
        lanes_last = source.reshape(shape) if strides[0] == 1 else source.reshape(shape).T
        expected = np.ascontiguousarray(lanes_last).view(np.uint8)
        np.testing.assert_array_equal(found.view(np.uint8), expected.reshape(-1))
