"""Rows of products, attention, norms and whole layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from tilewright.errors import NotConvertible
from tilewright.graph.builder import Graph
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


#: Kinds of masks of `torch._transformer_encoder_layer_fwd`: of scores, of padding.
_SCORE_MASK, _PADDING_MASK = 0, 1


class _EncoderLayer(NamedTuple):
    """The arguments of `torch._transformer_encoder_layer_fwd`, in its order.

    Attributes
    ----------
    x : (batch, tokens, width).
    qkv_weight, qkv_bias, out_weight, out_bias : of the attention; Q, K and V are one product.
    norm_weight_1, norm_bias_1 : of the norm of the attention.
    norm_weight_2, norm_bias_2 : of the norm of the feed-forward part.
    weight_1, bias_1, weight_2, bias_2 : of the feed-forward part.
    mask : True hides a key.
    mask_type : `_SCORE_MASK` or `_PADDING_MASK`.
    """

    x: Value
    width: int
    heads: int
    qkv_weight: Value
    qkv_bias: Value
    out_weight: Value
    out_bias: Value
    use_gelu: bool
    norm_first: bool
    eps: float
    norm_weight_1: Value
    norm_bias_1: Value
    norm_weight_2: Value
    norm_bias_2: Value
    weight_1: Value
    bias_1: Value
    weight_2: Value
    bias_2: Value
    mask: Value | None = None
    mask_type: int | None = None

    def norm_1(self, g: Graph, y: Value) -> Value:
        """The norm of the attention."""
        return g.layer_norm(y, self.norm_weight_1, self.norm_bias_1, -1, self.eps)

    def norm_2(self, g: Graph, y: Value) -> Value:
        """The norm of the feed-forward part."""
        return g.layer_norm(y, self.norm_weight_2, self.norm_bias_2, -1, self.eps)

    def feed_forward(self, g: Graph, y: Value) -> Value:
        """Two linear layers with an activation between them."""
        inner = g.linear(y, self.weight_1, self.bias_1, activation="gelu" if self.use_gelu else "relu")
        return g.linear(inner, self.weight_2, self.bias_2)

    def seen(self, g: Graph) -> Value | None:
        """The mask as `Graph.attention` takes it: False hides a key."""
        if self.mask is None:
            return None
        if self.mask.dtype.kind != "b" or self.mask_type not in (_SCORE_MASK, _PADDING_MASK):
            raise NotConvertible(reason=f"its mask is of the kind {self.mask_type} and {self.mask.dtype}")
        seen = g.unary("logical_not", self.mask)
        batch, tokens = self.x.shape[:2]
        return g.reshape(seen, (batch, 1, 1, tokens)) if self.mask_type == _PADDING_MASK else seen

    def attend(self, g: Graph, y: Value) -> Value:
        """Attention of y to itself, with the projections around it."""
        batch, tokens = self.x.shape[:2]
        split = (batch, tokens, 3, self.heads, self.width // self.heads)
        qkv = g.reshape(g.linear(y, self.qkv_weight, self.qkv_bias), split)
        parts = (g.slice(qkv, (slice(None), slice(None), one)) for one in range(3))
        q, k, v = (g.transpose(part, (0, 2, 1, 3)) for part in parts)
        found = g.transpose(g.attention(q, k, v, mask=self.seen(g)), (0, 2, 1, 3))
        return g.linear(g.reshape(found, (batch, tokens, self.width)), self.out_weight, self.out_bias)


def _encoder_layer(call: AtenCall, *arguments: Any, **named: Any) -> Value:
    """`torch.nn.TransformerEncoderLayer` in inference."""
    g, layer = call.graph, _EncoderLayer(*arguments, **named)
    x = layer.x
    if layer.norm_first:
        x = x + layer.attend(g, layer.norm_1(g, x))
        return x + layer.feed_forward(g, layer.norm_2(g, x))
    x = layer.norm_1(g, x + layer.attend(g, x))
    return layer.norm_2(g, x + layer.feed_forward(g, x))


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
