"""Dimensions of a contraction by their role, in the order that moves memory best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tilewright.spec.axes import StridedAxis
from tilewright.spec.roles import DimensionRole


class OrderedAxes(NamedTuple):
    """The dimensions of each role, the fastest one last."""

    batch: Sequence[StridedAxis]
    m: Sequence[StridedAxis]
    n: Sequence[StridedAxis]
    k: Sequence[StridedAxis]


def is_swapped(axes: Sequence[StridedAxis]) -> bool:
    """Whether A and B are swapped: where the contiguous dimension of C is one of A.

    >>> is_swapped([StridedAxis(5, 1, None, 3), StridedAxis(3, None, 7, 1), StridedAxis(7, 5, 1, None)])
    False
    """
    written = [axis for axis in axes if axis.c is not None and axis.size > 1]
    nearest = min(written, key=lambda axis: abs(axis.c or 0), default=None)
    return nearest is not None and nearest.role is DimensionRole.M


def ordered(axes: Sequence[StridedAxis], *, swapped: bool) -> OrderedAxes:
    """Dimensions by role, ordered by stride, once A and B are swapped or not.

    Columns end with the dimension of the smallest stride in C. Every other role is ordered by the strides of
    the operand that is packed: for each depth a panel reads elements of another page, and the next panel
    should continue there.
    """
    if swapped:
        axes = [StridedAxis(axis.size, axis.b, axis.a, axis.c) for axis in axes]

    def order(role: DimensionRole, *operands: str) -> list[StridedAxis]:
        def strides(axis: StridedAxis) -> tuple[int, int]:
            found = [abs(axis.step(name)) for name in operands]
            return min(found), max(found)

        return sorted((axis for axis in axes if axis.role is role), key=strides, reverse=True)

    columns = order(DimensionRole.N, "b")
    last = min(reversed(columns), key=lambda axis: abs(axis.step("c")), default=None)
    columns = columns if last is None else [*(axis for axis in columns if axis is not last), last]
    return OrderedAxes(
        order(DimensionRole.BATCH, "c"),
        order(DimensionRole.M, "a"),
        columns,
        order(DimensionRole.K, "a", "b"),
    )
