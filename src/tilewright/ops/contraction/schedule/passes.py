"""The passes that find a schedule, in order; `tilewright emit contraction --dump` takes their names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tilewright.errors import InvalidChoice, NotAProblem, shown
from tilewright.machine.machine import Machine
from tilewright.ops.contraction.dimension import ExecutionType
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.contraction.schedule.block import block
from tilewright.ops.contraction.schedule.fuse import fuse
from tilewright.ops.contraction.schedule.identify import identify
from tilewright.ops.contraction.schedule.parallelise import parallelise
from tilewright.ops.contraction.schedule.reorder import reorder
from tilewright.ops.contraction.schedule.split import split
from tilewright.records import dataclass


@dataclass(frozen=True)
class SchedulePass:
    """One step from a contraction to its schedule."""

    name: str
    run: Callable[[Contraction, Machine], Contraction]


PASSES: tuple[SchedulePass, ...] = (
    SchedulePass("fuse", fuse),  # dimensions that are one in every operand become one
    SchedulePass("identify", identify),  # which primitive, over which dimensions
    SchedulePass("block", block),  # primitives in place are cut to what the caches hold
    SchedulePass("split", split),  # primitive rows or columns become tasks where loops are too few
    SchedulePass("reorder", reorder),  # loops by the memory of out, sums inside
    SchedulePass("parallelise", parallelise),  # outer loops become tasks
)


def schedule(contraction: Contraction, machine: Machine, until: str = PASSES[-1].name) -> Contraction:
    """The passes in order, up to and including the one named; what was chosen before is not looked at.

    Raises
    ------
    InvalidChoice : if no pass has that name.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> from tilewright.ops.contraction.dimension import (Dimension)
    >>> m, n = Dimension("m", size=1600, in0=1, out=1), Dimension("n", size=1600, in1=1600, out=1600)
    >>> given = Contraction([m, n, Dimension("k", size=1600, in0=1600, in1=1)])
    >>> schedule(given, find_machine("znver5"), until="identify").main.value
    'packed_gemm'
    """
    names = [step.name for step in PASSES]
    if until not in names:
        raise InvalidChoice(name="pass", found=shown(until), allowed=", ".join(names))
    if not isinstance(contraction, Contraction):
        raise NotAProblem(known="Contraction", found=shown(contraction))
    found = contraction.with_dimensions(
        replace(dimension, execution=ExecutionType.SEQUENTIAL) for dimension in contraction.dimensions
    )
    for step in PASSES[: names.index(until) + 1]:
        found = step.run(found, machine)
    return found
