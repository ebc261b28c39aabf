"""Machine code of the thread pool: the worker loop, fork and join.

This code uses no Python objects, with one exception: a caller on Python's main thread takes the GIL at
intervals between its tasks, so that signal handlers run. `pool_memory.py` documents the words of shared
memory.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum

from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.builtin import address_of
from tilewright.llvm.control import Block
from tilewright.llvm.target import data_layout
from tilewright.llvm.values import INT32, INT64, POINTER, VOID, Type, Value, int32, int64, null
from tilewright.machine.arch import SystemCalls, linux_arch
from tilewright.machine.machine import Machine
from tilewright.threads.pool_memory import (
    ASLEEP,
    ASLEPT,
    FREE,
    FROM_ABOVE,
    FROM_BELOW,
    MOST_TASKS,
    NO_TASK,
    TAKEN,
    TEAM_ALIGNMENT,
    WAITED,
    State,
    TeamMemory,
    WorkerSlot,
)

#: The exported functions.
WORK, OPEN, CLOSE, RUN = "tw_pool_work", "tw_team_open", "tw_team_close", "tw_team_run"

#: Reads of a word between two readings of the clock: about a microsecond.
LOOKS = 16
#: Sleepers that one thread wakes; each of them wakes as many, so that n are awake after log n steps.
WAKES = 2

#: After a parallel run that took longer than on the caller alone, because other processes used the cores,
#: callers run alone for this multiple of the time lost. Losses are then a third at most; a longer time would
#: penalise the calls that follow a single disturbance.
REPAID = 2
#: Smaller losses, relative to the caller's own time or absolute, are caused by uneven tasks.
LOSS_SHARE, LEAST_LOSS_NS = 4, 2_000


#: linux/futex.h, FUTEX_WAIT and FUTEX_WAKE with FUTEX_PRIVATE_FLAG.
FUTEX_WAIT, FUTEX_WAKE = 128, 129

#: Size of CPU affinity masks, in words of 64 CPUs.
CPU_WORDS = 16

#: struct timespec of 64-bit systems.
TIMESPEC_BYTES, NANOSECONDS = 16, 1_000_000_000


class Wait(Enum):
    """How a thread sleeps until a word changes."""

    FUTEX = "futex"
    CONDITION = "pthread condition"


def host_wait() -> Wait:
    """Futexes on Linux, pthread condition variables elsewhere."""
    return Wait.CONDITION if system_calls() is None else Wait.FUTEX


def system_calls() -> SystemCalls | None:
    """The numbers of this host's system calls, if they are known."""
    arch = linux_arch()
    return None if arch is None else arch.system_calls


def known_system_calls() -> SystemCalls:
    """Those of a host that waits by futexes."""
    found = system_calls()
    assert found is not None
    return found


_LIBRARY = {
    Wait.FUTEX: ("clock_gettime", "syscall", "sched_getcpu"),
    Wait.CONDITION: (
        "clock_gettime",
        "pthread_mutex_lock",
        "pthread_mutex_unlock",
        "pthread_cond_wait",
        "pthread_cond_broadcast",
    ),
}
_INTERPRETER = (
    "PyThread_get_thread_ident",
    "PyGILState_Ensure",
    "PyGILState_Release",
    "PyErr_CheckSignals",
    "PyErr_Fetch",
)


def imported_symbols(wait: Wait) -> dict[str, int]:
    """Addresses of the functions imported from the C library and the interpreter."""
    sources = ((ctypes.CDLL(None), _LIBRARY[wait]), (ctypes.pythonapi, _INTERPRETER))
    return {f"tw_{name}": address_of(getattr(library, name)) for library, names in sources for name in names}


def emit_pool(machine: Machine, wait: Wait) -> str:
    """The module with `WORK`, `OPEN`, `CLOSE` and `RUN`."""
    return str(_PoolCode(machine, wait).module)


class _FieldAccess:
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
        return self.f.at(self.place(state, State, "slots"), self.f.mul(index, ctypes.sizeof(WorkerSlot)))

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


#: The arguments of `run`.
_JOB = (("team", POINTER), ("body", POINTER), ("env", POINTER), ("tasks", INT64))


class _PoolCode:
    """Emits the functions of the pool, callees first."""

    def __init__(self, machine: Machine, wait: Wait) -> None:
        self.module = Module("tw_pool", machine.triple, data_layout(machine))
        self.clock = self.emit_clock()
        waits = {Wait.FUTEX: self.emit_futex, Wait.CONDITION: self.emit_condition}
        self.sleep, self.wake = waits[wait]()
        places = {Wait.FUTEX: self.emit_affinity, Wait.CONDITION: self.emit_no_affinity}
        self.register_thread, self.exclude_caller_cpu, self.restore_affinity = places[wait]()
        self.oversubscribed = self.emit_oversubscribed()
        self.wake_some = self.emit_wake_some()
        self.poll = self.emit_poll()
        self.checkpoint = self.emit_checkpoint()
        self.serial = self.emit_serial()
        self.offer = self.emit_offer()
        self.join = self.emit_join()
        self.run = self.emit_run()
        self.emit_open()
        self.emit_close()
        self.run_offered = self.emit_run_offered()
        self.emit_work()

    def define(
        self, name: str, result: Type, arguments: Sequence[tuple[str, Type]], *, exported: bool = False
    ) -> _FieldAccess:
        """A new function."""
        return _FieldAccess(self.module.define(name, result, arguments, exported=exported))

    # --- the operating system ---------------------------------------------------------------------

    def emit_clock(self) -> Callee:
        """``int64 clock()``: nanoseconds of a clock that only goes forward."""
        f = self.define("clock", INT64, []).f
        read = self.module.declare("tw_clock_gettime", INT32, (INT32, POINTER))
        now = f.alloca(INT64, TIMESPEC_BYTES // 8, 8)
        f.call(read, [int32(time.CLOCK_MONOTONIC), now])
        seconds = f.mul(f.load(INT64, now, 8), NANOSECONDS)
        f.ret(f.add(seconds, f.load(INT64, f.at(now, 8), 8)))
        return f.callee

    def emit_futex(self) -> tuple[Callee, Callee]:
        """``sleep(slot, word)`` returns once the slot has another word, or spuriously; ``wake(slot)``."""
        # The kernel compares 32 bits: the low half of the word, whose address depends on the byte order.
        low = 0 if sys.byteorder == "little" else 4
        calls, call = known_system_calls(), self.system_call()
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
        return self.module.declare("tw_syscall", INT64, (INT64,), variadic=True)

    def emit_affinity(self) -> tuple[Callee, Callee, Callee]:
        """CPU affinity of workers: ``register_thread(slot)`` stores the worker's thread number;
        ``exclude_caller_cpu(slot, word)`` removes the caller's CPU from a sleeper's affinity mask, so that it
        wakes elsewhere; ``restore_affinity(slot)`` adds it again.

        Otherwise Linux may wake a worker on its caller's CPU, mostly in virtual machines, where an idle CPU
        is not always reported as idle; both then share the CPU for milliseconds while another one idles.
        """
        calls, call = known_system_calls(), self.system_call()

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
        here = f.sext(f.call(self.module.declare("tw_sched_getcpu", INT32, ()), []), INT64)
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
            self.module.declare(f"tw_pthread_mutex_{name}", INT32, (POINTER,)) for name in ("lock", "unlock")
        )
        w = self.define("sleep", VOID, [("slot", POINTER), ("word", INT64)])
        f, slot = w.f, w.f.arguments["slot"]
        mutex, condition = w.place(slot, WorkerSlot, "mutex"), w.place(slot, WorkerSlot, "condition")
        f.call(lock, [mutex])
        with w.forever("sleeping") as (_, done):
            w.branch_if(f.icmp("!=", w.shared(slot, WorkerSlot, "word"), f.arguments["word"]), done)
            wait = self.module.declare("tw_pthread_cond_wait", INT32, (POINTER, POINTER))
            f.call(wait, [condition, mutex])
        f.call(unlock, [mutex])
        f.ret()
        sleep = f.callee
        w = self.define("wake", VOID, [("slot", POINTER)])
        f, slot = w.f, w.f.arguments["slot"]
        mutex = w.place(slot, WorkerSlot, "mutex")
        f.call(lock, [mutex])  # who sleeps has compared the word before, or will afterwards
        f.call(
            self.module.declare("tw_pthread_cond_broadcast", INT32, (POINTER,)),
            [w.place(slot, WorkerSlot, "condition")],
        )
        f.call(unlock, [mutex])
        f.ret()
        return sleep, f.callee

    def emit_oversubscribed(self) -> Callee:
        """``bool oversubscribed(state)``: whether awake callers and workers outnumber the cores."""
        w = self.define("oversubscribed", Type("i1", "i1"), [("state", POINTER)])
        f, state = w.f, w.f.arguments["state"]
        awake = f.add(w.shared(state, State, "active"), w.shared(state, State, "awake"))
        f.ret(f.icmp(">", awake, w.get(state, State, "cores")))
        return f.callee

    # --- callers ------------------------------------------------------------------------------------

    def emit_wake_some(self) -> Callee:
        """``wake_some(team)``: wakes the next `WAKES` sleepers that were offered the team."""
        w = self.define("wake_some", VOID, [("team", POINTER)])
        f, team = w.f, w.f.arguments["team"]
        state = w.get(team, TeamMemory, "state", POINTER)
        started = w.shared(state, State, "started")
        offered = f.or_(f.ptrtoint(team), int64(ASLEPT))
        left = f.alloca(INT64, 1, 8)
        f.store(int64(WAKES), left, 8)
        with w.forever("look") as (again, done):
            index = f.atomic_add(w.place(team, TeamMemory, "woken"), 1)
            w.branch_if(f.icmp(">=", index, started), done)
            slot = w.slot(state, index)
            asleep = f.icmp("==", w.shared(slot, WorkerSlot, "word"), offered)
            with f.when(f.not_(asleep)):
                f.jump(again)
            f.call(self.exclude_caller_cpu, [slot, offered])
            f.call(self.wake, [slot])
            rest = f.sub(f.load(INT64, left, 8), 1)
            f.store(rest, left, 8)
            w.branch_if(f.icmp("==", rest, 0), done)
        f.ret()
        return f.callee

    def emit_poll(self) -> Callee:
        """``poll(team)``: runs pending signal handlers at intervals; if one raises, the team is cancelled."""
        w = self.define("poll", VOID, [("team", POINTER)])
        f, team = w.f, w.f.arguments["team"]
        now = f.call(self.clock, [])
        early = f.icmp("<", now, w.get(team, TeamMemory, "poll_at"))
        with f.when(f.or_(early, f.icmp("!=", w.get(team, TeamMemory, "cancelled"), 0))):
            f.ret()
        state = w.get(team, TeamMemory, "state", POINTER)
        w.put(f.add(now, w.get(state, State, "poll_ns")), team, TeamMemory, "poll_at")
        module = self.module
        held = f.call(module.declare("tw_PyGILState_Ensure", INT32, ()), [])
        raised = f.call(module.declare("tw_PyErr_CheckSignals", INT32, ()), [])
        with f.when(f.icmp("!=", raised, 0)):
            fetch = module.declare("tw_PyErr_Fetch", VOID, (POINTER,) * 3)
            f.call(fetch, [w.place(team, TeamMemory, "exception", index) for index in range(3)])
            f.store_release(int64(1), w.place(team, TeamMemory, "cancelled"))
            f.store_release(int64(NO_TASK), w.place(team, TeamMemory, "next"))
        f.call(module.declare("tw_PyGILState_Release", VOID, (INT32,)), [held])
        f.ret()
        return f.callee

    def emit_checkpoint(self) -> Callee:
        """``checkpoint(team, stop)``: polls on the team's caller; sets `stop` if the team was cancelled."""
        w = self.define("checkpoint", VOID, [("team", POINTER), ("stop", POINTER)])
        f, team = w.f, w.f.arguments["team"]
        with f.when(f.icmp("!=", w.get(team, TeamMemory, "polls"), 0)):
            state = w.get(team, TeamMemory, "state", POINTER)
            ident = f.call(self.module.declare("tw_PyThread_get_thread_ident", INT64, ()), [])
            with f.when(f.icmp("==", ident, w.get(state, State, "main_thread"))):
                f.call(self.poll, [team])
        f.store(w.shared(team, TeamMemory, "cancelled"), f.arguments["stop"], 8)
        f.ret()
        return f.callee

    def call_body(self, w: _FieldAccess, body: Value, env: Value, thread: Value, task: Value) -> None:
        """Run one task."""
        w.f.call(Callee(VOID, body.text), [env, thread, task])

    def taken(self, w: _FieldAccess, word: Value) -> tuple[Value, Value]:
        """The number of tasks taken from the front and from the back, from a word."""
        return w.bits(word, FROM_ABOVE - 1), w.f.ashr(word, int64(FROM_ABOVE.bit_length() - 1))

    def emit_serial(self) -> Callee:
        """``serial(team, body, env, tasks)``: runs every task on this thread."""
        w = self.define("serial", VOID, _JOB)
        f, team = w.f, w.f.arguments["team"]
        done = f.new_block("cancelled")
        nested = f.icmp("!=", w.get(team, TeamMemory, "running"), 0)  # perhaps on a worker
        asked = f.icmp("!=", w.get(team, TeamMemory, "polls"), 0)
        polls = f.and_(asked, f.not_(nested))
        with f.loop(int64(0), f.arguments["tasks"], int64(1), "task") as task:
            w.branch_if(f.icmp("!=", w.get(team, TeamMemory, "cancelled"), 0), done)
            self.call_body(w, f.arguments["body"], f.arguments["env"], int64(0), task)
            with f.when(polls):
                f.call(self.poll, [team])
        f.jump(done)
        f.place(done)
        f.ret()
        return f.callee

    def emit_offer(self) -> Callee:
        """``int64 offer(team, helpers, before, after)``: offers the team; returns the missing helpers."""
        arguments = [("team", POINTER), ("helpers", INT64), ("before", INT64), ("after", INT64)]
        w = self.define("offer", INT64, arguments)
        f, team = w.f, w.f.arguments["team"]
        before, after = f.arguments["before"], f.arguments["after"]
        state = w.get(team, TeamMemory, "state", POINTER)
        started = w.shared(state, State, "started")
        left = f.alloca(INT64, 1, 8)
        f.store(f.arguments["helpers"], left, 8)
        done = f.new_block("posted")
        with f.loop(int64(0), started, int64(1), "slot") as index:
            w.branch_if(f.icmp("==", f.load(INT64, left, 8), 0), done)
            slot = w.slot(state, index)
            with f.when(f.icmp("==", w.shared(slot, WorkerSlot, "word"), before)):
                claimed = f.cmpxchg(w.place(slot, WorkerSlot, "word"), before, after)
                f.store(f.sub(f.load(INT64, left, 8), f.select(claimed, int64(1), int64(0))), left, 8)
        f.jump(done)
        f.place(done)
        f.ret(f.load(INT64, left, 8))
        return f.callee

    def emit_join(self) -> Callee:
        """``join(team, slot)``: withdraws the offer, or waits until the worker has no more tasks."""
        w = self.define("join", VOID, [("team", POINTER), ("slot", POINTER)])
        f, team, slot = w.f, w.f.arguments["team"], w.f.arguments["slot"]
        word = w.place(slot, WorkerSlot, "word")
        state = w.get(team, TeamMemory, "state", POINTER)
        deadline = f.alloca(INT64, 1, 8)
        f.store(int64(0), deadline, 8)
        with w.forever("look") as (again, gone):
            found = f.load_acquire(INT64, word)
            w.branch_if(f.icmp("!=", w.team_of(found), f.ptrtoint(team)), gone)
            with f.when(f.icmp("==", w.bits(found, TAKEN), 0)):
                idle = f.or_(w.bits(found, ASLEPT), int64(FREE))
                with f.when(f.not_(f.cmpxchg(word, found, idle))):
                    f.jump(again)
                f.call(self.restore_affinity, [slot])  # one that was about to sleep may sleep on
                f.jump(gone)
            with f.when(f.icmp("!=", w.bits(found, WAITED), 0)):
                f.call(self.sleep, [slot, found])
                f.jump(again)
            self.spin_on(w, word, found, again)
            now = f.call(self.clock, [])
            with f.when(f.icmp("==", f.load(INT64, deadline, 8), 0)):
                f.store(f.add(now, w.get(state, State, "spin_ns")), deadline, 8)
            late = f.icmp(">", now, f.load(INT64, deadline, 8))
            with f.when(f.or_(late, f.call(self.oversubscribed, [state]))):
                f.cmpxchg(word, found, f.or_(found, int64(WAITED)))
        f.ret()
        return f.callee

    def spin_on(self, w: _FieldAccess, word: Value, expected: Value, changed: Block) -> None:
        """Spin on a word for about a microsecond; branch to `changed` once it differs from the expected
        value.
        """
        f = w.f
        with f.loop(int64(0), int64(LOOKS), int64(1), "pause"):
            w.branch_if(f.icmp("!=", f.load_acquire(INT64, word), expected), changed)
            f.pause()

    def emit_run(self) -> Callee:
        """``run(team, body, env, tasks)``: runs every task once; see `TeamMemory`."""
        w = self.define(RUN, VOID, _JOB, exported=True)
        f, team = w.f, w.f.arguments["team"]
        job = [f.arguments[name] for name in ("team", "body", "env", "tasks")]
        _, body, env, tasks = job
        with f.when(f.icmp("==", body, null())):
            f.call(self.checkpoint, [team, env])
            f.ret()
        threads = f.minimum(w.get(team, TeamMemory, "share"), tasks)
        # Nested tasks of the same team run on the thread that creates them.
        nested = f.icmp("!=", w.get(team, TeamMemory, "running"), 0)
        nested = f.or_(nested, f.icmp(">", tasks, MOST_TASKS))
        with f.when(f.or_(nested, f.icmp("<=", threads, 1))):
            f.call(self.serial, job)
            f.ret()
        state = w.get(team, TeamMemory, "state", POINTER)
        first, begin = self.run_alone_while_repaying(w, job)
        left = f.sub(tasks, first)
        threads = f.minimum(threads, left)
        w.put(1, team, TeamMemory, "running")
        for value, name in ((body, "body"), (env, "env"), (tasks, "tasks")):
            w.put(value, team, TeamMemory, name)
        for name in ("arrived", "woken"):
            w.put(0, team, TeamMemory, name)
        w.put(f.add(first, 1), team, TeamMemory, "next")  # the first is the caller's own
        here = f.ptrtoint(team)
        wanted = f.sub(threads, 1)
        wanted = f.call(self.offer, [team, wanted, int64(FREE), here])
        asleep = f.or_(here, int64(ASLEPT))
        with f.when(f.icmp("!=", w.get(team, TeamMemory, "wakes"), 0)):
            missing = f.call(self.offer, [team, wanted, int64(ASLEEP), asleep])
            with f.when(f.icmp("!=", missing, wanted)):
                f.call(self.wake_some, [team])
        self.call_body(w, body, env, int64(0), first)
        own = f.alloca(INT64, 1, 8)
        f.store(int64(1), own, 8)
        with w.forever("tasks") as (_, done):
            with f.when(f.icmp("!=", w.get(team, TeamMemory, "polls"), 0)):
                f.call(self.poll, [team])
            below, above = self.taken(w, f.atomic_add(w.place(team, TeamMemory, "next"), FROM_BELOW))
            w.branch_if(f.icmp(">=", f.add(below, above), tasks), done)
            self.call_body(w, body, env, int64(0), below)
            f.store(f.add(f.load(INT64, own, 8), 1), own, 8)
        mine = f.sub(f.call(self.clock, []), begin)
        with f.loop(int64(0), w.shared(state, State, "started"), int64(1), "slot") as index:
            f.call(self.join, [team, w.slot(state, index)])
        w.put(0, team, TeamMemory, "running")
        end = f.call(self.clock, [])
        alone = f.udiv(f.mul(mine, left), f.load(INT64, own, 8))
        lost = f.sub(f.sub(end, begin), alone)
        least = f.add(f.udiv(alone, int64(LOSS_SHARE)), LEAST_LOSS_NS)
        with f.when(f.icmp(">", lost, least)):
            f.store_release(f.add(end, f.mul(lost, REPAID)), w.place(state, State, "alone_until"))
        f.ret()
        return f.callee

    def run_alone_while_repaying(self, w: _FieldAccess, job: Sequence[Value]) -> tuple[Value, Value]:
        """Run tasks on the caller alone while a loss is repaid; returns the first remaining task, and the
        time.

        The emitted function returns if none remains, or if a signal handler raised.
        """
        f, (team, body, env, tasks) = w.f, job
        state = w.get(team, TeamMemory, "state", POINTER)
        until = w.shared(state, State, "alone_until")
        place = f.alloca(INT64, 2, 8)
        f.store(int64(0), place, 8)
        with w.forever("repay") as (_, repaid):
            now, task = f.call(self.clock, []), f.load(INT64, place, 8)
            f.store(now, f.at(place, 8), 8)
            ended = f.or_(f.icmp(">=", task, tasks), f.icmp("!=", w.get(team, TeamMemory, "cancelled"), 0))
            with f.when(ended):
                f.ret()
            w.branch_if(f.icmp(">=", now, until), repaid)
            self.call_body(w, body, env, int64(0), task)
            f.store(f.add(task, 1), place, 8)
            with f.when(f.icmp("!=", w.get(team, TeamMemory, "polls"), 0)):
                f.call(self.poll, [team])
        return f.load(INT64, place, 8), f.load(INT64, f.at(place, 8), 8)

    def emit_open(self) -> None:
        """``open(state, team, threads, long)``: opens a team of at most this many threads, fewer beside other
        teams.

        Sleepers are woken for a long call, and for a short one that follows another one within the spinning
        time of workers, so that the next calls find them awake.
        """
        arguments = [("state", POINTER), ("team", POINTER), ("threads", INT64), ("long", INT64)]
        w = self.define(OPEN, VOID, arguments, exported=True)
        f, state, team = w.f, w.f.arguments["state"], w.f.arguments["team"]
        active = f.add(f.atomic_add(w.place(state, State, "active"), 1), 1)
        share = f.udiv(f.arguments["threads"], f.maximum(active, int64(1)))
        w.put(f.maximum(share, int64(1)), team, TeamMemory, "share")
        w.put(f.maximum(share, int64(2)), team, TeamMemory, "threads")
        w.put(Value(POINTER, self.run.text), team, TeamMemory, "run")
        w.put(state, team, TeamMemory, "state")
        for name in ("cancelled", "running"):
            w.put(0, team, TeamMemory, name)
        ident = f.call(self.module.declare("tw_PyThread_get_thread_ident", INT64, ()), [])
        main = f.icmp("==", ident, w.get(state, State, "main_thread"))
        w.put(f.select(main, int64(1), int64(0)), team, TeamMemory, "polls")
        now = f.call(self.clock, [])
        w.put(f.add(now, w.get(state, State, "poll_ns")), team, TeamMemory, "poll_at")
        since = f.sub(now, w.shared(state, State, "closed_at"))
        follows = f.icmp("<", since, w.get(state, State, "spin_ns"))
        w.put(f.select(follows, int64(1), f.arguments["long"]), team, TeamMemory, "wakes")
        f.ret()

    def emit_close(self) -> None:
        """``close(team)``: returns its share of threads."""
        w = self.define(CLOSE, VOID, [("team", POINTER)], exported=True)
        state = w.get(w.f.arguments["team"], TeamMemory, "state", POINTER)
        w.f.store_release(w.f.call(self.clock, []), w.place(state, State, "closed_at"))
        w.f.atomic_add(w.place(state, State, "active"), -1)
        w.f.ret()

    # --- workers ------------------------------------------------------------------------------------

    def emit_run_offered(self) -> Callee:
        """``run_offered(team)``: runs tasks of a team on a worker until none remain."""
        w = self.define("run_offered", VOID, [("team", POINTER)])
        f, team = w.f, w.f.arguments["team"]
        body, env = (w.get(team, TeamMemory, name, POINTER) for name in ("body", "env"))
        tasks, following = w.get(team, TeamMemory, "tasks"), w.place(team, TeamMemory, "next")
        slot = f.alloca(INT64, 1, 8)

        def take_one() -> Value:
            """Take one task into the slot; returns whether there was one."""
            below, above = self.taken(w, f.atomic_add(following, FROM_ABOVE))
            f.store(f.sub(f.sub(tasks, 1), above), slot, 8)
            return f.icmp("<", f.add(below, above), tasks)

        with f.when(f.not_(take_one())):
            f.ret()
        thread = f.add(f.atomic_add(w.place(team, TeamMemory, "arrived"), 1), 1)
        with w.forever("tasks") as (_, done):
            self.call_body(w, body, env, thread, f.load(INT64, slot, 8))
            w.branch_if(f.not_(take_one()), done)
        f.ret()
        return f.callee

    def emit_work(self) -> None:
        """``work(state, slot)``: the worker loop; never returns."""
        w = self.define(WORK, VOID, [("state", POINTER), ("slot", POINTER)], exported=True)
        f, state, slot = w.f, w.f.arguments["state"], w.f.arguments["slot"]
        word, awake = w.place(slot, WorkerSlot, "word"), w.place(state, State, "awake")
        deadline = f.alloca(INT64, 1, 8)
        f.call(self.register_thread, [slot])
        f.atomic_add(awake, 1)
        with w.forever("begin") as (begin, _):
            f.store(f.add(f.call(self.clock, []), w.get(state, State, "spin_ns")), deadline, 8)
            offered, doze, up = (f.new_block(name) for name in ("offered", "doze", "up"))
            with w.forever("spin") as (_, late):
                self.spin_on(w, word, int64(FREE), offered)
                over = f.icmp(">", f.call(self.clock, []), f.load(INT64, deadline, 8))
                w.branch_if(f.or_(over, f.call(self.oversubscribed, [state])), late)
            f.call(self.restore_affinity, [slot])
            f.atomic_add(awake, -1)
            f.jump_if(f.cmpxchg(word, int64(FREE), int64(ASLEEP)), doze, up)
            f.place(doze)
            f.call(self.sleep, [slot, int64(ASLEEP)])
            f.jump(up)
            f.place(up)
            f.atomic_add(awake, 1)
            f.cmpxchg(word, int64(ASLEEP), int64(FREE))  # woken for an offer that was taken back
            f.jump(offered)
            f.place(offered)
            found = f.load_acquire(INT64, word)
            w.branch_if(f.icmp("==", found, FREE), begin)
            with f.when(f.icmp("==", found, ASLEEP)):  # the offer was taken back just now
                f.cmpxchg(word, int64(ASLEEP), int64(FREE))
                f.jump(begin)
            here = w.team_of(found)
            taken = f.cmpxchg(word, found, f.or_(here, int64(TAKEN)))
            w.branch_if(f.not_(taken), begin)
            team = f.inttoptr(here)
            with f.when(f.icmp("!=", w.bits(found, ASLEPT), 0)):
                f.call(self.wake_some, [team])
            f.call(self.run_offered, [team])
            left = f.xchg(word, int64(FREE))  # from here on the team may be gone
            with f.when(f.icmp("!=", w.bits(left, WAITED), 0)):
                f.call(self.wake, [slot])
        f.ret()
