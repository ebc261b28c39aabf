"""Products in IR that compilers have optimised already: unrolled, in vectors, in several versions."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest
from tiers import exhaustive

from recognise.calls import calls_of
from recognise.drivers import differences
from recognise.findings import found_in
from recognise.optimised import CONFIGURATIONS, EVERY_NEST, Configuration, checked, refusals, replaced_in
from recognise.random_nests import WEIGHTS, source
from recognise.toolchains import CLANG, SECONDS, library
from tilewright.loops.opt.optimise import optimise

#: Share of the plain nests that are found, at least.
LEAST_FOUND = 0.9
#: What `make test` compiles: each way of copying once.
SOME = {"f32_ijk", "f32_ikj", "i32_jki", "scaled_jki", "fixed_ikj"}

#: How often forms are drawn that one product replaces: once optimised, most of the others are refused.
SINGLE_PRODUCTS = (6, 1, 1, 0, 0, 0, 0)


@pytest.mark.parametrize(
    "configuration",
    [
        pytest.param(one, marks=() if one == CONFIGURATIONS[0] else exhaustive, id=one.name)
        for one in CONFIGURATIONS
    ],
)
def test_plain_nests_of_optimising_compilers(configuration: Configuration, tmp_path: Path) -> None:
    if configuration.toolchain.program is None:
        pytest.skip(f"{configuration.toolchain.name} is not installed")
    nests = EVERY_NEST
    if configuration == CONFIGURATIONS[0]:
        nests = [one for one in EVERY_NEST if f"{one[0].name}_{one[1]}" in SOME]
        assert len(nests) == len(SOME)
    done, wrong = checked(configuration, nests, tmp_path, draws=2)
    assert wrong == []
    assert len(replaced_in(done)) >= LEAST_FOUND * len(nests), refusals(done)


@exhaustive
@pytest.mark.parametrize("level", ["-O2", "-O3"])
@pytest.mark.parametrize(
    ("seed", "weights", "least"), [(1, SINGLE_PRODUCTS, 8), (2, SINGLE_PRODUCTS, 8), (3, WEIGHTS, 1)]
)
@pytest.mark.skipif(CLANG.program is None, reason="clang is not installed")
def test_random_nests_that_clang_has_optimised(
    level: str, seed: int, weights: tuple[int, ...], least: int, tmp_path: Path
) -> None:
    text, count = source(seed, 40, weights), 0
    path, bitcode, made = (tmp_path / name for name in ("nests.c", "nests.bc", "replaced.o"))
    path.write_text(text, encoding="utf-8")
    assert CLANG.program is not None
    options = [level, "-ffast-math", "-fPIC", "-w", "-emit-llvm", "-c", str(path), "-o", str(bitcode)]
    subprocess.run([*CLANG.program, *options], check=True, timeout=SECONDS)
    done = optimise(bitcode.read_bytes(), ".o")
    made.write_bytes(done.content)
    shared = tmp_path / "replaced.so"
    subprocess.run([*CLANG.program, "-shared", str(made), "-o", str(shared)], check=True, timeout=SECONDS)
    original, replaced = library(CLANG, path, tmp_path), ctypes.CDLL(str(shared))
    wrong: list[str] = []
    for call in calls_of(text, path.name):
        count += bool(found_in(done.remarks, call.function))
        wrong += differences(call, original, replaced)
    assert wrong == []
    assert count >= least
