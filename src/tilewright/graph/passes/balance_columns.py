"""Balanced columns: factors between a norm and the linear layers that read it.

Rows of 8 bits have one scale each, so one column with large elements takes the precision of all others. With
factors d of the columns, x · W = (x / d) · (d · W), and the range of the elements of x / d is smaller. Xiao
et al., "SmoothQuant", 2022, arXiv:2211.10438, equation (4):

    d[j] = max|x[:, j]|^α / max|W[j, :]|^(1-α)
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilewright.calls.operands import Array
from tilewright.graph.calibration import Statistics
from tilewright.graph.network import Network, Rewriter
from tilewright.graph.nodes.elementwise import BinaryNode
from tilewright.graph.nodes.products import LinearNode
from tilewright.graph.nodes.rows import NormNode
from tilewright.graph.nodes.sources import ConstantNode
from tilewright.graph.passes.patterns import constant_array
from tilewright.records import dataclass

#: α of the paper: how much of the range moves into the weights. The least cosine of MiniLM's embeddings to
#: those in float32 is 0.9966 with 0.5, 0.9978 with 0.7, 0.9972 with 1, and 0.9938 without factors.
_ALPHA = 0.7
#: The smallest factor, as a share of the largest: columns that are always 0 have no range.
_LEAST = 1e-4


@dataclass(frozen=True)
class Balance:
    """Factors of the columns of one norm's result.

    Attributes
    ----------
    factors : d, float32.
    folded : whether the norm's own weight and bias take 1 / d; otherwise a product does.
    """

    factors: Array
    folded: bool


def column_balances(network: Network, statistics: Statistics) -> Mapping[int, Balance]:
    """The factors of each norm that linear layers with constant weights read, by the norm's position.

    Only results of norms are balanced: their outliers are in the same columns whatever the rows are.
    """
    found: dict[int, Balance] = {}
    for at, known in statistics.items():
        node = network.nodes[at]
        readers = [one for one in dict.fromkeys(network.readers[at]) if _reads_rows(network, one, at)]
        if not isinstance(node, NormNode) or not readers or network.types[at].dtype != np.float32:
            continue
        weights = [_by_columns(network, one) for one in readers]
        largest = np.max([np.abs(weight).max(axis=1, initial=0) for weight in weights], axis=0)
        factors = _factors(known.largest, largest)
        folded = len(readers) == len(network.readers[at]) and at not in network.results  # as x, each once
        found[at] = Balance(factors, folded and _foldable(network, node))
    return found


def _reads_rows(network: Network, reader: int, at: int) -> bool:
    """Return whether a node is a linear layer of float32 that has a value as its x, and a constant weight."""
    node = network.nodes[reader]
    if not isinstance(node, LinearNode) or node.operands[0] != at:
        return False
    array = constant_array(network, node.operands[1])
    return array is not None and array.dtype == np.float32 and array.size > 0


def _by_columns(network: Network, at: int) -> Array:
    """The weight of a linear layer, (in, out)."""
    node = network.nodes[at]
    assert isinstance(node, LinearNode)
    weight: Array = constant_array(network, node.operands[1])  # type: ignore[assignment]
    return weight if node.by_columns else weight.T


def _factors(inputs: Array, weights: Array) -> Array:
    """Factors whose geometric mean is 1, from the largest elements by column."""
    tiny = np.finfo(np.float32).tiny
    found = np.maximum(inputs, tiny) ** _ALPHA / np.maximum(weights, tiny) ** (1 - _ALPHA)
    found = np.where((inputs > 0) & (weights > 0), found, 0)
    if not found.any():
        return np.ones(len(found), np.float32)
    found = np.maximum(found, found.max() * _LEAST)
    return np.asarray(found / np.exp(np.log(found).mean()), np.float32)


def _foldable(network: Network, norm: NormNode) -> bool:
    """Return whether a norm has a constant weight along its one axis, and no other bias than a constant."""
    vectors = [constant_array(network, one) for one in norm.operands[1:]]
    return norm.weight and norm.axes == (-1,) and all(one is not None for one in vectors)


def folded_norm(network: Network, rewriter: Rewriter, at: int, factors: Array) -> int:
    """Adds a norm whose result is divided by factors."""
    norm = network.nodes[at]
    assert isinstance(norm, NormNode)
    operands = [rewriter.moved[norm.operands[0]]]
    for one in norm.operands[1:]:
        vector = constant_array(network, one)
        assert vector is not None
        operands.append(rewriter.add(ConstantNode((), vector / factors)))
    return rewriter.add(
        NormNode(tuple(operands), norm.kind, norm.axes, norm.eps, weight=norm.weight, bias=norm.bias)
    )


def divided(rewriter: Rewriter, x: int, factors: Array) -> int:
    """Adds x / d, of a new position x."""
    inverse = rewriter.add(ConstantNode((), 1 / factors))
    return rewriter.add(BinaryNode((x, inverse), "multiply"))
