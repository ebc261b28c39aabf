"""Operators on shapes: sizes as values, and arithmetic of sizes evaluated while a model is loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.calls.operands import Array
from tilewright.graph.sizes import quotient, size_of
from tilewright.loops.nests.polynomial import Polynomial
from tilewright.onnx.call import NodeCall, NotSupported, OperatorTable, Results, Tensor
from tilewright.onnx.sizes import (
    SizeArray,
    Undecided,
    absolute,
    combined,
    compared,
    is_combination,
    is_comparison,
    is_negative,
    size_elements,
)
from tilewright.onnx.tensors import element_dtype

OPERATORS = OperatorTable()


@OPERATORS.add("Shape")
def shape(call: NodeCall) -> Results:
    """The sizes of a value, or of some of its axes."""
    found = call.tensor(0)
    sizes = found.elements.shape if isinstance(found, SizeArray) else found.shape
    start, end = call.attribute("start", 0), call.attribute("end", len(sizes))
    return SizeArray(size_elements(sizes[slice(start, end)]), np.dtype(np.int64))


@OPERATORS.add("Size")
def size(call: NodeCall) -> Results:
    """The number of elements."""
    found = call.tensor(0)
    sizes = found.elements.shape if isinstance(found, SizeArray) else found.shape
    total: Any = size_of(1)
    for one in sizes:
        total = total * one
    return SizeArray(size_elements(total), np.dtype(np.int64))


@OPERATORS.add("ConstantOfShape")
def constant_of_shape(call: NodeCall) -> Results:
    """One value in a given shape."""
    tensor = call.attribute("value")
    value: Array = np.zeros((), np.float32)
    if tensor is not None:
        value = call.tensor_attribute(tensor).reshape(-1)[:1].reshape(())
    return call.graph.expand(call.graph.constant(value), call.size_list(0))


@OPERATORS.add("Range")
def number_range(call: NodeCall) -> Results:
    """start, start + delta, ... below a limit."""
    if all(call.is_integer_known(number) for number in range(3)):
        start, limit, delta = (call.size_list(number)[0] for number in range(3))
        return _integers(call, start, limit, delta)
    bounds: list[Any] = [call.array(number).reshape(())[()] for number in range(3)]
    return call.graph.constant(np.arange(*bounds, dtype=bounds[0].dtype))


def _integers(call: NodeCall, start: Polynomial, limit: Polynomial, delta: Polynomial) -> Results:
    dtype, step = call.value(0).dtype, delta.constant
    if not step:
        raise NotSupported("a step that is 0 or depends on sizes")
    span = (limit - start) if step > 0 else (start - limit)
    known = span.constant
    length = (
        size_of(max(-(-known // abs(step)), 0)) if known is not None else quotient(span, size_of(abs(step)))
    )
    if length is None:
        raise NotSupported(f"a range of {span} in steps of {step} has no length that is a polynomial")
    return call.graph.iota(length, start, step, dtype)


@OPERATORS.add("EyeLike")
def eye_like(call: NodeCall) -> Results:
    """1 on a diagonal."""
    x, offset = call.value(0), call.attribute("k", 0)
    code = call.attribute("dtype")
    dtype = x.dtype if code is None else element_dtype(code)
    if dtype is None or x.ndim != 2:
        raise NotSupported("an element type and two axes are required")
    rows, columns = call.graph.iota(x.shape[0], offset), call.graph.iota(x.shape[1])
    same = call.graph.binary("equal", call.graph.slice(rows, (slice(None), None)), columns)
    return call.graph.cast(same, dtype)


# --- arithmetic of sizes ----------------------------------------------------------------------------


def size_result(call: NodeCall) -> Tensor | None:
    """The result of an operator whose operands are sizes, None where it is computed when the graph runs."""
    operator = call.operator
    try:
        operands = [call.elements(number) for number in range(call.count) if call.has(number)]
        dtype = call.size_dtype()
        if is_comparison(operator):
            return call.graph.constant(compared(operator, *operands))
        if operator == "Where":
            return _chosen(call, operands[1:], dtype)
        found = _elements(call, operands)
    except (Undecided, NotSupported):
        return None
    if found is None:
        return None
    if operator == "Cast":
        wanted = element_dtype(call.integer("to"))
        if wanted is None or wanted.kind not in "iu":
            return None
        dtype = wanted
    known = SizeArray(found, dtype).known
    return SizeArray(found, dtype) if known is None else call.graph.constant(known)


def _chosen(call: NodeCall, operands: list[Array], dtype: np.dtype[Any]) -> SizeArray:
    condition = call.array(0)
    if condition.dtype != bool:
        raise NotSupported("a condition must be bool")
    return SizeArray(np.where(condition, *operands), dtype)


def _elements(call: NodeCall, operands: list[Array]) -> Array | None:
    """The elements of a result, None for operators that have no meaning on sizes."""
    if is_combination(call.operator):
        return combined(call.operator, operands)
    function = _STRUCTURAL.get(call.operator)
    return None if function is None else np.asarray(function(call, operands), object)


def _axes(call: NodeCall) -> list[int] | None:
    return call.integers(1) if call.has(1) else call.integer_list("axes")


def _squeezed(call: NodeCall, operands: list[Array]) -> Array:
    axes = _axes(call)
    return operands[0].squeeze(None if axes is None else tuple(axes))


def _unsqueezed(call: NodeCall, operands: list[Array]) -> Array:
    return np.expand_dims(operands[0], tuple(_axes(call) or ()))


def _sliced(call: NodeCall, operands: list[Array]) -> Array:
    starts, ends = call.integers(1), call.integers(2)
    axes = call.integers(3) if call.has(3) else list(range(len(starts)))
    steps = call.integers(4) if call.has(4) else [1] * len(starts)
    found = operands[0]
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        stop = None if step < 0 and end < -found.shape[axis] else end
        found = found[(slice(None),) * (axis % found.ndim) + (slice(start, stop, step),)]
    return found


def _reduced(call: NodeCall, operands: list[Array]) -> Array:
    operator = {"ReduceProd": "Mul", "ReduceSum": "Add", "ReduceMax": "Max", "ReduceMin": "Min"}[
        call.operator
    ]
    axes = _axes(call)
    x = operands[0]
    if x.ndim != 1 or (axes is not None and axes not in ([0], [-1])) or not x.size:
        raise Undecided
    found = combined(operator, [x[number : number + 1] for number in range(x.size)])
    return found if call.flag("keepdims", default=True) else found.reshape(())


def _gathered(call: NodeCall, operands: list[Array]) -> Array:
    return np.take(operands[0], call.array(1).astype(np.int64), axis=call.attribute("axis", 0))


_STRUCTURAL: dict[str, Callable[[NodeCall, list[Array]], Any]] = {
    "Abs": lambda _, operands: absolute(operands[0]),
    "Neg": lambda _, operands: -operands[0],
    "Cast": lambda _, operands: operands[0],
    "Identity": lambda _, operands: operands[0],
    "Gather": _gathered,
    "Slice": _sliced,
    "Concat": lambda call, operands: np.concatenate(operands, call.integer("axis")),
    "Squeeze": _squeezed,
    "Unsqueeze": _unsqueezed,
    "Reshape": lambda call, operands: operands[0].reshape(call.integers(1)),
    "Flatten": lambda _, operands: operands[0].reshape(1, -1),
    "Expand": lambda call, operands: operands[0] * np.ones(tuple(call.integers(1)), np.int64).astype(object),
    "Tile": lambda call, operands: np.tile(operands[0], call.integers(1)),
    "ReduceProd": _reduced,
    "ReduceSum": _reduced,
    "ReduceMax": _reduced,
    "ReduceMin": _reduced,
}


def bounded(value: Polynomial, length: Polynomial) -> Polynomial:
    """A bound of a slice of an axis, at most its length where that can be decided.

    Otherwise the graph checks it when it runs.
    """
    return length if is_negative(length - value) is True else value
