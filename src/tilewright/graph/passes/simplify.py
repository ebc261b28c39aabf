"""Simplification: nodes that change nothing, and chains of views that are one view."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilewright.graph.network import Network, Rewriter, rewritten
from tilewright.graph.nodes.base import Node
from tilewright.graph.nodes.elementwise import BinaryNode, CastNode
from tilewright.graph.nodes.movement import ExpandNode, ReshapeNode, TransposeNode
from tilewright.graph.nodes.sources import ConstantNode

#: The number beside which a function of two operands is the other one.
_NEUTRAL = {"add": 0.0, "subtract": 0.0, "multiply": 1.0, "divide": 1.0}


def simplify(network: Network) -> Network:
    """Remove identities; merge reshapes of reshapes and transposes of transposes.

    ::

        %1 = transpose(%0) axes=(0, 2, 1, 3)
        %2 = transpose(%1) axes=(0, 2, 1, 3)    %1 = unary relu(%0)
        %3 = unary relu(%2)                ->
    """

    def change(rewriter: Rewriter, at: int) -> int | None:
        node, kind = network.nodes[at], network.types[at]
        moved = [rewriter.moved[one] for one in node.operands]
        if isinstance(node, (ReshapeNode, TransposeNode, ExpandNode, CastNode)) and _changes_nothing(
            network, at
        ):
            return moved[0]
        if isinstance(node, BinaryNode):
            for place in (0, 1) if node.function in ("add", "multiply") else (1,):
                other = 1 - place
                if _is(rewriter.nodes[moved[place]], _NEUTRAL.get(node.function)) and (
                    network.types[node.operands[other]] == kind
                ):
                    return moved[other]
        below = rewriter.nodes[moved[0]] if moved else None
        match node, below:
            case ReshapeNode(), ReshapeNode():
                return rewriter.add(replace(node, operands=below.operands))
            case TransposeNode(), TransposeNode():
                axes = tuple(below.axes[axis] for axis in node.axes)
                if axes == tuple(range(len(axes))):
                    return below.operands[0]
                return rewriter.add(TransposeNode(below.operands, axes))
        return None

    return rewritten(network, change)


def _changes_nothing(network: Network, at: int) -> bool:
    node = network.nodes[at]
    if network.types[at] != network.types[node.operands[0]]:
        return False
    return not isinstance(node, TransposeNode) or node.axes == tuple(range(len(node.axes)))


def _is(node: Node, number: float | None) -> bool:
    if number is None or not isinstance(node, ConstantNode) or node.packed or node.value.dtype.kind == "V":
        return False
    return node.value.size <= 1 and bool(np.all(node.value == number))
