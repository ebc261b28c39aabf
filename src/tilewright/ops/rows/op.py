"""Functions of rows declared: their cut, nest, kernel names and C parameters."""

from __future__ import annotations

from tilewright.compiler.kernel import Kernel
from tilewright.compiler.operation import Compilation, Op
from tilewright.ops.rows.nest import build_row_function, choose_rows
from tilewright.ops.rows.problem import RowFunction
from tilewright.spec.problem import Layout

_MEANINGS = {
    "x": "batch x outer x rows x columns of {0}; elements of a {1} are adjacent",
    "y": "as x, and x itself or apart from it",
    "weight": "columns of {0}",
    "bias": "columns of {0}",
    "batch": "matrices of matrices",
    "outer": "matrices",
    "rows": "of each matrix",
    "columns": "elements of a row",
    "eps": "what is added under the root",
}


def line_meaning(state: Compilation, name: str, line: str = "row") -> str:
    """Description of a parameter of a row function; `line` is the contiguous axis."""
    program = state.program
    if name in {buffer.name for buffer in program.arguments}:
        return _MEANINGS[name].format(program.buffer(name).dtype, line)
    array, _, axis = name.partition("_")
    step = f"of {array}, from one {line if axis == 'line' else axis} to the next"
    return _MEANINGS.get(name, step)


def _meaning(state: Compilation, name: str) -> str:
    problem: RowFunction = state.problem
    if name == "y" and problem.op.reduces:
        return f"batch x outer x rows of {state.program.buffer(name).dtype}, apart from x"
    return line_meaning(state, name, "column" if problem.layout is Layout.COL else "row")


def _stem(problem: RowFunction) -> str:
    given = (("weight", problem.weight), ("bias", problem.bias))
    marks = "".join(f"_{name}{dtype}" for name, dtype in given if dtype is not None)
    return f"rows_{problem.op.value}_{problem.dtype}_{problem.layout.letter}{marks}"


def _formula(problem: RowFunction) -> str:
    numbers = "a number for each row, " if problem.op.reduces else ""
    return f"y = {numbers}{problem.op.value} of every row of x; a team's tasks are some rows each."


IN_PLACE = "y is x's own memory with x's strides, or apart from it; strides are in elements."
APART = "y overlaps nothing; strides are in elements."


def row_strategy(problem: RowFunction) -> str:
    """Description of the passes over rows.

    >>> row_strategy(RowFunction("softmax"))
    'rows in pairs, vectors along each row; the next pair is prefetched'
    """
    if problem.op.reduces:
        direction = "vectors along each row" if problem.layout is Layout.ROW else "vectors across rows"
        return f"{direction}, one pass"
    if problem.layout is Layout.ROW:
        return "rows in pairs, vectors along each row; the next pair is prefetched"
    return "vectors across rows, columns in the order of memory"


ROWS = Op(
    problem=RowFunction,
    cut=choose_rows,
    nest=lambda problem, cut, _, name: build_row_function(problem, cut, name),
    stem=_stem,
    kernel=Kernel,
    formula=_formula,
    overlap=lambda problem: APART if problem.op.reduces else IN_PLACE,
    meaning=_meaning,
    written=lambda _: ("y",),
    strategy=lambda state: row_strategy(state.problem),
)
