"""The loop nests: golden tile IR, and the interpreter's result equal to `Gemm.reference` for every machine.

Buffers end with the last element an operand has, so the interpreter's bounds check proves that no
nest reads or writes outside; gaps between rows hold NaN, and those of C must come back unchanged.
Operands are small integers, so every sum is exact and results are compared for equality.
"""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from shares import looped, share
from tiers import crossed, draws, named

from tilewright.ir.expressions import Constant, Name
from tilewright.ir.interpret import Interpreter, interpret
from tilewright.ir.nodes import FEW_LANES, If, Loop, Pack, Program, Space, Statement
from tilewright.ir.parse import parse_program
from tilewright.ir.text import print_program
from tilewright.ir.verify import verify
from tilewright.machine.catalog import find_machine, targets
from tilewright.machine.isa import Edge, TileFma
from tilewright.machine.isa_rows import find_isa
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Blocking, choose_blocking, depth_unit
from tilewright.macro.cost import STREAMED_ROWS
from tilewright.macro.prediction import Path as ProductPath
from tilewright.ops.gemm.nest import build_gemm, instruction_of
from tilewright.ops.gemm.problem import Gemm
from tilewright.ops.gemm.product_nest import SCALARS
from tilewright.ops.gemm.sizes import Sizes, sizes_of
from tilewright.ops.gemm.streaming import STREAMED_VECTORS
from tilewright.spec.dtype import F32, F64, DType, Kind, find_numpy_dtype
from tilewright.spec.problem import PRODUCT_SIZES, STRIDED_LAYOUTS, Layout, Strategy

Array: TypeAlias = NDArray[Any]

# --- golden tile IR -----------------------------------------------------------------------------------

GOLDEN = Path(__file__).parent / "golden"
WIDE = Blocking(mr=12, nr=32, kr=1, mc=216, nc=4096, kc=512)
NARROW = Blocking(mr=6, nr=8, kr=1, mc=54, nc=1024, kc=512)
L2_BYTES = 1 << 20


def machine_with(
    edge: Edge, l2_bytes: int = L2_BYTES, registers: int = 32, l1_bytes: int = 64 << 10
) -> Machine:
    """A machine of 128-bit vectors with what a nest depends on: edges, caches, registers."""
    machine = find_machine("neoverse-n1")
    isa = replace(machine.isa, edge=edge, vector_registers=registers)
    l1 = replace(machine.l1, size=l1_bytes, ways=1) if l1_bytes < machine.l1.size else machine.l1
    return replace(machine, isa=isa, l1=l1, l2=replace(machine.l2, size=l2_bytes))


#: By name: the problem, its cut, and the edges of a machine of 128-bit vectors, or the machine.
NESTS: dict[str, tuple[Gemm, Blocking, Edge | str]] = {
    "tiling_rrr_mask": (Gemm(strategy="tiling"), WIDE, Edge.MASK),
    "tiling_rrr_spill": (Gemm(strategy="tiling"), NARROW, Edge.SPILL),
    "tiling_crr_static": (Gemm(100, 200, 300, a="col", strategy="tiling"), WIDE, Edge.MASK),
    "tiling_rcs_mask": (Gemm(b="col", c="strided", strategy="tiling"), WIDE, Edge.MASK),
    "tiling_sss_spill": (
        Gemm(a="strided", b="strided", c="strided", strategy="tiling"),
        NARROW,
        Edge.SPILL,
    ),
    "packing_rrr": (Gemm(strategy="packing"), WIDE, Edge.MASK),
    "packing_ccr_static": (
        Gemm(1000, 2000, 3000, "f64", a="col", b="col", strategy="packing"),
        NARROW,
        Edge.SPILL,
    ),
    "tiling_scc_mask": (Gemm(a="strided", b="col", c="col", strategy="tiling"), WIDE, Edge.MASK),
    "packing_rrc": (Gemm(c="col", strategy="packing"), WIDE, Edge.MASK),
    "auto_rrr_one_column": (Gemm(), WIDE, Edge.MASK),
    "auto_rrr_small": (Gemm(), WIDE, "sapphirerapids"),
    "auto_rsr_one_deep_row": (Gemm(b="strided"), WIDE, Edge.MASK),
    "auto_rrr_few_columns": (Gemm(), WIDE, "znver4"),
    "auto_rrr_few_rows": (Gemm(), WIDE, Edge.MASK),
    "auto_rrr_more_rows": (Gemm(), WIDE, Edge.MASK),
    "auto_sss_few_rows_spill": (Gemm(a="strided", b="strided", c="strided"), NARROW, Edge.SPILL),
    "auto_sss_more_rows_spill": (Gemm(a="strided", b="strided", c="strided"), NARROW, Edge.SPILL),
    "tiling_rrr_f16_carried": (Gemm(100, dtype="f16", strategy="tiling"), NARROW, "x86-64-v3"),
    "packing_rrr_i8_words": (Gemm(dtype="i8", strategy="packing"), replace(WIDE, kr=4), "cascadelake"),
    "packing_rrr_c64_parts": (Gemm(dtype="c64", strategy="packing"), WIDE, "znver5"),
    "auto_rrr_c64_one_column": (Gemm(dtype="c64"), WIDE, "znver5"),
    "auto_rrr_c64_few_rows": (Gemm(dtype="c64"), WIDE, "znver5"),
    "packing_rrr_steps": (Gemm(strategy="packing", epilogue="scale:row,bias,gelu,residual"), WIDE, Edge.MASK),
    "packing_rrr_f32_wider_sums": (Gemm(sums="f64", strategy="packing"), NARROW, Edge.SPILL),
    "packing_rrr_bf16_carried": (Gemm(dtype="bf16", strategy="packing"), replace(WIDE, kr=2), "znver5"),
}


#: The branches of `auto` in the order in which it decides.
BRANCHES = ("one_column", "small", "one_deep_row", "few_columns", "few_rows", "more_rows")

#: Branches of some kernels only: of a B with any strides, and of vectors with lanes to spare.
SOMETIMES = {"one_deep_row": "rsr", "few_columns": "few_columns"}


def one_branch(program: Program, name: str) -> Program:
    """A program of one branch of `auto` with the decision that leads to it: golden files are short.

    Of the decisions inside, few rows show one side.
    """
    kinds = SOMETIMES | {"one_deep_row": "s"} if "sss" in name else SOMETIMES
    branches = [words for words in BRANCHES if kinds.get(words, "") in name]
    if "spill" in name or "c64" in name:
        branches.remove("small")  # of tiles with masks, and real numbers
    branch = next((number for number, words in enumerate(branches) if words in name), None)
    if branch is None:
        return program
    *before, last = program.body
    for _ in range(branch):
        assert isinstance(last, If)
        (last,) = last.otherwise
    if branch < len(branches) - 1:
        assert isinstance(last, If)
        last = replace(last, otherwise=())
    if "few_rows" in name:
        last = one_sided(last)
    return replace(program, body=(*before, last))


def one_sided(statement: Statement) -> Statement:
    """A statement whose decisions have one side."""
    match statement:
        case If(condition, then):
            return If(condition, tuple(map(one_sided, then)))
        case Loop(body=body):
            return replace(statement, body=tuple(map(one_sided, body)))
        case _:
            return statement


@pytest.mark.parametrize("name", NESTS)
def test_golden(name: str, *, update_golden: bool) -> None:
    problem, blocking, edge = NESTS[name]
    machine = find_machine(edge) if isinstance(edge, str) else machine_with(edge)
    program = one_branch(build_gemm(problem, blocking, machine, name), name)
    text, path = print_program(program), GOLDEN / f"{name}.txt"
    if update_golden:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), "changed; rewrite with pytest --update-golden"
    assert len(text.splitlines()) <= 74
    assert parse_program(text) == verify(program)


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(NESTS)


# --- operands that end where their last element does --------------------------------------------------


@dataclass(frozen=True)
class Matrix:
    """A dense matrix and its elements spread over a flat buffer by two strides."""

    dense: Array
    flat: Array
    origin: int
    strides: tuple[int, int]

    @property
    def places(self) -> Array:
        rows, columns = (np.arange(extent) for extent in self.dense.shape)
        return self.origin + rows[:, None] * self.strides[0] + columns * self.strides[1]


def odd_value(dtype: np.dtype[Any]) -> Any:
    """What nobody may read: NaN, or the largest integer."""
    number = find_numpy_dtype(dtype)
    assert number is not None
    if not number.is_integer:
        return np.nan
    return 2 ** (number.significand - (number.kind is Kind.SIGNED)) - 1


def spread(dense: Array, strides: tuple[int, int]) -> Matrix:
    """A matrix in a buffer exactly as long as its elements reach, NaN or another odd value in the gaps."""
    rows, columns = dense.shape
    if dense.size == 0:
        return Matrix(dense, np.empty(0, dense.dtype), 0, strides)
    reach = ((rows - 1) * strides[0], (columns - 1) * strides[1])
    origin = -sum(min(0, step) for step in reach)
    flat = np.full(origin + sum(max(0, step) for step in reach) + 1, odd_value(dense.dtype), dense.dtype)
    matrix = Matrix(dense, flat, origin, strides)
    flat[matrix.places] = dense
    return matrix


def strides_of(layout: Layout, rows: int, columns: int, variant: int) -> tuple[int, int]:
    """Strides of a layout: without and with gaps, and for STRIDED also reversed or with one adjacent axis."""
    gap = 3 * (variant % 2)
    match layout:
        case Layout.ROW:
            return columns + gap, 1
        case Layout.COL:
            return 1, rows + gap
        case Layout.STRIDED:
            choices = [
                (columns + gap, 1),
                (2, 2 * rows + gap),
                (-(3 * columns + gap), 3),
                (1, rows + gap),
                (2 * columns + gap, -2),
                (-1, -(rows + gap)),
            ]
            return choices[variant % len(choices)]
        case Layout.PACKED:
            raise ValueError(layout)


def integers(random: np.random.Generator, rows: int, columns: int, dtype: DType) -> Array:
    least, end = (0, 9) if dtype.kind is Kind.UNSIGNED else (-4, 5)
    values: Array = random.integers(least, end, (rows, columns))
    if dtype.kind is Kind.COMPLEX:
        values = values + 1j * random.integers(least, end, (rows, columns))
    return values.astype(dtype.numpy)


def numbers(matrix: Matrix) -> tuple[Array, int]:
    """The buffer of C as a program has it: complex numbers are pairs."""
    if matrix.flat.dtype.kind != "c":
        return matrix.flat, matrix.origin
    return matrix.flat.view(matrix.flat.real.dtype), 2 * matrix.origin


def run_nest(program: Program, a: Matrix, b: Matrix, c: Matrix, alpha: float, beta: float) -> None:
    """The program on three matrices, each parameter as the caller has it whatever the layout of C."""
    assert program.sizes == PRODUCT_SIZES
    assert program.scalars == SCALARS
    values = (*c.dense.shape, a.dense.shape[1], *a.strides, *b.strides, *c.strides)
    buffers = {"a": (a.flat, a.origin), "b": (b.flat, b.origin), "c": numbers(c)}
    scalars = {"alpha": alpha, "beta": beta}
    interpret(verify(program), dict(zip(PRODUCT_SIZES, values, strict=True)), scalars, buffers)


def check(
    problem: Gemm,
    build: Callable[[Gemm], Program],
    sizes: tuple[int, int, int],
    scalars: tuple[float, float],
    variant: int,
) -> None:
    """One problem on operands of its layouts against `Gemm.reference`; reads only what promise 2 allows.

    Sums are exact, so what is stored is the reference rounded once, or wrapped around.
    """
    (m, n, k), (alpha, beta) = sizes, scalars
    random = np.random.default_rng(variant)
    dense_c = integers(random, m, n, problem.out_dtype)
    a, b = integers(random, m, k, problem.dtype), integers(random, k, n, problem.b_dtype)
    exact = problem.reference(a, b, dense_c, alpha=alpha, beta=beta)
    expected = exact.astype(dense_c.dtype).astype(exact.dtype)
    unread = np.full_like(dense_c, odd_value(dense_c.dtype)) if beta == 0 else dense_c
    if alpha == 0:
        a, b = np.full_like(a, odd_value(a.dtype)), np.full_like(b, odd_value(b.dtype))
    matrix_a = spread(a, strides_of(problem.a, m, k, variant))
    matrix_b = spread(b, strides_of(problem.b, k, n, variant + 1))
    matrix_c = spread(unread, strides_of(problem.c, m, n, variant + 2))
    before = matrix_c.flat.copy()
    run_nest(build(problem), matrix_a, matrix_b, matrix_c, alpha, beta)
    np.testing.assert_array_equal(matrix_c.flat[matrix_c.places].astype(exact.dtype), expected)
    before[matrix_c.places] = matrix_c.flat[matrix_c.places]
    kept = matrix_c.flat.view(np.uint8), before.view(np.uint8)
    np.testing.assert_array_equal(*kept, "bytes of C between its elements changed")


# --- every machine --------------------------------------------------------------------------------------

ABC = list(product(STRIDED_LAYOUTS, repeat=3))
SCALAR_PAIRS = ((1.0, 0.0), (2.0, 1.0), (-0.5, 2.0), (0.0, 3.0), (0.0, 0.0))


def with_l2(machine: Machine, size: int) -> Machine:
    return replace(machine, l2=replace(machine.l2, size=size))


def shrunken(machine: Machine, instruction: TileFma, parts: int = 1) -> Blocking:
    """The machine's register tile with cache blocks so small that every loop iterates."""
    tile = choose_blocking(machine, instruction)
    kc = parts * depth_unit(instruction)
    return Blocking(mr=tile.mr, nr=tile.nr, kr=tile.kr, mc=2 * tile.mr, nc=2 * tile.nr, kc=kc)


def odd_sizes(mr: int, nr: int, wide: int) -> tuple[tuple[int, int, int], ...]:
    return (
        (1, 2 * wide + nr + 1, 9),
        (3, wide + wide // 2 + 1, 10),
        (8, wide, 17),
        (2 * mr + 1, 2 * nr + 3, 17),
        (mr, nr, 8),
        (1, 1, 1),
        (mr - 1, nr + 1, 9),
        (0, 5, 7),
        (3 * mr, nr - 1, 16),
        (1, 2 * nr + 5, 25),
        (5, 0, 7),
        (2 * mr + 1, 1, 20),
        (4 * mr + 3, 4 * nr + 1, 3),
        (3, nr + 4, 0),
        (2 * mr + 5, 5 * nr + 2, 19),
        (0, 0, 0),
    )


@pytest.mark.parametrize(
    ("name", "dtype", "strategy"), crossed(targets(), product((F32, F64), Strategy), 6), ids=named
)
def test_interpreted_nest_equals_the_reference(name: str, dtype: DType, strategy: Strategy) -> None:
    machine = find_machine(name)
    blocking = shrunken(machine, machine.isa.tile(dtype))
    sizes = odd_sizes(blocking.mr, blocking.nr, STREAMED_VECTORS * machine.isa.lanes(dtype))
    some_l2 = 4 * dtype.size * 9 * blocking.nr

    # Without a usable L2 `auto` packs what it can, with some it meets its other branches.
    cases = [(abc, l2_bytes) for l2_bytes in (1, some_l2) for abc in ABC]
    first = targets().index(name) // 3 + (dtype is F64) + list(Strategy).index(strategy)
    for number, ((a, b, c), l2_bytes) in share(enumerate(cases), 7, first):
        m, n, k = sizes[number % len(sizes)]
        known = (m, n, k) if number % 3 == 0 else (None, None, None)
        problem = Gemm(known[0], known[1], known[2], dtype, a=a, b=b, c=c, strategy=strategy)

        def build(wanted: Gemm, l2_bytes: int = l2_bytes) -> Program:
            return build_gemm(wanted, blocking, with_l2(machine, l2_bytes), "g")

        check(problem, build, (m, n, k), SCALAR_PAIRS[number % len(SCALAR_PAIRS)], variant=number)


@pytest.mark.parametrize("sizes", [(30, 7, 40), (25, 16, 300), (11, 2, 5)], ids=str)
def test_few_columns_have_taller_tiles_where_vectors_have_halves(sizes: tuple[int, int, int]) -> None:
    """A tile of 12 rows beside those of 6 on a Zen 4, for the columns of one vector; none on a Zen 5."""
    layout = Layout.STRIDED
    problem = Gemm(dtype="f32", a=layout, b=layout, c=layout)

    def build(wanted: Gemm, cpu: str = "znver4") -> Program:
        machine = find_machine(cpu)
        return build_gemm(wanted, choose_blocking(machine, instruction_of(wanted, machine.isa)), machine, "g")

    tall = "Tile(mr=12, nr=16"
    assert tall in repr(build(problem))
    assert tall not in repr(build(problem, "znver5"))
    check(problem, build, sizes, SCALAR_PAIRS[0], variant=1)
    check(problem, build, sizes, SCALAR_PAIRS[1], variant=2)


#: Element types of A, B, C and sums: every kind of instruction, of conversion and of store.
TYPES: tuple[tuple[str, str | None, str | None, str | None], ...] = (
    ("bf16", None, None, None),
    ("bf16", None, "f32", None),
    ("f16", "bf16", "bf16", None),
    ("f32", "f16", None, None),
    ("f64", "bf16", "f32", None),
    ("i8", None, None, None),
    ("i8", None, "i32", None),
    ("u8", "i8", "i32", None),
    ("i4", "u4", "u8", None),
    ("i16", None, "i32", None),
    ("i32", "u8", "i16", None),
    ("i64", "i8", None, None),
    ("c64", None, None, None),
    ("c64", "c128", None, None),
    ("c128", None, "c64", None),
    ("f32", None, None, "f64"),
    ("f32", "bf16", "f64", "f64"),
    ("f16", None, "f32", "f64"),
    ("u8", "i8", None, "i64"),
    ("i32", None, None, "i64"),
    ("c64", None, None, "c128"),
)
#: Machines whose rows have one instruction or another for these types: dot products of AVX-512 with and
#: without bfloat16, tiles of AMX, PMADDWD, Neon, the outer products of POWER10, RISC-V V, SSE2.
UNITS = ("cascadelake", "znver5", "sapphirerapids", "haswell", "neoverse-v2", "pwr10", "rva23", "x86-64-v2")


@pytest.mark.parametrize(("name", "types"), crossed(UNITS, ([types] for types in TYPES), 4), ids=named)
def test_nests_of_every_type_equal_the_reference(
    name: str, types: tuple[str, str | None, str | None, str | None]
) -> None:
    machine, (dtype, b_dtype, out_dtype, sums) = find_machine(name), types
    for number, (a, b, c) in share(enumerate(ABC), 4, UNITS.index(name) // 2 + TYPES.index(types) // 2):
        strategy = tuple(Strategy)[number % len(Strategy)]
        known = {"a": a, "b": b, "c": c, "b_dtype": b_dtype, "out_dtype": out_dtype, "strategy": strategy}
        problem = Gemm(dtype=dtype, sums=sums, **known)
        instruction = instruction_of(problem, machine.isa)
        blocking = shrunken(machine, instruction, 1 + problem.types.is_complex)
        wide = STREAMED_VECTORS * machine.isa.lanes(problem.types.acc)
        sizes = odd_sizes(blocking.mr, blocking.nr // (1 + problem.types.is_complex), wide)
        m, n, k = sizes[(5 * number + len(name)) % len(sizes)]
        depth = k + number % 2 * 2 * blocking.kc  # so that sums are carried from block to block
        scalars = ((1.0, 0.0), (2.0, 1.0), (-3.0, 2.0), (0.0, 3.0), (1.0, 1.0))[number % 5]

        def build(wanted: Gemm, blocking: Blocking = blocking, number: int = number) -> Program:
            return build_gemm(wanted, blocking, with_l2(machine, 1 if number % 3 else 1 << 14), "g")

        check(problem, build, (m, n, depth), scalars, variant=number)


@pytest.mark.parametrize(
    ("name", "dtype", "m"),
    crossed(["haswell", "znver5", "neoverse-v1"], product([F32, F64], [1, 2, 3, 7, 8, 9]), 3),
    ids=named,
)
def test_few_rows_at_every_edge_of_a_wide_tile(name: str, dtype: DType, m: int) -> None:
    machine = with_l2(find_machine(name), 1)
    blocking, wide = shrunken(machine, machine.isa.tile(dtype)), STREAMED_VECTORS * machine.isa.lanes(dtype)
    columns = (1, wide // 2, wide - 1, wide, wide + 1, 2 * wide - 1, 2 * wide, 2 * wide + 3)
    cases = enumerate(product(columns, (("row", "row"), ("col", "strided"), ("row", "col"))))
    for number, (n, (a, c)) in share(cases, 2, m + (dtype is F64)):
        b = "row" if c != "col" else "strided"
        sizes = (m, n, 9 + number % 8) if c != "col" else (n, m, 9 + number % 8)
        problem = Gemm(dtype=dtype, a=a if c != "col" else "col", b=b, c=c)

        def build(wanted: Gemm) -> Program:
            return build_gemm(wanted, blocking, machine, "g")

        check(problem, build, sizes, SCALAR_PAIRS[number % len(SCALAR_PAIRS)], variant=12 * number)


@pytest.mark.parametrize("sizes", [(37, 200, 17), (8, 192, 9), (33, 241, 8), (70, 150, 17)], ids=str)
@pytest.mark.parametrize("isa", ["avx512", "avx2"])
def test_strips_of_wide_tiles_equal_the_reference(isa: str, sizes: tuple[int, int, int]) -> None:
    """Where L3 is late and columns are many; a C of columns gives A and B each other's roles."""
    machine = find_machine("sapphirerapids").with_isa(find_isa(isa))
    blocking = shrunken(machine, machine.isa.tile(F32))
    for number, (a, b, c) in enumerate((("strided",) * 3, ("row", "row", "row"), ("col", "col", "col"))):
        m, n, k = sizes if c != "col" else (sizes[1], sizes[0], sizes[2])
        problem = Gemm(dtype="f32", a=a, b=b, c=c)

        def build(wanted: Gemm) -> Program:
            return build_gemm(wanted, blocking, machine, "g", only=ProductPath.STRIPS)

        check(problem, build, (m, n, k), SCALAR_PAIRS[number], variant=number)


@pytest.mark.parametrize("sizes", [(37, 200, 17), (16, 48, 9), (33, 112, 8), (50, 129, 5)], ids=str)
def test_wide_tiles_in_place_equal_the_reference(sizes: tuple[int, int, int]) -> None:
    machine = find_machine("sapphirerapids")
    blocking = shrunken(machine, machine.isa.tile(F32))
    for number, (a, b, c) in enumerate((("strided",) * 3, ("row",) * 3, ("col",) * 3)):
        m, n, k = sizes if c != "col" else (sizes[1], sizes[0], sizes[2])
        problem = Gemm(dtype="f32", a=a, b=b, c=c)

        def build(wanted: Gemm) -> Program:
            return build_gemm(wanted, blocking, machine, "g", only=ProductPath.IN_PLACE)

        check(problem, build, (m, n, k), SCALAR_PAIRS[number], variant=number)


@pytest.mark.parametrize("sizes", [(37, 200, 17), (8, 192, 9), (33, 241, 8), (16, 5, 20)], ids=str)
@pytest.mark.parametrize("isa", ["avx512", "avx2"])
def test_copied_rows_equal_the_reference(isa: str, sizes: tuple[int, int, int]) -> None:
    """Tiles of the first rows read B in place, those of the others what these copied."""
    machine = find_machine("sapphirerapids").with_isa(find_isa(isa))
    blocking = shrunken(machine, machine.isa.tile(F32))
    for number, (a, b, c) in enumerate(
        (("strided", "row", "row"), ("col", "row", "row"), ("col", "col", "col"))
    ):
        m, n, k = sizes if c != "col" else (sizes[1], sizes[0], sizes[2])
        problem = Gemm(dtype="f32", a=a, b=b, c=c)

        def build(wanted: Gemm) -> Program:
            program = build_gemm(wanted, blocking, machine, "g", only=ProductPath.COPYING)
            assert parse_program(print_program(program)) == program
            return program

        check(problem, build, (m, n, k), SCALAR_PAIRS[number], variant=number)


@st.composite
def cuts(draw: st.DrawFn) -> Blocking:
    mr, nr = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    mc, nc, kc = (draw(st.integers(1, 3)) for _ in range(3))
    return Blocking(mr=mr, nr=nr, kr=1, mc=mc * mr, nc=nc * nr, kc=8 * kc)


@draws(150)
@given(
    blocking=cuts(),
    edge=st.sampled_from(Edge),
    layouts=st.sampled_from(ABC),
    strategy=st.sampled_from(Strategy),
    sizes=st.tuples(st.integers(0, 14), st.integers(0, 14), st.integers(0, 26)),
    fixed=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    scalars=st.sampled_from(SCALAR_PAIRS),
    l2_elements=st.integers(1, 2000),
    registers=st.sampled_from((4, 8)),
    variant=st.integers(0, 11),
)
def test_any_cut_equals_the_reference(
    blocking: Blocking,
    edge: Edge,
    layouts: tuple[Layout, Layout, Layout],
    strategy: Strategy,
    sizes: tuple[int, int, int],
    fixed: tuple[bool, bool, bool],
    scalars: tuple[float, float],
    l2_elements: int,
    registers: int,
    variant: int,
) -> None:
    a, b, c = layouts
    m, n, k = (size if is_fixed else None for size, is_fixed in zip(sizes, fixed, strict=True))
    problem = Gemm(m, n, k, F64, a=a, b=b, c=c, strategy=strategy)

    def build(wanted: Gemm) -> Program:
        return build_gemm(wanted, blocking, machine_with(edge, l2_elements * F64.size, registers), "g")

    check(problem, build, sizes, scalars, variant)


#: What `auto` packs with 3×4 register tiles and kc of 8, an L1 of one way of 25 elements and an L2 of 100:
#: m, n, k, column stride of B.
PACKED = {
    (3, 4, 8, 1): set(),  # few rows: everything in place
    (3, 4, 8, 2): {"b_panel"},  # lanes of B apart: a micro-panel of B at a time
    (1, 100, 8, 1): set(),  # a single row: each element of B is used once
    (1, 100, 8, 2): {"b_pack"},  # rows of B share one set
    (8, 100, 60, 1): set(),  # few rows: B streams
    (9, 99, 60, 1): set(),  # few rows: B costs less in place than its copy
    (9, 100, 60, 1): {"b_pack"},  # but not where its rows share one set
    (30, 4, 8, 1): set(),  # small B, one column of tiles
    (12, 12, 8, 1): set(),  # everything is small
    (60, 12, 8, 1): {"b_pack"},  # strips of A, and of C, meet all of B
    (30, 4, 8, 2): {"b_pack"},
    (60, 60, 60, 1): {"b_pack"},
    (60, 60, 60, 2): {"b_pack"},
    (60, 60, 75, 1): {"a_pack", "b_pack"},  # rows of A share one set
}


@pytest.mark.parametrize("sizes", PACKED)
def test_what_auto_packs(sizes: tuple[int, int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    m, n, k, cs_b = sizes
    problem = Gemm(dtype="f64", b="strided")
    blocking = Blocking(mr=3, nr=4, kr=1, mc=6, nc=8, kc=8)
    program = build_gemm(
        problem, blocking, machine_with(Edge.MASK, 100 * F64.size, l1_bytes=25 * F64.size), "g"
    )
    packed: set[str] = set()
    pack = Interpreter.pack

    def record(run: Interpreter, node: Pack, names: Mapping[str, int]) -> None:
        packed.add(node.destination.buffer)
        pack(run, node, names)

    monkeypatch.setattr(Interpreter, "pack", record)
    random = np.random.default_rng(0)
    a, b = integers(random, m, k, F64), integers(random, k, n, F64)
    c = spread(np.full((m, n), np.nan), (n, 1))
    run_nest(program, spread(a, (k, 1)), spread(b, (cs_b * n, cs_b)), c, 1.0, 0.0)
    np.testing.assert_array_equal(c.flat.reshape(m, n), a @ b)
    assert packed == PACKED[sizes]


SLICE_BYTES = 768
#: For columns and depth, how often 70 rows of A are packed in blocks of 32 beside slices of so many bytes;
#: 0 where they are packed for each slice.
PACKED_ONCE = {(330, 8): 3, (331, 20): 9, (10, 8): 0}


@pytest.mark.parametrize("dtype", ["f32", "f64", "c64", "f16"])
@pytest.mark.parametrize("columns_depth", PACKED_ONCE, ids=str)
def test_a_is_packed_once_for_all_slices_of_b(
    dtype: str, columns_depth: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless sums would wait outside of a C of float16, which several depth blocks of them do."""
    for module in ("nest", "cache_blocks"):
        monkeypatch.setattr(f"tilewright.ops.gemm.{module}.PACKED_ROWS", 32)
    machine = find_machine("sapphirerapids")
    monkeypatch.setattr("tilewright.macro.cost.LATE_PANELS_L2", SLICE_BYTES / machine.l2.size)
    packed: list[str] = []
    pack = Interpreter.pack

    def record(run: Interpreter, node: Pack, names: Mapping[str, int]) -> None:
        packed.append(node.destination.buffer)
        pack(run, node, names)

    def build(problem: Gemm) -> Program:
        parts = 2 if problem.types.is_complex else 1
        blocking = replace(shrunken(machine, instruction_of(problem, machine.isa), parts), nc=480)
        return build_gemm(problem, blocking, machine, "g", only=ProductPath.PACKED)

    monkeypatch.setattr(Interpreter, "pack", record)
    n, k = columns_depth
    for number, (a, b, c) in enumerate((("col", "row", "row"), ("strided", "col", "strided"))):
        packed.clear()
        check(Gemm(dtype=dtype, a=a, b=b, c=c), build, (70, n, k), SCALAR_PAIRS[number], variant=number)
        once = 0 if dtype == "f16" and k > 8 else PACKED_ONCE[columns_depth]
        assert packed.count("a_block") == once
        assert ("a_pack" in packed) is (once == 0)


# --- scratch, and a column-major C --------------------------------------------------------------------------


@looped("strategy", Strategy)
@looped("dtype", [F32, F64])
@looped("kc", [1, 8, 12, 512])
def test_scratch_is_exactly_the_blocks(kc: int, strategy: Strategy, dtype: DType) -> None:
    problem = Gemm(dtype=dtype, a="strided", b="strided", c="strided", strategy=strategy)
    blocking = replace(WIDE, kc=kc)
    program = build_gemm(problem, blocking, machine_with(Edge.MASK), "g")
    depth = {1: 8, 8: 8, 12: 16, 512: 512}[kc]
    expected = {}
    if strategy is not Strategy.PACKING:
        expected["b_panel"] = (Space.THREAD, depth * WIDE.nr)
    if strategy is not Strategy.TILING:
        expected["b_pack"] = (Space.SHARED, depth * WIDE.nc)
        expected["a_pack"] = (Space.THREAD, depth * WIDE.mc)
    if strategy is Strategy.AUTO:
        expected["few_pack"] = (Space.SHARED, depth * FEW_LANES)
        expected["sums"] = (Space.THREAD, 2 * STREAMED_ROWS * (16 << 10) // dtype.size)
    assert {buffer.name: (buffer.space, buffer.size) for buffer in program.scratch} == expected
    assert all(buffer.dtype is dtype for buffer in program.buffers)


@pytest.mark.parametrize("strategy", Strategy, ids=lambda strategy: strategy.value)
@pytest.mark.parametrize("kc", [1, 8, 12, 20])
def test_scratch_holds_whatever_kc_a_blocking_has(kc: int, strategy: Strategy) -> None:
    """Depth cuts are rounded up to `DEPTH_UNIT`; the panels must fit where kc is not a multiple of it."""
    blocking = Blocking(mr=4, nr=8, kr=1, mc=8, nc=64, kc=kc)

    def build(problem: Gemm) -> Program:
        return build_gemm(problem, blocking, machine_with(Edge.MASK, 1), "g")

    check(Gemm(b="col", strategy=strategy), build, (8, 64, 59), (1.0, 0.0), variant=0)
    if kc > 1:  # complex numbers are two depths each
        check(Gemm(dtype="c64", b="col", strategy=strategy), build, (8, 64, 59), (1.0, 0.0), variant=0)


@pytest.mark.parametrize("strategy", Strategy, ids=lambda strategy: strategy.value)
@pytest.mark.parametrize("types", [("f16", None), ("c128", "c64")], ids=lambda types: types[0])
def test_sums_that_wait_fit_their_scratch(
    types: tuple[str, str | None], strategy: Strategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a block of 8×16 sums, over several depth blocks: more rows and more columns than it has."""
    for module in ("nest", "cache_blocks"):
        monkeypatch.setattr(f"tilewright.ops.gemm.{module}.SUMS_ROWS", 8)
        monkeypatch.setattr(f"tilewright.ops.gemm.{module}.SUMS_COLUMNS", 16)
    blocking = Blocking(mr=4, nr=8, kr=1, mc=8, nc=64, kc=16)

    def build(problem: Gemm) -> Program:
        return build_gemm(problem, blocking, machine_with(Edge.MASK, 1), "g")

    cases = enumerate(product(((7, 9, 40), (33, 7, 40), (9, 70, 16), (41, 41, 33)), "rc"))
    # Sizes with both layouts of C; in `make test` a strategy and a type take one of them.
    for number, (sizes, c) in share(cases, 2, list(Strategy).index(strategy) + (types[1] is None)):
        layout = {"r": "row", "c": "col"}[c]
        problem = Gemm(dtype=types[0], out_dtype=types[1], c=layout, strategy=strategy)
        check(problem, build, sizes, SCALAR_PAIRS[number % len(SCALAR_PAIRS)], variant=number)


def test_tiling_with_masks_needs_no_scratch() -> None:
    assert build_gemm(Gemm(strategy="tiling"), WIDE, machine_with(Edge.MASK), "g").scratch == ()


def test_turned_sizes_are_those_of_the_transposed_product() -> None:
    """Each size by its own number: Cᵀ is n×m, its A is Bᵀ, its B is Aᵀ."""
    sizes = Sizes(*(Constant(value) for value in range(1, 10)))
    swapped = sizes.swapped()
    assert (swapped.m, swapped.n, swapped.k) == (sizes.n, sizes.m, sizes.k)
    assert (swapped.rs_a, swapped.cs_a) == (sizes.cs_b, sizes.rs_b)
    assert (swapped.rs_b, swapped.cs_b) == (sizes.cs_a, sizes.rs_a)
    assert (swapped.rs_c, swapped.cs_c) == (sizes.cs_c, sizes.rs_c)
    assert swapped.swapped() == sizes


SIZES_OF = [
    (Gemm(), "m n k rs_a 1 rs_b 1 rs_c 1"),
    (Gemm(2, 3, 4, a="col", b="col", c="col"), "2 3 4 1 cs_a 1 cs_b 1 cs_c"),
    (Gemm(n=3, a="strided", b="col", c="strided"), "m 3 k rs_a cs_a 1 cs_b rs_c cs_c"),
]


@pytest.mark.parametrize(("problem", "expected"), SIZES_OF)
def test_sizes_of(problem: Gemm, expected: str) -> None:
    words = [Constant(int(word)) if word.isdigit() else Name(word) for word in expected.split()]
    assert sizes_of(problem) == Sizes(*words)


@pytest.mark.parametrize("strategy", Strategy, ids=lambda strategy: strategy.value)
@pytest.mark.parametrize("layouts", [("row", "row"), ("col", "strided"), ("strided", "col")])
def test_a_column_major_c_exchanges_the_buffers(layouts: tuple[str, str], strategy: Strategy) -> None:
    """The nest is that of the transposed product, with its buffers and its parameters named back."""
    opposite = {"row": "col", "col": "row", "strided": "strided"}
    a, b = layouts
    program = build_gemm(Gemm(a=a, b=b, c="col", strategy=strategy), NARROW, machine_with(Edge.MASK), "g")
    mirror = Gemm(a=opposite[b], b=opposite[a], c="row", strategy=strategy)
    expected = build_gemm(mirror, NARROW, machine_with(Edge.MASK), "g")
    if strategy is Strategy.AUTO:  # dot products have their own order, which rows of C may not have
        *before, one_column = expected.body
        assert isinstance(one_column, If)
        expected = replace(expected, body=(*before, *one_column.otherwise))
    back = {"m": "n", "n": "m", "a": "b", "b": "a"}
    back |= {f"{way}s_{of}": f"{other}s_{to}" for way, other in ("rc", "cr") for of, to in ("ab", "ba", "cc")}
    text = print_program(expected).split("\n", 1)[1]
    turned = re.sub(r"\b\w+\b", lambda word: back.get(word[0], word[0]), text)
    heading = ("sizes", "argument")
    found = print_program(program).split("\n", 1)[1]
    body = [line for line in found.splitlines() if not line.startswith(heading)]
    assert body == [line for line in turned.splitlines() if not line.startswith(heading)]
    assert program.sizes == PRODUCT_SIZES
    assert [buffer.name for buffer in program.arguments] == ["a", "b", "c"]
