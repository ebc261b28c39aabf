"""One operand of an einsum by itself: diagonals, axes of length 1, sums over labels that no other needs."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tilewright.runtime.contract import Axes, Fused
from tilewright.runtime.matmul_front import matmul
from tilewright.runtime.operands import Array

#: Ones that are kept for sums: 16 Ki elements, of which even the largest type's fit in a second cache.
_MOST_ONES = 1 << 14

#: Rows from which on ones that are not kept cost little beside the array: a fourth of its bytes.
_ROWS_FOR_ONES = 4

_COLLAPSES = 1024


class Collapse(NamedTuple):
    """What becomes of an operand before it meets another.

    Attributes
    ----------
    diagonals : pairs of axes, each of which becomes one behind all others, in turn.
    squeezed : axes of length 1, after that.
    rows : the view that is summed along its last axis, or first where `turned`; None where no view is.
    turned : whether the summed axes are the slow ones.
    summed : axes that are summed, where no view makes them one.
    shape : of what is kept.
    axes : the order of the axes that are kept; None where it is theirs.
    """

    diagonals: tuple[tuple[int, int], ...]
    squeezed: tuple[int, ...]
    rows: Fused | None
    turned: bool
    summed: tuple[int, ...]
    shape: tuple[int, ...]
    axes: tuple[int, ...] | None

    @property
    def sums(self) -> bool:
        """Whether the result is an array of its own."""
        return self.rows is not None or bool(self.summed)

    def view(self, array: Array) -> Array:
        """The collapsed array where nothing is summed: a view that can be written where the array can."""
        array = self._short(array)
        return array if self.axes is None else array.transpose(self.axes)

    def _short(self, array: Array) -> Array:
        """The array with a diagonal in place of axes of one label, and without those of length 1."""
        if self.diagonals:
            writeable = array.flags.writeable
            for first, second in self.diagonals:
                array = array.diagonal(0, first, second)
            array.setflags(write=writeable)  # NumPy's diagonals are read-only, those of its einsum are not
        return array.squeeze(self.squeezed) if self.squeezed else array

    def compute(self, array: Array, dtype: np.dtype[Any] | None) -> Array:
        """The collapsed array, sums in a type of their own."""
        array = self._short(array)
        if self.rows is not None:
            array = _sum(self.rows.of(array), dtype, turned=self.turned)
            if len(self.shape) > 1:
                array = array.reshape(self.shape)
        elif self.summed:
            array = _reduce(array, self.summed, dtype)
        return array if self.axes is None else array.transpose(self.axes)


@lru_cache(maxsize=_COLLAPSES)
def plan_collapse(labels: str, shape: tuple[int, ...], strides: tuple[int, ...], wanted: str) -> Collapse:
    """How an operand with these labels becomes one with those of `wanted`.

    Labels of axes of length 1 are in `wanted` where they are kept. An axis of length 1 whose label isn't
    is dropped, others are summed.

    Examples
    --------
    >>> found = plan_collapse("iji", (3, 1, 3), (24, 24, 8), "i")
    >>> found.diagonals, found.squeezed, found.sums
    (((0, 2),), (0,), False)
    """
    dims = list(zip(labels, shape, strides, strict=True))
    diagonals = []
    while (pair := _repeated("".join(label for label, _, _ in dims))) is not None:
        first, second = pair
        label, size, _ = dims[first]
        merged = (label, size, dims[first][2] + dims[second][2])
        dims = [dim for axis, dim in enumerate(dims) if axis not in pair] + [merged]
        diagonals.append(pair)
    squeezed = tuple(axis for axis, (label, size, _) in enumerate(dims) if size == 1 and label not in wanted)
    dims = [dim for axis, dim in enumerate(dims) if axis not in squeezed]
    own = "".join(label for label, _, _ in dims)
    axes = Axes.of(own, tuple(size for _, size, _ in dims), tuple(step for _, _, step in dims))
    kept = "".join(label for label in own if label in wanted)
    summed = axes.outermost_first("".join(label for label in own if label not in wanted))
    rows, turned = None, False
    reduced: tuple[int, ...] = ()
    if summed:
        rows, turned, kept = _rows(own, axes, kept, summed)
        if rows is None:
            reduced = tuple(own.index(label) for label in summed)
    return Collapse(
        tuple(diagonals),
        squeezed,
        rows,
        turned,
        reduced,
        tuple(axes.sizes[label] for label in kept),
        None if kept == wanted else tuple(kept.index(label) for label in wanted),
    )


def _repeated(labels: str) -> tuple[int, int] | None:
    """The first two axes of one label."""
    for axis, label in enumerate(labels):
        again = labels.find(label, axis + 1)
        if again >= 0:
            return axis, again
    return None


def _rows(own: str, axes: Axes, kept: str, summed: str) -> tuple[Fused | None, bool, str]:
    """The matrix whose rows are summed, whether it is turned, and the order of what is kept."""
    order = axes.outermost_first(kept)
    if not (axes.fuse(order) and axes.fuse(summed)):
        return None, False, kept
    rows, columns = (int(np.prod([axes.sizes[label] for label in group])) for group in (order, summed))
    if columns > _MOST_ONES and rows < _ROWS_FOR_ONES and kept:
        return None, False, kept
    turned = bool(kept) and abs(axes.steps[order[-1]]) < abs(axes.steps[summed[-1]])
    groups = ((summed, columns), (order, rows)) if turned else ((order, rows), (summed, columns))
    shape = tuple(size for group, size in groups if group)
    return Fused.make(own, "".join(group for group, _ in groups), axes.sizes, shape), turned, order


@lru_cache(maxsize=64)
def _kept_ones(dtype: np.dtype[Any]) -> Array:
    return np.ones(_MOST_ONES, dtype)


def _ones(count: int, dtype: np.dtype[Any]) -> Array:
    return _kept_ones(dtype)[:count] if count <= _MOST_ONES else np.ones(count, dtype)


def _sum(array: Array, dtype: np.dtype[Any] | None, *, turned: bool) -> Array:
    """Sums along the last axis of one or two (or the first, where turned): a product with ones."""
    if array.dtype.kind not in "fiuV?":  # a complex infinity times one is not itself
        return _reduce(array, (0,) if turned else (array.ndim - 1,), dtype)
    own = array.dtype.newbyteorder("=")
    count = array.shape[0] if turned else array.shape[-1]
    if array.ndim == 1 and count > _MOST_ONES:
        return _long_sum(array, dtype)
    ones = _ones(count, own)
    pair = (ones, array) if turned else (array, ones)
    return matmul(*pair) if dtype is None else matmul(*pair, dtype=dtype)


def _long_sum(array: Array, dtype: np.dtype[Any] | None) -> Array:
    """The sum of a long vector by parts, the last of which may be shorter."""
    parts, rest = divmod(array.size, _MOST_ONES)
    ends = [0, parts * _MOST_ONES, array.size]
    whole, last = (array[begin:end] for begin, end in pairwise(ends))
    sums = _sum(whole.reshape(parts, _MOST_ONES), dtype, turned=False)
    if rest:
        sums = np.append(sums, _sum(last, dtype, turned=False))
    return _sum(sums, dtype, turned=False)


def _reduce(array: Array, axes: tuple[int, ...], dtype: np.dtype[Any] | None) -> Array:
    """Sums along any axes, by NumPy: in the type of the result, of 16-bit floats in 32 bits."""
    found = array.dtype.newbyteorder("=") if dtype is None else dtype
    if found == np.bool_:
        result: Array = np.logical_or.reduce(array, axis=axes)
        return result
    acc = np.dtype(np.float32) if found.kind in "fV" and found.itemsize == 2 else found
    if found.kind == "V" and found.itemsize == 1:
        acc = np.dtype(np.int32)
    return np.asarray(np.add.reduce(array, axis=axes, dtype=acc)).astype(found, copy=False)
