"""Sums of elementwise products declared: their cut, nest, kernel names and C parameters."""

from __future__ import annotations

from tilewright.compiler.kernel import Kernel
from tilewright.compiler.operation import Compilation, Op
from tilewright.ops.sum_of_products.nest import build_products, choose_products
from tilewright.ops.sum_of_products.problem import SumOfProducts


def _formula(problem: SumOfProducts) -> str:
    product = "x[b, o, t, i, j] * y[b, o, t, i, j]" if problem.factors == 2 else "x[b, o, t, i, j]"
    if problem.walk.sums:
        return f"z[b, o, i] = sum of {product} over turns t and columns j."
    return f"z[b, o, t, i, j] = {product}."


def _meaning(state: Compilation, name: str) -> str:
    if name in state.program.sizes:
        array, _, axis = name.partition("_")
        return f"of {array}, from one {axis} to the next; 0 repeats" if axis else "length of the axis"
    return f"elements of {state.program.buffer(name).dtype}"


PRODUCTS = Op(
    problem=SumOfProducts,
    cut=choose_products,
    nest=lambda problem, cut, _, name: build_products(problem, cut, name),
    stem=lambda problem: f"products_{problem.walk.value}_{problem.factors}_{problem.dtype}",
    kernel=Kernel,
    formula=_formula,
    meaning=_meaning,
    written=lambda _: ("z",),
)
