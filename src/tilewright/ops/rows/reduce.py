"""sum, mean, max and min of any arrays along axes: checks, results, overlap; ends in kernels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from tilewright.calls.foreign import as_array
from tilewright.calls.operands import Array
from tilewright.calls.pieces import contiguous, copied, copy_to
from tilewright.calls.recording import constant, new_array, numpy_call
from tilewright.errors import EmptyReduction, UnsupportedDtype
from tilewright.ops.gemm.operands import wanted_dtype
from tilewright.ops.rows.call import as_floats, check_axes, check_result, kernel_of
from tilewright.ops.rows.kernel import Prepared, RowCall
from tilewright.ops.rows.lines import LinePlan, plan_numbers
from tilewright.ops.sum_of_products.call import plan_products
from tilewright.spec.arguments import check_flag
from tilewright.spec.dtype import FUNCTION_DTYPES, find_numpy_dtype
from tilewright.spec.row_functions import RowOp

#: Results of reductions over no elements.
_OF_NOTHING = {
    RowOp.SUM: 0.0,
    RowOp.MEAN: np.nan,
    RowOp.INVERSE_DEVIATION: np.nan,
    RowOp.INVERSE_ROOT: np.nan,
}

#: NumPy's reductions of integers and truth values, which have no kernel.
_OF_INTEGERS = {RowOp.SUM: np.add.reduce, RowOp.MAX: np.maximum.reduce, RowOp.MIN: np.minimum.reduce}


def prepare_reduction(
    op: RowOp,
    x: Any,
    axis: Any,
    out: Any = None,
    *,
    dtype: Any = None,
    keepdims: bool = False,
    scalars: Sequence[float] = (),
) -> Prepared:
    """Prepare a call of a reduction; see the public functions of `tilewright` with the same names.

    Parameters
    ----------
    scalars : eps of factors of norms.
    """
    array, dtype = _operand(op, x) if dtype is None else _operand_as(op, x, dtype)
    keepdims = check_flag(keepdims, "keepdims")
    along = _axes(op, axis, array.ndim)
    shape = tuple(
        1 if number in along else length
        for number, length in enumerate(array.shape)
        if keepdims or number not in along
    )
    given = None if out is None else check_result(out, shape, dtype)
    direct = given is not None and given.dtype == dtype and given.flags.aligned
    target = given if given is not None and direct and not np.may_share_memory(given, array) else None
    if target is None:
        target = new_array(shape, dtype)
    scalar = given is None and not shape
    if not array.size and target.size:
        if op not in _OF_NOTHING:
            raise EmptyReduction(function=op.value, axes=along, shape=array.shape)
        return Prepared(array, target, given, None, partial(_fill, target, _OF_NOTHING[op]), scalar)
    if not array.size:
        return Prepared(array, target, given, None)
    if not along and (array.ndim or dtype.kind in _INTEGER_KINDS):
        return Prepared(array, target, given, None, partial(copy_to, target, array, "unsafe"), scalar)
    if dtype.kind in _INTEGER_KINDS:
        moved = partial(_of_integers, op, array, target, along)
        return Prepared(array, target, given, None, moved, scalar)
    plan = _plan(array, target, along)
    if plan is not None:
        return Prepared(array, target, given, _call(op, array, target, plan, scalars), None, scalar)
    return Prepared(array, target, given, None, partial(_moved, op, array, target, along, scalars), scalar)


#: Truth values, signed and unsigned integers.
_INTEGER_KINDS = "biu"

#: Integers up to which it takes less time to convert them all than to call NumPy's reductions.
_FEW = 1 << 12


def _operand(op: RowOp, x: Any) -> tuple[Array, np.dtype[Any]]:
    """An array that can be reduced, and the type of the result: NumPy's."""
    given = as_array(x, "x")
    if given.dtype.kind not in _INTEGER_KINDS:
        if find_numpy_dtype(given.dtype.newbyteorder("=")) not in FUNCTION_DTYPES:
            supported = ", ".join(["bool", "integers", *map(str, FUNCTION_DTYPES)])
            raise UnsupportedDtype(dtype=given.dtype, supported=supported)
        array, dtype = as_floats(given, "x")
        return array, dtype.numpy
    if op is RowOp.MEAN:
        return copied(given, np.float64), np.dtype(np.float64)
    if op is RowOp.SUM:
        return given, np.dtype(np.uint64 if given.dtype.kind == "u" else np.int64)
    return given, given.dtype.newbyteorder("=")


def _operand_as(op: RowOp, x: Any, wanted: Any) -> tuple[Array, np.dtype[Any]]:
    """An array to be reduced in a type that the caller wants, and that type."""
    given, _ = _operand(RowOp.SUM, x)  # refuses what has no sum
    dtype = wanted_dtype(wanted)
    whole = dtype.kind in _INTEGER_KINDS and op is RowOp.SUM
    if not whole and find_numpy_dtype(dtype) not in FUNCTION_DTYPES:
        names = [*(["bool", "integers"] if op is RowOp.SUM else []), *map(str, FUNCTION_DTYPES)]
        raise UnsupportedDtype(dtype=dtype, supported=", ".join(names))
    wraps = whole and given.dtype.kind in _INTEGER_KINDS and dtype.kind != "b"
    if wraps or (given.dtype == dtype and given.flags.aligned):
        return given, dtype
    return copied(given, dtype), dtype


def _axes(op: RowOp, axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes that are reduced: all without a choice, none of an empty tuple."""
    if axis is None:
        return tuple(range(ndim))
    return () if type(axis) is tuple and not axis else check_axes(op.value, axis, ndim)


def _of_integers(op: RowOp, x: Array, target: Array, along: tuple[int, ...]) -> None:
    """Sums of 64-bit integers by the kernels of einsum, and extrema of a few narrow ones as floats.

    Everything else by NumPy's loops in C.
    """
    few = x.size <= _FEW
    if op is RowOp.SUM:
        call = None
        logical = target.dtype.kind == "b"
        wide = copied(x, target.dtype) if few and x.dtype != target.dtype else x
        if wide.dtype == target.dtype and wide.flags.aligned and not logical:
            labels = "".join(map(chr, range(x.ndim)))
            kept = "".join(label for axis, label in enumerate(labels) if axis not in along)
            call = plan_products((labels,), kept, wide.dtype, (wide.shape,), (wide.strides,))
        if call is not None:
            found = target if target.flags.c_contiguous else new_array(target.shape, target.dtype)
            call(wide, out=found)
            if found is not target:
                copy_to(target, found)
            return
    elif few and x.itemsize < np.float64(0).itemsize:
        found = new_array(target.shape, np.float64)
        _of_floats(op, copied(x, np.float64), found, along)
        copy_to(target, found, "unsafe")
        return
    whole = target.ndim == x.ndim
    numpy_call(_OF_INTEGERS[op], x, along, target.dtype, target, whole)


def _fill(target: Array, value: float) -> None:
    """Sets all elements."""
    copy_to(target, constant(np.asarray(value, target.dtype)))


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


def _plan(x: Array, numbers: Array, along: tuple[int, ...]) -> LinePlan | None:
    """How a kernel walks the arrays; None where x has to be copied first."""
    return plan_numbers(x.itemsize, x.shape, x.strides, _steps(numbers, x.ndim, along), along)


def _of_floats(op: RowOp, x: Array, numbers: Array, along: tuple[int, ...]) -> None:
    """The kernel on arrays of floats, in place if it can walk them."""
    plan = _plan(x, numbers, along)
    if plan is None:
        _moved(op, x, numbers, along)
    else:
        _call(op, x, numbers, plan).run()


def _call(op: RowOp, x: Array, numbers: Array, plan: LinePlan, scalars: Sequence[float] = ()) -> RowCall:
    """The kernel on arrays that it can walk."""
    return RowCall(kernel_of(op, x.dtype, plan.layout), [x, numbers], plan.sizes, plan.elements, scalars)


def _moved(
    op: RowOp, x: Array, numbers: Array, along: tuple[int, ...], scalars: Sequence[float] = ()
) -> None:
    """The kernel on a copy whose rows are contiguous, into an array of contiguous numbers."""
    rest = [axis for axis in range(x.ndim) if axis not in along]
    rows = contiguous(x.transpose(*rest, *along))
    found = new_array(tuple(x.shape[axis] for axis in rest), x.dtype)
    last = tuple(range(len(rest), x.ndim))
    plan = _plan(rows, found, last)
    assert plan is not None
    _call(op, rows, found, plan, scalars).run()
    copy_to(numbers, found.reshape(numbers.shape))
