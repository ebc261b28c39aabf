"""Products of elements and their sums on every machine that an emulator runs, between guard pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from product_operands import PROBLEMS, make, shapes, strides_of
from shares import EVERY_TEST_RUNS, share
from support import Array

from emulated.case_file import Case, Placed, Signature, Values
from emulated.emulators import emulated_machines
from emulated.kernels import Emitted, Kernels
from emulated.runs import run, skip_without_tools
from tilewright.machine.machine import Machine
from tilewright.ops.sum_of_products.problem import SUM_DTYPES, SumOfProducts

#: The first machine of each row and length of vectors: no other instructions are used.
RUN = tuple(
    {
        (machine.isa.name, machine.isa.vector_bits): machine for machine in reversed(emulated_machines())
    }.values()
)
#: Types that each walk is compiled for on one machine; the next machine takes the next ones.
EACH = 2 if EVERY_TEST_RUNS else 1
#: Of the walks, a machine runs one in so many in `make test`; the next machine takes the next ones.
SHARED = 2


def whole(array: Array) -> Array:
    """The memory of an array from its first element to its last, gaps included."""
    reach = sum((size - 1) * step for size, step in zip(array.shape, array.strides, strict=True))
    return np.asarray(array.base)[: reach // array.itemsize + 1]


def product_case(kernel: Emitted, shape: tuple[int, ...], turn: int) -> Case:
    """One call; sums of small integers are exact, so that every bit counts."""
    problem = kernel.problem
    assert isinstance(problem, SumOfProducts)
    made = make(problem, shape, gap=turn % 3)
    result = made.arrays[-1]
    placed = []
    for number, array in enumerate(made.arrays):
        content = whole(array).copy()
        if array is result:
            result[...] = made.expected
        placed.append(
            Placed(
                content.tobytes(),
                argument=number,
                at_end=bool((turn + number) % 2),
                expected=whole(array).tobytes() if array is result else None,
            )
        )
    return Case(
        label=f"{kernel.name} {shape} gap {turn % 3}",
        kernel=kernel.number,
        signature=Signature.ADAPTED,
        element=problem.dtype.real.size,
        integers=(*shape, *strides_of(problem, made)),
        operands=tuple(placed),
        values=Values.of(problem.dtype),
    )


def product_cases(kernels: Kernels, first: int) -> Iterator[Case]:
    """Every walk, or a share of them; types take turns."""
    turn = first
    for walk, factors in share(PROBLEMS, SHARED, first):
        for _ in range(EACH):
            problem = SumOfProducts(walk, factors, SUM_DTYPES[turn % len(SUM_DTYPES)])
            kernel = kernels.emit(problem)
            for number, shape in enumerate(shapes(kernel.machine.isa.lanes(problem.acc))):
                yield product_case(kernel, shape, turn + number)
            turn += 1


@pytest.mark.parametrize("machine", RUN, ids=lambda machine: machine.name)
def test_products_run(machine: Machine, tmp_path: Path) -> None:
    skip_without_tools(machine)
    kernels = Kernels(machine)
    status, output, complaints = run(kernels, product_cases(kernels, RUN.index(machine)), tmp_path)
    assert status == 0, output + complaints


def test_the_harness_sees_wrong_sums(tmp_path: Path) -> None:
    """A sum that differs by its last bit."""
    machine = next(machine for machine in RUN if machine.arch == "x86_64")
    skip_without_tools(machine)
    kernels = Kernels(machine)
    right = product_case(kernels.emit(SumOfProducts("along")), (1, 1, 1, 3, 40), 0)
    content = right.operands[-1].expected
    assert content is not None
    changed = np.frombuffer(content, np.int32).copy()
    changed[1] += 1
    other = Placed(**{**vars(right.operands[-1]), "expected": changed.tobytes()})
    wrong = Case(**{**vars(right), "operands": (*right.operands[:-1], other)})
    status, output, _ = run(kernels, [right, wrong], tmp_path)
    assert status == 1
    assert "2 cases, 1 failed" in output
