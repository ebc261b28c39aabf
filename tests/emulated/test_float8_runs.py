"""All pairs of 8-bit floats multiplied on every row that an emulator runs, bit for bit."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from shares import EVERY_TEST_RUNS

from emulated.case_file import Case, Placed, Signature, Values
from emulated.emulators import emulated_machines
from emulated.kernels import Kernels
from emulated.runs import run, skip_without_tools
from tilewright.machine.machine import Machine
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.dtype import E4M3, E5M2, F32, DType
from tilewright.spec.problem import Strategy

#: The first machine of each row and instruction that multiplies them.
MACHINES = [
    *{
        (machine.isa.name, machine.isa.tile(E4M3).instruction): machine
        for machine in reversed(emulated_machines())
    }.values()
]


def every_pair(kernels: Kernels, a: DType, b: DType) -> Case:
    """A column of all values of A times a row of all values of B."""
    kernel = kernels.emit(Gemm(dtype=a, b_dtype=b, out_dtype=F32, strategy=Strategy.PACKING), near=False)
    column, row = (np.arange(256, dtype=np.uint8).view(dtype.numpy) for dtype in (a, b))
    with np.errstate(all="ignore"):
        exact = column[:, np.newaxis].astype(np.float32) * row[np.newaxis].astype(np.float32)
    return Case(
        label=kernel.name,
        kernel=kernel.number,
        signature=Signature.GEMM,
        element=F32.size,
        integers=(256, 256, 1, 1, 1, 256, 1, 256, 1),
        operands=(
            Placed(column.tobytes(), argument=0, at_end=True),
            Placed(row.tobytes(), argument=1, at_end=True),
            Placed(bytes(exact.nbytes), argument=2, expected=exact.tobytes()),
        ),
        values=Values.F32,
        alpha=1.0,
        beta=0.0,
        scratch_bytes=kernel.scratch_bytes,
    )


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_all_pairs_of_values(machine: Machine, tmp_path: Path) -> None:
    """In `make test` one type times the other one, which change sides on the next machine."""
    skip_without_tools(machine)
    kernels = Kernels(machine)
    pairs = product((E4M3, E5M2), repeat=2)
    left = (E4M3, E5M2)[MACHINES.index(machine) % 2]
    cases = [every_pair(kernels, a, b) for a, b in pairs if EVERY_TEST_RUNS or (a == left and a != b)]
    status, output, complaints = run(kernels, iter(cases), tmp_path)
    assert status == 0, output + complaints
