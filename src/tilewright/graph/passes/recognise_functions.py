"""Functions from their parts: GELU, SiLU, layer and RMS norms as exporters write them out."""

from __future__ import annotations

import math
from collections.abc import Callable

from tilewright.graph.network import Network, Rewriter, rewritten
from tilewright.graph.nodes.elementwise import BinaryNode, UnaryNode
from tilewright.graph.nodes.rows import NormNode, ReduceNode
from tilewright.graph.passes.patterns import (
    TOLERANCE,
    beside_scalar,
    constant_array,
    is_scalar,
    node_of,
    scaled,
)

#: √(2/π) and the cubic coefficient of the tanh form of GELU: Hendrycks and Gimpel, arXiv:1606.08415, §2.
_GELU_SCALE, _GELU_CUBIC = math.sqrt(2 / math.pi), 0.044715


def recognise_functions(network: Network) -> Network:
    """Replace formulas by functions that have kernels.

    ::

        %1 = binary divide(%0, sqrt(2))
        %2 = unary erf(%1)                 ->   %1 = unary gelu(%0)
        %3 = binary add(%2, 1)
        %4 = binary multiply(%0, %3)
        %5 = binary multiply(%4, 0.5)
    """

    def change(rewriter: Rewriter, at: int) -> int | None:
        for name, recognise in _FUNCTIONS.items():
            x = recognise(network, at)
            if x is not None and network.types[x] == network.types[at]:
                return rewriter.add(UnaryNode((rewriter.moved[x],), name))
        norm = _norm(network, at)
        if norm is None:
            return None
        return rewriter.add(
            NormNode(tuple(rewriter.moved[one] for one in norm.operands), norm.kind, norm.axes, norm.eps)
        )

    return rewritten(network, change)


def _factors(network: Network, at: int) -> tuple[list[int], float]:
    """The operands of nested multiplications, and the product of the numbers among them."""
    at, factor = scaled(network, at)
    node = node_of(network, at, BinaryNode, function="multiply")
    if node is None:
        return [at], factor
    found: list[int] = []
    for operand in node.operands:
        inner, number = _factors(network, operand)
        found += inner
        factor *= number
    return found, factor


def _is_near(value: float, wanted: float) -> bool:
    return abs(value - wanted) <= TOLERANCE * abs(wanted)


def _gelu(network: Network, at: int) -> int | None:
    """0.5 · x · (1 + erf(x / √2))."""
    return _weighted(network, at, lambda one, x: _erf_of(network, one, x))


def _gelu_tanh(network: Network, at: int) -> int | None:
    """0.5 · x · (1 + tanh(√(2/π) · (x + 0.044715 x³)))."""
    return _weighted(network, at, lambda one, x: _tanh_of_cubic(network, one, x))


def _weighted(network: Network, at: int, weight: Callable[[int, int], bool]) -> int | None:
    """The x of 0.5 · x · (1 + f(x)), where `weight` recognises f(x)."""
    operands, factor = _factors(network, at)
    if len(operands) != 2 or not _is_near(factor, 0.5):
        return None
    for one, x in (operands, operands[::-1]):
        added = beside_scalar(network, one, "add")
        if added is not None and _is_near(added[1], 1) and weight(added[0], x):
            return x
    return None


def _erf_of(network: Network, at: int, x: int) -> bool:
    node = node_of(network, at, UnaryNode, function="erf")
    if node is None:
        return False
    operand, factor = scaled(network, node.operands[0])
    return operand == x and _is_near(factor, math.sqrt(0.5))


def _tanh_of_cubic(network: Network, at: int, x: int) -> bool:
    node = node_of(network, at, UnaryNode, function="tanh")
    if node is None:
        return False
    operands, factor = _factors(network, node.operands[0])
    if len(operands) == 1:
        added = node_of(network, operands[0], BinaryNode, function="add")
        if added is None or not _is_near(factor, _GELU_SCALE):
            return False
        first, second = added.operands
        return any(
            one == x and _cube_of(network, other, x) for one, other in ((first, second), (second, first))
        )
    # x · (1 + 0.044715 x²) times the scale
    for one, other in (operands, operands[::-1]) if len(operands) == 2 else ():
        beside = beside_scalar(network, other, "add")
        if one == x and beside is not None and _is_near(beside[1], 1) and _is_near(factor, _GELU_SCALE):
            squares, number = _factors(network, beside[0])
            return _power(network, squares, x) == 2 and _is_near(number, _GELU_CUBIC)
    return False


def _cube_of(network: Network, at: int, x: int) -> bool:
    operands, factor = _factors(network, at)
    return _power(network, operands, x) == 3 and _is_near(factor, _GELU_CUBIC)


def _power(network: Network, operands: list[int], x: int) -> float | None:
    """The power of x that a product of its powers is, else None."""
    total = 0.0
    for one in operands:
        if one == x:
            total += 1
            continue
        square, power = (
            node_of(network, one, UnaryNode, function="square"),
            beside_scalar(network, one, "power"),
        )
        if square is not None and square.operands[0] == x:
            total += 2
        elif power is not None and power[0] == x:
            total += power[1]
        else:
            return None
    return total


def _silu(network: Network, at: int) -> int | None:
    """x · sigmoid(x)."""
    node = node_of(network, at, BinaryNode, function="multiply")
    if node is None:
        return None
    for one, x in (node.operands, node.operands[::-1]):
        sigmoid = node_of(network, one, UnaryNode, function="sigmoid")
        if sigmoid is not None and sigmoid.operands[0] == x:
            return x
    return None


_FUNCTIONS: dict[str, Callable[[Network, int], int | None]] = {
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": _silu,
}


def _norm(network: Network, at: int) -> NormNode | None:
    """(x - mean) / √(mean of squares + eps), or x / √(mean of squares + eps)."""
    found = _centred_by_deviation(network, at)
    if found is None:
        return None
    moved, eps, axes = found
    centred = node_of(network, moved, BinaryNode, function="subtract")
    if centred is not None:
        mean = node_of(network, centred.operands[1], ReduceNode, function="mean", keepdims=True)
        if mean is not None and mean.operands[0] == centred.operands[0] and mean.axes == axes:
            return NormNode((centred.operands[0],), "layer", axes, eps)
    return NormNode((moved,), "rms", axes, eps)


def _centred_by_deviation(network: Network, at: int) -> tuple[int, float, tuple[int, ...]] | None:
    """The operand, eps and axes of y / √(mean(y²) + eps)."""
    quotient = node_of(network, at, BinaryNode, function="divide")
    product = node_of(network, at, BinaryNode, function="multiply")
    if quotient is not None:
        pairs = [quotient.operands]
    elif product is not None:
        pairs = [product.operands, product.operands[::-1]]
    else:
        return None
    for y, deviation in pairs:
        root = _root(network, deviation, inverse=quotient is None)
        added = None if root is None else beside_scalar(network, root, "add")
        if added is None:
            continue
        mean = node_of(network, added[0], ReduceNode, function="mean", keepdims=True)
        if mean is not None and _power(network, _factors(network, mean.operands[0])[0], y) == 2:
            last = len(network.types[at].shape) - len(mean.axes)
            if sorted(axis % len(network.types[at].shape) for axis in mean.axes) == list(
                range(last, len(network.types[at].shape))
            ):
                return y, added[1], mean.axes
    return None


def _root(network: Network, at: int, *, inverse: bool) -> int | None:
    """The operand of a square root, or of its reciprocal."""
    if inverse:
        whole = node_of(network, at, BinaryNode, function="divide")
        reciprocal = node_of(network, at, UnaryNode, function="reciprocal")
        power = beside_scalar(network, at, "power")
        if power is not None and power[1] == -0.5:
            return power[0]
        if whole is not None and is_scalar(network, whole.operands[0], 1):
            at = whole.operands[1]
        elif reciprocal is not None:
            at = reciprocal.operands[0]
        else:
            return None
    root = node_of(network, at, UnaryNode, function="sqrt")
    power = beside_scalar(network, at, "power")
    if power is not None and power[1] == 0.5:
        return power[0]
    return None if root is None else root.operands[0]


def fuse_norm_weights(network: Network) -> Network:
    """Weights and biases of norms become operands of the norm.

    ::

        %1 = norm(%0)
        %4 = binary multiply(%1, %2)       ->   %3 = norm(%0, %1, %2) weight=True bias=True
        %5 = binary add(%4, %3)
    """

    def change(rewriter: Rewriter, at: int) -> int | None:
        node = network.nodes[at]
        if not isinstance(node, BinaryNode) or node.function not in ("multiply", "add"):
            return None
        for norm_at, other in (node.operands, node.operands[::-1]):
            norm = rewriter.nodes[rewriter.moved[norm_at]]
            if not isinstance(norm, NormNode) or network.sole_reader(norm_at) != at:
                continue
            vector = constant_array(network, other)
            if vector is None or network.types[at] != network.types[norm_at]:
                continue
            lengths = tuple(network.types[at].shape[axis].constant for axis in norm.axes)
            if vector.shape != lengths or vector.dtype != network.types[at].dtype:
                continue
            operands = (*norm.operands, rewriter.moved[other])
            if node.function == "multiply" and not norm.weight and not norm.bias:
                return rewriter.add(NormNode(operands, norm.kind, norm.axes, norm.eps, weight=True))
            if node.function == "add" and norm.kind == "layer" and norm.weight and not norm.bias:
                return rewriter.add(
                    NormNode(operands, norm.kind, norm.axes, norm.eps, weight=True, bias=True)
                )
        return None

    return rewritten(network, change)
