"""What the tasks of a program would cost on any number of cores: walks tile IR without computing anything.

A core is as fast as its multiply unit and a copy into panels; memory that cores share is not modelled.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import field

import numpy as np

from tilewright.ir.interpret import Interpreter
from tilewright.ir.nodes import Loop, Pack, Program, TileEpilogue, TileMatmul
from tilewright.machine.machine import Machine
from tilewright.records import dataclass

#: Bytes of panels that a core writes in a cycle: a 64-byte line is read, turned and written in about 15.
PACKED_BYTES_A_CYCLE = 4.0

#: Cycles to hand a region to threads and to meet again: 1 us at 4 GHz.
REGION_CYCLES = 4000.0


@dataclass
class Costs:
    """Cycles and bytes of one product."""

    regions: list[list[float]] = field(default_factory=list)  # cycles of each task of each parallel loop
    packed_bytes: dict[str, int] = field(default_factory=dict)
    multiply_cycles: float = 0.0

    def cycles(self, threads: int) -> float:
        """Time until the last thread of every region has ended, each taking the next task when it is free."""
        total = 0.0
        for tasks in self.regions:
            ends = [0.0] * threads
            for task in tasks:
                heapq.heappush(ends, heapq.heappop(ends) + task)
            total += max(ends) + (REGION_CYCLES if threads > 1 else 0.0)
        return total

    def balance(self, threads: int) -> float:
        """Share of the time in which threads have a task, the start and the end of regions left out."""
        alone = self.cycles(threads) - (REGION_CYCLES * len(self.regions) if threads > 1 else 0.0)
        return sum(map(sum, self.regions)) / threads / alone

    def efficiency(self, threads: int) -> float:
        """Share of the multiply units' peak: 1 where nothing is packed and nobody waits."""
        return self.multiply_cycles / threads / self.cycles(threads)


class _CostRun(Interpreter):
    """Adds up what each primitive costs."""

    def __init__(self, program: Program, machine: Machine, threads: int) -> None:
        super().__init__({}, {"alpha": 1.0, "beta": 0.0}, threads)
        self.costs, self.now = Costs(), 0.0
        self.machine, self.types = machine, {buffer.name: buffer.dtype for buffer in program.buffers}

    def tasks(self, loop: Loop, names: dict[str, int], first: dict[str, bool]) -> None:
        region: list[float] = []
        self.costs.regions.append(region)
        loops = loop.fused()
        spans = [
            range(*(self.integer(part, names) for part in (one.begin, one.end, one.step))) for one in loops
        ]
        for task in np.ndindex(*map(len, spans)):
            axes = {one.axis: span[at] for one, span, at in zip(loops, spans, task, strict=True)}
            self.now = 0.0
            self.block(loops[-1].body, names | axes, first)
            region.append(self.now)

    def pack(self, node: Pack, names: Mapping[str, int]) -> None:
        lanes, depth = (self.integer(part, names) for part in (node.lanes, node.depth))
        moved = -(-lanes // node.panel) * node.panel * depth * self.types[node.destination.buffer].size
        known = self.costs.packed_bytes
        known[node.destination.buffer] = known.get(node.destination.buffer, 0) + moved
        self.now += moved / PACKED_BYTES_A_CYCLE

    def matmul(self, node: TileMatmul, names: Mapping[str, int], first: Mapping[str, bool]) -> None:
        del first
        rows, columns, depth = (self.integer(part, names) for part in (node.rows, node.columns, node.depth))
        lanes = self.machine.isa.lanes(self.types[node.c.buffer])
        vectors = -(-columns // lanes)
        rate = self.machine.isa.fma_per_cycle
        self.now += rows * vectors * depth / rate
        self.costs.multiply_cycles += rows * columns * depth / lanes / rate

    def epilogue(self, node: TileEpilogue, names: Mapping[str, int], first: Mapping[str, bool]) -> None:
        del node, names, first


def costs_of(program: Program, machine: Machine, sizes: tuple[int, int, int], threads: int) -> Costs:
    """What a float32 product of row-major matrices costs so many threads."""
    m, n, k = sizes
    strides = {"rs_a": k, "cs_a": 1, "rs_b": n, "cs_b": 1, "rs_c": n, "cs_c": 1}
    return program_costs(program, machine, {"m": m, "n": n, "k": k} | strides, threads)


def program_costs(program: Program, machine: Machine, sizes: dict[str, int], threads: int) -> Costs:
    """What any program of given sizes and strides costs so many threads."""
    run = _CostRun(program, machine, threads)
    run.block(program.body, sizes, {})
    return run.costs
