"""Functions of single elements of any arrays: checks, axes, overlap; ends in kernels."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np

from tilewright.calls.kernels import kernel_for
from tilewright.calls.operands import Array
from tilewright.calls.recording import new_array
from tilewright.compiler.kernel import Kernel
from tilewright.ops.elementwise.problem import Elementwise
from tilewright.ops.rows.call import as_floats, check_result, result_target
from tilewright.ops.rows.kernel import Prepared, RowCall
from tilewright.ops.rows.lines import plan_elements
from tilewright.ops.transpose.call import transpose
from tilewright.spec.dtype import FUNCTION_DTYPES, find_numpy_dtype
from tilewright.spec.functions import UnaryOp


def prepare_each(op: UnaryOp, x: Any, out: Any = None) -> Prepared:
    """op(x), element by element; see the functions of `tilewright` that are named like its members."""
    array, dtype = as_floats(x, "x")
    given = None if out is None else check_result(out, array.shape, dtype.numpy)
    target = result_target(array, dtype, given)
    if not array.size:
        return Prepared(array, target, given, None)
    call = _call(op, array, target)
    return Prepared(array, target, given, call, partial(_moved, op, array, target))


def convert(x: Array, y: Array) -> bool:
    """Write x to y, of its shape and another type, as `numpy.copyto` does; false where no kernel does that.

    >>> x, y = np.float32([[1.5, 2.5]]), np.empty((1, 2), "f8")
    >>> convert(x, y), y.tolist()
    (True, [[1.5, 2.5]])
    """
    types = [find_numpy_dtype(one.dtype) for one in (x, y)]
    aligned = x.flags.aligned and y.flags.aligned
    if not (x.size and aligned and all(one in FUNCTION_DTYPES for one in types)):
        return False
    call = _call(UnaryOp.IDENTITY, x, y)
    if call is not None:
        call.run()
    return call is not None


@lru_cache(maxsize=64)
def _kernel(op: UnaryOp, dtype: np.dtype[Any], y_dtype: np.dtype[Any]) -> Kernel:
    """The kernel from an element type to another, or to itself."""
    of_x, of_y = find_numpy_dtype(dtype), find_numpy_dtype(y_dtype)
    assert of_x is not None
    kernel: Kernel = kernel_for(Elementwise(op, of_x, y_dtype=of_y))
    return kernel


def _call(op: UnaryOp, x: Array, y: Array) -> RowCall | None:
    """The kernel from x to y; None where their adjacent axes differ."""
    steps = tuple(step // y.itemsize * x.itemsize for step in y.strides)
    plan = plan_elements(x.itemsize, x.shape, x.strides, steps)
    if plan is None:
        return None
    return RowCall(_kernel(op, x.dtype, y.dtype), [x, y], plan.sizes, plan.elements)


def _moved(op: UnaryOp, x: Array, y: Array) -> None:
    """The kernel on a copy of x that stands like y, or on one of its own."""
    axes = range(x.ndim)
    copy = y if plan_elements(y.itemsize, y.shape, y.strides, y.strides) else new_array(y.shape, y.dtype)
    transpose(x, axes, copy)
    call = _call(op, copy, copy)
    assert call is not None
    call.run()
    if copy is not y:
        transpose(copy, axes, y)
