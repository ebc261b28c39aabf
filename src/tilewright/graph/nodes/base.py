"""What every node of a graph has: operands, the type of its result, its meaning, and how it runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from tilewright.calls.operands import Array
from tilewright.calls.pieces import copy_to, pieces
from tilewright.errors import GraphDtype, GraphShape
from tilewright.graph.sizes import Shape, Sizes, shown_shape
from tilewright.loops.nests.polynomial import Polynomial, Symbol
from tilewright.records import dataclass


class ValueType(NamedTuple):
    """Element type and shape of a value."""

    dtype: np.dtype[Any]
    shape: Shape

    def __str__(self) -> str:
        return f"{self.dtype}{shown_shape(self.shape)}"


@dataclass(frozen=True)
class Node(ABC):
    """An operation on values of a graph, which has one result.

    Attributes
    ----------
    operands : the positions of the operands among the graph's nodes.
    """

    operands: tuple[int, ...]
    #: Whether the result is a view of the first operand's memory.
    is_view: ClassVar[bool] = False

    @abstractmethod
    def infer(self, types: Sequence[ValueType]) -> ValueType:
        """The type of the result.

        Raises
        ------
        GraphShape, GraphDtype : operands that do not fit.
        """

    @abstractmethod
    def evaluate(self, arrays: Sequence[Array], sizes: Sizes) -> Array:
        """The meaning of the node in NumPy; the result of a view is one.

        It is what tests compare with, and what folds constants.
        """

    def run(self, arrays: Sequence[Any], out: Array, sizes: Sizes) -> None:
        """Compute the result into `out`, by functions that a recording sees."""
        raise NotImplementedError

    def in_place(self) -> tuple[int, ...]:
        """Places of operands, best first, whose memory the result may take when nothing else reads it."""
        return ()

    def writes(self) -> tuple[int, ...]:
        """Places of operands that are written to: inputs of the graph, which the caller sees changed."""
        return ()

    def work(self, types: Sequence[ValueType], result: ValueType) -> Polynomial:
        """Floating-point operations, where they decide how long the node takes; 0 for copies and the like."""
        return Polynomial()

    def at_sizes(self, sizes: Sizes) -> Self:
        """The node with its named sizes replaced by numbers."""
        values = {Symbol(name): size for name, size in sizes.items()}

        def fixed(value: Any) -> Any:
            if isinstance(value, Polynomial):
                return value.substitute(values)
            return tuple(map(fixed, value)) if isinstance(value, tuple) else value

        changed = {one.name: fixed(getattr(self, one.name)) for one in fields(self) if one.name != "operands"}
        return replace(self, **changed)

    @property
    def name(self) -> str:
        """The name of the kind.

        >>> from tilewright.graph.nodes.products import MatmulNode
        >>> MatmulNode((0, 1)).name
        'matmul'
        """
        return type(self).__name__.removesuffix("Node").lower()

    def options(self) -> str:
        """The fields of the node other than operands, where they differ from their defaults, as text."""
        found = [
            f"{one.name}={_shown(getattr(self, one.name))}"
            for one in fields(self)
            if one.name != "operands" and getattr(self, one.name) != one.default
        ]
        return " ".join(found)

    def require(self, condition: bool, reason: str) -> None:
        """Raises `GraphShape` unless a condition holds."""
        if not condition:
            raise GraphShape(node=self.name, reason=reason)

    def require_dtype(self, found: ValueType, operand: str, kinds: str, required: str) -> None:
        """Raises `GraphDtype` unless an operand's dtype is of one of these kinds of NumPy's."""
        kind = "f" if is_float(found.dtype) else found.dtype.kind
        if kind not in kinds:
            raise GraphDtype(node=self.name, operand=operand, found=found.dtype, required=required)

    def axis(self, axis: int, ndim: int) -> int:
        """An axis counted from the front."""
        self.require(-ndim <= axis < ndim, f"axis {axis} does not exist in {ndim} dimensions")
        return axis % ndim


def is_float(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype is a real floating-point type, those of ml_dtypes included."""
    return dtype.kind == "f" or (dtype.kind == "V" and "float" in dtype.name)


def _shown(value: Any) -> str:
    match value:
        case Polynomial():
            return str(value).replace(" ", "")
        case tuple():
            return f"({', '.join(map(_shown, value))})"
        case np.dtype():
            return value.name
        case float():
            return f"{value:.6g}"
        case _:
            return str(value)


def moved(target: Array, source: Array) -> None:
    """Copy an array into another one of its shape, in pieces that a recording takes."""
    if not target.ndim:  # an index of no axes would make a number of it
        copy_to(target, source)
        return
    for part in pieces(target.shape, target.strides):
        place: Any = (*part, ...)  # a view, also of arrays without axes
        copy_to(target[place], source[place])
