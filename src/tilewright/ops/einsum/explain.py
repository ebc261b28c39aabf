"""How an einsum call is executed: what is done to each operand, how each pair is multiplied, and why."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.operands import Array
from tilewright.compiler.explanation import Considered, Explanation, by_cost, thread_note
from tilewright.compiler.operation import kernel_name
from tilewright.machine.host import host_machine
from tilewright.ops.contraction.problem import table_contraction
from tilewright.ops.einsum.call import plain_array, types_of
from tilewright.ops.einsum.collapse import Collapse
from tilewright.ops.einsum.matmul_pair import MatmulPair, MatrixView
from tilewright.ops.einsum.pair import PairProblem, plan_pair
from tilewright.ops.einsum.plan import EinsumPlan, make_plan
from tilewright.ops.einsum.run import EinsumOptions
from tilewright.ops.einsum.steps import PairStep, PermuteStep
from tilewright.ops.einsum.strategies import PairMethod
from tilewright.ops.einsum.subscripts import interleaved
from tilewright.ops.einsum.table_pair import TablePair
from tilewright.ops.gemm.operands import find_dtype
from tilewright.ops.matmul.explain import explain_matmul
from tilewright.ops.sum_of_products.call import ProductsCall
from tilewright.ops.sum_of_products.problem import Walk
from tilewright.spec.problem import check_elements
from tilewright.threads.pool import limited

#: Descriptions of the kernels that multiply elements.
WALKS = {
    Walk.ALONG: "vectors along adjacent elements are summed",
    Walk.ACROSS: "columns are summed, vectors across them",
    Walk.APART: "elements are summed one by one",
    Walk.WEIGHTED: "rows are summed, each times one element of the other operand",
    Walk.EACH: "vectors of adjacent elements",
    Walk.SINGLE: "elements one by one",
    Walk.SPREAD: "one element of a row times vectors of the other operand",
}


class Told(NamedTuple):
    """The explanation of one step.

    Attributes
    ----------
    made : an array of the shape and strides of what it makes, of memory that is never touched.
    words : how it runs.
    kernel : its name; "" where there is none.
    considered : the strategies for the step.
    work : multiply-adds.
    """

    made: Array
    words: str
    kernel: str = ""
    considered: tuple[Considered, ...] = ()
    work: int = 0


def explain_einsum(subscripts: Any, /, *operands: Any, **keywords: Any) -> Explanation:
    """How ``einsum(subscripts, *operands, **keywords)`` runs; nothing is computed."""
    with limited(keywords.pop("threads", None)):
        return _explain(subscripts, operands, keywords)


def _explain(subscripts: Any, given: Sequence[Any], keywords: dict[str, Any]) -> Explanation:
    text, values = (
        (subscripts, list(given)) if isinstance(subscripts, str) else interleaved((subscripts, *given))
    )
    defaults = {"out": None, "dtype": None, "order": "K", "casting": "safe", "optimize": "auto"}
    options = EinsumOptions(**{**defaults, **keywords})
    options.check()
    arrays = [plain_array(value, number) for number, value in enumerate(values)]
    types = types_of(arrays, options)
    places = [(array.shape, array.strides, array.dtype.kind) for array in arrays]
    plan = make_plan(text, places, options.optimize)
    told = [_collapsed(collapse, array) for collapse, array in zip(plan.collapses, arrays, strict=True)]
    seen, steps = [one.made for one in told], list[Told]()
    for step in plan.steps:
        steps.append(_moved(step, seen) if isinstance(step, PermuteStep) else _met(step, seen, types.partial))
        seen.append(steps[-1].made)
    products = [one for one in steps if one.work]
    largest = max(products, key=lambda one: one.work, default=None)
    notes = [
        *(f"operand {number}: {one.words}" for number, one in enumerate(told) if one.words),
        *(one.words for one in steps if len(steps) > 1),
        *([thread_note(largest.work)] if largest else []),
    ]
    considered = tuple(strategy for one in steps for strategy in one.considered)
    flops = 2 * sum(one.work for one in steps)
    moved = sum(array.nbytes for array in arrays) + prod(plan.shape) * types.result.itemsize
    shapes = " ".join(str(array.shape) for array in arrays)
    return Explanation(
        f"einsum {text} of {shapes} in {types.result}",
        (largest or told[0]).kernel or "none",
        _strategy(plan, told, steps),
        tuple(one.decision for one in considered),
        tuple(notes),
        (f"{flops:,} flops, {moved:,} bytes at least",),
        considered,
    )


def _strategy(plan: EinsumPlan, told: Sequence[Told], steps: Sequence[Told]) -> str:
    """All of it in words."""
    match steps:
        case []:
            return told[0].words or "a view of the operand"
        case [only]:
            return only.words
        case _:
            products = sum(isinstance(step, PairStep) for step in plan.steps)
            return f"{products} pairs, one after the other; {len(steps) - products} results are moved"


def _untouched(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """ResultMemory of an array that is asked about, and never written."""
    check_elements("a result", shape)
    return np.empty(shape, dtype)


def _collapsed(collapse: Collapse | None, array: Array) -> Told:
    """How one operand is reduced before any pair."""
    if collapse is None:
        return Told(array, "")
    if collapse.is_view:
        return Told(collapse.view(array), "a view: diagonals, axes of length 1, another order of axes")
    made = _untouched(collapse.shape, array.dtype)
    made = made if collapse.axes is None else made.transpose(collapse.axes)
    call = collapse.products(array)
    how = "NumPy" if call is None else _walk(call)
    kernel = "" if call is None else kernel_name(call.problem, host_machine().isa.name)
    return Told(made, f"summed over labels of this operand only: {how}", kernel)


def _walk(call: ProductsCall) -> str:
    """Description of a kernel that multiplies elements."""
    return WALKS[call.problem.walk]


def _moved(step: PermuteStep, seen: Sequence[Array]) -> Told:
    """A result that is copied into another order."""
    array = seen[step.place]
    made = _untouched(tuple(array.shape[axis] for axis in step.axes), array.dtype)
    return Told(made, f"array {step.place} is copied into the order {step.axes} of its axes")


def _met(step: PairStep, seen: Sequence[Array], dtype: np.dtype[Any]) -> Told:
    """Two arrays that meet."""
    a, b = seen[step.left], seen[step.right]
    problem = PairProblem.of(step.labels, a, b)
    work, name = prod(problem.sizes.values()), "{},{}->{}".format(*step.labels)
    considered = _considered(name, problem) if problem.roles.summed else ()
    match plan_pair(problem):
        case ProductsCall() as call:
            kernel = kernel_name(call.problem, host_machine().isa.name)
            words = f"{name} {PairMethod.ELEMENTS.value}: {_walk(call)}"
            return Told(_untouched(call.shape, dtype), words, kernel, (), work)
        case TablePair():
            kernel = kernel_name(table_contraction(find_dtype(a.dtype)), host_machine().isa.name)
            words = f"{name} {PairMethod.TABLES.value}: five loops around operands packed through tables"
            return Told(_untouched(problem.shape, dtype), words, kernel, considered, work)
        case MatmulPair() as views:
            made = views.result.of(_untouched(views.result.product, dtype))
            if views.by_elements:
                return Told(made, f"{name} {PairMethod.ELEMENTS.value}: NumPy", "", (), work)
            return Told(made, *_by_matmul(name, views, a, b), considered, work)


def _by_matmul(name: str, pair: MatmulPair, a: Array, b: Array) -> tuple[str, str]:
    """The words and the kernel of a pair that `matmul` multiplies."""
    first, second = _seen(pair.a, a), _seen(pair.b, b)
    if pair.transposed:
        first, second = second, first
    inside = explain_matmul(first, second)
    copied = [label for label, view in (("the first", pair.a), ("the second", pair.b)) if view.copied]
    where = f"{' and '.join(copied)} copied" if copied else PairMethod.IN_PLACE.value
    loops = f", in {prod(pair.stacks)} calls" if pair.stacks else ""
    words = f"{name} {where}: matmul {first.shape} @ {second.shape}{loops}, {inside.strategy}"
    return words, inside.kernel


def _seen(view: MatrixView, array: Array) -> Array:
    """An operand as a product takes it; where that is a copy, memory that is never touched."""
    if not view.copied:
        return view.of(array)
    shape = array.shape if view.axes is None else tuple(array.shape[axis] for axis in view.axes)
    return _untouched(view.shape or shape, array.dtype)


def _considered(name: str, problem: PairProblem) -> tuple[Considered, ...]:
    """The strategies to multiply a pair, the one that is taken first."""
    costs, given = problem.costs, (problem.roles, *problem.axes)
    taken = costs.cheapest(*given)
    others = [strategy for strategy in costs.candidates(*given) if strategy != taken]
    others.sort(key=lambda strategy: strategy.cycles)
    return by_cost((f"{name} {one}", one.cycles, "") for one in (taken, *others))
