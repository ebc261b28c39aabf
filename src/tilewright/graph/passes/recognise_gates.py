"""Gates: a product with an activation of another value becomes one pass over both."""

from __future__ import annotations

from typing import cast, get_args

from tilewright.graph.network import Network, Rewriter, rewritten
from tilewright.graph.nodes.elementwise import BinaryNode, GatedNode, UnaryNode
from tilewright.typing import ActivationName


def recognise_gates(network: Network) -> Network:
    """Fuse the activation of a gate, which nothing else reads, into its product.

    ::

        %2 = unary silu(%0)
        %3 = binary multiply(%2, %1)       ->   %2 = gated(%1, %0)

    It runs before activations go into the epilogues of products, so that the layers of gate and value have
    the same form and become one product.
    """

    def change(rewriter: Rewriter, at: int) -> int | None:
        node = network.nodes[at]
        if not isinstance(node, BinaryNode) or node.function != "multiply":
            return None
        for gate, x in (node.operands, node.operands[::-1]):
            unary = network.nodes[gate]
            if not isinstance(unary, UnaryNode) or unary.function not in get_args(ActivationName):
                continue
            kinds = {network.types[one].dtype for one in (gate, x, unary.operands[0])}
            if network.sole_reader(gate) == at and len(kinds) == 1 and network.types[x] == network.types[at]:
                operands = rewriter.moved[x], rewriter.moved[unary.operands[0]]
                return rewriter.add(GatedNode(operands, cast("ActivationName", unary.function)))
        return None

    return rewritten(network, change)
