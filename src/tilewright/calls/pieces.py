"""NumPy operations on large arrays in pieces, so that Python runs signal handlers in between.

One NumPy call on an array of gigabytes takes seconds, during which Ctrl-C has no effect. Arrays of up to
`PIECE` elements are one piece and cost one comparison more than NumPy's own functions.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tilewright.calls.operands import Array, data_address
from tilewright.calls.recording import new_array, new_like
from tilewright.llvm.builtin import address_of
from tilewright.llvm.jit import NativeFunction
from tilewright.recorder import current

#: Elements of a piece: 1 to 20 ms, so that the overhead of the Python loop is negligible.
PIECE = 1 << 20

#: Pieces that end inside of an axis are multiples of this: whole cache lines.
_UNIT = 64

#: An index of every axis: slices, so that a piece has the axes of its array.
Index = tuple[slice, ...]


def pieces(shape: tuple[int, ...], strides: Sequence[int], most: int = PIECE) -> Iterator[Index]:
    """Indices of parts of an array with at most this many elements each, in memory order.

    >>> list(pieces((4, 3), (12, 4), 6))
    [(slice(0, 2, None), slice(None, None, None)), (slice(2, 4, None), slice(None, None, None))]
    """
    order = sorted(range(len(shape)), key=lambda axis: -abs(strides[axis]))
    yield from _pieces(shape, order, [slice(None)] * len(shape), most)


def _pieces(shape: tuple[int, ...], order: Sequence[int], index: list[slice], most: int) -> Iterator[Index]:
    inner = math.prod(shape[axis] for axis in order[1:])
    if not order or inner * shape[order[0]] <= most:
        yield tuple(index)
        return
    axis = order[0]
    step = max(1, most // inner)
    if step > _UNIT:
        step -= step % _UNIT
    for first in range(0, shape[axis], step):
        index[axis] = slice(first, min(first + step, shape[axis]))
        if inner > most:
            yield from _pieces(shape, order[1:], index, most)
        else:
            yield tuple(index)
    index[axis] = slice(None)


def copy_to(target: Array, source: Array, casting: Any = "same_kind", where: Any = True) -> None:
    """`numpy.copyto` for arrays that are disjoint or identical in memory."""
    report_copy(target, source, where)
    if target.size <= PIECE:
        np.copyto(target, source, casting=casting, where=where)
        return
    if not np.can_cast(source.dtype, target.dtype, casting):
        np.copyto(target[:0], source[:0], casting=casting)  # raises NumPy's error before anything changes
    values = np.broadcast_to(source, target.shape)
    chosen = where if where is True else np.broadcast_to(where, target.shape)
    for part in pieces(target.shape, target.strides):
        mask = True if chosen is True else chosen[part]
        np.copyto(target[part], values[part], casting=casting, where=mask)


def zeros(shape: tuple[int, ...], dtype: Any) -> Array:
    """`numpy.zeros`, known to a recording."""
    recorder = current.recorder
    if recorder is None:
        return np.zeros(shape, dtype)
    found = new_array(shape, dtype)
    if found.size > PIECE:
        recorder.refuse("zeros in a large array")
    recorder.team(None, found.size)  # outside of the GIL where it takes long
    _fill(data_address(found), 0, found.nbytes)
    return found


#: ``memset``: zeros of every element type are bytes of 0.
_fill = NativeFunction(
    None,
    address_of(ctypes.memset),
    (ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64),
    ctypes.c_void_p,
)


def report_copy(target: Array, source: Array, where: Any = True, *, quiet: bool = False) -> None:
    """Tells a recording of a copy that NumPy makes."""
    recorder = current.recorder
    if recorder is None:
        return
    if target.size > PIECE:
        recorder.refuse("a copy of a large array")
    elif where is not True:
        recorder.numpy(np.copyto, (target, source, "unsafe", where), quiet=quiet)
    else:
        whole = source if source.shape == target.shape else np.broadcast_to(source, target.shape)
        recorder.numpy(None, (target, whole), quiet=quiet)


def as_type(array: Array, dtype: Any) -> Array:
    """``array.astype(dtype, copy=False)``."""
    return array if array.dtype == dtype else copied(array, dtype)


def copied(array: Array, dtype: Any = None) -> Array:
    """``array.astype(dtype)``: a copy that keeps the axis order in memory."""
    if array.size <= PIECE and current.recorder is None:
        return array.astype(array.dtype if dtype is None else dtype, subok=False)
    found: Array = new_like(array, dtype)
    copy_to(found, array, "unsafe")
    return found


def contiguous(array: Array, dtype: Any = None) -> Array:
    """`numpy.ascontiguousarray`."""
    as_it_is = array.ndim > 0 and array.flags.c_contiguous and dtype in (None, array.dtype)
    if as_it_is or (array.size <= PIECE and current.recorder is None):
        return np.ascontiguousarray(array, dtype)
    found = new_array(array.shape, array.dtype if dtype is None else dtype)
    copy_to(found, array, "unsafe")
    return found


def all_finite(array: Array) -> bool:
    """Return whether all elements are finite."""
    if array.size <= PIECE:
        return bool(np.isfinite(array).all())
    return all(np.isfinite(array[part]).all() for part in pieces(array.shape, array.strides))
