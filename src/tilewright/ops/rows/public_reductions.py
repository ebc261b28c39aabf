"""The public reductions along axes: sum, mean, max and min."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tilewright.ops.rows.kernel import Request, served
from tilewright.ops.rows.reduce import prepare_reduction
from tilewright.spec.row_functions import RowOp

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from tilewright.calls.operands import Array
    from tilewright.typing import ArrayLike, OutArray


@served
def sum(  # noqa: A001 (NumPy's name)
    x: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: OutArray | None = None,
    *,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    threads: int | None = None,
) -> Request[Array]:
    """The sum of elements along axes, as `numpy.sum`.

    Parameters
    ----------
    x : array_like
        Any shape, any strides. float32, float64, bfloat16, float16, bool or integers of any size.
    axis : int or tuple of int, optional
        The axes to sum over; all by default, none if it is ().
    out : numpy.ndarray, optional
        Receives the result; of its shape. May share memory with x.
    dtype : optional
        Type that the elements are converted to and added up in, and of the result. Of integers sums wrap
        around; of bool the sum is true where an element is.
    keepdims : bool
        Whether these axes stay, with length 1.
    threads : int, optional
        The most threads of this call; as many as `set_num_threads` says by default.

    Returns
    -------
    numpy.ndarray of x's type, a scalar where no axis is left, or `out`
        Added up in float32 (of float64 in float64) and rounded once; NaN where there is NaN, 0 of no
        elements. As in NumPy, the sum of bool and signed integers is int64 and that of unsigned ones uint64;
        these wrap around.

    Raises
    ------
    UnsupportedDtype, InvalidOperand, InvalidAxis, AxisOutOfRange, RepeatedAxis, OutShape, OutDtype,
    OutReadOnly, OutNotArray, OutOverlapsItself, InvalidThreads
        Each before `out` changes.

    Notes
    -----
    A row's result is bit-identical at any position and with any number of threads; column-major layouts
    sum in another order than row-major ones. Sums of a few vectors are added up in more
    bits than the result has: the error does not grow with the length of the axis. 64-bit integers are added
    up by compiled kernels, narrower ones and bool by NumPy.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.sum(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    array([4., 6.])
    """
    return _reduced("sum", x, axis, out, threads, dtype=dtype, keepdims=keepdims)


@served
def mean(
    x: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: OutArray | None = None,
    *,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    threads: int | None = None,
) -> Request[Array]:
    """The mean of elements along axes, as `numpy.mean`.

    Takes, gives and raises what `sum` does, with float types as dtype only; NaN of no elements. Sums of
    float16 and bfloat16 are not rounded before they are divided, so that none overflows. Integers and bool
    are converted to float64 first, the type of their mean.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.mean(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=1, keepdims=True)
    array([[1.5],
           [3.5]])
    """
    return _reduced("mean", x, axis, out, threads, dtype=dtype, keepdims=keepdims)


@served
def max(  # noqa: A001 (NumPy's name)
    x: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: OutArray | None = None,
    *,
    keepdims: bool = False,
    threads: int | None = None,
) -> Request[Array]:
    """The largest element along axes, as `numpy.max`.

    Takes, gives and raises what `sum` does, and `EmptyReduction` where there is no element. Exact, in x's
    type; of zeros of both signs it may be either. Integers and bool are compared by NumPy.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.max(np.array([[1.0, 2.0], [3.0, np.nan]]), axis=1)
    array([ 2., nan])
    """
    return _reduced("max", x, axis, out, threads, keepdims=keepdims)


@served
def min(  # noqa: A001 (NumPy's name)
    x: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: OutArray | None = None,
    *,
    keepdims: bool = False,
    threads: int | None = None,
) -> Request[Array]:
    """The smallest element along axes, as `numpy.min`.

    Takes, gives and raises what `max` does.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> float(tw.min(np.array([[1.0, 2.0], [3.0, 4.0]])))
    1.0
    """
    return _reduced("min", x, axis, out, threads, keepdims=keepdims)


def _reduced(
    op: str, x: Any, axis: Any, out: Any, threads: int | None, *, dtype: Any = None, keepdims: bool
) -> Request[Array]:
    """Compute one reduction."""
    return Request(
        partial(prepare_reduction, RowOp(op), x, axis, out, dtype=dtype, keepdims=keepdims), threads
    )
