"""Machine code of attention with few queries: the loops over keys and over values, of bf16 and f32."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from functools import cache

import pytest
from assembly_text import AssemblyLoop, innermost_loops, vector_stack_moves

from tilewright.compiler.pipeline import run_stages
from tilewright.llvm.target import emit_assembly
from tilewright.machine.catalog import find_machine
from tilewright.ops.attention.problem import Attention

#: Multiplies of one turn of the loops of four rows: 4 keys of 128 elements, and a pair of values (one, where
#: products are not of pairs) by the columns whose sums 16 registers hold.
MULTIPLIES = {"bf16": ("vdpbf16ps", 4 * 4 * 4, 16), "f32": ("vfmadd", 4 * 4 * 8, 16)}

#: Exchanges and additions that make one vector of 16 sums of 16 lanes: rounds of 8, 4, 2 and 1 pairs.
EXCHANGES, ADDITIONS = 30, 15


@cache
def loops_of(dtype: str) -> list[AssemblyLoop]:
    machine = find_machine("znver5")
    done = run_stages(Attention(128, dtype=dtype, schedule="decode"), machine, until="llvm")
    return innermost_loops(emit_assembly(done.llvm, done.name, machine), machine.triple)


def loop_of(dtype: str, count: int) -> AssemblyLoop:
    """The loop with so many multiplies of the first four rows, with which what is next is fetched."""
    word, _, _ = MULTIPLIES[dtype]
    found = (
        loop
        for loop in loops_of(dtype)
        if len(loop.matching(f"^{word}")) == count and loop.matching("^prefetcht0")
    )
    return min(found, key=lambda loop: len(loop.matching("^prefetcht0")))  # fewer rows have more keys


@pytest.mark.parametrize("dtype", MULTIPLIES)
def test_keys_are_multiplied_and_turned_in_registers(dtype: str) -> None:
    loop = loop_of(dtype, MULTIPLIES[dtype][1])
    assert not vector_stack_moves(loop)
    assert len(loop.matching("^(vunpck|vshuf)")) == EXCHANGES
    assert len(loop.matching("^vaddps")) == ADDITIONS
    assert len(loop.matching("^prefetcht0")) == 4 * 128 * (2 if dtype == "bf16" else 4) // 64


@pytest.mark.parametrize("dtype", MULTIPLIES)
def test_values_are_added_without_a_conversion(dtype: str) -> None:
    """Of bf16, two instructions interleave each vector of two values; weights are broadcast from memory."""
    loop = loop_of(dtype, MULTIPLIES[dtype][2])
    assert not vector_stack_moves(loop)
    assert len(loop.matching("^vpunpck")) == (4 if dtype == "bf16" else 0)
    assert not loop.matching("^(vcvt|vpmovzx|vpsll|vinsert|vpermt2)")
