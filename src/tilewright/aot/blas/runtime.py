"""The run-time part of the library: memory, scratch, the number of threads, and the pool of threads."""

from __future__ import annotations

from tilewright.aot.blas.types import PREFIX
from tilewright.llvm.values import INT32, INT64, POINTER, VOID, int32, int64, null
from tilewright.machine.arch import find_arch
from tilewright.machine.machine import Machine
from tilewright.threads.program_pool import MOST_THREADS, ProgramPool
from tilewright.threads.scratch import HUGE_PAGE

#: Blocks of scratch that are kept for later calls: as many calls at once need no new memory.
SCRATCH_SLOTS = 64

#: Linux, include/uapi/asm-generic/mman-common.h: PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, and
#: MADV_HUGEPAGE.
READ_WRITE, PRIVATE_ANONYMOUS, HUGE_PAGES = 3, 0x22, 14


class RuntimeCode(ProgramPool):
    """Emits the functions that the operations and the entries of the library call.

    Parameters
    ----------
    machine : the baseline of the architecture.
    scratch_bytes, thread_bytes : scratch of a call of one thread, and what each further one adds.
    """

    def __init__(self, machine: Machine, scratch_bytes: int, thread_bytes: int) -> None:
        super().__init__(machine, PREFIX)
        self.scratch_size = scratch_bytes + (MOST_THREADS - 1) * thread_bytes
        self.emit_fail()
        self.emit_allocate()
        self.emit_scratch()
        self.emit_set_threads()

    # --- memory -------------------------------------------------------------------------------------

    def emit_fail(self) -> None:
        """``fail(message)``: the end of a process that has no memory, as other implementations have it."""
        f = self.define("fail", VOID, [("message", POINTER)]).f
        size = f.call(self.c_function("strlen", INT64, POINTER), [f.arguments["message"]])
        f.call(
            self.c_function("write", INT64, INT32, POINTER, INT64), [int32(2), f.arguments["message"], size]
        )
        f.call(self.c_function("abort", VOID), [])
        f.effect("unreachable")
        f.block.terminated = True
        self.fail = f.callee
        self.no_memory = self.text("no_memory", f"{PREFIX}: out of memory\n")

    def emit_allocate(self) -> None:
        """``allocate(bytes)``: memory that `free` returns."""
        f = self.entry("allocate", POINTER, [("bytes", INT64)]).f
        size = f.maximum(f.arguments["bytes"], int64(1))
        found = f.call(self.c_function("malloc", POINTER, INT64), [size])
        with f.when(f.icmp("==", found, null())):
            f.call(self.fail, [self.no_memory])
        f.ret(found)

    def emit_scratch(self) -> None:
        """``scratch_take()`` and ``scratch_give(address)``: blocks for panels, on huge pages if possible.

        A block is taken out of its slot while a call uses it, so threads share nothing.
        """
        slots = self.data("scratch", f"[{SCRATCH_SLOTS} x i64] zeroinitializer, align 128")
        f = self.entry("scratch_take", POINTER, []).f
        with f.loop(int64(0), int64(SCRATCH_SLOTS), int64(1), "slot") as index:
            slot = f.at(slots, f.mul(index, 8))
            with f.when(f.icmp("!=", f.load_acquire(INT64, slot), 0)):
                found = f.xchg(slot, int64(0))
                with f.when(f.icmp("!=", found, 0)):
                    f.ret(f.inttoptr(found))
        size, unused = int64(self.scratch_size), find_arch(self.machine.triple).map_noreserve
        mapped = self.c_function("mmap", POINTER, POINTER, INT64, INT32, INT32, INT32, INT64)
        given = [null(), f.add(size, HUGE_PAGE), int32(READ_WRITE), int32(PRIVATE_ANONYMOUS | unused)]
        address = f.ptrtoint(f.call(mapped, [*given, int32(-1), int64(0)]))
        with f.when(f.icmp("==", address, -1)):
            f.call(self.fail, [self.no_memory])
        start = f.inttoptr(f.and_(f.add(address, HUGE_PAGE - 1), int64(-HUGE_PAGE)))
        f.call(self.c_function("madvise", INT32, POINTER, INT64, INT32), [start, size, int32(HUGE_PAGES)])
        f.ret(start)
        f = self.entry("scratch_give", VOID, [("address", POINTER)]).f
        address = f.ptrtoint(f.arguments["address"])
        with f.loop(int64(0), int64(SCRATCH_SLOTS), int64(1), "slot") as index:
            slot = f.at(slots, f.mul(index, 8))
            with (
                f.when(f.icmp("==", f.load_acquire(INT64, slot), 0)),
                f.when(f.cmpxchg(slot, int64(0), address)),
            ):
                f.ret()
        unmap = self.c_function("munmap", INT32, POINTER, INT64)
        f.call(unmap, [f.arguments["address"], size])
        f.ret()

    # --- the number of threads ----------------------------------------------------------------------

    def emit_set_threads(self) -> None:
        """``set_num_threads(int)`` and ``get_num_threads()``, which programs may call."""
        f = self.entry("set_num_threads", VOID, [("count", INT32)]).f
        f.call(self.limit, [])
        wanted = f.minimum(f.maximum(f.sext(f.arguments["count"], INT64), int64(1)), int64(MOST_THREADS))
        f.store_release(wanted, self.count)
        f.ret()
        f = self.entry("get_num_threads", INT32, []).f
        f.ret(f.trunc(f.call(self.limit, []), INT32))
