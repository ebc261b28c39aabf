"""Pairs of operands multiplied by `matmul`, as views of both wherever strides allow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.operands import Array, broadcast_shapes, merges
from tilewright.calls.pieces import PIECE, as_type, contiguous, pieces
from tilewright.calls.promotion import computing_dtype, rounds_twice, store
from tilewright.calls.recording import new_array, not_repeatable, numpy_call
from tilewright.ops.matmul.public import multiplied
from tilewright.ops.transpose.call import transpose
from tilewright.spec.problem import check_elements

#: Elements up to which NumPy copies in less time than it takes to call the compiled moves: 1 us.
_MOVED_BY_NUMPY = 1 << 10


class MatrixView(NamedTuple):
    """How an operand becomes a stack of matrices: its axes permuted, then neighbours fused.

    Attributes
    ----------
    axes : the order of its axes; None where it is theirs.
    shape : after that; None where nothing is fused.
    copied : whether the operand is copied, because axes do not fuse in place.
    """

    axes: tuple[int, ...] | None
    shape: tuple[int, ...] | None
    copied: bool = False

    @classmethod
    def make(cls, labels: str, order: str, sizes: Mapping[str, int], shape: tuple[int, ...]) -> MatrixView:
        """The view with axes in `order`, reshaped."""
        axes = tuple(labels.index(label) for label in order)
        before = tuple(sizes[label] for label in order)
        return cls(None if order == labels else axes, None if before == shape else shape)

    def of(self, array: Array) -> Array:
        """The array as seen so."""
        if self.copied:
            return _moved(array, self)
        if self.axes is not None:
            array = array.transpose(self.axes)
        return array if self.shape is None else array.reshape(self.shape)


def _moved(array: Array, view: MatrixView) -> Array:
    """A copy in which the axes of a view do become one: a permutation by compiled code, of few by NumPy."""
    if array.size <= _MOVED_BY_NUMPY:
        transposed = array if view.axes is None else array.transpose(view.axes)
        if view.shape is None or not merges(transposed, view.shape):
            transposed = contiguous(transposed)
        return transposed if view.shape is None else transposed.reshape(view.shape)
    moved = transpose(array, range(array.ndim) if view.axes is None else view.axes)
    return moved if view.shape is None else moved.reshape(view.shape)


class ResultView(NamedTuple):
    """How the result of a product becomes that of a contraction: axes cut, then permuted.

    Attributes
    ----------
    product : the shape that the product returns.
    shape : with the axes it was fused of; None where none was.
    axes : their order; None where it is the wanted one.
    back : the order of the result's axes in the product.
    """

    product: tuple[int, ...]
    shape: tuple[int, ...] | None
    axes: tuple[int, ...] | None
    back: tuple[int, ...]

    @classmethod
    def make(cls, made: str, wanted: str, sizes: Mapping[str, int], shape: tuple[int, ...]) -> ResultView:
        """From the order of axes that is made, in this shape, to the one that is wanted."""
        cut = tuple(sizes[label] for label in made)
        axes = tuple(made.index(label) for label in wanted)
        back = tuple(wanted.index(label) for label in made)
        return cls(shape, None if cut == shape else cut, None if made == wanted else axes, back)

    def of(self, found: Array) -> Array:
        """The result, as a view of what a product returned."""
        if self.shape is not None:
            found = found.reshape(self.shape)
        return found if self.axes is None else found.transpose(self.axes)

    def target(self, out: Array) -> Array | None:
        """The view of `out` that a product writes; None where no view is of the product's shape."""
        view = out.transpose(self.back)
        if out.size and not merges(view, self.product):
            return None
        return view.reshape(self.product)  # a view, since the axes merge


class MatmulPair(NamedTuple):
    """How two operands are multiplied.

    Attributes
    ----------
    a, b : views of them as the product takes them.
    result : what becomes of its result.
    by_elements : whether elements are multiplied, none summed: by `numpy.multiply`.
    transposed : whether the transposed product is computed, which takes b first.
    stacks : the lengths of axes of a batch around its last one, if they are few products.
    """

    a: MatrixView
    b: MatrixView
    result: ResultView
    by_elements: bool
    transposed: bool
    stacks: tuple[int, ...] = ()

    def _each(self, first: Array, second: Array, found: Array) -> Array:
        """The product of stacks in several axes: machine code takes the last of these, a loop the others."""
        axes = len(self.stacks)
        if first.shape[:axes] != self.stacks:  # repeated along a loop over labels of the other
            first = np.broadcast_to(first, (*self.stacks, *first.shape[axes:]))
        if second.shape[:axes] != self.stacks:
            second = np.broadcast_to(second, (*self.stacks, *second.shape[axes:]))
        for place in np.ndindex(self.stacks):
            multiplied(first[place], second[place], found[place])
        return found

    def compute(
        self, a: Array, b: Array, out: Array | None = None, dtype: np.dtype[Any] | None = None
    ) -> Array:
        """The result in `out`, or in memory of its own; computed in a type of its own if there is one."""
        first, second = self.a.of(a), self.b.of(b)
        if self.transposed:
            first, second = second, first
        target = None if out is None else self.result.target(out)
        if target is None:
            check_elements("a result", self.result.product)
        if self.by_elements:
            found = _multiplied(first, second, target, dtype)
        elif self.stacks and dtype is None and first.dtype == second.dtype == _dtype_of(target, first):
            made = new_array(self.result.product, first.dtype) if target is None else target
            found = self._each(first, second, made)
        else:
            found = multiplied(first, second, target, dtype=dtype)
        if out is None:
            return self.result.of(found)
        if target is None:
            store(self.result.of(found), out)
        return out


def _dtype_of(target: Array | None, otherwise: Array) -> np.dtype[Any]:
    """The type of an array that is written, which by default is that of another one."""
    return otherwise.dtype if target is None else target.dtype


def _multiplied(a: Array, b: Array, out: Array | None, dtype: np.dtype[Any] | None) -> Array:
    """Products of elements, rounded once to the type of the result; large ones in pieces."""
    shape = broadcast_shapes(a.shape, b.shape) if out is None else out.shape
    assert shape is not None  # labels have been checked
    if math.prod(shape) > PIECE:
        not_repeatable("a large array in pieces")
        if out is None:
            out = np.empty(shape, np.result_type(a, b) if dtype is None else dtype)
        a, b = np.broadcast_to(a, shape), np.broadcast_to(b, shape)
        for part in pieces(shape, out.strides):
            _multiplied(a[part], b[part], out[part], dtype)
        return out
    if dtype is None:
        found = new_array(shape, np.result_type(a, b)) if out is None else out
        numpy_call(np.multiply, a, b, found)
        return found
    wide = computing_dtype((a.dtype, b.dtype), dtype)
    found = new_array(shape, dtype) if out is None else out
    if wide == dtype:
        numpy_call(np.multiply, *(as_type(array, dtype) for array in (a, b)), found)
        return found
    not_repeatable("elements that NumPy multiplies in a wider type")
    with np.errstate(over="ignore"):  # as in results of kernels
        if rounds_twice(wide, dtype):
            store(np.multiply(a, b, dtype=wide, casting="unsafe"), found)
        else:  # in `wide` and rounded to `dtype`, by pieces that fit NumPy's buffer
            np.multiply(a, b, out=found, dtype=wide, casting="unsafe")
    return found
