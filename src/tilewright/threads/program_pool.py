"""Machine code of the thread pool for programs and libraries without Python.

It is the pool of Python processes (`pool_code.py`). Threads of the C library run its worker loop; the first
call that is large enough starts them, and a destructor of the program or library ends and joins them.
Nothing here needs an initialiser: all state begins as zeros.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from tilewright.llvm.build import Callee, Function
from tilewright.llvm.values import INT32, INT64, POINTER, VOID, Type, Value, int32, int64, null
from tilewright.machine.arch import SystemCalls, find_arch
from tilewright.machine.machine import Machine
from tilewright.threads.pool import SPIN_US, TEAM_WORK, WAKE_WORK
from tilewright.threads.pool_code import PoolCode
from tilewright.threads.pool_memory import ASLEEP, FREE, MOST_WORKERS, OPEN, STOPPED, PoolState, WorkerSlot
from tilewright.threads.pool_system import Wait
from tilewright.threads.program_code import ProgramCode
from tilewright.threads.system_code import CPU_WORDS, FieldAccess

#: The most threads of a call: scratch is reserved, though not used, for each.
MOST_THREADS = 256

#: Variables that limit the number of threads; the least of them counts.
THREAD_VARIABLES = ("TILEWRIGHT_NUM_THREADS", "OMP_NUM_THREADS")
#: Where Linux says what share of the CPUs a control group may use: "200000 100000" are two.
CPU_QUOTA = "/sys/fs/cgroup/cpu.max"

#: Linux, asm/signal.h: SIG_BLOCK and SIG_SETMASK, and the signals that a thread gets for its own faults.
BLOCK_SIGNALS, SET_SIGNALS, OWN_SIGNALS = 0, 2, (4, 5, 6, 7, 8, 11, 27)
#: Words of a sigset_t of any C library.
SIGNAL_WORDS = 16


class ProgramPool(ProgramCode, PoolCode):
    """Emits the functions by which a program's code opens and closes teams.

    Parameters
    ----------
    machine : the baseline of the architecture.
    owner : prefix of the functions that other modules call.
    """

    prefix = ""

    def __init__(self, machine: Machine, owner: str) -> None:
        self.machine, self.owner = machine, owner
        super().__init__(machine, Wait.FUTEX)
        self.state = self.data("state", f"[{ctypes.sizeof(PoolState)} x i8] zeroinitializer, align 128")
        self.count = self.word("threads")
        #: 1 while a call starts workers, and once they were ended.
        self.starting = self.word("starting")
        #: The process whose threads the workers are; -1 while a call begins anew.
        self.owner_process = self.word("process")
        self.emit_environment()
        self.limit = self.emit_limit()
        self.emit_stop()
        self.emit_team_open(self.emit_start(), self.emit_after_fork())
        self.emit_team_close()

    # --- functions and data -------------------------------------------------------------------------

    def define(
        self,
        name: str,
        result: Type,
        arguments: Sequence[tuple[str, Type]],
        *,
        exported: bool = False,  # noqa: ARG002 - none is exported here
    ) -> FieldAccess:
        """A function; those of the pool are used here only."""
        return super().define(name, result, arguments)

    def system_calls(self) -> SystemCalls:
        """Those of the target."""
        found = find_arch(self.machine.triple).system_calls
        assert found is not None, "targets without system calls were refused"
        return found

    def caller_polls(self, w: FieldAccess, state: Value) -> Value:  # noqa: ARG002 - as any pool
        """No thread looks for signals."""
        return int64(0)

    def emit_poll(self) -> Callee:
        """``poll(team)``: nothing."""
        w = self.define("poll", VOID, [("team", POINTER)])
        w.f.ret()
        return w.f.callee

    # --- the number of threads ----------------------------------------------------------------------

    def emit_environment(self) -> None:
        """``variable(name, most)``: the least of a bound and a variable, if that is a positive number."""
        f = self.define("variable", INT64, [("name", POINTER), ("most", INT64)]).f
        name, most = f.arguments["name"], f.arguments["most"]
        text = f.call(self.c_function("getenv", POINTER, POINTER), [name])
        with f.when(f.icmp("==", text, null())):
            f.ret(most)
        value = f.call(self.c_function("strtol", INT64, POINTER, POINTER, INT32), [text, null(), int32(10)])
        with f.when(f.icmp("<=", value, 0)):
            f.ret(most)
        f.ret(f.minimum(value, most))

    def quota(self, f: Function, most: Value) -> Value:
        """The least of a bound and the whole CPUs of the control group's quota, if it has one."""
        opened = self.module.declare("open", INT32, (POINTER, INT32), variadic=True)
        file = f.call(opened, [self.text("quota", CPU_QUOTA), int32(0)])
        buffer, end = f.alloca(INT64, 8, 8), f.alloca(POINTER, 1, 8)
        with f.once_if(f.icmp(">=", file, 0), [most]) as ((before,), advance):
            f.store(int64(0), buffer, 8)
            f.call(self.c_function("read", INT64, INT32, POINTER, INT64), [file, buffer, int64(63)])
            f.store(int64(0), f.at(buffer, 56), 8)
            f.call(self.c_function("close", INT32, INT32), [file])
            number = self.c_function("strtol", INT64, POINTER, POINTER, INT32)
            share = f.call(number, [buffer, end, int32(10)])  # 0 of "max 100000"
            period = f.call(number, [f.load(POINTER, end, 8), null(), int32(10)])
            known = f.and_(f.icmp(">", share, 0), f.icmp(">", period, 0))
            whole = f.maximum(f.udiv(share, f.maximum(period, int64(1))), int64(1))
            advance([f.select(known, f.minimum(whole, before), before)])
        return advance.results[0]

    def emit_limit(self) -> Callee:
        """``limit()``: threads of a call, found out by the first one."""
        w = self.define("limit", INT64, [])
        f = w.f
        known = f.load_acquire(INT64, self.count)
        with f.when(f.icmp("!=", known, 0)):
            f.ret(known)
        mask = f.alloca(INT64, CPU_WORDS, 8)
        for index in range(CPU_WORDS):
            f.store(int64(0), f.at(mask, 8 * index), 8)
        ask = int64(self.system_calls().sched_getaffinity)
        f.call(self.system_call(), [ask, int64(0), int64(8 * CPU_WORDS), mask])
        ones = self.module.declare("llvm.ctpop.i64", INT64, (INT64,))
        cores = int64(0)
        for index in range(CPU_WORDS):
            cores = f.add(cores, f.call(ones, [f.load(INT64, f.at(mask, 8 * index), 8)]))
        cores = f.minimum(f.maximum(self.quota(f, cores), int64(1)), int64(MOST_THREADS))
        w.put(cores, self.state, PoolState, "cores")
        w.put(int(SPIN_US * 1000), self.state, PoolState, "spin_ns")
        found = self.module.find("variable")
        assert found is not None
        threads = cores
        for name in THREAD_VARIABLES:
            threads = f.call(found, [self.text(f"name.{name}", name), threads])
        f.cmpxchg(self.count, int64(0), threads)
        f.ret(f.load_acquire(INT64, self.count))
        return f.callee

    # --- teams --------------------------------------------------------------------------------------

    def emit_start(self) -> Callee:
        """``start(threads)``: starts the workers that are missing; fewer if the system refuses."""
        work = self.module.find("tw_pool_work")
        assert work is not None
        thread = self.define("thread", POINTER, [("slot", POINTER)]).f
        thread.call(work, [self.state, thread.arguments["slot"]])
        thread.ret(null())
        w = self.define("start", VOID, [("threads", INT64)])
        f, starting = w.f, self.starting
        started = w.shared(self.state, PoolState, "started")
        wanted = f.minimum(f.sub(f.arguments["threads"], 1), int64(MOST_WORKERS))
        with f.when(f.icmp(">=", started, wanted)):
            f.ret()
        with f.when(f.not_(f.cmpxchg(starting, int64(0), int64(1)))):
            f.ret()  # another call starts them; this one takes those that are there
        create = self.c_function("pthread_create", INT32, POINTER, POINTER, POINTER, POINTER)
        failed = f.new_block("failed")
        before = self.block_signals(f)
        with f.loop(w.shared(self.state, PoolState, "started"), wanted, int64(1), "worker") as index:
            slot = w.slot(self.state, index)
            f.store_release(int64(FREE), w.place(slot, WorkerSlot, "word"))
            handle = w.place(slot, WorkerSlot, "handle")
            status = f.call(create, [handle, null(), Value(POINTER, thread.callee.text), slot])
            with f.when(f.icmp("==", status, 0)):
                f.store_release(f.add(index, 1), w.place(self.state, PoolState, "started"))
            w.branch_if(f.icmp("!=", status, 0), failed)
        f.jump(failed)
        f.place(failed)
        f.call(self.signal_mask(), [int32(SET_SIGNALS), before, null()])
        f.store_release(int64(0), starting)
        f.ret()
        return f.callee

    def emit_stop(self) -> None:
        """``stop()``: ends and joins the workers, at the end of the process or when the library is unloaded.

        A worker that has tasks finishes them first, which takes no other thread's help: a program may end
        inside a signal handler that interrupted a product. Products that run later find no workers.
        """
        w = self.define("stop", VOID, [])
        f = w.f
        here = f.sext(f.call(self.c_function("getpid", INT32), []), INT64)
        with f.when(f.icmp("!=", f.load_acquire(INT64, self.owner_process), here)):
            f.ret()  # none was started, or the threads are those of the process that forked this one
        with f.when(f.not_(f.cmpxchg(self.starting, int64(0), int64(1)))):
            f.ret()  # a thread that goes on while the process ends starts them right now
        with f.loop(int64(0), w.shared(self.state, PoolState, "started"), int64(1), "worker") as index:
            slot = w.slot(self.state, index)
            word = w.place(slot, WorkerSlot, "word")
            with w.forever("busy") as (_, stopped):
                w.branch_if(f.cmpxchg(word, int64(FREE), int64(STOPPED)), stopped)
                with f.when(f.cmpxchg(word, int64(ASLEEP), int64(STOPPED))):
                    f.call(self.wake, [slot])
                    f.jump(stopped)
                f.call(self.c_function("sched_yield", INT32), [])
            handle = f.load(INT64, w.place(slot, WorkerSlot, "handle"), 8)
            f.call(self.c_function("pthread_join", INT32, INT64, POINTER), [handle, null()])
        f.ret()
        self.run_at("fini", f.callee)

    def block_signals(self, f: Function) -> Value:
        """Threads that are started here leave the program's signals to its own threads; the mask before."""
        wanted, before = f.alloca(INT64, SIGNAL_WORDS, 8), f.alloca(INT64, SIGNAL_WORDS, 8)
        own = sum(1 << (number - 1) for number in OWN_SIGNALS)
        for index in range(SIGNAL_WORDS):
            f.store(int64(~own if index == 0 else -1), f.at(wanted, 8 * index), 8)
        f.call(self.signal_mask(), [int32(BLOCK_SIGNALS), wanted, before])
        return before

    def signal_mask(self) -> Callee:
        """The C function that changes the signals that a thread does not take."""
        return self.c_function("pthread_sigmask", INT32, INT32, POINTER, POINTER)

    def emit_after_fork(self) -> Callee:
        """``after_fork()``: whether the pool may be used; in the child of a fork it begins anew."""
        w = self.define("after_fork", INT64, [])
        f, owner = w.f, self.owner_process
        here = f.sext(f.call(self.c_function("getpid", INT32), []), INT64)
        known = f.load_acquire(INT64, owner)
        with f.when(f.icmp("==", known, here)):
            f.ret(int64(1))
        with f.when(f.icmp("==", known, -1)):
            f.ret(int64(0))  # another thread is at it: this call does without threads
        with f.when(f.not_(f.cmpxchg(owner, known, int64(-1)))):
            f.ret(int64(0))
        with f.when(f.icmp("!=", known, 0)):
            size = int64(ctypes.sizeof(PoolState) - PoolState.slots.offset)
            clear = self.c_function("memset", POINTER, POINTER, INT32, INT64)
            f.call(clear, [w.place(self.state, PoolState, "slots"), int32(0), size])
            for name in ("started", "active", "awake", "closed_at", "alone_until"):
                f.store_release(int64(0), w.place(self.state, PoolState, name))
            f.store_release(int64(0), self.starting)
        f.store_release(here, owner)
        f.ret(int64(1))
        return f.callee

    def emit_team_open(self, start: Callee, after_fork: Callee) -> None:
        """``team_open(memory, work)``: a team for a call of so many multiply-adds; null for one thread."""
        f = self.entry("team_open", POINTER, [("memory", POINTER), ("work", INT64)]).f
        team, work = f.arguments["memory"], f.arguments["work"]
        with f.when(f.icmp("<=", work, TEAM_WORK)):
            f.ret(null())
        self.emit_refusals(f)
        threads = f.call(self.limit, [])
        with f.when(f.icmp("<=", threads, 1)):
            f.ret(null())
        with f.when(f.icmp("==", f.call(after_fork, []), 0)):
            f.ret(null())
        f.call(start, [threads])
        opened = self.module.find(OPEN)
        assert opened is not None
        long = f.select(f.icmp(">", work, WAKE_WORK), int64(1), int64(0))
        f.call(opened, [self.state, team, threads, long])
        f.ret(team)

    def emit_refusals(self, f: Function) -> None:
        """Return null from ``team_open`` where a call should not have threads; nowhere, unless overridden."""

    def emit_team_close(self) -> None:
        """``team_close(team)``, which may be null."""
        f = self.entry("team_close", VOID, [("team", POINTER)]).f
        with f.when(f.icmp("!=", f.arguments["team"], null())):
            closed = self.module.find("tw_team_close")
            assert closed is not None
            f.call(closed, [f.arguments["team"]])
        f.ret()
