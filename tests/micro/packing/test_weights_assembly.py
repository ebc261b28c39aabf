"""Machine code of tiles that take words apart: one operation on bits and one subtraction a vector."""

from __future__ import annotations

from functools import cache

import pytest
from assembly_text import AssemblyLoop, innermost_loops, multiplies, vector_stack_moves
from tiers import each_value

from tilewright.compiler.pipeline import run_stages
from tilewright.llvm.target import emit_assembly
from tilewright.machine.catalog import find_machine
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.weights import Weights

#: Rows and vectors of columns of the tiles of 32 registers, 16 of them on 16: see `ops/gemm/narrow.py`.
TILES = {"znver5": ((8, 2), (4, 4), (2, 4), (1, 8)), "haswell": ((4, 2), (2, 2), (1, 4))}


@cache
def loops_of(name: str, form: str) -> list[AssemblyLoop]:
    """Innermost loops that multiply vectors, of float32 and a form of weights."""
    machine = find_machine(name)
    done = run_stages(Gemm(weights=Weights.parse(form)), machine, until="llvm")
    found = innermost_loops(emit_assembly(done.llvm, done.name, machine), machine.triple)
    return [loop for loop in found if multiplies(loop)]


def loop_of(name: str, form: str, rows: int, vectors: int) -> AssemblyLoop:
    """The loop of one tile over whole words: with as many multiply-adds, and prefetches of words."""
    elements = Weights.parse(form).elements
    lines = vectors * elements.word_bytes * find_machine(name).isa.vector_bits // 32 // 64
    words = max(1, 4 // elements.depths)  # of one turn
    wanted = rows * vectors * elements.depths * words
    return next(
        loop
        for loop in loops_of(name, form)
        if multiplies(loop) == wanted and len(loop.matching("^prefetcht0")) == max(lines, 1) * words
    )


#: 16 registers do not hold the constants of integers as well: a few values wait on the stack there.
WHOLE = [("znver5", form) for form in ("i8", "i4g64", "bf16", "f16")] + [
    ("haswell", "bf16"),
    ("haswell", "f16"),
]


@pytest.mark.parametrize(
    ("name", "form", "rows", "vectors"), [(*row, *tile) for row in WHOLE for tile in TILES[row[0]]]
)
@each_value
def test_no_tile_spills_a_sum(name: str, form: str, rows: int, vectors: int) -> None:
    loop = loop_of(name, form, rows, vectors)
    stored = [line for line in vector_stack_moves(loop) if line.rstrip().endswith("(%rsp)")]
    assert not stored


@pytest.mark.parametrize(("rows", "vectors"), TILES["znver5"])
def test_integers_become_floats_by_bits_and_one_subtraction(rows: int, vectors: int) -> None:
    """Shifts: once for the upper half of each word; nothing is converted, nothing shuffled."""
    for form, depths in (("i8", 4), ("i4g64", 8)):
        counts = loop_of("znver5", form, rows, vectors).counts
        assert counts["vpternlogd"] + counts["vpandd"] == vectors * depths
        assert counts["vsubps"] + counts["vaddps"] == vectors * depths
        assert counts["vpsrld"] == vectors
        assert not any(name.startswith(("vcvt", "vpmov", "vperm", "vpshuf")) for name in counts)


def test_words_of_halves() -> None:
    counts = loop_of("znver5", "bf16", 1, 8).counts
    masked = sum(count for name, count in counts.items() if name.startswith(("vand", "vpand")))
    assert (counts["vpslld"], masked) == (16, 16)  # two words a turn
    assert loop_of("znver5", "f16", 1, 8).counts["vcvtph2ps"] == 32
