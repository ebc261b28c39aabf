"""Builds the binary of some kernels and runs their cases on an emulated machine."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from emulated.case_file import Case, write_cases
from emulated.emulators import HARNESS, emulator_of, link, missing_tool, run_emulated
from emulated.kernels import Kernels
from tilewright.machine.machine import Machine


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
