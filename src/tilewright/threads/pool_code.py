"""Machine code of the thread pool: the loop of workers, fork and join.

Nothing here touches a Python object. The one exception is a caller on Python's main thread: between its
tasks it takes the GIL every now and then, so that signal handlers run. What the words of the shared memory
mean stands in `pool_memory.py`.
"""

from __future__ import annotations

import ctypes
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.builtin import address_of
from tilewright.llvm.control import Block
from tilewright.llvm.target import data_layout
from tilewright.llvm.values import INT32, INT64, POINTER, VOID, Type, Value, int32, int64, null
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

#: Looks at a word between two readings of the clock: about a microsecond of them.
LOOKS = 16
#: Sleepers that one thread wakes; each of them wakes as many, so that n are awake after log n steps.
WAKES = 2

#: A run that took longer than its caller alone would have, because other processes had the cores, is repaid:
#: for so many times what it lost, callers do their tasks themselves. So losses are a third at most; a longer
#: time would keep the cores from the calls that follow a single hiccup.
REPAID = 2
#: Losses below this share of the caller's own time, and below this time, come from uneven tasks.
LOSS_SHARE, LEAST_LOSS_NS = 4, 2_000


@dataclass(frozen=True)
class SystemCalls:
    """Numbers of Linux's system calls, asm/unistd.h."""

    futex: int
    gettid: int
    sched_getaffinity: int
    sched_setaffinity: int


_GENERIC = SystemCalls(futex=98, gettid=178, sched_getaffinity=123, sched_setaffinity=122)
#: By the name of the CPU in `platform.machine`.
SYSTEM_CALLS = {
    "x86_64": SystemCalls(futex=202, gettid=186, sched_getaffinity=204, sched_setaffinity=203),
    "ppc64le": SystemCalls(futex=221, gettid=207, sched_getaffinity=223, sched_setaffinity=222),
    "aarch64": _GENERIC,
    "riscv64": _GENERIC,
}
#: linux/futex.h, FUTEX_WAIT and FUTEX_WAKE with FUTEX_PRIVATE_FLAG.
FUTEX_WAIT, FUTEX_WAKE = 128, 129

#: CPUs that a thread is kept off are looked up among so many times 64.
CPU_WORDS = 16

#: struct timespec of 64-bit systems.
TIMESPEC_BYTES, NANOSECONDS = 16, 1_000_000_000


class Wait(Enum):
    """How a thread sleeps until a word changes."""

    FUTEX = "futex"
    CONDITION = "pthread condition"


def host_wait() -> Wait:
    """Futexes on Linux, conditions of pthread elsewhere."""
    futexes = sys.platform == "linux" and platform.machine() in SYSTEM_CALLS
    return Wait.FUTEX if futexes else Wait.CONDITION


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
    """Addresses of what the code imports from the C library and the interpreter."""
    sources = ((ctypes.CDLL(None), _LIBRARY[wait]), (ctypes.pythonapi, _INTERPRETER))
    return {f"tw_{name}": address_of(getattr(library, name)) for library, names in sources for name in names}


def emit_pool(machine: Machine, wait: Wait) -> str:
    """The module with `WORK`, `OPEN`, `CLOSE` and `RUN`."""
    return str(_PoolCode(machine, wait).module)


class _Words:
    """Reads and writes fields of the structures in one function."""

    def __init__(self, f: Function) -> None:
        self.f = f

    def place(self, base: Value, kind: type[ctypes.Structure], name: str, index: int = 0) -> Value:
        """The address of a field."""
        return self.f.at(base, getattr(kind, name).offset + 8 * index)

    def get(self, base: Value, kind: type[ctypes.Structure], name: str, type_: Type = INT64) -> Value:
        """A field that no other thread writes meanwhile."""
        return self.f.load(type_, self.place(base, kind, name), 8)

    def put(self, value: Value | int, base: Value, kind: type[ctypes.Structure], name: str) -> None:
        """Writes a field that no other thread uses meanwhile."""
        value = int64(value) if isinstance(value, int) else value
        self.f.store(value, self.place(base, kind, name), 8)

    def shared(self, base: Value, kind: type[ctypes.Structure], name: str) -> Value:
        """A field that other threads write."""
        return self.f.load_acquire(INT64, self.place(base, kind, name))

    def slot(self, state: Value, index: Value) -> Value:
        """One slot of a pool."""
        return self.f.at(self.place(state, State, "slots"), self.f.mul(index, ctypes.sizeof(WorkerSlot)))

    def bits(self, word: Value, mask: int) -> Value:
        """The bits of a word under a mask."""
        return self.f.and_(word, int64(mask))

    def team_of(self, word: Value) -> Value:
        """The team in a word, as an integer."""
        return self.bits(word, -TEAM_ALIGNMENT)

    @contextmanager
    def forever(self, name: str) -> Iterator[tuple[Block, Block]]:
        """Repeats a block until it jumps to the second of two; a jump to the first repeats it at once."""
        f = self.f
        again, done = f.new_block(name), f.new_block(f"{name}.done")
        f.jump(again)
        f.place(again)
        yield again, done
        if not f.block.terminated:
            f.jump(again)
        f.place(done)

    def leave_if(self, condition: Value, target: Block) -> None:
        """Goes elsewhere if a condition holds."""
        following = self.f.new_block("on")
        self.f.jump_if(condition, target, following)
        self.f.place(following)


#: The arguments of `run`.
_JOB = (("team", POINTER), ("body", POINTER), ("env", POINTER), ("tasks", INT64))


class _PoolCode:
    """Emits the functions, those first that others call."""

    def __init__(self, machine: Machine, wait: Wait) -> None:
        self.module = Module("tw_pool", machine.triple, data_layout(machine))
        self.clock = self.emit_clock()
        waits = {Wait.FUTEX: self.emit_futex, Wait.CONDITION: self.emit_condition}
        self.sleep, self.wake = waits[wait]()
        places = {Wait.FUTEX: self.emit_places, Wait.CONDITION: self.emit_no_places}
        self.introduce, self.part, self.go_home = places[wait]()
        self.crowded = self.emit_crowded()
        self.wake_some = self.emit_wake_some()
        self.poll = self.emit_poll()
        self.checkpoint = self.emit_checkpoint()
        self.serial = self.emit_serial()
        self.post = self.emit_post()
        self.join = self.emit_join()
        self.run = self.emit_run()
        self.emit_open()
        self.emit_close()
        self.take = self.emit_take()
        self.emit_work()

    def define(
        self, name: str, result: Type, arguments: Sequence[tuple[str, Type]], *, exported: bool = False
    ) -> _Words:
        """A new function."""
        return _Words(self.module.define(name, result, arguments, exported=exported))

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
        """``sleep(slot, word)`` returns once the slot has another word, or sooner; ``wake(slot)``."""
        # The kernel compares 32 bits; the low ones are enough, and where they are depends on the CPU.
        low = 0 if sys.byteorder == "little" else 4
        number = int64(SYSTEM_CALLS[platform.machine()].futex)
        call = self.system_call()
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

    def emit_places(self) -> tuple[Callee, Callee, Callee]:
        """``introduce(slot)``: the worker says who it is. ``part(slot)``: keeps a sleeper off the caller's
        CPU, so that it wakes elsewhere. ``go_home(slot)``: the worker may run there again.

        Without it Linux may wake a worker on its caller's CPU, most often in virtual machines, where a CPU
        that idles does not count as free; the two then share it for milliseconds, and another idles.
        """
        calls, call = SYSTEM_CALLS[platform.machine()], self.system_call()

        def change(f: Function, thread: Value, cpu: Value, *, allow: bool) -> Value:
            """Adds a CPU to those that a thread may run on, or takes it away if others are left; whether."""
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
            f.store(f.or_(word, bit) if allow else f.and_(word, f.sub(int64(-1), bit)), place, 8)
            left = int64(0)
            for index in range(CPU_WORDS):
                left = f.or_(left, f.load(INT64, f.at(mask, 8 * index), 8))
            with f.when(f.icmp("==", left, 0)):
                f.ret()
            return f.icmp(">=", f.call(call, [int64(calls.sched_setaffinity), thread, size, mask]), 0)

        w = self.define("introduce", VOID, [("slot", POINTER)])
        own = w.place(w.f.arguments["slot"], WorkerSlot, "thread")
        w.f.store_release(w.f.call(call, [int64(calls.gettid)]), own)
        w.f.ret()
        introduce = w.f.callee

        part = self.emit_part(change, go_home := self.emit_go_home(change))
        return introduce, part, go_home

    def emit_part(self, change: Callable[..., Value], go_home: Callee) -> Callee:
        """``part(slot, word)``, of a slot that is offered something by this word."""
        w = self.define("part", VOID, [("slot", POINTER), ("word", INT64)])
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
            # A worker that had not been asleep yet may have looked there before, and be on its way to sleep.
            with f.when(f.icmp("!=", w.shared(slot, WorkerSlot, "word"), f.arguments["word"])):
                f.call(go_home, [slot])
        f.ret()
        return f.callee

    def emit_go_home(self, change: Callable[..., Value]) -> Callee:
        """``go_home(slot)``; whoever calls it first does it."""
        w = self.define("go_home", VOID, [("slot", POINTER)])
        f, slot = w.f, w.f.arguments["slot"]
        with f.when(f.icmp("==", w.shared(slot, WorkerSlot, "kept_off"), 0)):
            f.ret()
        kept_off = f.xchg(w.place(slot, WorkerSlot, "kept_off"), int64(0))
        with f.when(f.icmp("==", kept_off, 0)):
            f.ret()
        change(f, w.shared(slot, WorkerSlot, "thread"), f.sub(kept_off, 1), allow=True)
        f.ret()
        return f.callee

    def emit_no_places(self) -> tuple[Callee, Callee, Callee]:
        """The same where threads cannot be kept off a CPU."""
        made = []
        for name in ("introduce", "part", "go_home"):
            word = [("word", INT64)] if name == "part" else []
            f = self.define(name, VOID, [("slot", POINTER), *word]).f
            f.ret()
            made.append(f.callee)
        return made[0], made[1], made[2]

    def emit_condition(self) -> tuple[Callee, Callee]:
        """The same with the mutex and the condition of the slot."""
        lock, unlock = (
            self.module.declare(f"tw_pthread_mutex_{name}", INT32, (POINTER,)) for name in ("lock", "unlock")
        )
        w = self.define("sleep", VOID, [("slot", POINTER), ("word", INT64)])
        f, slot = w.f, w.f.arguments["slot"]
        mutex, condition = w.place(slot, WorkerSlot, "mutex"), w.place(slot, WorkerSlot, "condition")
        f.call(lock, [mutex])
        with w.forever("sleeping") as (_, done):
            w.leave_if(f.icmp("!=", w.shared(slot, WorkerSlot, "word"), f.arguments["word"]), done)
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

    def emit_crowded(self) -> Callee:
        """``bool crowded(state)``: whether callers and workers that are awake outnumber the cores."""
        w = self.define("crowded", Type("i1", "i1"), [("state", POINTER)])
        f, state = w.f, w.f.arguments["state"]
        awake = f.add(w.shared(state, State, "active"), w.shared(state, State, "awake"))
        f.ret(f.icmp(">", awake, w.get(state, State, "cores")))
        return f.callee

    # --- callers ------------------------------------------------------------------------------------

    def emit_wake_some(self) -> Callee:
        """``wake_some(team)``: wakes the next `WAKES` sleepers that the team was offered to."""
        w = self.define("wake_some", VOID, [("team", POINTER)])
        f, team = w.f, w.f.arguments["team"]
        state = w.get(team, TeamMemory, "state", POINTER)
        started = w.shared(state, State, "started")
        offered = f.or_(f.ptrtoint(team), int64(ASLEPT))
        left = f.alloca(INT64, 1, 8)
        f.store(int64(WAKES), left, 8)
        with w.forever("look") as (again, done):
            index = f.atomic_add(w.place(team, TeamMemory, "woken"), 1)
            w.leave_if(f.icmp(">=", index, started), done)
            slot = w.slot(state, index)
            asleep = f.icmp("==", w.shared(slot, WorkerSlot, "word"), offered)
            with f.when(f.not_(asleep)):
                f.jump(again)
            f.call(self.part, [slot, offered])
            f.call(self.wake, [slot])
            rest = f.sub(f.load(INT64, left, 8), 1)
            f.store(rest, left, 8)
            w.leave_if(f.icmp("==", rest, 0), done)
        f.ret()
        return f.callee

    def emit_poll(self) -> Callee:
        """``poll(team)``: lets signal handlers run when it is time; if one raises, the team is cancelled."""
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
        """``checkpoint(team, stop)``: polls if the team's caller runs the task; sets the word to stop it."""
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

    def call_body(self, w: _Words, body: Value, env: Value, thread: Value, task: Value) -> None:
        """One task."""
        w.f.call(Callee(VOID, body.text), [env, thread, task])

    def taken(self, w: _Words, word: Value) -> tuple[Value, Value]:
        """How many tasks a word says were taken from below, and from above."""
        return w.bits(word, FROM_ABOVE - 1), w.f.ashr(word, int64(FROM_ABOVE.bit_length() - 1))

    def emit_serial(self) -> Callee:
        """``serial(team, body, env, tasks)``: every task on this thread."""
        w = self.define("serial", VOID, _JOB)
        f, team = w.f, w.f.arguments["team"]
        done = f.new_block("cancelled")
        nested = f.icmp("!=", w.get(team, TeamMemory, "running"), 0)  # perhaps on a worker
        asked = f.icmp("!=", w.get(team, TeamMemory, "polls"), 0)
        polls = f.and_(asked, f.not_(nested))
        with f.loop(int64(0), f.arguments["tasks"], int64(1), "task") as task:
            w.leave_if(f.icmp("!=", w.get(team, TeamMemory, "cancelled"), 0), done)
            self.call_body(w, f.arguments["body"], f.arguments["env"], int64(0), task)
            with f.when(polls):
                f.call(self.poll, [team])
        f.jump(done)
        f.place(done)
        f.ret()
        return f.callee

    def emit_post(self) -> Callee:
        """``int64 post(team, helpers, before, after)``: offers the team; how many helpers it still wants."""
        arguments = [("team", POINTER), ("helpers", INT64), ("before", INT64), ("after", INT64)]
        w = self.define("post", INT64, arguments)
        f, team = w.f, w.f.arguments["team"]
        before, after = f.arguments["before"], f.arguments["after"]
        state = w.get(team, TeamMemory, "state", POINTER)
        started = w.shared(state, State, "started")
        left = f.alloca(INT64, 1, 8)
        f.store(f.arguments["helpers"], left, 8)
        done = f.new_block("posted")
        with f.loop(int64(0), started, int64(1), "slot") as index:
            w.leave_if(f.icmp("==", f.load(INT64, left, 8), 0), done)
            slot = w.slot(state, index)
            with f.when(f.icmp("==", w.shared(slot, WorkerSlot, "word"), before)):
                claimed = f.cmpxchg(w.place(slot, WorkerSlot, "word"), before, after)
                f.store(f.sub(f.load(INT64, left, 8), f.select(claimed, int64(1), int64(0))), left, 8)
        f.jump(done)
        f.place(done)
        f.ret(f.load(INT64, left, 8))
        return f.callee

    def emit_join(self) -> Callee:
        """``join(team, slot)``: takes the offer back, or waits until the worker has no more tasks."""
        w = self.define("join", VOID, [("team", POINTER), ("slot", POINTER)])
        f, team, slot = w.f, w.f.arguments["team"], w.f.arguments["slot"]
        word = w.place(slot, WorkerSlot, "word")
        state = w.get(team, TeamMemory, "state", POINTER)
        deadline = f.alloca(INT64, 1, 8)
        f.store(int64(0), deadline, 8)
        with w.forever("look") as (again, gone):
            found = f.load_acquire(INT64, word)
            w.leave_if(f.icmp("!=", w.team_of(found), f.ptrtoint(team)), gone)
            with f.when(f.icmp("==", w.bits(found, TAKEN), 0)):
                idle = f.or_(w.bits(found, ASLEPT), int64(FREE))
                with f.when(f.not_(f.cmpxchg(word, found, idle))):
                    f.jump(again)
                f.call(self.go_home, [slot])  # one that was about to sleep may sleep on
                f.jump(gone)
            with f.when(f.icmp("!=", w.bits(found, WAITED), 0)):
                f.call(self.sleep, [slot, found])
                f.jump(again)
            self.look_at(w, word, found, again)
            now = f.call(self.clock, [])
            with f.when(f.icmp("==", f.load(INT64, deadline, 8), 0)):
                f.store(f.add(now, w.get(state, State, "spin_ns")), deadline, 8)
            late = f.icmp(">", now, f.load(INT64, deadline, 8))
            with f.when(f.or_(late, f.call(self.crowded, [state]))):
                f.cmpxchg(word, found, f.or_(found, int64(WAITED)))
        f.ret()
        return f.callee

    def look_at(self, w: _Words, word: Value, expected: Value, changed: Block) -> None:
        """Looks at a word for about a microsecond; goes elsewhere once it is another."""
        f = w.f
        with f.loop(int64(0), int64(LOOKS), int64(1), "pause"):
            w.leave_if(f.icmp("!=", f.load_acquire(INT64, word), expected), changed)
            f.pause()

    def emit_run(self) -> Callee:
        """``run(team, body, env, tasks)``: every task once; see `TeamMemory`."""
        w = self.define(RUN, VOID, _JOB, exported=True)
        f, team = w.f, w.f.arguments["team"]
        job = [f.arguments[name] for name in ("team", "body", "env", "tasks")]
        _, body, env, tasks = job
        with f.when(f.icmp("==", body, null())):
            f.call(self.checkpoint, [team, env])
            f.ret()
        threads = f.minimum(w.get(team, TeamMemory, "share"), tasks)
        # Tasks of a task of the same team are done where they come up.
        nested = f.icmp("!=", w.get(team, TeamMemory, "running"), 0)
        nested = f.or_(nested, f.icmp(">", tasks, MOST_TASKS))
        with f.when(f.or_(nested, f.icmp("<=", threads, 1))):
            f.call(self.serial, job)
            f.ret()
        state = w.get(team, TeamMemory, "state", POINTER)
        first, begin = self.alone_at_first(w, job)
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
        wanted = f.call(self.post, [team, wanted, int64(FREE), here])
        asleep = f.or_(here, int64(ASLEPT))
        with f.when(f.icmp("!=", w.get(team, TeamMemory, "wakes"), 0)):
            missing = f.call(self.post, [team, wanted, int64(ASLEEP), asleep])
            with f.when(f.icmp("!=", missing, wanted)):
                f.call(self.wake_some, [team])
        self.call_body(w, body, env, int64(0), first)
        own = f.alloca(INT64, 1, 8)
        f.store(int64(1), own, 8)
        with w.forever("tasks") as (_, done):
            with f.when(f.icmp("!=", w.get(team, TeamMemory, "polls"), 0)):
                f.call(self.poll, [team])
            below, above = self.taken(w, f.atomic_add(w.place(team, TeamMemory, "next"), FROM_BELOW))
            w.leave_if(f.icmp(">=", f.add(below, above), tasks), done)
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

    def alone_at_first(self, w: _Words, job: Sequence[Value]) -> tuple[Value, Value]:
        """Tasks on the caller alone while a loss is repaid; the first that is left, and the time.

        The function returns where none is left, or a signal handler raised.
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
            w.leave_if(f.icmp(">=", now, until), repaid)
            self.call_body(w, body, env, int64(0), task)
            f.store(f.add(task, 1), place, 8)
            with f.when(f.icmp("!=", w.get(team, TeamMemory, "polls"), 0)):
                f.call(self.poll, [team])
        return f.load(INT64, place, 8), f.load(INT64, f.at(place, 8), 8)

    def emit_open(self) -> None:
        """``open(state, team, threads, long)``: a team of at most so many threads, fewer where others run.

        Sleepers are woken for a long call, and for a short one that follows another within the time for
        which workers poll: then they find the next ones awake.
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
        """``close(team)``: its share is free for others."""
        w = self.define(CLOSE, VOID, [("team", POINTER)], exported=True)
        state = w.get(w.f.arguments["team"], TeamMemory, "state", POINTER)
        w.f.store_release(w.f.call(self.clock, []), w.place(state, State, "closed_at"))
        w.f.atomic_add(w.place(state, State, "active"), -1)
        w.f.ret()

    # --- workers ------------------------------------------------------------------------------------

    def emit_take(self) -> Callee:
        """``take(team)``: tasks of a team on a worker, until there are none."""
        w = self.define("take", VOID, [("team", POINTER)])
        f, team = w.f, w.f.arguments["team"]
        body, env = (w.get(team, TeamMemory, name, POINTER) for name in ("body", "env"))
        tasks, following = w.get(team, TeamMemory, "tasks"), w.place(team, TeamMemory, "next")
        slot = f.alloca(INT64, 1, 8)

        def take_one() -> Value:
            """Whether there was a task; the slot has it."""
            below, above = self.taken(w, f.atomic_add(following, FROM_ABOVE))
            f.store(f.sub(f.sub(tasks, 1), above), slot, 8)
            return f.icmp("<", f.add(below, above), tasks)

        with f.when(f.not_(take_one())):
            f.ret()
        thread = f.add(f.atomic_add(w.place(team, TeamMemory, "arrived"), 1), 1)
        with w.forever("tasks") as (_, done):
            self.call_body(w, body, env, thread, f.load(INT64, slot, 8))
            w.leave_if(f.not_(take_one()), done)
        f.ret()
        return f.callee

    def emit_work(self) -> None:
        """``work(state, slot)``: what a worker does; never returns."""
        w = self.define(WORK, VOID, [("state", POINTER), ("slot", POINTER)], exported=True)
        f, state, slot = w.f, w.f.arguments["state"], w.f.arguments["slot"]
        word, awake = w.place(slot, WorkerSlot, "word"), w.place(state, State, "awake")
        deadline = f.alloca(INT64, 1, 8)
        f.call(self.introduce, [slot])
        f.atomic_add(awake, 1)
        with w.forever("begin") as (begin, _):
            f.store(f.add(f.call(self.clock, []), w.get(state, State, "spin_ns")), deadline, 8)
            offered, doze, up = (f.new_block(name) for name in ("offered", "doze", "up"))
            with w.forever("spin") as (_, late):
                self.look_at(w, word, int64(FREE), offered)
                over = f.icmp(">", f.call(self.clock, []), f.load(INT64, deadline, 8))
                w.leave_if(f.or_(over, f.call(self.crowded, [state])), late)
            f.call(self.go_home, [slot])
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
            w.leave_if(f.icmp("==", found, FREE), begin)
            with f.when(f.icmp("==", found, ASLEEP)):  # the offer was taken back just now
                f.cmpxchg(word, int64(ASLEEP), int64(FREE))
                f.jump(begin)
            here = w.team_of(found)
            taken = f.cmpxchg(word, found, f.or_(here, int64(TAKEN)))
            w.leave_if(f.not_(taken), begin)
            team = f.inttoptr(here)
            with f.when(f.icmp("!=", w.bits(found, ASLEPT), 0)):
                f.call(self.wake_some, [team])
            f.call(self.take, [team])
            left = f.xchg(word, int64(FREE))  # from here on the team may be gone
            with f.when(f.icmp("!=", w.bits(left, WAITED), 0)):
                f.call(self.wake, [slot])
        f.ret()
