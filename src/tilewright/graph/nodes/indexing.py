"""Values selected by arrays of indices, reversed axes, and padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from tilewright.calls.operands import Array
from tilewright.calls.recording import numpy_call
from tilewright.graph.nodes.base import Node, ValueType, moved
from tilewright.graph.sizes import Shape, Sizes, broadcast, evaluate_shape
from tilewright.records import dataclass


@dataclass(frozen=True)
class FlipNode(Node):
    """An axis from its end to its beginning, as a view."""

    axis_: int = 0
    is_view = True

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The type of x."""
        self.axis(self.axis_, len(types[0].shape))
        return types[0]

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """By `numpy.flip`."""
        return np.flip(arrays[0], self.axis_)


@dataclass(frozen=True)
class PadNode(Node):
    """x between elements of one value.

    Attributes
    ----------
    operands : x, then the value, which has one element.
    before, after : how many elements are added at each end of each axis.
    """

    before: Shape = ()
    after: Shape = ()

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The sizes, with what is added."""
        x, value = types
        self.require(
            len(self.before) == len(self.after) == len(x.shape), "one number for each end of each axis"
        )
        self.require(value.dtype == x.dtype, f"a value of {value.dtype} beside elements of {x.dtype}")
        return ValueType(
            x.dtype,
            tuple(size + a + b for size, a, b in zip(x.shape, self.before, self.after, strict=True)),
        )

    def _inner(self, x: Array, sizes: Sizes) -> tuple[slice, ...]:
        begins = evaluate_shape(self.before, sizes)
        return tuple(slice(begin, begin + length) for begin, length in zip(begins, x.shape, strict=True))

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """By `numpy.full` and a copy."""
        x, value = arrays
        ends = zip(evaluate_shape(self.before, sizes), evaluate_shape(self.after, sizes), strict=True)
        shape = tuple(length + a + b for length, (a, b) in zip(x.shape, ends, strict=True))
        out = np.full(shape, value.reshape(()), x.dtype)
        out[self._inner(x, sizes)] = x
        return out

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """The value everywhere, then a copy of x."""
        x, value = arrays
        numpy_call(np.copyto, out, value.reshape(()))
        if x.size:
            moved(out[self._inner(x, sizes)], x)


def _take_along(out: Array, x: Array, indices: Array, axis: int) -> None:
    out[...] = np.take_along_axis(x[tuple(map(slice, _visible(indices, axis, x)))], indices, axis)


def _visible(indices: Array, axis: int, x: Array) -> list[int]:
    """How much of each axis of x indices reach: other axes may be longer than theirs."""
    return [x.shape[one] if one == axis else length for one, length in enumerate(indices.shape)]


@dataclass(frozen=True)
class TakeAlongNode(Node):
    """Elements of x at positions of one axis, the others being those of the indices."""

    axis_: int = 0

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The shape of the indices."""
        x, indices = types
        self.require_dtype(indices, "indices", "iu", "an integer type")
        self.require(len(x.shape) == len(indices.shape), "x and the indices need as many axes")
        self.axis(self.axis_, len(x.shape))
        return ValueType(x.dtype, indices.shape)

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """By `numpy.take_along_axis`."""
        x, indices = arrays
        out = np.empty(indices.shape, x.dtype)
        _take_along(out, x, indices, self.axis(self.axis_, x.ndim))
        return out

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """By `numpy.take_along_axis`."""
        numpy_call(_take_along, out, *arrays, self.axis(self.axis_, out.ndim))


def _gathered(x: Array, indices: Array, batch: int) -> Any:
    """The index that selects what `GatherNDNode` reads."""
    lengths = indices.shape[:-1]
    own = [
        np.arange(x.shape[axis]).reshape((-1,) + (1,) * (len(lengths) - axis - 1)) for axis in range(batch)
    ]
    return (*own, *np.moveaxis(indices, -1, 0))


def _gather_nd(out: Array, x: Array, indices: Array, batch: int) -> None:
    out[...] = x[_gathered(x, indices, batch)]


@dataclass(frozen=True)
class GatherNDNode(Node):
    """Parts of x at the positions that the last axis of the indices has.

    Attributes
    ----------
    batch : leading axes that x and the indices share.
    """

    batch: int = 0

    def _depth(self, indices: ValueType) -> int:
        depth = indices.shape[-1].constant if indices.shape else None
        self.require(depth is not None, "the last axis of the indices needs a length that is a constant")
        assert depth is not None
        return depth

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The shape of the indices without their last axis, then the axes of x that they do not name."""
        x, indices = types
        self.require_dtype(indices, "indices", "iu", "an integer type")
        depth = self._depth(indices)
        self.require(
            0 <= self.batch < len(indices.shape) and self.batch + depth <= len(x.shape),
            f"positions of {depth} axes behind {self.batch} in {len(x.shape)}",
        )
        self.require(x.shape[: self.batch] == indices.shape[: self.batch], "the leading axes differ")
        return ValueType(x.dtype, (*indices.shape[:-1], *x.shape[self.batch + depth :]))

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """By an array of indices for each axis."""
        x, indices = arrays
        return np.asarray(x[_gathered(x, indices, self.batch)])

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """By an array of indices for each axis."""
        numpy_call(_gather_nd, out, *arrays, self.batch)


ScatterName = Literal["none", "add", "mul", "max", "min"]
_SCATTERS: dict[str, Any] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _scatter_nd(out: Array, indices: Array, updates: Array, function: str) -> None:
    index = tuple(np.moveaxis(indices, -1, 0))
    if function == "none":
        out[index] = updates
    else:
        _SCATTERS[function].at(out, index, updates)


def _scatter_elements(out: Array, indices: Array, updates: Array, function: str, axis: int) -> None:
    grids: Any = np.indices(indices.shape, sparse=True)
    index = (*grids[:axis], indices, *grids[axis + 1 :])
    if function == "none":
        out[index] = updates
    else:
        _SCATTERS[function].at(out, index, updates)


@dataclass(frozen=True)
class ScatterNode(Node):
    """x with elements replaced by updates, or combined with them.

    Attributes
    ----------
    operands : x, indices, updates.
    axis_ : the axis of the positions; None where the last axis of the indices has positions of leading axes.
    """

    function: ScatterName = "none"
    axis_: int | None = None

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The type of x."""
        x, indices, updates = types
        self.require_dtype(indices, "indices", "iu", "an integer type")
        self.require(updates.dtype == x.dtype, f"updates of {updates.dtype} for {x.dtype}")
        if self.axis_ is None:
            depth = indices.shape[-1].constant if indices.shape else None
            self.require(depth is not None, "the last axis of the indices needs a length that is a constant")
            expected = (*indices.shape[:-1], *x.shape[depth:])
        else:
            self.axis(self.axis_, len(x.shape))
            self.require(len(indices.shape) == len(x.shape), "x and the indices need as many axes")
            expected = indices.shape
        found = broadcast(self.name, [updates.shape, expected])
        self.require(found == expected, "the updates do not have the shape that the indices say")
        return x

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """A copy of x, changed by NumPy."""
        out = arrays[0].copy()
        self._change(out, *arrays[1:])
        return out

    def _change(self, out: Array, indices: Array, updates: Array) -> None:
        if not indices.size:
            return
        if self.axis_ is None:
            numpy_call(_scatter_nd, out, indices, updates, self.function)
        else:
            axis = self.axis(self.axis_, out.ndim)
            numpy_call(_scatter_elements, out, indices, updates, self.function, axis)

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """A copy of x, changed by NumPy."""
        x, indices, updates = arrays
        if x is not out:
            moved(out, x)
        self._change(out, indices, updates)
