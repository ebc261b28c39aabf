"""`matmul`, `tensordot`, `vecdot`, `matrix_transpose`, `outer` and `einsum` with the standard's rules.

They differ from NumPy's functions in what they refuse (operands that are no arrays, bool, mixed kinds of
numbers), in the axis of `vecdot`, which counts from the last one, and in results without axes: arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tilewright.array_api.arrays import common_type, compute, is_array, whole
from tilewright.calls.operands import Array
from tilewright.calls.promotion import kind_of
from tilewright.errors import ContractionAxes, NegativeAxisNeeded, NotNumeric, TooFewAxes
from tilewright.errors.callers import named_in_errors
from tilewright.ops.einsum import products
from tilewright.ops.einsum.public import einsum as _einsum
from tilewright.ops.matmul.public import matmul as _matmul
from tilewright.spec.arguments import check_integer

_BOTH = ("x1", "x2")


@named_in_errors
def matmul(x1: Any, x2: Any, /) -> Any:
    """The product of matrices, or of stacks of them that broadcast.

    Parameters
    ----------
    x1, x2 : arrays of one library, shapes (..., M, K) and (..., K, N); one axis is a vector.

    Returns
    -------
    array of their library and of their promoted type, (..., M, N) without the axes of vectors

    Raises
    ------
    TooFewAxes, ShapeMismatch, BatchMismatch, MixedKinds, NotNumeric, NotStandardArray, SeveralLibraries,
    UnsupportedDtype, TensorNotReadable

    Examples
    --------
    >>> import numpy as np
    >>> matmul(np.ones((2, 3)), np.ones(3))
    array([3., 3.])
    """

    def product(a: Array, b: Array) -> Array:
        _check_axes(a, b)
        dtype = common_type(a, b)
        return whole(_matmul(_typed(a, dtype), _typed(b, dtype)))

    return compute(product, (x1, x2), _BOTH)


@named_in_errors
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The product of vectors along an axis, of complex ones with the conjugate of x1.

    Parameters
    ----------
    x1, x2 : arrays of one library; the other axes broadcast.
    axis : from -N to -1, with N the number of axes of the operand that has fewer.

    Returns
    -------
    array of their library and of their promoted type

    Raises
    ------
    TooFewAxes, NegativeAxisNeeded, ContractionAxes, BatchMismatch, MixedKinds, NotNumeric, NotStandardArray,
    SeveralLibraries, UnsupportedDtype, TensorNotReadable

    Examples
    --------
    >>> import numpy as np
    >>> vecdot(np.asarray([1j, 2]), np.asarray([1j, 2]))
    array(5.+0.j)
    """

    def product(a: Array, b: Array) -> Array:
        _check_axes(a, b)
        least = min(a.ndim, b.ndim)
        if not -least <= axis < 0:
            raise NegativeAxisNeeded(found=axis, ndim=least)
        if a.shape[axis] != b.shape[axis]:
            reason = "the axis must be equally long in both"
            raise ContractionAxes(axes=axis, a=a.shape, b=b.shape, reason=reason)
        dtype = common_type(a, b)
        return whole(products.vecdot(_typed(a, dtype), _typed(b, dtype), axis=axis))

    axis = check_integer(axis, "axis", -(2**31), 2**31)
    return compute(product, (x1, x2), _BOTH)


@named_in_errors
def tensordot(x1: Any, x2: Any, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Any:
    """The sum over axes of both of the products of elements.

    Parameters
    ----------
    x1, x2 : arrays of one library.
    axes : how many last axes of x1 and first of x2; or a pair of sequences: those of x1 and those of x2.
        They are equally long and do not broadcast.

    Returns
    -------
    array of their library and of their promoted type: the other axes of x1, then those of x2

    Raises
    ------
    ContractionAxes, MixedKinds, NotNumeric, NotStandardArray, SeveralLibraries, UnsupportedDtype,
    TensorNotReadable

    Examples
    --------
    >>> import numpy as np
    >>> tensordot(np.ones((2, 3, 4)), np.ones((4, 3, 5)), axes=((1, 2), (1, 0))).shape
    (2, 5)
    """

    def product(a: Array, b: Array) -> Array:
        dtype = common_type(a, b)
        return whole(products.tensordot(_typed(a, dtype), _typed(b, dtype), axes))

    return compute(product, (x1, x2), _BOTH)


@named_in_errors
def outer(x1: Any, x2: Any, /) -> Any:
    """The products of the elements of two vectors.

    Parameters
    ----------
    x1, x2 : arrays of one library, of one axis each.

    Returns
    -------
    array of their library and of their promoted type, (len(x1), len(x2))

    Raises
    ------
    TooFewAxes : also for more axes than one.
    MixedKinds, NotNumeric, NotStandardArray, SeveralLibraries, UnsupportedDtype, TensorNotReadable

    Examples
    --------
    >>> import numpy as np
    >>> outer(np.asarray([1, 2]), np.asarray([3, 4]))
    array([[3, 4],
           [6, 8]])
    """

    def product(a: Array, b: Array) -> Array:
        for name, array in zip(_BOTH, (a, b), strict=True):
            if array.ndim != 1:
                raise TooFewAxes(name=name, shape=array.shape, required="exactly one axis")
        dtype = common_type(a, b)
        return whole(_einsum("i,j->ij", _typed(a, dtype), _typed(b, dtype)))

    return compute(product, (x1, x2), _BOTH)


@named_in_errors
def matrix_transpose(x: Any, /) -> Any:
    """The transpose of a matrix, or of each one of a stack: a view where the library has views.

    Parameters
    ----------
    x : array of two or more axes, of any type.

    Returns
    -------
    array of the library and type of x

    Raises
    ------
    TooFewAxes, NotStandardArray, TensorNotReadable

    Examples
    --------
    >>> import numpy as np
    >>> matrix_transpose(np.ones((5, 2, 3))).shape
    (5, 3, 2)
    """
    found = x.mT if is_array(x) and getattr(x, "ndim", 0) > 1 and hasattr(x, "mT") else None
    if found is not None:
        return found

    def transposed(array: Array) -> Array:
        if array.ndim < 2:
            raise TooFewAxes(name="x", shape=array.shape, required="at least two axes")
        return np.swapaxes(array, -1, -2)

    return compute(transposed, (x,), ("x",))


@named_in_errors
def einsum(subscripts: str, /, *operands: Any) -> Any:
    """`tilewright.einsum` with the standard's types and arrays; the standard itself has no `einsum`.

    Parameters
    ----------
    subscripts : as in `tilewright.einsum`.
    operands : arrays of one library, of types that the standard promotes.

    Returns
    -------
    array of their library and of their promoted type

    Raises
    ------
    MixedKinds, NotNumeric, NotStandardArray, SeveralLibraries, and the errors of `tilewright.einsum`

    Examples
    --------
    >>> import numpy as np
    >>> einsum("ij,kj->ik", np.ones((2, 3)), np.ones((4, 3))).shape
    (2, 4)
    """

    def product(*arrays: Array) -> Array:
        for number, array in enumerate(arrays):
            if kind_of(array.dtype) not in "uifc":
                raise NotNumeric(name=f"operand {number}", found=array.dtype)
        for first, second in pairwise(arrays):
            common_type(first, second)
        return whole(_einsum(subscripts, *arrays))

    return compute(product, operands, [f"operand {number}" for number in range(len(operands))])


def _check_axes(a: Array, b: Array) -> None:
    for name, array in zip(_BOTH, (a, b), strict=True):
        if not array.ndim:
            raise TooFewAxes(name=name, shape=(), required="at least one axis")


def _typed(array: Array, dtype: np.dtype[Any]) -> Array:
    """An operand in the common type."""
    return array if array.dtype == dtype else array.astype(dtype)
