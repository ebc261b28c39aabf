"""Attention from its parts: softmax(q · kᵀ · scale + mask) · v becomes one node."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from tilewright.graph.network import Network, Rewriter, rewritten
from tilewright.graph.nodes.attention import AttentionNode
from tilewright.graph.nodes.base import is_float
from tilewright.graph.nodes.elementwise import BinaryNode, UnaryNode, WhereNode
from tilewright.graph.nodes.movement import ExpandNode, ReshapeNode, TransposeNode
from tilewright.graph.nodes.products import MatmulNode
from tilewright.graph.nodes.rows import SoftmaxNode
from tilewright.graph.passes.patterns import node_of, scalar, scaled
from tilewright.graph.sizes import ONE

#: Axes with heads and tokens exchanged.
_EXCHANGED = (0, 2, 1, 3)
#: Scores below this are 0 after a softmax, whatever stands beside them in float32.
_HIDDEN = -1e4
#: Axes of heads with tokens and columns exchanged.
_COLUMNS_FIRST = (0, 1, 3, 2)


class _Scores(NamedTuple):
    """Operands of scores: q, kᵀ, the factor, and a mask with what it holds for hidden keys."""

    q: int
    k_transposed: int
    scale: float
    mask: int | None


def recognise_attention(network: Network) -> Network:
    """Replace a softmax between two products.

    ::

        %3 = transpose(%1) axes=(0, 1, 3, 2)
        %4 = matmul(%0, %3) alpha=0.125    ->   %3 = attention(%0, %1, %2) scale=0.125
        %5 = softmax(%4)
        %6 = matmul(%5, %2)
    """

    def change(rewriter: Rewriter, at: int) -> int | None:
        node = node_of(network, at, MatmulNode)
        if node is None or node.activation is not None or node.alpha != 1:
            return None
        weights, v = node.operands
        weights = _guarded(network, weights)
        softmax = node_of(network, weights, SoftmaxNode, log=False)
        if softmax is None or softmax.axes not in ((-1,), (len(network.types[weights].shape) - 1,)):
            return None
        found = _scores(network, softmax.operands[0])
        if found is None or not _fits(network, found, v):
            return None
        operands = [rewriter.moved[found.q], *_keys_and_values(rewriter, found.k_transposed, v)]
        if found.mask is not None:
            operands.append(rewriter.moved[found.mask])
        beside = () if found.mask is None else ("mask",)
        return rewriter.add(AttentionNode(tuple(operands), beside, scale=found.scale))

    return rewritten(network, change)


def _keys_and_values(rewriter: Rewriter, k_transposed: int, v: int) -> tuple[int, int]:
    """New positions of keys and values; of heads repeated for groups of queries, those of the heads."""
    network, moved = rewriter.network, rewriter.moved
    transposed = node_of(network, k_transposed, TransposeNode, axes=_COLUMNS_FIRST)
    if transposed is not None:
        k_heads, v_heads = _unrepeated(network, transposed.operands[0]), _unrepeated(network, v)
        if k_heads is not None and v_heads is not None and _same_heads(network, k_heads, v_heads):
            return moved[k_heads], moved[v_heads]
    return rewriter.add(TransposeNode((moved[k_transposed],), _COLUMNS_FIRST)), moved[v]


def _same_heads(network: Network, k: int, v: int) -> bool:
    return network.types[k].shape[:2] == network.types[v].shape[:2]


def _unrepeated(network: Network, at: int) -> int | None:
    """Heads (batch, heads, tokens, size) of which each is repeated side by side, else None."""
    whole = node_of(network, at, ReshapeNode)
    spread = None if whole is None else node_of(network, whole.operands[0], ExpandNode)
    inner = None if spread is None else node_of(network, spread.operands[0], ReshapeNode)
    if whole is None or spread is None or inner is None:
        return None
    shape = network.types[inner.operands[0]].shape
    if len(shape) != 4 or len(spread.shape) != 5:
        return None
    batch, heads, *rest = shape
    repeats = spread.shape[2]
    same = inner.shape == (batch, heads, ONE, *rest) and spread.shape == (batch, heads, repeats, *rest)
    return inner.operands[0] if same and whole.shape == (batch, heads * repeats, *rest) else None


def _guarded(network: Network, at: int) -> int:
    """The softmax of a choice of 0 where it is NaN, as PyTorch writes it: attention to no key is 0 anyway."""
    choice = node_of(network, at, WhereNode)
    if choice is None or scalar(network, choice.operands[1]) != 0:
        return at
    test = node_of(network, choice.operands[0], UnaryNode, function="isnan")
    return choice.operands[2] if test is not None and test.operands[0] == choice.operands[2] else at


def _seen_keys(network: Network, at: int) -> int:
    """The condition of a mask that is 0 where it holds and -inf elsewhere, else the mask."""
    choice = node_of(network, at, WhereNode)
    if choice is None or network.types[choice.operands[0]].shape != network.types[at].shape:
        return at
    _, seen, hidden = choice.operands
    numbers = scalar(network, seen), scalar(network, hidden)
    return choice.operands[0] if numbers == (0, float("-inf")) else at


def _scores(network: Network, at: int) -> _Scores | None:
    """The parts of scores, whose mask is added or chooses a large negative number."""
    mask = None
    added, choice = node_of(network, at, BinaryNode, function="add"), node_of(network, at, WhereNode)
    if added is not None:
        sides = [_product(network, one) for one in added.operands]
        place = next((place for place in (0, 1) if sides[place] is not None), None)
        if place is None:
            return None
        at, mask = added.operands[place], _seen_keys(network, added.operands[1 - place])
    elif choice is not None:
        hidden = scalar(network, choice.operands[2])
        if hidden is None or hidden > _HIDDEN:
            return None
        mask, at = choice.operands[:2]
    found = _product(network, at)
    return None if found is None else found._replace(mask=mask)


def _product(network: Network, at: int) -> _Scores | None:
    """q · kᵀ times a number, where the number may have been multiplied with q and k before."""
    at, factor = scaled(network, at)
    node = node_of(network, at, MatmulNode)
    if node is None or node.activation is not None:
        return None
    q, first = scaled(network, node.operands[0])
    k, second = scaled(network, node.operands[1])
    return _Scores(q, k, factor * node.alpha * first * second, None)


def _fits(network: Network, scores: _Scores, v: int) -> bool:
    """Whether attention takes such operands: one float type, four axes of the same batch and heads."""
    q, k, values = (network.types[one] for one in (scores.q, scores.k_transposed, v))
    if not len(q.shape) == len(k.shape) == len(values.shape) == 4:
        return False
    same = q.dtype == k.dtype == values.dtype and is_float(q.dtype)
    batches = q.shape[0] == k.shape[0] == values.shape[0] and q.shape[1] == k.shape[1] == values.shape[1]
    if scores.mask is None:
        return same and batches
    mask = network.types[scores.mask]
    return same and batches and (mask.dtype.kind == "b" or mask.dtype == q.dtype) and len(mask.shape) <= 4


def tokens_first(network: Network) -> Network:
    """Attention whose result has heads and tokens exchanged writes it so, instead of a copy.

    ::

        %3 = attention(%0, %1, %2)              %6 = attention(%3, %4, %5) layout=bshd
        %4 = transpose(%3) axes=(0, 2, 1, 3) ->

    The operands are exchanged too, which simplification removes where they had been exchanged before.
    """

    def change(rewriter: Rewriter, at: int) -> int | None:
        node = node_of(network, at, TransposeNode, axes=_EXCHANGED)
        operand = None if node is None else node.operands[0]
        if operand is None or network.sole_reader(operand) != at:
            return None
        below = node_of(network, operand, AttentionNode, layout="bhsd")
        if below is None:
            return None
        operands = [
            rewriter.add(TransposeNode((rewriter.moved[one],), _EXCHANGED)) for one in below.operands[:3]
        ]
        operands += [rewriter.moved[one] for one in below.operands[3:]]
        return rewriter.add(replace(below, operands=tuple(operands), layout="bshd"))

    return rewritten(network, change)
