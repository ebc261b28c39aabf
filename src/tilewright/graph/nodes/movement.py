"""Values whose elements are those of their operands: views, and copies into one place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.calls.operands import Array
from tilewright.calls.recording import numpy_call
from tilewright.graph.nodes.base import Node, ValueType, moved
from tilewright.graph.sizes import (
    ONE,
    Shape,
    Sizes,
    broadcast,
    evaluate,
    evaluate_shape,
    product,
    shown_shape,
)
from tilewright.loops.nests.polynomial import Polynomial
from tilewright.records import dataclass

ZERO = Polynomial()


@dataclass(frozen=True)
class ReshapeNode(Node):
    """The elements of x in row-major order, in another shape; a view where the memory allows it."""

    shape: Shape = ()
    is_view = True

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The given shape, which must have as many elements."""
        x = types[0]
        same = product(x.shape) == product(self.shape)
        self.require(same, f"{shown_shape(x.shape)} has not as many elements as {shown_shape(self.shape)}")
        return ValueType(x.dtype, self.shape)

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """By `numpy.reshape`."""
        return arrays[0].reshape(evaluate_shape(self.shape, sizes))

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """A copy, where no view has the shape."""
        moved(out.reshape(arrays[0].shape), arrays[0])


@dataclass(frozen=True)
class TransposeNode(Node):
    """The axes of x in another order, as a view."""

    axes: tuple[int, ...] = ()
    is_view = True

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The sizes in the other order."""
        x = types[0]
        ndim = len(x.shape)
        order = sorted(self.axis(axis, ndim) for axis in self.axes)
        self.require(order == list(range(ndim)), f"axes {self.axes} are no order of the {ndim} axes of x")
        return ValueType(x.dtype, tuple(x.shape[axis] for axis in self.axes))

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """By `numpy.transpose`."""
        return arrays[0].transpose(self.axes)


@dataclass(frozen=True)
class SliceNode(Node):
    """Elements start to stop of one axis in steps, as a view."""

    axis_: int = 0
    start: Polynomial = ZERO
    stop: Polynomial = ONE
    step: int = 1
    is_view = True

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The sizes, the axis' own changed."""
        x = types[0]
        axis = self.axis(self.axis_, len(x.shape))
        length = self.stop - self.start
        if self.step != 1:
            known = length.constant
            self.require(known is not None, "a step needs bounds that are constants")
            assert known is not None
            length = Polynomial.of(len(range(0, known, self.step)))
        for bound in (self.start, self.stop, x.shape[axis] - self.stop):
            self.require((bound.constant or 0) >= 0, f"bounds {self.start}:{self.stop} leave the axis")
        return ValueType(x.dtype, (*x.shape[:axis], length, *x.shape[axis + 1 :]))

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """By a slice."""
        x = arrays[0]
        axis = self.axis(self.axis_, x.ndim)
        bounds = evaluate(self.start, sizes), evaluate(self.stop, sizes)
        self.require(
            0 <= bounds[0] <= bounds[1] <= x.shape[axis], f"bounds {bounds} leave an axis of {x.shape[axis]}"
        )
        return x[(slice(None),) * axis + (slice(*bounds, self.step),)]


@dataclass(frozen=True)
class ExpandNode(Node):
    """x broadcast to a shape, as a view."""

    shape: Shape = ()
    is_view = True

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The given shape."""
        found = broadcast(self.name, (types[0].shape, self.shape))
        self.require(
            found == self.shape,
            f"{shown_shape(types[0].shape)} does not broadcast to {shown_shape(self.shape)}",
        )
        return ValueType(types[0].dtype, self.shape)

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """By `numpy.broadcast_to`."""
        return np.broadcast_to(arrays[0], evaluate_shape(self.shape, sizes))


@dataclass(frozen=True)
class ConcatenateNode(Node):
    """Operands one behind the other along an axis."""

    axis_: int = 0

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The sizes of the first operand, the axis' own added up."""
        first = types[0]
        axis = self.axis(self.axis_, len(first.shape))
        total = Polynomial()
        for one in types:
            rest = one.shape[:axis] + one.shape[axis + 1 :]
            self.require(rest == first.shape[:axis] + first.shape[axis + 1 :], "sizes of other axes differ")
            total = total + one.shape[axis]
        dtype = np.result_type(*(one.dtype for one in types))
        return ValueType(dtype, (*first.shape[:axis], total, *first.shape[axis + 1 :]))

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """By `numpy.concatenate`."""
        return np.concatenate(arrays, self.axis_)

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """Each operand is copied to its place."""
        axis, at = self.axis(self.axis_, out.ndim), 0
        for one in arrays:
            moved(out[(slice(None),) * axis + (slice(at, at + one.shape[axis]),)], one)
            at += one.shape[axis]


@dataclass(frozen=True)
class TakeNode(Node):
    """Elements of x at indices along an axis: an embedding look-up for axis 0.

    Indices from the end are negative; others outside of the axis raise IndexError before the graph has
    written a result.
    """

    axis_: int = 0

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The axis' size replaced by the shape of the indices."""
        x, indices = types
        self.require_dtype(indices, "indices", "iu", "an integer type")
        axis = self.axis(self.axis_, len(x.shape))
        return ValueType(x.dtype, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """By `numpy.take`."""
        x, indices = arrays
        return np.take(x, indices, axis=self.axis_)

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """By `numpy.take`."""
        numpy_call(np.take, *arrays, axis=self.axis_, out=out)
