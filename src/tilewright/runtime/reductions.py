"""sum, mean, max and min of any arrays along axes: checks, results, overlap; ends in kernels."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tilewright.errors import EmptyReduction, OutOverlapsItself, UnsupportedDtype
from tilewright.runtime.arrays import check_out
from tilewright.runtime.foreign import as_array
from tilewright.runtime.lines import LinePlan, plan_numbers
from tilewright.runtime.operands import Array, overlaps_itself
from tilewright.runtime.row_function import Prepared, RowCall
from tilewright.runtime.row_functions import as_floats, check_axes, kernel_of
from tilewright.spec.arguments import check_flag
from tilewright.spec.dtype import FUNCTION_DTYPES, DType, find_numpy_dtype
from tilewright.spec.row_function import RowOp

#: What no elements come to.
_OF_NOTHING = {RowOp.SUM: 0.0, RowOp.MEAN: np.nan}


def prepare_reduction(op: RowOp, x: Any, axis: Any, out: Any = None, *, keepdims: bool = False) -> Prepared:
    """One call of a reduction; see the functions of `tilewright` that are named like the operations."""
    array, dtype = _as_given_floats(x)
    keepdims = check_flag(keepdims, "keepdims")
    along = tuple(range(array.ndim)) if axis is None else check_axes(op.value, axis, array.ndim)
    shape = tuple(
        1 if number in along else length
        for number, length in enumerate(array.shape)
        if keepdims or number not in along
    )
    given = None if out is None else _checked(out, shape, dtype)
    direct = given is not None and given.dtype == dtype.numpy and given.flags.aligned
    target = np.empty(shape, dtype.numpy)
    if given is not None and direct and not np.may_share_memory(given, array):
        target = given
    scalar = given is None and not shape
    if not array.size:
        if target.size and op not in _OF_NOTHING:
            raise EmptyReduction(function=op.value, axes=along, shape=array.shape)
        return Prepared(array, target, given, None, partial(target.fill, _OF_NOTHING.get(op)), scalar)
    plan = plan_numbers(array.itemsize, array.shape, array.strides, _steps(target, array.ndim, along), along)
    if plan is not None:
        return Prepared(array, target, given, _call(op, array, target, plan), None, scalar)
    return Prepared(array, target, given, None, partial(_moved, op, array, target, along), scalar)


def _as_given_floats(x: Any) -> tuple[Array, DType]:
    """An array of a float type that functions have; sums of integers are not rounded to one."""
    array = as_array(x, "x")
    dtype = array.dtype
    if find_numpy_dtype(dtype.newbyteorder("=")) not in FUNCTION_DTYPES:
        raise UnsupportedDtype(dtype=dtype, supported=", ".join(map(str, FUNCTION_DTYPES)))
    return as_floats(array, "x")


def _checked(out: Any, shape: tuple[int, ...], dtype: DType) -> Array:
    """`out` itself, or the error that says why it cannot take the numbers."""
    array = check_out(out, shape, dtype.numpy)
    if not array.flags.forc and overlaps_itself(array):
        raise OutOverlapsItself(shape=array.shape, strides=array.strides)
    return array


def _steps(numbers: Array, ndim: int, along: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of the numbers by the axes of what they are of; 0 along rows."""
    kept = numbers.ndim == ndim
    strides = iter(numbers.strides)
    found = []
    for axis in range(ndim):
        if axis in along:
            found.append(0)
            if kept:
                next(strides)
        else:
            found.append(next(strides))
    return tuple(found)


def _call(op: RowOp, x: Array, numbers: Array, plan: LinePlan) -> RowCall:
    """The kernel on arrays that it can walk."""
    return RowCall(kernel_of(op, x.dtype, plan.layout), [x, numbers], plan.sizes, plan.elements)


def _moved(op: RowOp, x: Array, numbers: Array, along: tuple[int, ...]) -> None:
    """The kernel on a copy whose rows are contiguous, into an array of contiguous numbers."""
    rest = [axis for axis in range(x.ndim) if axis not in along]
    rows = np.ascontiguousarray(x.transpose(*rest, *along))
    found = np.empty([x.shape[axis] for axis in rest], x.dtype)
    last = tuple(range(len(rest), x.ndim))
    plan = plan_numbers(x.itemsize, rows.shape, rows.strides, _steps(found, x.ndim, last), last)
    assert plan is not None
    _call(op, rows, found, plan).run()
    numbers[...] = found.reshape(numbers.shape)
