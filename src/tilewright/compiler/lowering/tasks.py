"""Parallel loops: the body becomes a function, which the team calls for each iteration."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.compiler.lowering.expressions import Scope
from tilewright.compiler.lowering.frame import with_prefix
from tilewright.ir.nodes import If, Loop, Statement, Traffic, UnaryMap
from tilewright.llvm.build import Function
from tilewright.llvm.team import BODY_ARGUMENTS, Environment
from tilewright.llvm.values import VOID, Value, int64


def lower_tasks(
    node: Loop, scope: Scope, lower_block: Callable[[tuple[Statement, ...], Scope], None]
) -> None:
    """Defines the function of a parallel loop's body, and runs it once for each iteration.

    Before: ``parallel j in .. : parallel i in .. : body``. After:
    ``define void @task_0_j(env, thread, task)``, which computes j and i from the number of the task, and a
    call of the team with its address.

    Parameters
    ----------
    lower_block : writes the statements of the body.
    """
    f, frame, team = scope.f, scope.frame, scope.frame.team
    assert team is not None, "a function with parallel loops has a team"
    loops = node.fused()
    spans = [scope.integers(one.begin, one.end, one.step) for one in loops]
    extents = [f.maximum(f.sub(end, begin), int64(0)) for begin, end, _ in spans]
    steps = _few_steps if loops[1:] else Function.ceildiv
    counts = [steps(f, extent, step) for extent, (_, _, step) in zip(extents, spans, strict=True)]
    total = counts[0]
    for count in counts[1:]:
        total = f.mul(total, count)
    captured = {f"name {name}": value for name, value in scope.names.items()}
    captured |= {f"begin {name}": value for name, value in scope.begins.items()}
    captured |= {f"last {name}": value for name, value in scope.lasts.items()}
    captured |= frame.captured()
    captured |= {f"count {number}": count for number, count in enumerate(counts)}
    for number, (begin, _, step) in enumerate(spans):
        captured |= {f"first {number}": begin, f"step {number}": step}
    captured |= {"team": team.pointer, "threads": team.threads}
    environment = Environment(captured)
    number = sum(name.startswith("task_") for name in f.module.functions)
    body = f.module.define(f"task_{number}_{node.axis}", VOID, BODY_ARGUMENTS)
    body.mark = f.mark
    given = environment.inside(body)
    names, begins, lasts = (with_prefix(kind, given) for kind in ("name", "begin", "last"))
    inner = Scope(frame.of_task(body, given, loops[-1].body), names, begins, lasts)
    task: Value = body.arguments["task"]
    for index in reversed(range(len(loops))):
        at, count = task, given[f"count {index}"]
        if index:  # the innermost axis is the fastest
            with body.once_if(body.icmp("!=", count, 1), [task, int64(0)]) as (_, several):
                outer = body.udiv(at, count)
                several([outer, body.sub(at, body.mul(outer, count))])
            task, at = several.results
        inner.names[loops[index].axis] = body.add(
            given[f"first {index}"], body.mul(at, given[f"step {index}"])
        )
    lower_block(loops[-1].body, inner)
    if streams(loops[-1]):
        body.fence()
    body.ret()
    team.run(f, body.callee, environment.keep(f, body), total)


def _few_steps(f: Function, extent: Value, step: Value) -> Value:
    """`ceildiv` of an extent, which is not negative; up to one step without a division, which takes long.

    Loops that make tasks together have one each and one a task, and a small product is a single task.
    """
    if step.known is not None:
        return f.ceildiv(extent, step)
    with f.once_if(f.icmp(">", extent, step), [f.minimum(extent, int64(1))]) as (_, several):
        several([f.ceildiv(extent, step)])
    return several.results[0]


def streams(statement: Statement) -> bool:
    """Whether a statement stores past the caches, so that a fence is needed before its function returns."""
    match statement:
        case UnaryMap(traffic=traffic):
            return traffic is Traffic.STREAM
        case Loop(body=body):
            return any(map(streams, body))
        case If(then=then, otherwise=otherwise):
            return any(map(streams, (*then, *otherwise)))
        case _:
            return False
