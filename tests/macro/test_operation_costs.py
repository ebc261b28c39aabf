"""Operations of functions against the instructions of compiled kernels."""

from __future__ import annotations

import re

import pytest

import tilewright as tw
from tilewright.compiler.operation import Problem
from tilewright.macro.operations import FUNCTION_OPERATIONS, ROW_WORK, function_operations
from tilewright.spec.functions import UnaryOp
from tilewright.spec.row_functions import RowOp
from tilewright.tools.explore.loops import AssemblyLoop, innermost_loops


def loops_of(problem: Problem) -> list[AssemblyLoop]:
    """The innermost loops of a kernel for a Zen 4, whose vectors have 512 bits."""
    kernel = tw.compile(problem, "znver4")
    return list(innermost_loops(kernel.assembly, kernel.machine.triple))


def counts_of(loop: AssemblyLoop) -> tuple[int, int, int]:
    """Arithmetic on vectors, loads and stores of vectors; a constant in memory is no load of a row."""
    vectors = [line.split("#")[0].strip() for line in loop.instructions if re.search("zmm", line)]
    stores = [line for line in vectors if line.endswith(")")]
    loads = [line for line in vectors if "(" in line and line not in stores and "rip" not in line]
    moves = [line for line in [*stores, *loads] if line.startswith(("vmov", "vpmov"))]
    return len(vectors) - len(moves), len(loads), len(stores)


@pytest.mark.parametrize("op", [UnaryOp.RELU, UnaryOp.SQUARE, UnaryOp.EXP])
def test_operations_of_a_function_are_those_of_its_loop(op: UnaryOp) -> None:
    widest = max(loops_of(tw.Elementwise(op.value)), key=lambda loop: counts_of(loop)[2])
    arithmetic, _, stores = counts_of(widest)
    assert arithmetic / stores == pytest.approx(function_operations(op, 32), rel=0.12, abs=1)


def test_every_function_has_operations() -> None:
    assert set(FUNCTION_OPERATIONS) == set(UnaryOp)
    assert set(ROW_WORK) == set(RowOp)
    assert all(double >= single for single, double in FUNCTION_OPERATIONS.values())


def test_passes_of_a_row_are_loops() -> None:
    # Four vectors a turn: squares are added in one loop, and the other stores products.
    loops = {counts_of(loop) for loop in loops_of(tw.RowFunction("rms_norm"))}
    work = ROW_WORK[RowOp.RMS_NORM]
    passes = [one for one in loops if one[1] == 4]
    assert {stores for _, _, stores in passes} == {0, 4}
    least = [min(one for one in passes if one[2] == stores) for stores in (0, 4)]
    assert sum(loads for _, loads, _ in least) == 4 * work.loads
    assert sum(arithmetic for arithmetic, _, _ in least) == 4 * work.operations
    assert sum(stores for _, _, stores in least) == 4 * work.stores
