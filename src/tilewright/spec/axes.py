"""Axes of operations on up to two operands and a result: length, and a stride in each array."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tilewright.spec.roles import DimensionRole


class StridedAxis(NamedTuple):
    """An axis of arrays a, b and c: its length, and its stride in each that has it, in elements."""

    size: int
    a: int | None
    b: int | None
    c: int | None

    @property
    def role(self) -> DimensionRole | None:
        """The role by the operands that have the axis."""
        return DimensionRole.of(self.a is not None, self.b is not None, self.c is not None)

    def step(self, operand: str) -> int:
        """The stride in one operand, 0 where it lacks the axis."""
        found: int | None = getattr(self, operand)
        return found or 0

    @property
    def steps(self) -> tuple[int, int, int]:
        """The strides in all three, 0 where one lacks the axis."""
        return self.a or 0, self.b or 0, self.c or 0


def fused_axes(axes: Iterable[StridedAxis]) -> list[StridedAxis]:
    """Axes, outermost first: neighbours that have one stride in every array fused, those of length 1 dropped.

    >>> fused_axes([StridedAxis(2, 60, None, 30), StridedAxis(3, 20, None, 10), StridedAxis(5, 1, None, 2)])
    [StridedAxis(size=6, a=20, b=None, c=10), StridedAxis(size=5, a=1, b=None, c=2)]
    """
    found: list[StridedAxis] = []
    for axis in axes:
        if axis.size == 1:
            continue
        if found and found[-1].steps == tuple(step * axis.size for step in axis.steps):
            found[-1] = axis._replace(size=found[-1].size * axis.size)
        else:
            found.append(axis)
    return found


def row_major(shape: Sequence[int], step: int = 1) -> tuple[int, ...]:
    """The strides of contiguous elements, the last axis fastest; an axis of length 0 counts as one of 1.

    >>> row_major((2, 3, 4)), row_major((2, 0, 3), 4)
    ((12, 4, 1), (12, 12, 4))
    """
    found = []
    for size in reversed(shape):
        found.append(step)
        step *= size or 1
    return tuple(reversed(found))
