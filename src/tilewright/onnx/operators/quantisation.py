"""Quantisation: floats to integers with scales and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.graph.sizes import SizeLike, quotient, size_of
from tilewright.graph.value import Value
from tilewright.onnx.call import NodeCall, NotSupported, OperatorTable, Results, is_kind
from tilewright.onnx.operators.elementwise import is_narrow_float, saturated
from tilewright.onnx.operators.movement import axis_in
from tilewright.onnx.operators.products import quantised
from tilewright.onnx.tensors import element_dtype

OPERATORS = OperatorTable()


def _placed(call: NodeCall, x: Value, scales: Value, axis: int, block: int) -> Value:
    """Scales (or zero points) as they broadcast to x: one, one along an axis, or one for each block."""
    g = call.graph
    if scales.ndim == 0 or (scales.ndim == 1 and scales.shape[0].constant == 1 and not block):
        return g.reshape(scales, ())
    at = axis_in(axis, x.ndim)
    if not block:
        if scales.ndim == x.ndim and scales.ndim != 1:
            return scales
        return g.reshape(scales, (scales.shape[0], *[1] * (x.ndim - at - 1)))
    count = scales.shape[at]
    inner: tuple[SizeLike, ...] = (*scales.shape[: at + 1], 1, *scales.shape[at + 1 :])
    outer: tuple[SizeLike, ...] = (*scales.shape[: at + 1], block, *scales.shape[at + 1 :])
    spread = g.reshape(
        g.expand(g.reshape(scales, inner), outer),
        (*scales.shape[:at], count * block, *scales.shape[at + 1 :]),
    )
    if count * block != x.shape[at] and quotient(x.shape[at], size_of(block)) is None:
        spread = g.slice(spread, (*[slice(None)] * at, slice(0, x.shape[at])))  # the last block is shorter
    return spread


def _options(call: NodeCall, zero: Value | None) -> tuple[int, int, np.dtype[Any] | None]:
    """Axis, block and the type of quantised elements that an attribute names."""
    code = call.attribute("output_dtype", 0)
    dtype = element_dtype(code) if code else None
    return call.attribute("axis", 1), call.attribute("block_size", 0), dtype if zero is None else zero.dtype


@OPERATORS.add("QuantizeLinear")
def quantize(call: NodeCall) -> Results:
    """x / scale + zero point, rounded to even and limited."""
    g = call.graph
    x, scale, zero = call.value(0), call.value(1), call.optional(2)
    axis, block, dtype = _options(call, zero)
    dtype = np.dtype(np.uint8) if dtype is None else dtype
    saturate = call.flag("saturate", default=True)
    code = call.attribute("precision", 0)
    precision = element_dtype(code) if code else None
    wide = precision if precision is not None else scale.dtype if is_kind(scale, "f") else np.dtype("f4")
    wide = np.dtype("f4") if wide.itemsize < 4 else wide
    scaled = g.cast(x, wide) / g.cast(_placed(call, x, scale, axis, block), wide)
    if is_narrow_float(dtype):
        if zero is not None:
            scaled = scaled + g.cast(_placed(call, x, zero, axis, block), wide)
        return g.cast(saturated(call, scaled, dtype) if saturate else scaled, dtype)
    if dtype.name in ("int4", "uint4", "int2", "uint2"):
        return _narrow(call, x, scaled, zero, dtype, (axis, block))
    if zero is None:
        zero = g.constant(np.zeros((), dtype))
    return quantised(call, scaled, _placed(call, x, zero, axis, block))


def _narrow(
    call: NodeCall, x: Value, scaled: Value, zero: Value | None, dtype: np.dtype[Any], place: tuple[int, int]
) -> Value:
    """Elements of fewer than 8 bits."""
    g, bits, signed = call.graph, int(dtype.name[-1]), dtype.name.startswith("i")
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    moved = g.unary("rint", scaled)
    if zero is not None:
        moved = moved + g.cast(_placed(call, x, zero, *place), moved.dtype)
    limited = g.clipped(moved, g.number(moved, low), g.number(moved, high))
    return g.cast(g.cast(limited, "i32"), dtype)


@OPERATORS.add("DequantizeLinear")
def dequantize(call: NodeCall) -> Results:
    """(x - zero point) · scale."""
    g = call.graph
    x, scale, zero = call.value(0), call.value(1), call.optional(2)
    axis, block = call.attribute("axis", 1), call.attribute("block_size", 0)
    code = call.attribute("output_dtype", 0)
    wanted = element_dtype(code) if code else scale.dtype
    if wanted is None:
        raise NotSupported("an unknown element type")
    wide = g.cast(x, "f32") if x.dtype.name != "int32" else g.cast(x, "f64")
    if zero is not None:
        wide = wide - g.cast(_placed(call, x, zero, axis, block), wide.dtype)
    return g.cast(wide * g.cast(_placed(call, x, scale, axis, block), wide.dtype), wanted)


@OPERATORS.add("DynamicQuantizeLinear")
def dynamic_quantize(call: NodeCall) -> Results:
    """x as uint8 with the scale and the zero point that its range, 0 included, needs."""
    g, x = call.graph, call.value(0)
    zero = g.number(x, 0)
    low = g.binary("minimum", g.reduce("min", x), zero)
    high = g.binary("maximum", g.reduce("max", x), zero)
    scale = (high - low) / 255.0
    safe = g.where(g.binary("equal", scale, zero), g.number(x, 1), scale)
    point = g.unary("rint", g.clipped(-low / safe, zero, g.number(x, 255)))
    zero_point = g.cast(point, "u8")
    return quantised(call, x / safe, zero_point), scale, zero_point
