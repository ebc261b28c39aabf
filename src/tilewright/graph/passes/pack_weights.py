"""Weight packing: constant weights of linear layers are stored in the tiles of this machine."""

from __future__ import annotations

from dataclasses import replace

from tilewright.calls.operands import Array
from tilewright.graph.network import Network, Rewriter, rewritten
from tilewright.graph.nodes.products import LinearNode
from tilewright.graph.nodes.sources import ConstantNode
from tilewright.graph.passes.patterns import constant_array
from tilewright.ops.packing.matrix import PackedMatrix
from tilewright.ops.quantized.public import pack, quantize_weights

#: How weights are stored, by the precision that a caller asks for.
PRECISIONS = ("f32", "bf16", "i8-weights", "i4-weights", "i8-dynamic")
#: Depths that share a scale, of weights of 4 bits.
GROUP = 64


def packed_weight(weight: Array, precision: str) -> PackedMatrix:
    """A weight (in, out) packed as a precision says; of f64 and the like always as it is."""
    if precision == "bf16":
        return pack(weight, form="bf16")
    if precision in ("i8-weights", "i8-dynamic"):
        return quantize_weights(weight, bits=8)
    if precision == "i4-weights":
        return quantize_weights(weight, bits=4, group=GROUP)
    return pack(weight)


def pack_weights(network: Network, precision: str) -> Network:
    """Pack the constant weights.

    ::

        %1 = constant : float32[1536, 384]      %1 = constant packed : float32[384, 1536]
        %2 = linear(%0, %1)                ->   %2 = linear(%0, %1) by_columns=True
    """
    packed: dict[tuple[int, bool], int] = {}

    def change(rewriter: Rewriter, at: int) -> int | None:
        node = network.nodes[at]
        if not isinstance(node, LinearNode):
            return None
        x, weight = network.operand_types(at)[:2]
        array = constant_array(network, node.operands[1])
        if array is None or x.dtype != weight.dtype or 0 in array.shape:
            return None
        key = node.operands[1], node.by_columns
        wanted = precision if x.dtype.name == "float32" else "f32"
        if key not in packed:
            label = network.nodes[node.operands[1]].label  # type: ignore[attr-defined]
            value = packed_weight(array if node.by_columns else array.T, wanted)
            packed[key] = rewriter.add(ConstantNode((), value, label))
        operands = [rewriter.moved[one] for one in node.operands]
        operands[1] = packed[key]
        dynamic = wanted == "i8-dynamic"
        return rewriter.add(replace(node, operands=tuple(operands), by_columns=True, quantised_rows=dynamic))

    return rewritten(network, change)
