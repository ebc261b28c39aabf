"""Rows of other CPUs as machines of this host, operands of exact sums, and sizes with every tail."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
from support import Array

import tilewright as tw
from tilewright.calls.kernel import ArrayKernel
from tilewright.compiler.operation import Problem, operation_of
from tilewright.compiler.pipeline import run_stages
from tilewright.llvm.target import QUICK_LEVEL, emit_object
from tilewright.machine.host import host_machine
from tilewright.machine.isa import Isa, TileFma
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Blocking, choose_blocking
from tilewright.ops.gemm.nest import instruction_of
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.dtype import DType, Kind

LAYOUTS = tuple(itertools.product(("row", "col"), repeat=3))
#: Of scalable vectors, and of streaming ones.
LENGTHS, STREAMING = (128, 512), (128, 256, 512)


#: Rows of a tile of AMX: LLVM takes seconds over copies into its panels.
AMX_ROWS = 16


def without_amx(isa: Isa) -> Isa:
    """A row without its largest tiles; those of others stay."""
    return replace(isa, tiles=tuple(tile for tile in isa.tiles if tile.m < AMX_ROWS))


def every_feature(isa: Isa) -> frozenset[str]:
    """What a CPU with all of a row's instructions has."""
    return frozenset(tile.feature for tile in isa.tiles if tile.feature)


def emulating(isa: Isa, *instructions: TileFma) -> Machine:
    """This host with a row, all its instructions or some, and small blocks so that sums wait between them."""
    host = host_machine()
    isa = replace(
        isa,
        tiles=instructions or isa.tiles,
        emulated=True,
        fused=isa.fused and host.isa.fused,
        half=isa.half and host.isa.half,
    )
    l1, l2 = replace(host.l1, size=4 << 10), replace(host.l2, size=64 << 10)
    return replace(host, name=f"emulate:{isa.name}", isa=isa, l1=l1, l2=l2, vector_bits=isa.vector_bits)


def emulated_kernel(problem: Problem, machine: Machine) -> Any:
    """The kernel of a problem on an emulated row, compiled without optimisation.

    LLVM takes half the time. What is shown is what the module computes: these instructions are not the row's.
    """
    done = run_stages(problem, machine, until="llvm")
    code = emit_object(done.llvm, done.name, machine, QUICK_LEVEL)
    kind = operation_of(problem).kernel or ArrayKernel
    return kind(done.with_field("object", code))


def drawn(random: np.random.Generator, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Integers of the whole range, or floats of exact sums."""
    if dtype.is_integer:
        lowest = -(1 << dtype.significand - 1) if dtype.kind is Kind.SIGNED else 0
        found = random.integers(lowest, lowest + (1 << dtype.significand) - 1, shape, np.int64, endpoint=True)
        return found.astype(dtype.numpy)
    found = random.integers(-4, 5, shape).astype(float)
    if dtype.kind is Kind.COMPLEX:
        return (found + 1j * random.integers(-4, 5, shape)).astype(dtype.numpy)
    return found.astype(dtype.numpy)


def stored(exact: Array, dtype: DType) -> Array:
    with np.errstate(all="ignore"):
        return exact.astype(dtype.numpy)


def in_layout(array: Array, layout: object) -> Array:
    return np.asfortranarray(array) if layout is tw.Gemm(c="col").c else np.ascontiguousarray(array)


def shapes_around(problem: Gemm, machine: Machine) -> list[tuple[int, int, int]]:
    """One element, tails of every kind, and more depths than a block has."""
    instruction = instruction_of(problem, machine.isa)
    cut: Blocking = choose_blocking(machine, instruction)
    return [
        (1, 1, 1),
        (cut.mr + 3, 2 * cut.nr + 5, instruction.k + 1),
        (2 * cut.mr - 1, cut.nr - 1, 0),
        (instruction.m + 1, instruction.n + 1, cut.kc + instruction.k + 3),
        (cut.mr, cut.nr, 2 * instruction.k),
    ]
