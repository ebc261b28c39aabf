"""Multiply-adds from which a kernel is used in place of NumPy's loop, as measured (benchmarks/install.py)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.installation.rows import BLAS_LETTERS, ProductUfunc

#: More than any call has.
NEVER = (1 << 63) - 1

#: Multiply-adds of a call: of types that NumPy hands to BLAS, of integers, of float16, its slowest type.
_BLAS, _INTEGERS, _HALF = 4096, 512, 64

#: Multiply-adds of each of many small products that become one, for which BLAS would be called each time.
MOST_JOINED = 1024


def least_work(product: ProductUfunc, letter: str) -> int:
    """The limit of a function for a type, by NumPy's letter."""
    if product.conjugates and letter in "FD":
        return NEVER  # kernels do not conjugate
    return _BLAS if letter in BLAS_LETTERS else least_product(letter)


def least_product(letter: str) -> int:
    """Multiply-adds of one product of a batch that repay the call of a kernel."""
    if letter in BLAS_LETTERS:
        return 1
    return _HALF if letter == "e" else _INTEGERS


class ShapeThresholds(NamedTuple):
    """The least shapes of a product that kernels take, after batches over one matrix have become one product.

    Attributes
    ----------
    least_product : multiply-adds.
    least_depth : of the sums; for few of them, storing C is the work, and BLAS stores it as fast.
    least_side : of rows and of columns; BLAS has routines for vectors.
    least_columns : of C, except where it has few rows.
    few_rows : as many.
    """

    least_product: int
    least_depth: int
    least_side: int
    least_columns: int
    few_rows: int


#: Bytes of a row of C: less leaves most of a register tile of AVX2 or AVX-512 unused.
_ROW_BYTES = 64


def shapes_of(letter: str) -> ShapeThresholds:
    """The shapes of a type, by NumPy's letter; its own loops, without BLAS, are slower at every shape."""
    if letter not in BLAS_LETTERS:
        return ShapeThresholds(least_product(letter), 1, 1, 1, 1)
    return ShapeThresholds(least_product(letter), 16, 2, _ROW_BYTES // np.dtype(letter).itemsize, 16)
