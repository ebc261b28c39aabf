"""softmax, log_softmax, layer_norm and rms_norm of any arrays: checks, axes, overlap; ends in kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np

from tilewright.calls.foreign import as_array
from tilewright.calls.kernels import kernel_for
from tilewright.calls.operands import Array, data_address, overlaps_itself
from tilewright.calls.pieces import contiguous, copied
from tilewright.calls.recording import new_like
from tilewright.compiler.kernel import Kernel
from tilewright.errors import (
    AxisOutOfRange,
    InvalidAxis,
    NegativeEps,
    NormOperandShape,
    OutOverlapsItself,
    RepeatedAxis,
    UnsupportedDtype,
    shown,
)
from tilewright.ops.gemm.operands import check_out
from tilewright.ops.rows.kernel import Prepared, RowCall
from tilewright.ops.rows.lines import LinePlan, plan_lines
from tilewright.ops.rows.problem import RowFunction
from tilewright.ops.transpose.call import transpose
from tilewright.spec.arguments import as_integers, real_number
from tilewright.spec.dtype import F32, FUNCTION_DTYPES, DType, find_numpy_dtype
from tilewright.spec.problem import Layout
from tilewright.spec.row_functions import RowOp


@lru_cache(maxsize=64)
def computed_dtype(dtype: np.dtype[Any]) -> DType:
    """The type that functions of an array are computed to: its own, or the float NumPy makes of integers.

    >>> str(computed_dtype(np.dtype("i4"))), str(computed_dtype(np.dtype("f2")))
    ('f64', 'f16')

    Raises
    ------
    UnsupportedDtype
    """
    native = dtype.newbyteorder("=")
    found = find_numpy_dtype(native)
    if found in FUNCTION_DTYPES:
        return found
    if native.kind in "bui":
        wide = find_numpy_dtype(np.result_type(native, np.float16))
        assert wide is not None
        return wide
    raise UnsupportedDtype(dtype=dtype, supported=", ".join(map(str, FUNCTION_DTYPES)))


def as_floats(value: Any, name: str) -> tuple[Array, DType]:
    """An array of whole, aligned elements of a type that functions have, and that type."""
    array = as_array(value, name)
    dtype = computed_dtype(array.dtype)
    if array.dtype != dtype.numpy or not array.flags.aligned:
        array = copied(array, dtype.numpy)
    return array, dtype


def check_axes(function: str, axis: Any, ndim: int) -> tuple[int, ...]:
    """Validate one axis or several and return them as ascending non-negative numbers.

    >>> check_axes("softmax", -1, 3), check_axes("layer_norm", (-1, 1), 3)
    ((2,), (1, 2))

    Raises
    ------
    InvalidAxis, AxisOutOfRange, RepeatedAxis
    """
    given = as_integers(axis)
    if given is None:
        raise InvalidAxis(function=function, found=shown(axis), required="an integer, or a tuple of them")
    if not given:
        raise InvalidAxis(function=function, found="()", required="at least one axis")
    for one in given:
        if not -ndim <= one < ndim:
            raise AxisOutOfRange(function=function, found=one, ndim=ndim, last=ndim - 1)
    found = sorted(one % ndim for one in given)
    for one, following in pairwise(found):
        if one == following:
            raise RepeatedAxis(function=function, found=one, axes=given)
    return tuple(found)


def same_memory(x: Array, y: Array) -> bool:
    """Return whether two arrays of one shape have the same address and strides."""
    return x.strides == y.strides and data_address(x) == data_address(y)


def _beside(function: str, name: str, value: Any, shape: tuple[int, ...], dtype: DType) -> Array | None:
    """A weight or a bias as a kernel of some type takes it."""
    if value is None:
        return None
    array, found = as_floats(value, name)
    if array.shape != shape:
        raise NormOperandShape(function=function, name=name, found=array.shape, required=shape)
    kept = found in (dtype, F32)
    computed = dtype if dtype.bits > F32.bits else F32  # what rows are computed in
    return contiguous(array, None if kept else computed.numpy)


def prepare(
    op: RowOp,
    x: Any,
    axis: Any,
    out: Any = None,
    *,
    weight: Any = None,
    bias: Any = None,
    eps: Any = None,
) -> Prepared:
    """Prepare a call of a row function; see the public functions of `tilewright` with the same names."""
    array, dtype = as_floats(x, "x")
    along = check_axes(op.value, axis, array.ndim)
    lengths = tuple(array.shape[one] for one in along)
    beside = [_beside(op.value, *given, lengths, dtype) for given in (("weight", weight), ("bias", bias))]
    scalars = [check_eps(op.value, eps, dtype)] if op.takes_eps else []
    given = None if out is None else check_result(out, array.shape, dtype.numpy)
    target = result_target(array, dtype, given, [part for part in beside if part is not None])
    if not array.size:
        return Prepared(array, target, given, None)
    plan = plan_lines(array.itemsize, array.shape, array.strides, target.strides, along)
    call = partial(_call, op, beside=beside, scalars=scalars)
    if plan is not None:
        return Prepared(array, target, given, call(array, target, plan))
    return Prepared(array, target, given, None, partial(_moved, call, array, target, along))


def check_eps(function: str, eps: Any, dtype: DType) -> float:
    """The value added under the root; by default, as in torch, the machine epsilon of the type."""
    if eps is None:
        return float(2.0 ** (1 - dtype.significand))
    number = real_number(eps, "eps")
    if not 0 <= number < math.inf:
        raise NegativeEps(function=function, found=number)
    return number


def check_result(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """`out` itself, or the error that says why it cannot take a result of some shape and type.

    Raises
    ------
    OutShape, OutReadOnly, OutDtype, OutNotArray, OutOverlapsItself
    """
    array = check_out(out, shape, dtype)
    if not array.flags.forc and overlaps_itself(array):
        raise OutOverlapsItself(shape=array.shape, strides=array.strides)
    return array


def result_target(x: Array, dtype: DType, out: Array | None, others: Sequence[Array] = ()) -> Array:
    """The array to compute into: `out` itself, if it is exactly x or overlaps no operand."""
    if out is None:
        return new_like(x)
    fits = out.dtype == dtype.numpy and out.flags.aligned
    apart = not any(np.may_share_memory(out, other) for other in others)
    if fits and apart and (not np.may_share_memory(out, x) or same_memory(x, out)):
        return out
    return new_like(x)


@lru_cache(maxsize=256)
def kernel_of(op: RowOp, dtype: np.dtype[Any], layout: Layout, *beside: np.dtype[Any] | None) -> Kernel:
    """The kernel of arrays of some types; to make the record of a problem takes longer than a small call."""
    given = [None if other is None else find_numpy_dtype(other) for other in beside]
    found = find_numpy_dtype(dtype)
    assert found is not None
    kernel: Kernel = kernel_for(
        RowFunction(op, found, layout=layout, **dict(zip(("weight", "bias"), given, strict=False)))
    )
    return kernel


def _call(
    op: RowOp, x: Array, y: Array, plan: LinePlan, *, beside: list[Array | None], scalars: list[float]
) -> RowCall:
    """The kernel on arrays that it can walk."""
    types = [None if part is None else part.dtype for part in beside]
    kernel = kernel_of(op, x.dtype, plan.layout, *types)
    given = [part for part in beside if part is not None]
    return RowCall(kernel, [x, y, *given], plan.sizes, plan.elements, scalars)


def _moved(
    call: Callable[[Array, Array, LinePlan], RowCall], x: Array, y: Array, along: tuple[int, ...]
) -> None:
    """Run the kernel on a copy with contiguous rows and copy its result to the target."""
    rest = [axis for axis in range(x.ndim) if axis not in along]
    order = (*rest, *along)
    rows = transpose(x, order)
    last = tuple(range(len(rest), x.ndim))
    plan = plan_lines(x.itemsize, rows.shape, rows.strides, rows.strides, last)
    assert plan is not None
    assert plan.layout is Layout.ROW
    call(rows, rows, plan).run()
    transpose(rows, tuple(order.index(axis) for axis in range(x.ndim)), y)
