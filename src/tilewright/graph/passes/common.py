"""Common subexpressions: nodes of one kind with the same operands and options become one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilewright.graph.network import Network, Rewriter, rewritten
from tilewright.graph.nodes.base import Node
from tilewright.graph.nodes.sources import ConstantNode

#: Constants are compared element by element up to this many bytes; larger ones by identity.
MOST_COMPARED = 4096


def merge_common(network: Network) -> Network:
    """Compute each value once.

    ::

        %1 = unary exp(%0)                      %1 = unary exp(%0)
        %2 = unary exp(%0)                 ->   %2 = binary add(%1, %1)
        %3 = binary add(%1, %2)
    """
    known: dict[Any, int] = {}

    def change(rewriter: Rewriter, at: int) -> int | None:
        node = network.nodes[at]
        moved = replace(node, operands=tuple(rewriter.moved[one] for one in node.operands))
        key = _key(moved)
        if key not in known:
            known[key] = rewriter.add(moved)
        return known[key]

    return rewritten(network, change)


def _key(node: Node) -> Any:
    """What equal nodes have in common."""
    if isinstance(node, ConstantNode) and not node.packed and node.value.nbytes <= MOST_COMPARED:
        value = node.value
        return ConstantNode, value.dtype.str, value.dtype.name, value.shape, value.tobytes()
    return node
