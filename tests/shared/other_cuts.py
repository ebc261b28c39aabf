"""Kernels that are cut otherwise than the machine says, so that small arrays take any path."""

from __future__ import annotations

from dataclasses import replace

import tilewright as tw
from tilewright.compiler.kernel import Kernel
from tilewright.compiler.operation import Compilation, Problem, kernel_name
from tilewright.compiler.pipeline import STAGES


def kernel_with(problem: Problem, **changed: int) -> Kernel:
    """The kernel of a problem on this host, with other values in some fields of its cut."""
    machine = tw.machine()
    state = Compilation(problem, machine, kernel_name(problem, machine.isa.name))
    for stage in STAGES:
        state = state.with_field(stage.name, stage.run(state))
        if stage.name == "blocking":
            state = state.with_field("blocking", replace(state.blocking, **changed))
    return Kernel(state)
