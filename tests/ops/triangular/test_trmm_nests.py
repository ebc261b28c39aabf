"""The nests of products with a triangular matrix: the interpreter's result equals the reference."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from emulated_rows import drawn, stored
from shares import share
from tiers import crossed

import tilewright as tw
from tilewright.ir.interpret import interpret
from tilewright.ir.nodes import Program
from tilewright.ir.parse import parse_program
from tilewright.ir.text import print_program
from tilewright.ir.verify import verify
from tilewright.machine.catalog import find_machine
from tilewright.ops.triangular.trmm_nest import TRMM_SIZES, build_trmm, choose_trmm, trmm_instruction
from tilewright.ops.triangular.trmm_problem import Side, Trmm
from tilewright.spec.problem import Layout

MACHINES = ("znver5", "haswell", "sapphirerapids", "neoverse-v2", "pwr10", "rva23", "x86-64-v2")
TYPES = (("f32", None), ("bf16", None), ("bf16", "f32"), ("i8", "i32"), ("c64", None))
#: Nothing, one element, tails, several blocks of rows, columns and depths.
SIZES = ((0, 3), (3, 0), (1, 1), (13, 35), (41, 7), (75, 70))


def run(program: Program, problem: Trmm, sizes: tuple[int, int], alpha: float, threads: int) -> None:
    """Runs a program on random matrices; what stands beyond the triangle, and C, is not to be read."""
    random, (m, n) = np.random.default_rng(sum(sizes)), sizes
    order = m if problem.side is Side.LEFT else n
    a, b = drawn(random, problem.dtype, (order, order)), drawn(random, problem.dtype, (m, n))
    expected = stored(problem.reference(a, b, alpha=alpha), problem.out_dtype)
    beyond = np.tri(order, k=-1 if problem.unit else 0, dtype=bool)
    beyond = ~(beyond if problem.lower else beyond.T)
    a[beyond] = 99 if problem.dtype.is_integer else np.nan
    c = np.full((m, n), 99 if problem.out_dtype.is_integer else np.nan, problem.out_dtype.numpy)
    buffers: dict[str, Any] = {}
    strides: dict[str, int] = {"m": m, "n": n}
    for operand, array in zip(problem.operands, (a, b, c), strict=True):
        dense = np.asarray(array, order="F" if operand.layout is Layout.COL else "C")
        flat = dense.reshape(-1, order="A")
        buffers[operand.name] = flat.view(operand.dtype.real.numpy) if operand.name == "c" else flat
        rows, columns = array.shape
        steps = (1, rows) if operand.layout is Layout.COL else (columns, 1)
        strides |= dict(zip((f"rs_{operand.name}", f"cs_{operand.name}"), steps, strict=True))
    interpret(
        program, {name: strides[name] for name in TRMM_SIZES}, {"alpha": alpha}, buffers, threads=threads
    )
    found = buffers["c"].view(problem.out_dtype.numpy)
    found = found.reshape((m, n), order="F" if problem.c is Layout.COL else "C")
    np.testing.assert_array_equal(found, expected, err_msg=f"{problem} {sizes} {alpha}")


@pytest.mark.parametrize(("name", "types"), crossed(MACHINES, ([types] for types in TYPES), 2), ids=str)
def test_nests_mean_the_problem(name: str, types: tuple[str, str | None]) -> None:
    """Layouts, sizes, factors and threads take turns, on blocks of a few tiles."""
    machine, turns = find_machine(name), itertools.cycle(itertools.product((1.0, 2.0, 0.0), (1, 3)))
    kinds = itertools.product(Side, (True, False), (True, False))
    numbered = enumerate(kinds, MACHINES.index(name))
    for number, (side, lower, unit) in share(numbered, 3, MACHINES.index(name) + TYPES.index(types)):
        layouts: dict[str, Any] = {"a": ("row", "col")[number % 2], "c": ("row", "col")[number // 2 % 2]}
        problem = Trmm(dtype=types[0], out_dtype=types[1], side=side, lower=lower, unit=unit, **layouts)
        cut = choose_trmm(problem, machine)
        cut = replace(cut, mc=2 * cut.mr, nc=2 * cut.nr, kc=2 * cut.mr)
        program = verify(build_trmm(problem, cut, machine, "t"))
        assert parse_program(print_program(program)) == program
        for sizes, (alpha, threads) in zip(SIZES[number % 3 :: 3], turns, strict=False):
            run(program, problem, sizes, alpha, threads)


@pytest.mark.parametrize("name", MACHINES)
def test_no_instruction_takes_several_depths(name: str) -> None:
    """Which would multiply what stands beyond the triangle; narrow types are widened instead."""
    for dtype in ("f32", "f64", "bf16", "f16", "i8", "u8", "i16", "i32", "c64"):
        one = trmm_instruction(tw.Trmm(dtype=dtype), find_machine(name))
        assert (one.k, one.kr) == (1, 1)
