"""Reference attention in NumPy and float64, the oracle for all attention kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.ops.attention.bounds import Bounds, exclusion_limit

Array: TypeAlias = NDArray[Any]


class Sequence(NamedTuple):
    """The operands of one sequence, in float64.

    Attributes
    ----------
    q, k, v : (heads, queries, d), (kv_heads, keys, d) and (kv_heads, keys, value_dim).
    mask : (heads, queries, keys) of bool or of numbers to add, with -inf for what is excluded; or None.
    first : position of query 0 among the keys; None: as the bounds say, for slopes the last query at the last
        key.
    """

    q: Array
    k: Array
    v: Array
    mask: Array | None = None
    first: int | None = None


def excluded(mask: Array) -> Array:
    """The scores that a mask excludes: False, -inf, or at most half the least number of its type.

    >>> excluded(np.array([0.0, -np.inf, np.finfo(np.float32).min], np.float32))
    array([False,  True,  True])
    """
    if mask.dtype == np.bool_:
        return ~mask
    found: Array = mask.astype(np.float64) <= exclusion_limit(mask.dtype)
    return found


def visible_keys(bounds: Bounds, queries: int, keys: int, first: int | None = None) -> Array:
    """The keys each query sees by position, with query 0 at key `first`: bool (queries, keys).

    >>> visible_keys(Bounds.parse(causal=True), 2, 3).astype(int)
    array([[1, 1, 0],
           [1, 1, 1]])
    """
    position = np.arange(queries)[:, None] + (bounds.diagonal(queries, keys) if first is None else first)
    key = np.arange(keys)
    seen = np.ones((queries, keys), np.bool_)
    if bounds.left is not None:
        seen &= key >= position - bounds.left
    if bounds.right is not None:
        seen &= key <= position + bounds.right
    return seen


@dataclass(frozen=True)
class Scores:
    """Definition of the scores of one sequence: s = softcap(scale · q·k) - slope · distance + mask.

    Attributes
    ----------
    scale : the factor of the products.
    bounds : the keys seen by position.
    softcap : cap · tanh(s / cap) of the scaled products; 0: none.
    slopes, sinks : (heads,) or None.
    """

    scale: float
    bounds: Bounds
    softcap: float = 0.0
    slopes: Array | None = None
    sinks: Array | None = None

    def attend(self, sequence: Sequence) -> tuple[Array, Array]:
        """The results (heads, queries, value_dim) and lse (heads, queries) of one sequence.

        An excluded score has no effect, even if its key or value is NaN. If all are excluded, the
        result is 0 and lse is -inf.
        """
        heads, queries, _ = sequence.q.shape
        kv_heads, keys, value_dim = sequence.v.shape
        out, lse = np.zeros((heads, queries, value_dim)), np.full((heads, queries), -np.inf)
        seen = visible_keys(self.bounds, queries, keys, sequence.first)
        for head in range(heads):
            key_head = head // (heads // kv_heads)
            mask = None if sequence.mask is None else sequence.mask[head]
            for query in range(queries):
                allowed = seen[query] if mask is None else seen[query] & ~excluded(mask[query])
                column = np.flatnonzero(allowed)
                scores = self._scores(sequence.q[head, query], sequence.k[key_head, column])
                if self.slopes is not None:
                    first = keys - queries if sequence.first is None else sequence.first
                    position = query + first
                    scores -= float(self.slopes[head]) * abs(column - position)
                if mask is not None and mask.dtype != np.bool_:
                    scores += mask[query, column].astype(np.float64)
                values = sequence.v[key_head, column]
                if self.sinks is not None:
                    scores = np.append(scores, float(self.sinks[head]))
                    values = np.vstack([values, np.zeros((1, value_dim))])
                if scores.size:
                    largest = scores.max()
                    weights = np.zeros_like(scores) if largest == -np.inf else np.exp(scores - largest)
                    total = weights.sum()
                    if total != 0:  # NaN included
                        out[head, query] = weights @ values / total
                        lse[head, query] = largest + np.log(total)
        return out, lse

    def _scores(self, query: Array, keys: Array) -> Array:
        scores: Array = (keys @ query) * self.scale
        return self.softcap * np.tanh(scores / self.softcap) if self.softcap else scores


def attention_reference(
    q: Array,
    k: Array,
    v: Array,
    *,
    mask: Array | None = None,
    causal: bool | str = False,
    scale: float | None = None,
    window: tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    alibi_slopes: Array | None = None,
    sinks: Array | None = None,
    q_lengths: Array | None = None,
    kv_lengths: Array | None = None,
    cu_seqlens_q: Array | None = None,
    cu_seqlens_k: Array | None = None,
    block_table: Array | None = None,
    key_scales: Array | None = None,
    value_scales: Array | None = None,
    q_offset: Array | int | None = None,
) -> tuple[Array, Array]:
    """The results and lse of `tilewright.attention` in float64; layout "bhsd", every operand of full rank.

    Parameters
    ----------
    q : (batch, heads, queries, d); with `cu_seqlens_q` (1, heads, rows, d).
    k, v : (batch, kv_heads, keys, ·), with `cu_seqlens_k` (1, kv_heads, rows, ·), with `block_table`
        (pages, kv_heads, page, ·).
    mask : (batch, heads, queries, keys), or of fewer keys.
    key_scales, value_scales : as k and v without their last axis.
    others : as in `tilewright.attention`.

    Examples
    --------
    >>> q, k, v = np.ones((1, 1, 1, 2)), np.ones((1, 1, 3, 2)), np.arange(3.0).reshape(1, 1, 3, 1)
    >>> attention_reference(q, k, v)[0].item()
    1.0
    """
    wide = [np.asarray(array).astype(np.float64) for array in (q, k, v)]
    for index, scales in ((1, key_scales), (2, value_scales)):
        if scales is not None:
            wide[index] = wide[index] * np.asarray(scales, np.float64)[..., None]
    scores = Scores(
        1 / np.sqrt(q.shape[-1]) if scale is None else scale,
        Bounds.parse(causal, window),
        softcap or 0.0,
        alibi_slopes,
        sinks,
    )
    if cu_seqlens_q is None:
        batch = len(q)
        places = [(b, 0, q.shape[2] if q_lengths is None else int(q_lengths[b])) for b in range(batch)]
    else:
        places = [(0, start, stop) for start, stop in pairwise(cu_seqlens_q)]
    out = np.zeros((*q.shape[:-1], v.shape[-1]))
    lse = np.full(q.shape[:-1], -np.inf)
    keys = _keys(wide[1], wide[2], len(places), kv_lengths, cu_seqlens_k, block_table)
    for item, ((b, start, stop), (key, value)) in enumerate(zip(places, keys, strict=True)):
        part = None
        if mask is not None:
            part = _padded(mask[item, :, : stop - start, : key.shape[1]], key.shape[1])
        first = None if q_offset is None else int(np.broadcast_to(q_offset, len(places))[item])
        rows = (b, slice(None), slice(start, stop))
        out[rows], lse[rows] = scores.attend(Sequence(wide[0][rows], key, value, part, first))
    return out, lse


def _padded(mask: Array, keys: int) -> Array:
    """A mask that excludes the keys it does not cover."""
    whole = np.full((*mask.shape[:-1], keys), False if mask.dtype == np.bool_ else -np.inf, mask.dtype)
    whole[..., : mask.shape[-1]] = mask
    return whole


def _keys(
    k: Array, v: Array, batch: int, lengths: Array | None, offsets: Array | None, table: Array | None
) -> Iterator[tuple[Array, Array]]:
    """Keys and values of each sequence."""
    for item in range(batch):
        if table is not None:
            assert lengths is not None
            length, page = int(lengths[item]), k.shape[2]
            pages = table[item, : -(-length // page)]
            yield _gathered(k, pages)[:, :length], _gathered(v, pages)[:, :length]
        elif offsets is not None:
            rows = slice(int(offsets[item]), int(offsets[item + 1]))
            yield k[0, :, rows], v[0, :, rows]
        else:
            rows = slice(0, k.shape[2] if lengths is None else int(lengths[item]))
            yield k[item, :, rows], v[item, :, rows]


def _gathered(cache: Array, pages: Array) -> Array:
    """Some pages (pages, kv_heads, page, d) as one row of keys (kv_heads, keys, d)."""
    rows = cache[pages].swapaxes(0, 1)
    return rows.reshape(cache.shape[1], len(pages) * cache.shape[2], cache.shape[3])
