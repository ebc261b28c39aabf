"""Outer loops become tasks of threads."""

from __future__ import annotations

from dataclasses import replace

from tilewright.machine.machine import Machine
from tilewright.ops.contraction.dimension import ExecutionType
from tilewright.ops.contraction.main import Main
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.contraction.schedule.split import BALANCED, balance, least_work, work_of
from tilewright.spec.roles import DimensionRole


def parallelise(contraction: Contraction, machine: Machine) -> Contraction:
    """As many outer loops as keep the machine's threads equally at work are one space of tasks.

    Sums are no tasks, and what a single thread finishes sooner has none. Loops around packed operands that
    are too few stay loops: the primitive's own loops are tasks then.

    Before, for two threads::

        m sequential 3 in0=512 in1=0   out=512
        n sequential 8 in0=0   in1=256 out=64

    After::

        m parallel 3 in0=512 in1=0   out=512
        n parallel 8 in0=0   in1=256 out=64
    """
    small = not contraction.is_open and work_of(contraction) < 2 * least_work(contraction)
    if machine.cores == 1 or small:
        return contraction
    found, tasks = list(contraction.dimensions), 1
    for number, dimension in enumerate(contraction.loops):
        if dimension.type is DimensionRole.K or balance(tasks, machine.cores) >= BALANCED:
            break
        found[number] = replace(dimension, execution=ExecutionType.PARALLEL)
        tasks *= dimension.size or machine.cores
    if contraction.main is Main.PACKED_GEMM and balance(tasks, machine.cores) < BALANCED:
        return contraction
    return contraction.with_dimensions(found)
