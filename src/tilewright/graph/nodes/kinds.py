"""All kinds of nodes, by the names that saved graphs have for them."""

from __future__ import annotations

from tilewright.graph.nodes.attention import AttentionNode
from tilewright.graph.nodes.base import Node
from tilewright.graph.nodes.caches import AppendNode
from tilewright.graph.nodes.elementwise import BinaryNode, CastNode, GatedNode, UnaryNode, WhereNode
from tilewright.graph.nodes.generated import IotaNode, SizesNode
from tilewright.graph.nodes.indexing import FlipNode, GatherNDNode, PadNode, ScatterNode, TakeAlongNode
from tilewright.graph.nodes.integers import MatmulIntegerNode
from tilewright.graph.nodes.movement import (
    ConcatenateNode,
    ExpandNode,
    ReshapeNode,
    SliceNode,
    TakeNode,
    TransposeNode,
)
from tilewright.graph.nodes.products import EinsumNode, LinearNode, MatmulNode
from tilewright.graph.nodes.rows import NormNode, ReduceNode, SoftmaxNode
from tilewright.graph.nodes.scans import ArgReduceNode, CumulativeNode, SortedNode
from tilewright.graph.nodes.sequences import EmbeddingNode, RotaryNode
from tilewright.graph.nodes.sources import ConstantNode, InputNode

#: A new kind is one more class here.
NODE_KINDS: dict[str, type[Node]] = {
    kind.__name__.removesuffix("Node").lower(): kind
    for kind in (
        AppendNode,
        ArgReduceNode,
        AttentionNode,
        BinaryNode,
        CastNode,
        ConcatenateNode,
        ConstantNode,
        CumulativeNode,
        EinsumNode,
        EmbeddingNode,
        ExpandNode,
        FlipNode,
        GatedNode,
        GatherNDNode,
        InputNode,
        IotaNode,
        LinearNode,
        MatmulIntegerNode,
        MatmulNode,
        NormNode,
        PadNode,
        ReduceNode,
        ReshapeNode,
        RotaryNode,
        ScatterNode,
        SizesNode,
        SliceNode,
        SoftmaxNode,
        SortedNode,
        TakeAlongNode,
        TakeNode,
        TransposeNode,
        UnaryNode,
        WhereNode,
    )
}
