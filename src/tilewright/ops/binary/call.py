"""Functions of pairs of elements of any arrays: checks, broadcasting, overlap; ends in kernels."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np

from tilewright.calls.kernels import kernel_for
from tilewright.calls.operands import Array, broadcast_shapes
from tilewright.calls.pieces import contiguous, copied, copy_to
from tilewright.calls.promotion import common_dtype
from tilewright.calls.recording import new_array, new_like
from tilewright.compiler.kernel import Kernel
from tilewright.errors import GateHalves, PairShapes
from tilewright.ops.binary.plan import plan_pairs
from tilewright.ops.binary.problem import BinaryFunction
from tilewright.ops.rows.call import as_floats, check_result, same_memory
from tilewright.ops.rows.kernel import Prepared, RowCall
from tilewright.spec.binary_functions import BinaryOp
from tilewright.spec.dtype import find_numpy_dtype
from tilewright.spec.functions import UnaryOp

#: The names of two operands in messages.
Names = tuple[str, str]


def prepare_halves(x: Any, activation: UnaryOp | None, out: Any, *, gate_first: bool) -> Prepared:
    """Prepare a gated product whose operands are the halves of one array's last axis."""
    array, _ = as_floats(x, "x")
    if not array.ndim or array.shape[-1] % 2:
        raise GateHalves(found=array.shape)
    half = array.shape[-1] // 2
    halves = array[..., :half], array[..., half:]
    gate, values = halves if gate_first else halves[::-1]
    return prepare_pairs(BinaryOp.MULTIPLY, values, gate, out, activation, names=("x", "x"))


def prepare_pairs(
    op: BinaryOp,
    left: Any,
    right: Any,
    out: Any = None,
    activation: UnaryOp | None = None,
    *,
    names: Names = ("left", "right"),
) -> Prepared:
    """Prepare op(left, activation(right)) of two arrays that broadcast.

    Parameters
    ----------
    names : of the operands, in messages.

    Raises
    ------
    PairShapes, UnsupportedDtype, InvalidOperand, OutShape, OutDtype, OutReadOnly, OutNotArray,
    OutOverlapsItself
    """
    a, b = _of_one_type(as_floats(left, names[0])[0], as_floats(right, names[1])[0])
    shape = broadcast_shapes(a.shape, b.shape)
    if shape is None:
        raise PairShapes(left=names[0], right=names[1], a=a.shape, b=b.shape)
    given = None if out is None else check_result(out, shape, a.dtype)
    target = _target((a, b), shape, given)
    if not target.size:
        return Prepared(a, target, given, None)
    kernel = _kernel(op, a.dtype, activation)
    call = _call(kernel, a, b, target)
    return Prepared(a, target, given, call, partial(_moved, kernel, a, b, target))


def _of_one_type(a: Array, b: Array) -> tuple[Array, Array]:
    """Both operands in the type that contains both."""
    if a.dtype == b.dtype:
        return a, b
    wide = common_dtype(a.dtype, b.dtype)
    assert wide is not None, "two floats have a common type"
    return tuple(one if one.dtype == wide else copied(one, wide) for one in (a, b))  # type: ignore[return-value]


def _target(operands: tuple[Array, Array], shape: tuple[int, ...], out: Array | None) -> Array:
    """The array to compute into: `out` itself if each operand is exactly it or apart from it."""
    if out is not None and out.dtype == operands[0].dtype and out.flags.aligned:
        alike = (one.shape == shape and same_memory(one, out) for one in operands)
        apart = (not np.may_share_memory(one, out) for one in operands)
        if all(is_out or is_apart for is_out, is_apart in zip(alike, apart, strict=True)):
            return out
    whole = next((one for one in operands if one.shape == shape), None)
    return new_array(shape, operands[0].dtype) if whole is None else new_like(whole)


@lru_cache(maxsize=64)
def _kernel(op: BinaryOp, dtype: np.dtype[Any], activation: UnaryOp | None) -> Kernel:
    """The kernel of an element type."""
    found = find_numpy_dtype(dtype)
    assert found is not None
    kernel: Kernel = kernel_for(BinaryFunction(op, found, activation))
    return kernel


def _call(kernel: Kernel, left: Array, right: Array, to: Array) -> RowCall | None:
    """The kernel on arrays in place; None where one of them has to be copied first."""
    steps = (np.broadcast_to(one, to.shape).strides for one in (left, right))
    plan = plan_pairs(to.itemsize, to.shape, *steps, to.strides)
    return None if plan is None else RowCall(kernel, [left, right, to], plan.sizes, plan.elements)


def _moved(kernel: Kernel, left: Array, right: Array, to: Array) -> None:
    """The kernel on row-major copies; of operands of many repeated axes, on copies of the result's shape."""
    rows = to if to.flags.c_contiguous else new_array(to.shape, to.dtype)
    call = _call(kernel, contiguous(left), contiguous(right), rows)
    if call is None:
        a, b = (contiguous(np.broadcast_to(one, to.shape)) for one in (left, right))
        call = _call(kernel, a, b, rows)
    assert call is not None
    call.run()
    if rows is not to:
        copy_to(to, rows)
