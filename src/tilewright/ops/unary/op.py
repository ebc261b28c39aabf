"""Unary primitives declared: their cut, nest, kernel names and C parameters."""

from __future__ import annotations

from tilewright.compiler.operation import Compilation, Op, layouts_text, matrix_meaning, sizes_text
from tilewright.ops.unary.kernel import UnaryKernel
from tilewright.ops.unary.nest import build_unary, choose_blocks
from tilewright.ops.unary.problem import Unary
from tilewright.spec.arguments import unchecked
from tilewright.spec.functions import UnaryOp


def _stem(problem: Unary) -> str:
    sizes = sizes_text("mn", (problem.m, problem.n))
    return f"unary_{problem.op.value}_{problem.dtype}_{sizes}_{layouts_text(problem)}"


def _meaning(state: Compilation, name: str) -> str:
    problem: Unary = state.problem
    unread = problem.op is UnaryOp.ZERO
    if unread and name == "a":
        return "not read, may be null"
    text = matrix_meaning(state, name)
    return f"{text}; not read" if unread and name.endswith("_a") and not text.endswith("not read") else text


def _of(op: str, m: int | None = None, n: int | None = None, dtype: str = "f32", b: str = "col") -> Unary:
    """Write the code for B = op(A), A column-major.

    Parameters
    ----------
    op : zero, identity, relu, square, exp, tanh, gelu, ...
    m : rows; omitted: given at run time.
    n : columns; omitted: given at run time.
    dtype : f32 or f64; for zero and identity also i8, i16, c128, ...
    b : layout of B: col, or row, which transposes.
    """
    return Unary(unchecked(op), m, n, unchecked(dtype), b=unchecked(b))


UNARY = Op(
    problem=Unary,
    cut=choose_blocks,
    nest=lambda problem, blocks, _, name: build_unary(problem, blocks, name),
    stem=_stem,
    kernel=UnaryKernel,
    formula=lambda problem: f"B = {problem.op.value}(A), element by element.",
    overlap=lambda _: "B is A's own memory in the same layout, or apart from it; strides are in elements.",
    meaning=_meaning,
    arguments=_of,
)
