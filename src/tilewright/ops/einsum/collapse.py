"""Reduction of a single operand: diagonals, axes of length 1, sums over labels that no other operand has."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.operands import Array
from tilewright.calls.pieces import PIECE, pieces
from tilewright.calls.promotion import computing_dtype, kind_of, narrowed, summed_in
from tilewright.calls.recording import new_array, not_repeatable, numpy_call
from tilewright.ops.sum_of_products.call import ProductsCall, plan_products

_COLLAPSES = 1024


class Collapse(NamedTuple):
    """How one operand is reduced before it is contracted with another.

    Attributes
    ----------
    labels, wanted : of its axes, and of those that are kept, in the order of the result.
    diagonals : pairs of axes, each of which becomes one behind all others, in turn.
    squeezed : axes of length 1, after that.
    reduced : axes that are summed, after that.
    shape : of the axes that are kept, in their order in memory.
    axes : the order of the axes that are kept; None where it is theirs.
    """

    labels: str
    wanted: str
    diagonals: tuple[tuple[int, int], ...]
    squeezed: tuple[int, ...]
    reduced: tuple[int, ...]
    shape: tuple[int, ...]
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

    def products(self, array: Array) -> ProductsCall | None:
        """The kernel that sums an array in its own type, where it is; None where none does."""
        if not self.reduced or not array.flags.aligned:
            return None
        return plan_products((self.labels,), self.wanted, array.dtype, (array.shape,), (array.strides,))

    def compute(self, array: Array, dtype: np.dtype[Any] | None) -> Array:
        """The collapsed array, sums in a type of their own."""
        if not self.reduced:
            return self.view(array)
        call = self.products(array) if dtype is None else None
        if call is not None:
            return call(array)
        found = _reduce(self._short(array), self.reduced, dtype)
        return found if self.axes is None else found.transpose(self.axes)


@lru_cache(maxsize=_COLLAPSES)
def plan_collapse(labels: str, shape: tuple[int, ...], wanted: str) -> Collapse:
    """How an operand with these labels becomes one with those of `wanted`.

    Labels of axes of length 1 are in `wanted` where they are kept. An axis of length 1 whose label isn't
    is dropped, others are summed.

    Examples
    --------
    >>> found = plan_collapse("iji", (3, 1, 3), "i")
    >>> found.diagonals, found.squeezed, found.is_view
    (((0, 2),), (0,), True)
    """
    dims = list(zip(labels, shape, strict=True))
    diagonals = []
    while (pair := _repeated("".join(label for label, _ in dims))) is not None:
        merged = dims[pair[0]]
        dims = [dim for axis, dim in enumerate(dims) if axis not in pair] + [merged]
        diagonals.append(pair)
    squeezed = tuple(axis for axis, (label, size) in enumerate(dims) if size == 1 and label not in wanted)
    dims = [dim for axis, dim in enumerate(dims) if axis not in squeezed]
    own = "".join(label for label, _ in dims)
    kept = "".join(label for label in own if label in wanted)
    return Collapse(
        labels,
        wanted,
        tuple(diagonals),
        squeezed,
        tuple(axis for axis, label in enumerate(own) if label not in wanted),
        tuple(size for label, size in dims if label in wanted),
        None if kept == wanted else tuple(kept.index(label) for label in wanted),
    )


def _repeated(labels: str) -> tuple[int, int] | None:
    """The first two axes of one label."""
    for axis, label in enumerate(labels):
        again = labels.find(label, axis + 1)
        if again >= 0:
            return axis, again
    return None


def native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type in this machine's byte order: itself where it has that; machine code knows it by address."""
    return dtype if dtype.isnative else dtype.newbyteorder("=")


def _reduce(array: Array, axes: tuple[int, ...], dtype: np.dtype[Any] | None) -> Array:
    """Sums along any axes, by NumPy: of 16-bit floats in 32 bits; rounded once to a narrower result."""
    found = native(array.dtype) if dtype is None else dtype
    if found == np.bool_:
        return _reduced(np.logical_or, array, axes, found)
    acc = summed_in(computing_dtype((array.dtype,), found))
    if kind_of(found) != found.kind and kind_of(found) in "iu":
        acc = np.dtype(np.int32)  # integers of ml_dtypes, which NumPy does not sum
    return narrowed(_reduced(np.add, array, axes, acc), found)


def _reduced(function: np.ufunc, array: Array, axes: tuple[int, ...], acc: np.dtype[Any]) -> Array:
    """A reduction, large ones in pieces: integers and truths of any parts, others of whole sums."""
    if array.size <= PIECE:
        summed = new_array(tuple(size for axis, size in enumerate(array.shape) if axis not in axes), acc)
        numpy_call(function.reduce, array, axes, acc, summed)
        return summed
    not_repeatable("elements of a large array that NumPy sums")
    found = np.zeros([size for axis, size in enumerate(array.shape) if axis not in axes], acc)
    exact = acc.kind in "biu"
    ends = [1 if axis in axes and not exact else size for axis, size in enumerate(array.shape)]
    for part in pieces(tuple(ends), array.strides, max(1, PIECE * math.prod(ends) // array.size)):
        kept: tuple[Any, ...] = tuple(at for axis, at in enumerate(part) if axis not in axes)
        to = found[(*kept, ...)]
        if exact:
            function(to, function.reduce(array[part], axis=axes, dtype=acc), out=to)
        else:
            whole = tuple(slice(None) if axis in axes else at for axis, at in enumerate(part))
            to[...] = function.reduce(array[whole], axis=axes, dtype=acc)
    return found
