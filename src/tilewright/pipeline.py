"""The ordered list of stages from a problem and a machine to a kernel; each output can be dumped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright.ir.nodes import Program
from tilewright.llvm.target import emit_object
from tilewright.lower import lower
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Blocking, choose_blocking
from tilewright.macro.gemm import build_gemm, transpose_problem
from tilewright.spec.problem import Gemm, Layout


def kernel_name(problem: Gemm, machine: Machine) -> str:
    """The name of a problem's kernel, also its exported symbol.

    >>> from tilewright.machine.catalog import find_machine
    >>> kernel_name(Gemm(m=64, dtype="f64", b="col"), find_machine("znver5"))
    'gemm_f64_64xnxk_rcr_auto_avx512'
    """
    sizes = "x".join(
        name if size is None else str(size)
        for name, size in zip("mnk", (problem.m, problem.n, problem.k), strict=True)
    )
    layouts = "".join(operand.layout.letter for operand in problem.operands)
    return f"gemm_{problem.dtype}_{sizes}_{layouts}_{problem.strategy.value}_{machine.isa.name}"


@dataclass(frozen=True)
class Compilation:
    """A problem on its way to machine code; each stage fills the field of its name."""

    problem: Gemm
    machine: Machine
    name: str
    blocking: Blocking | None = None
    nest: Program | None = None
    llvm: str = ""
    object: bytes = b""

    def with_field(self, name: str, value: Any) -> Compilation:
        """A copy with one more stage done."""
        fields = dict(self.__dict__)
        fields[name] = value
        return Compilation(**fields)


def _choose_blocking(state: Compilation) -> Blocking:
    return choose_blocking(state.machine, state.problem.dtype)


def _build_nest(state: Compilation) -> Program:
    assert state.blocking is not None
    problem = state.problem
    if problem.c is Layout.COL:
        problem = transpose_problem(problem)
    machine = state.machine
    return build_gemm(problem, state.blocking, machine.isa.edge, machine.l2.size, state.name)


def _lower(state: Compilation) -> str:
    assert state.nest is not None
    return lower(state.nest, state.machine)


def _emit(state: Compilation) -> bytes:
    return emit_object(state.llvm, state.name, state.machine)


@dataclass(frozen=True)
class Stage:
    """One step; its name is the field it fills and the word that `--dump` takes."""

    name: str
    run: Callable[[Compilation], Any]


STAGES: tuple[Stage, ...] = (
    Stage("blocking", _choose_blocking),  # Problem, Machine -> Blocking
    Stage("nest", _build_nest),  # -> tile IR: loops around TileMatmul and Pack
    Stage("llvm", _lower),  # -> LLVM module, as text
    Stage("object", _emit),  # -> machine code
)


def run_stages(problem: Gemm, machine: Machine, until: str = STAGES[-1].name) -> Compilation:
    """Runs the stages in order, up to and including the one named."""
    state = Compilation(problem, machine, kernel_name(problem, machine))
    for stage in STAGES:
        state = state.with_field(stage.name, stage.run(state))
        if stage.name == until:
            break
    return state
