"""Functions along axes: softmax, norms and reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from tilewright.calls.operands import Array
from tilewright.calls.recording import numpy_call
from tilewright.calls.repeated import in_python
from tilewright.graph.nodes.base import Node, ValueType
from tilewright.graph.sizes import ONE, Sizes
from tilewright.ops.rows.public import layer_norm, log_softmax, rms_norm, softmax
from tilewright.ops.rows.public_reductions import max as row_max
from tilewright.ops.rows.public_reductions import mean as row_mean
from tilewright.ops.rows.public_reductions import min as row_min
from tilewright.ops.rows.public_reductions import sum as row_sum
from tilewright.records import dataclass

_SOFTMAXES = {False: in_python(softmax), True: in_python(log_softmax)}
_layer_norm, _rms_norm = in_python(layer_norm), in_python(rms_norm)

NormName = Literal["layer", "rms"]
ReductionName = Literal["sum", "mean", "max", "min", "prod"]


@dataclass(frozen=True)
class SoftmaxNode(Node):
    """e^x / Σ e^x along axes, or its logarithm."""

    axes: tuple[int, ...] = (-1,)
    log: bool = False

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The type of x."""
        self.require_dtype(types[0], "x", "f", "a floating-point type")
        axes = {self.axis(axis, len(types[0].shape)) for axis in self.axes}
        self.require(len(axes) == len(self.axes), f"axes {self.axes} name an axis twice")
        return types[0]

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """In float64, rounded once."""
        x = arrays[0].astype(np.float64)
        moved = x - x.max(axis=self.axes, keepdims=True)
        total = np.exp(moved).sum(axis=self.axes, keepdims=True)
        found = moved - np.log(total) if self.log else np.exp(moved) / total
        return np.asarray(found, arrays[0].dtype)

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """By `tilewright.softmax`."""
        _SOFTMAXES[self.log](arrays[0], self.axes, out)

    def in_place(self) -> tuple[int, ...]:
        """The memory of x."""
        return (0,)


@dataclass(frozen=True)
class NormNode(Node):
    """Layer or RMS normalisation along the last axes.

    Attributes
    ----------
    operands : x, then weight and bias where there are any.
    """

    kind: NormName = "layer"
    axes: tuple[int, ...] = (-1,)
    eps: float = 1e-5
    weight: bool = False
    bias: bool = False

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The type of x."""
        x = types[0]
        self.require_dtype(x, "x", "f", "a floating-point type")
        lengths = tuple(x.shape[self.axis(axis, len(x.shape))] for axis in self.axes)
        for name, one in zip(("weight", "bias"), types[1:], strict=False):
            self.require(one.shape == lengths, f"the {name} must have the shape of the axes of the norm")
        return x

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """In float64, rounded once."""
        x, *rest = (one.astype(np.float64) for one in arrays)
        if self.kind == "layer":
            x = x - x.mean(axis=self.axes, keepdims=True)
        found = x / np.sqrt(np.square(x).mean(axis=self.axes, keepdims=True) + self.eps)
        if self.weight:
            found = found * rest.pop(0)
        return np.asarray(found + rest.pop(0) if self.bias else found, arrays[0].dtype)

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """By `tilewright.layer_norm` or `rms_norm`."""
        x, *rest = arrays
        weight = rest.pop(0) if self.weight else None
        if self.kind == "rms":
            _rms_norm(x, weight, self.axes, self.eps, out=out)
        else:
            _layer_norm(x, weight, rest.pop(0) if self.bias else None, self.axes, self.eps, out=out)

    def in_place(self) -> tuple[int, ...]:
        """The memory of x."""
        return (0,)


#: Reductions, by name.
REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": np.sum,
    "mean": np.mean,
    "max": np.max,
    "min": np.min,
    "prod": np.prod,
}
_FUNCTIONS = {"sum": row_sum, "mean": row_mean, "max": row_max, "min": row_min}


@dataclass(frozen=True)
class ReduceNode(Node):
    """A reduction along axes, whose lengths become 1 or which are removed."""

    function: ReductionName = "sum"
    axes: tuple[int, ...] = ()
    keepdims: bool = False

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The shape of x without the axes, or with lengths of 1."""
        x = types[0]
        axes = {self.axis(axis, len(x.shape)) for axis in self.axes}
        self.require(len(axes) == len(self.axes), f"axes {self.axes} name an axis twice")
        kept = [ONE if axis in axes else size for axis, size in enumerate(x.shape)]
        shape = kept if self.keepdims else [size for axis, size in enumerate(x.shape) if axis not in axes]
        dtype = self._meaning(np.ones((1,) * len(x.shape), x.dtype)).dtype
        return ValueType(dtype, tuple(shape))

    def _meaning(self, x: Array) -> Array:
        return np.asarray(REDUCTIONS[self.function](x, axis=self.axes, keepdims=self.keepdims))

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """By the function of NumPy."""
        return self._meaning(arrays[0])

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """By the function of this package where there is one."""
        function = _FUNCTIONS.get(self.function)
        if function is None:
            numpy_call(REDUCTIONS[self.function], arrays[0], axis=self.axes, out=out, keepdims=self.keepdims)
        else:
            in_python(function)(arrays[0], self.axes, out=out, keepdims=self.keepdims)
