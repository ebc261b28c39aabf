"""Merged linear layers: products of one x with several weights become one product, as Q, K and V do."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.graph.network import Network, Rewriter, rewritten
from tilewright.graph.nodes.movement import SliceNode
from tilewright.graph.nodes.products import LinearNode
from tilewright.graph.nodes.sources import ConstantNode
from tilewright.graph.passes.patterns import constant_array
from tilewright.graph.sizes import size_of


def merge_linears(network: Network) -> Network:
    """Concatenate the weights of linear layers of one x; what they gave are views of the one result.

    ::

        %3 = linear(%0, %1) : [n, 64]           %2 = linear(%0, %1) : [n, 128]
        %4 = linear(%0, %2) : [n, 64]      ->   %3 = slice(%2) axis_=1 stop=64
                                                %4 = slice(%2) axis_=1 start=64 stop=128
    """
    groups: dict[Any, list[int]] = {}
    for at, node in enumerate(network.nodes):
        if isinstance(node, LinearNode) and not node.residual and _mergeable(network, node):
            key = (node.operands[0], node.activation, node.bias, network.types[node.operands[1]].dtype)
            groups.setdefault(key, []).append(at)
    # The weight of one x with several rows is read once in any case; merged, x is packed and read once.
    first = {members[0]: members for members in groups.values() if len(members) > 1}
    merged: dict[int, int] = {}

    def change(rewriter: Rewriter, at: int) -> int | None:
        if at in first:
            _merge(network, rewriter, first[at], merged)
        return merged.get(at)

    return rewritten(network, change)


def _mergeable(network: Network, node: LinearNode) -> bool:
    operands = node.operands[1:]
    return all(constant_array(network, one) is not None for one in operands)


def _merge(network: Network, rewriter: Rewriter, members: list[int], merged: dict[int, int]) -> None:
    """Adds the one product and the slices of its result."""
    nodes = [network.nodes[at] for at in members]
    weights: list[Any] = []
    biases: list[Any] = []
    for node in nodes:
        assert isinstance(node, LinearNode)
        weight, *bias = (constant_array(network, one) for one in node.operands[1:])
        assert weight is not None
        weights.append(weight.T if node.by_columns else weight)
        biases += bias
    x, model = rewriter.moved[nodes[0].operands[0]], nodes[0]
    assert isinstance(model, LinearNode)
    operands = [x, rewriter.add(ConstantNode((), np.concatenate(weights)))]
    if biases:
        operands.append(rewriter.add(ConstantNode((), np.concatenate(biases))))
    whole = rewriter.add(LinearNode(tuple(operands), activation=model.activation, bias=model.bias))
    start, axis = 0, len(network.types[members[0]].shape) - 1
    for at, weight in zip(members, weights, strict=True):
        stop = start + weight.shape[0]
        merged[at] = rewriter.add(SliceNode((whole,), axis, size_of(start), size_of(stop)))
        start = stop
