"""Kernels of products with a triangular matrix, and `trmm` of any arrays."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.kernel import ArrayKernel
from tilewright.calls.kernels import kernel_for
from tilewright.calls.operands import (
    Array,
    broadcast_shapes,
    data_address,
    element_strides,
)
from tilewright.calls.promotion import computing_dtype, store
from tilewright.calls.recording import new_array, numpy_call
from tilewright.compiler.kernel import Kernel
from tilewright.errors import BatchMismatch, InvalidScalar, TriangleNotSquare, TriangleShape, shown
from tilewright.ops.gemm.operands import as_operand, check_array, product_types, result_dtype
from tilewright.ops.triangular.syr2k_call import as_matrices, checked_out, fits, is_real, plain_types
from tilewright.ops.triangular.trmm_problem import Side, Trmm
from tilewright.spec.arguments import check_flag, check_number, parse_choice
from tilewright.spec.factors import factor
from tilewright.spec.problem import Layout, ProductTypes, check_elements

logger = logging.getLogger("tilewright.calls")


def run_trmm(kernel: Kernel, a: Array, b: Array, c: Array, alpha: complex) -> None:
    """Run one product of validated matrices: aligned, native, of the problem's types, not overlapping."""
    strides = (stride for array in (a, b, c) for stride in element_strides(array))
    kernel.launch((*map(data_address, (a, b, c)), *b.shape, *strides, alpha), trmm_work(a, b))


def trmm_work(a: Array, b: Array) -> int:
    """Multiply-adds of a product: half of those of a square matrix."""
    return b.size * len(a) // 2


class Triangular(NamedTuple):
    """Role of a triangular matrix in a product: its side, its triangle, and its diagonal."""

    side: Side
    lower: bool
    unit: bool


@cache
def trmm_kernel(types: ProductTypes, triangular: Triangular, c: Layout) -> ArrayKernel:
    """The kernel of some types and a layout of the result: any sizes, any strides of the factors."""
    factors: dict[str, Any] = dict.fromkeys("ab", Layout.STRIDED)
    found: ArrayKernel = kernel_for(
        Trmm(dtype=types.a, out_dtype=types.c, **factors, c=c, **triangular._asdict())
    )
    return found


def _shape(a: Array, b: Array, side: Side) -> tuple[int, ...]:
    """The shape of the result.

    Raises
    ------
    TriangleNotSquare, TriangleShape, BatchMismatch, SizeOverflow

    >>> _shape(np.ones((2, 2)), np.ones((5, 2, 3)), Side.LEFT)
    (5, 2, 3)
    """
    if a.shape[-1] != a.shape[-2]:
        raise TriangleNotSquare(found=a.shape)
    axis, what = (-2, "rows") if side is Side.LEFT else (-1, "columns")
    if a.shape[-1] != b.shape[axis]:
        raise TriangleShape(a=a.shape, b=b.shape, side=side.value, what=what)
    batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if batch is None:
        raise BatchMismatch(function="trmm", a=a.shape[:-2], b=b.shape[:-2])
    shape = (*batch, *b.shape[-2:])
    check_elements("the result", shape)
    return shape


def _plain(a: Any, b: Any, out: Any, alpha: Any, triangular: Triangular) -> Array | None:
    """The product of plain matrices; None where they are not."""
    shape, order = getattr(b, "shape", ()), getattr(a, "shape", ())
    if not is_real(alpha) or len(shape) != 2:
        return None
    length = shape[0 if triangular.side is Side.LEFT else 1]
    types = plain_types([a, b], out, shape) if order == (length, length) and 0 not in shape else None
    if types is None:
        return None
    scalar = factor(alpha, "alpha", types.acc)
    c = new_array(shape, b.dtype) if out is None else out
    run_trmm(trmm_kernel(types, triangular, _layout(c)), a, b, c, scalar)
    return c


class TrmmCall(NamedTuple):
    """A validated call of `trmm`.

    Attributes
    ----------
    types : the element types of the kernel.
    triangular : the role of a.
    factors : a and b in the kernel's type, batch axes broadcast.
    target : where the kernel writes.
    given : the caller's `out`, or None.
    alpha : the factor of the kernel.
    later : a complex factor, applied to the finished product.
    copies : names of the copied operands.
    """

    types: ProductTypes
    triangular: Triangular
    factors: tuple[Array, Array]
    target: Array
    given: Array | None
    alpha: float
    later: complex | None
    copies: tuple[str, ...]

    @property
    def c(self) -> Array:
        """The target in the kernel's type."""
        c = self.types.c.numpy
        return self.target if self.target.dtype == c else self.target.view(c)

    @property
    def kernel(self) -> ArrayKernel:
        """The kernel of the call."""
        return trmm_kernel(self.types, self.triangular, _layout(self.c[(0,) * (self.target.ndim - 2)]))


def prepare(a: Any, b: Any, out: Any = None, *, alpha: Any = 1, triangular: Triangular) -> TrmmCall:
    """Every check and conversion of `trmm`; `out` does not change."""
    array_a, array_b = as_matrices("trmm", [a, b])
    given = None if out is None else check_array(out)
    computed = result_dtype(array_a, array_b, given, None)
    shape = _shape(array_a, array_b, triangular.side)
    later: complex | None = None
    if given is not None:
        checked_out(given, shape, computed)
    if isinstance(alpha, complex):
        if computed.kind != "c":
            raise InvalidScalar(name="alpha", found=shown(alpha), required="a real number")
        alpha, later = (0 if alpha == 0 else 1), complex(alpha)
        computed = computing_dtype((array_a.dtype, array_b.dtype), computed)  # rounded after the factor
    types = product_types(array_a.dtype, array_b.dtype, computed)
    if types.a != types.b:
        types = ProductTypes.parse(types.c)
    alpha = factor(alpha, "alpha", types.acc)
    # Unsigned integers have the bits of signed ones, whose kernels multiply them.
    wanted = computed if types.a == types.c else types.a.numpy
    copies, factors = [], []
    for name, array in (("a", array_a), ("b", array_b)):
        one = as_operand(array, wanted, name)
        copies += [] if one is array else [name]
        factors.append(np.broadcast_to(one.view(types.a.numpy), (*shape[:-2], *one.shape[-2:])))
    target = given
    if target is None or not fits(target, computed, tuple(factors)):
        target = new_array(shape, computed)
        copies += [] if given is None else ["out"]
    left, right = factors
    return TrmmCall(types, triangular, (left, right), target, given, alpha, later, tuple(copies))


def trmm(
    a: Any,
    b: Any,
    out: Any = None,
    *,
    alpha: Any = 1,
    lower: bool = True,
    unit: bool = False,
    side: Any = "left",
) -> Array:
    """Implementation of `tilewright.trmm`, which documents it."""
    triangular = Triangular(
        parse_choice(Side, side, "side"), check_flag(lower, "lower"), check_flag(unit, "unit")
    )
    alpha = check_number(alpha, "alpha")
    found = _plain(a, b, out, alpha, triangular)
    if found is not None:
        return found
    call = prepare(a, b, out, alpha=alpha, triangular=triangular)
    if call.copies:
        logger.debug(
            "trmm: copied, for another dtype, alignment or shared memory: %s", ", ".join(call.copies)
        )
    target, given = call.target, call.given
    if target.size:
        kernel, c, (left, right) = call.kernel, call.c, call.factors
        for place in np.ndindex(*c.shape[:-2]):
            run_trmm(kernel, left[place], right[place], c[place], call.alpha)
    if call.later is not None and call.alpha:
        numpy_call(np.multiply, target, target.dtype.type(call.later), target)
    if given is None or target is given:
        return target
    store(target, given)
    return given


def _layout(c: Array) -> Layout:
    """The layout whose kernel writes a matrix."""
    row, column = element_strides(c)
    return Layout.ROW if column == 1 else Layout.COL if row == 1 else Layout.STRIDED
