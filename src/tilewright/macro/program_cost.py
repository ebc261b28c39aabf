"""Predicted cycles of any program of tile IR: its statements counted, and the bytes that they wait for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.ir.nodes import Program
from tilewright.machine.machine import Machine
from tilewright.macro.counting import Counts, count_program
from tilewright.macro.levels import Cycles, waited_cycles
from tilewright.macro.statement_cost import StatementCost


def predict_counts(counts: Counts, program: Program, machine: Machine) -> Cycles:
    """Predicted cycles of what was counted, on one thread."""
    model = StatementCost(machine, {buffer.name: buffer.dtype for buffer in program.buffers})
    busy = Cycles(tiles=machine.core.kernel_call_cycles)
    for run, times in counts.runs.items():
        busy = busy.plus(model.cycles(run.node, run.extents), times)
    waited = Cycles(**waited_cycles(machine, counts.bytes_by_level, busy.total))
    walks = counts.missed.get("tlb", 0.0) / machine.page_bytes * machine.core.page_walk_cycles
    return busy.plus(waited).plus(Cycles(tlb=walks))


def predict_program(
    program: Program,
    machine: Machine,
    sizes: Mapping[str, int],
    tables: Mapping[str, Sequence[int]] | None = None,
) -> Cycles:
    """Predicted cycles of one call of a program on one thread.

    Parameters
    ----------
    sizes : a value for each run-time size.
    tables : the content of buffers of integers that the program reads.

    Raises
    ------
    InvalidTileIr : if a size or a table is missing.
    """
    return predict_counts(count_program(program, machine, sizes, tables), program, machine)
