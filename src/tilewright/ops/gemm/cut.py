"""How a GEMM is cut: register tile and cache blocks."""

from __future__ import annotations

from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Blocking, choose_blocking, prepacked
from tilewright.macro.packing import weight_lanes
from tilewright.macro.tuned import tuned_blocking
from tilewright.ops.gemm.nest import instruction_of
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.problem import Layout


def cut_gemm(problem: Gemm, machine: Machine) -> Blocking:
    """Register tile and cache blocks; panels of weights have the width of the machine's float32 tiles."""
    columns = weight_lanes(machine) if problem.weights else 0
    instruction = instruction_of(problem, machine.isa)
    blocking = choose_blocking(machine, instruction, columns)
    if not problem.packed and problem.weights is None:
        return tuned_blocking(machine, problem.types, instruction, blocking)
    plain = problem.b is Layout.PACKED and problem.weights is None
    return prepacked(blocking) if plain else blocking
