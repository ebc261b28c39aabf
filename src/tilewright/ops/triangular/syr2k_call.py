"""Kernels of symmetric products, and `syrk` and `syr2k` of any arrays: checks, promotion, overlap."""

from __future__ import annotations

import logging
import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.foreign import as_array
from tilewright.calls.kernel import ArrayKernel
from tilewright.calls.kernels import kernel_for
from tilewright.calls.operands import (
    Array,
    broadcast_shapes,
    data_address,
    element_strides,
    overlaps_itself,
    whole_strides,
)
from tilewright.calls.pieces import as_type, copy_to, zeros
from tilewright.calls.promotion import computing_dtype
from tilewright.calls.recording import constant, new_array, numpy_call
from tilewright.compiler.kernel import Kernel
from tilewright.errors import (
    BatchMismatch,
    FactorAxes,
    FactorShapes,
    InvalidScalar,
    MissingOut,
    OutOverlapsItself,
    shown,
)
from tilewright.ops.gemm.operands import as_operand, check_array, check_out, product_types, result_dtype
from tilewright.ops.triangular.syr2k_problem import Syr2k, Syrk
from tilewright.preparing import once
from tilewright.spec.arguments import check_flag, check_number
from tilewright.spec.dtype import GEMM_DTYPES
from tilewright.spec.factors import factor
from tilewright.spec.problem import MAX_ELEMENTS, Layout, ProductTypes, check_elements

logger = logging.getLogger("tilewright.calls")


def run_symmetric(
    kernel: Kernel, factors: tuple[Array, ...], c: Array, alpha: complex, beta: complex
) -> None:
    """Run one product of validated matrices: aligned, native, of the problem's types, not overlapping."""
    n, k = factors[0].shape
    arrays = (*factors, c)
    strides = (stride for array in arrays for stride in element_strides(array))
    arguments = (*map(data_address, arrays), n, k, *strides, alpha, beta)
    kernel.launch(arguments, symmetric_work(factors))


def symmetric_work(factors: tuple[Array, ...]) -> int:
    """Multiply-adds of one triangle."""
    n: int = factors[0].shape[0]
    return len(factors) * n * factors[0].size // 2


@cache
def symmetric_kernel(factors: int, types: ProductTypes, lower: bool) -> ArrayKernel:
    """The kernel of one factor or two of some types: any sizes, any strides."""
    kind = (Syrk, Syr2k)[factors - 1]
    layouts: dict[str, Any] = dict.fromkeys((*"ab"[:factors], "c"), Layout.STRIDED)
    found: ArrayKernel = kernel_for(kind(dtype=types.a, out_dtype=types.c, lower=lower, **layouts))
    return found


class SymmetricCall(NamedTuple):
    """A validated call of `syrk` or `syr2k`.

    Attributes
    ----------
    types : the element types of the kernel.
    factors : (..., n, k) in the kernel's type, batch axes broadcast.
    target : (..., n, n), where the kernel writes.
    given : the caller's `out`, or None.
    alpha, beta : the factors.
    copies : a description of each copy.
    """

    types: ProductTypes
    factors: tuple[Array, ...]
    target: Array
    given: Array | None
    alpha: float
    beta: float
    copies: tuple[str, ...]


def as_matrices(function: str, arrays: list[Any]) -> list[Array]:
    """Operands as arrays of at least two axes; their names are a and b.

    Raises
    ------
    InvalidOperand, FactorAxes
    """
    found = []
    for name, value in zip("ab", arrays, strict=False):
        array = as_array(value, name)
        if array.ndim < 2:
            raise FactorAxes(function=function, name=name, found=array.shape)
        found.append(array)
    return found


def factor_shapes(function: str, factors: list[Array]) -> tuple[int, ...]:
    """The shape of the result.

    Raises
    ------
    FactorShapes, BatchMismatch, SizeOverflow

    >>> factor_shapes("syr2k", [np.ones((5, 2, 3)), np.ones((2, 3))])
    (5, 2, 2)
    """
    shapes = [array.shape for array in factors]
    if shapes[0][-2:] != shapes[-1][-2:]:
        raise FactorShapes(function=function, a=shapes[0], b=shapes[-1])
    batch = broadcast_shapes(*(shape[:-2] for shape in shapes))
    if batch is None:
        raise BatchMismatch(function=function, a=shapes[0][:-2], b=shapes[-1][:-2])
    n = shapes[0][-2]
    result = (*batch, n, n)
    check_elements("the result", result)
    return result


def triangle_mask(n: int, *, lower: bool) -> Array:
    """Boolean mask of the elements of a triangle.

    >>> triangle_mask(2, lower=False)
    array([[ True,  True],
           [False,  True]])
    """
    mask = constant(np.tri(n, dtype=np.bool_))
    return mask if lower else mask.T


def checked_out(out: Any, shape: tuple[int, ...], computed: np.dtype[Any]) -> Array:
    """`out` itself; as `check_out`, and each of its elements in a place of its own."""
    array = check_out(out, shape, computed)
    if not array.flags.forc and overlaps_itself(array):
        raise OutOverlapsItself(shape=array.shape, strides=array.strides)
    return array


def fits(out: Array, dtype: np.dtype[Any], operands: tuple[Array, ...]) -> bool:
    """Return whether a kernel may write into `out`: of its type, aligned, overlapping no operand."""
    whole = out.dtype == dtype and out.flags.aligned and whole_strides(out)
    return whole and not any(np.may_share_memory(out, operand) for operand in operands)


def prepare(
    function: str, arrays: list[Any], out: Any, *, alpha: Any = 1, beta: Any = 0, lower: bool = True
) -> SymmetricCall:
    """Every check and conversion of `syrk` (one array) and `syr2k` (two); `out` does not change."""
    factors = as_matrices(function, arrays)
    out = None if out is None else check_array(out)
    computed = result_dtype(factors[0], factors[-1], out, None)
    shape = factor_shapes(function, factors)
    types = product_types(factors[0].dtype, factors[-1].dtype, computed)
    if types.a != types.b:
        types = ProductTypes.parse(types.c)
    alpha, beta = factor(alpha, "alpha", types.acc), factor(beta, "beta", types.acc)
    if out is None and beta != 0:
        raise MissingOut(function=function, beta=beta)
    given = None if out is None else checked_out(out, shape, computed)
    # Unsigned integers have the bits of signed ones, whose kernels multiply them.
    wanted = computed if types.a == types.c else types.a.numpy
    copies: list[str] = []
    operands: list[Array] = []
    for name, array in zip("ab", factors, strict=False):
        operand = as_operand(array, wanted, name)
        if operand is not array:
            why = "" if array.dtype != wanted else ", misaligned or strided by parts of elements"
            copies.append(f"{name} is copied: {array.dtype} to {wanted}{why}")
        operands.append(np.broadcast_to(operand.view(types.a.numpy), (*shape[:-2], *operand.shape[-2:])))
    if given is not None and fits(given, computed, tuple(operands)):
        target = given
    else:
        target = zeros(shape, computed)
        if given is not None and beta != 0:
            copy_to(target, given, where=triangle_mask(shape[-1], lower=lower))
        if given is not None:
            copies.append(
                "the triangle is copied into out: another dtype, misaligned, or memory shared with a factor"
            )
    return SymmetricCall(types, tuple(operands), target, given, alpha, beta, tuple(copies))


def _complex_factors(
    function: str, arrays: list[Any], out: Any, alpha: complex, beta: complex, lower: bool
) -> Array:
    """Products by complex factors, which apply to the finished product."""
    factors = as_matrices(function, arrays)
    given = None if out is None else check_array(out)
    computed = result_dtype(factors[0], factors[-1], given, None)
    if computed.kind != "c":
        name, value = ("alpha", alpha) if isinstance(alpha, (complex, np.complexfloating)) else ("beta", beta)
        raise InvalidScalar(name=name, found=shown(value), required="a real number")
    if given is None and beta != 0:
        raise MissingOut(function=function, beta=beta)
    shape = factor_shapes(function, factors)
    if given is not None:
        checked_out(given, shape, computed)
    wide = computing_dtype(tuple(array.dtype for array in factors), computed)
    result = zeros(shape, wide)
    if alpha != 0:
        converted = [as_type(array, wide) for array in factors]
        symmetric(function, converted, result, lower=lower)
        numpy_call(np.multiply, result, wide.type(alpha), result)
    if given is None:
        return result
    if beta != 0:
        scaled = new_array(shape, wide)
        numpy_call(np.multiply, wide.type(beta), given, scaled)
        numpy_call(np.add, result, scaled, result)
    copy_to(given, result, where=triangle_mask(shape[-1], lower=lower))
    return given


@once
def _uniform_types() -> dict[np.dtype[Any], ProductTypes]:
    """The element types of which matrices go to a kernel as they are, by the type of their arrays."""
    return {dtype.numpy: ProductTypes.parse(dtype) for dtype in GEMM_DTYPES}


def plain_types(arrays: list[Any], out: Any, shape: tuple[int, ...]) -> ProductTypes | None:
    """The types of a product of plain matrices: one type, aligned, `out` of that type and not overlapping.

    None if anything must be converted, copied or rejected; the full check takes several times as long.
    """
    if type(arrays[0]) is not np.ndarray or math.prod(shape) > MAX_ELEMENTS:
        return None
    dtype = arrays[0].dtype
    for array in arrays if out is None else (*arrays, out):
        if type(array) is not np.ndarray or array.dtype is not dtype or array.ndim != 2:
            return None
        if not array.flags.aligned or any(step % dtype.itemsize for step in array.strides):
            return None
    if out is not None:
        flags = out.flags
        if out.shape != shape or not flags.writeable or not flags.forc:
            return None
        if any(np.may_share_memory(out, array) for array in arrays):
            return None
    return _uniform_types().get(dtype)


def is_real(value: object) -> bool:
    """Return whether a factor is a plain real number."""
    return type(value) is int or type(value) is float


def _plain(arrays: list[Any], out: Any, alpha: Any, beta: Any, lower: bool) -> Array | None:
    """The product of plain matrices; None where they are not."""
    if not (is_real(alpha) and is_real(beta)) or (out is None and beta != 0):
        return None
    shape: tuple[int, ...] = getattr(arrays[0], "shape", ())
    if len(shape) != 2 or shape[0] == 0 or any(getattr(array, "shape", ()) != shape for array in arrays):
        return None
    result = (shape[0], shape[0])
    types = plain_types(arrays, out, result)
    if types is None:
        return None
    factors = factor(alpha, "alpha", types.acc), factor(beta, "beta", types.acc)
    c = zeros(result, arrays[0].dtype) if out is None else out
    across = is_transposed(c)
    kernel = symmetric_kernel(len(arrays), types, lower is not across)
    run_symmetric(kernel, tuple(arrays), c.T if across else c, *factors)
    return c


def symmetric(
    function: str, arrays: list[Any], out: Any, *, alpha: Any = 1, beta: Any = 0, lower: bool = True
) -> Array:
    """Implementation of `tilewright.syrk` (one array) and `tilewright.syr2k` (two), which document it."""
    lower = check_flag(lower, "lower")
    alpha, beta = check_number(alpha, "alpha"), check_number(beta, "beta")
    found = _plain(arrays, out, alpha, beta, lower)
    if found is not None:
        return found
    if any(isinstance(value, complex) for value in (alpha, beta)):
        return _complex_factors(function, arrays, out, alpha, beta, lower)
    call = prepare(function, arrays, out, alpha=alpha, beta=beta, lower=lower)
    if call.copies:
        logger.debug("%s: %s", function, "; ".join(call.copies))
    run_call(call, lower=lower)
    given, target = call.given, call.target
    if given is None:
        return target
    if target is not given:
        copy_to(given, target, where=triangle_mask(target.shape[-1], lower=lower))
    return given


def is_transposed(c: Array) -> bool:
    """Return whether a result is computed transposed: its columns are contiguous and its rows are not."""
    row, column = element_strides(c)
    return row == 1 and column != 1


def kernel_of(call: SymmetricCall, *, lower: bool) -> tuple[ArrayKernel, Array]:
    """The kernel of a call, and the target as it takes it: Cᵀ is the same product, of the other triangle."""
    types, target = call.types, call.target
    c = target if target.dtype == types.c.numpy else target.view(types.c.numpy)
    across = is_transposed(c[(0,) * (c.ndim - 2)])
    kernel = symmetric_kernel(len(call.factors), types, lower is not across)
    return kernel, c.swapaxes(-1, -2) if across else c


def run_call(call: SymmetricCall, *, lower: bool) -> None:
    """The kernel on every matrix of a batch."""
    if call.target.size == 0:
        return
    kernel, c = kernel_of(call, lower=lower)
    for place in np.ndindex(*c.shape[:-2]):
        factors = tuple(array[place] for array in call.factors)
        run_symmetric(kernel, factors, c[place], call.alpha, call.beta)
