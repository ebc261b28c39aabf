"""Mapping of the axes of two arrays to a kernel's rows, columns and outer loops."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from tilewright.ops.transpose.call import Axis, merged
from tilewright.spec.problem import Layout

#: Plans kept; one takes about 15 us to make.
_PLANS = 1024

#: Loops of a kernel around its columns.
LOOPS = 3


class LinePlan(NamedTuple):
    """Two arrays of one shape as a kernel walks them.

    layout : whether elements of rows or of columns are adjacent.
    sizes : as `macro.row_function.row_sizes` names them.
    elements : of x.
    """

    layout: Layout
    sizes: tuple[int, ...]
    elements: int


def _fused(axes: list[Axis]) -> Axis | None:
    """Axes as one, the last one fastest; None where they are no even walk in both arrays.

    >>> _fused([Axis(2, 12, 12), Axis(3, 4, 4)])
    Axis(length=6, step_a=4, step_b=4)
    """
    whole = Axis(1, 0, 0)
    for axis in reversed(axes):
        if axis.length == 1:
            continue
        if whole.length == 1:
            whole = axis
        elif (axis.step_a, axis.step_b) == (whole.length * whole.step_a, whole.length * whole.step_b):
            whole = Axis(whole.length * axis.length, whole.step_a, whole.step_b)
        else:
            return None
    return whole


@lru_cache(maxsize=_PLANS)
def plan_elements(
    size: int, shape: tuple[int, ...], steps_x: tuple[int, ...], steps_y: tuple[int, ...]
) -> LinePlan | None:
    """The plan of arrays whose elements do not depend on others; None where they have to be copied first.

    Examples
    --------
    >>> plan_elements(4, (8, 5), (20, 4), (20, 4)).sizes  # one row of all elements
    (1, 1, 1, 40, 0, 0, 0, 0, 0, 0)
    """
    rest = merged([Axis(*values) for values in zip(shape, steps_x, steps_y, strict=True)])
    columns = rest.pop() if rest else Axis(1, size, size)
    if not columns.step_a == columns.step_b == size or len(rest) > LOOPS:
        return None
    if any(step % size for axis in rest for step in axis[1:]):
        return None
    loops = [Axis(1, 0, 0)] * (LOOPS - len(rest)) + rest
    strides = [axis[side] // size for side in (1, 2) for axis in loops]
    counts = [axis.length for axis in (*loops, columns)]
    return LinePlan(Layout.ROW, (*counts, *strides), math.prod(shape))


@lru_cache(maxsize=_PLANS)
def plan_numbers(
    size: int,
    shape: tuple[int, ...],
    steps_x: tuple[int, ...],
    steps_y: tuple[int, ...],
    along: tuple[int, ...],
) -> LinePlan | None:
    """The plan of an array whose rows become numbers, or None where it has to be copied first.

    Parameters
    ----------
    size : bytes of an element; steps are in bytes too.
    shape : of x, no axis of length 0.
    steps_y : of the numbers, 0 for axes of a row.
    along : axes of a row, in any order.

    Examples
    --------
    >>> plan_numbers(4, (8, 5), (20, 4), (4, 0), (1,)).sizes  # batch, outer, rows, columns, strides
    (1, 1, 8, 5, 0, 0, 5, 0, 0, 1)
    >>> plan_numbers(4, (8, 5), (20, 4), (0, 4), (0,)).layout
    <Layout.COL: 'col'>
    """
    axes = [Axis(*values) for values in zip(shape, steps_x, steps_y, strict=True)]
    # Elements of a row may be visited in any order, so take their order in memory.
    columns = _fused(sorted((axes[axis] for axis in along), key=lambda axis: -abs(axis.step_a)))
    rest = merged([axis for number, axis in enumerate(axes) if number not in along])
    if columns is None or any(step % size for axis in (*rest, columns) for step in axis[1:]):
        return None
    if columns.length == 1 or columns.step_a == size:
        layout, lines = Layout.ROW, rest.pop() if rest else Axis(1, 0, 0)
        rows, line_x, line_y = lines.length, lines.step_a, lines.step_b
    else:
        beside = next((axis for axis in rest if axis.step_a == axis.step_b == size), None)
        if beside is None:
            return None
        rest.remove(beside)
        layout, rows, line_x, line_y = Layout.COL, beside.length, columns.step_a, 0
    if len(rest) >= LOOPS:
        return None
    batch, outer = [Axis(1, 0, 0)] * (LOOPS - 1 - len(rest)) + rest
    counts = (batch.length, outer.length, rows, columns.length)
    steps = (batch.step_a, outer.step_a, line_x, batch.step_b, outer.step_b, line_y)
    return LinePlan(layout, (*counts, *(step // size for step in steps)), math.prod(shape))


@lru_cache(maxsize=_PLANS)
def plan_lines(
    size: int,
    shape: tuple[int, ...],
    steps_x: tuple[int, ...],
    steps_y: tuple[int, ...],
    along: tuple[int, ...],
) -> LinePlan | None:
    """The plan of arrays whose rows run along some axes, or None where they have to be copied first.

    Parameters
    ----------
    size : bytes of an element; steps are in bytes too.
    shape : of both arrays, no axis of length 0.
    along : axes of a row, the last one fastest.

    Examples
    --------
    >>> plan_lines(4, (8, 5), (20, 4), (20, 4), (1,)).sizes  # batch, outer, rows, columns, strides
    (1, 1, 8, 5, 0, 0, 5, 0, 0, 5)
    >>> plan_lines(4, (8, 5), (20, 4), (20, 4), (0,)).layout
    <Layout.COL: 'col'>
    """
    axes = [Axis(*values) for values in zip(shape, steps_x, steps_y, strict=True)]
    columns = _fused([axes[axis] for axis in along])
    rest = merged([axis for number, axis in enumerate(axes) if number not in along])
    if columns is None or any(step % size for axis in (*rest, columns) for step in axis[1:]):
        return None

    def adjacent(axis: Axis) -> bool:
        return axis.step_a == axis.step_b == size

    if columns.length == 1 or adjacent(columns):
        layout, lines = Layout.ROW, rest.pop() if rest else Axis(1, 0, 0)
        rows, line = lines.length, lines
    else:
        beside = next((axis for axis in rest if adjacent(axis)), None)
        if beside is None:
            return None
        rest.remove(beside)
        layout, rows, line = Layout.COL, beside.length, columns
    if len(rest) >= LOOPS:
        return None
    batch, outer = [Axis(1, 0, 0)] * (LOOPS - 1 - len(rest)) + rest
    counts = (batch.length, outer.length, rows, columns.length)
    strides = [axis[side] // size for side in (1, 2) for axis in (batch, outer, line)]
    return LinePlan(layout, (*counts, *strides), math.prod(shape))
