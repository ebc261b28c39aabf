"""Every kernel of every machine that an emulator runs: one binary for each, with some thousand cases in it.

The first machine of a row meets every layout, the others a sample. Without qemu or zig the tests skip and
name the command that installs what is missing.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from emulated.case_file import write_cases
from emulated.emulators import (
    HARNESS,
    NOT_EMULATED,
    emulated_machines,
    emulator_of,
    find_emulator,
    link,
    missing_tool,
    run_emulated,
)
from emulated.gemm_cases import batch_reduce_cases, gemm_cases
from emulated.kernels import Kernels
from tilewright.machine.catalog import CATALOG
from tilewright.machine.machine import Machine

MACHINES = emulated_machines()
#: Batch-reduce kernels of each combination of layouts: on the first machine of a row, on the others.
BATCH_REDUCES = (5, 1)


def build(kernels: Kernels, folder: Path) -> Path:
    """The binary of all kernels."""
    table = folder / "table.c"
    table.write_text(kernels.table())
    objects = []
    for kernel in kernels.emitted:
        objects.append(folder / f"{kernel.symbol}.o")
        objects[-1].write_bytes(kernel.object_code)
    binary = folder / "kernels"
    link(kernels.machine, (HARNESS, table), objects, binary)
    return binary


def test_every_machine_has_an_emulator() -> None:
    without = {entry.machine.isa.name for entry in CATALOG if find_emulator(entry.machine) is None}
    assert without <= {*NOT_EMULATED}, "add a row to EMULATORS, or the name to NOT_EMULATED"


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_kernels_run(machine: Machine, tmp_path: Path) -> None:
    missing = missing_tool(machine)
    if missing:
        pytest.skip(missing)
    first = next(other for other in MACHINES if other.isa == machine.isa) == machine
    kernels = Kernels(machine)
    cases = itertools.chain(
        gemm_cases(kernels, every_layout=first),
        batch_reduce_cases(kernels, each=BATCH_REDUCES[not first]),
    )
    count = write_cases(tmp_path / "cases", cases, emulator_of(machine).slack_bytes)
    status, output, complaints = run_emulated(machine, build(kernels, tmp_path), str(tmp_path / "cases"))
    assert (status, output.splitlines()[-1:]) == (0, [f"{count} cases, 0 failed"]), output + complaints
