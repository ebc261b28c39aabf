"""Tasks for tests of the thread pool, in LLVM IR: ``void body(void *env, int64 thread, int64 task)``."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.builtin import address_of
from tilewright.llvm.jit import Linked
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT64, POINTER, VOID, Value, int64
from tilewright.machine.host import host_machine
from tilewright.threads.pool import ThreadPool

#: Entries of the environment of `count` and `meet`: turns of a task, threads inside of one and the most there
#: were, numbers of threads in use twice, threads to wait for.
TURNS, INSIDE, MOST, CLASHES, MEET = range(5)
#: Behind them: for each thread whether it is inside a task, then for each task how often it ran.
THREADS_AT, THREADS = 8, 64
TASKS_AT = THREADS_AT + THREADS


def _keep_most(f: Function, value: Value, place: Value) -> None:
    """Stores a value if it is the largest so far; threads that do so at once lose none."""
    f.emit(INT64, f"atomicrmw max {place.typed}, {value.typed} acq_rel")


def _emit() -> str:
    machine = host_machine()
    module = Module("bodies", machine.triple, data_layout(machine))
    arguments = [("env", POINTER), ("thread", INT64), ("task", INT64)]
    f = module.define("nothing", VOID, arguments, exported=True)
    f.ret()

    f = module.define("count", VOID, arguments, exported=True)
    env, thread, task = f.arguments.values()
    mine = f.at(f.at(env, 8 * THREADS_AT), f.mul(thread, 8))
    busy = f.icmp("!=", f.xchg(mine, int64(1)), 0)
    f.atomic_add(f.at(env, 8 * CLASHES), f.zext(busy, INT64))
    inside = f.add(f.atomic_add(f.at(env, 8 * INSIDE), 1), 1)
    _keep_most(f, inside, f.at(env, 8 * MOST))
    with f.loop(int64(0), f.load(INT64, f.at(env, 8 * TURNS), 8), int64(1)):
        f.load_acquire(INT64, env)
        f.pause()
    f.atomic_add(f.at(env, 8 * INSIDE), -1)
    f.xchg(mine, int64(0))
    f.atomic_add(f.at(f.at(env, 8 * TASKS_AT), f.mul(task, 8)), 1)
    f.ret()

    # Waits until as many threads are inside as `MEET` says, or gives up after `TURNS` turns.
    f = module.define("meet", VOID, arguments, exported=True)
    env, yielded = f.arguments["env"], module.declare("tw_yield", VOID, ())
    inside = f.add(f.atomic_add(f.at(env, 8 * INSIDE), 1), 1)
    _keep_most(f, inside, f.at(env, 8 * MOST))
    with f.loop(int64(0), f.load(INT64, f.at(env, 8 * TURNS), 8), int64(1)):
        with f.when(
            f.icmp(">=", f.load_acquire(INT64, f.at(env, 8 * MOST)), f.load(INT64, f.at(env, 8 * MEET), 8))
        ):
            f.ret()
        f.call(yielded, [])
    f.atomic_add(f.at(env, 8 * INSIDE), -1)
    f.ret()

    # The caller works for `MEET` turns, other threads are held up for `TURNS`.
    f = module.define("held_up", VOID, arguments, exported=True)
    env, thread, _ = f.arguments.values()
    other = f.icmp("!=", thread, 0)
    f.atomic_add(f.at(env, 8 * INSIDE), f.zext(other, INT64))
    turns = [f.load(INT64, f.at(env, 8 * entry), 8) for entry in (TURNS, MEET)]
    with f.loop(int64(0), f.select(other, turns[0], turns[1]), int64(1)):
        f.load_acquire(INT64, env)
        f.pause()
    f.ret()

    # The environment: the team, the inner body, its environment, its tasks.
    f = module.define("nest", VOID, arguments, exported=True)
    team, body, env = (f.load(POINTER, f.at(f.arguments["env"], 8 * index), 8) for index in range(3))
    tasks = f.load(INT64, f.at(f.arguments["env"], 24), 8)
    run = f.load(POINTER, team, 8)
    f.call(Callee(VOID, run.text), [team, body, env, tasks])
    f.ret()

    # `jobs` runs of one team, in machine code.
    kinds = [("team", POINTER), ("body", POINTER), ("env", POINTER), ("tasks", INT64), ("jobs", INT64)]
    f = module.define("repeat", VOID, kinds, exported=True)
    g = f.arguments
    with f.loop(int64(0), g["jobs"], int64(1)):
        f.call(
            Callee(VOID, f.load(POINTER, g["team"], 8).text),
            [g[name] for name in ("team", "body", "env", "tasks")],
        )
    f.ret()
    return str(module)


@cache
def _code() -> Linked:
    machine = host_machine()
    exports = ("nothing", "count", "meet", "held_up", "nest", "repeat")
    return Linked(
        emit_object(_emit(), "bodies", machine),
        exports,
        {"tw_yield": address_of(ctypes.CDLL(None).sched_yield)},
    )


def body(name: str) -> int:
    """The address of a body."""
    return _code().address(name)


@cache
def _repeat() -> Any:
    pointers = [ctypes.c_void_p] * 3
    return ctypes.CFUNCTYPE(None, *pointers, ctypes.c_int64, ctypes.c_int64)(_code().address("repeat"))


def run(team: int, code: int, env: int, tasks: int, jobs: int = 1) -> None:
    """``team->run(team, code, env, tasks)``, `jobs` times, without the GIL."""
    _repeat()(team, code, env, tasks, jobs)


class Count:
    """The environment of `count`, and what it has counted."""

    def __init__(self, tasks: int, turns: int = 0) -> None:
        self.words = np.zeros(TASKS_AT + tasks, np.int64)
        self.words[TURNS] = turns
        self.tasks = tasks

    @property
    def address(self) -> int:
        return int(self.words.ctypes.data)

    @property
    def ran(self) -> Any:
        """How often each task ran."""
        return self.words[TASKS_AT:]

    @property
    def most(self) -> int:
        """The most threads that were inside a task at once."""
        return int(self.words[MOST])

    @property
    def clashes(self) -> int:
        """How often a thread's number was in use when a task began with it."""
        return int(self.words[CLASHES])


def count(
    pool: ThreadPool, tasks: int, *, turns: int = 0, jobs: int = 1, threads: int | None = None
) -> Count:
    """Runs `count` through a team of the pool."""
    found = Count(tasks, turns)
    with pool.team(threads) as team:
        run(team, body("count"), found.address, tasks, jobs)
    return found


def meeting(pool: ThreadPool, threads: int, *, long: bool = True) -> int:
    """How many threads of a pool come together within a task of some seconds, or of a moment."""
    found = Count(threads, 1_000_000 if long else 100_000)
    found.words[MEET] = threads
    pool.state.alone_until = 0  # waiting for others is a loss, which the next run would repay
    with pool.team(long=long) as team:
        run(team, body("meet"), found.address, threads)
    return found.most
