"""Attention as three passes over an array of scores: a product, softmax, a product."""

from __future__ import annotations

import numpy as np

from tilewright.macro.attention import ITEM_FIELDS
from tilewright.runtime.arrays import matmul
from tilewright.runtime.attention import AttentionCall
from tilewright.runtime.operands import Array
from tilewright.spec.attention_bounds import exclusion_limit

#: Bytes of scores that exist at once, at least those of the queries that share a head of keys: about a
#: second cache, of which softmax reads and writes all.
SCORE_BYTES = 1 << 22


class _Place:
    """Elements of an array from an offset on, as NumPy reads them; keeps the array alive."""

    def __init__(self, array: Array, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        interface = dict(array.__array_interface__)
        address, read_only = interface["data"]
        interface["data"] = (address + offset * array.itemsize, read_only)
        interface["shape"], interface["strides"] = shape, strides
        self.__array_interface__, self.base = interface, array


def _part(array: Array, offset: int, rows: int) -> Array:
    """The view (heads, rows, columns) of one sequence."""
    shape = (array.shape[1], rows, array.shape[3])
    if 0 in shape:
        return np.empty(shape, array.dtype)
    found = np.asarray(_Place(array, int(offset), shape, array.strides[1:]))
    return found.view(array.dtype)  # an interface cannot name the types of ml_dtypes


class _Sequence:
    """One sequence of a call: its operands as views, keys and values of pages gathered."""

    def __init__(self, call: AttentionCall, number: int) -> None:
        item = dict(zip(ITEM_FIELDS, call.items[number].tolist(), strict=False))
        self.call, self.item = call, item
        self.queries, self.keys = item["queries"], item["keys"]
        self.q = _part(call.q, item["q"], self.queries)
        self.out = _part(call.out, item["out"], self.queries)
        if call.pages is None:
            self.k, self.v = _part(call.k, item["k"], self.keys), _part(call.v, item["v"], self.keys)
        else:
            pages = call.pages[number]
            self.k, self.v = (
                cache[pages].swapaxes(0, 1).reshape(cache.shape[1], -1, cache.shape[3])[:, : self.keys]
                for cache in (call.k, call.v)
            )
        self.row_max, self.row_sum = (
            array.reshape(-1)[item["state"] :] if array.size else array
            for array in (call.row_max, call.row_sum)
        )
        self.state_step = call.row_max.shape[-1]

    def seen(self) -> Array | None:
        """Which keys each query sees by position; None where that is all of them."""
        low, high = self.item["low"], self.item["high"]
        if low + self.queries - 1 <= 0 and high >= self.keys:
            return None
        distance = np.arange(self.keys) - np.arange(self.queries)[:, np.newaxis]
        found: Array = (low <= distance) & (distance < high)
        return found

    def scales(self, scales: Array | None, kv_heads: slice) -> Array | None:
        """Those of the keys or values of some heads, (kv_heads, 1, keys)."""
        if scales is None:
            return None
        step, start = scales.shape[2], self.item["scales"]
        flat = scales.reshape(-1)
        rows = [flat[start + head * step :][: self.keys] for head in range(kv_heads.start, kv_heads.stop)]
        return np.stack(rows)[:, np.newaxis, np.newaxis]


def run_unfused(call: AttentionCall) -> None:
    """Attention of arrays that are known to fit: what the kernels of `Attention` do, by way of all scores."""
    kv_heads = call.k.shape[1]
    if not kv_heads:
        return
    group = call.q.shape[1] // kv_heads
    with np.errstate(all="ignore"):  # infinities and NaN are operands like others
        for number in range(len(call.items)):
            sequence = _Sequence(call, number)
            each = group * sequence.queries * sequence.keys * call.row_max.itemsize
            step = max(1, min(kv_heads, SCORE_BYTES // max(each, 1)))
            for first in range(0, kv_heads, step):
                _heads(sequence, slice(first, min(first + step, kv_heads)), group)


def _heads(sequence: _Sequence, kv_heads: slice, group: int) -> None:
    """Some heads of keys and the heads of queries that share them."""
    call, acc = sequence.call, sequence.call.row_max.dtype
    count, queries = kv_heads.stop - kv_heads.start, sequence.queries
    heads = slice(kv_heads.start * group, kv_heads.stop * group)
    k, v = sequence.k[kv_heads, np.newaxis], sequence.v[kv_heads, np.newaxis]
    q = sequence.q[heads].reshape(count, group, queries, call.q.shape[3])
    if k.dtype != q.dtype:  # quantised
        k, v = k.astype(q.dtype), v.astype(q.dtype)
    scores = matmul(q, k.swapaxes(2, 3), dtype=acc)
    allowed = _finish_scores(sequence, scores, heads, kv_heads)
    sinks = None if call.sinks is None else call.sinks[heads].reshape(count, group, 1)
    row_max = scores.max(axis=3, initial=-np.inf)
    if sinks is not None:
        row_max = np.maximum(row_max, sinks)
    shift = np.where(row_max == -np.inf, 0, row_max).astype(acc)[..., np.newaxis]
    weights = np.exp(np.subtract(scores, shift, out=scores), out=scores)
    row_sum = weights.sum(axis=3)
    if sinks is not None:
        row_sum += np.exp(sinks - shift[..., 0])
    scales = sequence.scales(call.value_scales, kv_heads)
    if scales is not None:
        weights *= scales
    found = matmul(weights.astype(q.dtype, copy=False), v, dtype=acc)
    if not np.isfinite(found).all():
        _again(found, weights, v, allowed)
    found /= np.where(row_sum == 0, 1, row_sum).astype(acc)[..., np.newaxis]
    sequence.out[heads] = found.reshape(count * group, queries, found.shape[3])
    for name, values in (("row_max", row_max), ("row_sum", row_sum)):
        state = getattr(sequence, name)
        for head, row in zip(
            range(heads.start, heads.stop), values.reshape(count * group, queries), strict=True
        ):
            state[head * sequence.state_step :][:queries] = row


def _finish_scores(sequence: _Sequence, scores: Array, heads: slice, kv_heads: slice) -> Array | None:
    """Scale, cap, slopes, mask and bounds, in place; which scores count, or None for all."""
    call, shape = sequence.call, scores.shape
    scores *= scores.dtype.type(call.scale)
    scales = sequence.scales(call.key_scales, kv_heads)
    if scales is not None:
        scores *= scales
    if call.softcap:
        scores /= call.softcap
        np.tanh(scores, out=scores)
        scores *= call.softcap
    if call.slopes is not None:
        first = sequence.keys - sequence.queries + sequence.item["shift"]
        position = np.arange(sequence.queries)[:, np.newaxis] + first
        distance = abs(np.arange(sequence.keys) - position).astype(scores.dtype)
        scores -= call.slopes[heads].reshape(*shape[:2], 1, 1) * distance
    allowed = sequence.seen()
    if call.mask is not None:
        mask = _part(call.mask, sequence.item["mask"], sequence.queries)[heads, :, : sequence.keys]
        mask = mask.reshape(shape)
        if mask.dtype == np.uint8:
            seen = mask != 0
        else:
            scores += mask
            seen = ~(mask.astype(scores.dtype) <= exclusion_limit(mask.dtype))
        allowed = seen if allowed is None else seen & allowed
    if allowed is not None:
        allowed = np.broadcast_to(allowed, shape)
        np.copyto(scores, -np.inf, where=~allowed)
    return allowed


def _again(found: Array, weights: Array, v: Array, allowed: Array | None) -> None:
    """Rows that are not finite, of the values alone that they see: those of others may be NaN."""
    if allowed is None:
        return
    for place in np.argwhere(~np.isfinite(found).all(axis=3)):
        at = tuple(place)
        seen = allowed[at]
        found[at] = weights[at][seen] @ v[at[0], 0][seen].astype(weights.dtype)
