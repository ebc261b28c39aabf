"""Functions along one axis: cumulative sums and products, positions of extrema, the largest elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from tilewright.calls.operands import Array
from tilewright.calls.recording import numpy_call
from tilewright.graph.nodes.base import Node, ValueType
from tilewright.graph.sizes import ONE, Sizes
from tilewright.records import dataclass

_CUMULATIVE: dict[str, tuple[Any, int]] = {"sum": (np.cumsum, 0), "prod": (np.cumprod, 1)}
_EXTREMA = {"max": np.argmax, "min": np.argmin}


def _part(axis: int, index: slice) -> tuple[slice, ...]:
    return (*((slice(None),) * axis), index)


@dataclass(frozen=True)
class CumulativeNode(Node):
    """Sums or products of the elements up to each one of an axis.

    Attributes
    ----------
    exclusive : whether an element itself is left out.
    reverse : whether they are of the elements from each one on.
    """

    function: Literal["sum", "prod"] = "sum"
    axis_: int = -1
    exclusive: bool = False
    reverse: bool = False

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The type of x."""
        self.axis(self.axis_, len(types[0].shape))
        return types[0]

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """By `numpy.cumsum` and `numpy.cumprod`."""
        out = np.empty(arrays[0].shape, arrays[0].dtype)
        if out.size:
            self.run(arrays, out, sizes)
        return out

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """By NumPy, on views whose axis is reversed or one shorter."""
        function, neutral = _CUMULATIVE[self.function]
        axis, x = self.axis(self.axis_, out.ndim), arrays[0]
        if self.reverse:
            backward = _part(axis, slice(None, None, -1))
            x, out = x[backward], out[backward]
        if self.exclusive:
            numpy_call(np.copyto, out[_part(axis, slice(0, 1))], neutral)
            x, out = x[_part(axis, slice(0, -1))], out[_part(axis, slice(1, None))]
        if out.size:
            numpy_call(function, x, axis, out.dtype, out, quiet=True)


@dataclass(frozen=True)
class ArgReduceNode(Node):
    """The position of the largest or smallest element of an axis.

    Attributes
    ----------
    last : whether the last of several is taken, not the first.
    """

    function: Literal["max", "min"] = "max"
    axis_: int = 0
    keepdims: bool = False
    last: bool = False

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The shape of x without the axis, or with a length of 1; int64."""
        x = types[0]
        axis = self.axis(self.axis_, len(x.shape))
        kept = (ONE,) if self.keepdims else ()
        return ValueType(np.dtype(np.int64), (*x.shape[:axis], *kept, *x.shape[axis + 1 :]))

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """By `numpy.argmax` and `numpy.argmin`."""
        x = np.flip(arrays[0], self.axis_) if self.last else arrays[0]
        found = _EXTREMA[self.function](x, axis=self.axis_, keepdims=self.keepdims)
        return np.asarray(x.shape[self.axis_] - 1 - found if self.last else found, np.int64)

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """By NumPy, on a reversed view for the last one."""
        x, axis = arrays[0], self.axis(self.axis_, arrays[0].ndim)
        if self.last:
            x = x[_part(axis, slice(None, None, -1))]
        numpy_call(_EXTREMA[self.function], x, axis=axis, out=out, keepdims=self.keepdims)
        if self.last:
            numpy_call(np.subtract, x.shape[axis] - 1, out, out=out)


def _sorted_to(out: Array, x: Array, axis: int, largest: bool, positions: bool) -> None:
    """Writes the first elements of a sorted axis, or their positions, into `out`."""
    # Reversed twice, so that of equal elements the first comes first for either order.
    if largest:
        order = np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
        order = x.shape[axis] - 1 - order
    else:
        order = np.argsort(x, axis=axis, kind="stable")
    order = order[_part(axis, slice(0, out.shape[axis]))]
    out[...] = order if positions else np.take_along_axis(x, order, axis)


@dataclass(frozen=True)
class SortedNode(Node):
    """The first `count` elements of an axis when it is sorted, or their positions.

    Attributes
    ----------
    largest : whether the largest come first.
    positions : whether the result is their positions (int64).
    """

    count: int = 1
    axis_: int = -1
    largest: bool = True
    positions: bool = False

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The shape of x with `count` elements along the axis."""
        x = types[0]
        axis = self.axis(self.axis_, len(x.shape))
        length = x.shape[axis].constant
        self.require(self.count >= 0, f"{self.count} elements")
        self.require(length is None or self.count <= length, f"{self.count} of {length} elements")
        dtype = np.dtype(np.int64) if self.positions else x.dtype
        return ValueType(dtype, (*x.shape[:axis], ONE * self.count, *x.shape[axis + 1 :]))

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """By `numpy.argsort`, stable."""
        x = arrays[0]
        axis = self.axis(self.axis_, x.ndim)
        self.require(self.count <= x.shape[axis], f"{self.count} of {x.shape[axis]} elements")
        out = np.empty(
            (*x.shape[:axis], self.count, *x.shape[axis + 1 :]), np.int64 if self.positions else x.dtype
        )
        _sorted_to(out, x, axis, self.largest, self.positions)
        return out

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """By `numpy.argsort`, stable."""
        axis = self.axis(self.axis_, out.ndim)
        length = arrays[0].shape[axis]
        self.require(self.count <= length, f"{self.count} of {length} elements")
        numpy_call(_sorted_to, out, arrays[0], axis, self.largest, self.positions)
