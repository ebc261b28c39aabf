"""The public functions along axes, as builtins whose repeated calls are machine code."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

from tilewright.ops.rows.call import prepare
from tilewright.ops.rows.kernel import Request, served
from tilewright.ops.rows.stats import prepare_with_stats
from tilewright.spec.arguments import check_flag
from tilewright.spec.row_functions import RowOp

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tilewright.calls.operands import Array
    from tilewright.typing import ArrayLike, OutArray


@served
def softmax(
    x: ArrayLike,
    axis: int | tuple[int, ...] = -1,
    out: OutArray | None = None,
    *,
    threads: int | None = None,
) -> Request[Array]:
    """e^(x - max x) / Σ e^(x - max x) along an axis.

    Parameters
    ----------
    x : array_like
        Any shape of at least one axis, any strides. float32, float64, bfloat16 or float16; integers become
        the floats that NumPy's functions make of them.
    axis : int or tuple of int
        The axis or axes along which results add up to 1.
    out : numpy.ndarray, optional
        Receives the result; of its shape. May be x itself, or share memory with it.
    threads : int, optional
        The most threads of this call; as many as `set_num_threads` says by default.

    Returns
    -------
    numpy.ndarray of x's shape and type, or `out`
        Computed in float32 (of float64 in float64) and rounded once. NaN where a line of x has NaN or inf, or
        nothing above -inf; 0 where x is -inf beside finite numbers.

    Raises
    ------
    UnsupportedDtype, InvalidOperand, InvalidAxis, AxisOutOfRange, RepeatedAxis, OutShape, OutDtype,
    OutReadOnly, OutNotArray, OutOverlapsItself, InvalidThreads
        Each before `out` changes.

    Notes
    -----
    A line's result is bit-identical at any position and with any number of threads; column-major layouts
    sum in another order than row-major ones.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.softmax(np.log([[1.0, 3.0], [2.0, 2.0]]))
    array([[0.25, 0.75],
           [0.5 , 0.5 ]])
    """
    return _along("softmax", x, axis, out, threads)


@served
def log_softmax(
    x: ArrayLike,
    axis: int | tuple[int, ...] = -1,
    out: OutArray | None = None,
    *,
    threads: int | None = None,
) -> Request[Array]:
    """x - max x - log Σ e^(x - max x) along an axis: the logarithm of `softmax`, finite even if that is 0.

    Parameters
    ----------
    x, axis, out, threads : as of `softmax`.

    Returns
    -------
    numpy.ndarray of x's shape and type, or `out`
        NaN where softmax is; -inf where x is -inf beside finite numbers.

    Raises
    ------
    The same as `softmax`.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> np.exp(tw.log_softmax([0.0, 1000.0]))
    array([0., 1.])
    """
    return _along("log_softmax", x, axis, out, threads)


@overload
def layer_norm(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    axis: int | tuple[int, ...] = -1,
    eps: float = 1e-5,
    *,
    out: OutArray | None = None,
    return_stats: Literal[False] = False,
    threads: int | None = None,
) -> NDArray[Any]: ...
@overload
def layer_norm(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    axis: int | tuple[int, ...] = -1,
    eps: float = 1e-5,
    *,
    out: OutArray | None = None,
    return_stats: Literal[True],
    threads: int | None = None,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]: ...
@served
def layer_norm(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    axis: int | tuple[int, ...] = -1,
    eps: float = 1e-5,
    *,
    out: OutArray | None = None,
    return_stats: bool = False,
    threads: int | None = None,
) -> Request[Any]:
    """(x - mean) / √(variance + eps) · weight + bias over one axis or several.

    Parameters
    ----------
    x, out, threads : as of `softmax`.
    weight, bias : array_like, optional
        Of the shape of the axes that are normalised, in their order in x; of x's type or float32, others are
        converted.
    axis : int or tuple of int
        What mean and variance, of n elements and not n - 1, are taken over.
    eps : float
        0 or more.
    return_stats : bool
        Whether the mean and the inverse deviation of each line are returned too, which takes a few more
        readings of x.

    Returns
    -------
    numpy.ndarray of x's shape and type, or `out`
        Computed in float32 (of float64 in float64) and rounded once. NaN where a line of x has NaN or inf.
    mean, inverse_deviation : numpy.ndarray, with `return_stats` only
        Mean and 1 / √(variance + eps), float32 (float64 for float64), of x's shape with length 1 in the
        axes that are normalised: Mean and InvStdDev of ONNX, as torch.native_layer_norm has them.

    Raises
    ------
    NormOperandShape, NegativeEps, InvalidScalar, and what `softmax` raises
        Each before `out` changes.

    Notes
    -----
    Mean and variance by the corrected two-pass algorithm: nothing cancels where the mean is large.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.layer_norm(np.array([[1.0, 3.0], [10.0, 30.0]]), bias=[0.0, 5.0], eps=0)
    array([[-1.,  6.],
           [-1.,  6.]])

    Source: Ba, Kiros and Hinton, Layer Normalization, arXiv:1607.06450.
    """
    given = {"weight": weight, "bias": bias, "eps": eps}
    return _along("layer_norm", x, axis, out, threads, return_stats=return_stats, **given)


@overload
def rms_norm(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    axis: int | tuple[int, ...] = -1,
    eps: float | None = None,
    *,
    out: OutArray | None = None,
    return_stats: Literal[False] = False,
    threads: int | None = None,
) -> NDArray[Any]: ...
@overload
def rms_norm(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    axis: int | tuple[int, ...] = -1,
    eps: float | None = None,
    *,
    out: OutArray | None = None,
    return_stats: Literal[True],
    threads: int | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@served
def rms_norm(
    x: ArrayLike,
    weight: ArrayLike | None = None,
    axis: int | tuple[int, ...] = -1,
    eps: float | None = None,
    *,
    out: OutArray | None = None,
    return_stats: bool = False,
    threads: int | None = None,
) -> Request[Any]:
    """x / √(mean of x² + eps) · weight over one axis or several.

    Parameters
    ----------
    x, weight, axis, out, threads : as of `layer_norm`.
    eps : float, optional
        0 or more; by default, as in PyTorch, the distance from 1 to the next number of x's type.
    return_stats : bool
        Whether the inverse root of each line is returned too, which takes a few more readings of x.

    Returns
    -------
    numpy.ndarray of x's shape and type, or `out`
    inverse_root : numpy.ndarray, with `return_stats` only
        1 / √(mean of x² + eps); type and shape as of `layer_norm`.

    Raises
    ------
    What `layer_norm` raises.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.rms_norm(np.array([1.0, 7.0]), eps=0)  # the mean of 1 and 49 is 5²
    array([0.2, 1.4])

    Source: Zhang and Sennrich, Root Mean Square Layer Normalization, arXiv:1910.07467.
    """
    return _along("rms_norm", x, axis, out, threads, return_stats=return_stats, weight=weight, eps=eps)


def _along(
    op: str, x: Any, axis: Any, out: Any, threads: int | None, *, return_stats: bool = False, **given: Any
) -> Request[Any]:
    """Call one function along axes."""
    stats = return_stats is not False and check_flag(return_stats, "return_stats")
    prepared = prepare_with_stats if stats else prepare
    return Request(partial(prepared, RowOp(op), x, axis, out, **given), threads)
