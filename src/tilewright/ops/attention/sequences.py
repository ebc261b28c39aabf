"""Location of the sequences of one attention: lengths, offsets of packed sequences, block tables."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.foreign import as_array, refuse
from tilewright.calls.operands import Array
from tilewright.calls.pieces import report_copy
from tilewright.calls.recording import constant, new_array
from tilewright.errors import (
    BlockOutsideCache,
    BlockTableShape,
    InvalidLengths,
    InvalidOffsets,
    InvalidOperand,
    InvalidQueryOffset,
    NotAnArray,
    OffsetsNotIncreasing,
    OffsetsPastEnd,
    shown,
)
from tilewright.ops.attention.bounds import FARTHEST, Bounds, limits_bind
from tilewright.ops.attention.problem import ITEM_FIELDS, ITEM_SIZE
from tilewright.ops.attention.table import NO_BOUND, NO_OFFSET, Sources, make_table


class SequenceSide(NamedTuple):
    """The rows of every sequence in q, or in k and v.

    Attributes
    ----------
    batch : sequences.
    most : rows of the longest one.
    rows : of each one, where they differ.
    first : of packed sequences, the first row of each; behind the last one is the end of it.
    total : of packed sequences, rows in the array.
    pages : of paged ones, the pages of each, contiguous int64 (batch, most pages).
    """

    batch: int
    most: int
    rows: Array | None = None
    first: Array | None = None
    pages: Array | None = None
    total: int = 0

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
    try:
        array = as_array(value, "").copy()
    except (InvalidOperand, NotAnArray):
        return None
    if not array.size:
        return np.zeros(array.shape, np.int64)
    return array if array.dtype.kind in "iu" else None


def _int64(checked: Array, given: Any, shape: tuple[int, ...] | None = None) -> Array:
    """Integers that are known to fit, in a new array, which repeated calls fill from what was given."""
    found = new_array(checked.shape if shape is None else shape, np.int64)
    found[...] = checked
    if isinstance(given, np.ndarray) and checked.size:
        report_copy(found, given)
    else:
        constant(found)
    return found


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
    checked = found
    if not found.ndim:
        found = np.full(batch, found)
    if batch and (found.min() < 0 or found.max() > most):
        sequence = np.flatnonzero((found < 0) | (found > most))[0]
        raise InvalidLengths(name=name, reason=f"[{sequence}] is {found[sequence]}", required=required)
    return _int64(checked, value, (batch,))


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
    found = _int64(found, value)
    rows = np.diff(found)
    return SequenceSide(len(rows), int(rows.max(initial=0)), rows, found[:-1], total=total)


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
    return SequenceSide(batch, int(rows.max(initial=0)), rows, None, _int64(found, table))


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
    """The columns `low`, `high` and `shift` of the table."""

    low: int
    high: int
    shift: int


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
    if isinstance(value, np.ndarray):
        return _int64(found, value, (batch,))
    return _int64(found, value) if found.ndim else int(found)


class SequenceTable(NamedTuple):
    """What a kernel knows of each sequence, and what follows from all of them.

    Attributes
    ----------
    items : the table, see `ITEM_FIELDS`.
    keys : the most keys of a sequence.
    bound : whether bounds exclude a key from a query.
    """

    items: Array
    keys: int
    bound: bool

    @classmethod
    def of(cls, items: Array, bounds: Bounds) -> SequenceTable:
        """Read from the table."""
        low, high, queries, keys = (
            items[:, ITEM_FIELDS.index(name)] for name in ("low", "high", "queries", "keys")
        )
        return cls(items, int(keys.max(initial=0)), bool(bounds) and limits_bind(low, high, queries, keys))


def table_of(
    bounds: Bounds,
    sides: tuple[SequenceSide, SequenceSide],
    batch: int,
    covered: int | None,
    offset: int | Array | None,
    steps: Strides,
    cache: Array,
) -> SequenceTable:
    """The table of a call.

    Parameters
    ----------
    covered : keys of each sequence that take part, the first ones, at most; None: all.
    offset : position of the first query among the keys, if the call gives it.
    steps : those of q, out and state are of rows where queries are packed, those of k, v and scales where
        keys are.
    cache : keys as stored, of four axes.
    """
    queries, keys = sides
    given = (queries.rows, keys.rows, keys.pages, offset)
    if not any(isinstance(one, np.ndarray) for one in given):
        assert offset is None or isinstance(offset, int)
        used = keys.most if covered is None else min(covered, keys.most)
        rows, count = queries.most, keys.most
        if offset is None:
            seen = Seen(*bounds.limits(rows, used, bounds.diagonal(rows, count)), count - used)
        else:
            seen = Seen(*bounds.limits(rows, used, offset), offset - (used - rows))
        bound = bool(bounds) and bool(batch) and limits_bind(seen.low, seen.high, rows, used)
        return SequenceTable(
            constant(equal_items(batch, steps, rows, used, seen)), used if batch else 0, bound
        )
    packed_q, packed_k = queries.first is not None, keys.first is not None
    sources = Sources(
        *(None if packed_q else queries.rows, queries.first),
        *(None if packed_k else keys.rows, keys.first),
        offset if isinstance(offset, np.ndarray) else None,
        keys.pages,
    )
    most_pages, page = (0, 0) if keys.pages is None else (keys.pages.shape[1], cache.shape[2])
    items = make_table(
        batch,
        sources,
        queries=queries.total or queries.most,
        keys=keys.total or (keys.most if keys.pages is None else most_pages * page),
        covered=FARTHEST if covered is None else covered,
        left=NO_BOUND if bounds.left is None else bounds.left,
        right=NO_BOUND if bounds.right is None else bounds.right,
        upper_left=bounds.upper_left,
        offset=offset if isinstance(offset, int) else NO_OFFSET,
        most_pages=most_pages,
        page=page,
        cache=len(cache),
        q_step=queries.batch == batch,
        k_step=keys.batch == batch,
        **steps._asdict(),
    )
    return SequenceTable.of(items, bounds)


class Strides(NamedTuple):
    """Elements from one sequence to the next, or from one row to the next of packed ones, in each array."""

    q: int
    k: int
    v: int
    out: int
    mask: int
    state: int
    scales: int


#: Integers of an item that no field has.
_UNUSED = (0,) * (ITEM_SIZE - len(ITEM_FIELDS))


@lru_cache(maxsize=256)
def equal_items(batch: int, steps: Strides, queries: int, keys: int, seen: Seen) -> Array:
    """Items of sequences of one length; read-only, as calls share them."""
    row = np.array((*steps, 0, queries, keys, *seen, *_UNUSED), np.int64)
    items = np.empty((batch, ITEM_SIZE), np.int64)
    items[...] = row
    if batch == 1:
        items[0, : len(steps)] = 0
    else:
        items[:, : len(steps)] *= np.arange(batch)[:, np.newaxis]
    items.flags.writeable = False
    return items
