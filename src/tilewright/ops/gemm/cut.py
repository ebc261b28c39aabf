"""How a GEMM is cut: register tile and cache blocks."""

from __future__ import annotations

from dataclasses import replace

from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Blocking, choose_blocking, prepacked, prepacked_rows
from tilewright.macro.bounds import CutBounds, blocking_bounds
from tilewright.macro.packing import weight_lanes
from tilewright.macro.tuned import tuned_blocking
from tilewright.ops.gemm.nest import instruction_of
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.gemm.sizes import computed_transposed
from tilewright.spec.problem import Layout


def cut_gemm(problem: Gemm, machine: Machine) -> Blocking:
    """Register tile and cache blocks; panels of weights have the width of the machine's float32 tiles."""
    columns = weight_lanes(machine) if problem.weights else 0
    instruction = instruction_of(problem, machine.isa)
    blocking = choose_blocking(machine, instruction, columns)
    if not problem.packed and problem.weights is None:
        return tuned_blocking(machine, problem.types, instruction, blocking)
    return prepacked(machine, instruction, blocking) if _prepacked(problem) else blocking


def _prepacked(problem: Gemm) -> bool:
    return problem.b is Layout.PACKED and problem.weights is None


def bounds_of_gemm(problem: Gemm, machine: Machine, cut: Blocking) -> CutBounds:
    """The rules that fixed each size of a GEMM's blocking."""
    instruction = instruction_of(problem, machine.isa)
    rows = prepacked_rows(machine, instruction, cut) if _prepacked(problem) else 1
    found = blocking_bounds(machine, instruction, cut, rows)
    notes = found.notes
    if problem.weights:
        notes += (f"nr is {cut.nr}, the width of the panels in which weights are stored.",)
    if computed_transposed(problem):
        notes += ("C is column-major: the kernel computes its transpose, and A and B exchange their roles.",)
    return replace(found, notes=notes)
