"""Array views of the elements that a nest accesses: subscripts are checked, and each loop becomes an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.cached import cached_property
from tilewright.loops.nests.nest import MatrixProduct
from tilewright.loops.nests.polynomial import Polynomial, Symbol
from tilewright.loops.python.elements import AxisStride, PythonNest
from tilewright.records import dataclass

Array: TypeAlias = NDArray[Any]
#: For each axis of an array: the first subscript, and its step along each dimension.
Places: TypeAlias = tuple[tuple[int, ...], ...]


class AsWritten(Exception):
    """Raised if the loops must run as written; the argument says why."""


class AxisPlan(NamedTuple):
    """One axis of an operand: the first subscript, and its step along each dimension, by dimension number."""

    start: Polynomial
    steps: tuple[tuple[int, Polynomial], ...]


@dataclass(frozen=True)
class OperandPlan:
    """Access pattern of one operand of a nest.

    Attributes
    ----------
    name : the array expression.
    axes : its subscripts.
    distinct : whether each dimension may move one axis only; required of the result.
    """

    name: str
    axes: tuple[AxisPlan, ...]
    distinct: bool = False

    @cached_property
    def moved(self) -> tuple[int | None, ...] | None:
        """The dimension that moves each axis, or None for a constant one; None if the view is not a slice."""
        numbers = [number for axis in self.axes for number, _ in axis.steps]
        if any(len(axis.steps) > 1 for axis in self.axes) or (
            self.distinct and len(set(numbers)) < len(numbers)
        ):
            return None
        return tuple(axis.steps[0][0] if axis.steps else None for axis in self.axes)

    @cached_property
    def dimensions(self) -> tuple[int, ...]:
        """The dimensions of the view's axes."""
        if self.moved is not None:
            return tuple(number for number in self.moved if number is not None)
        return tuple(dict.fromkeys(number for axis in self.axes for number, _ in axis.steps))

    def view(self, array: Array, counts: Sequence[int], places: Places) -> Array:
        """The accessed elements, with an axis for each of `dimensions`.

        Raises
        ------
        AsWritten : a subscript is out of range, or changes sign within the loop and so wraps around.
        """
        if self.moved is None:
            return self._strided(array, counts, places)
        subscripts: list[Any] = []
        whole = True
        for length, number, place in zip(array.shape, self.moved, places, strict=True):
            if number is None:
                subscripts.append(self._checked(place[0], 0, length))
                whole = False
                continue
            start, step = place
            first = self._checked(start, step * (counts[number] - 1), length)
            whole = whole and first == 0 and step == 1 and counts[number] == length
            end = first + step * counts[number]
            subscripts.append(slice(first, end if end >= 0 else None, step))
        return (
            array if whole else array[(*subscripts, ...)]
        )  # an array also of one element: it has an address

    def _checked(self, start: int, moved: int, length: int) -> int:
        """The first subscript, counted from the front, after checking range and sign of all of them."""
        low, high = (start, start + moved) if moved >= 0 else (start + moved, start)
        if low < 0 and high < 0:
            start, low, high = start + length, low + length, high + length
        if low < 0 or high >= length:
            raise AsWritten(f"subscripts of {self.name} reach from {low} to {high}, of {length}")
        return start

    def _strided(self, array: Array, counts: Sequence[int], places: Places) -> Array:
        """A strided view for dimensions that move several axes, or axes moved by several dimensions."""
        strides = dict.fromkeys(self.dimensions, 0)
        first: list[slice] = []
        for length, stride, axis, (start, *steps) in zip(
            array.shape, array.strides, self.axes, places, strict=True
        ):
            moves = [step * (counts[number] - 1) for (number, _), step in zip(axis.steps, steps, strict=True)]
            least = start + sum(min(move, 0) for move in moves)
            place = self._checked(least, sum(map(abs, moves)), length) + start - least
            first.append(slice(place, place + 1))
            for (number, _), step in zip(axis.steps, steps, strict=True):
                strides[number] += step * stride
        shape = [counts[number] for number in strides]
        begin = array[tuple(first)]
        return np.lib.stride_tricks.as_strided(
            begin, shape, list(strides.values()), writeable=array.flags.writeable
        )


def operand_plan(product: MatrixProduct, nest: PythonNest, name: str) -> OperandPlan:
    """How a nest accesses A, B or C, from the record of its product."""
    operand = getattr(product, name)
    strides = [getattr(dimension, name) for dimension in product.dimensions]
    array = operand.memory.name
    axes = []
    for number in range(nest.arrays[array]):
        axis = AxisStride.of(array, number)
        steps = (
            (n, _coefficient(stride, axis)) for n, stride in enumerate(strides) if axis in stride.symbols
        )
        axes.append(AxisPlan(_coefficient(operand.offset, axis), tuple(steps)))
    return OperandPlan(array, tuple(axes), distinct=name == "c")


def _coefficient(polynomial: Polynomial, symbol: Symbol) -> Polynomial:
    """The coefficient of a symbol."""
    return polynomial.substitute({symbol: 1}) - polynomial.substitute({symbol: 0})
