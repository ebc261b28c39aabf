"""Machine code of every row, compiled on any machine: what the inner loops hold, and what objects need."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from functools import cache
from itertools import product

import pytest
from _pytest.mark.structures import ParameterSet
from assembly_text import AssemblyLoop, innermost_loops, multiplies, quadwords_loaded, vector_stack_moves
from object_symbols import undefined_symbols
from shares import EVERY_TEST_RUNS, share
from support import run_python
from tiers import first_of, named

from tilewright.compiler.pipeline import run_stages
from tilewright.ir.nodes import Tile
from tilewright.llvm.build import Module
from tilewright.llvm.target import data_layout, emit_assembly, emit_object, tuning
from tilewright.machine.catalog import CATALOG, find_machine, targets
from tilewright.machine.isa import FETCHING_FMAS, Isa
from tilewright.machine.isa_rows import AVX2, AVX512, GENERIC128, NEON, RVV128, VSX, usable_isas
from tilewright.machine.machine import Machine, enabled_features
from tilewright.macro.blocking import choose_blocking, wide_tile, wide_tiles_in_place
from tilewright.micro.tiles.depth import LOOP_INSTRUCTIONS, PAIRED_FMAS
from tilewright.micro.tiles.dispatch import Dispatch
from tilewright.micro.tiles.operands import Source
from tilewright.micro.tiles.signature import EntryPoint, TileSignature, TileStrides
from tilewright.micro.tiles.vector import VectorKernel
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.dtype import F32, F64, DType
from tilewright.spec.problem import Layout, Strategy
from tilewright.tools.explore.loops import innermost_loops as natural_loops

FLOATS = (F32, F64)

# --- loops in assembly text -----------------------------------------------------------------------


SAMPLE = """
outer_function:
.LBB0_1:
	movq	%rax, %rbx
.LBB0_2:                                # inner
	addq	$1, %rax
	vfmadd231ps	(%rdi), %zmm0, %zmm1 # a comment
	jl	.LBB0_2
	jmp	.LBB0_1
.LBB0_3:
	jne	.LBB0_4
.LBB0_4:
	retq
second:
	jmp	.LBB0_1
.LBB1_1:
	decq	%rax
	jne	.LBB1_1
"""


def test_innermost_loops_of_a_sample() -> None:
    first, second = innermost_loops(SAMPLE, "x86_64-linux")
    assert first.function == "outer_function"
    assert first.instructions == ("addq\t$1, %rax", "vfmadd231ps\t(%rdi), %zmm0, %zmm1", "jl\t.LBB0_2")
    assert second == AssemblyLoop("second", ("decq\t%rax", "jne\t.LBB1_1"))


# --- the main loop of every machine ---------------------------------------------------------------


def vectors_of(name: str, isa: Isa | None = None) -> Machine:
    """A catalogued machine, or a row of it, with the instructions whose operands may stay where they are."""
    machine = find_machine(name)
    machine = machine if isa is None else machine.with_isa(isa)
    tiles = tuple(tile for tile in machine.isa.tiles if tile.in_place)
    return replace(machine, isa=replace(machine.isa, tiles=tiles))


#: No stride is known, or those of row-major operands are.
UNKNOWN = TileStrides()
ROW_MAJOR = TileStrides(a_depth=1, c_column=1)


@cache
def tile_assembly(
    name: str,
    dtype: DType,
    *,
    adjacent_a: bool,
    strides: TileStrides = UNKNOWN,
    isa: Isa | None = None,
    fetches: bool = False,
) -> str:
    """The micro-kernel of a catalogued machine's own register tile, or of one of its narrower rows."""
    machine = vectors_of(name, isa)
    one = machine.isa.tile(dtype)
    blocking = choose_blocking(machine, one)
    layout, length = data_layout(machine), machine.function_bits
    module = Module("tile", machine.triple, layout, tuning(machine), length)
    tile, operands = Tile(blocking.mr, blocking.nr), (Source(dtype), Source(dtype))
    kernel = VectorKernel(machine.isa, one, tile, operands, dtype, adjacent_a=adjacent_a)
    dispatch = Dispatch(kernel, TileSignature(strides, fetches=fetches))
    callee = dispatch.emit(module)
    f = module.define(
        "keep",
        callee.result,
        dispatch.signature.parameters(EntryPoint.ANY_SIZE, dispatch.element),
        exported=True,
    )
    f.call(callee, list(f.arguments.values()))
    f.ret()
    return emit_assembly(str(module), "tile", machine)


def main_loops(name: str, dtype: DType, *, adjacent_a: bool = False) -> list[AssemblyLoop]:
    """The innermost loops of the whole tile: those without masks that multiply most."""
    loops = innermost_loops(tile_assembly(name, dtype, adjacent_a=adjacent_a), find_machine(name).triple)
    loops = [loop for loop in loops if not loop.matching(r"\{%k|maskmov")]
    most = max(map(multiplies, loops))
    return [loop for loop in loops if multiplies(loop) == most]


def shape(name: str, dtype: DType) -> tuple[int, int, int]:
    """mr, vectors of nr, lanes."""
    machine = vectors_of(name)
    blocking, lanes = choose_blocking(machine, machine.isa.tile(dtype)), machine.isa.lanes(dtype)
    return blocking.mr, blocking.nr // lanes, lanes


def depths_an_iteration(name: str, mr: int, vectors: int) -> int:
    """Two where a step has few multiply-adds, or more instructions than half of what a core issues."""
    isa = find_machine(name).isa
    cycles = mr * vectors / isa.fma_per_cycle
    crowded = 0 < isa.issue_per_cycle / 2 * cycles < mr * vectors + mr + vectors + LOOP_INSTRUCTIONS
    return 2 if mr * vectors <= PAIRED_FMAS or crowded else 1


def tile_of(case: tuple[str, DType]) -> tuple[object, ...]:
    """The row, the type and the register tile: CPUs that have them in common differ in the order of code."""
    machine = find_machine(case[0])
    return machine.arch, machine.isa.name, machine.function_bits, case[1], *shape(*case)


def of_isa(*rows: Isa) -> list[ParameterSet]:
    """The machines of some rows; in `make test` one of each register tile."""
    names = [row.name for row in rows]
    machines = [entry.machine for entry in CATALOG if entry.machine.isa.name in names]
    return first_of(((machine.name, dtype) for machine in machines for dtype in FLOATS), tile_of)


def check_scaled_addresses(loop: AssemblyLoop, depths: int = 1) -> None:
    """A and B each move by one addition for each depth; rows are reached by scaled index registers."""
    assert len(loop.matching(rf"^(add|sub|lea)q\s(?!\${depths},)")) <= 2 * depths
    assert not loop.matching(r"^imul")
    assert len(loop.matching(rf"^(inc|dec|cmp|test)q|^addq\s\${depths},")) <= 2, "one counter"


X86_SUFFIX = {F32: "s", F64: "d"}


@pytest.mark.parametrize(("name", "dtype"), of_isa(AVX512, AVX2), ids=str)
def test_fma_rows(name: str, dtype: DType) -> None:
    mr, vectors, _ = shape(name, dtype)
    suffix = X86_SUFFIX[dtype]
    register = {512: "zmm", 256: "ymm"}[find_machine(name).isa.vector_bits]
    depths = depths_an_iteration(name, mr, vectors)
    for loop in main_loops(name, dtype):
        counts = loop.counts
        assert len(loop.matching(rf"^vfmadd\d+p{suffix}\s.*%{register}\d+$")) == depths * mr * vectors
        assert counts[f"vbroadcasts{suffix}"] == depths * mr
        assert len(loop.matching(rf"^vmovup[sd]\s.*\(.*\), %{register}\d+")) == depths * vectors, "loads of B"
        assert not vector_stack_moves(loop), "no spill"
        # A stride may be added from memory: 14 rows and their loop take every integer register.
        assert len(loop.matching(r"%rsp")) <= depths % 2
        assert not loop.matching(r"^vmov\w+\s+%.*\("), "no store"
        assert not loop.matching(r"^prefetch")
        assert len(loop.instructions) <= depths * (mr * vectors + mr + vectors + 4) + 1
        check_scaled_addresses(loop, depths)


@pytest.mark.parametrize(("name", "dtype"), of_isa(AVX512, AVX2), ids=str)
def test_rows_of_b_are_prefetched(name: str, dtype: DType) -> None:
    """The first tile to read them prefetches their lines: into L1, or L2 if they are far or share sets."""
    mr, vectors, lanes = shape(name, dtype)
    assert mr * vectors >= FETCHING_FMAS
    lines = max(1, vectors * lanes * dtype.size // 64)
    depths = depths_an_iteration(name, mr, vectors)
    text = tile_assembly(name, dtype, adjacent_a=False, fetches=True)
    loops = [
        loop
        for loop in natural_loops(text, find_machine(name).triple)
        if len(loop.multiplies) == depths * mr * vectors and not loop.matching(r"\{%k|maskmov")
    ]
    assert loops
    for loop in loops:
        prefetches = {hint: len(loop.matching(rf"^prefetch{hint}\s")) for hint in ("t0", "t1")}
        # The last one is of the line in which a row ends that does not begin with a line.
        assert prefetches == dict.fromkeys(prefetches, depths * (lines + 1))
        assert not loop.matching(r"%rsp.*%[xyz]mm|%[xyz]mm.*%rsp"), "no spill"
        branches = depths * 8  # tests and jumps, and what leads back
        turns = depths * 10  # which row is prefetched, with operands from the stack
        most = depths * (mr * vectors + mr + vectors + 4 + 2 * (lines + 1)) + 1 + branches + turns
        assert len(loop.instructions) <= most
        assert len(loop.matching(r"^cmov")) <= depths
        assert not loop.matching(r"^imul")


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_wide_tiles_in_place_keep_their_sums_in_registers(dtype: DType) -> None:
    machine = find_machine("sapphirerapids")
    one = machine.isa.tile(dtype)
    blocking = choose_blocking(machine, one)
    tiles = wide_tiles_in_place(machine, one, blocking.mr, blocking.nr)
    assert tiles
    for wide in tiles:
        text = _whole_tile(machine, dtype, Tile(wide.mr, wide.nr), TileSignature(fetches=True))
        vectors = wide.nr // machine.isa.lanes(dtype)
        loops = [loop for loop in innermost_loops(text, machine.triple) if not loop.matching(r"\{%k")]
        whole = [loop for loop in loops if multiplies(loop) == 2 * wide.mr * vectors]
        assert whole
        for loop in whole:
            assert not vector_stack_moves(loop), "no spill"
            # Besides what is counted here: tests of whether to prefetch, and which row.
            lines = 2 * (vectors + 1)
            assert len(loop.instructions) <= 2 * (wide.mr * vectors + wide.loads_per_depth + lines + 16)


def _whole_tile(machine: Machine, dtype: DType, tile: Tile, signature: TileSignature) -> str:
    """Assembly of the tile of whole height, both operands in place."""
    module = Module("tile", machine.triple, data_layout(machine), tuning(machine), machine.function_bits)
    operands = (Source(dtype), Source(dtype))
    kernel = VectorKernel(machine.isa, machine.isa.tile(dtype), tile, operands, dtype, adjacent_a=False)
    dispatch = Dispatch(kernel, signature)
    callee = dispatch.emit_whole(module)
    parameters = dispatch.signature.parameters(EntryPoint.ONE_HEIGHT, dispatch.element)
    f = module.define("keep", callee.result, parameters, exported=True)
    f.call(callee, list(f.arguments.values()))
    f.ret()
    return emit_assembly(str(module), "tile", machine)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("isa", [AVX512, AVX2], ids=lambda isa: isa.name)
def test_rows_of_b_are_copied_as_they_are_read(isa: Isa, dtype: DType) -> None:
    """A step stores the vectors of B that it multiplies, and prefetches a row into L2, without a branch."""
    machine = find_machine("sapphirerapids").with_isa(isa)
    one = machine.isa.tile(dtype)
    blocking = choose_blocking(machine, one)
    wide = wide_tile(machine, one, blocking.mr, blocking.nr)
    assert wide is not None
    vectors, depths = wide.nr // machine.isa.lanes(dtype), 2
    text = _whole_tile(machine, dtype, Tile(wide.mr, wide.nr), TileSignature(far=True, copies=True))
    loops = [loop for loop in innermost_loops(text, machine.triple) if not loop.matching(r"\{%k|maskmov")]
    (whole,) = [loop for loop in loops if multiplies(loop) == depths * wide.mr * vectors]
    assert len(whole.matching(r"^vmovup[sd]\s+%[xyz]mm\d+, \S*\(%r")) == depths * vectors, "stores"
    loads = len(whole.matching(r"^vmovup[sd]\s.*\(.*\), %[xyz]mm\d+"))
    assert loads == depths * (2 * vectors - 1), "vectors behind a store are loaded again"
    lines = -(-vectors * machine.isa.vector_bits // 512)
    assert len(whole.matching(r"^prefetcht1\s")) == depths * (lines + 1)
    assert not whole.matching(r"^prefetcht0\s")
    assert not vector_stack_moves(whole), "no spill"


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_half_vectors_use_the_half_of_a_broadcast(dtype: DType) -> None:
    """Columns that end in half a vector: a row has one broadcast, from memory, and none by a shuffle."""
    mr, vectors, _ = shape("znver4", dtype)
    found = innermost_loops(tile_assembly("znver4", dtype, adjacent_a=False), find_machine("znver4").triple)
    fmadd = rf"^vfmadd\d+p{X86_SUFFIX[dtype]}\s.*%"
    widths = [rf"{fmadd}{register}\d+$" for register in ("ymm", "zmm")]
    mixed = [loop for loop in found if all(map(loop.matching, widths))]
    assert {multiplies(loop) for loop in mixed} >= {mr * count for count in range(2, vectors + 1)}
    for loop in mixed:
        assert not loop.matching(r"^vbroadcast\w+\s+%"), loop.function


@pytest.mark.parametrize(
    ("name", "dtype", "fmas", "broadcasts", "loads"),
    [
        ("znver5", F32, 24, 12, 2),
        ("znver5", F64, 24, 12, 2),
        ("sapphirerapids", F32, 48, 24, 4),  # two depths
        ("sapphirerapids", F64, 48, 24, 4),
        ("znver4", F32, 24, 6, 4),
        ("haswell", F32, 24, 12, 4),  # two depths
        ("haswell", F64, 24, 12, 4),
    ],
    ids=str,
)
def test_counts_by_hand(name: str, dtype: DType, fmas: int, broadcasts: int, loads: int) -> None:
    suffix = X86_SUFFIX[dtype]
    for loop in main_loops(name, dtype):
        counts = loop.counts
        found = (counts[f"vfmadd231p{suffix}"], counts[f"vbroadcasts{suffix}"], counts[f"vmovup{suffix}"])
        # LLVM may load doubles by the shorter vmovups: the bytes are the same
        assert found[:2] == (fmas, broadcasts)
        assert counts["vmovups"] + counts["vmovupd"] == loads


@pytest.mark.parametrize(("name", "dtype"), of_isa(GENERIC128), ids=str)
def test_generic_row(name: str, dtype: DType) -> None:
    mr, vectors, _ = shape(name, dtype)
    suffix = X86_SUFFIX[dtype]
    for loop in main_loops(name, dtype):
        assert loop.counts[f"mulp{suffix}"] == loop.counts[f"addp{suffix}"] == mr * vectors
        assert len(loop.matching(r"^movup[sd]\s.*\(.*\), %xmm")) == vectors, "loads of B"
        assert len(loop.matching(r"^(movs[sd]|movddup)\s.*\(.*\), %xmm")) == mr, "elements of A"
        assert not loop.matching(r"%rsp"), "no spill"
        check_scaled_addresses(loop)
    for adjacent_a in (False, True):
        text = tile_assembly(name, dtype, adjacent_a=adjacent_a)
        assert not re.search(r"%[yz]mm|vfmadd|\bv[a-z]+p[sd]\b", text)


@pytest.mark.parametrize(("name", "dtype"), of_isa(NEON), ids=str)
def test_neon_row_with_packed_a(name: str, dtype: DType) -> None:
    mr, vectors, lanes = shape(name, dtype)
    letter = {F32: "s", F64: "d"}[dtype]
    for loop in main_loops(name, dtype, adjacent_a=True):
        assert loop.counts["fmla"] == mr * vectors
        by_element = rf"^fmla.*\bv\d+(\.{letter})?\[\d\]$"  # v2.s[1], on macOS v2[1]
        assert len(loop.matching(by_element)) == mr * vectors
        assert quadwords_loaded(loop) == vectors + -(-mr // lanes)
        assert not loop.matching(r"\bsp\b"), "no spill"
        assert not loop.matching(r"^(dup|ld1r|mov|str|stp|st1)"), "neither splat nor copy nor store"
        assert loop.counts["add"] <= 3, "A, B and the counter"


@pytest.mark.parametrize(("name", "dtype"), of_isa(NEON), ids=str)
def test_neon_row_with_a_in_place(name: str, dtype: DType) -> None:
    mr, vectors, _ = shape(name, dtype)
    for loop in main_loops(name, dtype):
        assert loop.counts["fmla"] == mr * vectors
        assert not loop.matching(r"\bsp\b"), "no spill"
        assert not loop.matching(r"^(str|stp|st1|stur)"), "no store"


@pytest.mark.parametrize("adjacent_a", [False, True], ids=["in_place", "packed"])
@pytest.mark.parametrize(("name", "dtype"), of_isa(VSX), ids=str)
def test_vsx_row(name: str, dtype: DType, adjacent_a: bool) -> None:
    """A splatting load a row, one for each vector of B; at most two copies, as the tile fills the file."""
    mr, vectors, _ = shape(name, dtype)
    letter, splat = {F32: ("s", "lxvwsx"), F64: ("d", "lxvdsx")}[dtype]
    for loop in main_loops(name, dtype, adjacent_a=adjacent_a):
        assert loop.counts[f"xvmadda{letter}p"] + loop.counts[f"xvmaddm{letter}p"] == mr * vectors
        assert loop.counts[splat] == mr
        assert loop.counts["lxv"] + loop.counts["lxvx"] == vectors
        assert loop.counts["xxlor"] <= 2
        assert not vector_stack_moves(loop), "no spill"
        assert not loop.matching(r"^stxv"), "no store"
        assert loop.counts["bdnz"] == 1, "the counter is a register of its own"
        assert len(loop.instructions) <= mr * vectors + mr + vectors + 5


@pytest.mark.parametrize(("name", "dtype"), of_isa(RVV128), ids=str)
def test_rvv_row_with_packed_a(name: str, dtype: DType) -> None:
    """A's elements are scalar operands without splat or vector register; packed they need no address."""
    mr, vectors, _ = shape(name, dtype)
    width = {F32: "w", F64: "d"}[dtype]
    for loop in main_loops(name, dtype, adjacent_a=True):
        check_rvv_loop(loop, mr, vectors, dtype)
        assert len(loop.matching(rf"^fl{width}\s\w+, -?\d+\(\w+\)$")) == mr
        # The next vectors of B need an address each, A, B and the counter an addition.
        assert loop.counts["add"] + loop.counts["addi"] <= vectors - 1 + 3


@pytest.mark.parametrize(("name", "dtype"), of_isa(RVV128), ids=str)
def test_rvv_row_with_a_in_place(name: str, dtype: DType) -> None:
    mr, vectors, _ = shape(name, dtype)
    for loop in main_loops(name, dtype):
        check_rvv_loop(loop, mr, vectors, dtype)
        assert loop.counts["add"] + loop.counts["addi"] <= vectors - 1 + 3 + mr - 1


def check_rvv_loop(loop: AssemblyLoop, mr: int, vectors: int, dtype: DType) -> None:
    width = {F32: "w", F64: "d"}[dtype]
    assert loop.counts["vfmacc"] == len(loop.matching(r"^vfmacc\.vf\s")) == mr * vectors
    assert len(loop.matching(rf"^vle{dtype.bits}\.v\s")) == vectors
    assert loop.counts[f"fl{width}"] == mr
    assert not loop.matching(r"^(vsetv|vfmv|vmv|vrgather|vs|vl\d)"), (
        "neither mode, splat, copy, store nor spill"
    )
    assert not loop.matching(r"\bsp\b"), "nothing from the stack"


@pytest.mark.parametrize(("name", "dtype"), first_of(product(targets(), FLOATS), tile_of), ids=str)
def test_no_vector_stack_traffic_in_any_depth_loop(name: str, dtype: DType) -> None:
    """Edges too: no innermost loop that multiplies vectors touches the stack."""
    check_stack_traffic(name, dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_no_vector_stack_traffic_where_a_wide_core_runs_avx2(dtype: DType) -> None:
    """LLVM orders the same text in another way for each CPU."""
    check_stack_traffic("znver4", dtype, AVX2)


def check_stack_traffic(name: str, dtype: DType, isa: Isa | None = None) -> None:
    for adjacent_a, strides in ((False, UNKNOWN), (True, UNKNOWN), (False, ROW_MAJOR)):
        text = tile_assembly(name, dtype, adjacent_a=adjacent_a, strides=strides, isa=isa)
        walks = [loop for loop in innermost_loops(text, find_machine(name).triple) if multiplies(loop)]
        assert len(walks) >= 3
        for loop in walks:
            assert not vector_stack_moves(loop), loop.function


# --- every row, dtype and strategy compiles, and needs nothing from outside -----------------------


def rows_of(name: str) -> list[tuple[str, Isa]]:
    machine = find_machine(name)
    return [(name, isa) for isa in usable_isas(machine.arch, enabled_features(machine.features))]


EVERY_ROW = [pair for name in targets() for pair in rows_of(name)]


def kind(pair: tuple[str, Isa]) -> tuple[object, ...]:
    """What changes the code: the row, its vectors, and the units that multiply floats."""
    machine = find_machine(pair[0]).with_isa(pair[1])
    tiles = (machine.isa.tile(dtype).instruction for dtype in FLOATS)
    return machine.arch, machine.isa.name, machine.function_bits, *tiles


@pytest.mark.parametrize(("name", "isa"), first_of(EVERY_ROW, kind), ids=named)
def test_every_row_compiles_and_needs_no_library(name: str, isa: Isa) -> None:
    """Each strategy alone in `make test-all`; the automatic one chooses at run time, and holds the others.

    In `make test` the object of one type is read, or the assembly of the other: rows take turns.
    """
    machine = find_machine(name).with_isa(isa)
    first = EVERY_ROW.index((name, isa))
    for number, dtype in share(enumerate(FLOATS, first), len(FLOATS), first // len(FLOATS)):
        for strategy in Strategy if EVERY_TEST_RUNS else (Strategy.AUTO,) * (number % 2 == 0):
            done = run_stages(strided_problem(dtype, strategy), machine)
            assert undefined_symbols(done.object) == set(), f"{dtype} {strategy.value}"
            assert not re.search(r"@llvm\.(mem|exp|log|pow|sqrt)", done.llvm)
        if number % 2 or EVERY_TEST_RUNS:  # one type of each row
            done = run_stages(strided_problem(dtype, Strategy.AUTO), machine, until="llvm")
            assert not re.search(r"@llvm\.(mem|exp|log|pow|sqrt)", done.llvm)
            check_calls(emit_assembly(done.llvm, done.name, machine))


def check_calls(text: str) -> None:
    """No call leaves the module, or goes through a table of the linker."""
    assert "@PLT" not in text
    assert "@GOT" not in text
    called = set(re.findall(r"^\s(?:callq?|bl|jmp|b)\s+_?([A-Za-z]\w+)$", text, re.MULTILINE))
    own = {name.lstrip("_") for name in re.findall(r"^_?([A-Za-z]\w+):", text, re.MULTILINE)}
    assert called
    assert called <= own


def strided_problem(dtype: DType, strategy: Strategy) -> Gemm:
    layout = Layout.STRIDED
    return Gemm(dtype=dtype, a=layout, b=layout, c=layout, strategy=strategy)


@pytest.mark.parametrize("name", ["znver5", "neoverse-v2", "apple-m1", "pwr9", "rva23"])
def test_the_symbol_readers_find_an_undefined_symbol(name: str) -> None:
    machine = find_machine(name)
    call = "call float @fmaf(float %x, float %x, float %x)"
    text = (
        f'target triple = "{machine.triple}"\ndeclare float @fmaf(float, float, float)\n'
        f"define float @f(float %x) {{\n%y = {call}\nret float %y\n}}\n"
    )
    found = undefined_symbols(emit_object(text, "sample", machine))
    assert {symbol.lstrip("_") for symbol in found} == {"fmaf"}
    without = text.replace(call, "fadd float %x, %x")
    assert undefined_symbols(emit_object(without, "sample", machine)) == set()


HASHES = """
import hashlib, sys
from tilewright.machine.catalog import find_machine
from tilewright.compiler.pipeline import run_stages
from tilewright.ops.gemm.problem import Gemm
for name in sys.argv[1:]:
    print(hashlib.sha256(run_stages(Gemm(strategy="tiling"), find_machine(name)).object).hexdigest())
"""


def test_objects_hold_nothing_of_the_process() -> None:
    """Two processes, and two runs of one, write the same bytes: no address, no counter, no clock."""
    names = ("znver5", "neoverse-v2", "apple-m1")
    machines = [find_machine(name) for name in names]
    once, twice = (
        [run_stages(Gemm(strategy="tiling"), machine).object for machine in machines] for _ in range(2)
    )
    assert once == twice
    hashes = [hashlib.sha256(data).hexdigest() for data in once]
    assert run_python("-c", HASHES, *names).split() == hashes
