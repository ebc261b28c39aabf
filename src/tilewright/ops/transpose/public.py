"""`tilewright.transpose` as a builtin: machine code repeats what Python has seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from tilewright.calls.afterwards import afterwards
from tilewright.calls.fastcall import native_entry_possible
from tilewright.llvm.builtin import Builtin
from tilewright.ops.transpose import call as moves
from tilewright.ops.transpose.native_entry import NativeTranspose
from tilewright.preparing import Section

_TRANSPOSE_DOC = """\
transpose(a, axes=None, out=None)
--

The array with its axes permuted, materialised: ``numpy.transpose`` would return a view.

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
transposed in registers (scalable.uni-jena.de/opt/pbtc, §7.3.1); where it is the same, its rows are copied.

Examples
--------
>>> import numpy as np, tilewright as tw
>>> tw.transpose(np.arange(6).reshape(2, 3))
array([[0, 3],
       [1, 4],
       [2, 5]])
"""

_connecting = Section()
_transposing: list[NativeTranspose] = []  # the one entry of this process, once made


def _transpose(a: Any, axes: Sequence[int] | None = None, out: NDArray[Any] | None = None) -> NDArray[Any]:
    """The Python half of `transpose`: everything but plain 2-D arrays, and every error."""
    result = moves.transpose(a, axes, out)
    if _transposing and _transposing[0].connected == len(moves.move_kernels):
        return result

    with afterwards("transpose"), _connecting as first:
        if first and native_entry_possible():
            if not _transposing:
                _transposing.append(NativeTranspose(_transpose_builtin))
            kernels = dict(moves.move_kernels)
            _transposing[0].connect({size: kernel.address for size, kernel in kernels.items()})
    return result


_transpose_builtin = Builtin(_transpose, "transpose", "tilewright", _TRANSPOSE_DOC)

if TYPE_CHECKING:
    transpose = _transpose
else:
    transpose = _transpose_builtin.function
