"""The nests of attention's gradients, by NumPy: every row's tiles give them, whoever computes."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from backward_calls import Case, Drawn, draw, errors_of, sizes_of
from shares import looped
from tiers import crossed

from tilewright.ir.interpret import interpret
from tilewright.ir.nodes import If, Program
from tilewright.ir.parse import parse_program
from tilewright.ir.text import print_program
from tilewright.machine.catalog import find_machine
from tilewright.ops.attention.backward_cut import BackwardBlocking, choose_backward
from tilewright.ops.attention.backward_nest import build_backward
from tilewright.ops.attention.backward_problem import AttentionBackward

#: Machines whose tiles differ: one row or several an instruction, one depth or several, masks or none.
MACHINES = ("znver5", "haswell", "neoverse-v2", "pwr10", "sapphirerapids")
#: Errors of f32 sums; of weights, gradients and results of 8 bits.
TOLERANCE = {"f32": 2e-6, "bf16": 0.01}

CAUSAL = Case(heads=2, queries=50, keys=70, head_dim=24, value_dim=40, range=(-1000, 21))
WINDOW = Case(batch=2, heads=4, kv_heads=2, queries=90, keys=80, head_dim=17, value_dim=9, range=(-20, 5))
MASKED = Case(queries=33, keys=45, head_dim=8, value_dim=20, mask="u8", softcap=1.5, slopes=True)
ADDED = Case(queries=33, keys=13, head_dim=8, value_dim=20, mask="f32")
UNSEEN = Case(queries=60, keys=20, head_dim=8, value_dim=8, range=(-1000, -39))


def small(problem: AttentionBackward, machine: str) -> BackwardBlocking:
    """A machine's tiles in blocks so small that every loop makes several turns."""
    usual = choose_backward(problem, find_machine(machine))
    unit = usual.b1 // 6
    return BackwardBlocking(usual.mr, usual.nr, usual.kr, unit, 32 if 32 % usual.nr == 0 else usual.nr, unit)


def run(case: Case, machine: str, threads: int) -> Drawn:
    """The nest in small blocks, as so many threads run it."""
    problem, drawn = case.problem, draw(case)
    program = build_backward(problem, small(problem, machine), find_machine(machine), "g")
    buffers = {
        buffer.name: np.ascontiguousarray(getattr(drawn.call, buffer.name)).reshape(-1)
        if buffer.name == "mask"
        else getattr(drawn.call, buffer.name).reshape(-1)
        for buffer in program.arguments
    }
    contiguous = drawn.call
    if contiguous.mask is not None:
        contiguous = contiguous._replace(mask=np.ascontiguousarray(contiguous.mask))
    scalars = {"scale": contiguous.scale, "softcap": contiguous.softcap}
    interpret(program, sizes_of(case, contiguous), scalars, buffers, threads)
    return drawn


CASES = {"causal": CAUSAL, "window": WINDOW, "masked": MASKED, "added": ADDED, "unseen": UNSEEN}


@pytest.mark.parametrize(
    ("name", "machine", "dtype"), crossed(CASES, product(MACHINES, ["f32", "bf16"]), len(CASES))
)
def test_gradients_of_every_row(name: str, machine: str, dtype: str) -> None:
    case = replace(CASES[name], dtype=dtype)
    assert max(errors_of(run(case, machine, threads=1))) < TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_no_bit_depends_on_the_threads(dtype: str) -> None:
    """Three heads: together for one thread, apart for eight."""
    case = replace(CAUSAL, heads=3, kv_heads=3, dtype=dtype)
    alone, shared = (run(case, "znver5", threads).call for threads in (1, 8))
    for name in ("dq", "dk", "dv"):
        assert getattr(alone, name).tobytes() == getattr(shared, name).tobytes()


def program_of(dtype: str = "f32") -> Program:
    problem, machine = (
        AttentionBackward(64, dtype=dtype, bounded=True, mask="u8", slopes=True),
        find_machine("pwr10"),
    )
    return build_backward(problem, choose_backward(problem, machine), machine, "g")


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_text_is_read_back(dtype: str) -> None:
    program = program_of(dtype)
    assert parse_program(print_program(program)) == program


@looped("name", MACHINES)
@looped("head", [16, 64, 128, 512, 1024])
def test_scratch_does_not_grow_with_lengths(head: int, name: str) -> None:
    """Nothing of the size of the scores: at most a few MiB for each thread."""
    machine = find_machine(name)
    for dtype in ("f32", "bf16"):
        problem = AttentionBackward(head, dtype=dtype, mask="u8")
        program = build_backward(problem, choose_backward(problem, machine), machine, "g")
        total = sum((buffer.size or 0) * buffer.dtype.size for buffer in program.scratch)
        assert total < 5 << 20, (dtype, total)


def test_narrow_sums_are_kept_where_they_fit() -> None:
    """bf16 adds to dQ in scratch: whole heads only up to a number of queries, f32 always."""
    conditions = {}
    for dtype in ("f32", "bf16"):
        (choice,) = (statement for statement in program_of(dtype).body if isinstance(statement, If))
        conditions[dtype] = len(choice.condition.terms[0].terms)
    assert conditions == {"f32": 1, "bf16": 2}
