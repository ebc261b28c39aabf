"""Reductions, softmax and other functions along axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.graph.sizes import size_of
from tilewright.graph.value import Value
from tilewright.onnx.call import NodeCall, NotSupported, OperatorTable, Results, is_kind
from tilewright.onnx.operators.movement import axes_of, axis_in

OPERATORS = OperatorTable()


def _reduced(call: NodeCall, function: Any, x: Value, axes: list[int], *, keepdims: bool) -> Value:
    """A reduction in the type of x."""
    if not axes:
        return x
    if function in ("max", "min") and any(x.shape[axis].constant == 0 for axis in axes):
        return _of_nothing(call, function, x, axes, keepdims=keepdims)
    found = call.graph.reduce(function, x, tuple(axes), keepdims=keepdims)
    return call.graph.cast(found, x.dtype)


def _of_nothing(call: NodeCall, function: str, x: Value, axes: list[int], *, keepdims: bool) -> Value:
    """The extremum of no elements: the other end of the type."""
    least = function == "max"
    if is_kind(x, "f"):
        number: Any = -np.inf if least else np.inf
    elif is_kind(x, "b"):
        number = not least
    else:
        number = np.iinfo(x.dtype).min if least else np.iinfo(x.dtype).max
    shape = [
        size_of(1) if at in axes else size for at, size in enumerate(x.shape) if keepdims or at not in axes
    ]
    return call.graph.expand(call.graph.constant(np.asarray(number).astype(x.dtype)), shape)


@OPERATORS.add("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd")
@OPERATORS.add("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")
def reduce(call: NodeCall) -> Results:
    """A reduction along axes, of all where none are given."""
    g, x = call.graph, call.value(0)
    axes, keepdims = axes_of(call), call.flag("keepdims", default=True)
    if call.flag("noop_with_empty_axes") and not axes:
        chosen: list[int] = []
    else:
        chosen = sorted({axis_in(axis, x.ndim) for axis in axes or range(x.ndim)})
    kind = call.operator.removeprefix("Reduce")
    if kind in ("Sum", "Mean", "Max", "Min", "Prod"):
        return _reduced(call, kind.lower(), x, chosen, keepdims=keepdims)
    if kind == "L1":
        return _reduced(call, "sum", g.unary("abs", x), chosen, keepdims=keepdims)
    if kind == "LogSumExp":
        return _log_sum_exp(call, x, chosen, keepdims=keepdims)
    inner = x if kind == "LogSum" else x * x
    total = _reduced(call, "sum", inner, chosen, keepdims=keepdims)
    if kind == "SumSquare":
        return total
    return g.cast(g.unary("log" if kind == "LogSum" else "sqrt", total), x.dtype)


def _log_sum_exp(call: NodeCall, x: Value, axes: list[int], *, keepdims: bool) -> Value:
    """The logarithm of a sum of exponentials, which are scaled so that none overflows."""
    g = call.graph
    peak = _reduced(call, "max", x, axes, keepdims=True)
    infinite = g.unary("isinf", peak)
    shift = g.where(infinite, g.number(peak, 0), peak)
    total = _reduced(call, "sum", g.exp(x - shift), axes, keepdims=True)
    found = g.unary("log", total) + shift
    if keepdims:
        return found
    return g.reshape(found, [size for at, size in enumerate(x.shape) if at not in axes])


@OPERATORS.add("Softmax", "LogSoftmax")
def softmax(call: NodeCall) -> Results:
    """Softmax of an axis, or its logarithm."""
    x, axis = call.value(0), call.attribute("axis", -1)
    function = call.graph.softmax if call.operator == "Softmax" else call.graph.log_softmax
    return function(x, axis_in(axis, x.ndim))


@OPERATORS.add("Hardmax")
def hardmax(call: NodeCall) -> Results:
    """1 at the first largest element of an axis, else 0."""
    g, x = call.graph, call.value(0)
    axis = axis_in(call.attribute("axis", -1), x.ndim)
    first = g.arg_reduce("max", x, axis, keepdims=True)
    numbers = g.reshape(g.iota(x.shape[axis]), (x.shape[axis], *[1] * (x.ndim - axis - 1)))
    return g.cast(g.binary("equal", first, numbers), x.dtype)


@OPERATORS.add("ArgMax", "ArgMin")
def arg_reduce(call: NodeCall) -> Results:
    """The position of an extremum."""
    return call.graph.arg_reduce(
        "max" if call.operator == "ArgMax" else "min",
        call.value(0),
        call.attribute("axis", 0),
        keepdims=call.flag("keepdims", default=True),
        last=call.flag("select_last_index"),
    )


@OPERATORS.add("CumSum", "CumProd")
def cumulative(call: NodeCall) -> Results:
    """Sums or products of the elements up to each one."""
    (axis,) = call.integers(1)
    options = {"exclusive": call.flag("exclusive"), "reverse": call.flag("reverse")}
    function = "sum" if call.operator == "CumSum" else "prod"
    return call.graph.cumulative(function, call.value(0), axis, **options)  # type: ignore[arg-type]


@OPERATORS.add("TopK")
def largest(call: NodeCall) -> Results:
    """The largest or smallest elements of an axis, and their positions."""
    call.ignore("sorted")
    x, (count,) = call.value(0), call.integers(1)
    axis, most = call.attribute("axis", -1), call.flag("largest", default=True)
    return tuple(
        call.graph.sorted(x, count, axis, largest=most, positions=positions) for positions in (False, True)
    )


@OPERATORS.add("LpNormalization")
def normalise(call: NodeCall) -> Results:
    """x divided by its norm along an axis; 0 where that is 0."""
    g, x = call.graph, call.value(0)
    axis, p = axis_in(call.attribute("axis", -1), x.ndim), call.attribute("p", 2)
    if p not in (1, 2):
        raise NotSupported(f"the norm of order {p}")
    size = _reduced(call, "sum", g.unary("abs", x) if p == 1 else x * x, [axis], keepdims=True)
    norm = size if p == 1 else g.unary("sqrt", size)
    zero = g.number(x, 0)
    return g.where(g.binary("equal", norm, zero), zero, x / norm)
