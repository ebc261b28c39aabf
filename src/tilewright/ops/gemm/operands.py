"""Operands of products: conversion, element types, shapes, views, and checks of `out`."""

from __future__ import annotations

import contextlib
import math
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tilewright.calls.foreign import as_array, refuse
from tilewright.calls.operands import broadcast_shapes, merges, whole_strides
from tilewright.calls.pieces import copied
from tilewright.calls.promotion import (
    computing_dtype,
    no_common_dtype,
    promoted_dtype,
    same_kind,
    signed_dtype,
)
from tilewright.errors import (
    BatchMismatch,
    InvalidChoice,
    OutDtype,
    OutReadOnly,
    OutShape,
    ScalarOperand,
    ShapeMismatch,
    UnsafeCast,
    UnsupportedDtype,
    shown,
)
from tilewright.ops.gemm.matrix_values import MOST_SCATTERED
from tilewright.spec.arguments import as_dtype, as_text, out_array
from tilewright.spec.dtype import ACCUMULATORS, C64, C128, DTYPES, GEMM_DTYPES, I8, DType, find_numpy_dtype
from tilewright.spec.problem import ProductTypes, check_elements

Array: TypeAlias = NDArray[Any]


def convert(value: Any, name: str) -> Array:
    """An operand as an array of at least one axis."""
    array = as_array(value, name)
    if array.ndim == 0:
        raise ScalarOperand(name=name)
    return array


#: NumPy types whose products are those of a type with the same bits: sums of integers wrap around.
_SAME_BITS = {"uint16": "int16", "uint32": "int32", "uint64": "int64"}


@lru_cache(maxsize=64)
def find_dtype(dtype: np.dtype[Any]) -> DType:
    """The kernel's element type for a NumPy dtype; `UnsupportedDtype` names what is supported."""
    native = dtype.newbyteorder("=")
    found = find_numpy_dtype(np.dtype(_SAME_BITS.get(native.name, native)))
    if found is None:
        raise UnsupportedDtype(dtype=dtype, supported=", ".join(map(str, GEMM_DTYPES)))
    return found


def wanted_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    """The element type that `dtype=` of a call names.

    Raises
    ------
    UnsupportedDtype

    >>> wanted_dtype(">f4"), wanted_dtype("f32")
    (dtype('float32'), dtype('float32'))
    """
    found = as_dtype(dtype)
    if found is not None:
        return found.newbyteorder("=")
    text = as_text(dtype)
    if text in DTYPES:  # "f32" or "bf16"; "i8" is NumPy's, 64 bits, as everywhere in NumPy
        return DTYPES[text].numpy
    supported = ", ".join(map(str, GEMM_DTYPES))
    raise UnsupportedDtype(dtype=shown(dtype), supported=supported)


#: The types that sums can be kept in, as NumPy names them; complex numbers are pairs of these.
_SUMS = (*ACCUMULATORS, C64, C128)


def wanted_sums(sums: DTypeLike) -> np.dtype[Any]:
    """The element type that `sums=` of a call names.

    Raises
    ------
    InvalidChoice

    >>> wanted_sums("f64"), wanted_sums("complex128")
    (dtype('float64'), dtype('complex128'))
    """
    with contextlib.suppress(UnsupportedDtype):
        found = wanted_dtype(sums)
        if find_dtype(found) in _SUMS:
            return found
    raise InvalidChoice(name="sums", found=shown(sums), allowed=", ".join(one.numpy_name for one in _SUMS))


def result_dtype(a: Array, b: Array, out: Array | None, dtype: DTypeLike | None) -> np.dtype[Any]:
    """The element type of a product.

    `dtype`, or else the type of an `out` that can take products of such operands, or else NumPy's promotion
    of the operands.

    >>> result_dtype(np.ones(1, "f4"), np.ones(1, "i4"), None, None)
    dtype('float64')
    """
    if dtype is not None:
        return wanted_dtype(dtype)
    if out is not None and all(same_kind(array.dtype, out.dtype) for array in (a, b)):
        wanted = out.dtype.newbyteorder("=")
        if wanted.name in _SAME_BITS or find_numpy_dtype(wanted) is not None:
            return wanted
    promoted = promoted_dtype(a.dtype, b.dtype)
    if promoted is None:
        raise no_common_dtype(a.dtype, b.dtype)
    return promoted


@lru_cache(maxsize=64)
def product_types(
    a: np.dtype[Any],
    b: np.dtype[Any],
    result: np.dtype[Any],
    signed: bool = False,
    sums: np.dtype[Any] | None = None,
) -> ProductTypes:
    """The kernel for two operands and a result: operands of another type than it takes are converted.

    Operands stay what they are where one kernel reads them and narrows or widens once, when it stores:
    two of one type, or two of 8 bits. Others are converted to a type that holds both and the result
    (`computing_dtype`), from which the kernel narrows.

    Parameters
    ----------
    signed : whether sums of integers are signed; they wrap to the result's type either way.
    sums : the type that sums are kept in; None for the one that follows from the operands.

    Raises
    ------
    UnsupportedDtype : if no kernel computes the result's type.
    UnsupportedSums : if no kernel keeps sums in that type.

    >>> product_types(np.dtype("i1"), np.dtype("i1"), np.dtype("i4")).name
    'i8i32'
    >>> product_types(np.dtype("f4"), np.dtype("f8"), np.dtype("f4")).name
    'f64f32'
    >>> product_types(np.dtype("f4"), np.dtype("f4"), np.dtype("f8"), sums=np.dtype("f8")).name
    'f32f64_sums_f64'
    """
    out, total = find_dtype(result), None if sums is None else find_dtype(sums)
    found = [find_numpy_dtype(dtype.newbyteorder("=")) for dtype in (a, b)]
    if found[0] is not None and found[1] is not None and result.name not in _SAME_BITS:
        left, right = found[0], found[1]
        bytewise = left.is_integer and right.is_integer and left.bits == right.bits == I8.bits
        if left == right or bytewise:
            with contextlib.suppress(UnsupportedDtype):
                return ProductTypes.parse(left, right, out, sums=total)
    wide = find_dtype(signed_dtype((a, b), result) if signed else computing_dtype((a, b), result))
    return ProductTypes.parse(wide, wide, out, sums=total)


class Shapes(NamedTuple):
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
    batch: tuple[int, ...] = ()
    if len(a) > 2 or len(b) > 2:
        found = broadcast_shapes(a[:-2], b[:-2])
        if found is None:
            raise BatchMismatch(function="matmul", a=a[:-2], b=b[:-2])
        batch = found
    m, rows = (a[-2], a[-2:-1]) if len(a) > 1 else (1, ())
    n, columns = (b[-1], b[-1:]) if len(b) > 1 else (1, ())
    result = (*batch, *rows, *columns)
    check_elements("the result", result)
    return Shapes(batch, m, n, a[-1], result)


def check_out(out: Any, shape: tuple[int, ...], computed: np.dtype[Any]) -> Array:
    """`out` itself, or the error that says why it cannot take the result."""
    array = check_array(out)
    if array.shape != shape:
        raise OutShape(found=array.shape, required=shape)
    if not array.flags.writeable:
        raise OutReadOnly
    if not same_kind(computed, array.dtype):
        raise OutDtype(found=array.dtype, required=computed)
    return array


def check_operand_cast(array: Array, computed: np.dtype[Any], name: str) -> None:
    """Refuses an operand of a kind of number that the result does not have."""
    found = array.dtype
    if found is not computed and found != computed and not same_kind(found, computed):
        raise UnsafeCast(name=name, found=array.dtype, required=str(computed))


def as_operand(array: Array, dtype: np.dtype[Any], name: str) -> Array:
    """The array in the kernel's dtype: itself where it is native, aligned and whole-strided."""
    if array.dtype == dtype:
        if whole_strides(array):
            return array
    else:
        check_operand_cast(array, dtype, name)
    return copied(array, dtype)


def direct_out(out: Array, dtype: np.dtype[Any], a: Array, b: Array) -> bool:
    """Return whether a kernel may write into `out`: same dtype, aligned, no overlap with an input."""
    return (
        out.dtype == dtype
        and out.dtype.isnative
        and whole_strides(out)
        and not np.may_share_memory(out, a)
        and not np.may_share_memory(out, b)
    )


def shape_in(out: Array | None, shapes: Shapes) -> tuple[int, ...]:
    """The shape in which a result of `shapes` is made: that of an `out` along whose first axes it repeats.

    >>> shapes = product_shapes((2, 3), (3, 4))
    >>> shape_in(np.empty((5, 2, 4)), shapes), shape_in(np.empty((5, 4)), shapes)
    ((5, 2, 4), (2, 4))
    """
    result = shapes.result
    if out is None or out.shape == result:
        return result
    own = len(result) - len(shapes.batch)
    batch = out.shape[: out.ndim - own]
    if out.shape[out.ndim - own :] != result[len(shapes.batch) :] or len(batch) < len(shapes.batch):
        return result
    missing = len(batch) - len(shapes.batch)
    fits = all(size in (1, other) for size, other in zip(shapes.batch, batch[missing:], strict=True))
    return out.shape if fits else result


def is_scattered(out: Array) -> bool:
    """Return whether the result is a large column-major complex matrix, which kernels fill slowly."""
    if out.dtype.kind != "c" or out.ndim < 2 or out.shape[-2] * out.shape[-1] <= MOST_SCATTERED:
        return False
    return out.strides[-2] == out.itemsize != out.strides[-1]


def merge_rows(a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
    """Batches of A over one shared B as one tall product, where no copy is needed.

    Before: a (batch, m, k), b (k, n), c (batch, m, n). After: a (batch·m, k), c (batch·m, n).
    """
    if b.ndim != 2 or a.ndim <= 2 or a.size == 0 or c.size == 0 or a.shape[:-2] != c.shape[:-2]:
        return a, b, c
    tall_a, tall_c = ((math.prod(array.shape[:-1]), array.shape[-1]) for array in (a, c))
    if not (merges(a, tall_a) and merges(c, tall_c)):
        return a, b, c
    return a.reshape(tall_a), b, c.reshape(tall_c)


def check_array(out: Any) -> Array:
    """`out` itself if it is an array.

    Raises
    ------
    OutNotArray, MaskedOperand
    """
    array = out_array(out)
    if type(array) is not np.ndarray:
        refuse(array, "out")
    return array
