"""`install`, `uninstall` and `installed`: NumPy's own products by the kernels of this package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tilewright.installation.counts import register
from tilewright.installation.state import state

register()


def install() -> None:
    """NumPy's own products run on this package, in the whole process, until `uninstall`.

    ``a @ b``, `numpy.matmul`, `numpy.vecdot`, `numpy.matvec` and `numpy.vecmat` of all integers, float16,
    float32, float64, complex64 and complex128 take kernels of this package where these are faster, also in
    other libraries, whichever thread calls; `numpy.dot`, `numpy.inner`, `numpy.tensordot`, `numpy.einsum`,
    `numpy.kron` and `numpy.linalg.multi_dot` do where they are looked up in NumPy's modules from then on.
    Results are equal within rounding; arguments, errors, warnings and `numpy.errstate` are NumPy's.

    A second call changes nothing, and needs no second `uninstall`.

    Raises
    ------
    InstallRefused : in a subinterpreter, and where NumPy or the interpreter has an unknown layout.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> tw.install()
    >>> a = np.ones((64, 64), np.float32)
    >>> float((a @ a)[0, 0])
    64.0
    >>> tw.uninstall()
    """
    state().install()


def uninstall() -> None:
    """Gives NumPy's products back to NumPy, if `install` had replaced them.

    Calls in progress in other threads end in this package.

    Examples
    --------
    >>> import tilewright as tw
    >>> tw.install()
    >>> tw.uninstall()
    """
    state().uninstall()


@contextmanager
def installed() -> Iterator[None]:
    """Context in which NumPy's products run on this package, in all threads; see `install`.

    Contexts nest: the last one to end, in whichever thread, restores what the first one found.

    Raises
    ------
    InstallRefused : as `install`.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> with tw.installed():
    ...     float((np.ones((64, 64), np.float32) @ np.ones(64, np.float32))[0])
    64.0
    """
    state().enter()
    try:
        yield
    finally:
        state().leave()
