"""Products of two arrays by other names than einsum: `tensordot`, `inner`, `kron`, and NumPy's of vectors."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from tilewright.errors import ContractionAxes, InvalidOperand, SizeOverflow
from tilewright.runtime.arrays import check_out, find_dtype, product_shapes, result_dtype
from tilewright.runtime.contract import contract
from tilewright.runtime.matmul_front import matmul
from tilewright.runtime.operands import Array
from tilewright.runtime.walk import MOST_AXES
from tilewright.spec.problem import MAX_SIZE

#: Labels of axes, more than two arrays can have: Latin letters with signs and what follows them.
_FIRST_LABEL = 0x100


def _labels(count: int, first: int = 0) -> str:
    """So many labels, from one number on."""
    return "".join(chr(_FIRST_LABEL + first + number) for number in range(count))


def _arrays(a: Any, b: Any) -> tuple[Array, Array]:
    """Both operands as arrays of types that have a product."""
    found = []
    for name, value in (("a", a), ("b", b)):
        try:
            found.append(np.asarray(value))
        except (ValueError, TypeError) as error:
            raise InvalidOperand(name=name, reason=str(error)) from error
    return found[0], found[1]


def _product_dtype(a: Array, b: Array) -> np.dtype[Any]:
    """The type that NumPy promotes to; refuses types that have no product."""
    result = result_dtype(a, b, None, None)
    if result != np.bool_:
        find_dtype(result)
    return result


def _contract(function: str, a: Array, b: Array, labels_a: str, labels_b: str, labels_out: str) -> Array:
    """A contraction in the type that NumPy promotes to.

    Raises
    ------
    ContractionAxes : if the result has more axes than an array can have.
    SizeOverflow
    """
    if len(labels_out) > MOST_AXES:
        reason = f"the result has {len(labels_out)} axes, arrays have at most {MOST_AXES}"
        raise ContractionAxes(function=function, axes="that remain", a=a.shape, b=b.shape, reason=reason)
    sizes = dict(zip(labels_a + labels_b, a.shape + b.shape, strict=True))
    total = math.prod(sizes[label] for label in labels_out)
    if total > MAX_SIZE // 16:  # 16 bytes: the largest element
        raise SizeOverflow(what=f"{function}: the result", found=total, limit=MAX_SIZE // 16)
    result = _product_dtype(a, b)
    dtype = None if a.dtype == b.dtype == result else result
    return contract(a, b, labels_a, labels_b, labels_out, dtype=dtype)


def tensordot(a: Any, b: Any, axes: Any = 2) -> Array:
    """See `tilewright.tensordot`."""
    a, b = _arrays(a, b)
    axes_a, axes_b = _pairs(axes, a, b)
    labels_a, labels_b = _labels(a.ndim), list(_labels(b.ndim, a.ndim))
    for own, other in zip(axes_a, axes_b, strict=True):
        labels_b[other] = labels_a[own]
    kept = [label for label in (*labels_a, *labels_b) if not (label in labels_a and label in labels_b)]
    return np.asarray(_contract("tensordot", a, b, labels_a, "".join(labels_b), "".join(kept)))


def _pairs(axes: Any, a: Array, b: Array) -> tuple[list[int], list[int]]:
    """The axes of a and b that are summed, none of them negative.

    Raises
    ------
    ContractionAxes
    """

    def refuse(reason: str) -> ContractionAxes:
        return ContractionAxes(function="tensordot", axes=axes, a=a.shape, b=b.shape, reason=reason)

    try:
        if np.ndim(axes) == 0:
            count = operator.index(axes)
            given = (_sequence(range(-count, 0)), _sequence(range(count)))
        else:
            first, second = axes
            given = (_sequence(first), _sequence(second))
    except (TypeError, ValueError):
        raise refuse("they are neither a number of axes nor a pair of sequences of integers") from None
    if len(given[0]) != len(given[1]):
        raise refuse("there must be as many of a as of b")
    found = []
    for name, array, wanted in (("a", a, given[0]), ("b", b, given[1])):
        if any(not -array.ndim <= axis < array.ndim for axis in wanted):
            raise refuse(f"one of them is none of the {array.ndim} axes of {name}")
        own = [axis % array.ndim for axis in wanted]
        if len(set(own)) != len(own):
            raise refuse(f"one of {name} is repeated")
        found.append(own)
    for own, other in zip(*found, strict=True):
        if a.shape[own] != b.shape[other]:
            raise refuse(f"axis {own} of a is {a.shape[own]} long, axis {other} of b {b.shape[other]}")
    return found[0], found[1]


def _sequence(axes: Any) -> Sequence[int]:
    """One axis or several as integers."""
    return [operator.index(axis) for axis in (axes if np.ndim(axes) else (axes,))]


def inner(a: Any, b: Any) -> Any:
    """See `tilewright.inner`."""
    a, b = _arrays(a, b)
    if a.ndim and b.ndim and a.shape[-1] != b.shape[-1]:
        reason = "the last axes must be equally long"
        raise ContractionAxes(function="inner", axes=(-1, -1), a=a.shape, b=b.shape, reason=reason)
    count = 1 if a.ndim and b.ndim else 0
    kept_a, kept_b = _labels(a.ndim - count, 1), _labels(b.ndim - count, a.ndim + 1)
    summed = _labels(count)
    return _contract("inner", a, b, kept_a + summed, kept_b + summed, kept_a + kept_b)[()]


def kron(a: Any, b: Any) -> Any:
    """See `tilewright.kron`."""
    a, b = _arrays(a, b)
    ndim = max(a.ndim, b.ndim)
    shapes = [(1,) * (ndim - array.ndim) + array.shape for array in (a, b)]
    shape = [first * second for first, second in zip(*shapes, strict=True)]
    if 0 in shape:
        return np.zeros(shape, _product_dtype(a, b))
    # Axes of length 1 are left out: the result would have twice as many axes as the operands.
    labels = [_labels(ndim), _labels(ndim, ndim)]
    kept = [
        [label if size > 1 else "" for label, size in zip(*pair, strict=True)]
        for pair in zip(labels, shapes, strict=True)
    ]
    order = "".join(first + second for first, second in zip(*kept, strict=True))
    found = _contract("kron", a.squeeze(), b.squeeze(), "".join(kept[0]), "".join(kept[1]), order)
    return np.asarray(found).reshape(shape)[()]


def _vectors(function: str, a: Any, b: Any, least: tuple[int, int]) -> tuple[Array, Array]:
    """Operands with so many axes at least.

    Raises
    ------
    ContractionAxes
    """
    first, second = _arrays(a, b)
    if first.ndim < least[0] or second.ndim < least[1]:
        reason = f"a has {least[0]} axes at least, b {least[1]}"
        raise ContractionAxes(function=function, axes=(-1,), a=first.shape, b=second.shape, reason=reason)
    return first, second


def _conjugated(a: Array) -> Array:
    """A vector on the left, of which NumPy takes the conjugate."""
    return a.conj() if a.dtype.kind == "c" else a


class _Slices(NamedTuple):
    """A product of vectors that have `MOST_AXES` axes, no room for one more: slice by slice.

    Attributes
    ----------
    operands : a and b.
    cut : whether their first axis is the first one of the result.
    shape : of the result.
    out, dtype : as of the product.
    """

    operands: tuple[Array, Array]
    cut: tuple[bool, bool]
    shape: tuple[int, ...]
    out: Array | None
    dtype: DTypeLike | None

    def compute(self, function: Callable[[Array, Array, Array], Any]) -> Array:
        """The result of a function that computes a slice into its third argument."""
        computed = result_dtype(*self.operands, self.out, self.dtype)
        out = None if self.out is None else check_out(self.out, self.shape, computed)
        target = np.empty(self.shape, computed)
        for number in range(self.shape[0]):
            a, b = (
                array[number if len(array) > 1 else 0] if cut else array
                for array, cut in zip(self.operands, self.cut, strict=True)
            )
            function(a, b, target[number])
        if out is None:
            return target
        np.copyto(out, target, casting="same_kind")
        return out


def vecdot(a: Any, b: Any, out: Array | None, *, axis: int, dtype: DTypeLike | None) -> Any:
    """See `tilewright.vecdot`."""
    a, b = _vectors("vecdot", a, b, (1, 1))
    if axis != -1:
        if not all(-array.ndim <= axis < array.ndim for array in (a, b)):
            reason = "both operands must have the axis"
            raise ContractionAxes(function="vecdot", axes=(axis,), a=a.shape, b=b.shape, reason=reason)
        a, b = np.moveaxis(a, axis, -1), np.moveaxis(b, axis, -1)
    cut = (a.ndim == MOST_AXES, b.ndim == MOST_AXES)
    if any(cut):
        shape = product_shapes((*a.shape[:-1], 1, a.shape[-1]), (*b.shape, 1)).batch
        return _Slices((a, b), cut, shape, out, dtype).compute(partial(vecdot, axis=-1, dtype=dtype))
    target = None if out is None else out[..., np.newaxis, np.newaxis]
    found = matmul(_conjugated(a)[..., np.newaxis, :], b[..., np.newaxis], target, dtype=dtype)
    return found[..., 0, 0][()] if out is None else out


def matvec(a: Any, b: Any, out: Array | None, *, dtype: DTypeLike | None) -> Array:
    """See `tilewright.matvec`."""
    a, b = _vectors("matvec", a, b, (2, 1))
    if b.ndim == MOST_AXES:
        shape = product_shapes(a.shape, (*b.shape, 1)).result[:-1]
        return _Slices((a, b), (False, True), shape, out, dtype).compute(partial(matvec, dtype=dtype))
    found = matmul(a, b[..., np.newaxis], None if out is None else out[..., np.newaxis], dtype=dtype)
    return found[..., 0] if out is None else out


def vecmat(a: Any, b: Any, out: Array | None, *, dtype: DTypeLike | None) -> Array:
    """See `tilewright.vecmat`."""
    a, b = _vectors("vecmat", a, b, (1, 2))
    if a.ndim == MOST_AXES:
        shapes = product_shapes((*a.shape[:-1], 1, a.shape[-1]), b.shape)
        shape = (*shapes.batch, shapes.n)
        return _Slices((a, b), (True, False), shape, out, dtype).compute(partial(vecmat, dtype=dtype))
    target = None if out is None else out[..., np.newaxis, :]
    found = matmul(_conjugated(a)[..., np.newaxis, :], b, target, dtype=dtype)
    return found[..., 0, :] if out is None else out
