"""Rows of views, of copies into one place, and of look-ups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from tilewright.errors import NotConvertible
from tilewright.graph.value import Value
from tilewright.loops.nests.polynomial import Polynomial
from tilewright.torch.rows.row import AtenCall, Row
from tilewright.torch.sizes import size_of_torch

aten = torch.ops.aten

#: The largest index: slices end there where they have no end.
_NO_END = (1 << 63) - 1


def _reshape(call: AtenCall, x: Value, *_: Any, **__: Any) -> Value:
    return call.graph.reshape(x, call.result.shape)


def _expand(call: AtenCall, x: Value, *_: Any, **__: Any) -> Value:
    return call.graph.expand(x, call.result.shape)


def _transposed(call: AtenCall, x: Value, first: int = 0, second: int = 1) -> Value:
    if x.ndim < 2:
        return x
    axes = list(range(x.ndim))
    axes[first], axes[second] = axes[second], axes[first]
    return call.graph.transpose(x, axes)


def _permute(call: AtenCall, x: Value, axes: Sequence[int]) -> Value:
    return call.graph.transpose(x, axes)


def _bounds(length: Polynomial, start: Any, stop: Any) -> tuple[Any, Any]:
    """Bounds as a slice of the graph has them."""
    known = length.constant
    low = 0 if start is None else start
    if isinstance(low, int) and low < 0:
        low = length + low if known is None else max(known + low, 0)
    if stop is None or (isinstance(stop, int) and stop >= _NO_END):
        return low, length
    return low, stop


def _slice(
    call: AtenCall, x: Value, axis: int = 0, start: Any = None, stop: Any = None, step: Any = 1
) -> Value:
    axis %= x.ndim
    low, high = _bounds(x.shape[axis], start, stop)
    if step == 1:
        # How far an end reaches that may lie behind the axis follows from the length of the result.
        low = min(low, x.shape[axis].constant or low) if isinstance(low, int) else low
        high = polynomial_of(low) + call.result.shape[axis]
    index = (slice(None),) * axis + (slice(low, high, step),)
    return call.graph.slice(x, index)


def polynomial_of(given: Any) -> Polynomial:
    """A number or a polynomial as a polynomial."""
    return Polynomial.of(given)


def _select(call: AtenCall, x: Value, axis: int, index: Any) -> Value:
    return call.graph.slice(x, (slice(None),) * (axis % x.ndim) + (index,))


def _split(call: AtenCall, x: Value, _: Any, axis: int = 0) -> list[Value]:
    """One behind the other, as long as PyTorch's own results."""
    axis %= x.ndim
    found, at = [], Polynomial()
    for one in call.fake:
        end = at + size_of_torch(one.shape[axis])
        found.append(call.graph.slice(x, (slice(None),) * axis + (slice(at, end),)))
        at = end
    return found


def _unbind(call: AtenCall, x: Value, axis: int = 0) -> list[Value]:
    return [_select(call, x, axis, number) for number in range(len(call.fake))]


def _concatenate(call: AtenCall, values: Sequence[Value], axis: int = 0) -> Value:
    kept = [
        one for one in values if one.ndim == len(call.result.shape)
    ]  # old programs have empty lists in it
    if len(kept) != len(values):
        raise NotConvertible(reason="an operand has fewer axes than the others")
    return call.graph.concatenate([call.graph.cast(one, call.result.dtype) for one in values], axis)


def _repeat(call: AtenCall, x: Value, repeats: Sequence[Any]) -> Value:
    """Copies along each axis: an axis of copies beside it, expanded."""
    g = call.graph
    x = g.reshape(x, ((1,) * (len(repeats) - x.ndim) + x.shape))
    if all(one == 1 for one in repeats):
        return x
    inner = [size for size in x.shape for size in (Polynomial.of(1), size)]
    outer = [
        size for times, size in zip(repeats, x.shape, strict=True) for size in (polynomial_of(times), size)
    ]
    return g.reshape(g.expand(g.reshape(x, inner), outer), call.result.shape)


def _embedding(call: AtenCall, table: Value, indices: Value, *_: Any) -> Value:
    return call.graph.embedding(table, indices)


def _index_select(call: AtenCall, x: Value, axis: int, indices: Value) -> Value:
    return call.graph.take(x, indices, axis)


def _index(call: AtenCall, x: Value, indices: Sequence[Any]) -> Value:
    """Indexing by one tensor of integers along one axis."""
    given = [(axis, one) for axis, one in enumerate(indices) if one is not None]
    if len(given) != 1 or given[0][1].dtype == np.bool_:
        raise NotConvertible(reason="it indexes several axes, or by a mask")
    axis, one = given[0]
    return call.graph.take(x, one, axis)


def _pad(call: AtenCall, x: Value, pad: Sequence[Any], value: float = 0.0) -> Value:
    """A constant in front of each axis and behind it."""
    g = call.graph
    for number in range(0, len(pad), 2):
        axis = x.ndim - 1 - number // 2
        for place, width in enumerate(pad[number : number + 2]):
            if not isinstance(width, int) or width < 0:
                raise NotConvertible(reason=f"it pads by {width}")
            if not width:
                continue
            shape = (*x.shape[:axis], Polynomial.of(width), *x.shape[axis + 1 :])
            filled = g.expand(np.asarray(value, x.dtype), shape)
            x = g.concatenate([x, filled] if place else [filled, x], axis)
    return x


SHAPE_ROWS: dict[Any, Row] = {
    aten.view.default: Row(_reshape, view=True),
    aten._unsafe_view.default: Row(_reshape, view=True),
    aten.reshape.default: Row(_reshape, view=True),
    aten.unsqueeze.default: Row(_reshape, view=True),
    aten.squeeze.default: Row(_reshape, view=True),
    aten.squeeze.dim: Row(_reshape, view=True),
    aten.squeeze.dims: Row(_reshape, view=True),
    aten.expand.default: Row(_expand, view=True),
    aten.t.default: Row(_transposed, view=True),
    aten.transpose.int: Row(_transposed, view=True),
    aten.permute.default: Row(_permute, view=True),
    aten.slice.Tensor: Row(_slice),
    aten.select.int: Row(_select),
    aten.split.Tensor: Row(_split, results=None),
    aten.split_with_sizes.default: Row(_split, results=None),
    aten.unbind.int: Row(_unbind, results=None),
    aten.cat.default: Row(_concatenate),
    aten.repeat.default: Row(_repeat),
    aten.embedding.default: Row(_embedding),
    aten.index_select.default: Row(_index_select),
    aten.index.Tensor: Row(_index),
    aten.constant_pad_nd.default: Row(_pad),
}
