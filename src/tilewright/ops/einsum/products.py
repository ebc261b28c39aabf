"""Products of two arrays by other names than einsum: `tensordot`, `inner`, `kron`, and NumPy's of vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tilewright.calls.foreign import as_array, foreign_operand, leave_to_numpy, viewed, wrapped
from tilewright.calls.operands import Array
from tilewright.calls.promotion import store
from tilewright.calls.recording import element, new_array, new_like, numpy_call, repeatable
from tilewright.calls.repeated import repeated
from tilewright.errors import ContractionAxes, SizeOverflow, shown
from tilewright.ops.einsum.pair import contract
from tilewright.ops.gemm.gufuncs import Options, ProductFunction, call
from tilewright.ops.gemm.operands import check_out, find_dtype, product_shapes, result_dtype
from tilewright.ops.matmul.public import multiplied
from tilewright.spec.arguments import MAX_SIZE, MOST_AXES, as_integer, as_integers, as_items
from tilewright.typing import ArrayLike, Casting, Order, OutArray

#: Labels of axes, more than two arrays can have: Latin letters with signs and what follows them.
_FIRST_LABEL = 0x100


def _labels(count: int, first: int = 0) -> str:
    """So many labels, from one number on."""
    return "".join(chr(_FIRST_LABEL + first + number) for number in range(count))


def _arrays(a: Any, b: Any) -> tuple[Array, Array]:
    """Both operands as arrays of types that have a product."""
    return as_array(a, "a"), as_array(b, "b")


def _foreign(a: Any, b: Any) -> Any:
    """The first operand whose library has a function of its own in NumPy's place, or None."""
    return foreign_operand("__array_function__", {"a": a, "b": b})


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
        raise SizeOverflow(what="the result", found=total, limit=MAX_SIZE // 16)
    result = _product_dtype(a, b)
    dtype = None if a.dtype == b.dtype == result else result
    found = contract(a, b, labels_a, labels_b, labels_out, dtype=dtype)
    repeatable()
    return found


@repeated
def tensordot(a: ArrayLike, b: ArrayLike, axes: int | Sequence[int | Sequence[int]] = 2) -> NDArray[Any]:
    """The sum over axes of a and of b of products of elements: `numpy.tensordot`.

    Parameters
    ----------
    a, b : array_like
    axes : int or pair
        So many last axes of a and first of b; or those of a and those of b, integers or sequences of them.

    Returns
    -------
    numpy.ndarray : the other axes of a, then those of b.

    Raises
    ------
    ContractionAxes, InvalidOperand, UnsupportedDtype

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.tensordot(np.ones((2, 3, 4)), np.ones((4, 3, 5)), axes=([1, 2], [1, 0])).shape
    (2, 5)
    """
    foreign = _foreign(a, b)
    if foreign is not None:
        left: Array = leave_to_numpy("tensordot", foreign, (a, b), {"axes": axes})
        return left
    a, b = _arrays(a, b)
    axes_a, axes_b = contracted_axes(axes, a, b)
    labels_a, labels_b = _labels(a.ndim), list(_labels(b.ndim, a.ndim))
    for own, other in zip(axes_a, axes_b, strict=True):
        labels_b[other] = labels_a[own]
    kept = [label for label in (*labels_a, *labels_b) if not (label in labels_a and label in labels_b)]
    return np.asarray(_contract("tensordot", a, b, labels_a, "".join(labels_b), "".join(kept)))


def contracted_axes(axes: Any, a: Any, b: Any) -> tuple[list[int], list[int]]:
    """The axes of a and b that are summed, none of them negative.

    Raises
    ------
    ContractionAxes
    """

    def refuse(reason: str) -> ContractionAxes:
        return ContractionAxes(function="tensordot", axes=shown(axes), a=a.shape, b=b.shape, reason=reason)

    count = as_integer(axes)
    if count is not None:
        if not 0 <= count <= min(a.ndim, b.ndim):
            raise refuse(f"one of them is out of range for arrays of {min(a.ndim, b.ndim)} axes")
        given = tuple(range(-count, 0)), tuple(range(count))
    else:
        first, second, *_ = *map(as_integers, as_items(axes) or ()), None, None
        if first is None or second is None or len(as_items(axes) or ()) != 2:
            raise refuse("they are neither a number of axes nor a pair of sequences of integers")
        given = first, second
    if len(given[0]) != len(given[1]):
        raise refuse("there must be as many of a as of b")
    found = []
    for name, array, wanted in (("a", a, given[0]), ("b", b, given[1])):
        if any(not -array.ndim <= axis < array.ndim for axis in wanted):
            raise refuse(f"one of them is out of range for the {array.ndim} axes of {name}")
        own = [axis % array.ndim for axis in wanted]
        if len(set(own)) != len(own):
            raise refuse(f"one of {name} is repeated")
        found.append(own)
    for own, other in zip(*found, strict=True):
        if a.shape[own] != b.shape[other]:
            raise refuse(f"axis {own} of a is {a.shape[own]} long, axis {other} of b {b.shape[other]}")
    return found[0], found[1]


@repeated
def inner(a: ArrayLike, b: ArrayLike, /) -> NDArray[Any]:
    """Products of elements summed over the last axes of both: `numpy.inner`.

    Parameters
    ----------
    a, b : array_like of shapes (..., k), or a scalar, which multiplies

    Returns
    -------
    numpy.ndarray of shape (*a.shape[:-1], *b.shape[:-1]); a scalar of two vectors

    Raises
    ------
    ContractionAxes, InvalidOperand, UnsupportedDtype

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.inner(np.ones((2, 4)), np.ones((3, 4))).shape
    (2, 3)
    """
    foreign = _foreign(a, b)
    if foreign is not None:
        left: Array = leave_to_numpy("inner", foreign, (a, b), {})
        return left
    given = a, b
    a, b = _arrays(a, b)
    if a.ndim and b.ndim and a.shape[-1] != b.shape[-1]:
        reason = "the last axes must be equally long"
        raise ContractionAxes(function="inner", axes=(-1, -1), a=a.shape, b=b.shape, reason=reason)
    count = 1 if a.ndim and b.ndim else 0
    kept_a, kept_b = _labels(a.ndim - count, 1), _labels(b.ndim - count, a.ndim + 1)
    summed = _labels(count)
    found = element(_contract("inner", a, b, kept_a + summed, kept_b + summed, kept_a + kept_b))
    if type(given[0]) is type(given[1]) is np.ndarray:
        return found
    typed: Array = viewed(*given, found) if count else wrapped("inner", given, found)
    return typed


@repeated
def kron(a: ArrayLike, b: ArrayLike) -> NDArray[Any]:
    """Blocks of b, each multiplied by one element of a: `numpy.kron`.

    Parameters
    ----------
    a, b : array_like
        The one of fewer axes gets axes of length 1 in front.

    Returns
    -------
    numpy.ndarray whose axes are as long as the products of theirs

    Raises
    ------
    InvalidOperand, UnsupportedDtype

    Examples
    --------
    >>> import tilewright as tw
    >>> tw.kron([1, 10], [1, 2, 3])
    array([ 1,  2,  3, 10, 20, 30])
    """
    foreign = _foreign(a, b)
    if foreign is not None:
        left: Array = leave_to_numpy("kron", foreign, (a, b), {})
        return left
    given = a, b
    a, b = _arrays(a, b)
    ndim = max(a.ndim, b.ndim)
    shapes = [(1,) * (ndim - array.ndim) + array.shape for array in (a, b)]
    shape = [first * second for first, second in zip(*shapes, strict=True)]
    if 0 in shape:
        repeatable()
        return _like_kron(given, new_array(tuple(shape), _product_dtype(a, b)))
    # Axes of length 1 are left out: the result would have twice as many axes as the operands.
    labels = [_labels(ndim), _labels(ndim, ndim)]
    kept = [
        [label if size > 1 else "" for label, size in zip(*pair, strict=True)]
        for pair in zip(labels, shapes, strict=True)
    ]
    order = "".join(first + second for first, second in zip(*kept, strict=True))
    found = _contract("kron", a.squeeze(), b.squeeze(), "".join(kept[0]), "".join(kept[1]), order)
    return _like_kron(given, np.asarray(found).reshape(shape))


def _like_kron(given: tuple[Any, Any], found: Array) -> Array:
    """A result in the type that `numpy.kron` gives it."""
    matrix = any(isinstance(value, np.matrix) for value in given)
    typed: Array = np.asmatrix(found) if matrix else wrapped("kron", given, element(found))
    return typed


def _conjugated(a: Array) -> Array:
    """A vector on the left, of which NumPy takes the conjugate."""
    if a.dtype.kind != "c":
        return a
    found = new_like(a)
    numpy_call(np.conjugate, a, found)
    return found


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
        store(target, out)
        return out


def _widened(out: Array | None, *index: Any) -> Array | None:
    """`out` as the result of a product of matrices; itself where it has too many or too few axes for one."""
    new = sum(part is None for part in index)
    if out is None or out.ndim + new > MOST_AXES or out.ndim < len(index) - new:
        return out
    return out[..., *index]


def _vecdot(a: Array, b: Array, out: Array | None, *, dtype: DTypeLike | None) -> Any:
    """Products of vectors in the last axes."""
    cut = (a.ndim == MOST_AXES, b.ndim == MOST_AXES)
    if any(cut):
        shape = product_shapes((*a.shape[:-1], 1, a.shape[-1]), (*b.shape, 1)).batch
        return _Slices((a, b), cut, shape, out, dtype).compute(partial(_vecdot, dtype=dtype))
    target = _widened(out, np.newaxis, np.newaxis)
    found = multiplied(_conjugated(a)[..., np.newaxis, :], b[..., np.newaxis], target, dtype=dtype)
    return found[..., 0, 0] if out is None else out


def _matvec(a: Array, b: Array, out: Array | None, *, dtype: DTypeLike | None) -> Array:
    """Matrices in the last two axes of a times vectors in the last one of b."""
    if b.ndim == MOST_AXES:
        shape = product_shapes(a.shape, (*b.shape, 1)).result[:-1]
        return _Slices((a, b), (False, True), shape, out, dtype).compute(partial(_matvec, dtype=dtype))
    found = multiplied(a, b[..., np.newaxis], _widened(out, np.newaxis), dtype=dtype)
    return found[..., 0] if out is None else out


def _vecmat(a: Array, b: Array, out: Array | None, *, dtype: DTypeLike | None) -> Array:
    """Vectors in the last axis of a times matrices in the last two of b."""
    if a.ndim == MOST_AXES:
        shapes = product_shapes((*a.shape[:-1], 1, a.shape[-1]), b.shape)
        shape = (*shapes.batch, shapes.n)
        return _Slices((a, b), (True, False), shape, out, dtype).compute(partial(_vecmat, dtype=dtype))
    target = _widened(out, np.newaxis, slice(None))
    found = multiplied(_conjugated(a)[..., np.newaxis, :], b, target, dtype=dtype)
    return found[..., 0, :] if out is None else out


_PRODUCTS = {
    "vecdot": ProductFunction("vecdot", _vecdot, (1, 1, 0)),
    "matvec": ProductFunction("matvec", _matvec, (2, 1, 1)),
    "vecmat": ProductFunction("vecmat", _vecmat, (1, 2, 1)),
}


def _of_vectors(function: str, a: Any, b: Any, out: Any, options: Options) -> Any:
    """One of NumPy's products of vectors, by its name."""
    product = _PRODUCTS[function]
    if type(a) is type(b) is np.ndarray and (out is None or type(out) is np.ndarray) and options.plain:
        product.check(a, b)
        found = product.multiply(a, b, out, dtype=options.dtype)
        repeatable()
        return found if out is not None or found.ndim else element(found)
    return call(product, a, b, out, options)


@repeated
def vecdot(
    a: ArrayLike,
    b: ArrayLike,
    /,
    out: OutArray | tuple[OutArray] | None = None,
    *,
    dtype: DTypeLike | None = None,
    axis: int = -1,
    axes: list[Any] | None = None,
    keepdims: bool = False,
    casting: Casting = "same_kind",
    order: Order = "K",
    subok: bool = True,
) -> NDArray[Any]:
    """Products of vectors, of complex ones with the conjugate of a: `numpy.vecdot`.

    Parameters
    ----------
    a, b : array_like of shapes (..., k)
        Axes before the last broadcast.
    out : numpy.ndarray, optional
        Receives the result, which broadcasts to it.
    dtype : optional
        As in `matmul`.
    axis : int
        Which axis of both is that of the vectors.
    axes : list, optional
        The axis in a, in b and, with `keepdims`, in the result.
    keepdims : bool
        Whether the result keeps the axis, with length 1.
    casting, order, subok : optional
        As in `matmul`.

    Returns
    -------
    numpy.ndarray of shape (...); a scalar of two vectors; or `out`

    Raises
    ------
    ContractionAxes, AxisOutOfRange, InvalidFlag, and what `matmul` raises

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.vecdot(np.ones((2, 3)), np.ones(3))
    array([3., 3.])
    """
    options = Options(dtype, axes, axis, keepdims, casting, order, subok)
    found: NDArray[Any] = _of_vectors("vecdot", a, b, out, options)
    return found


@repeated
def matvec(
    a: ArrayLike,
    b: ArrayLike,
    /,
    out: OutArray | tuple[OutArray] | None = None,
    *,
    dtype: DTypeLike | None = None,
    axes: list[Any] | None = None,
    casting: Casting = "same_kind",
    order: Order = "K",
    subok: bool = True,
) -> NDArray[Any]:
    """Matrices times vectors, both in stacks that broadcast: `numpy.matvec`.

    Parameters
    ----------
    a, b : array_like of shapes (..., m, k) and (..., k)
    out : numpy.ndarray, optional
        Receives the result, which broadcasts to it.
    dtype, axes, casting, order, subok : optional
        As in `matmul`.

    Returns
    -------
    numpy.ndarray of shape (..., m), or `out`

    Raises
    ------
    ContractionAxes, and what `matmul` raises

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.matvec(np.ones((5, 2, 3)), np.ones((5, 3))).shape
    (5, 2)
    """
    options = Options(dtype, axes, casting=casting, order=order, subok=subok)
    found: NDArray[Any] = _of_vectors("matvec", a, b, out, options)
    return found


@repeated
def vecmat(
    a: ArrayLike,
    b: ArrayLike,
    /,
    out: OutArray | tuple[OutArray] | None = None,
    *,
    dtype: DTypeLike | None = None,
    axes: list[Any] | None = None,
    casting: Casting = "same_kind",
    order: Order = "K",
    subok: bool = True,
) -> NDArray[Any]:
    """Vectors times matrices, of complex ones the conjugate of a: `numpy.vecmat`.

    Parameters
    ----------
    a, b : array_like of shapes (..., k) and (..., k, n)
    out : numpy.ndarray, optional
        Receives the result, which broadcasts to it.
    dtype, axes, casting, order, subok : optional
        As in `matmul`.

    Returns
    -------
    numpy.ndarray of shape (..., n), or `out`

    Raises
    ------
    ContractionAxes, and what `matmul` raises

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.vecmat(np.ones((5, 3)), np.ones((5, 3, 4))).shape
    (5, 4)
    """
    options = Options(dtype, axes, casting=casting, order=order, subok=subok)
    found: NDArray[Any] = _of_vectors("vecmat", a, b, out, options)
    return found
