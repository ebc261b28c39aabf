"""How a contraction is executed: its schedule, its primitive, and the candidates that cost more."""

from __future__ import annotations

from tilewright.calls.compile import compile_problem
from tilewright.compiler.explanation import Considered, Explanation, by_cost
from tilewright.compiler.target import resolve_target
from tilewright.machine.machine import Machine
from tilewright.ops.contraction.dimension import ExecutionType
from tilewright.ops.contraction.main import Main
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.contraction.schedule.block import block
from tilewright.ops.contraction.schedule.estimate import estimate
from tilewright.ops.contraction.schedule.fuse import fuse
from tilewright.ops.contraction.schedule.identify import ways
from tilewright.ops.contraction.schedule.passes import schedule
from tilewright.ops.contraction.schedule.reorder import reorder
from tilewright.spec.roles import DimensionRole

#: Descriptions of the primitives.
_WORDS = {
    Main.GEMM: "register tiles on operands in place",
    Main.BRGEMM: "register tiles on operands in place, the batch summed in registers",
    Main.PACKED_GEMM: "five loops around panels packed through tables of offsets",
}


def explain_contraction(problem: Contraction, target: str | Machine | None = None) -> Explanation:
    """How the kernel of a contraction runs; nothing is computed."""
    machine = resolve_target(target)
    kernel = compile_problem(problem, machine)
    found = problem if problem.is_scheduled else schedule(problem, machine)
    head, *lines = str(found).splitlines()
    notes = [f"for {machine.name}, row {machine.isa.name}", *lines]
    notes.append("as given" if problem.is_scheduled else "a schedule was found: no dimension had one")
    figures = []
    if found.flops is not None and found.bytes is not None:
        figures.append(f"{found.flops:,} flops, {found.bytes:,} bytes at least")
        if not found.is_unary:
            figures.append(_estimated(found, machine))
    given = problem.is_scheduled or problem.is_unary or problem.is_open
    considered = () if given else _considered(problem, machine)
    decisions = tuple(one.decision for one in considered)
    strategy = strategy_of(found)
    return Explanation(head, kernel.name, strategy, decisions, tuple(notes), tuple(figures), considered)


def strategy_of(contraction: Contraction) -> str:
    """Description of a scheduled contraction.

    >>> from tilewright.ops.contraction.dimension import (Dimension)
    >>> k = Dimension("k", "primitive", 32, in0=1, in1=1)
    >>> strategy_of(Contraction([Dimension("c", "parallel", 8, in0=32, in1=32, out=1), k], main="gemm"))
    'tasks over c: register tiles on operands in place'
    """
    main = contraction.main
    words = _WORDS[main] if isinstance(main, Main) else f"{main.value} of blocks of two dimensions"
    parts = []
    for execution, name in ((ExecutionType.PARALLEL, "tasks"), (ExecutionType.SEQUENTIAL, "loops")):
        found = [d.type.value for d in contraction.loops if d.execution is execution]
        if found:
            parts.append(f"{name} over {', '.join(found)}")
    return f"{'; '.join(parts)}: {words}" if parts else words


def _considered(problem: Contraction, machine: Machine) -> tuple[Considered, ...]:
    """The schedule that is taken, and the next best ones."""
    found = (reorder(block(way, machine), machine) for way in ways(fuse(problem, machine), machine))
    return by_cost(
        (_dimensions(way), estimate(way, machine).cycles, _estimated(way, machine)) for way in found
    )


def _dimensions(way: Contraction) -> str:
    """The primitive and what it runs over."""
    sizes = " ".join(f"{d.type.value}={d.size}" for d in way.primitive)
    assert isinstance(way.main, Main)
    sums = " in loops over sums" if any(d.type is DimensionRole.K for d in way.loops) else ""
    return f"{way.main.value} of {sizes or 'single elements'}{sums}"


def _estimated(way: Contraction, machine: Machine) -> str:
    """The estimate of one way."""
    found = estimate(way, machine)
    rate = (way.flops or 0) / 2 / max(found.cycles, 1)
    return (
        f"{rate:.1f} multiply-adds a cycle estimated, {found.moved:,} elements packed, "
        f"{found.far_bytes:,} bytes from beyond L2"
    )
