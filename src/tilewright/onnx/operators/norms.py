"""Normalisation."""

from __future__ import annotations

from typing import Any

from tilewright.graph.value import Value
from tilewright.onnx.call import NodeCall, NotSupported, OperatorTable, Results
from tilewright.onnx.operators.movement import axis_in

OPERATORS = OperatorTable()

_EPS = 1e-5


def _last_axes(call: NodeCall, x: Value) -> tuple[int, ...]:
    return tuple(range(axis_in(call.attribute("axis", -1), x.ndim), x.ndim))


def _fits(x: Value, axes: tuple[int, ...], vector: Value | None) -> bool:
    """Whether a weight can be an operand of the norm: one element for each of the axes."""
    return vector is None or (
        vector.shape == tuple(x.shape[axis] for axis in axes) and vector.dtype == x.dtype
    )


def layer_norm_of(
    call: NodeCall, x: Value, weight: Value | None, bias: Value | None, axes: tuple[int, ...], eps: float
) -> Value:
    """A layer norm; weights that only broadcast are multiplied afterwards."""
    g = call.graph
    if _fits(x, axes, weight) and _fits(x, axes, bias) and (weight is not None or bias is None):
        return g.layer_norm(x, weight, bias, axes, eps)
    found = g.layer_norm(x, None, None, axes, eps)
    found = found if weight is None else found * g.cast(weight, x.dtype)
    return found if bias is None else found + g.cast(bias, x.dtype)


def rms_norm_of(call: NodeCall, x: Value, weight: Value | None, axes: tuple[int, ...], eps: float) -> Value:
    """An RMS norm; a weight that only broadcasts is multiplied afterwards."""
    if _fits(x, axes, weight):
        return call.graph.rms_norm(x, weight, axes, eps)
    found = call.graph.rms_norm(x, None, axes, eps)
    return found if weight is None else found * call.graph.cast(weight, x.dtype)


def _statistics(call: NodeCall, x: Value, axes: tuple[int, ...], eps: float) -> tuple[Value, Value]:
    """The mean and the inverse of the standard deviation, in float32."""
    g = call.graph
    wide = x if x.dtype.name == "float64" else g.cast(x, "f32")
    mean = g.reduce("mean", wide, axes, keepdims=True)
    centred = wide - mean
    variance = g.reduce("mean", centred * centred, axes, keepdims=True)
    return mean, g.unary("reciprocal", g.unary("sqrt", variance + eps))


@OPERATORS.add("LayerNormalization")
def layer_normalization(call: NodeCall) -> Results:
    """(x - mean) / √(variance + eps) · weight + bias along the last axes."""
    call.ignore("stash_type")
    x, weight, bias = call.value(0), call.optional(1), call.optional(2)
    axes, eps = _last_axes(call, x), float(call.attribute("epsilon", _EPS))
    found = layer_norm_of(call, x, weight, bias, axes, eps)
    if call.wants(1) or call.wants(2):
        return found, *_statistics(call, x, axes, eps)
    return found


@OPERATORS.add(
    "RMSNormalization", "SimplifiedLayerNormalization", "com.microsoft:SimplifiedLayerNormalization"
)
def rms_normalization(call: NodeCall) -> Results:
    """x / √(mean of squares + eps) · weight along the last axes."""
    call.ignore("stash_type")
    x = call.value(0)
    return rms_norm_of(call, x, call.optional(1), _last_axes(call, x), float(call.attribute("epsilon", _EPS)))


@OPERATORS.add("com.microsoft:SkipLayerNormalization", "com.microsoft:SkipSimplifiedLayerNormalization")
def skip_layer_normalization(call: NodeCall) -> Results:
    """The norm of x + skip + bias; the sum is the last result."""
    x, skip, weight = call.value(0), call.value(1), call.value(2)
    simple = "Simplified" in call.operator
    beta, bias = None if simple else call.optional(3), call.optional(3 if simple else 4)
    total = x + skip
    total = total if bias is None else total + bias
    eps, axes = float(call.attribute("epsilon", _EPS)), (total.ndim - 1,)
    if simple:
        return rms_norm_of(call, total, weight, axes, eps), None, None, total
    return layer_norm_of(call, total, weight, beta, axes, eps), None, None, total


def _by_channel(call: NodeCall, vector: Value, ndim: int) -> Value:
    return call.graph.reshape(vector, (1, vector.shape[0], *[1] * (ndim - 2)))


@OPERATORS.add("BatchNormalization")
def batch_normalization(call: NodeCall) -> Results:
    """x · scale + bias by channel, both from the statistics of training."""
    g = call.graph
    call.ignore("momentum", "spatial")
    if call.flag("training_mode"):
        raise NotSupported("training mode")
    x, scale, bias, mean, variance = (call.value(number) for number in range(5))
    scale, bias, mean, variance = (g.cast(one, variance.dtype) for one in (scale, bias, mean, variance))
    factor = scale / g.unary("sqrt", variance + float(call.attribute("epsilon", _EPS)))
    shift = bias - mean * factor
    factor, shift = (g.cast(_by_channel(call, one, x.ndim), x.dtype) for one in (factor, shift))
    return x * factor + shift


@OPERATORS.add("InstanceNormalization")
def instance_normalization(call: NodeCall) -> Results:
    """A layer norm of each channel, with a factor and a summand for each."""
    x, scale, bias = (call.value(number) for number in range(3))
    axes = tuple(range(2, x.ndim))
    found = call.graph.layer_norm(x, None, None, axes, float(call.attribute("epsilon", _EPS)))
    return found * _by_channel(call, scale, x.ndim) + _by_channel(call, bias, x.ndim)


@OPERATORS.add("GroupNormalization")
def group_normalization(call: NodeCall) -> Results:
    """A layer norm of each group of channels, with a factor and a summand for each channel.

    Before operator set 21 they were those of a group.
    """
    call.ignore("stash_type")
    g = call.graph
    x, scale, bias = (call.value(number) for number in range(3))
    rows = g.reshape(x, (x.shape[0], call.integer("num_groups"), -1))
    found = g.layer_norm(rows, None, None, (-1,), float(call.attribute("epsilon", _EPS)))
    if call.opset < 21:
        found = found * g.slice(scale, (slice(None), None)) + g.slice(bias, (slice(None), None))
        return g.reshape(found, x.shape)
    found = g.reshape(found, x.shape)
    return found * _by_channel(call, scale, x.ndim) + _by_channel(call, bias, x.ndim)


@OPERATORS.add("MeanVarianceNormalization")
def mean_variance_normalization(call: NodeCall) -> Results:
    """(x - mean) / standard deviation along any axes."""
    g, x = call.graph, call.value(0)
    axes = tuple(call.integer_list("axes") or (0, 2, 3))
    centred = x - g.reduce("mean", x, axes, keepdims=True)
    deviation = g.unary("sqrt", g.reduce("mean", centred * centred, axes, keepdims=True))
    return centred / (deviation + 1e-9)


@OPERATORS.add("GlobalAveragePool", "GlobalMaxPool")
def global_pool(call: NodeCall) -> Results:
    """The mean or the maximum of each channel."""
    x = call.value(0)
    function: Any = "mean" if call.operator == "GlobalAveragePool" else "max"
    return call.graph.reduce(function, x, tuple(range(2, x.ndim)), keepdims=True)
