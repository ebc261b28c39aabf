"""Constant folding: nodes whose operands are all constants become constants."""

from __future__ import annotations

from tilewright.graph.network import Network, Rewriter, rewritten
from tilewright.graph.nodes.movement import ExpandNode
from tilewright.graph.nodes.sources import ConstantNode

#: Bytes of a folded value beyond those of its operands, at most: a table of positions, not a weight expanded.
MOST_GROWTH = 16 << 20


def fold_constants(network: Network) -> Network:
    """Evaluate what depends on constants alone, once.

    ::

        %0 = constant : float32[4]              %0 = constant : float32[4]
        %1 = constant : float32[]          ->
        %2 = binary multiply(%0, %1)

    Results that are much larger than their operands stay as they are, as broadcasts do.
    """

    def change(rewriter: Rewriter, at: int) -> int | None:
        node = network.nodes[at]
        operands = [rewriter.nodes[rewriter.moved[one]] for one in node.operands]
        if not operands or isinstance(node, ExpandNode):
            return None
        arrays = []
        for one in operands:
            if not isinstance(one, ConstantNode) or one.packed:
                return None
            arrays.append(one.value)
        kind = network.types[at]
        lengths = [size.constant for size in kind.shape]
        if None in lengths:
            return None
        nbytes = kind.dtype.itemsize
        for length in lengths:
            nbytes *= length or 0
        if nbytes > sum(array.nbytes for array in arrays) + MOST_GROWTH:
            return None
        label = next((one.label for one in operands if isinstance(one, ConstantNode) and one.label), "")
        value = node.evaluate(arrays, {}).astype(kind.dtype, copy=False)
        return rewriter.add(ConstantNode((), value, label))

    return rewritten(network, change)
