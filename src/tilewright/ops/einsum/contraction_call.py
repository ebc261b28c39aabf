"""Contractions of arrays: subscripts, and operands given as shapes or as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.calls.operands import Array
from tilewright.errors import InvalidOperand, shown
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.einsum.contraction import StridedOperand, einsum_dimensions
from tilewright.ops.gemm.call import find_dtype
from tilewright.spec.arguments import as_sizes
from tilewright.spec.functions import UnaryOp


def einsum_contraction(
    subscripts: str, operands: Sequence[Any], out_strides: Sequence[int] | None, choices: dict[str, Any]
) -> Contraction:
    """What `tilewright.einsum_contraction` does, which documents it."""
    places = [_place(operand, number) for number, operand in enumerate(operands)]
    names = ("dtype", "in1_dtype")
    for name, operand in zip(names, operands, strict=False):
        if isinstance(operand, np.ndarray) and choices.get(name) is None:
            choices[name] = find_dtype(operand.dtype)
    given = {name: value for name, value in choices.items() if value is not None}
    if len(operands) == 1:
        given.setdefault("main", UnaryOp.IDENTITY)
    return Contraction(einsum_dimensions(subscripts, places, out_strides), **given)


def _place(operand: Any, number: int) -> StridedOperand:
    """The shape and strides of an operand."""
    if isinstance(operand, np.ndarray):
        return StridedOperand(operand.shape, _elements(operand, number))
    sizes = as_sizes(operand)
    if sizes is None:
        reason = f"found {shown(operand)}, must be an array or the shape of one"
        raise InvalidOperand(name=str(number), reason=reason)
    return StridedOperand(sizes)


def _elements(array: Array, number: int) -> tuple[int, ...]:
    """Strides in elements."""
    if any(step % array.itemsize for step in array.strides):
        raise InvalidOperand(name=str(number), reason=f"strides {array.strides} are no whole elements")
    return tuple(step // array.itemsize for step in array.strides)
