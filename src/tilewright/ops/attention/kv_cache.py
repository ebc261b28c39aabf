"""Caches of keys and values that grow: new rows are written behind those of each sequence, in place."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.foreign import as_array, refuse
from tilewright.calls.operands import Array
from tilewright.calls.promotion import same_kind
from tilewright.errors import (
    AppendDtype,
    AppendShape,
    AttentionAxes,
    BlockTableShape,
    CacheFull,
    CacheNotArray,
    CacheReadOnly,
    KeysMismatch,
)
from tilewright.ops.attention.operands import AttentionLayout, heads_first
from tilewright.ops.attention.sequences import block_table_pages, lengths, paged_side
from tilewright.spec.arguments import parse_choice

#: Most axes of a cache: more of them are not one axis of sequences without a copy.
MOST_AXES = 4


class _Pair(NamedTuple):
    """A cache and what is appended to it, as views of four axes (batch or pages, heads, rows, columns)."""

    cache: Array
    new: Array


def _pair(cache: Any, new: Any, name: str, layout: AttentionLayout, *, paged: bool) -> _Pair:
    """Checks of one cache and its new rows that look at no length."""
    refuse(cache, f"{name}_cache")
    if not isinstance(cache, np.ndarray):
        raise CacheNotArray(name=f"{name}_cache", found=type(cache).__name__)
    if not cache.flags.writeable:
        raise CacheReadOnly(name=f"{name}_cache")
    rows, least = as_array(new, name), 4 if paged else 2
    if not least <= cache.ndim <= MOST_AXES:
        required = str(MOST_AXES) if paged else f"{least} to {MOST_AXES}"
        axes = "(pages, ..., d)" if paged else "(batch, ..., d)"
        raise AttentionAxes(
            name=f"{name}_cache",
            found=cache.shape,
            required=required,
            layout=f"{axes} in the order of the layout",
        )
    if rows.ndim != cache.ndim:
        required = f"as {name}_cache {cache.ndim}"
        raise AttentionAxes(name=name, found=rows.shape, required=required, layout=f"layout {layout.value!r}")
    found = _Pair(heads_first(cache, layout), heads_first(rows, layout))
    same = found.cache.shape[1::2] == found.new.shape[1::2]
    if not same or (not paged and len(found.cache) != len(found.new)):
        raise AppendShape(name=name, found=rows.shape, cache=f"{name}_cache", required=cache.shape)
    if not same_kind(rows.dtype, cache.dtype):
        raise AppendDtype(name=name, found=rows.dtype, required=cache.dtype)
    return found


def append_kv(
    caches: tuple[Any, Any],
    new: tuple[Any, Any],
    kv_lengths: Any,
    new_lengths: Any,
    block_table: Any,
    layout: Any,
) -> Array:
    """Implementation of `tilewright.append_kv`, which documents it."""
    order, paged = parse_choice(AttentionLayout, layout, "layout"), block_table is not None
    k, v = (
        _pair(cache, rows, name, order, paged=paged)
        for cache, rows, name in zip(caches, new, "kv", strict=True)
    )
    if k.new.shape[:3] != v.new.shape[:3]:
        raise KeysMismatch(k=np.shape(new[0]), v=np.shape(new[1]))
    if k.cache.shape[:3] != v.cache.shape[:3]:
        raise KeysMismatch(k=caches[0].shape, v=caches[1].shape)
    batch, most = len(k.new), k.new.shape[2]
    capacity, pages = k.cache.shape[2], None
    if paged:
        pages = block_table_pages(block_table)
        if len(pages) != batch:
            required = f"integers ({batch}, most pages of a sequence)"
            raise BlockTableShape(reason=f"has shape {pages.shape}", required=required)
        capacity *= pages.shape[1]
    before = lengths(kv_lengths, "kv_lengths", batch, capacity)
    count = np.full(batch, most) if new_lengths is None else lengths(new_lengths, "new_lengths", batch, most)
    after = before + count
    for sequence in np.flatnonzero(after > capacity)[:1]:
        raise CacheFull(sequence=sequence, found=before[sequence], count=count[sequence], capacity=capacity)
    if pages is not None:
        pages = paged_side(pages, after, k.cache).pages
    if any(np.may_share_memory(cache, rows) for cache in (k.cache, v.cache) for rows in (k.new, v.new)):
        k, v = (pair._replace(new=pair.new.copy()) for pair in (k, v))
    with np.errstate(
        all="ignore"
    ):  # nothing raises between the two: numbers too large for a type are infinite
        for pair in (k, v):
            _write(pair, before, count, pages)
    return after


def _write(pair: _Pair, before: Array, count: Array, pages: Array | None) -> None:
    """New rows to their places, which are known to exist."""
    cache, new = pair
    if not count.any():
        return
    if pages is None and (before == before[0]).all() and (count == count[0]).all():
        first, rows = int(before[0]), int(count[0])
        cache[:, :, first : first + rows] = new[:, :, :rows]
        return
    sequence = np.repeat(np.arange(len(new)), count)
    row = np.arange(len(sequence)) - np.repeat(np.cumsum(count) - count, count)
    place, matrix = before[sequence] + row, sequence
    if pages is not None:
        matrix, place = pages[sequence, place // cache.shape[2]], place % cache.shape[2]
    cache.swapaxes(1, 2)[matrix, place] = new.swapaxes(1, 2)[sequence, row]
