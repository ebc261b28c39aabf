"""Machine code of the thread pool that uses the operating system: clock, sleep and wake-up, CPU affinity."""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.control import Block
from tilewright.llvm.values import INT32, INT64, POINTER, VOID, Type, Value, int32, int64, null
from tilewright.machine.arch import SystemCalls
from tilewright.threads.pool_memory import TEAM_ALIGNMENT, PoolState, WorkerSlot
from tilewright.threads.pool_system import Wait, known_system_calls

#: linux/futex.h, FUTEX_WAIT and FUTEX_WAKE with FUTEX_PRIVATE_FLAG.
FUTEX_WAIT, FUTEX_WAKE = 128, 129

#: Size of CPU affinity masks, in words of 64 CPUs.
CPU_WORDS = 16

#: struct timespec of 64-bit systems.
TIMESPEC_BYTES, NANOSECONDS = 16, 1_000_000_000


class FieldAccess:
    """Access to fields of the shared structures in one function."""

    def __init__(self, f: Function) -> None:
        self.f = f

    def place(self, base: Value, kind: type[ctypes.Structure], name: str, index: int = 0) -> Value:
        """The address of a field."""
        return self.f.at(base, getattr(kind, name).offset + 8 * index)

    def get(self, base: Value, kind: type[ctypes.Structure], name: str, type_: Type = INT64) -> Value:
        """Load a field that no other thread writes meanwhile."""
        return self.f.load(type_, self.place(base, kind, name), 8)

    def put(self, value: Value | int, base: Value, kind: type[ctypes.Structure], name: str) -> None:
        """Store to a field that no other thread uses meanwhile."""
        value = int64(value) if isinstance(value, int) else value
        self.f.store(value, self.place(base, kind, name), 8)

    def shared(self, base: Value, kind: type[ctypes.Structure], name: str) -> Value:
        """Atomic load of a field that other threads write."""
        return self.f.load_acquire(INT64, self.place(base, kind, name))

    def slot(self, state: Value, index: Value) -> Value:
        """One slot of a pool."""
        return self.f.at(self.place(state, PoolState, "slots"), self.f.mul(index, ctypes.sizeof(WorkerSlot)))

    def bits(self, word: Value, mask: int) -> Value:
        """The bits of a word selected by a mask."""
        return self.f.and_(word, int64(mask))

    def team_of(self, word: Value) -> Value:
        """The team in a word, as an integer."""
        return self.bits(word, -TEAM_ALIGNMENT)

    @contextmanager
    def forever(self, name: str) -> Iterator[tuple[Block, Block]]:
        """An endless loop; yields its first block and the block after it, as branch targets."""
        f = self.f
        again, done = f.new_block(name), f.new_block(f"{name}.done")
        f.jump(again)
        f.place(again)
        yield again, done
        if not f.block.terminated:
            f.jump(again)
        f.place(done)

    def branch_if(self, condition: Value, target: Block) -> None:
        """Branch to a block if a condition holds."""
        following = self.f.new_block("on")
        self.f.jump_if(condition, target, following)
        self.f.place(following)


class SystemCode:
    """Emits the functions that use the operating system.

    Attributes
    ----------
    clock : nanoseconds of a clock that only goes forward.
    sleep, wake : a thread waits until the word of its slot changes.
    register_thread, exclude_caller_cpu, restore_affinity : CPU affinity of workers.
    """

    #: What the names of imported functions begin with: a process links them by address, a library by name.
    prefix = "tw_"

    def __init__(self, module: Module, wait: Wait) -> None:
        self.module = module
        self.clock = self.emit_clock()
        waits = {Wait.FUTEX: self.emit_futex, Wait.CONDITION: self.emit_condition}
        self.sleep, self.wake = waits[wait]()
        places = {Wait.FUTEX: self.emit_affinity, Wait.CONDITION: self.emit_no_affinity}
        self.register_thread, self.exclude_caller_cpu, self.restore_affinity = places[wait]()

    def define(
        self, name: str, result: Type, arguments: Sequence[tuple[str, Type]], *, exported: bool = False
    ) -> FieldAccess:
        """A new function."""
        return FieldAccess(self.module.define(name, result, arguments, exported=exported))

    def imported(
        self, name: str, result: Type, arguments: Sequence[Type], *, variadic: bool = False
    ) -> Callee:
        """A function of the C library or of the interpreter."""
        return self.module.declare(f"{self.prefix}{name}", result, arguments, variadic=variadic)

    def system_calls(self) -> SystemCalls:
        """The numbers of the system calls of the machine that the code is for."""
        return known_system_calls()

    def emit_clock(self) -> Callee:
        """``int64 clock()``: nanoseconds of a clock that only goes forward."""
        f = self.define("clock", INT64, []).f
        read = self.imported("clock_gettime", INT32, (INT32, POINTER))
        now = f.alloca(INT64, TIMESPEC_BYTES // 8, 8)
        f.call(read, [int32(time.CLOCK_MONOTONIC), now])
        seconds = f.mul(f.load(INT64, now, 8), NANOSECONDS)
        f.ret(f.add(seconds, f.load(INT64, f.at(now, 8), 8)))
        return f.callee

    def emit_futex(self) -> tuple[Callee, Callee]:
        """``sleep(slot, word)`` returns once the slot has another word, or spuriously; ``wake(slot)``."""
        # The kernel compares 32 bits: the low half of the word, whose address depends on the byte order.
        low = 0 if sys.byteorder == "little" else 4
        calls, call = self.system_calls(), self.system_call()
        number = int64(calls.futex)
        made = []
        for name, operation in (("sleep", FUTEX_WAIT), ("wake", FUTEX_WAKE)):
            arguments = [("slot", POINTER), *([("word", INT64)] if name == "sleep" else [])]
            f = self.define(name, VOID, arguments).f
            value = f.trunc(f.arguments["word"], INT32) if name == "sleep" else int32(1)
            place = f.at(f.arguments["slot"], WorkerSlot.word.offset + low)
            f.call(call, [number, place, int32(operation), value, null(), null(), int32(0)])
            f.ret()
            made.append(f.callee)
        return made[0], made[1]

    def system_call(self) -> Callee:
        """``long syscall(long number, ...)`` of the C library."""
        return self.imported("syscall", INT64, (INT64,), variadic=True)

    def emit_affinity(self) -> tuple[Callee, Callee, Callee]:
        """CPU affinity of workers: ``register_thread(slot)`` stores the worker's thread number;
        ``exclude_caller_cpu(slot, word)`` removes the caller's CPU from a sleeper's affinity mask, so that it
        wakes elsewhere; ``restore_affinity(slot)`` adds it again.

        Otherwise Linux may wake a worker on its caller's CPU, mostly in virtual machines, where an idle CPU
        is not always reported as idle; both then share the CPU for milliseconds while another one idles.
        """
        calls, call = self.system_calls(), self.system_call()

        def change(f: Function, thread: Value, cpu: Value, *, allow: bool) -> Value:
            """Add a CPU to a thread's affinity mask, or remove a set one if others remain; whether it did."""
            mask = f.alloca(INT64, CPU_WORDS, 8)
            for index in range(CPU_WORDS):
                f.store(int64(0), f.at(mask, 8 * index), 8)  # the kernel writes as much as it has
            size = int64(8 * CPU_WORDS)
            got = f.call(call, [int64(calls.sched_getaffinity), thread, size, mask])
            with f.when(f.icmp("<", got, 0)):
                f.ret()
            bit = f.shl(int64(1), f.and_(cpu, int64(63)))
            place = f.at(mask, f.mul(f.ashr(cpu, int64(6)), 8))
            word = f.load(INT64, place, 8)
            if not allow:  # a CPU that was not among them must not be added later
                with f.when(f.icmp("==", f.and_(word, bit), 0)):
                    f.ret()
            f.store(f.or_(word, bit) if allow else f.and_(word, f.sub(int64(-1), bit)), place, 8)
            left = int64(0)
            for index in range(CPU_WORDS):
                left = f.or_(left, f.load(INT64, f.at(mask, 8 * index), 8))
            with f.when(f.icmp("==", left, 0)):
                f.ret()
            return f.icmp(">=", f.call(call, [int64(calls.sched_setaffinity), thread, size, mask]), 0)

        w = self.define("register_thread", VOID, [("slot", POINTER)])
        own = w.place(w.f.arguments["slot"], WorkerSlot, "thread")
        w.f.store_release(w.f.call(call, [int64(calls.gettid)]), own)
        w.f.ret()
        register_thread = w.f.callee

        exclude_caller_cpu = self.emit_exclude_caller_cpu(
            change, restore_affinity := self.emit_restore_affinity(change)
        )
        return register_thread, exclude_caller_cpu, restore_affinity

    def emit_exclude_caller_cpu(self, change: Callable[..., Value], restore_affinity: Callee) -> Callee:
        """``exclude_caller_cpu(slot, word)``, for a slot that was just offered a team by this word."""
        w = self.define("exclude_caller_cpu", VOID, [("slot", POINTER), ("word", INT64)])
        f, slot = w.f, w.f.arguments["slot"]
        thread = w.shared(slot, WorkerSlot, "thread")
        here = f.sext(f.call(self.imported("sched_getcpu", INT32, ()), []), INT64)
        known = f.and_(f.icmp(">=", here, 0), f.icmp("<", here, 64 * CPU_WORDS))
        with f.when(f.not_(f.and_(known, f.icmp("!=", thread, 0)))):
            f.ret()
        with f.when(f.icmp("!=", w.shared(slot, WorkerSlot, "kept_off"), 0)):  # it has not slept since
            f.ret()
        with f.when(change(f, thread, here, allow=False)):
            f.store_release(f.add(here, 1), w.place(slot, WorkerSlot, "kept_off"))
            # A worker that was not asleep yet may have restored its affinity before, and be about to sleep.
            with f.when(f.icmp("!=", w.shared(slot, WorkerSlot, "word"), f.arguments["word"])):
                f.call(restore_affinity, [slot])
        f.ret()
        return f.callee

    def emit_restore_affinity(self, change: Callable[..., Value]) -> Callee:
        """``restore_affinity(slot)``; the first caller has an effect."""
        w = self.define("restore_affinity", VOID, [("slot", POINTER)])
        f, slot = w.f, w.f.arguments["slot"]
        with f.when(f.icmp("==", w.shared(slot, WorkerSlot, "kept_off"), 0)):
            f.ret()
        kept_off = f.xchg(w.place(slot, WorkerSlot, "kept_off"), int64(0))
        with f.when(f.icmp("==", kept_off, 0)):
            f.ret()
        change(f, w.shared(slot, WorkerSlot, "thread"), f.sub(kept_off, 1), allow=True)
        f.ret()
        return f.callee

    def emit_no_affinity(self) -> tuple[Callee, Callee, Callee]:
        """No-ops, on systems without CPU affinity."""
        made = []
        for name in ("register_thread", "exclude_caller_cpu", "restore_affinity"):
            word = [("word", INT64)] if name == "exclude_caller_cpu" else []
            f = self.define(name, VOID, [("slot", POINTER), *word]).f
            f.ret()
            made.append(f.callee)
        return made[0], made[1], made[2]

    def emit_condition(self) -> tuple[Callee, Callee]:
        """``sleep`` and ``wake`` with the mutex and the condition variable of the slot."""
        lock, unlock = (
            self.imported(f"pthread_mutex_{name}", INT32, (POINTER,)) for name in ("lock", "unlock")
        )
        w = self.define("sleep", VOID, [("slot", POINTER), ("word", INT64)])
        f, slot = w.f, w.f.arguments["slot"]
        mutex, condition = w.place(slot, WorkerSlot, "mutex"), w.place(slot, WorkerSlot, "condition")
        f.call(lock, [mutex])
        with w.forever("sleeping") as (_, done):
            w.branch_if(f.icmp("!=", w.shared(slot, WorkerSlot, "word"), f.arguments["word"]), done)
            wait = self.imported("pthread_cond_wait", INT32, (POINTER, POINTER))
            f.call(wait, [condition, mutex])
        f.call(unlock, [mutex])
        f.ret()
        sleep = f.callee
        w = self.define("wake", VOID, [("slot", POINTER)])
        f, slot = w.f, w.f.arguments["slot"]
        mutex = w.place(slot, WorkerSlot, "mutex")
        f.call(lock, [mutex])  # who sleeps has compared the word before, or will afterwards
        f.call(
            self.imported("pthread_cond_broadcast", INT32, (POINTER,)),
            [w.place(slot, WorkerSlot, "condition")],
        )
        f.call(unlock, [mutex])
        f.ret()
        return sleep, f.callee
