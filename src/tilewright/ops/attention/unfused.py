"""Attention as three passes over an array of scores: a product, softmax, a product."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tilewright.calls.operands import Array
from tilewright.ops.attention.bounds import exclusion_limit
from tilewright.ops.attention.kernel import AttentionCall
from tilewright.ops.attention.problem import ITEM_FIELDS
from tilewright.ops.attention.sequences import rows_of_pages
from tilewright.ops.gemm.call import matmul

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


class SequenceViews:
    """One sequence of a call: its operands as views, with paged keys and values gathered."""

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
            self.k, self.v = (rows_of_pages(cache, pages)[:, : self.keys] for cache in (call.k, call.v))
        self.row_max, self.row_sum = (
            array.reshape(-1)[item["state"] :] if array.size else array
            for array in (call.row_max, call.row_sum)
        )
        self.state_step = call.row_max.shape[-1]

    def seen(self) -> Array | None:
        """The keys each query sees by position; None if it sees all of them."""
        low, high = self.item["low"], self.item["high"]
        if low + self.queries - 1 <= 0 and high >= self.keys:
            return None
        distance = np.arange(self.keys) - np.arange(self.queries)[:, np.newaxis]
        found: Array = (low <= distance) & (distance < high)
        return found

    def scales(self, scales: Array | None, kv_heads: slice) -> Array | None:
        """Scales of the keys or values of some heads, (kv_heads, 1, keys)."""
        if scales is None:
            return None
        step, start = scales.shape[2], self.item["scales"]
        flat = scales.reshape(-1)
        rows = [flat[start + head * step :][: self.keys] for head in range(kv_heads.start, kv_heads.stop)]
        return np.stack(rows)[:, np.newaxis, np.newaxis]


def blocks_of_heads(call: AttentionCall) -> Iterator[tuple[int, SequenceViews, slice]]:
    """The sequences of a call and their heads of keys, as many at once as `SCORE_BYTES` allow."""
    kv_heads = call.k.shape[1]
    if not kv_heads:
        return
    group = call.q.shape[1] // kv_heads
    for number in range(len(call.items)):
        sequence = SequenceViews(call, number)
        each = group * sequence.queries * sequence.keys * call.row_max.itemsize
        step = max(1, min(kv_heads, SCORE_BYTES // max(each, 1)))
        for first in range(0, kv_heads, step):
            yield number, sequence, slice(first, min(first + step, kv_heads))


def run_unfused(call: AttentionCall) -> None:
    """Attention of validated arrays: the result of the `Attention` kernels, but materialising all scores."""
    with np.errstate(all="ignore"):  # infinities and NaN are operands like others
        for _, sequence, kv_heads in blocks_of_heads(call):
            _heads(sequence, kv_heads)


def query_heads(sequence: SequenceViews, kv_heads: slice) -> slice:
    """The heads of queries that share some heads of keys."""
    group = sequence.call.q.shape[1] // sequence.call.k.shape[1]
    return slice(kv_heads.start * group, kv_heads.stop * group)


def _heads(sequence: SequenceViews, kv_heads: slice) -> None:
    """Some heads of keys and the heads of queries that share them."""
    call, acc = sequence.call, sequence.call.row_max.dtype
    heads = query_heads(sequence, kv_heads)
    scores = scaled_products(sequence, kv_heads)
    count, group, queries, _ = scores.shape
    cap_scores(call, scores)
    allowed = mask_scores(sequence, scores, heads)
    row_max, row_sum = exponentials(call, scores, heads)
    weights = scores
    scales = sequence.scales(call.value_scales, kv_heads)
    if scales is not None:
        weights *= scales
    v = sequence.v[kv_heads, np.newaxis]
    if v.dtype != call.q.dtype:  # quantised
        v = v.astype(call.q.dtype)
    found = matmul(weights.astype(v.dtype, copy=False), v, dtype=acc)
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


# --- scores, (kv_heads, group, queries, keys), stage by stage ---------------------------------------


def scaled_products(sequence: SequenceViews, kv_heads: slice) -> Array:
    """scale · q·k, times the scales of the keys."""
    call = sequence.call
    heads, count = query_heads(sequence, kv_heads), kv_heads.stop - kv_heads.start
    group = (heads.stop - heads.start) // count
    q = sequence.q[heads].reshape(count, group, sequence.queries, call.q.shape[3])
    k = sequence.k[kv_heads, np.newaxis]
    if k.dtype != q.dtype:  # quantised
        k = k.astype(q.dtype)
    scores: Array = matmul(q, k.swapaxes(2, 3), dtype=call.row_max.dtype)
    scores *= scores.dtype.type(call.scale)
    scales = sequence.scales(call.key_scales, kv_heads)
    if scales is not None:
        scores *= scales
    return scores


def cap_scores(call: AttentionCall, scores: Array) -> None:
    """softcap · tanh(scores / softcap), in place."""
    if call.softcap:
        scores /= call.softcap
        np.tanh(scores, out=scores)
        scores *= call.softcap


def mask_scores(sequence: SequenceViews, scores: Array, heads: slice) -> Array | None:
    """Slopes, mask and bounds, in place: -inf for what is excluded. Which scores count, or None for all."""
    call, shape = sequence.call, scores.shape
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


def exponentials(call: AttentionCall, scores: Array, heads: slice) -> tuple[Array, Array]:
    """e^(score - row_max) in place; the largest score of each row and the sum, which count sinks."""
    acc = scores.dtype
    sinks = None if call.sinks is None else call.sinks[heads].reshape(*scores.shape[:2], 1)
    row_max = scores.max(axis=3, initial=-np.inf)
    if sinks is not None:
        row_max = np.maximum(row_max, sinks)
    shift = np.where(row_max == -np.inf, 0, row_max).astype(acc)[..., np.newaxis]
    np.exp(np.subtract(scores, shift, out=scores), out=scores)
    row_sum = scores.sum(axis=3)
    if sinks is not None:
        row_sum += np.exp(sinks - shift[..., 0])
    return row_max, row_sum


def _again(found: Array, weights: Array, v: Array, allowed: Array | None) -> None:
    """Rows that are not finite, of the values alone that they see: those of others may be NaN."""
    if allowed is None:
        return
    for place in np.argwhere(~np.isfinite(found).all(axis=3)):
        at = tuple(place)
        seen = allowed[at]
        found[at] = weights[at][seen] @ v[at[0], 0][seen].astype(weights.dtype)
