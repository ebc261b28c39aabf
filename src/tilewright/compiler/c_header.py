"""The C header of a kernel: its exported prototype, with the meaning of each argument."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tilewright.compiler.interface import SCRATCH_ALIGNMENT
from tilewright.compiler.lowering.interface import has_tasks, scalar_type, scratch_layout
from tilewright.compiler.operation import Compilation, Problem, operation_of
from tilewright.ir.nodes import Program

#: The structure that parallel loops take, as `llvm/team.py` uses it.
TEAM = (
    "/* The threads that share a call. run calls body once for every task 0 .. tasks-1, in any order, and",
    " * returns when all have been done. thread is 0 .. threads-1 and differs between bodies that run at the",
    " * same time. Long tasks call run with no body and 0 tasks, which has nothing to do; it may set the",
    " * int64_t at env to end the task early. */",
    "#ifndef TILEWRIGHT_TEAM",
    "#define TILEWRIGHT_TEAM",
    "struct tw_team {",
    "    void (*run)(struct tw_team *team, void (*body)(void *env, int64_t thread, int64_t task),",
    "                void *env, int64_t tasks);",
    "    int64_t threads;",
    "};",
    "#endif",
    "",
)


class Parameter(NamedTuple):
    """One parameter: its declaration and what it means."""

    declaration: str
    meaning: str

    @property
    def name(self) -> str:
        """The name that is declared.

        >>> Parameter("const float *const *a", "2 pointers to A").name
        'a'
        """
        return self.declaration.rpartition(" ")[2].lstrip("*")


def c_header(state: Compilation) -> str:
    """The header of a compiled problem, for C99 and C++.

    Examples
    --------
    >>> import tilewright as tw
    >>> text = c_header(tw.compile(tw.Unary("relu", 8, 4), target="haswell").compilation)
    >>> [line.strip() for line in text.splitlines() if line.strip().startswith("const")]
    ['const float *a,  /* A: 8 x 4, column-major */']
    """
    machine, guard = state.machine, f"{state.name.upper()}_H"
    return "\n".join(
        [
            f"/* {formula(state.problem)}",
            f" * Compiled for {machine.name} ({machine.triple}, {machine.cpu}).",
            f" * {overlap(state.problem)} */",
            f"#ifndef {guard}",
            f"#define {guard}",
            "",
            "#include <stdint.h>",
            "",
            *(TEAM if has_tasks(state.program) else ()),
            "#ifdef __cplusplus",
            'extern "C" {',
            "#endif",
            "",
            *prototype(state.name, parameters(state)),
            "",
            "#ifdef __cplusplus",
            "}",
            "#endif",
            "",
            f"#endif /* {guard} */",
            "",
        ]
    )


def prototype(symbol: str, parameters: Sequence[Parameter]) -> list[str]:
    """The lines that declare a function, each parameter with its meaning.

    >>> prototype("f", [Parameter("float *c", "C: 2 x 2")])
    ['void f(', '    float *c);  /* C: 2 x 2 */']
    """
    ends = [","] * (len(parameters) - 1) + [");"]
    declared = [f"    {parameter.declaration}{end}" for parameter, end in zip(parameters, ends, strict=True)]
    width = max(map(len, declared))
    meanings = (parameter.meaning for parameter in parameters)
    lines = [f"{line:{width}}  /* {meaning} */" for line, meaning in zip(declared, meanings, strict=True)]
    return [f"void {symbol}(", *lines]


def formula(problem: Problem) -> str:
    """What a kernel computes, as a sentence."""
    return operation_of(problem).formula(problem)


def overlap(problem: Problem) -> str:
    """Which operands may share memory, and the units of strides."""
    return operation_of(problem).overlap(problem)


def parameters(state: Compilation) -> tuple[Parameter, ...]:
    """The parameters in the order of `lower`: buffers, sizes, scalars, scratch, team."""
    return tuple(_parameters(state))


def _parameters(state: Compilation) -> Iterator[Parameter]:
    op, program = operation_of(state.problem), state.program
    written, pointers = op.written(state.problem), op.pointers(state.problem)
    for buffer in program.arguments:
        constant = "" if buffer.name in written else "const "
        stars = "*const *" if buffer.name in pointers else "*"
        declaration = f"{constant}{buffer.dtype.c_name} {stars}{buffer.name}"
        yield Parameter(declaration, op.meaning(state, buffer.name))
    for name in program.sizes:
        yield Parameter(f"int64_t {name}", op.meaning(state, name))
    for name in program.scalars:
        yield Parameter(f"{scalar_type(program).c_name} {name}", op.meaning(state, name))
    if program.needs_scratch:
        yield Parameter("void *scratch", _scratch_meaning(program))
    if has_tasks(program):
        yield Parameter("struct tw_team *team", "the threads that share the call; null for one")


def _scratch_meaning(program: Program) -> str:
    layout = scratch_layout(program)
    if not layout.bytes:
        return "not read, may be null"
    more = f", {layout.thread_bytes} more for each thread of a team but one" if has_tasks(program) else ""
    return f"{layout.bytes} bytes on a multiple of {SCRATCH_ALIGNMENT}{more}"
