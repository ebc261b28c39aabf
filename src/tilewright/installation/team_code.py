"""A team that collects the floating-point errors of its tasks, whichever thread ran them, in machine code.

It is in front of a team of the pool and looks like one to a kernel (`llvm/team.py`): its `run` hands each
task to the other team with a body around that of the kernel.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

from tilewright.calls.object_code import ObjectCode
from tilewright.llvm.build import Callee, Module
from tilewright.llvm.team import BODY_ARGUMENTS, RUN_ARGUMENTS
from tilewright.llvm.values import INT32, INT64, POINTER, VOID, Value, int64, null
from tilewright.threads.pool_memory import TeamMemory

_RUN, _BODY = "run_observed", "observed_task"


class ObservedTeam(ctypes.Structure):
    """The head of every team, then the team that runs the tasks and the errors found so far."""

    _fields_ = (
        ("run", ctypes.c_void_p),
        ("threads", ctypes.c_int64),
        ("team", ctypes.c_void_p),
        ("errors", ctypes.c_int64),
    )


class ObservedTask(ctypes.Structure):
    """What the body around a kernel's body gets."""

    _fields_ = (("body", ctypes.c_void_p), ("env", ctypes.c_void_p), ("team", ctypes.c_void_p))


def take_errors(f: ObjectCode) -> Value:
    """The floating-point errors of this thread so far, as NumPy numbers them; clears them."""
    return f.zext(f.call(f.module.declare("tw_take_errors", INT32, ()), []), INT64)


def emit_observed(module: Module) -> Callee:
    """``run_observed(team, body, env, tasks)``."""
    body = _emit_body(module)
    f = ObjectCode(module, _RUN, VOID, list(RUN_ARGUMENTS))
    g = f.arguments
    team = f.pointer(g["team"], ObservedTeam.team)
    run = Callee(VOID, f.pointer(team, ObservedTeam.run).text)
    with f.when(f.is_null(g["body"])):  # a look for signals in the middle of a task
        f.call(run, [team, g["body"], g["env"], g["tasks"]])
        f.ret()
    task = f.alloca(POINTER, ctypes.sizeof(ObservedTask) // 8, 8)
    for field in (ObservedTask.body, ObservedTask.env, ObservedTask.team):
        name = {ObservedTask.body.offset: "body", ObservedTask.env.offset: "env"}.get(field.offset, "team")
        f.put(task, field, g[name])
    f.call(run, [team, Value(POINTER, body.text), task, g["tasks"]])
    f.ret()
    return f.callee


def _emit_body(module: Module) -> Callee:
    f = ObjectCode(module, _BODY, VOID, list(BODY_ARGUMENTS))
    g = f.arguments
    with f.when(f.icmp("!=", g["thread"], 0)):
        take_errors(f)  # of what a worker did before
    body = f.pointer(g["env"], ObservedTask.body)
    f.call(Callee(VOID, body.text), [f.pointer(g["env"], ObservedTask.env), g["thread"], g["task"]])
    found = take_errors(f)
    with f.when(f.icmp("!=", found, 0)):
        f.atomic_or(f.at(f.pointer(g["env"], ObservedTask.team), ObservedTeam.errors.offset), found)
    f.ret()
    return f.callee


@contextmanager
def observed(f: ObjectCode, run: Callee, team: Value) -> Iterator[tuple[Value, Value]]:
    """A team in front of another one, and where its errors are; null in front of null."""
    memory = f.alloca(INT64, ctypes.sizeof(ObservedTeam) // 8, 16)
    f.put(memory, ObservedTeam.run, Value(POINTER, run.text))
    f.put(memory, ObservedTeam.team, team)
    f.put(memory, ObservedTeam.errors, int64(0))
    with f.once_if(f.not_(f.is_null(team)), [null()]) as (_, given):
        f.put(memory, ObservedTeam.threads, f.word(team, TeamMemory.threads))
        given([memory])
    yield given.results[0], f.at(memory, ObservedTeam.errors.offset)
