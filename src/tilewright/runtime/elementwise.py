"""Functions of single elements of any arrays: checks, axes, overlap; ends in kernels."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tilewright.runtime.lines import plan_elements
from tilewright.runtime.operands import Array
from tilewright.runtime.row_function import Done, RowKernel, row_kernel
from tilewright.runtime.row_functions import as_floats, check_result, result_target
from tilewright.runtime.transpose import transpose
from tilewright.spec.dtype import find_numpy_dtype
from tilewright.spec.elementwise import Elementwise
from tilewright.spec.functions import UnaryOp


def apply_each(op: UnaryOp, x: Any, out: Any = None) -> tuple[Array, Done | None]:
    """op(x), element by element; see the functions of `tilewright` that are named like its members.

    Besides the result, what was done where that was one call of a kernel.
    """
    array, dtype = as_floats(x, "x")
    given = None if out is None else check_result(out, array, dtype)
    target = result_target(array, dtype, given)
    done = _run(op, array, target) if array.size else None
    if given is None or target is given:
        return target, done
    np.copyto(given, target, casting="same_kind")
    return given, None


@lru_cache(maxsize=64)
def _kernel(op: UnaryOp, dtype: np.dtype[Any]) -> RowKernel:
    """The kernel of an element type."""
    found = find_numpy_dtype(dtype)
    assert found is not None
    return row_kernel(Elementwise(op, found))


def _run(op: UnaryOp, x: Array, y: Array) -> Done | None:
    """The kernel from x to y; on a copy of x where their adjacent axes differ."""
    plan = plan_elements(x.itemsize, x.shape, x.strides, y.strides)
    if plan is not None:
        done = Done(_kernel(op, x.dtype), [x, y], plan.sizes, plan.elements)
        done.run()
        return done
    axes = range(x.ndim)
    copy = y if plan_elements(y.itemsize, y.shape, y.strides, y.strides) else np.empty(y.shape, y.dtype)
    transpose(x, axes, copy)
    _run(op, copy, copy)
    if copy is not y:
        transpose(copy, axes, y)
    return None
