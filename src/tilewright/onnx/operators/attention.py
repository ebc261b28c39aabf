"""Attention and rotary embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.graph.sizes import quotient, size_of
from tilewright.graph.value import Value
from tilewright.loops.nests.polynomial import Polynomial
from tilewright.onnx.call import NodeCall, NotSupported, OperatorTable, Results, is_kind
from tilewright.onnx.sizes import SizeArray, size_elements
from tilewright.records import dataclass

OPERATORS = OperatorTable()


def heads_of(call: NodeCall, x: Value, count: int) -> Value:
    """(batch, tokens, heads · size) as (batch, heads, tokens, size)."""
    size = quotient(x.shape[-1], size_of(count)) if count > 0 else None
    if x.ndim != 3 or size is None:
        raise NotSupported(f"{x.shape[-1]} columns for {count} heads")
    split = call.graph.reshape(x, (x.shape[0], x.shape[1], count, size))
    return call.graph.transpose(split, (0, 2, 1, 3))


def merged_heads(call: NodeCall, x: Value) -> Value:
    """(batch, heads, tokens, size) as (batch, tokens, heads · size)."""
    batch, heads, tokens, size = x.shape
    return call.graph.reshape(call.graph.transpose(x, (0, 2, 1, 3)), (batch, tokens, heads * size))


@dataclass(frozen=True)
class _Mask:
    """Which keys are seen (bool), and what is added to scores, where there are such."""

    seen: Value | None = None
    added: Value | None = None

    def hidden(self, call: NodeCall, seen: Value) -> _Mask:
        """With a further condition."""
        both = seen if self.seen is None else call.graph.binary("logical_and", self.seen, seen)
        return _Mask(both, self.added)

    def operand(self, call: NodeCall, dtype: np.dtype[Any]) -> Value | None:
        """The mask as attention takes it."""
        if self.added is None:
            return self.seen
        g = call.graph
        added = g.cast(self.added, dtype)
        return added if self.seen is None else g.where(self.seen, added, g.number(added, -np.inf))


def _positions(call: NodeCall, queries: Polynomial, keys: Polynomial, offset: Value | Polynomial) -> Any:
    """Positions of queries (…, queries, 1) and of keys (keys), to be compared."""
    g = call.graph
    columns = g.iota(keys)
    if isinstance(offset, Polynomial):
        return g.slice(g.iota(queries, offset), (slice(None), None)), columns
    rows = g.slice(g.iota(queries), (slice(None), None))
    return rows + g.reshape(offset, (-1, 1, 1, 1)), columns


def _padded(call: NodeCall, mask: Value, keys: Polynomial) -> Value:
    """A mask whose last axis is as long as there are keys: further ones are hidden."""
    g, missing = call.graph, keys - mask.shape[-1]
    if not missing or mask.shape[-1] == size_of(1):
        return mask
    value = g.constant(np.asarray(False)) if is_kind(mask, "b") else g.number(mask, -np.inf)
    after = [size_of(0)] * (mask.ndim - 1) + [missing]
    return g.pad(mask, value, [size_of(0)] * mask.ndim, after)


def _with_past(call: NodeCall, number: int, x: Value) -> Value:
    past = call.optional(number)
    return x if past is None else call.graph.concatenate([past, x], 2)


def _windows(call: NodeCall) -> tuple[int | None, int | None]:
    left, right = call.attribute("left_window_size", -1), call.attribute("right_window_size", -1)
    return (None if left < 0 else left), (None if right < 0 else right)


@OPERATORS.add("Attention")
def attention(call: NodeCall) -> Results:
    """Attention of the standard operator set, with its cache, masks and further results."""
    g = call.graph
    q, k, v = call.value(0), call.value(1), call.value(2)
    flat = q.ndim == 3
    queries_heads, keys_heads = call.attribute("q_num_heads", 0), call.attribute("kv_num_heads", 0)
    call.ignore("softmax_precision")
    if flat:
        q, k, v = heads_of(call, q, queries_heads), *(heads_of(call, x, keys_heads) for x in (k, v))
    k, v = _with_past(call, 4, k), _with_past(call, 5, v)
    fresh = call.value(1).shape[-2]
    past = k.shape[2] - fresh
    lengths = call.optional(6)
    scale = call.attribute("scale")
    softcap = float(call.attribute("softcap", 0.0))
    causal, window = call.flag("is_causal"), _windows(call)
    mask = _Mask()
    if call.has(3):
        given = _padded(call, call.value(3), k.shape[2])
        mask = _Mask(seen=given) if is_kind(given, "b") else _Mask(added=given)
    # Positions that `tw.attention` knows: from the first key on, or up to the last one.
    ends = lengths is None and q.shape[2] == fresh
    fused = ends or (lengths is None and not past and (causal or window == (None, None)))
    offset: Value | Polynomial = past
    if lengths is not None:
        offset = g.cast(lengths, "i64") - g.sizes(SizeArray(size_elements(q.shape[2]), np.dtype(np.int64)))
        seen = g.binary("less", g.iota(k.shape[2]), g.reshape(g.cast(lengths, "i64"), (-1, 1, 1, 1)))
        mask = mask.hidden(call, seen)
    if not fused:
        mask = _limited(call, mask, _positions(call, q.shape[2], k.shape[2], offset), window, causal=causal)
    factor = None if scale is None else float(scale)
    options: dict[str, Any] = {"scale": factor, "softcap": softcap or None}
    if fused:
        options["causal"] = causal and (True if ends else "upper_left")
        options["window"] = None if window == (None, None) else window
    found = g.attention(
        *(g.cast(one, q.dtype) for one in (q, k, v)), mask=mask.operand(call, q.dtype), **options
    )
    scores = None
    if call.wants(3):
        if fused:
            positions = _positions(call, q.shape[2], k.shape[2], past)
            mask = _limited(call, mask, positions, window, causal=causal)
        scores = _scores(call, q, k, mask.operand(call, q.dtype), factor, softcap)
    call.ignore("qk_matmul_output_mode")
    return (merged_heads(call, found) if flat else found), k, v, scores


def _limited(
    call: NodeCall, mask: _Mask, positions: Any, window: tuple[int | None, int | None], *, causal: bool
) -> _Mask:
    """The mask, with keys hidden that lie behind a query or outside of its window."""
    g, (rows, columns) = call.graph, positions
    left, right = window
    if causal:
        mask = mask.hidden(call, g.binary("less_equal", columns, rows))
    if left is not None:
        mask = mask.hidden(call, g.binary("greater_equal", columns, rows - left))
    if right is not None:
        mask = mask.hidden(call, g.binary("less_equal", columns, rows + right))
    return mask


def _scores(
    call: NodeCall, q: Value, k: Value, mask: Value | None, scale: float | None, softcap: float
) -> Value:
    """What the attribute of the mode says: the product, capped, masked, or the weights."""
    g, mode = call.graph, call.attribute("qk_matmul_output_mode", 0)
    size = q.shape[-1].constant
    if size is None:
        raise NotSupported("heads whose size is not constant")
    groups = quotient(q.shape[1], k.shape[1])
    if groups is None:
        raise NotSupported(f"{q.shape[1]} heads of queries for {k.shape[1]} of keys")
    batch, heads, tokens, depth = k.shape
    spread = g.expand(g.reshape(k, (batch, heads, 1, tokens, depth)), (batch, heads, groups, tokens, depth))
    k = g.reshape(spread, (batch, heads * groups, tokens, depth))
    found = g.matmul(q, g.transpose(k, (0, 1, 3, 2)))
    found = found * g.number(found, size**-0.5 if scale is None else scale)
    if mode >= 1 and softcap:
        found = g.tanh(found / softcap) * softcap
    if mode >= 2 and mask is not None:
        hidden = g.number(found, -np.inf)
        found = g.where(mask, found, hidden) if is_kind(mask, "b") else found + mask
    if mode == 3:
        found = _weights(call, found)
    return found


def _weights(call: NodeCall, scores: Value) -> Value:
    """Softmax, 0 where all keys are hidden."""
    g = call.graph
    hidden = g.binary("equal", g.reduce("max", scores, -1, keepdims=True), g.number(scores, -np.inf))
    zero = g.number(scores, 0)
    return g.where(hidden, zero, g.softmax(g.where(hidden, zero, scores)))


# --- ONNX Runtime's operators -----------------------------------------------------------------------


@OPERATORS.add("com.microsoft:MultiHeadAttention")
def multi_head_attention(call: NodeCall) -> Results:
    """Attention of queries, keys and values (batch, tokens, heads · size)."""
    g, heads = call.graph, call.integer("num_heads")
    q, k, v, bias = call.value(0), call.value(1), call.value(2), call.optional(3)
    causal, scale = call.flag("unidirectional"), call.attribute("scale")
    if bias is not None:
        width, columns = q.shape[-1], v.shape[-1]
        q = q + g.slice(bias, slice(0, width))
        k = k + g.slice(bias, slice(width, width * 2))
        v = v + g.slice(bias, slice(width * 2, width * 2 + columns))
    q, k, v = (heads_of(call, x, heads) for x in (q, k, v))
    mask = _key_mask(call, 4, call.optional(5))
    found = g.attention(
        q, k, v, mask=mask.operand(call, q.dtype), causal=causal, scale=float(scale) if scale else None
    )
    return merged_heads(call, found), None, None


@OPERATORS.add("com.microsoft:Attention")
def packed_attention(call: NodeCall) -> Results:
    """Attention with the projection of its input."""
    g, heads = call.graph, call.integer("num_heads")
    x, weight, bias = call.value(0), call.value(1), call.optional(2)
    causal, scale = call.flag("unidirectional"), call.attribute("scale")
    sizes = call.integer_list("qkv_hidden_sizes")
    projected = g.matmul(x, weight)
    projected = projected if bias is None else projected + bias
    third = quotient(projected.shape[-1], size_of(3))
    if sizes is None and third is None:
        raise NotSupported("columns that are no multiple of 3")
    parts, start = [], size_of(0)
    for width in [third] * 3 if sizes is None else map(size_of, sizes):
        assert width is not None
        parts.append(heads_of(call, g.slice(projected, (..., slice(start, start + width))), heads))
        start = start + width
    mask = _key_mask(call, 3, call.optional(5))
    found = g.attention(
        *parts, mask=mask.operand(call, parts[0].dtype), causal=causal, scale=float(scale) if scale else None
    )
    return merged_heads(call, found)


def _key_mask(call: NodeCall, number: int, added: Value | None) -> _Mask:
    """A mask of keys (batch, keys) of 0 and 1, and scores that are added."""
    given = call.optional(number)
    call.ignore("mask_filter_value")
    if given is None:
        return _Mask(added=added)
    if given.ndim not in (2, 3):
        raise NotSupported(f"a mask of {given.ndim} dimensions")
    seen = call.graph.binary("not_equal", given, 0)
    index = (slice(None), None, None) if given.ndim == 2 else (slice(None), None)
    return _Mask(call.graph.slice(seen, index), added)


# --- positions --------------------------------------------------------------------------------------


@OPERATORS.add("RotaryEmbedding")
def rotary_embedding(call: NodeCall) -> Results:
    """Pairs of elements rotated by the angles of their positions."""
    g, x = call.graph, call.value(0)
    heads, interleaved = call.attribute("num_heads", 0), call.flag("interleaved")
    flat = x.ndim == 3
    split = heads_of(call, x, heads) if flat else x  # (batch, heads, tokens, size)
    size = split.shape[-1].constant
    depth = call.attribute("rotary_embedding_dim", 0) or size
    if size is None or depth is None:
        raise NotSupported("heads whose size is not constant")
    cosines, sines = call.value(1), call.value(2)
    if call.has(3):
        positions = call.value(3)
        if cosines.shape[-1].constant == depth // 2 and cosines.dtype == sines.dtype:
            options: dict[str, Any] = {"interleaved": interleaved, "layout": "bshd" if flat else "bhsd"}
            rows = g.reshape(x, (*x.shape[:2], heads, size)) if flat else x
            return g.reshape(g.rotary(rows, cosines, sines, positions, **options), x.shape)
        cosines, sines = g.take(cosines, positions, 0), g.take(sines, positions, 0)
    half, rows = depth // 2, g.transpose(split, (0, 2, 1, 3))
    cosines, sines = (
        g.slice(one, (slice(None), slice(None), None, slice(0, half))) for one in (cosines, sines)
    )
    turned = _rotated(call, g.slice(rows, (..., slice(0, depth))), (cosines, sines), interleaved=interleaved)
    if depth < size:
        turned = g.concatenate([turned, g.slice(rows, (..., slice(depth, size)))], -1)
    if flat:
        return g.reshape(turned, x.shape)
    return g.transpose(turned, (0, 2, 1, 3))


def _rotated(call: NodeCall, x: Value, angles: tuple[Value, Value], *, interleaved: bool) -> Value:
    g, (cosines, sines), half = call.graph, angles, _half(x)
    if interleaved:
        first, second = g.slice(x, (..., slice(0, None, 2))), g.slice(x, (..., slice(1, None, 2)))
    else:
        first, second = g.slice(x, (..., slice(0, half))), g.slice(x, (..., slice(half, None)))
    real, imaginary = first * cosines - second * sines, first * sines + second * cosines
    if not interleaved:
        return g.concatenate([real, imaginary], -1)
    pairs = g.concatenate([g.slice(real, (..., None)), g.slice(imaginary, (..., None))], -1)
    return g.reshape(pairs, x.shape)


def _half(x: Value) -> int:
    """Half of the last axis, which is constant."""
    length = x.shape[-1].constant
    assert length is not None
    return length // 2
