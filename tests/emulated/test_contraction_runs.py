"""Contractions as configured on every machine that an emulator runs, between guard pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest
from contraction_cases import Case as Configured
from contraction_cases import random_case
from shares import share
from support import Array

from emulated.case_file import Case, Placed, Signature, Values
from emulated.emulators import emulated_machines, emulator_of
from emulated.kernels import Emitted, Kernels
from emulated.runs import run, skip_without_tools
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Blocking
from tilewright.ops.contraction.main import Main
from tilewright.ops.contraction.memory import reach
from tilewright.ops.contraction.tables.primitive import swaps, table_axes
from tilewright.ops.contraction.tables.tables import tables_of
from tilewright.spec.dtype import DTYPES, F32

#: The first machine of each row, unit and length of vectors.
RUN = tuple(
    {
        (machine.isa.name, machine.isa.tile(F32).instruction, machine.isa.vector_bits): machine
        for machine in reversed(emulated_machines())
    }.values()
)
TYPES = ("f32", "f32", "f64", "bf16", "i8", "c64")
#: Contractions of one machine; the next machine takes the next ones.
EACH = 6
#: Of these, `make test` runs one in so many.
SHARED = 4


def whole(array: Array) -> Array:
    """The memory from the lowest to the highest element of an operand, gaps included."""
    assert isinstance(array.base, np.ndarray)
    return array.base


def contraction_case(kernel: Emitted, configured: Configured, turn: int) -> Case:
    """One call; sums of small integers are exact, so that every bit counts."""
    problem, known = configured.problem, configured.known
    arrays = {name: configured.placed(name) for name in problem.names}
    expected = configured.expected()
    placed = []
    for number, (name, array) in enumerate(arrays.items()):
        before = whole(array).tobytes()
        if name == "out":
            array[...] = expected
        placed.append(
            Placed(
                before,
                origin=-reach(known.having(name), name)[0] * array.itemsize,
                argument=number,
                at_end=bool((turn + number) % 2),
                expected=whole(array).tobytes() if name == "out" else None,
            )
        )
    integers = list(configured.sizes)
    if problem.main is Main.PACKED_GEMM and problem.primitive:
        assert isinstance(kernel.cut, Blocking)
        axes = table_axes(known, swapped=swaps(problem))
        tables = tables_of(problem.types.acc, kernel.machine, kernel.cut, axes)
        placed += [
            Placed(table.tobytes(), argument=number)
            for number, table in enumerate(tables.arrays, len(placed))
        ]
        integers += tables.sizes.values()
    return Case(
        label=f"{kernel.name} {configured.sizes}",
        kernel=kernel.number,
        signature=Signature.ADAPTED,
        element=problem.out_dtype.real.size,
        integers=tuple(integers),
        operands=tuple(placed),
        values=Values.of(problem.out_dtype),
        scratch_bytes=kernel.scratch_bytes,
    )


def contraction_cases(kernels: Kernels, first: int) -> Iterator[Case]:
    """Some contractions of any primitive."""
    isa, emulator = kernels.machine.isa, emulator_of(kernels.machine)
    types = tuple(name for name in TYPES if emulator.runs(isa.tile(DTYPES[name], DTYPES[name])))
    for turn in share(range(first, first + EACH), SHARED, first // EACH):
        configured = random_case(Random(turn), dtypes=types, lengths=(1, 2, 3, 5, 17, 33))
        yield contraction_case(kernels.emit(configured.problem), configured, turn)


@pytest.mark.parametrize("machine", RUN, ids=lambda machine: machine.name)
def test_contractions_run(machine: Machine, tmp_path: Path) -> None:
    skip_without_tools(machine)
    kernels = Kernels(machine)
    cases = contraction_cases(kernels, EACH * RUN.index(machine))
    status, output, complaints = run(kernels, cases, tmp_path)
    assert status == 0, output + complaints
