"""Machine code of functions of rows: the loops of each pass keep their sums and constants in registers."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import re
from functools import cache

import pytest
from assembly_text import AssemblyLoop, innermost_loops, vector_loads, vector_stack_moves
from tiers import crossed

from tilewright.compiler.pipeline import run_stages
from tilewright.llvm.target import emit_assembly
from tilewright.machine.catalog import find_machine
from tilewright.ops.rows.problem import RowFunction

#: Rows with vectors of their own and registers enough; Neon has half-length ones.
MACHINES = ("znver5", "neoverse-v2", "pwr9")
#: Calls; a loop over pieces of a row asks between two of them whether its call was cancelled.
CALLS = r"^(callq|bl|blr|bctrl)\b"
#: Multiply-adds of one exponential: 3 reduce its argument, 5 are its polynomial.
EXPONENTIAL = 8


@cache
def loops_of(op: str, layout: str, target: str) -> list[AssemblyLoop]:
    machine = find_machine(target)
    done = run_stages(RowFunction(op, layout=layout), machine, until="llvm")
    return innermost_loops(emit_assembly(done.llvm, done.name, machine), machine.triple)


def with_most(loops: list[AssemblyLoop], pattern: str) -> AssemblyLoop:
    """The loop in which most instructions match."""
    return max(loops, key=lambda loop: len(loop.matching(pattern)))


def written(line: str) -> str:
    """The register that an instruction of AVX-512 writes: the last one, in front of a mask."""
    return str(re.findall(r"%zmm\d+", line)[-1])


OPERATIONS = (
    *(("softmax", "row"), ("log_softmax", "row"), ("layer_norm", "row"), ("rms_norm", "row"), ("sum", "row")),
    *(("max", "row"), ("layer_norm", "col"), ("rms_norm", "col"), ("mean", "col")),
)


@pytest.mark.parametrize(("machine", "op", "layout"), crossed(MACHINES, OPERATIONS, len(MACHINES)), ids=str)
def test_no_vector_goes_through_the_stack(machine: str, op: str, layout: str) -> None:
    """In loops over elements; those around them, over rows and pieces of long ones, may use it."""
    loops = [loop for loop in loops_of(op, layout, machine) if not loop.function.startswith("task")]
    loops = [loop for loop in loops if vector_loads(loop) and not loop.matching(CALLS)]
    assert loops
    for loop in loops:
        assert not vector_stack_moves(loop)


def test_exponentials_of_a_turn() -> None:
    """Four vectors: each fetched for later, loaded once, stored once where the buffer is."""
    loop = with_most(loops_of("softmax", "row", "znver5"), "^vfn?m(add|sub)")
    assert len(loop.matching("^vfn?m(add|sub)")) == 4 * EXPONENTIAL
    assert len(loop.matching("^prefetcht0")) == 4
    assert len(loop.matching(r"^vmovups\s+%zmm")) == 4
    assert len(loop.matching("^v(div|gather|broadcast)")) == 0


def test_side_by_side_a_maximum_costs_one_exponential_more() -> None:
    """Eight columns at once; constants are memory operands where registers end, which costs nothing."""
    loop = with_most(loops_of("softmax", "col", "znver5"), "^vfn?m(add|sub)")
    assert len(loop.matching("^vfn?m(add|sub)")) == 9 * EXPONENTIAL
    assert len(loop.matching(r"^vmovups\s+%zmm\d+, \(?[-\d]*\(")) == 1  # the maximum
    assert len(loop.matching(r"^vmovupd\s+%zmm\d+, \(?[-\d]*\(")) == 2  # the sum, in float64


@pytest.mark.parametrize(("op", "layout"), [("softmax", "row"), ("softmax", "col"), ("rms_norm", "row")])
def test_results_go_past_the_caches(op: str, layout: str) -> None:
    loop = with_most(loops_of(op, layout, "znver5"), "^vmovntps")
    assert len(loop.matching("^vmovntps")) == (8 if layout == "col" else 4)


def test_an_extreme_waits_for_no_comparison() -> None:
    """One instruction for the extreme; of NaN, found beside, a comparison and a move into other registers."""
    turns = [loop for loop in loops_of("max", "row", "znver5") if len(loop.matching("^vmaxps")) == 4]
    assert turns
    for loop in turns:
        assert len(loop.matching("^vcmpunordps")) == 4
        moves = loop.matching(r"^(vmov\w+|vblend\w+)\s+.*\{%k\d\}")
        assert len(moves) == 4
        extremes, beside = ({written(line) for line in lines} for lines in (loop.matching("^vmaxps"), moves))
        assert not extremes & beside
