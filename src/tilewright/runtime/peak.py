"""Measures the multiply-add peak of one core, by independent FMA chains in registers."""

from __future__ import annotations

import ctypes
import time
from functools import lru_cache

from tilewright.llvm.build import Function, Module
from tilewright.llvm.jit import Linked
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT64, POINTER, VOID, constant, int64
from tilewright.machine.machine import Machine
from tilewright.runtime.cache import cached_object
from tilewright.spec.dtype import DType

_NAME = "fma_peak"

#: Chains beyond latency · width, so that an uneven schedule still finds one that is ready.
SPARE_CHAINS = 4


def _chains(machine: Machine) -> int:
    isa = machine.isa
    return min(isa.fma_per_cycle * isa.fma_latency + SPARE_CHAINS, isa.vector_registers - 3)


def _emit(machine: Machine, dtype: DType) -> str:
    """`fma_peak(count, sink)`: count rounds of one FMA per chain, acc = acc · x + y."""
    module = Module(_NAME, machine.triple, data_layout(machine))
    f: Function = module.define(_NAME, VOID, [("count", INT64), ("sink", POINTER)], exported=True)
    lanes = machine.isa.lanes(dtype)
    # 0.5·acc + 1 converges to 2: neither overflow nor subnormals slow the unit down.
    x, y = (f.splat(constant(dtype, value), lanes) for value in (0.5, 1.0))
    fused = machine.isa.tile(dtype).fused
    state = [f.splat(constant(dtype, float(chain)), lanes) for chain in range(_chains(machine))]
    with f.carried_loop(int64(0), f.arguments["count"], int64(1), state, "round") as (_, acc, advance):
        advance([f.multiply_add(value, x, y, fused=fused) for value in acc])
    for number, value in enumerate(advance.results):
        f.store(value, f.at(f.arguments["sink"], number * lanes * dtype.size), dtype.size)
    f.ret()
    return str(module)


@lru_cache(maxsize=8)
def _linked(machine: Machine, dtype: DType) -> Linked:
    name = f"{_NAME}_{dtype}"
    code = cached_object(name, machine, lambda: emit_object(_emit(machine, dtype), name, machine))
    return Linked(code, (_NAME,), {})


def measure_peak(dtype: DType, machine: Machine, seconds: float = 0.02) -> float:
    """FMA peak of one core of this host in GFLOPS (2 flops per multiply-add), over `seconds`.

    Examples
    --------
    >>> from tilewright.machine.host import host_machine
    >>> from tilewright.spec.dtype import F32
    >>> measure_peak(F32, host_machine(), seconds=0.001) > 0
    True
    """
    code = _linked(machine, dtype)
    run = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(code.address(_NAME))
    chains, lanes = _chains(machine), machine.isa.lanes(dtype)
    sink = (ctypes.c_char * (chains * lanes * dtype.size))()

    def measure(count: int) -> float:
        start = time.perf_counter()
        run(count, sink)
        return time.perf_counter() - start

    count = 10_000
    while (elapsed := measure(count)) < seconds / 20:
        count *= 2
    count = max(1, int(count * seconds / elapsed))
    return count * chains * lanes * 2 / measure(count) * 1e-9
