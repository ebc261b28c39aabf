"""A whole program of tile IR as an LLVM module."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from tilewright.compiler.lowering.expressions import Scope
from tilewright.compiler.lowering.frame import Frame
from tilewright.compiler.lowering.interface import signature
from tilewright.compiler.lowering.statements import lower_block
from tilewright.compiler.lowering.tiles import takes_steps_in_registers
from tilewright.ir.nodes import Execution, If, Let, Loop, Program, Statement
from tilewright.ir.separate import separate_steps
from tilewright.ir.verify import verify
from tilewright.llvm.build import Module
from tilewright.llvm.target import data_layout, tuning
from tilewright.llvm.values import VOID
from tilewright.machine.machine import Machine

#: Pointers that fit into registers. LLVM's loop passes are slow on nests with more of them; for loops that
#: only create tasks their result does not matter.
FEW_POINTERS = 16


def lower(program: Program, machine: Machine, *, quick: bool = False) -> str:
    """The LLVM module of a program, as text.

    Its one exported function takes, in this order: a pointer per argument buffer, the sizes as
    64-bit integers, the scalars, a pointer to scratch memory if there is any (see `scratch_layout`), and one
    to a team if there are parallel loops (see `llvm/team.py`).

    Parameters
    ----------
    quick : whether it is quick code (`llvm/quick.py`), of fewer functions.
    """
    return _lowered(_separated(program, machine, quick=quick), machine, quick=quick)


def lower_marked(program: Program, machine: Machine) -> tuple[Program, str]:
    r"""The program as it is lowered, and its LLVM module with marks; see `Scope.mark`.

    The program differs from the given one in the steps of epilogues, which are separated from tiles.
    Statement 0 is the first of its body, and those inside a statement follow it. Without its marks, the
    module is that of `lower`.

    Examples
    --------
    >>> from tilewright.ir.parse import parse_program
    >>> from tilewright.machine.catalog import find_machine
    >>> text = "program p\nsizes n\nscalars\nargument x f32\nlet m = n * 2\nfor i in 0 .. m step 1:\n"
    >>> _, module = lower_marked(parse_program(text + "  let j = i * i"), find_machine("znver4"))
    >>> [line for line in module.splitlines() if line.endswith((" 0", " 2"))]
    ['%.2 = mul i64 %n, 2 ; statement 0', '%.7 = mul i64 %.6, %.6 ; statement 2']
    """
    separated = _separated(program, machine, quick=False)
    return separated, _lowered(separated, machine, quick=False, numbers=count())


def _separated(program: Program, machine: Machine, *, quick: bool) -> Program:
    """The program whose epilogues are apart from the tiles that do not take them in registers."""
    return separate_steps(
        verify(program), lambda node: not quick and takes_steps_in_registers(node, program, machine)
    )


def _lowered(program: Program, machine: Machine, *, quick: bool, numbers: Iterator[int] | None = None) -> str:
    """The module of a program whose epilogues are separated; with marks if there are numbers for them."""
    layout, tuned = data_layout(machine), tuning(machine)
    module = Module(program.name, machine.triple, layout, tuned, machine.function_bits, quick=quick)
    as_written = len(program.arguments) > FEW_POINTERS and all(map(_makes_tasks, program.body))
    f = module.define(program.name, VOID, signature(program), exported=True, as_written=as_written)
    frame = Frame.of_program(program, machine, f)._replace(numbers=numbers)
    lower_block(program.body, Scope(frame, {name: f.arguments[name] for name in program.sizes}))
    f.ret()
    return str(module)


def _makes_tasks(statement: Statement) -> bool:
    """Whether a statement only creates tasks: parallel loops, with loops, branches and lets around them."""
    match statement:
        case Loop(execution=Execution.PARALLEL) | Let():
            return True
        case Loop(body=body):
            return all(map(_makes_tasks, body))
        case If(then=then, otherwise=otherwise):
            return all(map(_makes_tasks, (*then, *otherwise)))
        case _:
            return False
