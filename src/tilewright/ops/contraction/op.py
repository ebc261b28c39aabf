"""Contractions declared: schedule, cut, nest, kernel names and C parameters."""

from __future__ import annotations

from tilewright.compiler.operation import Compilation, Op, digest
from tilewright.machine.machine import Machine
from tilewright.ops.contraction.kernel import ContractionKernel
from tilewright.ops.contraction.nest import build_contraction
from tilewright.ops.contraction.primitive import choose_contraction
from tilewright.ops.contraction.problem import Contraction
from tilewright.preparing import Late, Places

#: The passes, imported when a contraction without a schedule is compiled.
_PASSES = Places()
_PASSES.add("schedule", "tilewright.ops.contraction.schedule.passes:schedule")


def _stem(problem: Contraction, text: str) -> str:
    """The digest distinguishes contractions, whose dimensions would make names of hundreds of letters."""
    return f"contraction_{problem.main.value}_{problem.types.name}_{digest(text)}"


def _formula(problem: Contraction) -> str:
    if problem.is_unary:
        return f"out = {problem.main.value}(in0), element by element."
    touches = f"first touch {problem.first.value}, last touch {problem.last or 'none'}"
    return f"out = sums of in0 * in1 over every k; {touches}."


def _meaning(state: Compilation, name: str) -> str:
    if name in state.program.sizes:
        axis = name.removesuffix("_size")
        return f"length of dimension {axis}" if axis != name else "entries of its tables"
    table = name not in state.problem.names
    return "table of offsets, runs or steps, in elements" if table else "the element of index 0"


def _completed(problem: Contraction, machine: Machine) -> Contraction:
    if problem.is_scheduled:
        return problem
    found: Contraction = _PASSES["schedule"](problem, machine)
    return found


CONTRACTION = Op(
    problem=Contraction,
    cut=choose_contraction,
    nest=build_contraction,
    stem=lambda problem: _stem(problem, str(problem)),
    kernel=ContractionKernel,
    formula=_formula,
    meaning=_meaning,
    written=lambda _: ("out",),
    completed=_completed,
    bounds=Late("tilewright.ops.contraction.primitive:bounds_of_contraction"),
    example=Late("tilewright.ops.contraction.example:contraction_example"),
    shared_stem=_stem,
)
