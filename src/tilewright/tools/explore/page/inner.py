"""The inner loops of a kernel: their instructions counted beside the bound, and llvm-mca's timeline."""

from __future__ import annotations

import re
from typing import Any

from tilewright.compiler.kernel import Kernel
from tilewright.errors import TilewrightError
from tilewright.machine.machine import Machine
from tilewright.records import dataclass
from tilewright.tools.explore.loops import AssemblyLoop, innermost_loops
from tilewright.tools.explore.mca import LoopEstimate, estimate_loops, find_tool, timeline_of
from tilewright.tools.explore.page.costs import chosen_sums

#: Loops that a page lists: the widest tiles first.
MOST_LOOPS = 6
#: Turns of a loop on a timeline.
TIMELINE_TURNS = 2


@dataclass(frozen=True)
class InnerLoop:
    """A loop over the depth of a register tile.

    Attributes
    ----------
    function, label : its place in the assembly.
    depths : depth steps of one turn.
    counts : instructions of one turn by kind, in words.
    bound : cycles of one turn if only its multiply instructions took any; 0 if the machine has no rate.
    estimate : what llvm-mca says of it, if it is installed.
    """

    function: str
    label: str
    depths: int
    counts: tuple[tuple[str, int], ...]
    bound: float
    estimate: LoopEstimate | None


@dataclass(frozen=True)
class InnerLoops:
    """The loops of a kernel, the one with most multiplications first.

    Attributes
    ----------
    tool : the model that estimated cycles, or why there is none.
    timeline : the first turns of the first loop; see `mca.timeline_of`.
    """

    loops: tuple[InnerLoop, ...]
    tool: str
    timeline: tuple[dict[str, Any], ...]


def inner_loops(kernel: Kernel) -> InnerLoops:
    """The loops over depth, counted; with llvm-mca's estimate where it is installed and knows the CPU."""
    machine = kernel.machine
    found = [loop for loop in innermost_loops(kernel.assembly, machine.triple) if loop.multiplies]
    found = sorted(found, key=lambda loop: -len(loop.multiplies))[:MOST_LOOPS]
    estimates: list[LoopEstimate | None] = [None] * len(found)
    timeline: tuple[dict[str, Any], ...] = ()
    if not found:
        return InnerLoops((), "this kernel has no loop that multiplies vectors", ())
    try:
        tool = find_tool()
        estimates = list(estimate_loops(tool, machine, found))
        timeline = timeline_of(tool, machine, found[0], TIMELINE_TURNS)
        text = f"llvm-mca {tool.version}, operands in the first cache"
    except TilewrightError as error:
        text = str(error)
    rate = _rate(kernel, machine)
    loops = tuple(
        InnerLoop(
            loop.function,
            loop.label,
            loop.depths,
            tuple(kinds(loop).items()),
            len(loop.multiplies) / rate if rate else 0.0,
            estimate,
        )
        for loop, estimate in zip(found, estimates, strict=True)
    )
    return InnerLoops(loops, text, timeline)


def kinds(loop: AssemblyLoop) -> dict[str, int]:
    r"""Instructions of one turn: those that multiply, that name memory, and the rest.

    >>> text = "f:\n.L1:\n\tvmovups (%rsi), %zmm3\n\tvfmadd231ps %zmm4, %zmm3, %zmm1\n\tjne\t.L1\n"
    >>> kinds(innermost_loops(text, "x86_64-linux")[0])
    {'multiply': 1, 'multiply and load': 0, 'load or store': 1, 'other': 1}
    """
    multiplies = loop.multiplies
    memory = [line for line in loop.instructions if _names_memory(line)]
    both = sum(line in set(memory) for line in multiplies)
    moves = len(memory) - both
    other = len(loop.instructions) - len(multiplies) - moves
    return {
        "multiply": len(multiplies) - both,
        "multiply and load": both,
        "load or store": moves,
        "other": other,
    }


_MEMORY = re.compile(r"\((?:%|\d|[a-z])|\[[a-z]|^(?:l|st)x?v\w*\s")


def _names_memory(line: str) -> bool:
    """Whether an instruction has an address: (%rdi), [x0], 16(3), or is a vector load of POWER."""
    return bool(_MEMORY.search(line))


def _rate(kernel: Kernel, machine: Machine) -> float:
    """Multiply instructions of the kernel's element types that start in a cycle; 0 if it multiplies none."""
    problem = kernel.problem
    a = getattr(problem, "dtype", None)
    if a is None:
        return 0.0
    try:
        b = getattr(problem, "b_dtype", None) or a
        return float(machine.isa.rate(machine.isa.tile(a, b, chosen_sums(problem))))
    except TilewrightError:
        return 0.0
