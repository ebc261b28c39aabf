"""Attention on every machine that an emulator runs: every feature in turn, several blocks, guard pages."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from attention_calls import FEATURES, Sizes, allowed, make, parameters
from shares import share
from support import Array

from emulated.case_file import Case, Placed, Signature, Values
from emulated.emulators import emulated_machines, variants
from emulated.kernels import Emitted, Kernels
from emulated.runs import run, skip_without_tools
from tilewright.machine.machine import Machine
from tilewright.ops.attention.cut import DecodeCut
from tilewright.ops.attention.problem import Attention, Schedule
from tilewright.spec.dtype import BF16

MACHINES = emulated_machines()
#: The first machine of each row, unit and length of vectors: squares, dot products, outer products.
RUN = tuple(
    {
        (machine.isa.name, machine.isa.tile(BF16).instruction, machine.isa.vector_bits): machine
        for machine in reversed((*MACHINES, *variants(MACHINES)))
    }.values()
)
#: Few queries, and more than two tiles of any row beside more keys than a block has with small caches.
SIZES = (Sizes(1, 1, 2, 5, 9), Sizes(2, 2, 1, 37, 70))
#: Kernels of one machine, one of each type and schedule; the next machine takes the next features.
EACH = 4 * len(Schedule)
#: Of these, `make test` runs one in so many; of each machine others.
SHARED = 8
#: Of a row of sums, times what is allowed of a result: as many weights are added.
SUMMED = 20


def placed(
    name: str, array: Array, number: int, about: tuple[Array, float] | None, *, at_end: bool
) -> Placed:
    """One argument; `about`: a result in float64, and how much of itself, or of 1, it may be off."""
    content = array.tobytes()
    if about is None:
        return Placed(content, argument=number, at_end=at_end)
    exact, bound = about
    expected = exact.astype(array.dtype)
    with np.errstate(invalid="ignore"):
        differences = np.where(np.isfinite(exact), bound * (1 + np.abs(exact)), 0.0)
    values = Values[{"bfloat16": "BF16"}.get(array.dtype.name, f"F{8 * array.itemsize}")]
    return Placed(
        content,
        argument=number,
        at_end=at_end,
        expected=expected.tobytes(),
        allowed=differences.tobytes(),
        values=values,
        element=array.itemsize,
    )


def attention_case(kernel: Emitted, sizes: Sizes, turn: int) -> Case:
    """One call; rows behind the end of a sequence stay as they are."""
    problem = kernel.problem
    assert isinstance(problem, Attention)
    made = make(problem, sizes, seed=turn)
    blocks = replace(made, problem=problem.scheduled(Schedule.BLOCKS))
    integers, scalars, buffers = parameters(blocks)
    call, bound = made.call, allowed(problem)
    results = dict(zip(("out", "row_max", "row_sum"), made.expected(), strict=True))
    about: dict[str, tuple[Array, float]] = {}
    for name, exact in results.items():
        whole = getattr(call, name).astype(np.float64)
        for item in range(sizes.batch):
            rows = slice(0, sizes.lengths(item)[0])
            whole[item, :, rows] = exact[item, :, rows]
        about[name] = (whole.reshape(-1), SUMMED * bound if name == "row_sum" else bound)
    operands = tuple(
        placed(name, array, number, about.get(name), at_end=bool((turn + number) % 3))
        for number, (name, array) in enumerate(buffers.items())
    )
    if isinstance(kernel.cut, DecodeCut):
        splits = kernel.cut.splits(sizes.keys)
        partials = kernel.cut.partials(sizes.batch, sizes.kv_heads * sizes.group, sizes.queries, splits)
        integers |= {"splits": splits, "heads_together": 1 + turn % sizes.kv_heads}
        states = np.full(partials, np.nan, problem.acc.numpy).tobytes()
        operands += (Placed(states, argument=len(operands), at_end=bool(turn % 2), workspace=True),)
    scale, softcap = scalars["scale"], scalars.get("softcap", 0.0)
    return Case(
        label=f"{kernel.name} {sizes} case {turn}",
        kernel=kernel.number,
        signature=Signature.ADAPTED,
        element=1,
        integers=tuple(integers.values()),
        operands=operands,
        alpha=scale,
        beta=softcap,
        scratch_bytes=kernel.scratch_bytes,
    )


def attention_cases(kernels: Kernels, first: int) -> Iterator[Case]:
    """Kernels of every type; caches small and as they are, features and schedules take turns."""
    kinds = enumerate(itertools.product(Schedule, ("f32", "bf16", "f16", "f64")), first)
    for turn, (schedule, dtype) in share(kinds, SHARED, first // EACH):
        feature = turn + turn // EACH**2  # so that the machines of `make test` meet every one
        problem = Attention(20, 24, dtype, **FEATURES[feature % len(FEATURES)], schedule=schedule)
        kernel = kernels.emit(problem, near=bool(turn % 3))
        for sizes in SIZES:
            yield attention_case(kernel, sizes, turn)


@pytest.mark.parametrize("machine", RUN, ids=lambda machine: machine.name)
def test_attention_runs(machine: Machine, tmp_path: Path) -> None:
    skip_without_tools(machine)
    kernels = Kernels(machine)
    first = RUN.index(machine) * EACH
    status, output, complaints = run(kernels, attention_cases(kernels, first), tmp_path)
    assert status == 0, output + complaints


def test_the_harness_sees_wrong_attention(tmp_path: Path) -> None:
    """A result, a sum and a row that must stay, each changed by more than is allowed."""
    machine = next(machine for machine in MACHINES if machine.arch == "x86_64")
    skip_without_tools(machine)
    kernels = Kernels(machine)
    kernel = kernels.emit(Attention(8, bounded=True))
    right = attention_case(kernel, Sizes(2, 1, 1, 9, 12), 0)
    wrong = []
    for number in (3, 5, 6):
        operand = right.operands[number]
        assert operand.expected is not None
        for place in (0, -1):  # behind the end of the second sequence, which is shorter, nothing is written
            changed = np.frombuffer(operand.expected, np.float32).copy()
            changed[place] += 1e-2
            other = Placed(**{**vars(operand), "expected": changed.tobytes()})
            wrong.append(
                Case(
                    **{
                        **vars(right),
                        "operands": (*right.operands[:number], other, *right.operands[number + 1 :]),
                    }
                )
            )
    status, output, _ = run(kernels, [right, *wrong], tmp_path)
    assert status == 1
    assert f"{len(wrong) + 1} cases, {len(wrong)} failed" in output
