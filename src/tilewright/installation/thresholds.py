"""Multiply-adds from which a kernel is used in place of NumPy's loop, as measured (benchmarks/install.py)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

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


class Shapes(NamedTuple):
    """Shapes of one product, after batches have been merged, that kernels take.

    Attributes
    ----------
    least_depth : of the sums; for few of them, storing C is the work, and BLAS stores it as fast.
    least_side : of rows and of columns; BLAS has routines for vectors.
    least_columns : of C, except where it has few rows.
    few_rows : as many.
    """

    least_depth: int
    least_side: int
    least_columns: int
    few_rows: int


#: Bytes of a row of C: less leaves most of a register tile of AVX2 or AVX-512 unused.
_ROW_BYTES = 64

#: NumPy's own loops are slower at every shape.
_ALL = Shapes(1, 1, 1, 1)


def shapes_of(letter: str) -> Shapes:
    """The shapes of a type, by NumPy's letter."""
    if letter not in BLAS_LETTERS:
        return _ALL
    return Shapes(16, 2, _ROW_BYTES // np.dtype(letter).itemsize, 16)
