"""The C header of a contraction."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.compiler.c_header import TEAM_MEANING, Parameter, scratch_meaning
from tilewright.compiler.lowering.interface import has_tasks
from tilewright.ir.nodes import Program
from tilewright.ops.contraction.problem import Contraction


def contraction_formula(problem: Contraction) -> str:
    """The formula of a contraction, in one line."""
    if problem.is_unary:
        return f"out = {problem.main.value}(in0), element by element."
    touches = f"first touch {problem.first.value}, last touch {problem.last or 'none'}"
    return f"out = sums of in0 * in1 over every k; {touches}."


def contraction_parameters(problem: Contraction, program: Program) -> Iterator[Parameter]:
    """The parameters of a contraction, in the order of `lower`."""
    for buffer in program.arguments:
        constant, table = "" if buffer.name == "out" else "const ", buffer.name not in problem.names
        meaning = "table of offsets, runs or steps, in elements" if table else "the element of index 0"
        yield Parameter(f"{constant}{buffer.dtype.c_name} *{buffer.name}", meaning)
    for name in program.sizes:
        axis = name.removesuffix("_size")
        meaning = f"length of dimension {axis}" if axis != name else "entries of its tables"
        yield Parameter(f"int64_t {name}", meaning)
    if program.needs_scratch:
        yield Parameter("void *scratch", scratch_meaning(program))
    if has_tasks(program):
        yield Parameter("struct tw_team *team", TEAM_MEANING)
