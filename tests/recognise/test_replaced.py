"""Programs in four languages, with their loops and without: what is found in them, and what they compute."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from recognise.calls import SOURCES, calls
from recognise.drivers import differences
from recognise.findings import found_in, reasons
from recognise.toolchains import RUSTC, SOURCE_TOOLCHAINS, ZIG, Toolchain, library
from tilewright.loops.driving.build import build
from tilewright.loops.driving.units import UnitCompiler
from tilewright.loops.opt.records import ProductOptions

#: Each source by its compiler, and one by a clang that is newer by some versions.
PROGRAMS = [*SOURCE_TOOLCHAINS.items(), ("conditions.c", ZIG)]


@pytest.mark.parametrize(("source", "toolchain"), PROGRAMS, ids=lambda part: getattr(part, "name", part))
def test_loops_of_a_program(
    source: str, toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if toolchain.program is None:
        pytest.skip(f"{toolchain.name} is not installed")
    # Rust has no word for the permission, which its programs need as others do.
    units = UnitCompiler(ProductOptions(assume_reassociation=toolchain is RUSTC))
    monkeypatch.chdir(tmp_path)
    made = tmp_path / "replaced.so"
    assert build(toolchain.command([SOURCES / source], made), units) == 0
    original, replaced = library(toolchain, SOURCES / source, tmp_path), ctypes.CDLL(str(made))
    wrong = []
    for call in calls(source):
        found = found_in(units.remarks, call.function)
        if call.verdict != "any" and found != call.found:
            wrong.append(f"{call.function}: found {found or reasons(units.remarks, call.function)!r}")
        wrong += differences(call, original, replaced)
    assert wrong == []
