"""`tilewright.transpose`, a public function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from tilewright.calls.recording import repeatable
from tilewright.calls.repeated import Repeated
from tilewright.ops.transpose import call as moves
from tilewright.typing import ArrayLike, OutArray


def _transpose(a: ArrayLike, axes: Sequence[int] | None = None, out: OutArray | None = None) -> NDArray[Any]:
    """The array with its axes permuted, materialised: ``numpy.transpose`` would return a view.

    Parameters
    ----------
    a : array_like
        Any dtype, any number of axes, any strides. Objects are copied by NumPy, everything else is moved
        by compiled code, byte for byte.
    axes : sequence of int, optional
        Axis i of the result is axis ``axes[i]`` of a; by default the axes are reversed.
    out : numpy.ndarray, optional
        Receives the result; exactly of its shape and dtype, of any strides. May share memory with a.

    Returns
    -------
    numpy.ndarray, C-contiguous, or `out`

    Raises
    ------
    InvalidAxes, InvalidOperand, OutShape, OutOtherDtype, OutReadOnly, OutNotArray
        Each before `out` changes.

    Notes
    -----
    Axes that stay neighbours are moved as one. Where the innermost axes of both arrays differ, the pair is
    transposed in registers (scalable.uni-jena.de/opt/pbtc, §7.3.1); where it is the same, its rows are
    copied.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.transpose(np.arange(6).reshape(2, 3))
    array([[0, 3],
           [1, 4],
           [2, 5]])
    """
    result = moves.transpose(a, axes, out)
    repeatable()
    return result


if TYPE_CHECKING:
    transpose = _transpose
else:
    transpose = Repeated(_transpose, "transpose", "tilewright").function
