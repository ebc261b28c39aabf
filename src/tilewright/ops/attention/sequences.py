"""Location of the sequences of one attention: lengths, offsets of packed sequences, block tables."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.foreign import as_array, refuse
from tilewright.calls.operands import Array
from tilewright.errors import (
    BlockOutsideCache,
    BlockTableShape,
    InvalidLengths,
    InvalidOffsets,
    InvalidOperand,
    InvalidQueryOffset,
    OffsetsNotIncreasing,
    OffsetsPastEnd,
    shown,
)
from tilewright.ops.attention.bounds import FARTHEST, Bounds
from tilewright.ops.attention.nest import ITEM_FIELDS, ITEM_SIZE
from tilewright.spec.arguments import contents_read

_COLUMN = {name: column for column, name in enumerate(ITEM_FIELDS)}
#: Offsets that follow the rows of the queries, and those that follow the keys.
_BY_QUERIES = [_COLUMN[name] for name in ("q", "out", "state")]
_BY_KEYS = [_COLUMN[name] for name in ("k", "v", "scales")]


class SequenceSide(NamedTuple):
    """The rows of every sequence in q, or in k and v.

    Attributes
    ----------
    batch : sequences.
    most : rows of the longest one.
    rows : of each one, where they differ.
    first : of packed sequences, the first row of each.
    pages : of paged ones, the pages of each, contiguous int64 (batch, most pages).
    """

    batch: int
    most: int
    rows: Array | None = None
    first: Array | None = None
    pages: Array | None = None

    @property
    def counts(self) -> int | Array:
        """Rows of each sequence: a number if all have as many."""
        return self.most if self.rows is None else self.rows

    def first_rows(self, count: int) -> SequenceSide:
        """The first rows of each sequence, at most so many."""
        if count >= self.most:
            return self
        rows = None if self.rows is None else np.minimum(self.rows, count)
        return self._replace(most=count, rows=rows)


def _integers(value: Any) -> Array | None:
    """A private copy of integers, in their own type; None for anything else.

    It is checked as it is and converted to int64 afterwards. The caller's array may be overwritten by another
    thread between the check and the kernel, and uint64 has no room in int64.
    """
    refuse(value, "lengths, offsets or block_table")
    contents_read(value)
    try:
        array = as_array(value, "").copy()
    except InvalidOperand:
        return None
    if not array.size:
        return np.zeros(array.shape, np.int64)
    return array if array.dtype.kind in "iu" else None


def _int64(checked: Array) -> Array:
    """Integers that are known to fit."""
    return checked.astype(np.int64, copy=False)


def lengths(value: Any, name: str, batch: int, most: int) -> Array:
    """Rows of each sequence, int64 (batch,).

    Raises
    ------
    InvalidLengths
    """
    found, required = _integers(value), f"integers ({batch},) from 0 to {most}, one for each sequence"
    if found is None:
        raise InvalidLengths(name=name, reason=f" is {shown(value)}", required=required)
    if found.shape not in ((), (batch,)):
        raise InvalidLengths(name=name, reason=f" has shape {found.shape}", required=required)
    if not found.ndim:
        found = np.full(batch, found)
    if batch and (found.min() < 0 or found.max() > most):
        sequence = np.flatnonzero((found < 0) | (found > most))[0]
        raise InvalidLengths(name=name, reason=f"[{sequence}] is {found[sequence]}", required=required)
    return _int64(found)


def packed_side(value: Any, name: str, operand: str, total: int) -> SequenceSide:
    """Sequences behind one another, by the offset where each begins.

    Raises
    ------
    InvalidOffsets, OffsetsNotIncreasing, OffsetsPastEnd
    """
    found = _integers(value)
    if found is None or found.ndim != 1:
        raise InvalidOffsets(name=name, reason=f"is {shown(value)}")
    if not found.size or found[0] != 0:
        raise InvalidOffsets(name=name, reason=f"begins with {found[:1].tolist()}")
    # Compared, not subtracted: differences of hostile offsets wrap.
    for sequence in np.flatnonzero(found[1:] < found[:-1])[:1]:
        raise OffsetsNotIncreasing(
            name=name, sequence=sequence, found=found[sequence], following=found[sequence + 1]
        )
    if found[-1] > total:
        raise OffsetsPastEnd(name=name, found=found[-1], operand=operand, required=total)
    found = _int64(found)
    rows = np.diff(found)
    return SequenceSide(len(rows), int(rows.max(initial=0)), rows, found[:-1])


def block_table_pages(table: Any) -> Array:
    """A private copy of a block table, in its own type of integers.

    Raises
    ------
    BlockTableShape
    """
    found = _integers(table)
    if found is None or found.ndim != 2:
        reason = f"is {shown(table)}" if found is None else f"has shape {found.shape}"
        raise BlockTableShape(reason=reason, required="integers (batch, most pages of a sequence)")
    return found


def paged_side(table: Any, keys: Any, cache: Array) -> SequenceSide:
    """Sequences of a cache (pages, kv_heads, page, d), by a table of the pages of each.

    Raises
    ------
    BlockTableShape, InvalidLengths, BlockOutsideCache
    """
    found, page = block_table_pages(table), cache.shape[2]
    batch, most = found.shape
    rows = lengths(keys, "kv_lengths", batch, most * page)
    if found.size and (found.min() < 0 or found.max() >= len(cache)):
        used = np.arange(most) * page < rows[:, np.newaxis]
        for sequence, position in np.argwhere(used & ((found < 0) | (found >= len(cache))))[:1]:
            raise BlockOutsideCache(
                sequence=sequence,
                position=position,
                found=found[sequence, position],
                most=len(cache) - 1,
            )
        # What is behind the last key is not looked at; it may be anything, so kernels get a page that exists.
        found = np.where(used, found, 0)
    return SequenceSide(batch, int(rows.max(initial=0)), rows, None, _int64(found))


def rows_of_pages(cache: Array, pages: Array) -> Array:
    """Pages (..., kv_heads, page, d) of a cache behind one another: (..., kv_heads, pages · page, d).

    >>> rows_of_pages(np.zeros((9, 2, 4, 3)), np.array([5, 0, 5])).shape
    (2, 12, 3)
    """
    kv_heads, page, columns = cache.shape[1:]
    shape = (*pages.shape[:-1], kv_heads, pages.shape[-1] * page, columns)
    if not len(cache):  # no page is read
        return np.zeros(shape, cache.dtype)
    return np.moveaxis(cache[pages], -4, -3).reshape(shape)


class Seen(NamedTuple):
    """The columns `low`, `high` and `shift` of the table: numbers, or one for each sequence."""

    low: Any
    high: Any
    shift: Any


def query_offset(value: Any, batch: int) -> int | Array:
    """Position of the first query among the keys: a number, or int64 (batch,).

    Raises
    ------
    InvalidQueryOffset
    """
    found, required = _integers(value), f"an integer, or integers ({batch},), one for each sequence"
    if found is None:
        raise InvalidQueryOffset(reason=f" is {shown(value)}", required=required)
    if found.shape not in ((), (batch,)):
        raise InvalidQueryOffset(reason=f" has shape {found.shape}", required=required)
    for place in np.argwhere((found < -FARTHEST) | (found > FARTHEST))[:1]:
        required = f"from {-FARTHEST} to {FARTHEST}"
        raise InvalidQueryOffset(reason=f"{place.tolist() or ''} is {found[tuple(place)]}", required=required)
    return _int64(found) if found.ndim else int(found)


def seen_keys(
    bounds: Bounds, queries: SequenceSide, keys: SequenceSide, covered: int, offset: int | Array | None
) -> Seen:
    """The keys that each sequence sees, by position.

    Parameters
    ----------
    covered : keys of each sequence that take part, the first ones, at most.
    offset : position of the first query among the keys, if the call gives it.
    """
    rows, count = queries.counts, keys.counts
    if offset is None and covered >= keys.most:
        return Seen(*bounds.limits(rows, count), 0)
    used = keys.first_rows(covered).counts
    first = bounds.diagonal(rows, count) if offset is None else offset
    return Seen(*bounds.limits(rows, used, first), count - used if offset is None else offset - (used - rows))


class Strides(NamedTuple):
    """Elements from one sequence to the next, or from one row to the next of packed ones, in each array."""

    q: int
    k: int
    v: int
    out: int
    mask: int
    state: int
    scales: int


@lru_cache(maxsize=256)
def equal_items(batch: int, steps: Strides, queries: int, keys: int, seen: Seen) -> Array:
    """Items of sequences of one length; read-only, as calls share them."""
    items = np.zeros((batch, ITEM_SIZE), np.int64)
    items[:, : len(steps)] = np.arange(batch)[:, np.newaxis] * np.array(steps, np.int64)
    items[:, len(steps) + 1 : len(ITEM_FIELDS)] = (queries, keys, *seen)
    items.flags.writeable = False
    return items


def make_items(queries: SequenceSide, keys: SequenceSide, batch: int, steps: Strides, seen: Seen) -> Array:
    """The table of a call, see `ITEM_FIELDS`.

    Parameters
    ----------
    steps : those of q, out and state are of rows where `queries` are packed, those of k, v and scales where
        `keys` are.
    """
    if queries.rows is None and keys.rows is None and not np.ndim(seen.shift):
        return equal_items(batch, steps, queries.most, keys.most, Seen(*map(int, seen)))
    number = np.arange(batch)
    starts = [number if side.first is None else side.first for side in (queries, keys)]
    counts = [queries.counts, keys.counts]
    items = np.zeros((batch, ITEM_SIZE), np.int64)
    items[:, _BY_QUERIES] = np.multiply.outer(starts[0], (steps.q, steps.out, steps.state))
    items[:, _BY_KEYS] = np.multiply.outer(starts[1], (steps.k, steps.v, steps.scales))
    items[:, _COLUMN["mask"]] = number * steps.mask
    if keys.pages is not None:
        items[:, _COLUMN["pages"]] = number * keys.pages.shape[1]
    for name, value in zip(("queries", "keys", *seen._fields), (*counts, *seen), strict=True):
        items[:, _COLUMN[name]] = value
    return items
