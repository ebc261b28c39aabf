"""Sample inputs that are drawn where a caller gives none: random indices for networks of look-ups.

What a network of look-ups computes first are rows of its own tables, so random indices say which columns of
its layers are large almost as well as samples do. Numbers that nothing is known of are not drawn.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import numpy as np

from tilewright.calls.operands import Array
from tilewright.errors import TilewrightError
from tilewright.graph.calibration import Statistics, input_statistics
from tilewright.graph.network import Network
from tilewright.graph.nodes.attention import AttentionNode
from tilewright.graph.nodes.elementwise import CastNode
from tilewright.graph.nodes.movement import ExpandNode, ReshapeNode, SliceNode, TakeNode, TransposeNode
from tilewright.graph.nodes.products import LinearNode
from tilewright.graph.nodes.sequences import EmbeddingNode, RotaryNode
from tilewright.graph.sizes import Sizes, evaluate, evaluate_shape, is_name

#: Indices of one call. The least cosine of MiniLM's embeddings in "i8-dynamic" is 0.9970 with 256, 0.9971
#: with 512, 0.9975 with 4096 or with 300 tokens of sentences, and 0.9938 without balanced columns.
_INDICES = 512

#: Nodes whose result has the numbers of their first operand.
_VIEWS = (CastNode, ExpandNode, ReshapeNode, SliceNode, TransposeNode)

#: Operands of attention that count tokens, and which operand's they are: queries' or keys'.
_COUNTED = {"cu_seqlens_q": 0, "cu_seqlens_k": 1, "q_lengths": 0, "kv_lengths": 1}
_OFFSETS = ("cu_seqlens_q", "cu_seqlens_k")

logger = logging.getLogger("tilewright.graph")


def drawn_inputs(network: Network) -> list[Array] | None:
    """The inputs of one call; None where a linear layer depends on more than indices and the shape of a text.

    Indices are spread evenly over their tables, in random order; texts of a batch are of one length, masks
    hide nothing. Inputs that no layer depends on are ones.
    """
    needed = _needed(network)
    sizes = _sizes(network)
    found = []
    for at, node in network.inputs:
        if at in network.written:  # a cache: what is in it decides
            return None
        try:
            shape = evaluate_shape(node.shape, sizes)
            array = _drawn(network, at, shape, sizes) if at in needed else np.ones(shape, node.dtype)
        except (KeyError, TilewrightError):  # of sizes that only the numbers of inputs decide
            return None
        if array is None:
            return None
        found.append(array.astype(node.dtype))
    return found


def _needed(network: Network) -> set[int]:
    """The positions of the values that the inputs of linear layers are computed from."""
    found: set[int] = set()
    for at in reversed(range(len(network.nodes))):
        node = network.nodes[at]
        if isinstance(node, LinearNode):
            found.add(node.operands[0])
        if at in found:
            found.update(node.operands)
    return found


def _uses(network: Network, at: int) -> Iterator[tuple[int, int]]:
    """The nodes that read the numbers of a value, and as which operand."""
    for reader in dict.fromkeys(network.readers[at]):
        node = network.nodes[reader]
        for place, operand in enumerate(node.operands):
            if operand == at and place == 0 and isinstance(node, _VIEWS):
                yield from _uses(network, reader)
            elif operand == at:
                yield reader, place


def _index_limit(network: Network, reader: int, place: int) -> int | None:
    """How long the axis is that an operand is an index of; None where it is none."""
    node = network.nodes[reader]
    types = network.operand_types(reader)
    match node, place:
        case EmbeddingNode(), 1:
            return types[0].shape[0].constant
        case TakeNode(), 1:
            return types[0].shape[node.axis(node.axis_, len(types[0].shape))].constant
        case RotaryNode(), 3:
            return types[1].shape[0].constant
    return None


def _limits(network: Network, at: int) -> list[int]:
    """The lengths of all axes that the numbers of a value are indices of."""
    found = (_index_limit(network, *use) for use in _uses(network, at))
    return [limit for limit in found if limit]


def _sizes(network: Network) -> Sizes:
    """Named sizes with which the largest array of indices has about `_INDICES`; two of each other one."""
    sizes: dict[str, int] = {}
    for at, node in network.inputs:
        named = {str(size) for size in node.shape if size.constant is None and is_name(size)}
        if named and _limits(network, at):
            length = round(_INDICES ** (1 / len(named)))
            sizes |= {name: min(length, sizes.get(name, length)) for name in named}
    for _, node in network.inputs:
        for size in node.shape:
            for monomial, _ in size.terms:
                for symbol in monomial:
                    sizes.setdefault(symbol.name, 2)
    return sizes


def _drawn(network: Network, at: int, shape: tuple[int, ...], sizes: Sizes) -> Array | None:
    """Numbers for an input that layers depend on."""
    dtype = network.types[at].dtype
    if limits := _limits(network, at):
        # Evenly: the first positions of texts have the largest elements.
        evenly = np.linspace(0, min(limits) - 1, int(np.prod(shape))).astype(int)
        return np.random.default_rng(0).permutation(evenly).reshape(shape)
    if dtype.kind not in "iub":
        return None
    for reader, place in _uses(network, at):
        node = network.nodes[reader]
        name = node.beside[place - 3] if isinstance(node, AttentionNode) and place >= 3 else "mask"
        if isinstance(node, AttentionNode) and name in _COUNTED:
            counted = network.operand_types(reader)[_COUNTED[name]]
            tokens = evaluate(node.tokens(counted), sizes)
            if name in _OFFSETS:
                return np.linspace(0, tokens, shape[0]).astype(int)
            return np.full(shape, tokens)
        if name != "mask":  # tables of blocks, offsets of queries
            return None
    return np.ones(shape)


def drawn_statistics(network: Network, inputs: list[Array]) -> Statistics:
    """Largest elements of what linear layers are multiplied with; none if the network refuses the inputs."""
    try:
        return input_statistics(network, [inputs], moments=False)
    except (TilewrightError, IndexError) as error:
        logger.debug("no statistics of drawn inputs: %s", error)
        return {}
