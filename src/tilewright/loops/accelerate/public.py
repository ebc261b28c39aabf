"""Python functions in, functions out: `accelerate` replaces the loops in them that multiply matrices.

What a call needs is imported by the first call, as in `api.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from tilewright.preparing import importing

if TYPE_CHECKING:
    from tilewright.loops.accelerate.rewrite import FunctionReport

#: Any function: what comes back is called as it is.
F = TypeVar("F", bound=Callable[..., Any])


class Accelerate:
    """A decorator that replaces loop nests by products: `tilewright.accelerate`.

    Nests of ``for i in range(...)`` over elements of NumPy arrays that are matrix products, products of
    stacks, of matrices and vectors, SYRK and SYR2K of a triangle, or contractions of any number of loops
    become one call each. Everything else in the function stays as it is.

    Parameters
    ----------
    function : a function, method, `staticmethod` or `classmethod` whose source is there; or what
        ``numba.njit`` has returned, of whose LLVM IR nests become kernels, with what `tilewright opt` asks
        of them: sums of floats need ``fastmath=True``.

    Returns
    -------
    A function of the same signature, name, defaults and closure. `__wrapped__` is the original. For a
    function of Numba's another one of Numba's, without its cache on disk.

    Raises
    ------
    NotAccelerated : for something that is neither.
    SourceMissing : where the source cannot be read.

    Notes
    -----
    A nest runs as it is written where its values are not what the product needs: arrays of mixed kinds,
    subclasses of `numpy.ndarray`, lists; subscripts that leave an array or wrap around its end in the
    middle; a result that shares memory with a factor; loops without, or with few, iterations. The logger
    "tilewright" says so, and `accelerate.report`. Sums of floats are added in another order than the loops
    add them, and may be kept in a wider type. Attributes are read once and not in every iteration.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> @tw.accelerate
    ... def product(A, B):
    ...     C = np.zeros((A.shape[0], B.shape[1]))
    ...     for i in range(A.shape[0]):
    ...         for j in range(B.shape[1]):
    ...             for k in range(A.shape[1]):
    ...                 C[i, j] += A[i, k] * B[k, j]
    ...     return C
    >>> product(np.ones((2, 3)), np.ones((3, 4))).shape
    (2, 4)
    >>> [nest.subscripts for nest in tw.accelerate.report(product)]
    ['ik,kj->ij']

    Source: Kuzma et al., Softw. Pract. Exper. 2023, doi:10.1002/spe.3214, §4.1.2, for loops in LLVM IR.
    """

    def __call__(self, function: F) -> F:
        """The function with its nests replaced."""
        with importing:
            from tilewright.loops.accelerate.rewrite import accelerated

        result: F = accelerated(function)
        return result

    def report(self, function: Callable[..., Any]) -> FunctionReport:
        """What became of each nest: replaced, with the subscripts of `einsum`, or left, with the reason.

        Parameters
        ----------
        function : what `accelerate` has returned, or a function of Python as it was written: then what would
            become of it. One of Numba's has nests once it has been compiled.

        Returns
        -------
        A tuple of records with `line`, `replaced`, `subscripts`, `text` and `as_written`, why the loops ran
        as they are written when they last did. Printed, it has a line for each nest.

        Raises
        ------
        NotAccelerated : for any other function.

        Examples
        --------
        >>> import tilewright as tw
        >>> @tw.accelerate
        ... def prefix_sums(x):
        ...     for i in range(1, len(x)):
        ...         x[i] += x[i - 1]
        >>> print(tw.accelerate.report(prefix_sums))  # doctest: +ELLIPSIS
        line 3: left, since it adds up no products of two elements...
        """
        with importing:
            from tilewright.loops.accelerate.rewrite import report_of

        return report_of(function)


accelerate = Accelerate()
