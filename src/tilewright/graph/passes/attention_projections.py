"""Projections of attention: the linear layers that make queries, keys and values."""

from __future__ import annotations

from tilewright.graph.network import Network
from tilewright.graph.nodes.attention import AttentionNode
from tilewright.graph.nodes.products import EinsumNode, LinearNode, MatmulNode


def attention_projections(network: Network) -> frozenset[int]:
    """The positions of linear layers whose results attention reads, with no other product in between.

    Errors of these weights are multiplied with each other in the scores, and the scores are exponents: where
    all weights of MiniLM have 4 bits, a third of the error of its results is due to this quarter of them.
    """
    found: set[int] = set()
    seen: set[int] = set()
    pending = [
        operand for node in network.nodes if isinstance(node, AttentionNode) for operand in node.operands[:3]
    ]
    while pending:
        at = pending.pop()
        if at in seen:
            continue
        seen.add(at)
        match network.nodes[at]:
            case LinearNode():
                found.add(at)
            case MatmulNode() | EinsumNode() | AttentionNode():
                pass
            case node:
                pending += node.operands
    return frozenset(found)
