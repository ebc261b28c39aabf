"""Kernels whose machine code no test runs: LLVM is asked for their text alone."""

from __future__ import annotations

from typing import Any

from tilewright.calls.kernel import ArrayKernel
from tilewright.compiler.operation import Problem, operation_of
from tilewright.compiler.pipeline import LAST_PROGRAM, run_stages
from tilewright.compiler.target import resolve_target
from tilewright.machine.machine import Machine


def uncompiled(problem: Problem, target: str | Machine | None = None) -> Any:
    """The kernel that `tw.compile` makes, before it has an object.

    Header, tile IR and names need none, and for `assembly` LLVM compiles the same module once more.

    >>> from tilewright.ops.unary.problem import Unary
    >>> "@unary" in uncompiled(Unary("gelu"), "haswell").llvm_ir
    True
    """
    machine, op = resolve_target(target), operation_of(problem)
    return (op.kernel or ArrayKernel)(run_stages(op.completed(problem, machine), machine, until=LAST_PROGRAM))
