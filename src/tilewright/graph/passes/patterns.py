"""What passes ask of networks: constants, scalars, the operand beside a constant."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from tilewright.graph.network import Network
from tilewright.graph.nodes.base import Node
from tilewright.graph.nodes.elementwise import BinaryNode
from tilewright.graph.nodes.movement import ExpandNode, ReshapeNode
from tilewright.graph.nodes.sources import ConstantNode

N = TypeVar("N", bound=Node)

#: Relative difference up to which a constant counts as the one of a formula: models round theirs to f32.
TOLERANCE = 1e-5


def constant_array(network: Network, at: int) -> Any | None:
    """The array of a constant that is not packed, else None."""
    node = network.nodes[at]
    return node.value if isinstance(node, ConstantNode) and not node.packed else None


def scalar(network: Network, at: int) -> float | None:
    """The value of a real constant of one element, through reshapes and broadcasts, else None."""
    node = network.nodes[at]
    while isinstance(node, (ExpandNode, ReshapeNode)):
        node = network.nodes[node.operands[0]]
    if (
        not isinstance(node, ConstantNode)
        or node.packed
        or node.value.size != 1
        or node.value.dtype.kind == "c"
    ):
        return None
    return float(node.value.reshape(()))


def is_scalar(network: Network, at: int, value: float) -> bool:
    """Return whether a node is a constant of about this value."""
    found = scalar(network, at)
    return found is not None and abs(found - value) <= TOLERANCE * max(abs(value), 1e-30)


def node_of(network: Network, at: int, kind: type[N], **options: object) -> N | None:
    """The node at a position if it is of a kind and has these fields, else None."""
    node = network.nodes[at]
    if isinstance(node, kind) and all(getattr(node, name) == value for name, value in options.items()):
        return node
    return None


def beside_scalar(network: Network, at: int, function: str) -> tuple[int, float] | None:
    """The other operand and the number of ``x · number`` or another function of two operands, else None.

    Of functions that do not commute the number is the second operand.
    """
    node = node_of(network, at, BinaryNode, function=function)
    if node is None:
        return None
    first, second = node.operands
    number = scalar(network, second)
    if number is not None:
        return first, number
    number = scalar(network, first)
    return (second, number) if number is not None and function in ("add", "multiply") else None


def scaled(network: Network, at: int) -> tuple[int, float]:
    """The value and the factor of ``x · number`` and ``x / number``, repeatedly; the node itself and 1."""
    factor = 1.0
    while True:
        product, quotient = (beside_scalar(network, at, name) for name in ("multiply", "divide"))
        if product is not None:
            at, factor = product[0], factor * product[1]
        elif quotient is not None and quotient[1]:
            at, factor = quotient[0], factor / quotient[1]
        else:
            return at, factor


def as_number(value: float, dtype: Any) -> Any:
    """A number as a constant of an element type."""
    return np.asarray(value, dtype)
