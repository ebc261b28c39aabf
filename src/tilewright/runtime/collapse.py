"""One operand of an einsum by itself: diagonals, axes of length 1, sums over labels that no other needs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tilewright.runtime.contract import Fused
from tilewright.runtime.labels import Axes
from tilewright.runtime.matmul_front import matmul
from tilewright.runtime.operands import Array

#: The longest ones that are kept for sums: 16 Ki elements, which fit in a second cache in every type.
_MOST_ONES = 1 << 14

#: Sums at once from which on ones that are not kept cost little beside the array: a fourth of its bytes.
_ROWS_FOR_ONES = 4

#: Kinds of element whose products with one are themselves: not complex infinities. V: those of ml_dtypes.
_UNCHANGED_BY_ONE = "fiuV"

_COLLAPSES = 1024


class Collapse(NamedTuple):
    """What becomes of an operand before it meets another.

    Attributes
    ----------
    diagonals : pairs of axes, each of which becomes one behind all others, in turn.
    squeezed : axes of length 1, after that.
    runs : the view whose axes are runs of neighbours that are all summed, or all kept; None where no view is.
    sums : of one run after the other.
    reduced : axes that are summed where there is no such view.
    shape : of what is kept.
    cut : whether sums return another shape.
    axes : the order of the axes that are kept; None where it is theirs.
    """

    diagonals: tuple[tuple[int, int], ...]
    squeezed: tuple[int, ...]
    runs: Fused | None
    sums: tuple[Sum, ...]
    reduced: tuple[int, ...]
    shape: tuple[int, ...]
    cut: bool
    axes: tuple[int, ...] | None

    @property
    def is_view(self) -> bool:
        """Whether nothing is summed."""
        return not self.reduced

    def view(self, array: Array) -> Array:
        """The collapsed array where nothing is summed: a view that can be written where the array can."""
        found = self._short(array)
        if self.diagonals:
            # NumPy's diagonals are read-only, those of its einsum are not.
            found.setflags(write=array.flags.writeable)
        return found if self.axes is None else found.transpose(self.axes)

    def _short(self, array: Array) -> Array:
        """The array with a diagonal in place of axes of one label, and without those of length 1."""
        for first, second in self.diagonals:
            array = array.diagonal(0, first, second)
        return array.squeeze(self.squeezed) if self.squeezed else array

    def total(self, array: Array) -> Array:
        """The collapsed array in its own type; a scalar where nothing is kept."""
        if len(self.sums) == 1 and self.axes is None and not self.cut:  # as below, in half the time
            assert self.runs is not None
            if self.diagonals or self.squeezed:
                array = self._short(array)
            return self.sums[0].of(self.runs.of(array), None)
        found = self.compute(array, None)
        return found if self.shape else found[()]

    def compute(self, array: Array, dtype: np.dtype[Any] | None) -> Array:
        """The collapsed array, sums in a type of their own."""
        if not self.reduced:
            return self.view(array)
        if self.diagonals or self.squeezed:
            array = self._short(array)
        if self.runs is not None:
            array = self.runs.of(array)
            for step in self.sums:
                array = step.of(array, dtype)
            if self.cut:
                array = array.reshape(self.shape)
        else:
            array = _reduce(array, self.reduced, dtype)
        return array if self.axes is None else array.transpose(self.axes)


class Sum(NamedTuple):
    """A sum along one run of axes: a product with ones.

    Attributes
    ----------
    shape : of the array that is summed: (before, count, behind), without axes of length 1 around the run.
    length : elements of each sum.
    last : whether no axis is behind the run.
    """

    shape: tuple[int, ...]
    length: int
    last: bool

    @classmethod
    def along(cls, shape: tuple[int, int, int]) -> Sum:
        """The sum along the axis in the middle."""
        before, count, behind = shape
        axes = (*((before,) if before != 1 else ()), count, *((behind,) if behind != 1 else ()))
        return cls(axes, count, behind == 1)

    def of(self, array: Array, dtype: np.dtype[Any] | None) -> Array:
        """The sums; a scalar of a vector."""
        if array.shape != self.shape:
            array = array.reshape(self.shape)
        if self.length > _MOST_ONES and array.ndim == 1:
            return _long_sum(array, dtype)
        kept = self.length <= _MOST_ONES
        ones = _kept_ones(self.length, array.dtype) if kept else np.ones(self.length, native(array.dtype))
        left, right = (array, ones) if self.last else (ones, array)
        if dtype is None:
            return matmul(left, right)
        if dtype.kind == "c" and array.dtype.kind != "c":  # ones stay real, as in `_UNCHANGED_BY_ONE`
            return np.asarray(matmul(left, right, dtype=np.empty(0, dtype).real.dtype)).astype(dtype)
        return matmul(left, right, dtype=dtype)


@lru_cache(maxsize=_COLLAPSES)
def plan_collapse(
    labels: str, shape: tuple[int, ...], strides: tuple[int, ...], kind: str, wanted: str
) -> Collapse:
    """How an operand with these labels, of a kind of NumPy's, becomes one with those of `wanted`.

    Labels of axes of length 1 are in `wanted` where they are kept. An axis of length 1 whose label isn't
    is dropped, others are summed.

    Examples
    --------
    >>> found = plan_collapse("iji", (3, 1, 3), (24, 24, 8), "f", "i")
    >>> found.diagonals, found.squeezed, found.is_view
    (((0, 2),), (0,), True)
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
    reduced = tuple(axis for axis, label in enumerate(own) if label not in wanted)
    runs: Fused | None = None
    sums: tuple[tuple[int, int, int], ...] = ()
    if reduced and kind in _UNCHANGED_BY_ONE:
        runs, sums = _runs(own, axes, wanted)
        if sums:
            kept = "".join(label for label in axes.outermost_first(own) if label in wanted)
    shape = tuple(axes.sizes[label] for label in kept)
    return Collapse(
        tuple(diagonals),
        squeezed,
        runs,
        tuple(map(Sum.along, sums)),
        reduced,
        shape,
        bool(sums) and shape != tuple(size for size in (sums[-1][0], sums[-1][2]) if size != 1),
        None if kept == wanted else tuple(kept.index(label) for label in wanted),
    )


def _repeated(labels: str) -> tuple[int, int] | None:
    """The first two axes of one label."""
    for axis, label in enumerate(labels):
        again = labels.find(label, axis + 1)
        if again >= 0:
            return axis, again
    return None


def _runs(own: str, axes: Axes, wanted: str) -> tuple[Fused | None, tuple[tuple[int, int, int], ...]]:
    """A view in the order of memory, and the shapes in which its runs are summed, the last run first.

    Before: "abcd" of which b and d are summed. After: runs (a, b, c, d), shapes (abc, d, 1) and (a, b, c).
    """
    order = axes.outermost_first(own)
    runs = ["".join(run) for _, run in groupby(order, lambda label: label in wanted)]
    # What the first sum makes is contiguous; it looks at all runs before its own as one axis.
    last = max(number for number, run in enumerate(runs) if run[0] not in wanted)
    if not all(map(axes.fuse, ("".join(runs[:last]), *runs[last:]))):
        return None, ()
    lengths = [prod(axes.sizes[label] for label in run) for run in runs]
    view = Fused.make(own, order, axes.sizes, Sum.along(_middle(lengths, last)).shape)
    shapes = []
    for number in range(last, -1, -1):
        if runs[number][0] not in wanted:
            shapes.append(_middle(lengths, number))
            lengths[number] = 1
    if any(count > _MOST_ONES and 1 < before * behind < _ROWS_FOR_ONES for before, count, behind in shapes):
        return None, ()
    return view, tuple(shapes)


def _middle(lengths: Sequence[int], number: int) -> tuple[int, int, int]:
    """Elements of the runs before one, of it, and of those behind."""
    return prod(lengths[:number]), lengths[number], prod(lengths[number + 1 :])


@lru_cache(maxsize=256)
def _kept_ones(count: int, dtype: np.dtype[Any]) -> Array:
    return np.ones(count, native(dtype))


def _long_sum(array: Array, dtype: np.dtype[Any] | None) -> Array:
    """The sum of a long vector by parts, the last of which may be shorter."""
    parts, rest = divmod(array.size, _MOST_ONES)
    whole = parts * _MOST_ONES
    sums = np.asarray(Sum.along((parts, _MOST_ONES, 1)).of(array[:whole], dtype))
    if rest:
        sums = np.append(sums, Sum.along((1, rest, 1)).of(array[whole:], dtype))
    return Sum.along((1, sums.size, 1)).of(sums, dtype)


def native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type in this machine's byte order: itself where it has that; machine code knows it by address."""
    return dtype if dtype.isnative else dtype.newbyteorder("=")


def _reduce(array: Array, axes: tuple[int, ...], dtype: np.dtype[Any] | None) -> Array:
    """Sums along any axes, by NumPy: in the type of the result, of 16-bit floats in 32 bits."""
    found = native(array.dtype) if dtype is None else dtype
    if found == np.bool_:
        result: Array = np.logical_or.reduce(array, axis=axes)
        return result
    acc = np.dtype(np.float32) if found.kind in "fV" and found.itemsize == 2 else found
    if found.kind == "V" and found.itemsize == 1:
        acc = np.dtype(np.int32)
    return np.asarray(np.add.reduce(array, axis=axes, dtype=acc)).astype(found, copy=False)
