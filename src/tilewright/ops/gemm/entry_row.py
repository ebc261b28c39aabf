"""The record of a kernel that machine code reads."""

from __future__ import annotations

import ctypes


class EntryRow(ctypes.Structure):
    """One kernel as the entry knows it: its element types and its calling convention."""

    _fields_ = (
        ("dtypes", ctypes.c_void_p * 3),  # NumPy's descriptors of a, b and the result
        ("shifts", ctypes.c_int64 * 3),  # the sizes of their elements are powers of two
        ("default", ctypes.c_int64),  # without `out`, the result has this type
        ("code", ctypes.c_void_p),
        ("acc", ctypes.c_int64),  # of alpha and beta, in the order of ACCUMULATORS
        ("number", ctypes.c_int64),  # of the element type of A in GEMM_DTYPES
        ("exact", ctypes.c_int64),  # multiply-adds up to which kernels of exact sizes serve; -1: never
        ("ahead", ctypes.c_int64),  # bytes of a batch from which they prefetch the next product
        ("turns", ctypes.c_int64),  # one of `Turns`
        ("scratch_step", ctypes.c_int64),  # see `GemmKernel`
        ("scratch_parts", ctypes.c_int64),
    )
