"""Caches of keys and values that grow: new rows are written behind those of each sequence, in place."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.foreign import as_array, refuse
from tilewright.calls.operands import Array
from tilewright.calls.pieces import copy_to, pieces, report_copy
from tilewright.calls.promotion import kind_of, same_kind
from tilewright.calls.recording import constant, new_array, not_repeatable
from tilewright.errors import (
    AppendDtype,
    AppendScales,
    AppendShape,
    AttentionAxes,
    BlockTableShape,
    CacheFull,
    CacheNotArray,
    CacheReadOnly,
    InvalidOperand,
    KeysMismatch,
    NotAnArray,
    UnsupportedDtype,
)
from tilewright.ops.attention.append_code import Integers, RowDestinations, check_append
from tilewright.ops.attention.append_moves import RowMove, conversion_of, make_moves
from tilewright.ops.attention.operands import AttentionLayout, heads_first
from tilewright.ops.attention.sequences import block_table_pages, lengths, paged_side
from tilewright.ops.quantized.rows import quantised_rows, type_to_quantise
from tilewright.spec.arguments import parse_choice

#: Most axes of a cache: more of them are not one axis of sequences without a copy.
MOST_AXES = 4
#: The integers that machine code reads as they are.
_READ = (np.dtype(np.int64), np.dtype(np.int32))
#: Kinds of numbers, as `kind_of` names them.
_NUMBERS = "buifc"


class AppendRequest(NamedTuple):
    """The arguments of `tilewright.append_kv`, which documents them."""

    caches: tuple[Any, Any]
    new: tuple[Any, Any]
    kv_lengths: Any
    new_lengths: Any = None
    block_table: Any = None
    scales: tuple[Any, Any] = (None, None)
    layout: Any = "bhsd"


class _Side(NamedTuple):
    """A cache and what is appended to it, as views of four axes (batch or pages, heads, rows, columns).

    Attributes
    ----------
    rows : the new rows as they were given.
    scales : a cache of the scales of rows, (batch or pages, heads, rows, 1); None where rows have none.
    """

    cache: Array
    new: Array
    rows: Array
    layout: AttentionLayout
    scales: Array | None

    def overlaps(self, other: _Side) -> bool:
        """Whether the new rows of another side are in this one's memory."""
        written = (self.cache, self.scales)
        return any(one is not None and np.may_share_memory(one, other.new) for one in written)

    def moves(self, *, overlaps: bool) -> list[RowMove]:
        """What is copied to where: rows in the type of the cache, and scales; a copy if they overlap."""
        if self.scales is not None:
            dtype, shape = type_to_quantise(self.rows.dtype), self.rows.shape
            assert dtype is not None
            found = quantised_rows(_floats(self.rows, dtype.numpy).reshape(-1, shape[-1]), dtype)
            parts = found.q.reshape(shape), found.scales.reshape(*shape[:-1], 1)
            q, scales = (heads_first(part, self.layout) for part in parts)
            return [RowMove(q, self.cache), RowMove(scales, self.scales)]
        same = self.new.dtype == self.cache.dtype
        convert = None if same else conversion_of(self.new.dtype, self.cache.dtype)
        if overlaps or not (same or convert):
            return [RowMove(_converted(self.new, self.cache.dtype), self.cache)]
        return [RowMove(self.new, self.cache, convert)]


class Append(NamedTuple):
    """A validated call of `tilewright.append_kv`.

    Attributes
    ----------
    moves : those of keys, then those of values: of rows, and of scales.
    """

    places: RowDestinations
    moves: tuple[list[RowMove], list[RowMove]]

    def run(self) -> Array:
        """The new lengths, after the rows have been written."""
        for pair in zip_longest(*self.moves):
            make_moves(self.places, *(move for move in pair if move is not None))
        return self.places.after


# --- caches and rows ------------------------------------------------------------------------------


def _converted(array: Array, dtype: np.dtype[Any]) -> Array:
    """A copy in another type, in which numbers that are too large for it are infinite."""
    found = new_array(array.shape, dtype)
    report_copy(found, array, quiet=True)
    with np.errstate(all="ignore"):
        for part in pieces(found.shape, found.strides):
            found[part] = array[part]
    return found


def _floats(array: Array, dtype: np.dtype[Any]) -> Array:
    """A row-major array in another type."""
    return array if array.dtype == dtype and array.flags.c_contiguous else _converted(array, dtype)


def _writable(array: Any, name: str) -> Array:
    """An array that is written in place.

    Raises
    ------
    CacheNotArray, CacheReadOnly
    """
    refuse(array, name)
    if not isinstance(array, np.ndarray):
        raise CacheNotArray(name=name, found=type(array).__name__)
    if not array.flags.writeable:
        raise CacheReadOnly(name=name)
    return array


def _side(request: AppendRequest, place: int, layout: AttentionLayout) -> _Side:
    """Checks of one cache and its new rows that look at no length."""
    name, paged = "kv"[place], request.block_table is not None
    cache, least = _writable(request.caches[place], f"{name}_cache"), 4 if paged else 2
    rows = as_array(request.new[place], name)
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
    to, new = heads_first(cache, layout), heads_first(rows, layout)
    if to.shape[1::2] != new.shape[1::2] or (not paged and len(to) != len(new)):
        raise AppendShape(name=name, found=rows.shape, cache=f"{name}_cache", required=cache.shape)
    scales = request.scales[place]
    if scales is not None:
        scales = _scales(scales, cache, rows, name, layout)
    elif kind_of(cache.dtype) not in _NUMBERS:
        raise UnsupportedDtype(dtype=f"{name}_cache of {cache.dtype}", supported="types of numbers")
    elif not same_kind(rows.dtype, cache.dtype):
        raise AppendDtype(name=name, found=rows.dtype, required=cache.dtype)
    return _Side(to, new, rows, layout, scales)


def _scales(value: Any, cache: Array, rows: Array, name: str, layout: AttentionLayout) -> Array:
    """A cache of scales as a view (batch or pages, heads, rows, 1).

    Raises
    ------
    CacheNotArray, CacheReadOnly, AppendScales
    """
    label = {"k": "key_scales", "v": "value_scales"}[name]
    scales = _writable(value, label)
    reason = ""
    if scales.dtype != np.float32 or scales.shape != cache.shape[:-1]:
        reason = f"is {scales.dtype} {scales.shape}, must be float32 {cache.shape[:-1]}"
    elif cache.dtype != np.int8:
        reason = f"needs a cache of int8, {name}_cache is {cache.dtype}"
    elif kind_of(rows.dtype) != "f":
        reason = f"needs rows to quantise, {name} is {rows.dtype}"
    if reason:
        raise AppendScales(name=label, reason=reason)
    return heads_first(scales[..., np.newaxis], layout)


# --- lengths and pages ----------------------------------------------------------------------------


def _integers(value: Any) -> Array | None:
    """Integers that machine code reads in place, or a copy as int64; None for anything else."""
    refuse(value, "lengths or block_table")
    try:
        array = as_array(value, "")
    except (InvalidOperand, NotAnArray):
        return None
    if not array.size:
        return constant(np.zeros(array.shape, np.int64))
    if array.dtype.kind not in "iu":
        return None
    if array.dtype in _READ and array.flags.aligned:
        return array
    found = new_array(array.shape, np.int64)
    copy_to(found, array, "unsafe")  # those of uint64 that do not fit become negative
    return found


def _lengths(value: Any, name: str, batch: int, most: int) -> Integers:
    """Lengths of sequences, whose contents are not checked yet.

    Raises
    ------
    InvalidLengths
    """
    found = _integers(value)
    if found is None or found.shape not in ((), (batch,)):
        lengths(value, name, batch, most)
    assert found is not None, "lengths of no integers are refused"
    return Integers(found, found.strides or (0,))


def _table(value: Any, batch: int) -> Integers:
    """The pages of sequences, whose contents are not checked yet.

    Raises
    ------
    BlockTableShape
    """
    found = _integers(value)
    if found is None or found.ndim != 2:
        block_table_pages(value)
    assert found is not None, "a table of no integers is refused"
    if len(found) != batch:
        required = f"integers ({batch}, most pages of a sequence)"
        raise BlockTableShape(reason=f"has shape {found.shape}", required=required)
    return Integers(found, found.strides)


class _Contents(NamedTuple):
    """Lengths, new lengths and pages of a call."""

    before: Integers
    added: Integers
    table: Integers


def _checked_contents(request: AppendRequest, k: _Side, capacity: int) -> _Contents:
    """Private copies of lengths and pages that machine code has refused, checked by Python for its errors.

    If they are valid now, another thread has changed them meanwhile.

    Raises
    ------
    InvalidLengths, CacheFull, BlockOutsideCache
    """
    not_repeatable("lengths that change while they are read")
    batch, most = len(k.new), k.new.shape[2]
    before = lengths(request.kv_lengths, "kv_lengths", batch, capacity)
    count = np.full(batch, most)
    if request.new_lengths is not None:
        count = lengths(request.new_lengths, "new_lengths", batch, most)
    after = before + count
    for sequence in np.flatnonzero(after > capacity)[:1]:
        raise CacheFull(sequence=sequence, found=before[sequence], count=count[sequence], capacity=capacity)
    pages = None
    if request.block_table is not None:
        pages = paged_side(request.block_table, after, k.cache).pages
    return _Contents(
        *(Integers() if one is None else Integers(one, one.strides) for one in (before, count, pages))
    )


# --- the whole ------------------------------------------------------------------------------------


def prepare_append(request: AppendRequest, out: Array | None = None) -> Append:
    """Validate a call, without writing anything but temporary arrays and `out`.

    Parameters
    ----------
    out : receives the new lengths: contiguous int64 (batch,), apart from all other arrays in memory.

    Raises
    ------
    As `tilewright.append_kv`.
    """
    layout = parse_choice(AttentionLayout, request.layout, "layout")
    k, v = (_side(request, place, layout) for place in range(2))
    if k.new.shape[:3] != v.new.shape[:3]:
        raise KeysMismatch(k=k.rows.shape, v=v.rows.shape)
    if k.cache.shape[:3] != v.cache.shape[:3]:
        raise KeysMismatch(k=request.caches[0].shape, v=request.caches[1].shape)
    batch, most = len(k.new), k.new.shape[2]
    capacity, pages, table = k.cache.shape[2], (len(k.cache), k.cache.shape[2]), Integers()
    if request.block_table is not None:
        table = _table(request.block_table, batch)
        assert table.array is not None
        capacity *= table.array.shape[1]
    contents = _Contents(_lengths(request.kv_lengths, "kv_lengths", batch, capacity), Integers(), table)
    if request.new_lengths is not None:
        contents = contents._replace(added=_lengths(request.new_lengths, "new_lengths", batch, most))
    after = new_array((batch,), np.int64) if out is None else out
    places = check_append(capacity, most, *contents, pages, after)
    if places is None:
        places = check_append(capacity, most, *_checked_contents(request, k, capacity), pages, after)
        assert places is not None, "private copies that Python has checked are valid"
    overlaps = any(one.overlaps(other) for one in (k, v) for other in (k, v))
    return Append(places, (k.moves(overlaps=overlaps), v.moves(overlaps=overlaps)))
