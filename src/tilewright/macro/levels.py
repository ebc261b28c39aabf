"""What a level of the memory costs: predicted cycles by part, and how long computation waits for bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tilewright.machine.machine import Machine
from tilewright.macro.cost import KEPT_SHARE


class Cycles(NamedTuple):
    """Predicted cycles by part.

    multiply : multiply-adds, or their latency where a tile has too few sums.
    functions : other arithmetic on vectors: exponentials, reductions, conversions.
    tiles : calls, addresses and updates of C, once for each register tile and depth block.
    packing : copies into panels and into other orders.
    l1 : loads and stores that take longer than the arithmetic on them.
    l2, l3, memory : bytes from each level that computation waits for.
    tlb : page walks.
    """

    multiply: float = 0.0
    functions: float = 0.0
    tiles: float = 0.0
    packing: float = 0.0
    l1: float = 0.0
    l2: float = 0.0
    l3: float = 0.0
    memory: float = 0.0
    tlb: float = 0.0

    @property
    def total(self) -> float:
        """The sum of all parts."""
        return sum(self)

    @property
    def busy(self) -> float:
        """Cycles of instructions, whatever memory delivers."""
        return self.multiply + self.functions + self.tiles + self.packing + self.l1

    def plus(self, other: Cycles, times: float = 1.0) -> Cycles:
        """These cycles and several times others.

        >>> Cycles(multiply=1, l2=2).plus(Cycles(multiply=10), 3).multiply
        31
        """
        return Cycles(*(one + times * more for one, more in zip(self, other, strict=True)))


#: The levels beyond L1, nearest first.
FAR_LEVELS = ("l2", "l3", "memory")


def level_of(machine: Machine, size_bytes: float) -> str:
    """The level that holds some bytes which are read again and again, beside others."""
    if size_bytes <= KEPT_SHARE * machine.l2.size:
        return "l2"
    return "l3" if machine.l3 is not None and size_bytes <= KEPT_SHARE * machine.l3.size else "memory"


def waited_cycles(machine: Machine, bytes_by_level: Mapping[str, float], busy: float) -> dict[str, float]:
    """Cycles that instructions wait for bytes of each level, while they take `busy` cycles themselves.

    Part of each transfer is hidden; but no level delivers faster than its bandwidth.
    """
    core = machine.core
    rates = (core.l2_bytes_per_cycle, core.l3_bytes_per_cycle, core.memory_bytes_per_cycle)
    hidden = (1.0, core.l3_overlap, core.l3_overlap)
    found = {}
    for level, rate, share in zip(FAR_LEVELS, rates, hidden, strict=True):
        if level in bytes_by_level:
            cycles = bytes_by_level[level] / rate
            found[level] = max(cycles * (1 - share), cycles - busy)
    return found
