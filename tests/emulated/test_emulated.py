"""Every kernel of every machine that an emulator runs: one binary for each, with some thousand cases in it.

The first machine of a row meets every layout, the others a sample. Without qemu or zig the tests skip and
name the command that installs what is missing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from emulated.case_file import Case, write_cases
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
from emulated.gemm_cases import batch_reduce_case, batch_reduce_cases, gemm_cases
from emulated.kernels import Kernels
from emulated.type_cases import type_cases
from emulated.unary_cases import unary_cases
from tilewright.machine.catalog import CATALOG
from tilewright.machine.machine import Machine
from tilewright.spec.problem import BatchReduceGemm

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


def run(kernels: Kernels, cases: Iterable[Case], folder: Path) -> tuple[int, str, str]:
    """The exit status, the lines of failing cases and of the end, and the complaints of the emulator.

    Of the CPU with longer vectors, where there is one, if the other runs every case well.
    """
    emulator = emulator_of(kernels.machine)
    count = write_cases(folder / "cases", cases, emulator.slack_bytes)
    binary = build(kernels, folder)
    for cpu in ("", emulator.longer) if emulator.longer else ("",):
        status, output, complaints = run_emulated(kernels.machine, binary, str(folder / "cases"), cpu=cpu)
        summary = "".join(output.splitlines()[-1:])
        assert summary.startswith(f"{count} cases, "), output + complaints
        if status:
            break
    return status, output, complaints


def skip_without_tools(machine: Machine) -> None:
    missing = missing_tool(machine)
    if missing:
        pytest.skip(missing)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_kernels_run(machine: Machine, tmp_path: Path) -> None:
    skip_without_tools(machine)
    first = next(other for other in MACHINES if other.isa.name == machine.isa.name) == machine
    kernels = Kernels(machine)
    cases = itertools.chain(
        gemm_cases(kernels, every_layout=first),
        batch_reduce_cases(kernels, each=BATCH_REDUCES[not first]),
        unary_cases(kernels, every=first),
    )
    status, output, complaints = run(kernels, cases, tmp_path)
    assert status == 0, output + complaints


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_every_element_type_runs(machine: Machine, tmp_path: Path) -> None:
    """In each way that a row has to multiply: the first machine that has it meets all cases of the type."""
    skip_without_tools(machine)
    kernels = Kernels(machine)
    status, output, complaints = run(kernels, type_cases(kernels, MACHINES), tmp_path)
    assert status == 0, output + complaints


def test_the_harness_sees_what_is_wrong(tmp_path: Path) -> None:
    machine = next(machine for machine in MACHINES if emulator_of(machine).slack_bytes == 0)
    skip_without_tools(machine)
    kernels = Kernels(machine)
    kernel = kernels.emit(BatchReduceGemm(5, 7, 9, a="row", b="row", c="row"))
    right = batch_reduce_case(kernel, 0, at_end=True)
    a, b, c = right.operands
    assert c.expected is not None
    wrong_value = c.expected[:-4] + bytes(4)
    gap = c.content[:28] + b"gaps" + c.content[32:]  # the element behind the first row
    broken = {
        "operand 2: element 46 is": (a, b, replace(c, expected=wrong_value)),
        "operand 2: element 7 is": (a, b, replace(c, content=gap)),
        "0 bytes behind operand 0": (replace(a, content=a.content[:-4]), b, c),
        "4 bytes in front of operand 1": (a, replace(b, content=b.content[4:], origin=-4, at_end=False), c),
        "operand 2: a byte 1 bytes behind it changed": (
            a,
            b,
            replace(c, content=c.content[:-4], expected=c.expected[:-4], at_end=False),
        ),
    }
    cases = [right, *(replace(right, operands=operands) for operands in broken.values())]
    status, output, _ = run(kernels, cases, tmp_path)
    assert status == 1
    lines = output.splitlines()
    assert len(lines) == len(broken) + 1, output
    for line, why in zip(lines, broken, strict=False):
        assert why in line
