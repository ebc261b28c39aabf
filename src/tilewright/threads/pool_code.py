"""Machine code of the thread pool: the worker loop, fork and join.

This code uses no Python objects, with one exception: a caller on Python's main thread takes the GIL at
intervals between its tasks, so that signal handlers run. `pool_memory.py` documents the words of shared
memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.llvm.build import Callee, Module
from tilewright.llvm.control import Block
from tilewright.llvm.float_mode import read_float_mode, write_float_mode
from tilewright.llvm.target import data_layout
from tilewright.llvm.values import INT32, INT64, POINTER, VOID, Type, Value, int64, null
from tilewright.machine.machine import Machine
from tilewright.threads.pool_memory import (
    ASLEEP,
    ASLEPT,
    CLOSE,
    FREE,
    FROM_ABOVE,
    FROM_BELOW,
    MOST_TASKS,
    NO_TASK,
    OPEN,
    RUN,
    STOPPED,
    TAKEN,
    WAITED,
    WORK,
    PoolState,
    TeamMemory,
    WorkerSlot,
)
from tilewright.threads.pool_system import Wait
from tilewright.threads.system_code import FieldAccess, SystemCode

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


def emit_pool(machine: Machine, wait: Wait) -> str:
    """The module with `WORK`, `OPEN`, `CLOSE` and `RUN`."""
    return str(PoolCode(machine, wait).module)


#: The arguments of `run`.
_JOB = (("team", POINTER), ("body", POINTER), ("env", POINTER), ("tasks", INT64))


class PoolCode(SystemCode):
    """Emits the functions of the pool, callees first."""

    def __init__(self, machine: Machine, wait: Wait) -> None:
        super().__init__(Module("tw_pool", machine.triple, data_layout(machine)), wait)
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

    def emit_oversubscribed(self) -> Callee:
        """``bool oversubscribed(state)``: whether awake callers and workers outnumber the cores."""
        w = self.define("oversubscribed", Type("i1", "i1"), [("state", POINTER)])
        f, state = w.f, w.f.arguments["state"]
        awake = f.add(w.shared(state, PoolState, "active"), w.shared(state, PoolState, "awake"))
        f.ret(f.icmp(">", awake, w.get(state, PoolState, "cores")))
        return f.callee

    # --- callers ------------------------------------------------------------------------------------

    def emit_wake_some(self) -> Callee:
        """``wake_some(team)``: wakes the next `WAKES` sleepers that were offered the team."""
        w = self.define("wake_some", VOID, [("team", POINTER)])
        f, team = w.f, w.f.arguments["team"]
        state = w.get(team, TeamMemory, "state", POINTER)
        started = w.shared(state, PoolState, "started")
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
        w.put(f.add(now, w.get(state, PoolState, "poll_ns")), team, TeamMemory, "poll_at")
        held = f.call(self.imported("PyGILState_Ensure", INT32, ()), [])
        raised = f.call(self.imported("PyErr_CheckSignals", INT32, ()), [])
        with f.when(f.icmp("!=", raised, 0)):
            fetch = self.imported("PyErr_Fetch", VOID, (POINTER,) * 3)
            f.call(fetch, [w.place(team, TeamMemory, "exception", index) for index in range(3)])
            f.store_release(int64(1), w.place(team, TeamMemory, "cancelled"))
            f.store_release(int64(NO_TASK), w.place(team, TeamMemory, "next"))
        f.call(self.imported("PyGILState_Release", VOID, (INT32,)), [held])
        f.ret()
        return f.callee

    def caller_polls(self, w: FieldAccess, state: Value) -> Value:
        """1 on Python's main thread, which looks for signals; else 0."""
        f = w.f
        ident = f.call(self.imported("PyThread_get_thread_ident", INT64, ()), [])
        main = f.icmp("==", ident, w.get(state, PoolState, "main_thread"))
        return f.select(main, int64(1), int64(0))

    def emit_checkpoint(self) -> Callee:
        """``checkpoint(team, stop)``: polls on the team's caller; sets `stop` if the team was cancelled."""
        w = self.define("checkpoint", VOID, [("team", POINTER), ("stop", POINTER)])
        f, team = w.f, w.f.arguments["team"]
        with f.when(f.icmp("!=", w.get(team, TeamMemory, "polls"), 0)):
            state = w.get(team, TeamMemory, "state", POINTER)
            with f.when(f.icmp("!=", self.caller_polls(w, state), 0)):
                f.call(self.poll, [team])
        f.store(w.shared(team, TeamMemory, "cancelled"), f.arguments["stop"], 8)
        f.ret()
        return f.callee

    def call_body(self, w: FieldAccess, body: Value, env: Value, thread: Value, task: Value) -> None:
        """Run one task."""
        w.f.call(Callee(VOID, body.text), [env, thread, task])

    def taken(self, w: FieldAccess, word: Value) -> tuple[Value, Value]:
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
        started = w.shared(state, PoolState, "started")
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
                f.store(f.add(now, w.get(state, PoolState, "spin_ns")), deadline, 8)
            late = f.icmp(">", now, f.load(INT64, deadline, 8))
            with f.when(f.or_(late, f.call(self.oversubscribed, [state]))):
                f.cmpxchg(word, found, f.or_(found, int64(WAITED)))
        f.ret()
        return f.callee

    def spin_on(self, w: FieldAccess, word: Value, expected: Value, changed: Block) -> None:
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
        with f.loop(int64(0), w.shared(state, PoolState, "started"), int64(1), "slot") as index:
            f.call(self.join, [team, w.slot(state, index)])
        w.put(0, team, TeamMemory, "running")
        end = f.call(self.clock, [])
        alone = f.udiv(f.mul(mine, left), f.load(INT64, own, 8))
        lost = f.sub(f.sub(end, begin), alone)
        least = f.add(f.udiv(alone, int64(LOSS_SHARE)), LEAST_LOSS_NS)
        with f.when(f.icmp(">", lost, least)):
            f.store_release(f.add(end, f.mul(lost, REPAID)), w.place(state, PoolState, "alone_until"))
        f.ret()
        return f.callee

    def run_alone_while_repaying(self, w: FieldAccess, job: Sequence[Value]) -> tuple[Value, Value]:
        """Run tasks on the caller alone while a loss is repaid; returns the first remaining task, and the
        time.

        The emitted function returns if none remains, or if a signal handler raised.
        """
        f, (team, body, env, tasks) = w.f, job
        state = w.get(team, TeamMemory, "state", POINTER)
        until = w.shared(state, PoolState, "alone_until")
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
        active = f.add(f.atomic_add(w.place(state, PoolState, "active"), 1), 1)
        share = f.udiv(f.arguments["threads"], f.maximum(active, int64(1)))
        w.put(f.maximum(share, int64(1)), team, TeamMemory, "share")
        w.put(f.maximum(share, int64(2)), team, TeamMemory, "threads")
        w.put(Value(POINTER, self.run.text), team, TeamMemory, "run")
        w.put(state, team, TeamMemory, "state")
        for name in ("cancelled", "running"):
            w.put(0, team, TeamMemory, name)
        w.put(read_float_mode(f), team, TeamMemory, "float_mode")
        w.put(self.caller_polls(w, state), team, TeamMemory, "polls")
        now = f.call(self.clock, [])
        w.put(f.add(now, w.get(state, PoolState, "poll_ns")), team, TeamMemory, "poll_at")
        since = f.sub(now, w.shared(state, PoolState, "closed_at"))
        follows = f.icmp("<", since, w.get(state, PoolState, "spin_ns"))
        w.put(f.select(follows, int64(1), f.arguments["long"]), team, TeamMemory, "wakes")
        f.ret()

    def emit_close(self) -> None:
        """``close(team)``: returns its share of threads."""
        w = self.define(CLOSE, VOID, [("team", POINTER)], exported=True)
        state = w.get(w.f.arguments["team"], TeamMemory, "state", POINTER)
        w.f.store_release(w.f.call(self.clock, []), w.place(state, PoolState, "closed_at"))
        w.f.atomic_add(w.place(state, PoolState, "active"), -1)
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
        # The system gave this thread the mode of the thread that started it, at that time.
        write_float_mode(f, w.get(team, TeamMemory, "float_mode"), read_float_mode(f))
        with w.forever("tasks") as (_, done):
            self.call_body(w, body, env, thread, f.load(INT64, slot, 8))
            w.branch_if(f.not_(take_one()), done)
        f.ret()
        return f.callee

    def emit_work(self) -> None:
        """``work(state, slot)``: the worker loop; returns once the slot is `STOPPED`."""
        w = self.define(WORK, VOID, [("state", POINTER), ("slot", POINTER)], exported=True)
        f, state, slot = w.f, w.f.arguments["state"], w.f.arguments["slot"]
        word, awake = w.place(slot, WorkerSlot, "word"), w.place(state, PoolState, "awake")
        deadline = f.alloca(INT64, 1, 8)
        f.call(self.register_thread, [slot])
        f.atomic_add(awake, 1)
        with w.forever("begin") as (begin, _):
            f.store(f.add(f.call(self.clock, []), w.get(state, PoolState, "spin_ns")), deadline, 8)
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
            with f.when(f.icmp("==", found, STOPPED)):
                f.ret()
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
