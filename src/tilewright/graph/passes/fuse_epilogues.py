"""Epilogue fusion: biases, activations, residuals and factors of products become part of the product."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import cast, get_args

from tilewright.graph.network import Network, Rewriter, rewritten
from tilewright.graph.nodes.elementwise import BinaryNode, UnaryNode
from tilewright.graph.nodes.products import LinearNode, MatmulNode
from tilewright.graph.nodes.sources import ConstantNode
from tilewright.graph.passes.patterns import beside_scalar
from tilewright.typing import ActivationName


def linear_products(network: Network) -> Network:
    """Products with a constant matrix become linear layers.

    ::

        %2 = matmul(%0, %1)                ->   %2 = linear(%0, %1) by_columns=True
    """

    def change(rewriter: Rewriter, at: int) -> int | None:
        node = network.nodes[at]
        if not isinstance(node, MatmulNode) or node.alpha != 1:
            return None
        x, weight = network.operand_types(at)
        constant = isinstance(network.nodes[node.operands[1]], ConstantNode)
        if not constant or len(weight.shape) != 2 or x.dtype != weight.dtype:
            return None
        operands = tuple(rewriter.moved[one] for one in node.operands)
        return rewriter.add(LinearNode(operands, activation=node.activation, by_columns=True))

    return rewritten(network, change)


def fuse_epilogues(network: Network) -> Network:
    """Fuse what follows a product and reads nothing else of it; repeated until nothing changes.

    ::

        %3 = linear(%0, %1)
        %4 = binary add(%3, %2)            ->   %3 = linear(%0, %1, %2) activation=gelu bias=True
        %5 = unary gelu(%4)
    """
    fused = rewritten(network, partial(_fused, network))
    return network if len(fused.nodes) == len(network.nodes) else fuse_epilogues(fused)


def _fused(network: Network, rewriter: Rewriter, at: int) -> int | None:
    node = network.nodes[at]
    for place, operand in enumerate(node.operands):
        product = network.nodes[operand]
        if network.sole_reader(operand) != at or network.types[operand] != network.types[at]:
            continue
        if rewriter.nodes[rewriter.moved[operand]] != replace(
            product, operands=tuple(rewriter.moved[one] for one in product.operands)
        ):
            continue  # it has changed in this pass
        before = tuple(rewriter.moved[one] for one in product.operands)
        match node, product:
            case UnaryNode(), LinearNode() | MatmulNode() if _takes_activation(node, product):
                return rewriter.add(
                    replace(product, operands=before, activation=cast("ActivationName", node.function))
                )
            case BinaryNode(function="add"), LinearNode():
                other = node.operands[1 - place]
                added = _with_addend(network, product, other, at)
                if added is not None:
                    return rewriter.add(replace(added, operands=(*before, rewriter.moved[other])))
            case BinaryNode(function="multiply" | "divide"), MatmulNode(activation=None):
                found = beside_scalar(network, at, node.function)
                if found is not None and found[0] == operand and found[1]:
                    factor = found[1] if node.function == "multiply" else 1 / found[1]
                    return rewriter.add(replace(product, operands=before, alpha=product.alpha * factor))
    return None


def _takes_activation(node: UnaryNode, product: LinearNode | MatmulNode) -> bool:
    if product.activation is not None or node.function not in get_args(ActivationName):
        return False
    return not isinstance(product, LinearNode) or not product.residual


def _with_addend(network: Network, product: LinearNode, other: int, at: int) -> LinearNode | None:
    """The product with a bias or a residual added, if the other operand of an addition can be one."""
    if product.activation is not None or product.residual:
        return None
    kind, result = network.types[other], network.types[at]
    if not product.bias and kind.shape == result.shape[-1:] and kind.dtype == result.dtype:
        return replace(product, bias=True)
    return replace(product, residual=True) if kind == result else None
