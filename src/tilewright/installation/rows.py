"""The memory that the loops of NumPy's functions read: one row for each element type, in one table."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from tilewright.ops.gemm.entry_row import EntryRow
from tilewright.ops.gemm.exact_sizes import SLOT_BITS


class ProductUfunc(NamedTuple):
    """A generalised universal function of NumPy whose loops are replaced.

    Attributes
    ----------
    name : NumPy's.
    a, b, c : which sizes the core axes of each operand have, of m, n and k; an operand's missing axes have
        length 1.
    dims : the sizes in NumPy's order, which is that of their first mention in the signature.
    conjugates : whether complex operands on the left are conjugated.
    """

    name: str
    a: str
    b: str
    c: str
    dims: str
    conjugates: bool = False


#: numpy/_core/code_generators/generate_umath.py has the signatures.
PRODUCTS = (
    ProductUfunc("matmul", "mk", "kn", "mn", "mkn"),
    ProductUfunc("vecdot", "k", "k", "", "k", conjugates=True),
    ProductUfunc("matvec", "mk", "k", "m", "mk"),
    ProductUfunc("vecmat", "k", "kn", "n", "kn", conjugates=True),
)


class ErrorRule(IntEnum):
    """How the floating-point errors of a loop are found."""

    NONE = 0  # integers have none
    FLOATS = 1


class LoopRow(EntryRow):
    """One element type: its kernel, what was there before, limits and counts of each function."""

    _fields_ = (  # type: ignore[assignment]  # those of the base class come first
        ("old", ctypes.c_void_p * len(PRODUCTS)),  # the loops that were replaced
        ("least", ctypes.c_int64 * len(PRODUCTS)),  # multiply-adds of a call from which the kernel is used
        ("least_product", ctypes.c_int64),  # `ShapeThresholds`
        ("least_depth", ctypes.c_int64),
        ("least_side", ctypes.c_int64),
        ("least_columns", ctypes.c_int64),
        ("few_rows", ctypes.c_int64),
        ("least_alone", ctypes.c_int64),
        ("taken", ctypes.c_int64 * len(PRODUCTS)),  # calls of loops
        ("passed_on", ctypes.c_int64 * len(PRODUCTS)),
        ("refused", ctypes.c_int64),  # no kernel can be had
        ("blas", ctypes.c_int64),  # whether NumPy multiplies this type by BLAS
        ("rule", ctypes.c_int64),  # an `ErrorRule`
        ("errors", ctypes.c_void_p),  # machine code of the rule
        ("parts", ctypes.c_int64),  # of an element: 2 of a complex one
    )


#: Letters of NumPy's element types whose loops are replaced.
LETTERS = "bBhHiIlLqQefdFD"

#: Those that NumPy hands to BLAS.
BLAS_LETTERS = "fdFD"


class ErrorOperands(ctypes.Structure):
    """Operands whose products raise floating-point errors, and where such products go."""

    _fields_ = (
        ("infinite", ctypes.c_double),
        ("zero", ctypes.c_double),
        ("huge", ctypes.c_double),
        ("tiny", ctypes.c_double),
        ("product", ctypes.c_double),
    )


class ExactKernel(ctypes.Structure):
    """A kernel of exact sizes: the key of its shape and its machine code, which stays for ever."""

    _fields_ = (("key", ctypes.c_int64), ("code", ctypes.c_void_p))


class ShapeCount(ctypes.Structure):
    """The key of a shape, and how many of its products had no kernel of exact sizes."""

    _fields_ = (("key", ctypes.c_int64), ("seen", ctypes.c_int64))


class LoopTable(ctypes.Structure):
    """What all loops share.

    Attributes
    ----------
    enabled : whether the loops compute at all; 0 where an older loop of somebody else's still calls them.
    raise_errors : machine code that raises floating-point errors, called by its address so that LLVM does not
        compute ahead what it computes on a condition.
    wanted : the key of a shape that has recurred often enough to have a kernel of exact sizes; or 0.
    exact : these kernels. Loops run without the GIL, so what they have read stays valid: Python alone writes
        entries, each once.
    counts : written by loops in any thread. A count that is lost in a race makes a kernel later.
    raised : an exception of a signal handler that ran in the middle of a product, with a reference; or null.
    """

    _fields_ = (
        ("enabled", ctypes.c_int64),
        ("raise_errors", ctypes.c_void_p),
        ("raised", ctypes.c_void_p),
        ("numbers", ErrorOperands),
        ("scratch_bytes", ctypes.c_int64),
        ("wanted", ctypes.c_int64),
        ("exact", ExactKernel * (1 << SLOT_BITS)),
        ("counts", ShapeCount * (1 << SLOT_BITS)),
        ("rows", LoopRow * len(LETTERS)),
    )


def new_table() -> LoopTable:
    """A table without kernels."""
    table = LoopTable()
    table.numbers = ErrorOperands(float("inf"), 0.0, 1e300, 1e-300, 0.0)
    for letter, row in zip(LETTERS, table.rows, strict=True):
        dtype = np.dtype(letter)
        row.blas = letter in BLAS_LETTERS
        row.rule = ErrorRule.FLOATS if dtype.kind in "fc" else ErrorRule.NONE
        row.parts = 2 if dtype.kind == "c" else 1
        row.shifts = (dtype.itemsize.bit_length() - 1,) * 3
    return table
