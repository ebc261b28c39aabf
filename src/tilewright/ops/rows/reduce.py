"""Reductions along axes (sum, mean, max, min, factors of norms): checks, results, overlap, kernel calls."""

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

#: NumPy's kinds of truth values, signed and unsigned integers.
_INTEGER_KINDS = "biu"

#: Number of integers up to which converting all of them is faster than a call of NumPy's reductions.
_FEW = 1 << 12

#: Results of reductions over no elements.
_EMPTY_RESULTS = {
    RowOp.SUM: 0.0,
    RowOp.MEAN: np.nan,
    RowOp.INVERSE_DEVIATION: np.nan,
    RowOp.INVERSE_ROOT: np.nan,
}

#: NumPy's reductions of integers and truth values, which have no kernel.
_NUMPY_REDUCTIONS = {RowOp.SUM: np.add.reduce, RowOp.MAX: np.maximum.reduce, RowOp.MIN: np.minimum.reduce}


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
        if op not in _EMPTY_RESULTS:
            raise EmptyReduction(function=op.value, axes=along, shape=array.shape)
        return Prepared(array, target, given, None, partial(_fill, target, _EMPTY_RESULTS[op]), scalar)
    if not array.size:
        return Prepared(array, target, given, None)
    if not along and (array.ndim or dtype.kind in _INTEGER_KINDS):
        return Prepared(array, target, given, None, partial(copy_to, target, array, "unsafe"), scalar)
    if dtype.kind in _INTEGER_KINDS:
        moved = partial(_reduce_integers, op, array, target, along)
        return Prepared(array, target, given, None, moved, scalar)
    plan = _plan(array, target, along)
    if plan is not None:
        return Prepared(array, target, given, _call(op, array, target, plan, scalars), None, scalar)
    return Prepared(
        array, target, given, None, partial(_run_on_copy, op, array, target, along, scalars), scalar
    )


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
    """The axes that are reduced: all by default, none for an empty tuple."""
    if axis is None:
        return tuple(range(ndim))
    return () if type(axis) is tuple and not axis else check_axes(op.value, axis, ndim)


def _reduce_integers(op: RowOp, x: Array, target: Array, along: tuple[int, ...]) -> None:
    """Reduce integers: sums of 64 bits by the kernels of einsum, extrema of a few narrow ones as floats.

    NumPy's loops compute everything else.
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
        _reduce_floats(op, copied(x, np.float64), found, along)
        copy_to(target, found, "unsafe")
        return
    whole = target.ndim == x.ndim
    numpy_call(_NUMPY_REDUCTIONS[op], x, along, target.dtype, target, whole)


def _fill(target: Array, value: float) -> None:
    """Sets all elements."""
    copy_to(target, constant(np.asarray(value, target.dtype)))


def _steps(results: Array, ndim: int, along: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of the results, one for each axis of the operand; 0 along reduced axes."""
    kept = results.ndim == ndim
    strides = iter(results.strides)
    found = []
    for axis in range(ndim):
        if axis in along:
            found.append(0)
            if kept:
                next(strides)
        else:
            found.append(next(strides))
    return tuple(found)


def _plan(x: Array, results: Array, along: tuple[int, ...]) -> LinePlan | None:
    """How a kernel traverses the arrays; None if x has to be copied first."""
    return plan_numbers(x.itemsize, x.shape, x.strides, _steps(results, x.ndim, along), along)


def _reduce_floats(op: RowOp, x: Array, results: Array, along: tuple[int, ...]) -> None:
    """Reduce floats: the kernel on the arrays themselves if it can traverse them, or else on a copy."""
    plan = _plan(x, results, along)
    if plan is None:
        _run_on_copy(op, x, results, along)
    else:
        _call(op, x, results, plan).run()


def _call(op: RowOp, x: Array, results: Array, plan: LinePlan, scalars: Sequence[float] = ()) -> RowCall:
    """A call of the kernel on arrays that it can traverse."""
    return RowCall(kernel_of(op, x.dtype, plan.layout), [x, results], plan.sizes, plan.elements, scalars)


def _run_on_copy(
    op: RowOp, x: Array, results: Array, along: tuple[int, ...], scalars: Sequence[float] = ()
) -> None:
    """Run the kernel on a copy with contiguous rows, and copy its contiguous results."""
    rest = [axis for axis in range(x.ndim) if axis not in along]
    rows = contiguous(x.transpose(*rest, *along))
    found = new_array(tuple(x.shape[axis] for axis in rest), x.dtype)
    last = tuple(range(len(rest), x.ndim))
    plan = _plan(rows, found, last)
    assert plan is not None
    _call(op, rows, found, plan, scalars).run()
    copy_to(results, found.reshape(results.shape))
