"""Every kernel of every machine that an emulator runs: one binary for each, with some thousand cases in it.

The first machine of a row meets every layout (in `make test` a fifth of them, each row others), the
others a sample. Without qemu or zig the tests skip and name the command that installs what is missing.
"""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
from product_types import TYPES
from shares import EVERY_TEST_RUNS
from tiers import first_of

from emulated.elements import Filling
from emulated.emulators import (
    EMULATORS,
    NOT_EMULATED,
    emulated_machines,
    emulator_of,
    find_emulator,
    variants,
)
from emulated.gemm_cases import batch_reduce_case, batch_reduce_cases, gemm_cases
from emulated.kernels import Kernels
from emulated.runs import run, skip_without_tools
from emulated.type_cases import named, plans, type_cases, way_of
from emulated.unary_cases import unary_cases
from tilewright.machine.catalog import CATALOG
from tilewright.machine.isa import Isa
from tilewright.machine.isa_rows import ISAS
from tilewright.machine.machine import Machine
from tilewright.ops.batch_reduce.problem import BatchReduceGemm
from tilewright.spec.dtype import F32

MACHINES = emulated_machines()
#: Those that products of every element type run on.
TYPED = (*MACHINES, *variants(MACHINES))
#: Batch-reduce kernels of each combination of layouts: on the first machine of a row, on the others.
BATCH_REDUCES = (3, 1)


def test_every_machine_has_an_emulator() -> None:
    without = {entry.machine.isa.name for entry in CATALOG if find_emulator(entry.machine) is None}
    assert without <= {*NOT_EMULATED}, "add a row to EMULATORS, or the name to NOT_EMULATED"


@pytest.mark.parametrize(
    "machine",
    first_of(
        MACHINES,
        lambda machine: (machine.isa.name, machine.isa.tile(F32).instruction, machine.isa.vector_bits),
    ),
    ids=lambda machine: machine.name,
)
def test_kernels_run(machine: Machine, tmp_path: Path) -> None:
    skip_without_tools(machine)
    first = next(other for other in MACHINES if other.isa.name == machine.isa.name) == machine
    kernels = Kernels(machine)
    cases = itertools.chain(
        gemm_cases(kernels, every_layout=first),
        batch_reduce_cases(kernels, each=BATCH_REDUCES[not (first and EVERY_TEST_RUNS)]),
        unary_cases(kernels, every=first),
    )
    status, output, complaints = run(kernels, cases, tmp_path)
    assert status == 0, output + complaints


def runs_types(machine: Machine) -> bool:
    """Whether a machine has plans: none where it adds nothing to those before it."""
    return next(plans(machine, TYPED), None) is not None


@pytest.mark.parametrize("machine", [*filter(runs_types, TYPED)], ids=lambda machine: machine.name)
def test_every_element_type_runs(machine: Machine, tmp_path: Path) -> None:
    """In each way that a row has to multiply: the first machine that has it meets all cases of the type.

    Compiled before it is known whether an emulator is installed: no kernel calls anything.
    """
    kernels = Kernels(machine)
    cases = list(type_cases(kernels, TYPED))
    skip_without_tools(machine)
    status, output, complaints = run(kernels, cases, tmp_path)
    assert status == 0, output + complaints


@pytest.mark.parametrize(
    "isa", [isa for isa in ISAS if isa.name not in NOT_EMULATED], ids=lambda isa: isa.name
)
def test_every_instruction_runs(isa: Isa) -> None:
    """Some machine multiplies some types with it, or its emulator says why not."""
    ways = [way for machine in TYPED for types in TYPES if (way := way_of(machine, types))]
    ran = {name for way in ways if way.row == isa.name for name in (way.instruction, way.turned)}
    arch = isa.arch or "x86_64"
    emulator = next(row for row in EMULATORS if row.arch == arch and row.isa in ("", isa.name))
    assert {named(tile) for tile in isa.tiles if emulator.runs(tile)} == ran


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


#: Types of A and C, what operands hold, the bits that the last byte expected is changed by, whether that is
#: wrong. A rough sum is right where the case says by how much it may differ.
COMPARED = (
    ("bf16", None, Filling.EXACT, 0, False),
    ("bf16", None, Filling.EXACT, 0x80, True),
    ("f16", None, Filling.EXACT, 0, False),
    ("f16", None, Filling.EXACT, 0x80, True),
    ("c64", None, Filling.EXACT, 0, False),
    ("c64", None, Filling.EXACT, 0x80, True),
    ("c64", None, Filling.ROUGH, 0, False),
    ("f32", None, Filling.ROUGH, 0, False),
    ("f32", None, Filling.ROUGH, 0x40, True),
    ("i4", None, Filling.EXACT, 0x20, False),
    ("i4", None, Filling.EXACT, 0x01, True),
    ("u4", "i32", Filling.EXACT, 0x01, True),
    ("i8", None, Filling.ENDS, 0, False),
    ("i8", None, Filling.ENDS, 0x10, True),
    ("i64", None, Filling.EXACT, 0x80, True),
)


def test_the_harness_compares_each_type_as_it_must(tmp_path: Path) -> None:
    machine = next(machine for machine in MACHINES if emulator_of(machine).slack_bytes == 0)
    skip_without_tools(machine)
    kernels = Kernels(machine)
    cases, wrong = [], []
    for dtype, out, filling, flipped, differs in COMPARED:
        problem = BatchReduceGemm(5, 5, 5, dtype=dtype, out_dtype=out, a="row", b="row", c="row")
        right = batch_reduce_case(kernels.emit(problem), 0, at_end=True, filling=filling)
        a, b, c = right.operands
        assert c.expected is not None
        changed = replace(c, expected=c.expected[:-1] + bytes([c.expected[-1] ^ flipped]))
        cases.append(replace(right, operands=(a, b, changed)))
        wrong += ["operand 2: "] * differs
        if filling is Filling.ROUGH and not flipped:
            exact = replace(c, allowed=bytes(len(c.allowed)))
            cases.append(replace(right, operands=(a, b, exact)))
            wrong.append("operand 2: ")
    # Where A and C change places, an input is written to.
    cases.append(replace(right, operands=(replace(a, argument=2), b, replace(c, argument=0, expected=None))))
    wrong.append("operand 0: byte 0 changed")
    _, output, _ = run(kernels, cases, tmp_path)
    lines = output.splitlines()
    assert len(lines) == len(wrong) + 1, output
    for line, why in zip(lines, wrong, strict=False):
        assert why in line
