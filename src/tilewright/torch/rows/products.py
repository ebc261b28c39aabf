"""Rows of products, attention, norms and whole layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from tilewright.errors import NotConvertible
from tilewright.graph.nodes.base import is_float
from tilewright.graph.value import Value
from tilewright.loops.nests.polynomial import Polynomial
from tilewright.torch import operators  # noqa: F401 - it registers those in torch.ops.tilewright
from tilewright.torch.rows.row import AtenCall, Row

aten, own = torch.ops.aten, torch.ops.tilewright


def _floating(*values: Value) -> None:
    """Products of integers wrap around in PyTorch; graphs compute those of floats."""
    for one in values:
        if not is_float(one.dtype):
            raise NotConvertible(reason=f"it multiplies {one.dtype}")


def _matmul(call: AtenCall, a: Value, b: Value) -> Value:
    _floating(a, b)
    return call.graph.matmul(a, b)


def _linear(call: AtenCall, x: Value, weight: Value, bias: Value | None = None) -> Value:
    _floating(x, weight)
    return call.graph.linear(x, weight, bias)


def _addmm(call: AtenCall, added: Value, a: Value, b: Value, *, beta: Any = 1, alpha: Any = 1) -> Value:
    _floating(a, b)
    found = call.graph.matmul(a, b, alpha=float(alpha))
    if beta == 0:
        return found
    return found + (added if beta == 1 else added * beta)


def _attention(
    call: AtenCall,
    q: Value,
    k: Value,
    v: Value,
    dropout: float = 0.0,
    causal: bool = False,
    *,
    attn_mask: Value | None = None,
    scale: float | None = None,
) -> Value:
    if dropout:
        raise NotConvertible(reason="attention with dropout draws random numbers")
    if attn_mask is not None and attn_mask.dtype.kind != "b":
        attn_mask = call.graph.cast(attn_mask, q.dtype)
    return call.graph.attention(
        q, k, v, mask=attn_mask, causal="upper_left" if causal else False, scale=scale
    )


def _own_attention(
    call: AtenCall,
    q: Value,
    k: Value,
    v: Value,
    mask: Value | None,
    causal: Any,
    scale: float | None,
    left: int | None,
    right: int | None,
    softcap: float | None,
) -> Value:
    window = (left, right)
    return call.graph.attention(
        q, k, v, mask=mask, causal=causal or False, scale=scale, window=window, softcap=softcap
    )


def _own_linear(call: AtenCall, x: Value, weight: Value, bias: Value | None, activation: Any) -> Value:
    return call.graph.linear(x, weight, bias, activation)


def _last_axes(shape: Sequence[Any]) -> tuple[int, ...]:
    return tuple(range(-len(shape), 0))


def _layer_norm(
    call: AtenCall, x: Value, shape: Sequence[Any], weight: Value | None, bias: Value | None, eps: float
) -> Value:
    g = call.graph
    if bias is not None and weight is None:
        return g.layer_norm(x, None, None, _last_axes(shape), eps) + bias
    return g.layer_norm(x, weight, bias, _last_axes(shape), eps)


def _rms_norm(
    call: AtenCall, x: Value, shape: Sequence[Any], weight: Value | None = None, eps: float | None = None
) -> Value:
    """Without an eps PyTorch takes the distance of 1 and the next number of the type."""
    if eps is None:
        eps = float(torch.finfo(call.fake[0].dtype if isinstance(call.fake, tuple) else call.fake.dtype).eps)
    return call.graph.rms_norm(x, weight, _last_axes(shape), eps)


def _batch_norm(
    call: AtenCall,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value,
    variance: Value,
    _: float,
    eps: float,
) -> Value:
    """Of inference: a factor and a summand for each channel, which fold to constants."""
    g = call.graph
    factor = g.binary("divide", 1.0, g.unary("sqrt", variance + eps))
    if weight is not None:
        factor = factor * weight
    summand = -mean * factor if bias is None else bias - mean * factor
    shape = (mean.shape[0], *(Polynomial.of(1),) * (x.ndim - 2))
    return x * g.reshape(factor, shape) + g.reshape(summand, shape)


def _convolution(
    call: AtenCall,
    x: Value,
    weight: Value,
    bias: Value | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],  # noqa: ARG001
    groups: int,
) -> Value:
    """A convolution whose patches do not overlap, as the embedding of images: a product of patches."""
    kernel = [size.constant for size in weight.shape[2:]]
    patches = kernel == list(stride) and not any(padding) and all(one == 1 for one in dilation)
    if transposed or groups != 1 or not patches or None in kernel:
        raise NotConvertible(reason="only convolutions of patches that do not overlap are products")
    g, axes = call.graph, len(kernel)
    batch, channels, outer = x.shape[0], x.shape[1], call.result.shape[2:]
    cut = [Polynomial.of(count) * int(length or 0) for count, length in zip(outer, kernel, strict=True)]
    x = g.slice(x, (slice(None), slice(None), *(slice(0, end) for end in cut)))
    split = [size for count, length in zip(outer, kernel, strict=True) for size in (count, int(length or 0))]
    x = g.reshape(x, (batch, channels, *split))
    counts = [2 + 2 * axis for axis in range(axes)]
    x = g.transpose(x, (0, *counts, 1, *(one + 1 for one in counts)))
    depth = channels
    for length in kernel:
        depth = depth * int(length or 0)
    x = g.reshape(x, (batch, *outer, depth))
    found = g.linear(x, g.reshape(weight, (weight.shape[0], depth)), bias)
    return g.transpose(found, (0, axes + 1, *range(1, axes + 1)))


def _encoder_layer(
    call: AtenCall,
    x: Value,
    width: int,
    heads: int,
    qkv_weight: Value,
    qkv_bias: Value,
    out_weight: Value,
    out_bias: Value,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Value,
    norm_bias_1: Value,
    norm_weight_2: Value,
    norm_bias_2: Value,
    weight_1: Value,
    bias_1: Value,
    weight_2: Value,
    bias_2: Value,
    mask: Value | None = None,
    mask_type: int | None = None,
) -> Value:
    """`torch.nn.TransformerEncoderLayer` in inference."""
    g = call.graph

    def feed_forward(y: Value) -> Value:
        inner = g.linear(y, weight_1, bias_1, activation="gelu" if use_gelu else "relu")
        return g.linear(inner, weight_2, bias_2)

    def attend(y: Value) -> Value:
        return _self_attention(
            call, y, width, heads, (qkv_weight, qkv_bias, out_weight, out_bias), mask, mask_type
        )

    def norm_1(y: Value) -> Value:
        return g.layer_norm(y, norm_weight_1, norm_bias_1, -1, eps)

    def norm_2(y: Value) -> Value:
        return g.layer_norm(y, norm_weight_2, norm_bias_2, -1, eps)

    if norm_first:
        x = x + attend(norm_1(x))
        return x + feed_forward(norm_2(x))
    x = norm_1(x + attend(x))
    return norm_2(x + feed_forward(x))


#: Kinds of masks of `torch._transformer_encoder_layer_fwd`: of scores, of padding.
_SCORE_MASK, _PADDING_MASK = 0, 1


def _self_attention(
    call: AtenCall,
    x: Value,
    width: int,
    heads: int,
    weights: tuple[Value, Value, Value, Value],
    mask: Value | None,
    mask_type: int | None,
) -> Value:
    """Attention of x to itself; True in a mask hides a key."""
    g = call.graph
    qkv_weight, qkv_bias, out_weight, out_bias = weights
    batch, tokens = x.shape[:2]
    qkv = g.reshape(g.linear(x, qkv_weight, qkv_bias), (batch, tokens, 3, heads, width // heads))
    q, k, v = (g.transpose(g.slice(qkv, (slice(None), slice(None), one)), (0, 2, 1, 3)) for one in range(3))
    seen = None
    if mask is not None:
        if mask.dtype.kind != "b" or mask_type not in (_SCORE_MASK, _PADDING_MASK):
            raise NotConvertible(reason=f"its mask is of the kind {mask_type} and {mask.dtype}")
        seen = g.unary("logical_not", mask)
        if mask_type == _PADDING_MASK:
            seen = g.reshape(seen, (batch, 1, 1, tokens))
    found = g.transpose(g.attention(q, k, v, mask=seen), (0, 2, 1, 3))
    return g.linear(g.reshape(found, (batch, tokens, width)), out_weight, out_bias)


PRODUCT_ROWS: dict[Any, Row] = {
    aten.mm.default: Row(_matmul, heavy=True),
    aten.bmm.default: Row(_matmul, heavy=True),
    aten.mv.default: Row(_matmul, heavy=True),
    aten.matmul.default: Row(_matmul, heavy=True),
    aten.linear.default: Row(_linear, heavy=True),
    aten.addmm.default: Row(_addmm, heavy=True),
    aten.baddbmm.default: Row(_addmm, heavy=True),
    aten.convolution.default: Row(_convolution, heavy=True),
    aten._scaled_dot_product_flash_attention_for_cpu.default: Row(_attention, heavy=True),
    aten.native_layer_norm.default: Row(_layer_norm, heavy=True),
    aten._fused_rms_norm.default: Row(_rms_norm, heavy=True),
    aten._native_batch_norm_legit_no_training.default: Row(_batch_norm),
    aten._transformer_encoder_layer_fwd.default: Row(_encoder_layer, heavy=True),
    own.linear.default: Row(_own_linear, heavy=True),
    own.matmul.default: Row(_matmul, heavy=True),
    own.attention.default: Row(_own_attention, heavy=True),
}
