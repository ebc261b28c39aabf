"""Measures what cores read and copy per second, as the bound of whatever passes over memory once."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tilewright.llvm.build import Module
from tilewright.llvm.jit import Linked
from tilewright.llvm.object_cache import cached_object
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT64, POINTER, VOID, int64, vector_type, zero
from tilewright.machine.machine import Machine
from tilewright.preparing import once
from tilewright.spec.dtype import F32

_NAME = "read_memory"

#: Vectors read in one turn, each into its own sum: enough to cover the latency of the additions.
VECTORS = 8

#: Operands start on pages, so that no vector crosses a line.
PAGE_BYTES = 4096


def _emit(machine: Machine) -> str:
    """`read_memory(from, bytes, sink)`: whole vectors in order, added up so that no load is dropped."""
    module = Module(_NAME, machine.triple, data_layout(machine))
    arguments = [("from", POINTER), ("bytes", INT64), ("sink", POINTER)]
    f = module.define(_NAME, VOID, arguments, exported=True)
    kind, vector = vector_type(F32, machine.isa.lanes(F32)), machine.isa.vector_bits // 8
    sums = [zero(kind)] * VECTORS
    step = int64(vector * VECTORS)
    with f.carried_loop(int64(0), f.arguments["bytes"], step, sums, "turn") as (at, values, advance):
        start = f.at(f.arguments["from"], at)
        loaded = [f.load(kind, f.at(start, vector * number), vector) for number in range(VECTORS)]
        advance([f.plus(value, more) for value, more in zip(values, loaded, strict=True)])
    for number, value in enumerate(advance.results):
        f.store(value, f.at(f.arguments["sink"], vector * number), vector)
    f.ret()
    return str(module)


@once
def _linked(machine: Machine) -> Linked:
    code = cached_object(_NAME, machine, lambda: emit_object(_emit(machine), _NAME, machine))
    return Linked(code, (_NAME,), {})


class MemoryProbe:
    """Memory of some size, and what reading and copying it takes.

    Parameters
    ----------
    machine : this host.
    size_bytes : of the memory read, and of each side of a copy; rounded up to pages.

    Examples
    --------
    >>> from tilewright.machine.host import host_machine
    >>> probe = MemoryProbe(host_machine(), 1 << 16)
    >>> probe.read_seconds() > 0 and probe.copy_seconds() > 0
    True
    """

    def __init__(self, machine: Machine, size_bytes: int) -> None:
        self.size_bytes = -(-size_bytes // PAGE_BYTES) * PAGE_BYTES
        self._read = _linked(machine).function(_NAME, [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p])
        # One page more on each side, to start on a page; written, so that every page is there.
        self._memory = np.ones(2 * self.size_bytes + 4 * PAGE_BYTES, np.uint8)
        start: int = self._memory.__array_interface__["data"][0]
        self._source = -(-start // PAGE_BYTES) * PAGE_BYTES
        self._destination = self._source + self.size_bytes + PAGE_BYTES
        self._sink = self._destination + self.size_bytes

    def read_seconds(self, times: int = 1) -> float:
        """Seconds of reading the memory once."""
        start = time.perf_counter()
        for _ in range(times):
            self._read(self._source, self.size_bytes, self._sink)
        return (time.perf_counter() - start) / times

    def copy_seconds(self, times: int = 1) -> float:
        """Seconds of one memcpy of the memory."""
        start = time.perf_counter()
        for _ in range(times):
            ctypes.memmove(self._destination, self._source, self.size_bytes)
        return (time.perf_counter() - start) / times


class SharedProbe:
    """Memory of some size in equal parts, and what some threads take to read or copy all parts at once.

    Parameters
    ----------
    machine : this host.
    size_bytes : of the memory read by all threads together, and of each side of a copy.
    threads : how many threads, each with a part of its own.

    Examples
    --------
    >>> from tilewright.machine.host import host_machine
    >>> SharedProbe(host_machine(), 1 << 16, threads=2).read_seconds() > 0
    True
    """

    def __init__(self, machine: Machine, size_bytes: int, threads: int) -> None:
        self._probes = [MemoryProbe(machine, -(-size_bytes // threads)) for _ in range(threads)]
        self._pool = ThreadPoolExecutor(threads)

    @property
    def size_bytes(self) -> int:
        """Of all parts, each in whole pages."""
        return sum(probe.size_bytes for probe in self._probes)

    def read_seconds(self, times: int = 1) -> float:
        """Seconds of reading all of it once."""
        return self._seconds(MemoryProbe.read_seconds, times)

    def copy_seconds(self, times: int = 1) -> float:
        """Seconds of one memcpy of all of it."""
        return self._seconds(MemoryProbe.copy_seconds, times)

    def _seconds(self, measure: Callable[[MemoryProbe, int], float], times: int) -> float:
        if len(self._probes) == 1:
            return measure(self._probes[0], times)
        return max(self._pool.map(lambda probe: measure(probe, times), self._probes))
