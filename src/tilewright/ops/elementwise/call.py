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
from tilewright.spec.dtype import find_numpy_dtype
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


@lru_cache(maxsize=64)
def _kernel(op: UnaryOp, dtype: np.dtype[Any]) -> Kernel:
    """The kernel of an element type."""
    found = find_numpy_dtype(dtype)
    assert found is not None
    kernel: Kernel = kernel_for(Elementwise(op, found))
    return kernel


def _call(op: UnaryOp, x: Array, y: Array) -> RowCall | None:
    """The kernel from x to y; None where their adjacent axes differ."""
    plan = plan_elements(x.itemsize, x.shape, x.strides, y.strides)
    return None if plan is None else RowCall(_kernel(op, x.dtype), [x, y], plan.sizes, plan.elements)


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
