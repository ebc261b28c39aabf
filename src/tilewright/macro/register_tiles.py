"""Predicted cycles of one register tile: its depths, its addresses, its updates of C."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from tilewright.ir.nodes import LINE_BITS
from tilewright.machine.isa import TileFma
from tilewright.machine.machine import Machine
from tilewright.macro.levels import Cycles


class DepthCycles(NamedTuple):
    """Cycles of one depth of a tile: arithmetic or its latency, and how much longer its loads take."""

    multiply: float
    l1: float


def depth_step(machine: Machine, instruction: TileFma, height: int, columns: int) -> DepthCycles:
    """One depth of a tile of some rows and columns, all operands in L1.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> from tilewright.spec.dtype import F32
    >>> zen4 = find_machine("znver4")
    >>> depth_step(zen4, zen4.isa.tile(F32), 6, 64)  # 24 multiply-adds of 16 lanes, one starts in a cycle
    DepthCycles(multiply=24.0, l1=0.0)
    """
    isa, one = machine.timed_isa, instruction
    vectors = ceil(columns / one.n) if one.is_matrix_engine else ceil(columns / isa.lanes(one.acc))
    down = ceil(height / one.m)
    masked = columns % isa.lanes(one.acc) != 0
    arithmetic = max(down * vectors / isa.rate(one), isa.latency(one))
    loads = 0.0 if one.is_matrix_engine else (height + vectors + masked) / isa.loads_per_cycle
    return DepthCycles(arithmetic / one.k, max(loads - arithmetic, 0.0) / one.k)


def tile_visit(machine: Machine, instruction: TileFma, height: int, columns: int, depth: int) -> Cycles:
    """A tile over a depth: every step, its overhead, and an update of C at the end of each chain of sums."""
    core = machine.core
    step = depth_step(machine, instruction, height, columns)
    chain = instruction.sum_depths
    closes = max(0, ceil(depth / chain) - 1) if chain else 0
    update = update_cycles(machine, instruction, height, columns)
    visit = core.tile_cycles + core.tile_row_cycles * height + update * (1 + closes)
    return Cycles(multiply=step.multiply * depth, l1=step.l1 * depth, tiles=visit)


def update_cycles(machine: Machine, instruction: TileFma, height: int, columns: int) -> float:
    """To read, add to and store one tile of C."""
    lanes = machine.timed_isa.lanes(instruction.acc)
    return machine.core.update_cycles / 2 * height * ceil(columns / lanes)


#: Loads for each vector of a matrix that dot products read once: its own and part of the vector's.
DOT_LOADS = 1.5


def dots_visit(machine: Machine, instruction: TileFma, multiply_adds: int) -> Cycles:
    """Multiply-adds of which each reads an element of its own: a matrix times a vector."""
    isa = machine.timed_isa
    vectors = multiply_adds / isa.lanes(instruction.acc)
    arithmetic = vectors / isa.rate(instruction)
    return Cycles(arithmetic, l1=max(DOT_LOADS * vectors / isa.loads_per_cycle - arithmetic, 0.0))


#: Cycles in which `LINE_BITS` of one line are joined with others and transposed, beside multiply-adds: four
#: depths of 16 lines and 4 columns take 24 on a Zen 4, 16 of them multiply-adds and 4 waiting for loads.
LINE_CYCLES = 0.25


def few_lines_visit(machine: Machine, instruction: TileFma, count: int, depth: int) -> Cycles:
    """A tile of few rows or columns and as many lines as a vector has lanes, transposed in registers."""
    isa, acc = machine.timed_isa, instruction.acc
    lanes, together = isa.lanes(acc), max(1, LINE_BITS // acc.bits)
    steps = depth / together
    arithmetic = max(together * count / isa.rate(instruction), together * isa.latency(instruction))
    loads = (together * count + lanes * LINE_BITS / isa.vector_bits) / isa.loads_per_cycle
    late = max(loads - arithmetic, 0.0) + LINE_CYCLES * lanes
    visit = machine.core.tile_cycles + update_cycles(machine, instruction, count, lanes)
    return Cycles(multiply=arithmetic * steps, l1=late * steps, tiles=visit)
