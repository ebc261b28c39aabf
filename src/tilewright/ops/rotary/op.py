"""Rotary embeddings declared: their cut, nest, kernel names and C parameters."""

from __future__ import annotations

from tilewright.compiler.kernel import Kernel
from tilewright.compiler.operation import Compilation, Op
from tilewright.ops.rotary.cut import choose_rotary
from tilewright.ops.rotary.nest import build_rotary
from tilewright.ops.rotary.problem import Rotary
from tilewright.preparing import Late
from tilewright.spec.rotary import Pairing

_MEANINGS = {
    "x": "batch x outer x rows x (2 pairs + rest) of {0}, elements of a row adjacent",
    "y": "as x, and x itself or apart from it",
    "cos": "positions x pairs of {0}, elements of a row adjacent",
    "sin": "as cos",
    "positions": "batch x outer x rows of {0}: a row of cos and sin for each row of x; not checked",
    "batch": "matrices of matrices",
    "outer": "matrices",
    "rows": "of each matrix",
    "pairs": "of elements of a row that are rotated",
    "rest": "elements of a row behind them, which are copied",
}


def _meaning(state: Compilation, name: str) -> str:
    """What a parameter of the C function is."""
    if name in {buffer.name for buffer in state.program.arguments}:
        return _MEANINGS[name].format(state.program.buffer(name).dtype)
    array, _, axis = name.partition("_")
    return _MEANINGS.get(name, f"of {array}, from one {'row' if axis == 'line' else axis} to the next")


def _stem(problem: Rotary) -> str:
    return f"rotary_{problem.pairing.value}_{problem.dtype}_{problem.tables}"


_PAIRS = {Pairing.HALVES: "(x[j], x[j + pairs])", Pairing.INTERLEAVED: "(x[2j], x[2j + 1])"}


ROTARY = Op(
    problem=Rotary,
    cut=choose_rotary,
    nest=lambda problem, cut, _, name: build_rotary(problem, cut, name),
    stem=_stem,
    kernel=Kernel,
    formula=lambda problem: (
        f"y = x with the pairs {_PAIRS[problem.pairing]} of every row rotated by the angles of its position; "
        "a team's tasks are some rows each."
    ),
    overlap=lambda _: "y is x's own memory with x's strides, or apart from it; strides are in elements.",
    meaning=_meaning,
    written=lambda _: ("y",),
    strategy=lambda _: "row by row, vectors of pairs",
    example=Late("tilewright.ops.rotary.example:rotary_example"),
)
