"""`Value`: what methods of a `Graph` take and return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from tilewright.errors import GraphDtype
from tilewright.graph.nodes.base import ValueType
from tilewright.graph.sizes import SizeLike


class Builder(Protocol):
    """What values ask of their graph."""

    def unary(self, function: str, x: Any) -> Value:
        """A function of each element."""

    def binary(self, function: str, a: Any, b: Any) -> Value:
        """A function of two operands."""

    def matmul(self, a: Any, b: Any) -> Value:
        """A product."""

    def slice(self, x: Any, index: Any) -> Value:
        """Basic indexing."""

    def reshape(self, x: Any, shape: Sequence[SizeLike]) -> Value:
        """Another shape."""

    def transpose(self, x: Any, axes: Sequence[int] | None = None) -> Value:
        """Another order of axes."""


class Value:
    """A value of a `Graph`: the result of a node, with NumPy's operators.

    Attributes
    ----------
    graph : the graph it belongs to.
    dtype, shape : element type, and sizes as polynomials.
    """

    __array_ufunc__ = None  # so that `array + value` asks the value

    def __init__(self, graph: Builder, at: int, kind: ValueType) -> None:
        self.graph, self.at, self._kind = graph, at, kind
        self.dtype, self.shape = kind

    def __repr__(self) -> str:
        return f"<value %{self.at} : {self._kind}>"

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __add__(self, other: Any) -> Value:
        return self.graph.binary("add", self, other)

    def __radd__(self, other: Any) -> Value:
        return self.graph.binary("add", other, self)

    def __sub__(self, other: Any) -> Value:
        return self.graph.binary("subtract", self, other)

    def __rsub__(self, other: Any) -> Value:
        return self.graph.binary("subtract", other, self)

    def __mul__(self, other: Any) -> Value:
        return self.graph.binary("multiply", self, other)

    def __rmul__(self, other: Any) -> Value:
        return self.graph.binary("multiply", other, self)

    def __truediv__(self, other: Any) -> Value:
        return self.graph.binary("divide", self, other)

    def __rtruediv__(self, other: Any) -> Value:
        return self.graph.binary("divide", other, self)

    def __neg__(self) -> Value:
        return self.graph.unary("negative", self)

    def __matmul__(self, other: Any) -> Value:
        return self.graph.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Value:
        return self.graph.matmul(other, self)

    def __getitem__(self, index: Any) -> Value:
        return self.graph.slice(self, index)

    def reshape(self, *shape: SizeLike) -> Value:
        """See `Graph.reshape`."""
        return self.graph.reshape(self, shape)

    def transpose(self, *axes: int) -> Value:
        """See `Graph.transpose`."""
        return self.graph.transpose(self, axes or None)


def typed_alike(a: Any, b: Any) -> tuple[Any, Any]:
    """Two operands, of which one that is a number takes the type of the other one, a value.

    Raises
    ------
    GraphDtype
    """
    if isinstance(a, Value) and is_number(b):
        return a, _number_like(b, a.dtype)
    if isinstance(b, Value) and is_number(a):
        return _number_like(a, b.dtype), b
    return a, b


def _number_like(value: Any, dtype: np.dtype[Any]) -> Any:
    """A number of Python as NumPy takes it beside an array of a type."""
    try:
        kind = np.result_type(dtype, value) if dtype.kind in "biufc" else dtype
        return np.asarray(value, kind)
    except OverflowError as error:
        raise GraphDtype(
            node="constant", operand="value", found=dtype, required="one that holds it"
        ) from error


def is_number(value: object) -> bool:
    """Return whether a value is a number of Python."""
    return isinstance(value, (bool, int, float, complex))
