"""The Python side of einsum: checks of arguments, types, and the run of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.calls.foreign import as_array, foreign_operand, leave_to_numpy
from tilewright.calls.operands import Array, overlaps_itself
from tilewright.calls.pieces import as_type
from tilewright.calls.promotion import (
    no_common_dtype,
    promoted_dtype,
    same_kind,
)
from tilewright.calls.recording import repeatable
from tilewright.errors import (
    EinsumCast,
    OutOverlapsItself,
    OutReadOnly,
    OutShape,
)
from tilewright.ops.einsum.order import check_search
from tilewright.ops.einsum.plan import kept_plan
from tilewright.ops.einsum.run import EinsumOptions, Types, copied_into, run_plan
from tilewright.ops.gemm.gufuncs import in_order, memory_order
from tilewright.ops.gemm.operands import check_array, find_dtype, result_dtype
from tilewright.spec.arguments import as_dtype

#: Elements up to which an operand of another type is converted before it is multiplied: products of two types
#: go through Python, where a conversion of 4 Ki elements takes a microsecond or two.
_CONVERTED_FIRST = 1 << 12


def einsum(text: str, given: Sequence[Any], options: EinsumOptions) -> Array:
    """See `tilewright.einsum`."""
    plain = all(type(value) is np.ndarray for value in given)
    if not plain or options.out is not None:
        named = {f"operand {number}": value for number, value in enumerate(given)}
        foreign = foreign_operand("__array_function__", {**named, "out": options.out})
        if foreign is not None:
            left: Array = leave_to_numpy("einsum", foreign, (text, *given), options.given())
            return left
    options.check()
    operands = [*given] if plain else [plain_array(value, number) for number, value in enumerate(given)]
    places = tuple([(operand.shape, operand.strides, operand.dtype.kind) for operand in operands])
    plan = kept_plan(text, places, check_search(options.optimize))
    out = None if options.out is None else check_out(options.out, plan.shape)
    own, asked = operands[0].dtype, options.dtype
    if plan.is_view and out is None and (asked is None or as_dtype(asked) == own):  # of any type
        types = Types(own, own, own)
    else:
        types = types_of(operands, options)
        operands = [converted(operand, types.computed) for operand in operands]
    repeatable()
    if out is None:
        return in_order(run_plan(plan, operands, None, types), operands, memory_order(options.order))
    if out.dtype == types.result and not any(np.may_share_memory(out, operand) for operand in operands):
        return run_plan(plan, operands, out, types)
    return copied_into(run_plan(plan, operands, None, types), out)


# --- checks -------------------------------------------------------------------------------------


def plain_array(value: Any, number: int) -> Array:
    """An operand as a plain array."""
    return as_array(value, f"operand {number}")


def types_of(operands: Sequence[Array], options: EinsumOptions) -> Types:
    """The types of a call; the result has the requested one, or NumPy's promotion of operands and `out`.

    Raises
    ------
    UnsupportedDtype, EinsumCast
    """
    if options.dtype is not None:
        result = result_dtype(operands[0], operands[0], None, options.dtype)
    else:
        given = [*operands] if options.out is None else [*operands, options.out]
        dtypes = [array.dtype for array in given]
        promoted = promoted_dtype(*dtypes)
        if promoted is None:
            raise no_common_dtype(*dtypes)
        result = promoted
    if result.kind != "b":
        find_dtype(result)  # refuses types that have no product
    if all(array.dtype is result for array in operands) and options.out is None:
        return Types.of(result)
    casts = [(number, array.dtype, result) for number, array in enumerate(operands)]
    if options.out is not None:
        casts.append((-1, result, options.out.dtype))
    for number, found, required in casts:
        if found is not required and not _castable(found, required, options.casting):
            name = "the result" if number < 0 else f"operand {number}"
            raise EinsumCast(name=name, found=found, required=required, casting=options.casting)
    return Types.of(result, operands)


def _castable(source: np.dtype[Any], target: np.dtype[Any], casting: Any) -> bool:
    return same_kind(source, target) if casting == "same_kind" else np.can_cast(source, target, casting)


def converted(operand: Array, dtype: np.dtype[Any]) -> Array:
    """An operand as products take it: they convert large ones of the same kind, or narrower, themselves."""
    itself = operand.size > _CONVERTED_FIRST and same_kind(operand.dtype, dtype)
    return operand if itself else as_type(operand, dtype)


def check_out(out: Any, shape: tuple[int, ...]) -> Array:
    """`out`, if it can hold the result."""
    array = check_array(out)
    if array.shape != shape:
        raise OutShape(found=array.shape, required=shape)
    if not array.flags.writeable:
        raise OutReadOnly
    if overlaps_itself(array):
        raise OutOverlapsItself(shape=array.shape, strides=array.strides)
    return array
