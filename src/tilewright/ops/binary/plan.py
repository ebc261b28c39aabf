"""Mapping of the axes of two broadcast operands and their result to a kernel's rows, columns and loops."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from tilewright.ops.rows.lines import LOOPS

#: Plans kept; one takes about 15 us to make.
_PLANS = 1024


class PairPlan(NamedTuple):
    """A call on arrays: its sizes, as `nest.pair_sizes` names them, and the number of results."""

    sizes: tuple[int, ...]
    elements: int


class _Axis(NamedTuple):
    """One axis: its length, and its strides in bytes in left, right and the result."""

    length: int
    left: int
    right: int
    to: int

    @property
    def steps(self) -> tuple[int, int, int]:
        """The strides."""
        return self[1:]


def _merged(axes: list[_Axis]) -> list[_Axis]:
    """Axes in descending order of strides in the result; neighbours that all arrays walk on evenly are one.

    >>> _merged([_Axis(4, 20, 0, 20), _Axis(5, 4, 0, 4), _Axis(1, 7, 7, 7)])
    [_Axis(length=20, left=4, right=0, to=4)]
    """
    found: list[_Axis] = []
    for axis in sorted(axes, key=lambda axis: [-abs(step) for step in reversed(axis.steps)]):
        if axis.length == 1:
            continue
        outer = found[-1] if found else None
        if outer and outer.steps == tuple(axis.length * step for step in axis.steps):
            found[-1] = _Axis(outer.length * axis.length, *axis.steps)
        else:
            found.append(axis)
    return found


@lru_cache(maxsize=_PLANS)
def plan_pairs(
    size: int,
    shape: tuple[int, ...],
    steps_left: tuple[int, ...],
    steps_right: tuple[int, ...],
    steps_to: tuple[int, ...],
) -> PairPlan | None:
    """The plan of operands that have been broadcast; None where one of them has to be copied first.

    Parameters
    ----------
    size : bytes of an element; strides are in bytes too, 0 where an operand is repeated.
    shape : of the result, no axis of length 0.

    Examples
    --------
    >>> plan_pairs(4, (8, 5), (20, 4), (0, 4), (20, 4)).sizes  # counts, strides of left, right, y, columns
    (1, 1, 8, 5, 0, 0, 5, 0, 0, 0, 0, 0, 5, 1, 1)
    """
    rest = _merged([_Axis(*values) for values in zip(shape, steps_left, steps_right, steps_to, strict=True)])
    columns = rest.pop() if rest else _Axis(1, size, size, size)
    inner = (columns.left, columns.right)
    if columns.to != size or len(rest) > LOOPS or inner not in ((size, size), (0, size), (size, 0)):
        return None
    if any(step % size for axis in rest for step in axis.steps):
        return None
    loops = [_Axis(1, 0, 0, 0)] * (LOOPS - len(rest)) + rest
    strides = [axis.steps[side] // size for side in range(3) for axis in loops]
    counts = [axis.length for axis in (*loops, columns)]
    return PairPlan((*counts, *strides, *(step // size for step in inner)), math.prod(shape))
