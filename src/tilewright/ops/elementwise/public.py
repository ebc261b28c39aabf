"""The public functions of single elements, as builtins whose repeated calls are machine code."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, get_args

from tilewright.ops.elementwise.call import prepare_each
from tilewright.ops.rows.kernel import Request, served
from tilewright.spec.arguments import check_word
from tilewright.spec.functions import UnaryOp
from tilewright.typing import GeluForm

if TYPE_CHECKING:
    from tilewright.calls.operands import Array
    from tilewright.typing import ArrayLike, OutArray, UnaryName


@served
def relu(x: ArrayLike, out: OutArray | None = None, *, threads: int | None = None) -> Request[Array]:
    """max(x, 0).

    Parameters
    ----------
    x : array_like
        Any shape, any strides. float32, float64, bfloat16 or float16; integers become the floats that NumPy's
        functions make of them.
    out : numpy.ndarray, optional
        Receives the result; of its shape. May be x itself, or share memory with it.
    threads : int, optional
        The most threads of this call; as many as `set_num_threads` says by default.

    Returns
    -------
    numpy.ndarray of x's shape, strides and type, or `out`
        Computed in float32 (of float64 in float64) and rounded once; NaN where x is NaN.

    Raises
    ------
    UnsupportedDtype, InvalidOperand, OutShape, OutDtype, OutReadOnly, OutNotArray, OutOverlapsItself,
    InvalidThreads
        Each before `out` changes.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.relu(np.array([-1.0, 2.0]))
    array([0., 2.])
    """
    return _each("relu", x, out, threads)


@served
def exp(x: ArrayLike, out: OutArray | None = None, *, threads: int | None = None) -> Request[Array]:
    """e^x.

    Takes, gives and raises what `relu` does.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.exp(np.array([0.0, -np.inf]))
    array([1., 0.])
    """
    return _each("exp", x, out, threads)


@served
def tanh(x: ArrayLike, out: OutArray | None = None, *, threads: int | None = None) -> Request[Array]:
    """The hyperbolic tangent of x.

    Takes, gives and raises what `relu` does.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.tanh(np.array([0.0, np.inf]))
    array([0., 1.])
    """
    return _each("tanh", x, out, threads)


@served
def sigmoid(x: ArrayLike, out: OutArray | None = None, *, threads: int | None = None) -> Request[Array]:
    """1 / (1 + e^-x).

    Takes, gives and raises what `relu` does.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.sigmoid(np.array([0.0, np.inf]))
    array([0.5, 1. ])
    """
    return _each("sigmoid", x, out, threads)


@served
def silu(x: ArrayLike, out: OutArray | None = None, *, threads: int | None = None) -> Request[Array]:
    """x · sigmoid(x); -0, the limit, where x is -inf.

    Takes, gives and raises what `relu` does.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.silu(np.array([0.0, 40.0]))
    array([ 0., 40.])
    """
    return _each("silu", x, out, threads)


@served
def erf(x: ArrayLike, out: OutArray | None = None, *, threads: int | None = None) -> Request[Array]:
    """The error function of x.

    Takes, gives and raises what `relu` does.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.erf(np.array([0.0, np.inf]))
    array([0., 1.])
    """
    return _each("erf", x, out, threads)


@served
def gelu(
    x: ArrayLike,
    approximate: GeluForm = "none",
    out: OutArray | None = None,
    *,
    threads: int | None = None,
) -> Request[Array]:
    """x·Φ(x), Φ the normal distribution; -0, the limit, where x is -inf.

    Parameters
    ----------
    approximate : "none", or "tanh" for x·(1 + tanh(√(2/π)·(x + 0.044715·x³)))/2.
    x, out, threads : as of `relu`.

    Returns
    -------
    numpy.ndarray of x's shape, strides and type, or `out`

    Raises
    ------
    InvalidChoice, and what `relu` raises.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.gelu(np.array([-np.inf, 0.0, 9.0]))
    array([-0.,  0.,  9.])

    Source: Hendrycks and Gimpel, Gaussian Error Linear Units, arXiv:1606.08415.
    """
    return _each(_GELU_FORMS[check_word(approximate, "approximate", _GELU_FORMS)], x, out, threads)


#: The operation of each form of GELU, by PyTorch's words.
_GELU_FORMS: dict[str, UnaryName] = dict(zip(get_args(GeluForm), ("gelu", "gelu_tanh"), strict=True))


def _each(op: str, x: Any, out: Any, threads: int | None) -> Request[Array]:
    """One function of single elements."""
    return Request(partial(prepare_each, UnaryOp(op), x, out), threads)
