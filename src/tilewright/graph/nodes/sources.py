"""Values that nothing computes: inputs and constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.calls.operands import Array
from tilewright.graph.nodes.base import Node, ValueType
from tilewright.graph.sizes import Shape, Sizes, shape_of
from tilewright.ops.packing.matrix import PackedMatrix
from tilewright.records import dataclass


@dataclass(frozen=True)
class InputNode(Node):
    """An array that the caller gives."""

    label: str
    dtype: np.dtype[Any]
    shape: Shape

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """As declared."""
        return ValueType(self.dtype, self.shape)

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """Inputs have no meaning of their own."""
        raise AssertionError(self.label)


@dataclass(frozen=True, eq=False)
class ConstantNode(Node):
    """An array or a packed matrix that is part of the graph; two are the same if their values are one object.

    Attributes
    ----------
    label : the name of a weight, or "".
    """

    value: Any
    label: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConstantNode) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)

    @property
    def packed(self) -> bool:
        """Whether the value is a packed matrix."""
        return isinstance(self.value, PackedMatrix)

    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """Those of the value."""
        return ValueType(np.dtype(self.value.dtype), shape_of(self.value.shape))

    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """The value; a packed matrix unpacked."""
        return np.asarray(self.value)

    def options(self) -> str:
        """The label, and how the value is stored."""
        return " ".join(filter(None, (self.label, "packed" if self.packed else "")))
