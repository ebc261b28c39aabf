"""A program in C whose loops `tilewright opt` replaces, for other targets: right, and their instructions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from shares import EVERY_TEST_RUNS
from tiers import exhaustive

from emulated.emulators import emulated_machines, emulator_of, link, run_emulated
from emulated.runs import skip_without_tools
from tilewright.loops.opt.optimise import optimise
from tilewright.loops.opt.records import Optimised, OutputFormat, ProductOptions
from tilewright.loops.splice.plan import ProductStrategy
from tilewright.machine.machine import Machine
from tilewright.tools.explore.loops import innermost_loops

HERE = Path(__file__).parent
NAMES = ("pwr10", "neoverse-n1", "rva23", "x86-64-v3")
#: In `make test` tests/recognise compiles and runs programs for x86-64.
RUN_ELSEWHERE = ("x86-64-v3", True)
#: Those of POWER10: Power ISA 3.1C, book I, 7.2.1.3.
ACCUMULATORS = 8
MACHINES = {machine.name: machine for machine in emulated_machines()}


def replaced(machine: Machine, form: OutputFormat, place: Path, target: Machine | None) -> Optimised:
    """loops.c with products in the place of its loops, for a target or for what the functions say."""
    ir = place / "loops.ll"
    options = ["-target", emulator_of(machine).zig, "-O2", "-ffast-math", "-w"]
    options += ["-Xclang", "-disable-llvm-passes", "-emit-llvm", "-S"]
    command = [sys.executable, "-m", "ziglang", "cc", *options, str(HERE / "loops.c"), "-o", str(ir)]
    subprocess.run(command, check=True, capture_output=True)
    # Kernels that choose at run time hold all the others; in `make test` one program has them.
    every = EVERY_TEST_RUNS or form is not OutputFormat.OBJECT or machine.name == NAMES[0]
    strategy = ProductStrategy.AUTO if every else ProductStrategy.TILING
    done = optimise(ir.read_bytes(), form, ProductOptions(target=target, strategy=strategy), name="loops.c")
    assert [remark.replaced for remark in done.remarks] == [True] * 4, done.remarks
    return done


@pytest.mark.parametrize(
    ("name", "named"),
    [
        pytest.param(*case, marks=exhaustive if case == RUN_ELSEWHERE else ())
        for case in [*((name, True) for name in NAMES), ("rva23", False)]
    ],
)
def test_a_program_is_right(name: str, named: bool, tmp_path: Path) -> None:
    """Also where only functions say what they are for: RISC-V has registers for floats, or none."""
    machine = MACHINES[name]
    skip_without_tools(machine)
    (tmp_path / "loops.o").write_bytes(
        replaced(machine, OutputFormat.OBJECT, tmp_path, machine if named else None).content
    )
    link(machine, [HERE / "loops_main.c"], [tmp_path / "loops.o"], tmp_path / "program")
    assert run_emulated(machine, tmp_path / "program")[:2] == (0, "0 wrong\n")


def test_power10_multiplies_as_in_figure_3(tmp_path: Path) -> None:
    """Eight accumulators, each of which takes one xvf32gerpp a depth (Kuzma et al. 2023, Figure 3)."""
    machine = MACHINES["pwr10"]
    skip_without_tools(machine)
    loops = innermost_loops(replaced(machine, OutputFormat.ASSEMBLY, tmp_path, machine).text, machine.triple)
    found = 0
    for loop in loops:
        sums = [line.split()[1] for line in loop.matching("xvf32gerpp")]
        if len(set(sums)) == ACCUMULATORS:
            found += 1
            assert len(sums) % ACCUMULATORS == 0
            assert not loop.on_stack
    assert found
