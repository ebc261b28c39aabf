"""Arrays in, arrays out: the public functions of matrices of which one triangle is computed or read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.calls.recording import repeatable
from tilewright.calls.repeated import repeated
from tilewright.ops.triangular import trmm_call as implementation
from tilewright.ops.triangular.syr2k_call import symmetric
from tilewright.threads.pool import limited

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tilewright.typing import ArrayLike, Number, OutArray, SideName


@repeated
def syrk(
    a: ArrayLike,
    out: OutArray | None = None,
    *,
    alpha: Number = 1,
    beta: Number = 0,
    lower: bool = True,
    threads: int | None = None,
) -> NDArray[Any]:
    """One triangle of alpha * a @ a.T + beta * out: half the work of the product.

    Parameters
    ----------
    a : array_like
        Shape (..., n, k); axes before the last two are those of a batch. Any strides and byte order, any
        element type that `matmul` multiplies. For ``a.T @ a`` pass ``a.T``.
    out : numpy.ndarray, optional
        Receives the triangle; of shape (..., n, n), any strides. The rest of it, on the other side of the
        diagonal, is neither read nor written. May share memory with a. An out of a wider type asks for that
        type (int8 into int32, bfloat16 into float32).
    alpha, beta : float, of complex products complex, of integers integers
        beta = 0 does not read out; alpha = 0 does not read a.
    lower : bool
        Whether the triangle is the lower one or the upper; the diagonal belongs to both.
    threads : int, optional
        The most threads of this call; as many as `set_num_threads` says by default.

    Returns
    -------
    numpy.ndarray of shape (..., n, n), or `out`
        Without out, the other triangle is 0.

    Raises
    ------
    FactorAxes, InvalidOperand, InvalidScalar, OutShape, OutDtype, OutReadOnly, OutNotArray,
    OutOverlapsItself, MissingOut, UnsupportedDtype, SizeOverflow, InvalidThreads, ScratchAllocation
        Each before `out` changes.

    Notes
    -----
    Complex matrices are transposed and not conjugated. An element has the same bits in either triangle, in
    any layout, with any threads.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.syrk(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[ 5.,  0.],
           [11., 25.]])

    Source: Kuzma et al., Softw. Pract. Exper. 2023, doi:10.1002/spe.3214, §5.1.
    """
    with limited(threads):
        found = symmetric("syrk", [a], out, alpha=alpha, beta=beta, lower=lower)
    repeatable()
    return found


@repeated
def syr2k(
    a: ArrayLike,
    b: ArrayLike,
    out: OutArray | None = None,
    *,
    alpha: Number = 1,
    beta: Number = 0,
    lower: bool = True,
    threads: int | None = None,
) -> NDArray[Any]:
    """One triangle of alpha * (a @ b.T + b @ a.T) + beta * out: half the work of the two products.

    Parameters
    ----------
    a, b : array_like
        Shape (..., n, k), of the same n and k; axes before the last two broadcast. Any strides and byte
        order, any element types that `matmul` multiplies.
    out, alpha, beta, lower, threads : as of `syrk`.

    Returns
    -------
    numpy.ndarray of shape (..., n, n), or `out`
        Without out, the other triangle is 0.

    Raises
    ------
    FactorShapes, BatchMismatch, and what `syrk` raises
        Each before `out` changes.

    Notes
    -----
    Both products go into the same registers, so that each element of the result is loaded and stored once for
    a block of depths. Complex matrices are transposed and not conjugated (no her2k). An element has the same
    bits in either triangle, in any layout, with any threads.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> a, b = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> tw.syr2k(a, b)
    array([[2., 0.],
           [5., 8.]])

    Source: Kuzma et al., Softw. Pract. Exper. 2023, doi:10.1002/spe.3214, §5.1.
    """
    with limited(threads):
        found = symmetric("syr2k", [a, b], out, alpha=alpha, beta=beta, lower=lower)
    repeatable()
    return found


@repeated
def trmm(
    a: ArrayLike,
    b: ArrayLike,
    out: OutArray | None = None,
    *,
    alpha: Number = 1,
    lower: bool = True,
    unit: bool = False,
    side: SideName = "left",
    threads: int | None = None,
) -> NDArray[Any]:
    """alpha * T @ b, or alpha * b @ T, where T is one triangle of a: half the work of the product.

    Parameters
    ----------
    a : array_like
        Square: shape (..., m, m) on the left, (..., n, n) on the right. Elements outside the triangle have
        no meaning. For the transposed triangle pass ``a.T`` and the other `lower`.
    b : array_like
        Shape (..., m, n); axes before the last two broadcast. Any strides and byte order, any element types
        that `matmul` multiplies.
    out : numpy.ndarray, optional
        Receives the result, of its shape; may be b itself, or share memory with a and b. An out of a wider
        type asks for that type.
    alpha : float, of complex products complex, of integers an integer
        0 does not read a and b.
    lower : bool
        Whether T is the lower triangle of a or the upper.
    unit : bool
        Whether the diagonal of T is 1, regardless of the elements of a.
    side : str
        "left" or "right": the side of T in the product.
    threads : int, optional
        The most threads of this call; as many as `set_num_threads` says by default.

    Returns
    -------
    numpy.ndarray of shape (..., m, n), or `out`

    Raises
    ------
    FactorAxes, TriangleNotSquare, TriangleShape, BatchMismatch, InvalidOperand, InvalidScalar, InvalidChoice,
    OutShape, OutDtype, OutReadOnly, OutNotArray, OutOverlapsItself, UnsupportedDtype, SizeOverflow,
    InvalidThreads, ScratchAllocation
        Each before `out` changes.

    Notes
    -----
    Elements of b outside the triangle's range are not multiplied: a NaN there does not propagate, as it
    would with explicit zeros. Types of fewer bits than their sums are widened as they are packed.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> a, b = np.array([[2.0, 99.0], [3.0, 4.0]]), np.array([[1.0, 10.0], [0.0, 1.0]])
    >>> tw.trmm(a, b)
    array([[ 2., 20.],
           [ 3., 34.]])

    Source: Dongarra et al., A Set of Level 3 Basic Linear Algebra Subprograms, ACM TOMS 16(1), 1990.
    """
    with limited(threads):
        found = implementation.trmm(a, b, out, alpha=alpha, lower=lower, unit=unit, side=side)
    repeatable()
    return found
