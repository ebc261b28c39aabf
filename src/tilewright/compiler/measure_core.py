"""Measures a core that no row describes: its rates, its bandwidths, what conflicts and page walks cost.

All figures are cycles or follow from them, and the clock is that of a chain of dependent additions, one a
cycle. Each experiment runs for about 0.1 ms, in turn with the others as often as the time allows, and its
shortest time counts: whatever else runs on the machine only makes it longer.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import mmap
import sys
import time

from tilewright.llvm.build import Function, Module
from tilewright.llvm.jit import Linked
from tilewright.llvm.target import data_layout, emit_object, tuning
from tilewright.llvm.values import (
    INT32,
    INT64,
    POINTER,
    VOID,
    Type,
    Value,
    int64,
    vector_of,
    vector_type,
    zero,
)
from tilewright.machine.arch import X86_64
from tilewright.machine.host import HOST, detect_host
from tilewright.machine.machine import Machine
from tilewright.machine.measure import Measurement, keep_measurement, load_measurement
from tilewright.preparing import preparing
from tilewright.settings import read_settings
from tilewright.spec.dtype import F32
from tilewright.store import store_for

logger = logging.getLogger("tilewright.machine")

_NAME = "measure_core"

#: Seconds after which no further round of experiments begins, and how often each experiment runs at least.
#: Compiling takes 20 ms, the first round 10, for the pages of memory, any other 2.
MOST_SECONDS, LEAST_ROUNDS = 0.05, 3
#: Rounds of the chain and of the multiply-adds, bytes read from L1 and L2, and times that a set is read: each
#: takes 100,000 to 400,000 cycles.
CHAIN_ROUNDS, MULTIPLY_ROUNDS, READ_BYTES, TOUCH_TIMES = 10_000, 24_000, 12 << 20, 3_000
#: Pairs of dependent operations in a round of the clock's chain.
PAIRS = 16
#: Vectors read in a round, and the sums they go to.
VECTORS, SUMS = 16, 8
#: Chains of multiply-adds beyond latency · rate, and registers that hold none; as in `compiler/peak.py`.
SPARE_CHAINS, OTHER_REGISTERS = 8, 3

#: Bytes read from memory. On x86 stores past the caches evict them, so that few suffice.
MEMORY_BYTES = 8 << 20
#: Where such stores are a hint, more are read than caches hold, up to so many.
MOST_MEMORY_BYTES = 48 << 20
#: Bytes read from L3, at most.
MOST_L3_BYTES = 4 << 20
#: Pages whose translations no TLB holds all of; their lines, one of each, must fit half of L2.
PAGES = 8192
#: Linux, include/uapi/asm-generic/mman-common.h: all pages at once.
_MADV_POPULATE_WRITE = 23
#: The least that a conflict or a page walk is said to cost: differences of two times may be negative.
LEAST_CYCLES = 0.1


def _emit(machine: Machine) -> str:
    """The experiments, one function each."""
    module = Module(
        _NAME, machine.triple, data_layout(machine), tuning(machine), vector_bits=machine.function_bits
    )
    _emit_chain(module)
    _emit_multiply(module, machine)
    _emit_read(module, machine)
    _emit_touch(module)
    _emit_fill(module, machine)
    return str(module)


def _emit_chain(module: Module) -> None:
    """`chain(count, a, b, sink)`: count rounds of `PAIRS` times x = (x ^ a) + b."""
    arguments = [("count", INT64), ("a", INT64), ("b", INT64), ("sink", POINTER)]
    f = module.define("chain", VOID, arguments, exported=True)
    a, b = f.arguments["a"], f.arguments["b"]
    with f.carried_loop(int64(0), f.arguments["count"], int64(1), [a], "round") as (_, (x,), advance):
        for _ in range(PAIRS):
            x = f.add(f.xor(x, a), b)  # noqa: PLW2901 - the chain
        advance([x])
    f.store(advance.results[0], f.arguments["sink"], 8)
    f.ret()


def _chains(machine: Machine) -> int:
    isa = machine.isa
    return min(
        int(isa.fma_per_cycle * isa.fma_latency) + SPARE_CHAINS, isa.vector_registers - OTHER_REGISTERS
    )


def _emit_multiply(module: Module, machine: Machine) -> None:
    """`multiply(count, operands, sink)`: count rounds of x = x · a + b on independent vectors."""
    arguments = [("count", INT64), ("operands", POINTER), ("sink", POINTER)]
    f = module.define("multiply", VOID, arguments, exported=True)
    kind, vector = vector_type(F32, machine.isa.lanes(F32)), machine.isa.vector_bits // 8
    a = f.load(kind, f.arguments["operands"], vector)
    b = f.load(kind, f.at(f.arguments["operands"], vector), vector)
    start = [a] * _chains(machine)
    with f.carried_loop(int64(0), f.arguments["count"], int64(1), start, "round") as (_, values, advance):
        advance([f.multiply_add(value, a, b, fused=machine.isa.fused) for value in values])
    _keep(f, advance.results, vector)
    f.ret()


def _emit_read(module: Module, machine: Machine) -> None:
    """`read(from, bytes, times, sink)`: whole vectors in order, as often as asked for."""
    arguments = [("from", POINTER), ("bytes", INT64), ("times", INT64), ("sink", POINTER)]
    f = module.define("read", VOID, arguments, exported=True)
    kind, vector = _integers(machine)
    sums = [zero(kind)] * SUMS
    with f.carried_loop(int64(0), f.arguments["times"], int64(1), sums, "time") as (_, before, after):
        step = int64(vector * VECTORS)
        with f.carried_loop(int64(0), f.arguments["bytes"], step, before, "at") as (at, values, advance):
            place, following = f.at(f.arguments["from"], at), list(values)
            for number in range(VECTORS):
                loaded = f.load(kind, f.at(place, vector * number), vector)
                following[number % SUMS] = f.xor(following[number % SUMS], loaded)
            advance(following)
        after(advance.results)
    _keep(f, after.results, vector)
    f.ret()


def _emit_touch(module: Module) -> None:
    """`touch(from, times, outer, outer_step, inner, inner_step, sink)`: one word at each place, in bytes."""
    names = ("times", "outer", "outer_step", "inner", "inner_step")
    arguments = [("from", POINTER), *((name, INT64) for name in names), ("sink", POINTER)]
    f = module.define("touch", VOID, arguments, exported=True)
    times, outer, outer_step, inner, inner_step = (f.arguments[name] for name in names)
    with f.carried_loop(int64(0), times, int64(1), [int64(0)], "time") as (_, first, last):
        with f.carried_loop(int64(0), outer, outer_step, first, "outer") as (base, before, after):
            place = f.at(f.arguments["from"], base)
            with f.carried_loop(int64(0), inner, inner_step, before, "inner") as (at, (total,), advance):
                advance([f.xor(total, f.load(INT64, f.at(place, at), 8))])
            after(advance.results)
        last(after.results)
    f.store(last.results[0], f.arguments["sink"], 8)
    f.ret()


def _emit_fill(module: Module, machine: Machine) -> None:
    """`fill(to, bytes)`: zeros past the caches."""
    f = module.define("fill", VOID, [("to", POINTER), ("bytes", INT64)], exported=True)
    kind, vector = _integers(machine)
    with f.loop(int64(0), f.arguments["bytes"], int64(vector * VECTORS), "at") as at:
        place = f.at(f.arguments["to"], at)
        for number in range(VECTORS):
            f.store_nontemporal(zero(kind), f.at(place, vector * number), vector)
    f.fence()
    f.ret()


def _integers(machine: Machine) -> tuple[Type, int]:
    """A vector of integers, which are added up in one cycle, and its bytes."""
    return vector_of(INT32, machine.isa.vector_bits // 32), machine.isa.vector_bits // 8


def _keep(f: Function, values: list[Value], vector: int) -> None:
    """Stores what was computed, so that nothing of it is dropped."""
    for number, value in enumerate(values):
        f.store(value, f.at(f.arguments["sink"], vector * number), vector)


_WORD, _ADDRESS = ctypes.c_int64, ctypes.c_void_p
#: The arguments of the exported functions.
_SIGNATURES = {
    "chain": [_WORD, _WORD, _WORD, _ADDRESS],
    "multiply": [_WORD, _ADDRESS, _ADDRESS],
    "read": [_ADDRESS, _WORD, _WORD, _ADDRESS],
    "touch": [_ADDRESS, *[_WORD] * 5, _ADDRESS],
    "fill": [_ADDRESS, _WORD],
}


class _Sizes:
    """Bytes and counts of the experiments on one machine."""

    def __init__(self, machine: Machine) -> None:
        self.page, self.line = machine.page_bytes, machine.l1.line
        self.l1, self.l2 = machine.l1.size // 2, machine.l2.size // 2
        own = machine.l3.size // machine.l3.shared_by if machine.l3 else 0
        l3 = min(4 * machine.l2.size, own, MOST_L3_BYTES)
        self.l3 = l3 if l3 > machine.l2.size else 0  # 0: L3 holds no more than L2
        last = machine.l3.size if machine.l3 else machine.l2.size
        evicts = machine.arch == X86_64.name
        self.memory = MEMORY_BYTES if evicts else max(MEMORY_BYTES, min(2 * last, MOST_MEMORY_BYTES))
        self.way, self.conflicting = machine.l1.size // machine.l1.ways, 2 * machine.l1.ways
        self.pages = min(PAGES, self.l2 // self.line // 64 * 64)
        self.page_step = self.page + self.line
        self.total = max(
            self.memory, self.pages * self.page_step, self.l3, self.conflicting * (self.way + self.line)
        )


class CoreProbe:
    """Code and memory of the experiments.

    Parameters
    ----------
    machine : this host.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine, self.sizes = machine, _Sizes(machine)
        code = Linked(emit_object(_emit(machine), _NAME, machine), tuple(_SIGNATURES), {})
        # A recording of the call that compiled a kernel is not told of these.
        self._functions = {name: code.function(name, kinds).unrecorded for name, kinds in _SIGNATURES.items()}
        self._code = code
        # The first page takes what is computed; it is at least as long as the sums of any row.
        self._memory = _ordinary_pages(self.sizes.page + self.sizes.total)
        self._sink = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._start = self._sink + self.sizes.page
        self._best: dict[str, float] = {}

    def _run(self, function: str, *arguments: int) -> float:
        """Seconds of one call."""
        run = self._functions[function]
        start = time.perf_counter()
        run(*arguments, self._sink)
        return time.perf_counter() - start

    def _time(self, name: str, function: str, *arguments: int, warm: bool = False) -> None:
        """Runs an experiment once, and keeps its shortest time; `warm`: its memory is read before."""
        if warm:
            self._run(function, *arguments)
        seconds = self._run(function, *arguments)
        self._best[name] = min(seconds, self._best.get(name, seconds))

    def round(self) -> None:
        """Every experiment once."""
        at, sizes = self._start, self.sizes
        self._time("clock", "chain", CHAIN_ROUNDS, 1, 3)
        self._time("multiply", "multiply", MULTIPLY_ROUNDS, self._start)
        self._time("l1", "read", at, sizes.l1, READ_BYTES // sizes.l1, warm=True)
        self._time("l2", "read", at, sizes.l2, max(1, READ_BYTES // sizes.l2), warm=True)
        if sizes.l3:
            self._time("l3", "read", at, sizes.l3, 1, warm=True)
        self._functions["fill"](at, sizes.memory)
        self._time("memory", "read", at, sizes.memory, 1)
        for name, step in (("conflicts", sizes.way), ("no conflicts", sizes.way + sizes.line)):
            self._time(name, "touch", at, TOUCH_TIMES, 1, 1, sizes.conflicting * step, step, warm=True)
        step, dense = sizes.page_step, sizes.pages * sizes.line
        self._time("walks", "touch", at, 1, 1, 1, sizes.pages * step, step, warm=True)
        self._time("no walks", "touch", at, 1, sizes.page, sizes.line, dense, sizes.page, warm=True)

    def result(self) -> Measurement:
        """The figures, of the shortest times so far."""
        best, sizes, isa = self._best, self.sizes, self.machine.isa
        clock = 2 * PAIRS * CHAIN_ROUNDS / best["clock"]
        cycles = {name: seconds * clock for name, seconds in best.items()}
        reads = {"l1": READ_BYTES // sizes.l1 * sizes.l1, "l2": max(1, READ_BYTES // sizes.l2) * sizes.l2}
        reads |= {"l3": sizes.l3, "memory": sizes.memory}
        rates = {name: count / cycles[name] for name, count in reads.items() if name in cycles}
        conflicts, walks = TOUCH_TIMES * sizes.conflicting, sizes.pages
        return Measurement(
            clock_ghz=clock * 1e-9,
            vector_bits=isa.vector_bits,
            fmas=MULTIPLY_ROUNDS * _chains(self.machine) / cycles["multiply"],
            loads=rates["l1"] * 8 / isa.vector_bits,
            l1_bytes_per_cycle=rates["l1"],
            l2_bytes_per_cycle=rates["l2"],
            l3_bytes_per_cycle=rates.get("l3", rates["memory"]),
            memory_bytes_per_cycle=rates["memory"],
            set_conflict_cycles=max(LEAST_CYCLES, (cycles["conflicts"] - cycles["no conflicts"]) / conflicts),
            page_walk_cycles=max(LEAST_CYCLES, (cycles["walks"] - cycles["no walks"]) / walks),
        )


def _ordinary_pages(size: int) -> mmap.mmap:
    """Memory that the system does not put into huge pages, where it can be told so."""
    if not hasattr(mmap, "MAP_PRIVATE"):  # Windows
        return mmap.mmap(-1, size)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if sys.platform == "linux":
        for advice in (mmap.MADV_NOHUGEPAGE, _MADV_POPULATE_WRITE):
            with contextlib.suppress(OSError):  # a kernel without huge pages, or older than 5.14
                memory.madvise(advice)
    return memory


def measure_core(machine: Machine) -> Measurement:
    """Measures the core that runs this thread, in less than 60 ms.

    Examples
    --------
    >>> from tilewright.machine.host import host_machine
    >>> measure_core(host_machine()).fmas > 0
    True
    """
    begin, rounds = time.perf_counter(), 0
    probe = CoreProbe(machine)
    while rounds < LEAST_ROUNDS or time.perf_counter() - begin < MOST_SECONDS:
        probe.round()
        rounds += 1
    return probe.result()


#: The machines of this process that were measured, or could not be: each is looked at once. So a signal
#: handler that interrupts a measurement goes on without.
_tried: set[Machine] = set()


def measure_once(machine: Machine) -> None:
    """Measures the core of this host for later processes, if no row describes it and nothing is kept of it.

    This process stays with the machine it has. Nothing is measured where the result could not be kept, and
    whatever fails is logged.
    """
    known = machine.name != HOST or machine.core.name or machine.measurement is not None
    if known or machine in _tried:
        return
    with preparing:
        if machine in _tried:
            return
        _tried.add(machine)
        settings = read_settings()
        store = store_for(settings)
        if not settings.measure or store is None or not store.writable():
            return
        kind = detect_host(settings).kind.value
        if load_measurement(store, kind) is not None:  # by another process, since this one began
            return
        try:
            keep_measurement(store, kind, measure_core(machine))
        except Exception as error:
            logger.warning("the core was not measured: %s: %s", type(error).__name__, error)
