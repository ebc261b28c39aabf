"""Dimensions of a contraction by their role, in the order that moves memory best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class StridedAxis(NamedTuple):
    """A dimension of a contraction: how long, and its stride in each operand that has it, in elements."""

    size: int
    a: int | None
    b: int | None
    c: int | None

    @property
    def role(self) -> tuple[bool, bool, bool]:
        """Which operands have it."""
        return self.a is not None, self.b is not None, self.c is not None

    def step(self, operand: str) -> int:
        """The stride in one operand, 0 where it lacks the dimension."""
        found: int | None = getattr(self, operand)
        return found or 0


def arrange(
    axes: Sequence[StridedAxis],
) -> tuple[bool, list[StridedAxis], list[StridedAxis], list[StridedAxis], list[StridedAxis]]:
    """Dimensions by their role, in the order that moves memory best, and whether A and B changed places.

    Adjacent elements of C should be columns: if they are those of A, A and B change places. The fastest
    dimension of each kind is the one with the smallest stride: of C for columns, else of the operand packed,
    whose strides order the others: for each depth a panel reads elements of another page, and the next one
    should go on there.

    >>> m, n, k = StridedAxis(5, 1, None, 3), StridedAxis(3, None, 7, 1), StridedAxis(7, 5, 1, None)
    >>> arrange([m, n, k])[0]
    False
    """
    swapped = is_swapped(axes)
    return (swapped, *ordered(axes, swapped=swapped))


def is_swapped(axes: Sequence[StridedAxis]) -> bool:
    """Whether A and B change places, so that adjacent elements of C are columns."""
    written = [axis for axis in axes if axis.c is not None and axis.size > 1]
    nearest = min(written, key=lambda axis: abs(axis.c or 0), default=None)
    return nearest is not None and nearest.role == (True, False, True)


def ordered(
    axes: Sequence[StridedAxis], *, swapped: bool
) -> tuple[list[StridedAxis], list[StridedAxis], list[StridedAxis], list[StridedAxis]]:
    """Batch, rows, columns and depths, the fastest dimension of each last; see `arrange`."""
    if swapped:
        axes = [StridedAxis(axis.size, axis.b, axis.a, axis.c) for axis in axes]

    def order(role: tuple[bool, bool, bool], *operands: str) -> list[StridedAxis]:
        def strides(axis: StridedAxis) -> tuple[int, int]:
            found = [abs(getattr(axis, name)) for name in operands]
            return min(found), max(found)

        return sorted((axis for axis in axes if axis.role == role), key=strides, reverse=True)

    return (
        order((True, True, True), "c"),
        order((True, False, True), "a"),
        _adjacent_last(order((False, True, True), "b")),
        order((True, True, False), "a", "b"),
    )


def _adjacent_last(columns: list[StridedAxis]) -> list[StridedAxis]:
    """The same with the dimension last that has the smallest stride in C."""
    last = min(reversed(columns), key=lambda axis: abs(axis.c or 0), default=None)
    return columns if last is None else [*(axis for axis in columns if axis is not last), last]
