"""Contractions of arrays: subscripts, and operands given as shapes or as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.calls.operands import Array
from tilewright.errors import InvalidOperand, shown
from tilewright.errors.callers import named_in_errors
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.einsum.contraction import StridedOperand, einsum_dimensions
from tilewright.ops.gemm.operands import find_dtype
from tilewright.spec.arguments import as_sizes
from tilewright.spec.dtype import DType
from tilewright.spec.functions import UnaryOp
from tilewright.typing import FirstTouchName, MainName, UnaryName


@named_in_errors
def einsum_contraction(
    subscripts: str,
    /,
    *operands: Array | Sequence[int],
    dtype: DType | str | None = None,
    out_dtype: DType | str | None = None,
    out_strides: Sequence[int] | None = None,
    main: MainName | UnaryName | None = None,
    first: FirstTouchName | None = None,
    last: str | None = None,
) -> Contraction:
    """The contraction that subscripts name, with no schedule yet: a dimension for each label.

    Parameters
    ----------
    subscripts : as `einsum` takes them, of one or two operands: ``"ij,jk->ik"``. A label that stands twice on
        one operand is its diagonal.
    operands : the shape of each, which then is row-major, or an array, whose strides and type are taken.
    dtype, out_dtype : element types, of both operands and of the result; by default those of arrays, or f32.
    out_strides : elements between the axes of the result; by default it is row-major.
    main, first, last : as in `Contraction`; of one operand `main` is "identity" by default.

    Returns
    -------
    Contraction
        All of its dimensions are sequential: `compile` finds a schedule, `schedule` shows it.

    Raises
    ------
    ContractionOperands, ContractionPrimitive, InvalidOperand, and what `einsum` raises of subscripts, shapes

    Examples
    --------
    >>> import tilewright as tw
    >>> print(tw.einsum_contraction("ij,jk->ik", (2, 3), (3, 4)))
    contraction dtype=f32 in1_dtype=f32 out_dtype=f32 main=packed_gemm first=zero
    m sequential 2 in0=3 in1=0 out=4
    n sequential 4 in0=0 in1=1 out=1
    k sequential 3 in0=1 in1=4 out=0
    """
    choices: dict[str, Any] = {"dtype": dtype, "in1_dtype": dtype, "out_dtype": out_dtype}
    choices |= {"main": main, "first": first, "last": last}
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
        raise InvalidOperand(name=f"operand {number}", reason=reason)
    return StridedOperand(sizes)


def _elements(array: Array, number: int) -> tuple[int, ...]:
    """Strides in elements."""
    if any(step % array.itemsize for step in array.strides):
        reason = f"strides {array.strides} are not multiples of the element size"
        raise InvalidOperand(name=f"operand {number}", reason=reason)
    return tuple(step // array.itemsize for step in array.strides)
