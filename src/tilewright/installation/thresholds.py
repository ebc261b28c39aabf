"""Multiply-adds from which a kernel is used in place of NumPy's loop, as measured (benchmarks/install.py)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.installation.rows import BLAS_LETTERS, ProductUfunc
from tilewright.machine.host import host_machine

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
    least_alone : multiply-adds of a product that is in no batch.
    """

    least_product: int
    least_depth: int
    least_side: int
    least_columns: int
    few_rows: int
    least_alone: int


#: Multiply-adds of a product in no batch where BLAS has kernels for small ones: OpenBLAS with AVX-512, in
#: sgemm and dgemm. NumPy's time over that under the installation was 0.90 for 16x16x16 to 32x32x32, 0.93 for
#: 64x64x64, 0.96 to 1.0 for 96x96x96, and with kernels of exact sizes 0.99, 0.99 and 1.04 for 16, 32 and 64
#: (float32, Emerald Rapids).
_SMALL_OF_BLAS, _SMALL_LETTERS, _SMALL_BITS = 80**3, "fd", 512

#: Bytes of a row of C: less leaves most of a register tile of AVX2 or AVX-512 unused.
_ROW_BYTES = 64


def shapes_of(letter: str) -> ShapeThresholds:
    """The shapes of a type, by NumPy's letter; its own loops, without BLAS, are slower at every shape."""
    if letter not in BLAS_LETTERS:
        return ShapeThresholds(least_product(letter), 1, 1, 1, 1, 1)
    has_small = letter in _SMALL_LETTERS and host_machine().isa.vector_bits == _SMALL_BITS
    least_alone = _SMALL_OF_BLAS if has_small else 1
    columns = _ROW_BYTES // np.dtype(letter).itemsize
    return ShapeThresholds(least_product(letter), 16, 2, columns, 16, least_alone)
