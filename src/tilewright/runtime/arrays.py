"""Products of any arrays: conversion, promotion, broadcasting, overlap; ends in the same kernels."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tilewright.errors import (
    BatchMismatch,
    InvalidOperand,
    MissingOut,
    OutDtype,
    OutNotArray,
    OutReadOnly,
    OutShape,
    ScalarOperand,
    ShapeMismatch,
    SizeOverflow,
    UnsafeCast,
    UnsupportedDtype,
)
from tilewright.runtime.gemm import make_wanted, matmul_kernel, scratch_pool
from tilewright.runtime.operands import real_number, whole_strides
from tilewright.spec.dtype import GEMM_DTYPES, DType
from tilewright.spec.problem import MAX_SIZE

Array: TypeAlias = NDArray[Any]

logger = logging.getLogger("tilewright")


def _convert(value: Any, name: str) -> Array:
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InvalidOperand(name=name, reason=str(error)) from error
    if array.ndim == 0:
        raise ScalarOperand(name=name)
    return array


def find_dtype(dtype: np.dtype[Any]) -> DType:
    """The kernel's element type for a NumPy dtype; `UnsupportedDtype` names what is supported."""
    for candidate in GEMM_DTYPES:
        if candidate.numpy == dtype.newbyteorder("="):
            return candidate
    raise UnsupportedDtype(dtype=dtype, supported=", ".join(map(str, GEMM_DTYPES)))


def result_dtype(a: Array, b: Array, out: Array | None, dtype: DTypeLike | None) -> np.dtype[Any]:
    """The element type a product is computed in.

    NumPy's promotion of the inputs, or `dtype`; an `out` that holds more asks for the wider type.

    >>> result_dtype(np.ones(1, "f4"), np.ones(1, "i4"), None, None)
    dtype('float64')
    """
    supported = ", ".join(map(str, GEMM_DTYPES))
    if dtype is not None:
        try:
            return np.dtype(dtype).newbyteorder("=")
        except TypeError:
            raise UnsupportedDtype(dtype=repr(dtype), supported=supported) from None
    try:
        promoted = np.result_type(a, b).newbyteorder("=")
    except TypeError:  # no common dtype, as for records and dates
        raise UnsupportedDtype(dtype=f"common to {a.dtype} and {b.dtype}", supported=supported) from None
    if out is not None and np.can_cast(promoted, out.dtype, "safe"):
        wider = out.dtype.newbyteorder("=")
        if any(candidate.numpy == wider for candidate in GEMM_DTYPES):
            return wider
    return promoted


@dataclass(frozen=True)
class Shapes:
    """Shapes of one product after broadcasting, as NumPy's matmul defines them.

    Attributes
    ----------
    batch : broadcast batch axes.
    m, n, k : sizes of each product.
    result : shape of the result (1-D operands lose their axis).
    """

    batch: tuple[int, ...]
    m: int
    n: int
    k: int
    result: tuple[int, ...]


def product_shapes(a: tuple[int, ...], b: tuple[int, ...]) -> Shapes:
    """The shapes of ``a @ b``.

    Raises
    ------
    ShapeMismatch, BatchMismatch, SizeOverflow

    >>> product_shapes((5, 1, 2, 3), (7, 3, 4)).result
    (5, 7, 2, 4)
    >>> product_shapes((3,), (3, 4)).result
    (4,)
    """
    inner_b = b[-2] if len(b) > 1 else b[0]
    if a[-1] != inner_b:
        raise ShapeMismatch(a=a, b=b, inner_a=a[-1], inner_b=inner_b)
    try:
        batch = np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        raise BatchMismatch(a=a[:-2], b=b[:-2]) from None
    m = a[-2] if len(a) > 1 else 1
    n = b[-1] if len(b) > 1 else 1
    result = batch + ((m,) if len(a) > 1 else ()) + ((n,) if len(b) > 1 else ())
    total = math.prod(result)
    if total > MAX_SIZE // 16:  # 16 bytes: the largest element
        raise SizeOverflow(what="matmul: the result", found=total, limit=MAX_SIZE // 16)
    return Shapes(batch, m, n, a[-1], result)


def check_out(out: Any, shape: tuple[int, ...], computed: np.dtype[Any]) -> Array:
    """`out` itself, or the error that says why it cannot take the result."""
    if not isinstance(out, np.ndarray):
        raise OutNotArray(found=type(out).__name__)
    if out.shape != shape:
        raise OutShape(found=out.shape, required=shape)
    if not out.flags.writeable:
        raise OutReadOnly
    if not np.can_cast(computed, out.dtype, "same_kind"):
        raise OutDtype(found=out.dtype, required=computed)
    return out


def _as_operand(array: Array, dtype: np.dtype[Any], name: str) -> Array:
    """The array in the kernel's dtype: itself where it is native, aligned and whole-strided."""
    if not np.can_cast(array.dtype, dtype, "same_kind"):
        raise UnsafeCast(name=name, found=array.dtype, required=str(dtype))
    direct = array.dtype == dtype and array.flags.aligned
    if direct and whole_strides(array):
        return array
    return np.array(array, dtype=dtype, order="K", copy=True)


def _direct_out(out: Array, dtype: np.dtype[Any], a: Array, b: Array) -> bool:
    """Whether a kernel may write into `out`: same dtype, aligned, sharing nothing with an input."""
    return (
        out.dtype == dtype
        and out.dtype.isnative
        and out.flags.aligned
        and whole_strides(out)
        and not np.may_share_memory(out, a)
        and not np.may_share_memory(out, b)
    )


def _merge_rows(a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
    """Batches of A over one shared B as one tall product, where no copy is needed.

    Before: a (batch, m, k), b (k, n), c (batch, m, n). After: a (batch·m, k), c (batch·m, n).
    """
    if b.ndim != 2 or a.ndim <= 2 or a.size == 0 or c.size == 0:
        return a, b, c
    try:
        tall_a, tall_c = a.view(), c.view()
        tall_a.shape = (-1, a.shape[-1])
        tall_c.shape = (-1, c.shape[-1])
    except AttributeError:  # NumPy's answer where the axes do not merge without a copy
        return a, b, c
    return tall_a, b, tall_c


class Product(NamedTuple):
    """One call of `matmul`, checked: matrices in the kernel's dtype, and what had to be copied for that.

    Attributes
    ----------
    element : the element type it is computed in.
    a, b, c : (..., m, k), (..., k, n) and (..., m, n); c is a view of `target`.
    alpha, beta : the factors.
    target : where the kernel writes.
    given : the caller's `out`, or None.
    copies : each copy, in words.
    """

    element: DType
    a: Array
    b: Array
    c: Array
    alpha: float
    beta: float
    target: Array
    given: Array | None
    copies: tuple[str, ...]

    def matrices(self) -> tuple[Array, Array, Array]:
        """a, b and c with rows merged and batch axes broadcast: what `GemmKernel.run_batch` takes."""
        a, b, c = _merge_rows(self.a, self.b, self.c)
        batch = c.shape[:-2]
        if a.shape[:-2] != batch:
            a = np.broadcast_to(a, (*batch, *a.shape[-2:]))
        if b.shape[:-2] != batch:
            b = np.broadcast_to(b, (*batch, *b.shape[-2:]))
        return a, b, c


def prepare(
    a: Any,
    b: Any,
    out: Any = None,
    *,
    dtype: DTypeLike | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
) -> Product:
    """Every check and conversion of `matmul`; `out` has not changed afterwards."""
    array_a, array_b = _convert(a, "a"), _convert(b, "b")
    alpha, beta = real_number(alpha, "alpha"), real_number(beta, "beta")
    if out is not None and not isinstance(out, np.ndarray):
        raise OutNotArray(found=type(out).__name__)
    computed = result_dtype(array_a, array_b, out, dtype)
    shapes = product_shapes(array_a.shape, array_b.shape)
    element = find_dtype(computed)
    if out is None and beta != 0:
        raise MissingOut(beta=beta)
    given: Array | None = None if out is None else check_out(out, shapes.result, computed)
    copies = []
    operands = []
    for name, array in (("a", array_a), ("b", array_b)):
        operand = _as_operand(array, computed, name)
        operands.append(operand)
        if operand is not array:
            why = "" if array.dtype != computed else ", misaligned or strided by parts of elements"
            copies.append(f"{name} is copied: {array.dtype} to {computed}{why}")
    operand_a, operand_b = operands
    if given is not None and _direct_out(given, computed, operand_a, operand_b):
        target = given
    else:
        target = np.empty(shapes.result, computed)
        if beta != 0:
            target[...] = given
        if given is not None:
            copies.append(
                "the result is copied into out: another dtype, misaligned, or memory shared with a or b"
            )
    a_matrix = operand_a[np.newaxis, :] if operand_a.ndim == 1 else operand_a
    b_matrix = operand_b[:, np.newaxis] if operand_b.ndim == 1 else operand_b
    c_matrix = target
    if operand_b.ndim == 1:
        c_matrix = c_matrix[..., np.newaxis]
    if operand_a.ndim == 1:
        c_matrix = c_matrix[..., np.newaxis, :]
    return Product(element, a_matrix, b_matrix, c_matrix, alpha, beta, target, given, tuple(copies))


def matmul(
    a: Any,
    b: Any,
    out: Any = None,
    *,
    dtype: DTypeLike | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
) -> Array:
    """alpha · a @ b + beta · out for whatever NumPy's matmul accepts; see `tilewright.matmul`."""
    product = prepare(a, b, out, dtype=dtype, alpha=alpha, beta=beta)
    if product.copies:
        logger.debug("matmul: %s", "; ".join(product.copies))
    kernel = matmul_kernel(product.element)
    with scratch_pool().block() as scratch:
        kernel.run_batch(*product.matrices(), product.alpha, product.beta, scratch)
    make_wanted()
    given, target = product.given, product.target
    if given is None:
        scalar: Array = target[()]  # two 1-D operands give a scalar, as in NumPy
        return scalar
    if target is not given:
        np.copyto(given, target, casting="same_kind")
    return given
