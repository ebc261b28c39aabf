"""Arrays in, arrays out: the public functions."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from numpy.typing import DTypeLike, NDArray

from tilewright.errors import UnsupportedArgument
from tilewright.runtime import arrays
from tilewright.runtime.entry import Builtin, NativeMatmul, native_entry_possible
from tilewright.runtime.kernel import compiled_dtypes, matmul_kernel, scratch_pool
from tilewright.spec.dtype import GEMM_DTYPES

_MATMUL_DOC = """\
matmul(a, b, /, out=None, *, dtype=None, alpha=1, beta=0, bias=None, activation=None, threads=None)
--

alpha * a @ b + beta * out, for everything that numpy.matmul accepts.

Parameters
----------
a, b : array_like
    Shapes (..., m, k) and (..., k, n); batch axes broadcast; a 1-D operand is a row of a or a column
    of b, and its axis is missing from the result. Any strides, alignment and byte order.
out : numpy.ndarray, optional
    Receives the result; exactly of its shape. May share memory with a and b.
dtype : optional
    Element type of the computation and result. By default NumPy's promotion of a and b, or the
    dtype of a wider `out`. Computed in float32 or float64.
alpha, beta : float
    beta = 0 does not read out; alpha = 0 does not read a and b.
bias, activation, threads
    Reserved; only None (threads: None or 1) is accepted.

Returns
-------
numpy.ndarray of shape (..., m, n), or `out`

Raises
------
ShapeMismatch, BatchMismatch, ScalarOperand, OutShape, OutDtype, OutReadOnly, OutNotArray, MissingOut,
UnsafeCast, UnsupportedDtype, UnsupportedArgument, SizeOverflow, ScratchAllocation
    Each before `out` changes.

Notes
-----
Each element is the same sum in the same order whatever the number of rows, the batch position, the
alignment or the layout. Source: seed 004, Algorithm 1.

Examples
--------
>>> import numpy as np, tilewright as tw
>>> a, b = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
>>> tw.matmul(a, b)
array([[3., 3., 3., 3.],
       [3., 3., 3., 3.]], dtype=float32)
"""

_preparing = threading.RLock()
_native: list[NativeMatmul] = []  # the one entry of this process, once made


def _prepare_native() -> None:
    """Compiles the entry on first use, and connects every kernel that exists by now."""
    with _preparing:
        if not native_entry_possible():
            return
        pool = scratch_pool()
        pool.supply()
        if not _native:
            _native.append(NativeMatmul(_builtin, pool.table_address))


def _matmul(
    a: Any,
    b: Any,
    /,
    out: NDArray[Any] | None = None,
    *,
    dtype: DTypeLike | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    bias: Any = None,
    activation: str | None = None,
    threads: int | None = None,
) -> NDArray[Any]:
    """The Python half of `matmul`: everything but plain 2-D arrays, and every error."""
    if bias is not None:
        raise UnsupportedArgument(name="bias", value="...", remedy="add it to the result")
    if activation is not None:
        raise UnsupportedArgument(name="activation", value=activation, remedy="apply it to the result")
    if threads not in (None, 1):
        raise UnsupportedArgument(name="threads", value=threads, remedy="pass None or 1")
    result = arrays.matmul(a, b, out, dtype=dtype, alpha=alpha, beta=beta)
    _connect()
    return result


def _connect() -> None:
    """After a product went through Python: what it compiled becomes reachable natively."""
    _prepare_native()
    for index, dtype in enumerate(GEMM_DTYPES):
        if _native and not _native[0].kernels[index] and dtype in compiled_dtypes:
            _native[0].set_kernel(index, matmul_kernel(dtype).address)


_builtin = Builtin(_matmul, "matmul", "tilewright", _MATMUL_DOC)

if TYPE_CHECKING:
    matmul = _matmul
else:
    matmul = _builtin.function
