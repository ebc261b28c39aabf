"""Measures the peak of one core's multiply unit: one instruction on independent accumulators in registers."""

from __future__ import annotations

import ctypes
import math
import time

import numpy as np

from tilewright.llvm.build import Function, Module
from tilewright.llvm.jit import Linked
from tilewright.llvm.object_cache import cached_object
from tilewright.llvm.target import data_layout, emit_object, tuning
from tilewright.llvm.values import INT64, POINTER, VOID, Value, constant, int64
from tilewright.machine.isa import Isa, TileFma
from tilewright.machine.machine import Machine
from tilewright.micro.units.instructions import find_multiply
from tilewright.micro.units.multiply import Multiply
from tilewright.preparing import once
from tilewright.spec.dtype import DType

_NAME = "multiply_peak"

#: Chains beyond latency · width of the row: an uneven schedule still finds one that is ready, also where a
#: core takes longer (measured on Zen 5: VDPBF16PS, 6 cycles for the 4 of an FMA).
SPARE_CHAINS = 8
#: Vector registers that hold no chain: the two operands and a product.
_OTHER_REGISTERS = 3


def _grid(isa: Isa, tile: TileFma) -> tuple[int, int]:
    """Rows and columns of accumulators: all that a matrix unit has, or enough vectors to hide the latency.

    >>> from tilewright.machine.isa_rows import AVX2
    >>> from tilewright.spec.dtype import F32
    >>> _grid(AVX2, AVX2.tile(F32))
    (1, 13)
    """
    if tile.has_accumulators:
        down = 1 << (tile.accumulators.bit_length() - 1) // 2
        return down, tile.accumulators // down
    in_flight = isa.rate(tile) * isa.latency(tile)
    return 1, min(math.ceil(in_flight) + SPARE_CHAINS, isa.vector_registers - _OTHER_REGISTERS)


def _in_two(isa: Isa, tile: TileFma) -> bool:
    """Whether the product and the sum are two instructions."""
    return not tile.is_matrix_engine and (tile.separate or not (tile.acc.is_integer or isa.fused))


def _emit(machine: Machine, tile: TileFma) -> str:
    """`multiply_peak(count, a, b, sink)`: count rounds of one multiply instruction per accumulator."""
    module = Module(_NAME, machine.triple, data_layout(machine), tuning(machine))
    arguments = [("count", INT64), ("a", POINTER), ("b", POINTER), ("sink", POINTER)]
    f = module.define(_NAME, VOID, arguments, exported=True)
    unit, (down, across) = find_multiply(machine.isa, tile), _grid(machine.isa, tile)
    unit.configure(f)
    unit.begin(f, down, across)
    grid = [unit.zero(f, i, j) for i in range(down) for j in range(across)]
    a, b = unit.load_a(f, f.arguments["a"], 0), unit.load_b(f, f.arguments["b"], 0)
    carried = [] if unit.resident else grid
    with f.carried_loop(int64(0), f.arguments["count"], int64(1), carried, "round") as (_, acc, advance):
        found = [_step(f, unit, a, b, value) for value in (grid if unit.resident else acc)]
        advance([] if unit.resident else found)
    grid = grid if unit.resident else advance.results
    at = 0
    for i in range(down):
        for row in unit.rows(f, grid[i * across : (i + 1) * across]):
            for vector in row:
                f.store(vector, f.at(f.arguments["sink"], at), tile.acc.size)
                at += vector.type.lanes * tile.acc.size
    unit.end(f)
    unit.release(f)
    f.ret()
    return str(module)


def _step(f: Function, unit: Multiply, a: Value, b: Value, acc: Value) -> Value:
    """One multiply instruction; its operands stay the same, since loading them is not what is measured.

    Where multiply and add are two instructions, a product of the same operands would be computed once,
    before the loop. There the chain goes through the product: acc = acc · b + 1.
    """
    tile = unit.tile
    if not _in_two(unit.isa, tile):
        return unit.multiply(f, a, b, acc)
    return unit.multiply(f, f.bitcast(acc, a.type), b, f.splat(constant(tile.acc, 1), tile.n))


@once
def _linked(machine: Machine, tile: TileFma) -> Linked:
    name = f"{_NAME}_{tile.instruction}_{tile.a}{tile.b}{tile.acc}"
    code = cached_object(name, machine, lambda: emit_object(_emit(machine, tile), name, machine))
    return Linked(code, (_NAME,), {})


def _operand(dtype: DType, count: int) -> ctypes.Array[ctypes.c_char]:
    """Elements of varied bits: floats from 0.5 to 1, so that acc · b + 1 converges, or any integers."""
    varied = (np.arange(count) * 0.381966 % 1 + 1) / 2
    values = (varied * 256 - 128).astype(np.int8) if dtype.is_integer else varied
    content = values.astype(dtype.cell.numpy).tobytes()
    return (ctypes.c_char * len(content)).from_buffer_copy(content)


def peak_name(a: DType, b: DType, machine: Machine) -> str:
    """The instruction that `measure_peak` issues, as reports name it.

    >>> from tilewright.machine.catalog import find_machine
    >>> from tilewright.spec.dtype import BF16, F32, I8
    >>> peak_name(F32, F32, find_machine("znver5")), peak_name(I8, I8, find_machine("znver5"))
    ('FMA', 'vpdpbusd')
    >>> peak_name(BF16, BF16, find_machine("haswell")), peak_name(I8, I8, find_machine("haswell"))
    ('FMA', 'pmaddwd and add')
    """
    tile = machine.isa.tile(a, b)
    in_two = _in_two(machine.isa, tile)
    if tile.instruction == "multiply_add":
        return "multiply and add" if in_two else "FMA"
    name = tile.instruction.partition("_")[0]  # behind it stands what is done to the operands
    return f"{name} and add" if in_two else name


def measure_peak(
    dtype: DType, machine: Machine, seconds: float = 0.02, *, b_dtype: DType | None = None
) -> float:
    """Peak of one core's unit for products of some element types, in GFLOPS, over `seconds`.

    The machine's multiply instruction for the types (`Isa.tile`) on independent accumulators: FMA, a dot
    product, a product of a matrix unit, or multiply and add. Each multiply-add counts 2, of integers too.

    Parameters
    ----------
    dtype : element type of A.
    machine : this host, or another whose instructions it has.
    seconds : how long to measure.
    b_dtype : element type of B; A's by default.

    Raises
    ------
    UnsupportedDtype : the machine's row multiplies no such types.

    Examples
    --------
    >>> from tilewright.machine.host import host_machine
    >>> from tilewright.spec.dtype import F32
    >>> measure_peak(F32, host_machine(), seconds=0.001) > 0
    True
    """
    tile = machine.isa.tile(dtype, b_dtype)
    run = _linked(machine, tile).function(_NAME, [ctypes.c_int64, *[ctypes.c_void_p] * 3])
    down, across = _grid(machine.isa, tile)
    a = _operand(tile.a, down * tile.m * tile.k)
    b = _operand(tile.b, across * tile.n * tile.k)
    sink = (ctypes.c_char * (down * across * tile.m * tile.n * tile.acc.size))()

    def measure(count: int) -> float:
        start = time.perf_counter()
        run(count, a, b, sink)
        return time.perf_counter() - start

    count = 10_000
    while (elapsed := measure(count)) < seconds / 20:
        count *= 2
    count = max(1, int(count * seconds / elapsed))
    return count * down * across * tile.products * 2 / measure(count) * 1e-9
