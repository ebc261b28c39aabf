"""`tilewright.matmul` as a builtin: what the package offers, and what calls inside it go through too."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.calls.afterwards import afterwards
from tilewright.calls.foreign import ANY_ORDER, SAME_KIND
from tilewright.calls.layout import native_entry_possible
from tilewright.calls.recording import new_array, repeatable, repeated_elsewhere
from tilewright.calls.repeated import Repeated, others
from tilewright.compiler.scratch import scratch_pool
from tilewright.errors import UnsupportedArgument, shown
from tilewright.ops.gemm import call as arrays
from tilewright.ops.gemm import gufuncs
from tilewright.ops.gemm.kernel import matmul_kernels, native_kernels
from tilewright.ops.gemm.native_entry import MOST_AXES, NativeMatmul
from tilewright.ops.gemm.operands import result_dtype
from tilewright.ops.packing.matrix import PackedMatrix
from tilewright.preparing import Section, importing
from tilewright.recorder import current
from tilewright.threads.pool import limited

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from tilewright.ops.linear.activations import QuantizedRows
    from tilewright.typing import ActivationName, ArrayLike, Casting, Number, Order, OutArray


_MATMUL_DOC = """\
matmul(a, b, /, out=None, *, dtype=None, alpha=1, beta=0, bias=None, activation=None, sums=None,
       threads=None, axes=None, casting='same_kind', order='K', subok=True)
--

alpha * a @ b + beta * out, for everything that numpy.matmul accepts; then bias and activation.

Parameters
----------
a, b : array_like
    Shapes (..., m, k) and (..., k, n); batch axes broadcast; a 1-D operand is a row of a or a column
    of b, and its axis is missing from the result. Any strides, alignment and byte order. Either may be a
    `PackedMatrix`, which is not packed again.
out : numpy.ndarray, optional
    Receives the result, which repeats along axes that `out` has in front. May share memory with a and b.
dtype : optional
    Element type of the result. By default that of `out`, or else NumPy's promotion of a and b. Operands are
    not rounded to a narrower result, unlike in NumPy: products are computed in the type that a, b and the
    result have in common (int32 and float32 into float16: in float64) and rounded once. Floats of up to 32
    bits are summed in float32, integers of up to 16 bits in 32 (see `sums`); integers wrap around.
alpha, beta : float, of complex products complex, of integers integers
    beta = 0 does not read out; alpha = 0 does not read a and b.
bias : array_like, optional
    Added to the sums before they are stored: (n,) or (1, n), an element for each column of the result,
    or (m, 1), one for each row; a number for all. Converted to the type of the sums.
activation : str, optional
    "relu", "gelu" (with the error function), "gelu_tanh", "silu", "sigmoid" or "tanh", of the biased sums in
    their own type, before the one conversion to the type of the result. For integers only "relu" is
    supported; it changes no unsigned result.
sums : optional
    Type that products are summed in, where it is to be wider than that: float64 for narrower floats, int64
    for narrower integers, complex128 for complex64. Elements are converted to it before they are multiplied,
    as they are packed. The result has its own type (`dtype`), to which sums are rounded once. Packed operands
    have the usual sums.
threads : int, optional
    The most threads of this call, the caller among them; as many as `set_num_threads` says by default. Small
    products take one in any case. The result has the same bits with any number.
axes : list, optional
    Which axes are those of the matrices: a tuple of two integers for a, for b and for the result; of a vector
    an integer.
casting : "same_kind", "no", "equiv", "safe" or "unsafe"
    What may be converted to the type of the result, and from that to `out`.
order : "K", "C", "F" or "A"
    Order in memory of a result that is not `out`.
subok : bool
    Whether the result is of the type of a or b where these are of a subclass of arrays.

Returns
-------
numpy.ndarray of shape (..., m, n), or `out`
    Of subclasses of arrays, and of operands whose library has functions of its own (``__array_ufunc__``),
    what `numpy.matmul` returns.

Raises
------
ShapeMismatch, BatchMismatch, ScalarOperand, InvalidOperand, InvalidScalar, OutShape, OutDtype,
OutReadOnly, OutNotArray, OutCount, MissingOut, UnsafeCast, UnsupportedDtype, UnsupportedSums, NoCommonDtype,
UnsupportedArgument, SizeOverflow, StepShape, StepDtype, InvalidChoice, InvalidThreads, ScratchAllocation,
PackedDtype, PackedRole, ForeignPacked, AxesCount, CoreAxes, InvalidAxis, AxisOutOfRange, RepeatedAxis,
InvalidFlag, UnexpectedKeyword, WrongArguments, MaskedOperand, ForeignKeyword, NoUfuncs
    Each before `out` changes.

Notes
-----
Each element is the same sum in the same order whatever the number of rows, the batch position, the
alignment or the layout; of a product with one column (n = 1) the order also depends on the layout.
Source: Kuzma et al., Softw. Pract. Exper. 2023, doi:10.1002/spe.3214, Algorithm 1.

Examples
--------
>>> import numpy as np, tilewright as tw
>>> a, b = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
>>> tw.matmul(a, b)
array([[3., 3., 3., 3.],
       [3., 3., 3., 3.]], dtype=float32)
"""

_connecting = Section()
_native: list[NativeMatmul] = []  # the one entry of this process, once made


#: Defaults of what `matmul` computes besides the product.
_STEPS: dict[str, Any] = {"alpha": 1.0, "beta": 0.0, "bias": None, "activation": None, "sums": None}


#: Types of operands that do not override NumPy's functions.
_PLAIN = {np.ndarray, list, tuple}


def multiply(
    a: ArrayLike | PackedMatrix | QuantizedRows,
    b: ArrayLike | PackedMatrix,
    /,
    out: OutArray | None = None,
    *,
    dtype: DTypeLike | None = None,
    alpha: Number = _STEPS["alpha"],
    beta: Number = _STEPS["beta"],
    bias: ArrayLike | None = None,
    activation: ActivationName | None = None,
    sums: DTypeLike | None = None,
    threads: int | None = None,
    axes: list[Any] | None = None,
    casting: Casting = SAME_KIND,
    order: Order = ANY_ORDER,
    subok: bool = True,
) -> NDArray[Any]:
    """The Python half of `matmul`: everything but plain 2-D arrays, and every error."""
    plain = axes is None and casting is SAME_KIND and order is ANY_ORDER and subok is True
    recorder = current.recorder
    inside = (
        recorder is not None and recorder.function is not multiply
    )  # of a function that is repeated itself
    with limited(threads):
        if type(a) is PackedMatrix or type(b) is PackedMatrix:
            options = gufuncs.Options(axes=axes, casting=casting, order=order, subok=subok)
            given = {} if plain else options.checked().given()
            for name, value in (given if sums is None else given | {"sums": sums}).items():
                remedy = "omit it with packed operands"
                raise UnsupportedArgument(name=name, value=shown(value), remedy=remedy)
            with importing:
                from tilewright.ops.linear import call as packed_gemm

            found = packed_gemm.matmul(
                *(a, b, out), dtype=dtype, alpha=alpha, beta=beta, bias=bias, activation=activation
            )
            repeatable()
            return found
        steps: dict[str, Any] = {
            "alpha": alpha,
            "beta": beta,
            "bias": bias,
            "activation": activation,
            "sums": sums,
        }
        if plain and type(a) in _PLAIN and type(b) in _PLAIN and (out is None or type(out) is np.ndarray):
            if threads is None and dtype is None and not _steps_given(steps) and _has_entry(a, b, out):
                repeated_elsewhere(multiply)
            result = arrays.matmul(a, b, out, dtype=dtype, **steps)
            repeatable()
        else:
            options = gufuncs.Options(dtype, axes, casting=casting, order=order, subok=subok)
            product = gufuncs.ProductFunction("matmul", partial(arrays.matmul, **steps))
            result = gufuncs.call(product, a, b, out, options, _steps_given(steps))
    if not inside:
        with afterwards("matmul"):
            _connect()
    return result


def _steps_given(steps: dict[str, Any]) -> list[str]:
    """The names of steps that are not as they are by default."""
    return [name for name, value in steps.items() if value is not _STEPS[name]]


def _has_entry(a: Any, b: Any, out: Any) -> bool:
    """Return whether the entry of plain products serves these operands: any sizes, one type."""
    given = (a, b) if out is None else (a, b, out)
    if any(type(array) is not np.ndarray for array in given):
        return False
    if out is not None and any(np.may_share_memory(out, array) for array in (a, b)):
        return False
    dtype = a.dtype
    return (
        dtype.isnative
        and dtype != np.bool_
        and all(
            array.dtype == dtype and 0 < array.ndim <= MOST_AXES and array.flags.aligned and array.size
            for array in given
        )
    )


def _connect() -> None:
    """After a product went through Python: the entry is compiled, and what exists is reachable from it."""
    pool = scratch_pool()
    if _native and not pool.table.wanted and _native[0].connected == len(matmul_kernels):
        return
    with _connecting as first:
        if not first or (not _native and not native_entry_possible()):
            return
        pool.supply()
        if not _native:
            _native.append(NativeMatmul(_builtin, pool, others))
        _native[0].connect(native_kernels())
        _native[0].connected = len(matmul_kernels)


_builtin = Repeated(multiply, "matmul", "tilewright", _MATMUL_DOC)

if TYPE_CHECKING:
    matmul = multiply
else:
    matmul = _builtin.function


def multiplied(
    a: NDArray[Any], b: NDArray[Any], out: OutArray | None = None, *, dtype: DTypeLike | None = None
) -> NDArray[Any]:
    """The product of arrays inside of another function, as an array also where both are vectors.

    It is computed by the builtin; under a recording by Python, whose kernels a recording sees.
    """
    if current.recorder is not None:
        if out is None and a.ndim == b.ndim == 1:
            out = new_array((), result_dtype(a, b, None, dtype))
        return arrays.matmul(a, b, out, dtype=dtype)
    return np.asarray(matmul(a, b, out) if dtype is None else matmul(a, b, out, dtype=dtype))
