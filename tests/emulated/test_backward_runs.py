"""Gradients of attention on every machine that an emulator runs, between guard pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace as changed
from pathlib import Path

import backward_calls as calls
import numpy as np
import pytest
from shares import share
from support import Array

from emulated.case_file import Case, Placed, Signature, Values
from emulated.emulators import emulated_machines
from emulated.kernels import Emitted, Kernels
from emulated.runs import run, skip_without_tools
from tilewright.machine.machine import Machine
from tilewright.spec.dtype import F32

#: The first machine of each row and unit.
MACHINES = tuple(
    {
        (machine.isa.name, machine.isa.tile(F32).instruction): machine
        for machine in reversed(emulated_machines())
    }.values()
)
#: Sizes with tails in every direction, and one of several blocks with the small caches.
CASES = (
    calls.Case(heads=2, queries=37, keys=41, head_dim=19, value_dim=35),
    calls.Case(heads=2, kv_heads=1, queries=45, keys=60, head_dim=16, value_dim=16, range=(-20, 16)),
    calls.Case(queries=13, keys=23, head_dim=33, value_dim=17, mask="u8", slopes=True),
    calls.Case(queries=13, keys=35, head_dim=16, value_dim=16, mask="f32", softcap=2.0),
)
#: Of the largest element, or of 1.
ALLOWED = {"f32": 4e-6, "bf16": 2e-2}


def operand(
    name: str, array: Array, number: int, expected: Array | None, bound: float, at_end: bool
) -> Placed:
    """One argument; of an output what it must be, or whatever it holds."""
    content = np.ascontiguousarray(array).tobytes()
    if name == "delta":
        return Placed(content, argument=number, at_end=at_end, workspace=True)
    if expected is None:
        return Placed(content, argument=number, at_end=at_end)
    largest = max(float(np.abs(expected).max()), 1.0)
    return Placed(
        content,
        argument=number,
        at_end=at_end,
        expected=expected.astype(array.dtype).tobytes(),
        allowed=np.full(expected.shape, bound * largest).tobytes(),
        values=Values.F32 if array.dtype == np.float32 else Values.BF16,
        element=array.itemsize,
    )


def backward_case(kernel: Emitted, case: calls.Case, turn: int) -> Case:
    """One call, whose gradients hold NaN before it."""
    drawn = calls.draw(case, turn)
    call, placed = drawn.call, []
    for number, buffer in enumerate(kernel.program.arguments):
        array = getattr(call, buffer.name)
        if buffer.name == "mask":
            array = array[0, 0]
        expected = getattr(drawn.expected, buffer.name) if buffer.name in ("dq", "dk", "dv") else None
        at_end = bool((turn + number) % 3)
        placed.append(operand(buffer.name, array, number, expected, ALLOWED[case.dtype], at_end))
    return Case(
        label=f"{kernel.name} {case} case {turn}",
        kernel=kernel.number,
        signature=Signature.ADAPTED,
        element=1,
        integers=tuple(calls.sizes_of(case, call).values()),
        operands=tuple(placed),
        alpha=call.scale,
        beta=call.softcap,
        scratch_bytes=kernel.scratch_bytes,
    )


def backward_cases(kernels: Kernels, first: int) -> Iterator[Case]:
    """Types take turns, and caches, small and as they are; in `make test` each machine takes one case."""
    for turn, case in share(enumerate(CASES), len(CASES), first):
        of_type = changed(case, dtype=tuple(ALLOWED)[(turn + turn // 2 + first) % len(ALLOWED)])
        kernel = kernels.emit(of_type.problem, near=bool((turn // 2 + first // 2) % 2))
        yield backward_case(kernel, of_type, turn)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_gradients_run(machine: Machine, tmp_path: Path) -> None:
    skip_without_tools(machine)
    kernels = Kernels(machine)
    status, output, complaints = run(kernels, backward_cases(kernels, MACHINES.index(machine)), tmp_path)
    assert status == 0, output + complaints
