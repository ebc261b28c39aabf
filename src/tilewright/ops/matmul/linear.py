"""`tilewright.linear`: `matmul` with a weight of shape (out, in)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.calls.foreign import as_array
from tilewright.calls.repeated import repeated
from tilewright.errors import InvalidOperand, TilewrightError
from tilewright.ops.linear.activations import QuantizedRows
from tilewright.ops.matmul.public import multiply
from tilewright.ops.packing.matrix import PackedMatrix
from tilewright.typing import ActivationName, ArrayLike, OutArray


@repeated
def linear(
    x: ArrayLike | QuantizedRows,
    weight: ArrayLike | PackedMatrix,
    bias: ArrayLike | None = None,
    activation: ActivationName | None = None,
    *,
    out: OutArray | None = None,
    threads: int | None = None,
) -> NDArray[Any]:
    """activation(x @ weight.T + bias): a linear layer, in one pass over the result.

    Parameters
    ----------
    x : array_like, shape (..., in); or QuantizedRows
    weight : array_like of shape (out, in), or PackedMatrix
        A weight that is used again is packed once: ``tilewright.pack(weight.T)``, whose shape is (in, out).
    bias : array_like of shape (out,), optional
    activation : str, optional
        As in `matmul`: "relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh".
    out : numpy.ndarray of shape (..., out), optional
        Receives the result.
    threads : int, optional
        As in `matmul`.

    Returns
    -------
    numpy.ndarray of shape (..., out), or `out`
        The bits of ``matmul(x, weight.T, bias=bias, activation=activation)``, also by a packed weight.

    Raises
    ------
    InvalidOperand, and what `matmul` raises, in the words of `linear`; each before `out` changes.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> x, weight = np.ones((2, 3), np.float32), np.ones((4, 3), np.float32)
    >>> packed = tw.pack(weight.T)
    >>> tw.linear(x, packed, -np.arange(4, dtype=np.float32) * 2, "relu")
    array([[3., 1., 0., 0.],
           [3., 1., 0., 0.]], dtype=float32)
    """
    if type(weight) is PackedMatrix:
        shape: tuple[int, ...] = weight.shape
    else:
        weight = as_array(weight, "weight")
        if weight.ndim != 2:
            raise InvalidOperand(
                name="weight", reason=f"it has {weight.ndim} dimensions; a weight is (out, in)"
            )
        shape, weight = weight.shape, weight.T
    if type(x) is not np.ndarray:
        x = x if isinstance(x, QuantizedRows) else as_array(x, "x")
    try:
        return multiply(x, weight, out, bias=bias, activation=activation, threads=threads)
    except TilewrightError as error:
        error.rename({"a": "x", "b": "weight"}, b=shape)
        raise
