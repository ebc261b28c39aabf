"""What a row of the table of operations has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tilewright.graph.builder import Graph
from tilewright.graph.sizes import Shape
from tilewright.graph.value import Value


class TensorType(NamedTuple):
    """Element type and shape of a tensor."""

    dtype: np.dtype[Any]
    shape: Shape


class AtenCall(NamedTuple):
    """A call of an operation that a row converts.

    Attributes
    ----------
    graph : where its nodes go.
    type : of its result, the first of several; None for lists of results.
    fake : PyTorch's fake result.
    """

    graph: Graph
    type: TensorType | None
    fake: Any

    @property
    def result(self) -> TensorType:
        """The type of the one result."""
        assert self.type is not None
        return self.type


class Row(NamedTuple):
    """How an operation becomes values of a graph.

    Attributes
    ----------
    convert : takes the call, then the arguments of the operation with values in place of tensors.
    results : 1, or None for a list of all results.
    heavy : whether it is worth a call of machine code, as products are and views are not.
    view : whether it is a view of its operand.
    """

    convert: Callable[..., Value | list[Value]]
    results: int | None = 1
    heavy: bool = False
    view: bool = False
