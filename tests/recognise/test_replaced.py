"""Programs in four languages, with their loops and without: what is found in them, and what they compute."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path

import pytest
from shares import EVERY_TEST_RUNS
from tiers import exhaustive

from recognise.calls import SOURCES, calls, with_functions
from recognise.drivers import differences
from recognise.findings import found_in, reasons
from recognise.quick_units import QuickUnits
from recognise.toolchains import CLANG, CLANG_CPP, RUSTC, SOURCE_TOOLCHAINS, ZIG, Toolchain, library
from tilewright.loops.driving.build import build
from tilewright.loops.driving.units import UnitCompiler
from tilewright.loops.opt.records import ProductOptions
from tilewright.loops.splice.plan import ProductStrategy

#: Each source by its compiler, and one by a clang that is newer by some versions.
PROGRAMS = [*SOURCE_TOOLCHAINS.items(), ("conditions.c", ZIG)]
#: In `make test` the newer clang alone compiles its source.
REPEATED = ("conditions.c", CLANG)
#: Every kernel of it is compiled for larger sizes than the others' are.
LARGE = ("kernels.c", CLANG)
#: Programs of which `make test` compiles the smallest kernels: what is found in them, and how it is called,
#: do not depend on the strategy. The others choose at run time.
SMALLEST = {
    ("epilogues.c", CLANG),
    ("orders.c", CLANG),
    ("types.c", CLANG),
    ("forms.c", CLANG),
    ("products.rs", RUSTC),
    ("products.cpp", CLANG_CPP),
    PROGRAMS[-1],
}
#: What a source has where FEW is defined, as it is in `make test`.
FEW = {
    "orders.c": {
        *("ijp_rrr", "ipj_rrc", "jip_rcr", "jpi_rcc"),
        *("pij_crr", "pji_crc", "ijp_ccr", "ipj_ccc"),
    },
    "rows.c": {
        *("row_pointers", "into_rows", "transposed_rows", "one_in_rows", "result_in_rows"),
        *("rows_by_vector", "rows_of_sums", "some_rows", "rows_of_both"),
    },
    "mixed.c": {
        *("in_double", "onto_float", "into_double"),
        *("behind_pointers", "float_products", "float_and_double"),
    },
    "epilogues.c": {"linear_relu", "by_columns", "scaled", "relu_of_c", "bounded"},
    "convolutions.c": {"conv2d", "stencil", "filter", "impulse_response", "channel_by_channel"},
}
#: Sources of which `make test` compiles every second function.
HALVED = ("forms.c", "sizes.c", "products.cpp", "products.rs")


@pytest.mark.parametrize(
    ("source", "toolchain"),
    [
        pytest.param(*one, marks=exhaustive if one == LARGE or (one == REPEATED and ZIG.program) else ())
        for one in PROGRAMS
    ],
    ids=lambda part: getattr(part, "name", part),
)
def test_loops_of_a_program(
    source: str, toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if toolchain.program is None:
        pytest.skip(f"{toolchain.name} is not installed")
    smallest = (source, toolchain) in SMALLEST and not EVERY_TEST_RUNS
    strategy = ProductStrategy.TILING if smallest else ProductStrategy.AUTO
    chosen = calls(source)
    if source in FEW and not EVERY_TEST_RUNS:
        toolchain = replace(toolchain, options=(*toolchain.options, "-DFEW"))
        chosen = tuple(call for call in chosen if call.function in FEW[source])
        assert len(chosen) == len(FEW[source])
    path = SOURCES / source
    if source in HALVED and not EVERY_TEST_RUNS:
        chosen = chosen[::2]
        path = tmp_path / source
        text = (SOURCES / source).read_text(encoding="utf-8")
        path.write_text(with_functions(text, {call.function for call in chosen}), encoding="utf-8")
    # Rust has no word for the permission, which its programs need as others do.
    options = ProductOptions(strategy=strategy, assume_reassociation=toolchain is RUSTC)
    units = UnitCompiler(options) if EVERY_TEST_RUNS else QuickUnits(options)
    monkeypatch.chdir(tmp_path)
    made = tmp_path / "replaced.so"
    assert build(toolchain.command([path], made), units) == 0
    original, replaced = library(toolchain, path, tmp_path), ctypes.CDLL(str(made))
    wrong = []
    for call in chosen:
        found = found_in(units.remarks, call.function)
        if call.verdict != "any" and found != call.found:
            wrong.append(f"{call.function}: found {found or reasons(units.remarks, call.function)!r}")
        wrong += differences(call, original, replaced)
    assert wrong == []
