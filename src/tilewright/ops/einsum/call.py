"""Calls of einsum that no earlier one has decided: arguments are checked, a plan is run and kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import Any

import numpy as np

from tilewright.calls.afterwards import afterwards
from tilewright.calls.foreign import as_array, foreign_operand, leave_to_numpy
from tilewright.calls.operands import Array, overlaps_itself
from tilewright.calls.pieces import as_type
from tilewright.calls.promotion import (
    no_common_dtype,
    promoted_dtype,
    same_kind,
)
from tilewright.calls.recipes import EinsumCall, Made
from tilewright.errors import (
    EinsumCast,
    OutOverlapsItself,
    OutReadOnly,
    OutShape,
)
from tilewright.llvm.builtin import Builtin
from tilewright.ops.einsum.plan import EinsumPlan, kept_plan
from tilewright.ops.einsum.prepared import keep_call, keep_steps
from tilewright.ops.einsum.recipe import steps_of_plan
from tilewright.ops.einsum.run import EinsumOptions, Types, copied_into, run_plan
from tilewright.ops.einsum.subscripts import check_search
from tilewright.ops.gemm.call import check_array, find_dtype, result_dtype
from tilewright.ops.gemm.gufuncs import in_order, memory_order
from tilewright.spec.arguments import as_dtype

#: Elements up to which an operand of another type is converted before it is multiplied: products of two types
#: go through Python, where a conversion of 4 Ki elements takes a microsecond or two.
_CONVERTED_FIRST = 1 << 12


def einsum(
    subscripts: str | bytes,
    given: Sequence[Any],
    options: EinsumOptions,
    key: tuple[Any, ...] | None,
    builtin: Builtin,
) -> Array:
    """A call that no earlier one has decided, which is kept by its key; see `tilewright.einsum`."""
    text = subscripts.decode("latin-1") if isinstance(subscripts, bytes) else subscripts
    foreign = foreign_operand("__array_function__", (*given, options.out))
    if foreign is not None:
        left: Array = leave_to_numpy("einsum", foreign, (text, *given), options.given())
        return left
    options.check()
    operands = [plain_array(value, number) for number, value in enumerate(given)]
    places = tuple((operand.shape, operand.strides, operand.dtype.kind) for operand in operands)
    plan = kept_plan(text, places, check_search(options.optimize))
    out = None if options.out is None else check_out(options.out, plan.shape)
    own, asked = operands[0].dtype, options.dtype
    if plan.is_view and out is None and (asked is None or as_dtype(asked) == own):  # of any type
        types = Types(own, own, own)
    else:
        types = types_of(operands, options)
        operands = [converted(operand, types.computed) for operand in operands]
    with afterwards("einsum"):
        if isinstance(subscripts, str):
            call = EinsumCall(subscripts, options.optimize, given, options.out)
            steps = _native_steps(call, plan, options, types)
            if steps is not None:
                keep_steps(builtin, call, steps)
        if out is None:
            _remember(key, plan, types, given, builtin.function)
    if out is None:
        return in_order(run_plan(plan, operands, None, types), operands, memory_order(options.order))
    if out.dtype == types.result and not any(np.may_share_memory(out, operand) for operand in operands):
        return run_plan(plan, operands, out, types)
    return copied_into(run_plan(plan, operands, None, types), out)


def _remember(
    key: tuple[Any, ...] | None, plan: EinsumPlan, types: Types, values: Sequence[Any], public: Any
) -> None:
    """Keeps what a call on plain arrays computes, so that its repetition only looks it up."""
    if key is None or any(type(value) is not np.ndarray or value.dtype.char in "qQ" for value in values):
        return  # C's long long is equal to int64 as a key
    keep_call(key, _direct(key[0], plan, values, types, public))


def _native_steps(
    call: EinsumCall, plan: EinsumPlan, options: EinsumOptions, types: Types
) -> list[Made] | None:
    """The steps in which machine code repeats a call on plain arrays of one type; None where it cannot."""
    plain = options.dtype is None and options.order == "K" and options.casting == "safe"
    alike = all(
        type(array) is np.ndarray and array.dtype == types.result and array.flags.aligned
        for array in call.arrays
    )
    sums = sum(collapse is not None and not collapse.is_view for collapse in plan.collapses)
    widened = types.partial != types.result and len(plan.steps) + sums > 1
    if widened or not (plain and alike and call.fits):
        return None
    return steps_of_plan(plan, call.operands, call.out)


def _direct(
    text: str, plan: EinsumPlan, arrays: Sequence[Array], types: Types, public: Callable[..., Any]
) -> Callable[..., Array]:
    """The least that a call with this plan has to do, as a function of the operands."""
    if any(array.dtype != types.result for array in arrays):
        if all(converted(array, types.result).dtype == types.result for array in arrays):  # then it is alike
            return lambda *operands: public(text, *(as_type(one, types.result) for one in operands))
        return lambda *operands: run_plan(
            plan, [converted(one, types.computed) for one in operands], None, types
        )
    if not plan.steps and plan.collapses[0] is not None:
        alone = plan.collapses[0]
        transposed = alone.is_view and not (alone.diagonals or alone.squeezed) and bool(alone.shape)
        order = alone.axes or tuple(range(len(alone.shape)))
        return methodcaller("transpose", order) if transposed else alone.total
    pair = plan.pair(arrays) if plan.shape else None
    if pair is not None:
        return pair.multiply
    return lambda *operands: run_plan(plan, operands, None, types)


# --- checks -------------------------------------------------------------------------------------


def plain_array(value: Any, number: int) -> Array:
    """An operand as a plain array."""
    return as_array(value, str(number))


def types_of(operands: Sequence[Array], options: EinsumOptions) -> Types:
    """The type of the result: asked for, or NumPy's promotion of operands and `out`.

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
    if result != np.bool_:
        find_dtype(result)  # refuses types that have no product
    casts = [(f"operand {number}", array.dtype, result) for number, array in enumerate(operands)]
    if options.out is not None:
        casts.append(("the result", result, options.out.dtype))
    for name, found, required in casts:
        if not _castable(found, required, options.casting):
            raise EinsumCast(name=name, found=found, required=required, casting=options.casting)
    return Types.of(result, operands)


def _castable(source: np.dtype[Any], target: np.dtype[Any], casting: Any) -> bool:
    return same_kind(source, target) if casting == "same_kind" else np.can_cast(source, target, casting)


def converted(operand: Array, dtype: np.dtype[Any]) -> Array:
    """An operand that products take, which convert large ones of the same kind or narrower themselves."""
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
