"""Functions of pairs of elements declared: their cut, nest, kernel names and C parameters."""

from __future__ import annotations

from tilewright.compiler.kernel import Kernel
from tilewright.compiler.operation import Compilation, Op
from tilewright.ops.binary.nest import build_pairs, choose_pairs
from tilewright.ops.binary.problem import BinaryFunction

_COLUMN = "1 where elements of rows of {0} are adjacent, 0 of one operand with one element for each row"
_MEANINGS = {
    "left": "batch x outer x rows x columns of {0}, or repeated by strides of 0",
    "right": "as left",
    "y": "batch x outer x rows x columns of {0}, elements of a row adjacent; left or right itself, or apart",
    "batch": "matrices of matrices",
    "outer": "matrices",
    "rows": "of each matrix",
    "columns": "elements of a row",
    "left_column": _COLUMN.format("left"),
    "right_column": _COLUMN.format("right"),
}


def _meaning(state: Compilation, name: str) -> str:
    """What a parameter of the C function is."""
    if name in _MEANINGS:
        return _MEANINGS[name].format(state.problem.dtype)
    array, _, axis = name.partition("_")
    return f"of {array}, from one {'row' if axis == 'line' else axis} to the next"


def _stem(problem: BinaryFunction) -> str:
    activation = "" if problem.activation is None else f"_{problem.activation.value}"
    return f"binary_{problem.op.value}{activation}_{problem.dtype}"


def _formula(problem: BinaryFunction) -> str:
    right = "right" if problem.activation is None else f"{problem.activation.value}(right)"
    return f"y = {problem.op.value}(left, {right}), element by element; a team's tasks are parts of rows."


BINARY = Op(
    problem=BinaryFunction,
    cut=choose_pairs,
    nest=lambda problem, cut, _, name: build_pairs(problem, cut, name),
    stem=_stem,
    kernel=Kernel,
    formula=_formula,
    overlap=lambda _: (
        "y is the memory of left or right with the same strides, or apart from both; strides are in elements."
    ),
    meaning=_meaning,
    written=lambda _: ("y",),
    strategy=lambda _: "pairs of elements, in whole vectors along rows",
)
