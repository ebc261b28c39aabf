"""Machine code of what reads a matrix once: dot products, transposed lines, streamed rows, epilogues."""

from __future__ import annotations

import re
from functools import cache
from itertools import product

import pytest
from _pytest.mark.structures import ParameterSet
from assembly_text import (
    AssemblyLoop,
    functions,
    innermost_loops,
    multiplies,
    only,
    quadwords_loaded,
    vector_stack_moves,
)
from tiers import first_of

from tilewright.compiler.pipeline import run_stages
from tilewright.ir.nodes import DOT_SUMS, LINE_BITS
from tilewright.llvm.target import emit_assembly
from tilewright.machine.catalog import find_machine, targets
from tilewright.machine.isa import Isa
from tilewright.machine.isa_rows import AVX2, AVX512, GENERIC128, NEON
from tilewright.micro.tiles.dot import ROWS
from tilewright.micro.tiles.transposed import TransposedKernel
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.gemm.streaming import STREAMED_DEPTH, STREAMED_VECTORS, most_few
from tilewright.spec.dtype import F32, F64, DType
from tilewright.spec.problem import Layout

X86_SUFFIX = {F32: "s", F64: "d"}

FLOATS = (F32, F64)
#: What names of functions begin with.
READING_ONCE = ("dot", "transposed", "square", "epilogue", "task")


@cache
def assembly(name: str, dtype: DType) -> str:
    """Of the kernel of any layouts, the functions that read a matrix once."""
    layout, machine = Layout.STRIDED, find_machine(name)
    done = run_stages(Gemm(dtype=dtype, a=layout, b=layout, c=layout), machine, until="llvm")
    return emit_assembly(only(done.llvm, *READING_ONCE), done.name, machine)


@cache
def loops_of(name: str, dtype: DType, function: str) -> list[AssemblyLoop]:
    """Innermost loops that multiply vectors, in functions whose names begin with a word."""
    found = innermost_loops(assembly(name, dtype), find_machine(name).triple)
    return [loop for loop in found if loop.function.startswith(function) and multiplies(loop)]


def most_multiplying(loops: list[AssemblyLoop]) -> AssemblyLoop:
    return max(loops, key=multiplies)


def function_of(name: str, dtype: DType, word: str) -> AssemblyLoop:
    """All instructions of the one function of a name."""
    return functions(assembly(name, dtype), find_machine(name).triple)[word]


def instructions_of(case: tuple[str, DType]) -> tuple[object, ...]:
    """What changes the code of vectors: the row, their length and the type."""
    machine, dtype = find_machine(case[0]), case[1]
    return machine.arch, machine.isa.name, machine.isa.vector_bits, machine.isa.tile(dtype).instruction, dtype


def of_isa(*rows: Isa) -> list[ParameterSet]:
    """The machines of some rows; in `make test` the first one of each length of vectors."""
    words = [row.name for row in rows]
    names = [name for name in targets() if find_machine(name).isa.name in words]
    return first_of(product(names, FLOATS), instructions_of)


#: Tests of paths that products of few rows do not have where a matrix unit multiplies the type.
OF_VECTOR_UNITS = {
    "test_transposed_lines",
    "test_streamed_rows",
    "test_epilogues",
}


@pytest.fixture(autouse=True)
def _few_rows_on_matrix_units(request: pytest.FixtureRequest) -> None:
    """One row goes through the unit too, so that its sums have the order of every other row's."""
    node = request.node
    if node.originalname in OF_VECTOR_UNITS:
        name, dtype = (node.callspec.params[word] for word in ("name", "dtype"))
        if find_machine(name).isa.tile(dtype).m > 1:
            pytest.xfail("matrix units take packed operands: few rows are not streamed there")


each_vector = pytest.mark.parametrize(
    ("name", "dtype"), first_of(product(targets(), FLOATS), instructions_of), ids=str
)

SAMPLE = """
_first:
	.cfi_startproc
	addq	$1, %rax                        # counts
.LBB0_1:
	jne	.LBB0_1
	retq
second:
	retq
"""


def test_functions_of_a_sample() -> None:
    found = functions(SAMPLE, "x86_64-linux")
    assert found["first"].instructions == ("addq\t$1, %rax", "jne\t.LBB0_1", "retq")
    assert found["second"].instructions == ("retq",)


# --- dot products -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "dtype"), of_isa(AVX512, AVX2), ids=str)
def test_dot_loops_of_fma_rows(name: str, dtype: DType) -> None:
    """Each vector of b is loaded once for all rows; those of A are operands in memory."""
    suffix, isa = X86_SUFFIX[dtype], find_machine(name).isa
    register = {512: "zmm", 256: "ymm"}[isa.vector_bits]
    vectors_a_line = 512 // isa.vector_bits
    main = most_multiplying(loops_of(name, dtype, "dot"))
    assert (
        len(main.matching(rf"^vfmadd\d+p{suffix}\s+.*\(.*\), %{register}\d+, %{register}\d+$"))
        == ROWS * DOT_SUMS
    )
    assert len(main.matching(rf"^vmovup[sd]\s.*\(.*\), %{register}\d+$")) == DOT_SUMS
    assert main.counts["prefetcht0"] == ROWS * DOT_SUMS // vectors_a_line, "one for each line of A"
    assert multiplies(main) == ROWS * DOT_SUMS
    assert len(main.instructions) == ROWS * DOT_SUMS + DOT_SUMS + main.counts["prefetcht0"] + 3, (
        "and the counter"
    )


@pytest.mark.parametrize(("name", "dtype"), of_isa(GENERIC128), ids=str)
def test_dot_loops_without_fma(name: str, dtype: DType) -> None:
    suffix = X86_SUFFIX[dtype]
    main = most_multiplying(loops_of(name, dtype, "dot"))
    assert main.counts[f"mulp{suffix}"] == main.counts[f"addp{suffix}"] == ROWS * DOT_SUMS
    assert len(main.matching(r"^movup[sd]\s.*\(.*\), %xmm")) == ROWS * DOT_SUMS + DOT_SUMS


@pytest.mark.parametrize(("name", "dtype"), of_isa(NEON), ids=str)
def test_dot_loops_of_neon(name: str, dtype: DType) -> None:
    main = most_multiplying(loops_of(name, dtype, "dot"))
    assert main.counts["fmla"] == ROWS * DOT_SUMS
    assert quadwords_loaded(main) == ROWS * DOT_SUMS + DOT_SUMS


@each_vector
def test_dot_products_keep_their_vectors_in_registers(name: str, dtype: DType) -> None:
    loops = loops_of(name, dtype, "dot")
    assert sorted(map(multiplies, loops)) == sorted((ROWS * DOT_SUMS, ROWS, DOT_SUMS, 1))
    for loop in loops:
        assert not loop.matching(r"%rsp|\bsp\b"), "neither vectors nor pointers on the stack"
    whole = function_of(name, dtype, f"dot_{dtype}_{dtype}_{dtype}")
    assert not [line for line in vector_stack_moves(whole) if not is_saved_register(line)]
    assert not whole.matching(r"^(callq?|bl)\b")


def is_saved_register(line: str) -> bool:
    """Whether an AArch64 function only keeps d8 to d15 for its caller."""
    return re.match(r"(stp|ldp|str|ldr)\s+d(8|9|1[0-5])\b", line) is not None


# --- lines of few rows --------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "dtype"), of_isa(AVX512, AVX2, GENERIC128), ids=str)
def test_squares_of_x86(name: str, dtype: DType) -> None:
    """Each lane loaded once, one shuffle for each vector of each round, each depth stored once."""
    lanes = find_machine(name).isa.lanes(dtype)
    square = function_of(name, dtype, f"square_{dtype.bits}_{lanes}")
    assert len(square.matching(r"^v?mov(up[sd]|dqu(64)?)\s.*\), %[xyz]mm\d+$")) == lanes, "loads"
    assert len(square.matching(r"^v?mov(up[sd]|dqu(64)?)\s+%[xyz]mm\d+, .*\)$")) == lanes, "stores"
    shuffles = square.matching(r"^v?p?(unpck|shuf[fi]64x2|perm2[fi]128|insert[fi]128|mov(lh|hl)ps)")
    assert len(shuffles) == lanes * (lanes.bit_length() - 1)
    assert not vector_stack_moves(square)
    assert not square.matching(r"\(%rip\)"), "no shuffle needs a table of lanes"
    # Beside these: an offset for each lane, addresses of stores, and copies where shuffles take two operands.
    rest = len(square.instructions) - 2 * lanes - len(shuffles) - lanes
    assert rest <= lanes + 2


@pytest.mark.parametrize(("name", "dtype"), of_isa(NEON), ids=str)
def test_squares_of_neon(name: str, dtype: DType) -> None:
    lanes = find_machine(name).isa.lanes(dtype)
    square = function_of(name, dtype, f"square_{dtype.bits}_{lanes}")
    assert quadwords_loaded(square) == lanes
    assert square.counts["str"] == lanes
    shuffles = sum(square.counts[word] for word in ("zip1", "zip2", "trn1", "trn2", "mov"))
    assert lanes * (lanes.bit_length() - 1) <= shuffles <= lanes * (lanes.bit_length() - 1) + 2
    assert not vector_stack_moves(square)


@each_vector
def test_transposed_lines(name: str, dtype: DType) -> None:
    """One multiply-add for each vector of sums and depth; the loop has no stack access but of many sums."""
    machine = find_machine(name)
    isa, most = machine.isa, most_few(machine.isa)
    kernel = TransposedKernel(isa, dtype, most, lines_first=False)
    together = isa.lanes(dtype) if isa.scalable else LINE_BITS // dtype.bits
    for count in kernel.counts:
        function = f"{kernel.name}_{count}"
        loops = [loop for loop in loops_of(name, dtype, function) if loop.function == function]
        main = most_multiplying(loops)
        assert multiplies(main) == together * count
        if count <= isa.vector_registers - ROOM_FOR_LINES:
            assert not main.matching(r"%rsp|\bsp\b")
            assert not vector_stack_moves(main)
        if isa.name in (AVX512.name, AVX2.name):
            check_lines_of_x86(main, isa, count * together, dtype)


#: Vector registers that lines take at most while they are transposed: as they are read, and half transposed.
ROOM_FOR_LINES = 8


def check_lines_of_x86(main: AssemblyLoop, isa: Isa, products: int, dtype: DType) -> None:
    """Every line is read once and put in its place once; multiply-adds repeat their elements."""
    lanes, parts = isa.lanes(dtype), isa.vector_bits // LINE_BITS
    inserted = len(main.matching(r"^vinsertf(128|64x2|32x4)\s.*\("))
    assert inserted + len(main.matching(r"^vmovup[sd]\s.*\(.*\), %xmm\d+$")) == lanes, "lines"
    assert inserted == lanes // 2
    assert len(main.matching(r"^vinsertf64x4\s")) == (lanes // 4 if parts == 4 else 0)
    shuffles = len(main.matching(r"^v(shufp|unpck[lh]p)[sd]\s"))
    assert shuffles == lanes // parts * ((lanes // parts).bit_length() - 1)
    folded = len(main.matching(rf"^vfmadd\d+p{X86_SUFFIX[dtype]}\s+.*\{{1to{lanes}\}}"))
    splats = main.counts[f"vbroadcasts{X86_SUFFIX[dtype]}"] + main.counts["vmovddup"]
    assert folded + splats == products


# --- streamed rows ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 2])
@each_vector
def test_streamed_rows(name: str, dtype: DType, rows: int) -> None:
    """Eight depths in a row on sums that are loaded and stored once: no vector on the stack."""
    isa = find_machine(name).isa
    steps = STREAMED_VECTORS * STREAMED_DEPTH
    splats = rows * STREAMED_DEPTH
    tiles = [loop for loop in loops_of(name, dtype, "task") if multiplies(loop) == steps]
    if isa.name in (AVX512.name, AVX2.name):
        tiles = [loop for loop in tiles if loop.counts[f"vbroadcasts{X86_SUFFIX[dtype]}"] == splats]
    assert tiles, f"no loop of {steps} multiplications"
    for loop in tiles:
        if (name, dtype) == ("x86-64-v2", F32) and len(vector_stack_moves(loop)) == 2:
            pytest.xfail("16 registers, products apart from sums: one vector passes through the stack")
        assert not vector_stack_moves(loop)
        if isa.name in (AVX512.name, AVX2.name):
            stores = loop.matching(r"^vmovup[sd]\s+%[yz]mm\d+, .*\)$")
            assert len(stores) == STREAMED_VECTORS
            loads = loop.matching(r"^v(movup|fmadd\d+p)[sd]\s+[^%]*\(")
            # B once for both rows; sums, unless the first depths begin them.
            assert len(loads) <= STREAMED_VECTORS // rows * STREAMED_DEPTH + STREAMED_VECTORS


# --- epilogues ------------------------------------------------------------------------------------------


@each_vector
def test_epilogues(name: str, dtype: DType) -> None:
    whole = function_of(name, dtype, f"epilogue_{dtype}_{dtype}")
    assert not [line for line in vector_stack_moves(whole) if not is_saved_register(line)]
    assert not whole.matching(r"^(callq?|bl)\b")
