"""Nests with an epilogue: the interpreter's result equal to `Gemm.reference`, with the steps in their tiles
and taken out of them, for every kind of instruction, every branch, and every edge.

Buffers end with their last element, so that the interpreter's bounds check proves that no operand of a step
is read outside. Numbers are small integers and scales powers of two: every result is exact.
"""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from dataclasses import replace
from itertools import cycle, product

import numpy as np
import pytest
from shares import share
from support import Array
from tiers import crossed, named

from tilewright.ir.interpret import interpret
from tilewright.ir.nodes import Finish, If, Loop, Program, Statement, TileEpilogue, TileMatmul
from tilewright.ir.parse import parse_program
from tilewright.ir.separate import TILE, separate_steps
from tilewright.ir.text import print_program
from tilewright.ir.verify import verify
from tilewright.machine.catalog import find_machine
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Blocking, choose_blocking, depth_unit
from tilewright.ops.gemm.nest import build_gemm, instruction_of
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.dtype import DType, Kind
from tilewright.spec.problem import PRODUCT_SIZES, Strategy

MACHINES = ("znver5", "haswell", "sapphirerapids", "neoverse-v2", "pwr10", "x86-64-v2")
#: A, B, C and steps.
CASES: tuple[tuple[str, str, str, str], ...] = (
    ("f32", "f32", "f32", "bias,relu"),
    ("f32", "f32", "f32", "residual:bf16,scale:row,bias:row,clamp:-2:9"),
    ("f64", "f64", "f32", "bias:row,residual"),
    ("bf16", "bf16", "bf16", "bias,relu"),
    ("i8", "i8", "f32", "bias,scale:column,bias"),
    ("u8", "i8", "i8", "bias,scale,saturate"),
    ("i8", "i8", "i32", "relu,residual"),
    ("c64", "c64", "c64", "bias,bias:row,residual"),
)
LAYOUTS = tuple(product(("row", "col"), ("row", "strided"), ("row", "col", "strided")))


def numbers(random: np.random.Generator, dtype: DType, shape: tuple[int, int]) -> Array:
    least, end = (0, 7) if dtype.kind is Kind.UNSIGNED else (-3, 4)
    found = random.integers(least, end, shape).astype(float)
    if dtype.kind is Kind.COMPLEX:
        found = found + 1j * random.integers(least, end, shape)
    return found.astype(dtype.numpy)


def flat(dense: Array, layout: str, *, gap: int) -> tuple[Array, tuple[int, int], Array]:
    """A matrix in a buffer that ends with its last element: the buffer, its strides, the places."""
    rows, columns = dense.shape
    choices = {"row": (columns + gap, 1), "col": (1, rows + gap), "strided": (2 * columns + gap, 2)}
    strides = choices[layout]
    if dense.size == 0:
        return np.empty(0, dense.dtype), strides, np.empty((rows, columns), int)
    places = np.arange(rows)[:, None] * strides[0] + np.arange(columns) * strides[1]
    buffer = np.zeros(places.max() + 1, dense.dtype)
    buffer[places] = dense
    return buffer, strides, places


def real(buffer: Array) -> Array:
    """Complex numbers as programs have those of C and of steps: pairs."""
    return buffer.view(buffer.real.dtype) if buffer.dtype.kind == "c" else buffer


def shrunken(machine: Machine, problem: Gemm) -> Blocking:
    """The machine's register tile with cache blocks so small that every loop iterates."""
    one = instruction_of(problem, machine.isa)
    tile = choose_blocking(machine, one)
    return replace(
        tile, mc=2 * tile.mr, nc=2 * tile.nr, kc=(2 if problem.types.is_complex else 1) * depth_unit(one)
    )


def sizes_of(cut: Blocking, lanes: int) -> tuple[tuple[int, int, int], ...]:
    return (
        (2 * cut.mr + 1, 2 * cut.nr + 3, 21),
        (1, 2 * cut.nr + 5, 37),
        (3, 8 * lanes + 1, 40),
        (cut.mr, cut.nr, 4),
        (2 * cut.mr + 3, 1, 19),
        (1, 1, 1),
        (3, 5, 0),
        (cut.mr - 1, 3 * cut.nr, 65),
    )


def run(program: Program, problem: Gemm, sizes: tuple[int, int, int], factors: tuple[int, int]) -> None:
    """One product against the reference; C holds NaN where it may not be read, A and B likewise."""
    (m, n, k), (alpha, beta) = sizes, factors
    random = np.random.default_rng(m + n + k)
    shapes = ((m, k), (k, n), (m, n))
    pairs = zip(problem.operands, shapes, strict=True)
    dense = [numbers(random, operand.dtype, shape) for operand, shape in pairs]
    steps = []
    for operand in problem.step_operands:
        shape = tuple(
            size if known is None else known for known, size in ((operand.rows, m), (operand.columns, n))
        )
        scales = 2.0 ** random.integers(-2, 2, shape)
        found = scales.astype(operand.dtype.numpy) if "scale" in operand.name else None
        steps.append(numbers(random, operand.dtype, (shape[0], shape[1])) if found is None else found)
    expected = problem.reference(*dense, alpha=alpha, beta=beta, operands=steps)
    if beta == 0 and not problem.out_dtype.is_integer:
        dense[2] = np.full_like(dense[2], np.nan)
    values, buffers = [m, n, k], {}
    for operand, array in zip(problem.operands, dense, strict=True):
        buffer, strides, places = flat(array, operand.layout.value, gap=m % 3)
        values += strides
        buffers[operand.name] = real(buffer) if operand.name == "c" else buffer
        result, at = buffer, places
    for operand, array in zip(problem.step_operands, steps, strict=True):
        is_matrix = operand.name.startswith("residual")
        buffer, strides, _ = flat(array, operand.layout.value, gap=2 if is_matrix else 0)
        values += strides if is_matrix else ()
        buffers[operand.name] = real(buffer)
    scalars = {"alpha": alpha, "beta": beta}
    interpret(verify(program), dict(zip(program.sizes, values, strict=True)), scalars, buffers)
    with np.errstate(all="ignore"):
        wanted = expected.astype(problem.out_dtype.numpy)
    np.testing.assert_array_equal(result[at], wanted, f"{program.name} {sizes} {factors}")


@pytest.mark.parametrize(("name", "case"), crossed(MACHINES, ([case] for case in CASES), 4), ids=named)
def test_interpreted_nest_equals_the_reference(name: str, case: tuple[str, str, str, str]) -> None:
    a, b, c, epilogue = case
    machine, mixed = find_machine(name), c == "f32" and a == "i8"
    factors = cycle(((1, 0),) if mixed or "saturate" in epilogue else ((1, 0), (2, -1), (0, 2), (1, 1)))
    turns = enumerate(zip(LAYOUTS, cycle(Strategy), strict=False))
    for number, (layouts, strategy) in share(turns, 5, MACHINES.index(name) // 2 + CASES.index(case) // 2):
        problem = Gemm(
            dtype=a,
            b_dtype=b,
            out_dtype=c,
            a=layouts[0],
            b=layouts[1],
            c=layouts[2],
            epilogue=epilogue,
            strategy=strategy,
        )
        cut = shrunken(machine, problem)
        l2_bytes = (1, 9 * cut.nr * 16)[number % 2]  # without a usable L2 `auto` packs what it can
        small = replace(machine, l2=replace(machine.l2, size=l2_bytes))
        program = build_gemm(problem, cut, small, "g")
        assert parse_program(print_program(program)) == program
        every = sizes_of(cut, machine.isa.lanes(problem.types.acc))
        for sizes in (every[number % len(every)], every[(number + 3) % len(every)]):
            factor = next(factors)
            run(program, problem, sizes, factor)
            run(separate_steps(program), problem, sizes, factor)
            run(separate_steps(program, lambda _: True), problem, sizes, factor)


def statements(body: tuple[Statement, ...]) -> list[Statement]:
    """Every statement, those inside of others too."""
    found: list[Statement] = []
    for statement in body:
        found.append(statement)
        match statement:
            case Loop(body=inner):
                found += statements(inner)
            case If(then=then, otherwise=otherwise):
                found += statements((*then, *otherwise))
    return found


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_c_is_stored_once(case: tuple[str, str, str, str]) -> None:
    """Where sums do not fit into C, one statement writes it; elsewhere unfinished sums stand in it meanwhile.

    Nothing reads what an `TileEpilogue` with steps has stored: it is the last statement on its window.
    """
    a, b, c, epilogue = case
    problem = Gemm(dtype=a, b_dtype=b, out_dtype=c, epilogue=epilogue, strategy="packing")
    machine = find_machine("znver5")
    program = build_gemm(problem, shrunken(machine, problem), machine, "g")
    tiles = [one for one in statements(program.body) if isinstance(one, TileMatmul)]
    assert all(isinstance(one.finish, Finish) for one in tiles)
    carried = [one.carry is not None for one in tiles]
    assert carried == [problem.types.c.real != problem.types.acc] * len(tiles)
    separated = statements(separate_steps(program).body)
    stores = [one for one in separated if isinstance(one, TileEpilogue)]
    assert len(stores) == len(tiles)
    assert all(one.finish and one.finish.axis is None and one.sums.buffer == TILE for one in stores)
    raw = [one for one in separated if isinstance(one, TileMatmul) and one.c.buffer == "c"]
    assert len(raw) == (0 if all(carried) else len(tiles))


def test_sizes_are_those_of_every_gemm_and_strides_of_residuals() -> None:
    machine = find_machine("znver5")
    problem = Gemm(epilogue="residual,bias,residual")
    program = build_gemm(problem, shrunken(machine, problem), machine, "g")
    residuals = ("rs_residual", "cs_residual", "rs_residual_2", "cs_residual_2")
    assert program.sizes == (*PRODUCT_SIZES, *residuals)
    assert [buffer.name for buffer in program.arguments] == [*"abc", "residual", "bias", "residual_2"]


def test_a_program_without_steps_stays_as_it_is() -> None:
    machine = find_machine("znver5")
    program = build_gemm(Gemm(), shrunken(machine, Gemm()), machine, "g")
    assert separate_steps(program) == program
