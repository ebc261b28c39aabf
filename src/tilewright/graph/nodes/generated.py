"""Values that follow from the sizes of a call: arrays of sizes, and runs of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.calls.operands import Array
from tilewright.calls.recording import constant
from tilewright.graph.nodes.base import Node, ValueType, moved
from tilewright.graph.sizes import ONE, Shape, Sizes, evaluate, evaluate_shape, size_of
from tilewright.loops.nests.polynomial import Polynomial
from tilewright.records import dataclass


@dataclass(frozen=True)
class SizesNode(Node):
    """An array whose elements are sizes.

    Attributes
    ----------
    elements : the sizes, in row-major order.
    lengths : the shape of the array.
    """

    elements: Shape = ()
    lengths: tuple[int, ...] = ()
    dtype: np.dtype[Any] = np.dtype("i8")

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The declared type."""
        return ValueType(self.dtype, tuple(map(size_of, self.lengths)))

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """The sizes of the call."""
        return np.array(evaluate_shape(self.elements, sizes), self.dtype).reshape(self.lengths)

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """A copy of an array that belongs to the call's shapes."""
        moved(out, constant(self.evaluate(arrays, sizes)))


@dataclass(frozen=True)
class IotaNode(Node):
    """start, start + step, ...: as many integers as a size says."""

    length: Polynomial = ONE
    start: Polynomial = Polynomial()
    step: int = 1
    dtype: np.dtype[Any] = np.dtype("i8")

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """A vector of the given length."""
        return ValueType(self.dtype, (self.length,))

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """By `numpy.arange`."""
        found = np.arange(evaluate(self.length, sizes)) * self.step + evaluate(self.start, sizes)
        return found.astype(self.dtype)

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """A copy of an array that belongs to the call's shapes."""
        moved(out, constant(self.evaluate(arrays, sizes)))
