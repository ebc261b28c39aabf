"""Functions of rows and of elements on every machine that an emulator runs, between guard pages."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
from shares import share
from support import Array

from emulated.case_file import Case, Placed, Signature, Values
from emulated.emulators import emulated_machines
from emulated.kernels import Emitted, Kernels
from emulated.runs import run, skip_without_tools
from tilewright.machine.machine import Machine
from tilewright.ops.binary.problem import BinaryFunction
from tilewright.ops.elementwise.problem import Elementwise
from tilewright.ops.embedding.problem import Embedding
from tilewright.ops.rotary.problem import Rotary
from tilewright.ops.rows.problem import RowFunction
from tilewright.spec.functions import UnaryOp
from tilewright.spec.problem import Layout
from tilewright.spec.rotary import Pairing
from tilewright.spec.row_functions import RowOp

#: The first machine of each row and length of vectors: no other instructions are used.
RUN = tuple(
    {
        (machine.isa.name, machine.isa.vector_bits): machine for machine in reversed(emulated_machines())
    }.values()
)
#: Rows, columns and what lies between lines: less than any vector, several vectors and a rest, whole lines.
SIZES = ((1, 1, 0), (3, 7, 5), (5, 70, 0), (37, 33, 3), (3, 160, 32))
DTYPES = ("f32", "bf16", "f16", "f64")
EPS = 0.25
#: Of the problems of a machine, `make test` runs one in so many.
SHARED = 8
#: Relative and absolute differences from float64: a few places of the type, of results around 1.
ALLOWED = {"f32": 4e-6, "bf16": 1e-2, "f16": 2e-3, "f64": 1e-14}


def placed(array: Array, number: int, exact: Array | None, bound: float, *, at_end: bool) -> Placed:
    """An array with its gaps as an argument; `exact`: what becomes of it, NaN where it stays."""
    if exact is None:
        return Placed(array.tobytes(), argument=number, at_end=at_end)
    stays = np.isnan(exact)
    expected = np.where(stays, array.astype(np.float64), exact).astype(array.dtype)
    kind = {"bfloat16": "BF16"}.get(array.dtype.name, f"F{8 * array.itemsize}")
    return Placed(
        array.tobytes(),
        argument=number,
        at_end=at_end,
        expected=expected.tobytes(),
        allowed=np.where(stays, 0.0, bound * (1 + np.abs(np.where(stays, 0.0, exact)))).tobytes(),
        values=Values[kind],
        element=array.itemsize,
    )


def row_case(kernel: Emitted, size: tuple[int, int, int], turn: int) -> Case:
    """One call on one matrix."""
    problem = kernel.problem
    assert isinstance(problem, (RowFunction, Elementwise))
    rows, columns, gap = size
    dtype, random = problem.dtype.numpy, np.random.default_rng(turn)
    turned = isinstance(problem, RowFunction) and problem.layout is Layout.COL
    lines, length = (columns, rows) if turned else (rows, columns)
    line = length + gap
    x = (3 * random.standard_normal((lines, line))).astype(dtype)
    inside = x[:, :length].T if turned else x[:, :length]
    beside: list[Array] = []
    if isinstance(problem, RowFunction):
        types = [one for one in (problem.weight, problem.bias) if one is not None]
        beside = [random.standard_normal(columns).astype(one.numpy) for one in types]
        found = problem.reference(inside, *beside, eps=EPS if problem.op.takes_eps else 0.0)
    else:
        found = problem.reference(inside)
    # Nothing lies behind the last line: guard pages begin where it ends.
    last, line_y = x.size - gap, line
    if isinstance(problem, RowFunction) and problem.op.reduces:
        line_y = 0 if turned else 1 + gap
        whole: Array = np.full((rows, line_y or 1), np.nan)
        whole[:, 0] = found
        exact: Array = whole.ravel()[: (rows - 1) * (line_y or 1) + 1]
    else:
        whole = np.full(x.shape, np.nan)
        whole[:, :length] = found.T if turned else found
        exact = whole.ravel()[:last]
    flat = [x.ravel()[:last], np.full(exact.size, 0.5, dtype), *beside]
    bound = ALLOWED[str(problem.dtype)] * (4 if problem.dtype.bits >= 32 else 1)
    operands = tuple(
        placed(array, number, exact if number == 1 else None, bound, at_end=bool(turn % 2))
        for number, array in enumerate(flat)
    )
    return Case(
        label=f"{kernel.name} {rows}x{columns} gap {gap}",
        kernel=kernel.number,
        signature=Signature.ADAPTED,
        element=1,
        integers=(1, 1, rows, columns, 0, 0, line, 0, 0, line_y),
        operands=operands,
        alpha=EPS,
        scratch_bytes=kernel.scratch_bytes,
    )


def pair_case(kernel: Emitted, size: tuple[int, int, int], turn: int) -> Case:
    """One call on a matrix and another, or one row or one column."""
    problem = kernel.problem
    assert isinstance(problem, BinaryFunction)
    rows, columns, gap = size
    dtype, random = problem.dtype.numpy, np.random.default_rng(turn)
    line = columns + gap
    whole = (2 + random.standard_normal((rows, line))).astype(dtype)
    # The second operand's strides from row to row and from column to column.
    row, column = ((line, 1), (0, 1), (1, 0))[turn % 3]
    count = (rows - 1) * row + (columns - 1) * column + 1
    other = (2 + random.standard_normal(count)).astype(dtype)
    inside = np.lib.stride_tricks.as_strided(
        other, (rows, columns), (row * other.itemsize, column * other.itemsize)
    )
    swapped = turn % 2 == 1
    pair = (inside, whole[:, :columns]) if swapped else (whole[:, :columns], inside)
    exact = np.full(whole.shape, np.nan)
    exact[:, :columns] = problem.reference(*pair)
    last = whole.size - gap
    flat = [whole.ravel()[:last], other]
    steps = [(0, 0, line, 1), (0, 0, row, column)]
    if swapped:
        flat, steps = flat[::-1], steps[::-1]
    (*left, left_column), (*right, right_column) = steps
    bound = ALLOWED[str(problem.dtype)] * (16 if problem.dtype.bits >= 32 else 1)
    results = placed(np.full(last, 0.5, dtype), 2, exact.ravel()[:last], bound, at_end=bool(turn % 2))
    return Case(
        label=f"{kernel.name} {rows}x{columns} gap {gap} strides {row}, {column}",
        kernel=kernel.number,
        signature=Signature.ADAPTED,
        element=1,
        integers=(1, 1, rows, columns, *left, *right, 0, 0, line, left_column, right_column),
        operands=(
            *(placed(one, at, None, bound, at_end=bool(turn % 2)) for at, one in enumerate(flat)),
            results,
        ),
        scratch_bytes=kernel.scratch_bytes,
    )


def rotary_case(kernel: Emitted, size: tuple[int, int, int], turn: int) -> Case:
    """One call on a matrix whose columns are pairs and up to two elements more."""
    problem = kernel.problem
    assert isinstance(problem, Rotary)
    rows, pairs, gap = size
    rest = turn % 3
    columns, limit = 2 * pairs + rest, 5
    random, dtype = np.random.default_rng(turn), problem.dtype.numpy
    x = random.standard_normal((rows, columns + gap)).astype(dtype)
    cos, sin = (random.standard_normal((limit, pairs)).astype(problem.tables.numpy) for _ in range(2))
    places = random.integers(0, limit, rows)
    exact = np.full(x.shape, np.nan)
    exact[:, :columns] = problem.reference(x[:, :columns], cos[places], sin[places])
    last, at_end = x.size - gap, bool(turn % 2)
    bound = ALLOWED[str(problem.dtype)]
    line = columns + gap
    flat = [x.ravel()[:last], np.full(last, 0.5, dtype), cos.ravel(), sin.ravel()]
    return Case(
        label=f"{kernel.name} {rows}x{columns} gap {gap}",
        kernel=kernel.number,
        signature=Signature.ADAPTED,
        element=1,
        integers=(1, 1, rows, pairs, rest, 0, 0, line, 0, 0, line, 0, 0, 1, pairs, pairs),
        operands=(
            *(
                placed(one, at, exact.ravel()[:last] if at == 1 else None, bound, at_end=at_end)
                for at, one in enumerate(flat)
            ),
            Placed(places.tobytes(), argument=4, at_end=at_end),
        ),
        scratch_bytes=kernel.scratch_bytes,
    )


def embedding_case(kernel: Emitted, size: tuple[int, int, int], turn: int) -> Case:
    """One call on a table of six rows."""
    problem = kernel.problem
    assert isinstance(problem, Embedding)
    rows, columns, gap = size
    limit, line, random = 6, columns + gap, np.random.default_rng(turn)
    table = (9 * random.standard_normal((limit, line))).astype(problem.dtype.numpy)
    scales = [random.standard_normal(limit).astype("f4")] if problem.quantised else []
    places = random.integers(0, limit, rows)
    exact = np.full((rows, line), np.nan)
    scale = EPS if problem.scaled else 1.0
    exact[:, :columns] = problem.reference(table[:, :columns], places, *scales, scale=scale)
    last, at_end = rows * line - gap, bool(turn % 2)
    bound = ALLOWED[str(problem.result)] * problem.scaled
    y = np.full(last, 0.5, problem.result.numpy)
    results = placed(y, 0, exact.ravel()[:last], bound, at_end=at_end)
    given = [one.tobytes() for one in (*scales, table.ravel()[: table.size - gap], places)]
    return Case(
        label=f"{kernel.name} {rows}x{columns} gap {gap}",
        kernel=kernel.number,
        signature=Signature.ADAPTED,
        element=1,
        integers=(rows, columns, line, line),
        operands=(results, *(Placed(one, argument=at, at_end=at_end) for at, one in enumerate(given, 1))),
        alpha=EPS,
        scratch_bytes=kernel.scratch_bytes,
    )


#: Problems with cases of their own, none of which goes past the caches but `BinaryFunction`.
Special: TypeAlias = BinaryFunction | Rotary | Embedding


def problems(first: int) -> Iterator[RowFunction | Elementwise | Special]:
    """Every function along rows and across them, light and heavy ones of elements and of pairs, others.

    Types take turns.
    """
    # Machines take one problem in `SHARED`, beginning with their number, and every type among them.
    turn = 2 * first + first // len(DTYPES)
    for op in RowOp:
        for layout in (Layout.ROW, Layout.COL):
            dtype = DTYPES[turn % len(DTYPES)]
            weight = dtype if op.is_norm else None
            bias = "f32" if op is RowOp.LAYER_NORM else None
            yield RowFunction(op, dtype, layout=layout, weight=weight, bias=bias)
            turn += 1
    for unary in (UnaryOp.RELU, UnaryOp.GELU):
        yield Elementwise(unary, DTYPES[turn % len(DTYPES)])
        turn += 1
    for word, activation in (("maximum", None), ("divide", "relu"), ("multiply", "silu")):
        yield BinaryFunction(word, DTYPES[turn % len(DTYPES)], activation)
        turn += 1
    for pairing in Pairing:
        yield Rotary(DTYPES[turn % len(DTYPES)], pairing=pairing)
        turn += 1
    for dtype, scaled in ((DTYPES[turn % len(DTYPES)], False), ("i8", True)):
        yield Embedding(dtype, scaled)


CASES: dict[type, Callable[[Emitted, tuple[int, int, int], int], Case]] = {
    BinaryFunction: pair_case,
    Rotary: rotary_case,
    Embedding: embedding_case,
}


def row_cases(kernels: Kernels, first: int) -> Iterator[Case]:
    """Results near the caches, and past them in narrow pieces: types and these take turns."""
    for turn, problem in share(enumerate(problems(first), first), SHARED, first):
        cut: dict[str, int] = {}
        if (turn // 2 + turn // 8) % 2 and not isinstance(problem, Rotary | Embedding):
            cut["stream_from"] = 1
            of_rows = isinstance(problem, RowFunction)
            cut["side" if of_rows else "long_row"] = 16 if of_rows else 1
        kernel = kernels.emit(problem, cut=cut)
        case = CASES.get(type(problem), row_case)
        for number, size in enumerate(SIZES):
            yield case(kernel, size, turn + number)


@pytest.mark.parametrize("machine", RUN, ids=lambda machine: machine.name)
def test_rows_run(machine: Machine, tmp_path: Path) -> None:
    kernels = Kernels(machine)
    cases = list(row_cases(kernels, RUN.index(machine)))  # kernels are checked without an emulator too
    skip_without_tools(machine)
    status, output, complaints = run(kernels, cases, tmp_path)
    assert status == 0, output + complaints


def test_the_harness_sees_wrong_rows(tmp_path: Path) -> None:
    """One result that differs by more than is allowed, and one element between lines that changes."""
    machine = next(machine for machine in RUN if machine.arch == "x86_64")
    skip_without_tools(machine)
    kernels = Kernels(machine)
    kernel = kernels.emit(RowFunction("softmax"))
    right = row_case(kernel, (3, 7, 5), 0)
    wrong = []
    for place in (0, 9):
        content = right.operands[1].expected
        assert content is not None
        changed = np.frombuffer(content, np.float32).copy()
        changed[place] += 1e-3
        other = Placed(**{**vars(right.operands[1]), "expected": changed.tobytes()})
        wrong.append(Case(**{**vars(right), "operands": (right.operands[0], other)}))
    status, output, _ = run(kernels, [right, *wrong], tmp_path)
    assert status == 1
    assert "3 cases, 2 failed" in output
