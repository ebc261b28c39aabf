"""Products of any arrays: conversion, promotion, broadcasting, overlap; ends in the same kernels."""

from __future__ import annotations

import contextlib
import logging
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tilewright.calls.afterwards import afterwards
from tilewright.calls.fastcall import MOST_SCATTERED
from tilewright.calls.foreign import as_array, refuse
from tilewright.calls.operands import broadcast_shapes, merges, whole_strides
from tilewright.calls.pieces import as_type, copied, copy_to, zeros
from tilewright.calls.promotion import (
    computing_dtype,
    kind_of,
    no_common_dtype,
    promoted_dtype,
    same_kind,
    signed_dtype,
    store,
)
from tilewright.calls.recording import element, new_array, numpy_call
from tilewright.errors import (
    BatchMismatch,
    InvalidScalar,
    MissingOut,
    OutDtype,
    OutReadOnly,
    OutShape,
    ScalarOperand,
    ShapeMismatch,
    UnsafeCast,
    UnsupportedArgument,
    UnsupportedDtype,
    shown,
)
from tilewright.ops.gemm.epilogue_operands import (
    activation_of,
    activation_word,
    bias_matrix,
    bias_of,
    matmul_epilogue,
)
from tilewright.ops.gemm.kernel import make_wanted, matmul_kernel
from tilewright.spec.arguments import as_dtype, as_text, check_number, out_array
from tilewright.spec.dtype import DTYPES, GEMM_DTYPES, I8, DType, find_numpy_dtype
from tilewright.spec.epilogue import Epilogue
from tilewright.spec.factors import factor
from tilewright.spec.problem import ProductTypes, check_elements

Array: TypeAlias = NDArray[Any]

logger = logging.getLogger("tilewright")


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
    a: np.dtype[Any], b: np.dtype[Any], result: np.dtype[Any], *, signed: bool = False
) -> ProductTypes:
    """The kernel for two operands and a result: operands of another type than it takes are converted.

    Operands stay what they are where one kernel reads them and narrows or widens once, when it stores:
    two of one type, or two of 8 bits. Others are converted to a type that holds both and the result
    (`computing_dtype`), from which the kernel narrows.

    Parameters
    ----------
    signed : whether sums of integers are signed; they wrap to the result's type either way.

    Raises
    ------
    UnsupportedDtype : if no kernel computes the result's type.

    >>> product_types(np.dtype("i1"), np.dtype("i1"), np.dtype("i4")).name
    'i8i32'
    >>> product_types(np.dtype("f4"), np.dtype("f8"), np.dtype("f4")).name
    'f64f32'
    """
    out = find_dtype(result)
    found = [find_numpy_dtype(dtype.newbyteorder("=")) for dtype in (a, b)]
    if found[0] is not None and found[1] is not None and result.name not in _SAME_BITS:
        left, right = found[0], found[1]
        bytewise = left.is_integer and right.is_integer and left.bits == right.bits == I8.bits
        if left == right or bytewise:
            with contextlib.suppress(UnsupportedDtype):
                return ProductTypes.parse(left, right, out)
    wide = find_dtype(signed_dtype((a, b), result) if signed else computing_dtype((a, b), result))
    return ProductTypes.parse(wide, wide, out)


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
    batch = broadcast_shapes(a[:-2], b[:-2])
    if batch is None:
        raise BatchMismatch(function="matmul", a=a[:-2], b=b[:-2])
    m = a[-2] if len(a) > 1 else 1
    n = b[-1] if len(b) > 1 else 1
    result = batch + ((m,) if len(a) > 1 else ()) + ((n,) if len(b) > 1 else ())
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
    if array.dtype != computed and not same_kind(array.dtype, computed):
        raise UnsafeCast(name=name, found=array.dtype, required=str(computed))


def as_operand(array: Array, dtype: np.dtype[Any], name: str) -> Array:
    """The array in the kernel's dtype: itself where it is native, aligned and whole-strided."""
    check_operand_cast(array, dtype, name)
    direct = array.dtype == dtype and array.flags.aligned
    if direct and whole_strides(array):
        return array
    return copied(array, dtype)


def direct_out(out: Array, dtype: np.dtype[Any], a: Array, b: Array) -> bool:
    """Return whether a kernel may write into `out`: same dtype, aligned, no overlap with an input."""
    return (
        out.dtype == dtype
        and out.dtype.isnative
        and out.flags.aligned
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


class PreparedProduct(NamedTuple):
    """A validated `matmul` call: matrices in the kernel's dtype, and the copies that this required.

    Attributes
    ----------
    types : the element types of the kernel.
    a, b, c : (..., m, k), (..., k, n) and (..., m, n); c is a view of `target`.
    alpha, beta : the factors.
    target : where the kernel writes.
    given : the caller's `out`, or None.
    copies : a description of each copy.
    epilogue : operations applied to the sums before they are stored.
    operands : those of its steps, as `GemmKernel.run` takes them.
    """

    types: ProductTypes
    a: Array
    b: Array
    c: Array
    alpha: complex
    beta: complex
    target: Array
    given: Array | None
    copies: tuple[str, ...]
    epilogue: Epilogue = Epilogue()
    operands: tuple[Array, ...] = ()

    def matrices(self) -> tuple[Array, Array, Array]:
        """a, b and c with rows merged and batch axes broadcast: what `GemmKernel.run_batch` takes."""
        a, b, c = self.a, self.b, self.c
        if all(operand.shape[0] == 1 for operand in self.operands):  # none belongs to rows
            a, b, c = merge_rows(a, b, c)
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
    alpha: complex = 1.0,
    beta: complex = 0.0,
    bias: Any = None,
    activation: str | None = None,
) -> PreparedProduct:
    """Every check and conversion of `matmul`; `out` has not changed afterwards."""
    array_a, array_b = convert(a, "a"), convert(b, "b")
    out = None if out is None else check_array(out)
    computed = result_dtype(array_a, array_b, out, dtype)
    shapes = product_shapes(array_a.shape, array_b.shape)
    result = shape_in(out, shapes)
    for name, array in (("a", array_a), ("b", array_b)):
        check_operand_cast(array, computed, name)
    activation = activation_of(activation, computed)
    signed = activation is not None and kind_of(computed) == "i"
    types = product_types(array_a.dtype, array_b.dtype, computed, signed=signed)
    alpha, beta = factor(alpha, "alpha", types.acc), factor(beta, "beta", types.acc)
    if out is None and beta != 0:
        raise MissingOut(function="matmul", beta=beta)
    given: Array | None = None if out is None else check_out(out, result, computed)
    epilogue, vectors = Epilogue(), []
    if bias is not None or activation is not None:
        along = None
        if bias is not None:
            vector, along = bias_of(bias, result, (array_a.ndim == 1, array_b.ndim == 1))
            vectors.append(bias_matrix(vector, types, computed, [] if given is None else [given]))
        epilogue = matmul_epilogue(along, activation)
        epilogue.typed(types.sums, types.c)  # refuses steps without a meaning on the sums
    copies = []
    operands = []
    for name, array, kind in (("a", array_a, types.a), ("b", array_b, types.b)):
        wanted = computed if find_dtype(computed) == kind else kind.numpy
        operand = as_operand(array, wanted, name)
        operands.append(operand.view(kind.numpy) if wanted != kind.numpy else operand)
        if operand is not array:
            why = "" if array.dtype != wanted else ", misaligned or strided by parts of elements"
            copies.append(f"{name} is copied: {array.dtype} to {wanted}{why}")
    operand_a, operand_b = operands
    scattered = given is not None and is_scattered(given)
    if given is not None and not scattered and direct_out(given, computed, operand_a, operand_b):
        target = given
    else:
        target = new_array(result, computed)
        if beta != 0:
            assert given is not None
            copy_to(target, given)
        if given is not None:
            copies.append(
                "the result is transposed into out, whose columns are contiguous"
                if scattered
                else "the result is copied into out: another dtype, misaligned, or memory shared with a or b"
            )
    a_matrix = operand_a[np.newaxis, :] if operand_a.ndim == 1 else operand_a
    b_matrix = operand_b[:, np.newaxis] if operand_b.ndim == 1 else operand_b
    c_matrix = target if computed == types.c.numpy else target.view(types.c.numpy)
    if operand_b.ndim == 1:
        c_matrix = c_matrix[..., np.newaxis]
    if operand_a.ndim == 1:
        c_matrix = c_matrix[..., np.newaxis, :]
    return PreparedProduct(
        types,
        *(a_matrix, b_matrix, c_matrix, alpha, beta, target, given),
        copies=tuple(copies),
        epilogue=epilogue,
        operands=tuple(vectors),
    )


def is_complex(value: object) -> bool:
    """Return whether a factor is a complex number."""
    return isinstance(value, (complex, np.complexfloating))


def _special_product(
    a: Array, b: Array, dtype: np.dtype[Any] | None, factors: tuple[complex, complex]
) -> bool:
    """Return whether a product needs the special path: boolean operands, or complex factors."""
    if any(isinstance(value, complex) for value in factors):
        return True
    return a.dtype == b.dtype == np.bool_ if dtype is None else dtype == np.bool_


def _in_parts(
    array_a: Array, array_b: Array, out: Any, *, dtype: DTypeLike | None, alpha: complex, beta: complex
) -> Array:
    """Products whose factors are complex, which apply to the finished product; and logical ones.

    A logical product is true where a sum of products of ones is not zero, as NumPy has it.
    """
    computed = result_dtype(array_a, array_b, None if out is None else check_array(out), dtype)
    shapes = product_shapes(array_a.shape, array_b.shape)
    given = None if out is None else check_out(out, shape_in(out, shapes), computed)
    if computed != np.bool_ and not any(map(is_complex, (alpha, beta))):  # logical operands as numbers
        ones = [as_type(array, np.bool_).view(np.uint8) for array in (array_a, array_b)]
        return matmul(ones[0], ones[1], given, dtype=computed, alpha=alpha, beta=beta)
    if computed == np.bool_:
        for name, value, required in (("alpha", alpha, 1), ("beta", beta, 0)):
            if value != required:
                needed = f"{required} where the result is logical"
                raise InvalidScalar(name=name, found=shown(value), required=needed)
        ones = [as_type(array, np.bool_).view(np.uint8) for array in (array_a, array_b)]
        sums, result = new_array(shapes.result, np.int32), new_array(shapes.result, np.bool_)
        matmul(ones[0], ones[1], sums, dtype=np.int32)
        numpy_call(np.not_equal, sums, 0, result)
    else:
        if computed.kind != "c":
            name, value = ("alpha", alpha) if is_complex(alpha) else ("beta", beta)
            raise InvalidScalar(name=name, found=shown(value), required="a real number")
        if given is None and beta != 0:
            raise MissingOut(function="matmul", beta=beta)
        for name, array in (("a", array_a), ("b", array_b)):
            check_operand_cast(array, computed, name)
        wide = computing_dtype((array_a.dtype, array_b.dtype), computed)
        if alpha == 0:
            result = zeros(shapes.result, wide)
        else:
            result = new_array(shapes.result, wide)
            matmul(array_a, array_b, result, dtype=wide)
            numpy_call(np.multiply, result, wide.type(alpha), result)
        if beta != 0:
            assert given is not None
            total = new_array(given.shape, wide)
            numpy_call(np.multiply, wide.type(beta), given, total)
            numpy_call(np.add, result, total, total)
            result = total
        result = as_type(result, computed)
    if given is None:
        return element(result)
    store(result, given)
    return given


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


def matmul(
    a: Any,
    b: Any,
    out: Any = None,
    *,
    dtype: DTypeLike | None = None,
    alpha: complex = 1.0,
    beta: complex = 0.0,
    bias: Any = None,
    activation: str | None = None,
) -> Array:
    """alpha · a @ b + beta · out for every operand NumPy's matmul accepts; see `tilewright.matmul`."""
    activation = activation_word(activation)
    a, b = convert(a, "a"), convert(b, "b")
    alpha, beta = check_number(alpha, "alpha"), check_number(beta, "beta")
    dtype = None if dtype is None else wanted_dtype(dtype)
    if _special_product(a, b, dtype, (alpha, beta)):
        for name, value in (("bias", bias), ("activation", activation)):
            if value is not None:
                remedy = "apply it to the result of logical operands or complex factors"
                raise UnsupportedArgument(name=name, value="...", remedy=remedy)
        return _in_parts(a, b, out, dtype=dtype, alpha=alpha, beta=beta)
    assert not isinstance(alpha, complex)
    assert not isinstance(beta, complex)
    options = {"dtype": dtype, "bias": bias, "activation": activation}
    product = prepare(a, b, out, alpha=alpha, beta=beta, **options)
    if product.copies:
        logger.debug("matmul: %s", "; ".join(product.copies))
    kernel = matmul_kernel(product.types, product.epilogue)
    with kernel.pool.block() as scratch:
        kernel.run_batch(*product.matrices(), product.alpha, product.beta, scratch, product.operands)
    with afterwards("matmul"):
        make_wanted()
    given, target = product.given, product.target
    if given is None:
        scalar: Array = element(target)  # two 1-D operands give a scalar, as in NumPy
        return scalar
    if target is not given:
        store(target, given)
    return given
