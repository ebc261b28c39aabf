"""A plan of einsum as a recipe: the steps that machine code repeats for operands of the same strides."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.calls.operands import Array
from tilewright.calls.recipes import Made, view_step
from tilewright.ops.einsum.collapse import Collapse
from tilewright.ops.einsum.pair import plan_pair
from tilewright.ops.einsum.plan import EinsumPlan
from tilewright.ops.einsum.steps import PairStep


def steps_of_plan(plan: EinsumPlan, operands: Sequence[Array], out: Array | None) -> list[Made] | None:
    """The steps that machine code repeats a plan in; None where it does not.

    Parameters
    ----------
    operands : plain aligned arrays of the type that results have, those of all steps included.
    out : an array of that type that receives the result.
    """
    made: list[Made] = []
    arrays: list[Array] = [*operands]
    alone = not plan.steps
    places: list[int] = []  # in `arrays`, of operands as pairs take them and of what pairs make
    for place, collapse in enumerate(plan.collapses):
        if collapse is None:
            places.append(place)
            continue
        one = _collapsed(collapse, operands[place], place, out if alone else None, last=alone)
        if one is None:
            return None
        made.append(one)
        places.append(len(arrays))
        arrays.append(one.result)
    for number, step in enumerate(plan.steps, 1):
        if not isinstance(step, PairStep):
            return None
        last = number == len(plan.steps)
        if step.shape is not None and not last:
            return None
        left, right = places[step.left], places[step.right]
        a, b = arrays[left], arrays[right]
        target = None if out is None or not last else out.squeeze(plan.squeezed)
        into = None if target is None else target.strides
        pair = plan_pair(step.labels, (a.shape, b.shape), (a.strides, b.strides), into, a.dtype)
        one = pair.step(((left, a), (right, b)), target, last=last and not plan.squeezed)
        if one is None:
            return None
        made.append(one)
        places.append(len(arrays))
        arrays.append(one.result)
    if out is None and arrays[-1].shape != plan.shape:
        one = view_step(arrays[-1], arrays[-1].reshape(plan.shape), len(arrays) - 1)
        if one is None:
            return None
        made.append(one)
    return made


def _collapsed(
    collapse: Collapse, operand: Array, place: int, out: Array | None, *, last: bool
) -> Made | None:
    """The step that makes an operand what pairs take, or the result."""
    if collapse.is_view:
        return view_step(operand, collapse.view(operand), place) if out is None else None
    call = collapse.products(operand)
    return None if call is None else call.step((place,), operand.dtype, out, last=last)
