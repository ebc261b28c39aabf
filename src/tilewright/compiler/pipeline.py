"""The ordered list of stages from a problem and a machine to a kernel; each output can be dumped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tilewright.compiler.interface import Interface
from tilewright.compiler.lowering.interface import has_tasks, scratch_layout, signature
from tilewright.compiler.lowering.program import lower
from tilewright.compiler.operation import Compilation, Problem, Rewrite, kernel_name, operation_of
from tilewright.errors import InvalidChoice, shown
from tilewright.ir.nodes import Program
from tilewright.ir.text import print_program
from tilewright.llvm.object_cache import outside_version
from tilewright.llvm.parts import emit_by_parts
from tilewright.machine.machine import Machine
from tilewright.records import dataclass
from tilewright.spec.problem import check_elements


def _cut(state: Compilation) -> Any:
    return operation_of(state.problem).cut(state.problem, state.machine)


def _build_nest(state: Compilation) -> Program:
    return operation_of(state.problem).nest(state.problem, state.blocking, state.machine, state.name)


def _rewritten(stage: str) -> Callable[[Compilation], Program]:
    def run(state: Compilation) -> Program:
        rewrites: dict[str, Rewrite] = dict(operation_of(state.problem).rewrites)
        return rewrites[stage](state.program) if stage in rewrites else state.program

    return run


def _lower(state: Compilation) -> str:
    return lower(state.program, state.machine)


def _emit(state: Compilation) -> bytes:
    return emit_by_parts(state.llvm, state.name, state.machine)


@dataclass(frozen=True)
class Stage:
    """One step; its name is the field it fills and the word that `--dump` takes."""

    name: str
    run: Callable[[Compilation], Any]


#: The last stage whose output is tile IR.
LAST_PROGRAM = "fuse_consumer"

STAGES: tuple[Stage, ...] = (
    Stage("blocking", _cut),  # Problem, Machine -> register tile and cache blocks, or a cover
    Stage("nest", _build_nest),  # -> tile IR: loops around TileMatmul and Pack
    Stage("fuse_unpack", _rewritten("fuse_unpack")),  # rows that are only unpacked are read as tiles
    Stage("fuse_pack", _rewritten("fuse_pack")),  # rows that are only packed are packed as they are made
    Stage("fuse_consumer", _rewritten("fuse_consumer")),  # what follows a product follows each tile
    Stage("llvm", _lower),  # -> LLVM module, as text
    Stage("object", _emit),  # -> machine code
)


def run_stages(problem: Problem, machine: Machine, until: str = STAGES[-1].name) -> Compilation:
    """Runs the stages in order, up to and including the one named."""
    names = [stage.name for stage in STAGES]
    if until not in names:
        raise InvalidChoice(name="stage", found=shown(until), allowed=", ".join(names))
    for operand in problem.operands:
        check_elements(f"{type(problem).__name__}: {operand.name}", (operand.rows or 1, operand.columns or 1))
    state = Compilation(problem, machine, kernel_name(problem, machine.isa.name))
    return _run(state, STAGES[: names.index(until) + 1])


def finish(state: Compilation, *, quick: bool = False) -> Compilation:
    """The stages behind the last one that makes tile IR, of a compilation that has come so far.

    Parameters
    ----------
    quick : whether the object is quick code; see `llvm/quick.py`.
    """
    if quick:
        text = lower(_quick_program(state), state.machine, quick=True)
        return state.with_field("object", emit_by_parts(text, state.name, state.machine, quick=True))
    names = [stage.name for stage in STAGES]
    return _run(state, STAGES[names.index(LAST_PROGRAM) + 1 :])


def make_programs(state: Compilation) -> Compilation:
    """The stages that make tile IR, of a kernel whose object is known."""
    found = run_stages(state.problem, state.machine, until=LAST_PROGRAM)
    return found.with_field("object", state.object)


def interface_of(state: Compilation) -> Interface:
    """How the C function of a compilation is called, and the name of its object in the object cache."""
    program = state.program
    layout = scratch_layout(program)
    return Interface(
        state.name,
        _object_name(state),
        tuple(kind.text for _, kind in signature(program)),
        has_scratch=bool(program.scratch),
        takes_scratch=program.needs_scratch,
        takes_team=has_tasks(program),
        scratch_bytes=layout.bytes,
        thread_bytes=layout.thread_bytes,
    )


def _object_name(state: Compilation) -> str:
    """The name of a compilation's object in the cache: all that shapes it besides machine and generator."""
    problem, machine = state.problem, state.machine
    # Of one row, machines differ in instructions and in the length of their vectors.
    names = ",".join(tile.instruction for tile in machine.isa.tiles)
    unit = f"{machine.isa.emulated} {machine.vector_bits} {machine.streaming_bits} {names}"
    asked = repr(problem)
    if operation_of(problem).shared_stem is not None:  # kernels that share code: their programs say all of it
        asked = print_program(state.program)
    return f"{state.name} {asked} {state.blocking!r} {unit}{outside_version(problem)}"


def _quick_program(state: Compilation) -> Program:
    """The program of quick code: that of the operation, if it needs no more scratch than the usual one."""
    usual, shorten = state.program, operation_of(state.problem).quick
    if shorten is None:
        return usual
    found = shorten(state.problem, state.blocking, state.machine, usual)
    layout, known = scratch_layout(found), scratch_layout(usual)
    assert signature(found) == signature(usual)
    fits = layout.bytes <= known.bytes and layout.thread_bytes <= known.thread_bytes
    return found if fits else usual


def _run(state: Compilation, stages: tuple[Stage, ...]) -> Compilation:
    for stage in stages:
        state = state.with_field(stage.name, stage.run(state))
        if stage.name == "nest" and operation_of(state.problem).shared_stem is not None:
            state = _named_by_program(state)
    return state


def _named_by_program(state: Compilation) -> Compilation:
    """Kernels whose programs are the same are one kernel: sizes that tables hold are no part of it.

    Before: contraction_packed_gemm_f32_206ba4d7db_avx512, with a digest of the problem. After: with one of
    the program.
    """
    shared_stem = operation_of(state.problem).shared_stem
    assert shared_stem is not None
    program = state.program
    stem = shared_stem(state.problem, print_program(replace(program, name="")))
    name = f"{stem}_{state.machine.isa.name}"
    return replace(state, name=name, nest=replace(program, name=name))
