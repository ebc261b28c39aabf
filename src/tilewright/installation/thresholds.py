"""Multiply-adds from which a kernel is used in place of NumPy's loop, as measured (benchmarks/install.py)."""

from __future__ import annotations

from tilewright.installation.rows import BLAS_LETTERS, Product

#: More than any call has.
NEVER = (1 << 63) - 1

#: Of types that NumPy hands to BLAS, and of those that it multiplies in a loop of its own.
_BLAS, _OTHERS = 4096, 256


def least_work(product: Product, letter: str) -> int:
    """The limit of a function for a type, by NumPy's letter."""
    if product.conjugates and letter in "FD":
        return NEVER  # kernels do not conjugate
    return _BLAS if letter in BLAS_LETTERS else _OTHERS
