"""Operands of a contraction as memory: the elements that they reach, and views with an axis per dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import ContractionMemory, InvalidSize
from tilewright.ops.contraction.dimension import Dimension


def stride_of(dimension: Dimension, name: str) -> int:
    """Elements from one index of a dimension to the next in an operand."""
    found: int = getattr(dimension, name)
    return found


def reach(dimensions: Sequence[Dimension], name: str) -> tuple[int, int]:
    """The lowest and the highest element of an operand with these dimensions, relative to the first one.

    >>> reach([Dimension("c", "primitive", 8, in0=-2, out=1)], "in0")
    (-14, 0)
    """
    steps = [((d.size or 0) - 1) * stride_of(d, name) for d in dimensions]
    return sum(min(step, 0) for step in steps), sum(max(step, 0) for step in steps)


def span(array: NDArray[Any]) -> tuple[int, int]:
    """The lowest and the highest element within the memory of an array, relative to its first one.

    >>> span(np.zeros((2, 3)).T[::-1])
    (-2, 3)
    """
    low, high = np.lib.array_utils.byte_bounds(array)
    first = array.__array_interface__["data"][0]
    return -((first - low) // array.itemsize), (high - first) // array.itemsize - 1


def check_memory(dimensions: Sequence[Dimension], name: str, array: NDArray[Any]) -> None:
    """Refuses an array that lacks elements of an operand with these dimensions."""
    if any(dimension.size == 0 for dimension in dimensions):
        return
    (low, high), (found_low, found_high) = reach(dimensions, name), span(array)
    if low < found_low or high > found_high:
        raise ContractionMemory(name=name, low=low, high=high, found_low=found_low, found_high=found_high)


def view(dimensions: Sequence[Dimension], name: str, array: NDArray[Any]) -> NDArray[Any]:
    """An operand in the memory of an array, with one axis for each of its dimensions.

    Raises
    ------
    ContractionMemory, InvalidSize
    """
    shape = []
    for dimension in dimensions:
        if dimension.size is None:
            raise InvalidSize(name=f"size of {dimension}", found=None, required="known: call sized() before")
        shape.append(dimension.size)
    check_memory(dimensions, name, array)
    steps = [stride_of(dimension, name) * array.itemsize for dimension in dimensions]
    # as_strided starts from an array of one element: the bounds of all of them are checked above.
    first = np.lib.stride_tricks.as_strided(array, (1,) * array.ndim if array.size else (0,) * array.ndim)
    return np.lib.stride_tricks.as_strided(first, shape, steps)
