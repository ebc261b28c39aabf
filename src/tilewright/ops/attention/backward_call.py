"""One call of attention's gradients: checks, views, and sums over broadcast axes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tilewright.calls.foreign import as_array
from tilewright.calls.kernels import kernel_for
from tilewright.calls.operands import Array, whole_strides
from tilewright.calls.pieces import zeros as new_zeros
from tilewright.calls.recording import constant, new_array, new_like, not_repeatable, repeatable
from tilewright.compiler.kernel import Kernel
from tilewright.errors import AttentionDtype, AttentionGradientShape
from tilewright.ops.attention.backward_cut import BACKWARD_FIELDS
from tilewright.ops.attention.backward_kernel import BackwardCall
from tilewright.ops.attention.backward_problem import BACKWARD_DTYPES, AttentionBackward
from tilewright.ops.attention.operands import (
    AttentionLayout,
    Keywords,
    float_dtype,
    heads_first,
)
from tilewright.ops.attention.prepared import PreparedAttention, prepare
from tilewright.ops.attention.problem import ITEM_FIELDS
from tilewright.ops.attention.sequences import SequenceSide
from tilewright.spec.arguments import parse_choice
from tilewright.spec.dtype import DType, find_numpy_dtype


def _rows(value: Any, name: str, like: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An operand of a required shape in a kernel's type, columns adjacent: itself where it is so already."""
    array = as_array(value, name)
    if float_dtype(array.dtype) is None:
        raise AttentionDtype(name=name, found=array.dtype, required=f"a float such as {dtype}")
    if array.shape != shape:
        raise AttentionGradientShape(name=name, found=array.shape, required=shape, like=like)
    ready = array.dtype == dtype and array.dtype.isnative and whole_strides(array)
    if ready and (array.ndim == 0 or array.shape[-1] <= 1 or array.strides[-1] == array.itemsize):
        return array
    return np.array(array, dtype=dtype, order="C")


def _problem(prepared: PreparedAttention) -> AttentionBackward:
    """The record of the gradients' kernel.

    Raises
    ------
    UnsupportedDtype, InvalidSize, AttentionDtype
    """
    call = prepared.call
    dtype = find_numpy_dtype(call.q.dtype)
    assert dtype is not None
    if call.k.dtype != call.q.dtype:
        required = " or ".join(str(kind.numpy) for kind in BACKWARD_DTYPES)
        raise AttentionDtype(name="k", found=call.k.dtype, required=required)
    forward = prepared.problem
    return _record(
        *(call.q.shape[3], call.v.shape[3], dtype),
        bounded=forward is not None and forward.bounded,
        mask=None if forward is None else forward.mask,
        softcap=bool(call.softcap),
        slopes=call.slopes is not None,
    )


@lru_cache(maxsize=256)
def _record(head_dim: int, value_dim: int, dtype: DType, **options: Any) -> AttentionBackward:
    """`AttentionBackward`, which checks its fields."""
    return AttentionBackward(head_dim, value_dim, dtype, **options)


#: The columns of the two tables that say the same.
_SAME = [name for name in ITEM_FIELDS if name in BACKWARD_FIELDS]
_FORWARD = [ITEM_FIELDS.index(name) for name in _SAME]
_BACKWARD = [BACKWARD_FIELDS.index(name) for name in _SAME]


class _Gradient:
    """One gradient in the shape of an operand, with a full batch axis if the operand broadcasts.

    Parameters
    ----------
    zeros : whether the kernel leaves out some of it, which is 0.
    """

    def __init__(
        self,
        operand: Array,
        view: Array,
        side: SequenceSide,
        batch: int,
        layout: AttentionLayout,
        *,
        zeros: bool,
    ) -> None:
        self.operand = operand
        self.repeated = side.first is None and len(view) == 1 < batch
        lead = (batch, *operand.shape[-3:]) if operand.ndim > 2 else (batch, 1, *operand.shape[-2:])
        new = new_zeros if zeros else new_array
        self.array = new(lead if self.repeated else operand.shape, view.dtype)
        self.view = heads_first(self.array, layout)

    def finished(self) -> Array:
        """The gradient, summed over the sequences that shared the operand."""
        if not self.repeated:
            return self.array
        total: Array = self.array.astype(np.float32).sum(axis=0).astype(self.array.dtype)
        return total.reshape(self.operand.shape)


def _offsets(array: Array, side: SequenceSide, batch: int) -> Array:
    """Offset of each sequence in an array of four axes, in elements."""
    steps = [step // array.itemsize for step in array.strides]
    if side.first is not None:
        return side.first * steps[2]
    return np.arange(batch) * (steps[0] if len(array) > 1 else 0)


def attention_backward(
    dout: Any, operands: tuple[Any, Any, Any], out: Any, lse: Any, keywords: Keywords
) -> tuple[Array, Array, Array]:
    """Implementation of `tilewright.attention_backward`, which documents it."""
    given = [as_array(value, name) for value, name in zip(operands, "qkv", strict=True)]
    prepared = prepare(given[0], given[1], given[2], None, keywords)
    if prepared.by_contents:
        not_repeatable("lengths in arrays")
    problem, forward = _problem(prepared), prepared.call
    layout = parse_choice(AttentionLayout, keywords.layout, "layout")
    kind, queries, keys = forward.q.dtype, *prepared.sides
    result, doubled = (
        heads_first(_rows(value, name, "the result", prepared.target.shape, kind), layout)
        for value, name in ((out, "out"), (dout, "dout"))
    )
    sums = np.dtype(np.float32)
    state = np.ascontiguousarray(_rows(lse, "lse", "heads and queries", prepared.state_shape, sums))
    state = state.reshape(forward.row_max.shape)
    batch = len(forward.items)
    seen = forward.items[:, ITEM_FIELDS.index("keys")]
    packed = any(side.rows is not None or side.first is not None for side in prepared.sides)
    empty = 0 in (*forward.q.shape, *forward.k.shape, batch)
    some = problem.bounded or empty or bool(seen.min() < forward.k.shape[2])
    gradients = [
        _Gradient(array, view, side, batch, layout, zeros=packed or some)
        for array, view, side in zip(given, forward[:3], (queries, keys, keys), strict=True)
    ]
    dq, dk, dv = (gradient.view for gradient in gradients)
    items = np.zeros_like(forward.items)
    items[:, _BACKWARD] = forward.items[:, _FORWARD]
    placed = {"out": result, "dout": doubled, "dq": dq, "dk": dk, "dv": dv}
    for name, array in placed.items():
        side = keys if name in ("dk", "dv") else queries
        if batch > 1 or side.first is not None:
            items[:, BACKWARD_FIELDS.index(name)] = _offsets(array, side, batch)
    call = BackwardCall(
        *(forward.q, forward.k, forward.v, result, doubled, dq, dk, dv),
        items=constant(items),
        lse=state,
        delta=new_like(state),
        scale=forward.scale,
        softcap=forward.softcap,
        mask=forward.mask,
        slopes=forward.slopes,
    )
    if batch and state.size and forward.keys:
        kernel: Kernel = kernel_for(problem)
        call.run(kernel)
    repeatable()
    found = [gradient.finished() for gradient in gradients]
    return found[0], found[1], found[2]
