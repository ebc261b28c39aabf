"""Products of any arrays: conversion, promotion, broadcasting, overlap; ends in the same kernels."""

from __future__ import annotations

import logging
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tilewright.calls.afterwards import afterwards
from tilewright.calls.pieces import as_type, copy_to, zeros
from tilewright.calls.promotion import (
    computing_dtype,
    kind_of,
    store,
)
from tilewright.calls.recording import element, new_array, numpy_call
from tilewright.errors import (
    InvalidScalar,
    MissingOut,
    UnsupportedArgument,
    shown,
)
from tilewright.llvm.quick import QUICK_COPY, quick_code
from tilewright.ops.gemm.epilogue_operands import (
    activation_of,
    activation_word,
    bias_matrix,
    bias_of,
    matmul_epilogue,
    typed_epilogue,
)
from tilewright.ops.gemm.kernel import make_wanted, matmul_kernel
from tilewright.ops.gemm.operands import (
    as_operand,
    check_array,
    check_operand_cast,
    check_out,
    convert,
    direct_out,
    find_dtype,
    is_scattered,
    merge_rows,
    product_shapes,
    product_types,
    result_dtype,
    shape_in,
    wanted_dtype,
    wanted_sums,
)
from tilewright.spec.arguments import check_number
from tilewright.spec.epilogue import Clamp, Epilogue
from tilewright.spec.factors import factor
from tilewright.spec.problem import ProductTypes

Array: TypeAlias = NDArray[Any]

logger = logging.getLogger("tilewright.calls")

#: Pairs of bytes that are counted in 32 bits.
_MOST_PAIRS = (1 << 31) - 1


#: The epilogue of a plain product.
NO_STEPS = matmul_epilogue(None, None)


class Copy(NamedTuple):
    """A copy that a product requires; printed for explanations and logs only.

    Attributes
    ----------
    name : of the operand.
    found, wanted : its type, and that of the copy.
    """

    name: str
    found: np.dtype[Any]
    wanted: np.dtype[Any]

    def __str__(self) -> str:
        why = "" if self.found != self.wanted else ", misaligned or strided by parts of elements"
        return f"{self.name} is copied: {self.found} to {self.wanted}{why}"


class ResultCopy(Enum):
    """Why a result is copied into `out`."""

    SCATTERED = "the result is transposed into out, whose columns are contiguous"
    OTHER = "the result is copied into out: another dtype, misaligned, or memory shared with a or b"

    def __str__(self) -> str:
        return str(self.value)


class PreparedProduct(NamedTuple):
    """A validated `matmul` call: matrices in the kernel's dtype, and the copies that this required.

    Attributes
    ----------
    types : the element types of the kernel.
    a, b, c : (..., m, k), (..., k, n) and (..., m, n); c is a view of `target`.
    alpha, beta : the factors.
    target : where the kernel writes.
    given : the caller's `out`, or None.
    copies : the copies.
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
    copies: tuple[Copy | ResultCopy, ...]
    epilogue: Epilogue = NO_STEPS
    operands: tuple[Array, ...] = ()

    def matrices(self) -> tuple[Array, Array, Array]:
        """a, b and c with rows merged, as `GemmKernel.run_batch` takes them."""
        a, b, c = self.a, self.b, self.c
        if c.ndim > 2 and all(operand.shape[0] == 1 for operand in self.operands):  # none belongs to rows
            return merge_rows(a, b, c)
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
    sums: DTypeLike | None = None,
) -> PreparedProduct:
    """Every check and conversion of `matmul`; `out` has not changed afterwards."""
    array_a, array_b = convert(a, "a"), convert(b, "b")
    out = None if out is None else check_array(out)
    computed = result_dtype(array_a, array_b, out, dtype)
    shapes = product_shapes(array_a.shape, array_b.shape)
    result = shape_in(out, shapes)
    check_operand_cast(array_a, computed, "a")
    check_operand_cast(array_b, computed, "b")
    signed = False
    if activation is not None:
        activation = activation_of(activation, computed)
        signed = activation is not None and kind_of(computed) == "i"
    total = None if sums is None else wanted_sums(sums)
    types = product_types(array_a.dtype, array_b.dtype, computed, signed, total)
    alpha, beta = factor(alpha, "alpha", types.acc), factor(beta, "beta", types.acc)
    if out is None and beta != 0:
        raise MissingOut(function="matmul", beta=beta)
    given: Array | None = None if out is None else check_out(out, result, computed)
    epilogue = NO_STEPS
    vectors: tuple[Array, ...] = ()
    if bias is not None or activation is not None:
        along = None
        if bias is not None:
            vector, along = bias_of(bias, result, (array_a.ndim == 1, array_b.ndim == 1))
            vectors = (bias_matrix(vector, types, computed, () if given is None else (given,)),)
        epilogue = typed_epilogue(along, activation, types)
    copies: list[Copy | ResultCopy] = []
    same = find_dtype(computed)
    operands = []
    for name, array, kind in (("a", array_a, types.a), ("b", array_b, types.b)):
        wanted = computed if kind == same else kind.numpy
        operand = as_operand(array, wanted, name)
        if operand is not array:
            copies.append(Copy(name, array.dtype, wanted))
        operands.append(operand if wanted is kind.numpy else operand.view(kind.numpy))
    operand_a, operand_b = operands
    if given is None:
        target = new_array(result, computed)
    elif not is_scattered(given) and direct_out(given, computed, operand_a, operand_b):
        target = given
    else:
        target = new_array(result, computed)
        if beta != 0:
            copy_to(target, given)
        copies.append(ResultCopy.SCATTERED if is_scattered(given) else ResultCopy.OTHER)
    stored = types.c.numpy
    c_matrix = target if computed is stored else target.view(stored)
    if operand_b.ndim == 1:
        operand_b = operand_b[:, np.newaxis]
        c_matrix = c_matrix[..., np.newaxis]
    if operand_a.ndim == 1:
        operand_a = operand_a[np.newaxis, :]
        c_matrix = c_matrix[..., np.newaxis, :]
    return PreparedProduct(
        *(types, operand_a, operand_b, c_matrix, alpha, beta, target, given, tuple(copies), epilogue, vectors)
    )


def is_complex(value: object) -> bool:
    """Return whether a factor is a complex number."""
    return isinstance(value, (complex, np.complexfloating))


def _special_product(
    a: Array, b: Array, dtype: np.dtype[Any] | None, factors: tuple[complex, complex]
) -> bool:
    """Return whether a product needs the special path: boolean operands, or complex factors."""
    if isinstance(factors[0], complex) or isinstance(factors[1], complex):
        return True
    return a.dtype == b.dtype == np.bool_ if dtype is None else dtype == np.bool_


def _logical_product(a: Array, b: Array, result: Array) -> None:
    """A product of truths, as bytes, into truths: the number of pairs that are both true, 1 at most."""
    if a.shape[-1] > _MOST_PAIRS:
        sums = new_array(result.shape, np.int64)
        matmul(a, b, sums, dtype=np.int64)
        numpy_call(np.not_equal, sums, 0, result)
        return
    product = prepare(a, b, result.view(np.uint8))
    kernel = matmul_kernel(product.types, Epilogue((Clamp(0, 1),)))
    with kernel.pool.block() as scratch:
        kernel.run_batch(*product.matrices(), 1, 0, scratch)


def _in_parts(
    array_a: Array,
    array_b: Array,
    out: Any,
    *,
    dtype: DTypeLike | None,
    alpha: complex,
    beta: complex,
    sums: DTypeLike | None,
) -> Array:
    """Products whose factors are complex, which apply to the finished product; and logical ones.

    A logical product is true where a sum of products of ones is not zero, as NumPy has it.
    """
    computed = result_dtype(array_a, array_b, None if out is None else check_array(out), dtype)
    shapes = product_shapes(array_a.shape, array_b.shape)
    given = None if out is None else check_out(out, shape_in(out, shapes), computed)
    if computed != np.bool_ and not any(map(is_complex, (alpha, beta))):  # logical operands as numbers
        ones = [as_type(array, np.bool_).view(np.uint8) for array in (array_a, array_b)]
        return matmul(ones[0], ones[1], given, dtype=computed, alpha=alpha, beta=beta, sums=sums)
    if computed == np.bool_:
        if sums is not None:
            raise UnsupportedArgument(name="sums", value="...", remedy="omit it with a logical result")
        for name, value, required in (("alpha", alpha, 1), ("beta", beta, 0)):
            if value != required:
                needed = f"{required} where the result is logical"
                raise InvalidScalar(name=name, found=shown(value), required=needed)
        ones = [as_type(array, np.bool_).view(np.uint8) for array in (array_a, array_b)]
        result = new_array(shapes.result, np.bool_)
        _logical_product(ones[0], ones[1], result)
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
            matmul(array_a, array_b, result, dtype=wide, sums=sums)
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
    sums: DTypeLike | None = None,
) -> Array:
    """alpha · a @ b + beta · out for every operand NumPy's matmul accepts; see `tilewright.matmul`."""
    activation = activation_word(activation)
    a, b = convert(a, "a"), convert(b, "b")
    alpha, beta = check_number(alpha, "alpha"), check_number(beta, "beta")
    dtype = None if dtype is None else wanted_dtype(dtype)
    sums = None if sums is None else wanted_sums(sums)
    if _special_product(a, b, dtype, (alpha, beta)):
        for name, value in (("bias", bias), ("activation", activation)):
            if value is not None:
                remedy = "apply it to the result of logical operands or complex factors"
                raise UnsupportedArgument(name=name, value="...", remedy=remedy)
        return _in_parts(a, b, out, dtype=dtype, alpha=alpha, beta=beta, sums=sums)
    assert not isinstance(alpha, complex)
    assert not isinstance(beta, complex)
    options = {"dtype": dtype, "bias": bias, "activation": activation, "sums": sums}
    product = prepare(a, b, out, alpha=alpha, beta=beta, **options)
    if product.copies and logger.isEnabledFor(logging.DEBUG):
        logger.debug("matmul: %s", "; ".join(map(str, product.copies)))
    quick_code.spend(product.c.size * product.a.shape[-1] + QUICK_COPY * product.b.size)
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
