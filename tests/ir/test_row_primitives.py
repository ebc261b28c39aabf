"""Programs of functions of rows: text that parses back, the oracle, and windows that are refused."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from shares import looped
from support import rough

from tilewright.errors import InvalidTileIr
from tilewright.ir.expressions import Constant, Scalar
from tilewright.ir.interpret import interpret
from tilewright.ir.nodes import Buffer, Primitive, Program, Slice, Space
from tilewright.ir.parse import parse_program
from tilewright.ir.primitives.rows import LayerNormRows, MaxRows, SoftmaxRows, SumRows
from tilewright.ir.text import print_program
from tilewright.ir.verify import verify
from tilewright.machine.catalog import find_machine
from tilewright.ops.rows.nest import build_row_function, choose_rows
from tilewright.ops.rows.problem import RowFunction
from tilewright.spec.dtype import BF16, F32, DType
from tilewright.spec.row_functions import RowOp

ROWS, COLUMNS = 5, 7


def built(problem: RowFunction) -> Program:
    return build_row_function(problem, choose_rows(problem, find_machine("znver5")), "kernel")


@looped("op", RowOp)
@looped("layout", ["row", "col"])
def test_the_oracle_computes_every_matrix(op: RowOp, layout: str) -> None:
    beside = ("weight", "bias")[: {RowOp.LAYER_NORM: 2, RowOp.RMS_NORM: 1}.get(op, 0)]
    problem = RowFunction(op, layout=layout, **dict.fromkeys(beside, "f32"))
    program = verify(built(problem))
    assert parse_program(print_program(program)) == program
    x = rough((2, 3, ROWS, COLUMNS))
    memory = np.ascontiguousarray(x if layout == "row" else x.swapaxes(2, 3))
    numbers = 6 * ROWS
    size = numbers if op.reduces else x.size
    arrays = {"x": memory.ravel(), "y": np.full(size, np.nan, np.float32)}
    arrays |= {name: rough((COLUMNS,), seed=1) for name in beside}
    line = COLUMNS if layout == "row" else ROWS
    steps = (3 * ROWS * COLUMNS, ROWS * COLUMNS, line)
    counts = (2, 3, ROWS, COLUMNS)
    to = (3 * ROWS, ROWS, 1) if op.reduces else steps
    sizes = dict(zip(program.sizes, (*counts, *steps, *to), strict=True))
    interpret(program, sizes, {"eps": 0.5} if op.takes_eps else {}, arrays)
    expected = problem.reference(x, *(arrays[name] for name in beside), eps=0.5)
    if op.reduces:
        np.testing.assert_allclose(arrays["y"], expected.ravel(), rtol=1e-5, atol=1e-6)
        return
    found = arrays["y"].reshape(memory.shape)
    np.testing.assert_allclose(found if layout == "row" else found.swapaxes(2, 3), expected, rtol=1e-5)


def window(buffer: str, row: int = COLUMNS, column: int = 1) -> Slice:
    return Slice(buffer, Constant(0), (Constant(row), Constant(column)))


ACROSS = window("x", 1, ROWS)
SIZES = (Constant(ROWS), Constant(COLUMNS), Constant(0), Constant(0))
ONE_READING = (*SIZES[:2], Constant(0))
SOFTMAX = SoftmaxRows(window("y"), window("x"), *SIZES)
LAYER_NORM = LayerNormRows(window("y"), window("x"), *SIZES, Scalar(0.5), window("w"))


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (replace(SOFTMAX, to=window("y", 1, ROWS)), "must be adjacent in to and source"),
        (replace(SOFTMAX, source=window("x", 14, 2)), "must be adjacent in to and source"),
        (replace(SOFTMAX, to=window("narrow")), "to and source have one type"),
        (replace(LAYER_NORM, weight=window("w", 0, 2)), "elements of weight must be adjacent"),
        (replace(SOFTMAX, kept=window("narrow")), "kept is of the type that rows are computed in"),
        (replace(SOFTMAX, to=ACROSS, source=ACROSS), "adjacent rows need their state"),
        (
            SumRows(window("y", 2), window("x", 14, 2), *ONE_READING),
            "rows and their numbers, must be adjacent",
        ),
        (
            SumRows(window("y", 2), ACROSS, *ONE_READING, window("w")),
            "rows and their numbers, must be adjacent",
        ),
        (MaxRows(window("narrow"), window("x"), *ONE_READING), "to and source have one type"),
        (MaxRows(ACROSS, ACROSS, *ONE_READING), "adjacent rows need their state"),
    ],
)
def test_windows_that_are_refused(node: Primitive, words: str) -> None:
    dtypes: dict[str, DType] = {"x": F32, "y": F32, "w": F32, "narrow": BF16}
    buffers = tuple(Buffer(name, dtype, Space.ARGUMENT) for name, dtype in dtypes.items())
    with pytest.raises(InvalidTileIr, match=words):
        verify(Program("p", (), (), buffers, (node,)))
