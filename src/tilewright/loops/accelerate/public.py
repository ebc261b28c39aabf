"""`tilewright.accelerate`: a decorator that replaces matrix products written as loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from tilewright.loops.accelerate.rewrite import FunctionReport, accelerated, report_of
from tilewright.threads.pool import check_threads

#: Any function; the type is preserved.
F = TypeVar("F", bound=Callable[..., Any])


#: In the place of the function of a decorator with options.
_LATER: Any = object()


class Accelerate:
    """A decorator that replaces loop nests by matrix products: `tilewright.accelerate`.

    Nests of ``for i in range(...)`` over elements of NumPy arrays that are matrix products, batched products,
    matrix-vector products, SYRK and SYR2K of a triangle, or contractions of any number of loops become one
    call each. Nests of several statements, with at least one product among them, become operations on whole
    arrays. Everything else in the function is unchanged.

    Parameters
    ----------
    function : a function, method, `staticmethod` or `classmethod` whose source is available; or the result of
        ``numba.njit``, whose LLVM IR is searched under the rules of `tilewright opt`: sums of floats need
        ``fastmath=True``. Without it, the result is a decorator: ``@tw.accelerate(threads=2)``.
    threads : threads of a product, at most; None: `tilewright.get_num_threads`. Of a Numba function, products
        run on one thread. Results do not depend on it.

    Returns
    -------
    A function with the same signature, name, defaults and closure. `__wrapped__` is the original. For a Numba
    function, another Numba function without a disk cache.

    Raises
    ------
    NotAccelerated : the argument is neither.
    InvalidThreads : `threads` is not a valid number.
    ThreadsInNumba : several threads for a Numba function.
    SourceMissing : the source cannot be read.

    Notes
    -----
    A nest runs as written if its values do not meet the conditions of the product: arrays of mixed kinds,
    subclasses of `numpy.ndarray`, lists; subscripts that are out of range or change sign; a result that
    overlaps a factor; too few iterations. The logger "tilewright" and `accelerate.report` say so.
    Floating-point sums are reassociated, and may be accumulated in a wider type. Attributes are read once,
    not in every iteration.

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

    @overload
    def __call__(self, function: F, *, threads: int | None = None) -> F: ...

    @overload
    def __call__(self, *, threads: int | None = None) -> Callable[[F], F]: ...

    def __call__(self, function: Any = _LATER, *, threads: int | None = None) -> Any:
        """The function with its nests replaced."""
        number = None if threads is None else check_threads("threads", threads)
        if function is _LATER:
            return lambda given: accelerated(given, number)
        return accelerated(function, number)

    def report(self, function: Callable[..., Any]) -> FunctionReport:
        """The outcome for each nest: replaced, with `einsum` subscripts, or left, with the reason.

        Parameters
        ----------
        function : the result of `accelerate`; or a plain Python function, for what would happen to it. A
            Numba function has nests once it has been compiled.

        Returns
        -------
        A tuple of records with `line`, `replaced`, `subscripts`, `text` and `as_written`: why the loops ran
        as written, the last time they did. It prints as one line for each nest.

        Raises
        ------
        NotAccelerated : for any other object.

        Examples
        --------
        >>> import tilewright as tw
        >>> @tw.accelerate
        ... def prefix_sums(x):
        ...     for i in range(1, len(x)):
        ...         x[i] += x[i - 1]
        >>> print(tw.accelerate.report(prefix_sums))  # doctest: +ELLIPSIS
        line 3: left, since it does not sum products of two elements...
        """
        return report_of(function)


accelerate = Accelerate()
