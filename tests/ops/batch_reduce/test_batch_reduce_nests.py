"""Batch-reduce nests: golden tile IR, and the interpreter's result equal to `reference` for every machine.

Buffers end with the last element an operand has and hold NaN between its lines, so a read of anything
else shows. Operands are small integers: sums are exact.
"""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray
from shares import looped, share
from support import filled

from tilewright.ir.interpret import interpret
from tilewright.ir.nodes import Program
from tilewright.ir.parse import parse_program
from tilewright.ir.text import print_program
from tilewright.ir.verify import verify
from tilewright.machine.catalog import find_machine, targets
from tilewright.machine.machine import Machine
from tilewright.ops.batch_reduce.nest import LOCAL_PANEL_BYTES, build_batch_reduce, cover_of
from tilewright.ops.batch_reduce.problem import BatchMode, BatchReduceGemm
from tilewright.spec.dtype import F32, F64, DType, Kind, find_numpy_dtype
from tilewright.spec.problem import FIXED_STRIDES, Layout, Operand, ProductTypes

Array: TypeAlias = NDArray[Any]

GOLDEN = Path(__file__).parent / "golden"
ROWS: Any = {"a": "row", "b": "row", "c": "row"}
NESTS: dict[str, tuple[BatchReduceGemm, str]] = {
    "direct_ccc": (BatchReduceGemm(100, 23, 64, 16), "znver5"),
    "direct_rrr_address": (
        BatchReduceGemm(13, 40, 9, 2, "f64", a="row", b="row", c="row", beta=0, batch="address"),
        "haswell",
    ),
    "direct_rrr_ahead": (BatchReduceGemm(100, 24, 64, 1, **ROWS, beta=0, batch="ahead"), "sapphirerapids"),
    "packed_rcc": (BatchReduceGemm(16, 6, 64, 4, a="row"), "neoverse-v2"),
    "packed_rrr_words": (BatchReduceGemm(23, 70, 61, 3, "i8", **ROWS, out_dtype="i32"), "cascadelake"),
    "packed_rrr_carried": (BatchReduceGemm(23, 40, 61, 3, "bf16", **ROWS), "znver5"),
    "packed_ccc_parts": (BatchReduceGemm(30, 9, 61, 1, "c64"), "haswell"),
    "packed_ccr_address": (BatchReduceGemm(23, 70, 64, 3, c="row", beta=0, batch="address"), "cascadelake"),
}


def of_mode(mode: BatchMode, count: int) -> int:
    """How many products a problem of a mode may have."""
    return 1 if mode is BatchMode.AHEAD else count


def nest(problem: BatchReduceGemm, machine: Machine, name: str = "kernel") -> Program:
    return build_batch_reduce(problem, cover_of(problem, machine), machine, name)


@pytest.mark.parametrize("name", NESTS)
def test_golden(name: str, *, update_golden: bool) -> None:
    problem, target = NESTS[name]
    program = nest(problem, find_machine(target), name)
    text, path = print_program(program), GOLDEN / f"{name}.txt"
    if update_golden:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), "changed; rewrite with pytest --update-golden"
    assert len(text.splitlines()) <= 40
    assert parse_program(text) == verify(program)


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(NESTS)


# --- operands that end where their last element does ----------------------------------------------------


@dataclass(frozen=True)
class Batch:
    """Matrices of one leading dimension in a flat buffer, or each in its own."""

    dense: Array
    flats: list[Array]
    places: list[Array]
    leading: int
    step: int

    def given(self, mode: BatchMode) -> Array | tuple[Array, int] | list[Array]:
        if mode is BatchMode.ADDRESS:
            return self.flats
        return self.flats[0], int(self.places[0].min()) if self.places[0].size else 0


def odd_value(dtype: np.dtype[Any]) -> Any:
    """What nobody may read: NaN, or the largest integer."""
    number = find_numpy_dtype(dtype)
    assert number is not None
    if not number.is_integer:
        return np.nan
    return 2 ** (number.significand - (number.kind is Kind.SIGNED)) - 1


def values(shape: tuple[int, ...], dtype: DType, seed: int) -> Array:
    """Small numbers whose products have exact sums."""
    if dtype.kind is Kind.COMPLEX:
        parts = [filled(shape, dtype.real.numpy, 10 * seed + part) for part in range(2)]
        return (parts[0] + 1j * parts[1]).astype(dtype.numpy)
    found = filled(shape, np.int64, seed)
    return (abs(found) if dtype.kind is Kind.UNSIGNED else found).astype(dtype.numpy)


def spread(dense: Array, operand: Operand, mode: BatchMode, gap: int, direction: int = 1) -> Batch:
    """A batch in memory by an operand's layout, `gap` elements between lines and between matrices."""
    odd = odd_value(dense.dtype)
    count, rows, columns = dense.shape
    by_rows = operand.layout is Layout.ROW
    leading = (columns if by_rows else rows) + gap
    i, j = np.arange(rows)[:, None], np.arange(columns)
    inside = i * leading + j if by_rows else j * leading + i
    size = int(inside.max()) + 1
    step = direction * (size + gap)
    if mode is BatchMode.ADDRESS:
        places = [inside] * count
        flats = [np.full(size, odd, dense.dtype) for _ in range(count)]
    else:
        first = (count - 1) * -step if step < 0 else 0
        places = [inside + first + number * step for number in range(count)]
        flats = [np.full(size + (count - 1) * abs(step), odd, dense.dtype)] * count
    for flat, place, matrix in zip(flats, places, dense, strict=True):
        flat[place] = matrix
    return Batch(dense, flats, places, leading, step)


def check(problem: BatchReduceGemm, machine: Machine, gap: int, direction: int = 1) -> None:
    """One problem on operands of its layouts against `reference`; C unread where it is replaced."""
    in_a, in_b, in_c = problem.operands
    m, n, k, count = problem.m, problem.n, problem.k, problem.count
    a, b = values((count, m, k), problem.dtype, 1), values((count, k, n), problem.b_dtype, 2)
    c = values((1, m, n), problem.out_dtype, 3)
    exact = problem.reference(a, b, c[0])
    expected = exact.astype(c.dtype).astype(exact.dtype)  # rounded once, or wrapped around
    if problem.beta == 0:
        c[...] = odd_value(c.dtype)
    of_a = spread(a, in_a, problem.batch, gap, direction)
    of_b = spread(b, in_b, problem.batch, 2 * gap)
    of_c = spread(c, in_c, BatchMode.STRIDE, gap)
    before = of_c.flats[0].copy()
    program = verify(nest(problem, machine))
    assert (program.sizes, program.scalars) == (FIXED_STRIDES, ())
    steps = (of_a.step, of_b.step)
    if problem.batch is BatchMode.ADDRESS:
        steps = (10**9, -(10**9))  # not read
    sizes = (of_a.leading, of_b.leading, of_c.leading, *steps)
    flat = of_c.flats[0]
    numbers = flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat  # complex numbers are pairs
    buffers = {"a": of_a.given(problem.batch), "b": of_b.given(problem.batch), "c": numbers}
    interpret(program, dict(zip(FIXED_STRIDES, sizes, strict=True)), {}, buffers)
    found = flat[of_c.places[0]]
    np.testing.assert_array_equal(found.astype(exact.dtype), expected)
    before[of_c.places[0]] = found
    kept = flat.view(np.uint8), before.view(np.uint8)
    np.testing.assert_array_equal(*kept, "bytes of C between its elements changed")


ABC = list(product((Layout.ROW, Layout.COL), repeat=3))


def odd_sizes(lanes: int) -> list[tuple[int, int, int, int]]:
    return [
        (1, 1, 1, 1),
        (5, 3, 7, 2),
        (lanes + 1, 2 * lanes + 3, 9, 3),
        (23, 23, 23, 1),
        (2 * lanes, 13, 4, 2),
        (3, 70, 33, 2),
        (41, 2, 1, 4),
    ]


@looped("name", targets())
@looped("dtype", [F32, F64])
def test_interpreted_nest_equals_the_reference(name: str, dtype: DType) -> None:
    """Layouts, beta and batches; the next machine takes the next share, which 5 spreads over all of them."""
    machine, first = find_machine(name), targets().index(name) + 2 * (dtype is F64)
    sizes = odd_sizes(machine.isa.lanes(dtype))
    for number, ((a, b, c), beta, mode) in share(enumerate(product(ABC, (0, 1), BatchMode)), 5, first):
        m, n, k, count = sizes[number % len(sizes)]
        count = of_mode(mode, count)
        problem = BatchReduceGemm(m, n, k, count, dtype, a=a, b=b, c=c, beta=beta, batch=mode)
        check(problem, machine, gap=number // 2 % 2 * 3, direction=1 - number // 4 % 2 * 2)


#: Element types of A, B and C, and machines: as for GEMM.
TYPES: tuple[tuple[str, str | None, str | None], ...] = (
    ("bf16", None, None),
    ("bf16", None, "f32"),
    ("f16", "bf16", "bf16"),
    ("f32", "f16", None),
    ("f64", "bf16", "f32"),
    ("i8", None, None),
    ("i8", None, "i32"),
    ("u8", "i8", "i32"),
    ("i4", "u4", "u8"),
    ("i16", None, "i32"),
    ("i32", "u8", "i16"),
    ("i64", "i8", None),
    ("c64", None, None),
    ("c64", "c128", None),
    ("c128", None, "c64"),
)
UNITS = ("cascadelake", "znver5", "sapphirerapids", "haswell", "neoverse-v2", "pwr10", "rva23", "x86-64-v2")


@pytest.mark.parametrize("name", UNITS)
@looped("types", TYPES)
def test_nests_of_every_type_equal_the_reference(
    name: str, types: tuple[str, str | None, str | None]
) -> None:
    machine, (dtype, b_dtype, out_dtype) = find_machine(name), types
    for number, (a, b, c) in share(enumerate(ABC), 3, UNITS.index(name) + TYPES.index(types)):
        beta, mode = number // 2 % 2, tuple(BatchMode)[number // 4 % len(BatchMode)]
        acc = ProductTypes.parse(dtype, b_dtype, out_dtype).acc
        sizes = odd_sizes(machine.isa.lanes(acc))
        m, n, k, count = sizes[(3 * number + len(name)) % len(sizes)]
        known: Any = {"a": a, "b": b, "c": c, "b_dtype": b_dtype, "out_dtype": out_dtype}
        problem = BatchReduceGemm(m, n, k, of_mode(mode, count), dtype, beta=beta, batch=mode, **known)
        check(problem, machine, gap=number % 2 * 3, direction=1 - number // 2 % 2 * 2)


@pytest.mark.parametrize("name", ["znver5", "neoverse-v2", "x86-64-v2"])
@pytest.mark.parametrize("mode", BatchMode, ids=lambda mode: mode.value)
def test_panels_that_fill_the_frame(name: str, mode: BatchMode) -> None:
    """So deep that a tile of the best width would not fit: the cover is cut into narrower ones."""
    problem = BatchReduceGemm(7, 70, 2048, of_mode(mode, 2), "f64", c="row", batch=mode)
    machine = find_machine(name)
    assert max(width for width, _ in cover_of(problem, machine).widths) <= 8 == LOCAL_PANEL_BYTES // 2048 // 8
    check(problem, machine, gap=1)


def test_only_the_operand_that_needs_it_is_packed() -> None:
    """Lanes of the vector operand are adjacent for two of its layouts; nothing else is copied."""
    machine = find_machine("znver5")
    for a, b, c in ABC:
        program = nest(BatchReduceGemm(20, 20, 20, 2, a=a, b=b, c=c), machine)
        vector = b if c is Layout.ROW else a
        assert [buffer.name for buffer in program.buffers] == [
            "a",
            "b",
            "c",
            *(["panel"] * (vector is not c)),
        ]
