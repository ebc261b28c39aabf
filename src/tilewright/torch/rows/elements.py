"""Rows of functions of elements, comparisons, choices, conversions and reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from tilewright.calls.torch_functions import numpy_type_of
from tilewright.errors import NotConvertible
from tilewright.graph.nodes.base import is_float
from tilewright.graph.value import Value
from tilewright.torch.rows.row import AtenCall, Row

aten = torch.ops.aten


def _as(call: AtenCall, given: Any) -> Any:
    """An operand in the type of the result; numbers take it by themselves."""
    return call.graph.cast(given, call.result.dtype) if isinstance(given, Value) else given


def unary(function: str) -> Row:
    """A function of one operand, which is computed in the type of the result."""
    return Row(lambda call, x: call.graph.unary(function, _as(call, x)))


def binary(function: str) -> Row:
    """A function of two operands, which is computed in the type of the result."""

    def convert(call: AtenCall, a: Any, b: Any, *, alpha: Any = 1) -> Value:
        b = _as(call, b)
        if alpha != 1:
            b = b * alpha
        return call.graph.binary(function, _as(call, a), b)

    return Row(convert)


def comparison(function: str) -> Row:
    """A comparison, which is made in the type that both operands are promoted to."""

    def convert(call: AtenCall, a: Any, b: Any) -> Value:
        types = [one.dtype for one in (a, b) if isinstance(one, Value)]
        if len(types) == 2 and types[0] != types[1]:
            if not all(one.kind in "iub" for one in types):
                raise NotConvertible(reason=f"it compares {types[0]} and {types[1]}")
            wide = np.result_type(*types)
            a, b = call.graph.cast(a, wide), call.graph.cast(b, wide)
        return call.graph.binary(function, a, b)

    return Row(convert)


def logical(function: str) -> Row:
    """A function of the truth of elements."""

    def convert(call: AtenCall, *operands: Any) -> Value:
        found = [call.graph.cast(one, np.bool_) for one in operands]
        return call.graph.unary(function, *found) if len(found) == 1 else call.graph.binary(function, *found)

    return Row(convert)


def _rsqrt(call: AtenCall, x: Value) -> Value:
    return call.graph.binary("divide", 1.0, call.graph.unary("sqrt", _as(call, x)))


def _pow(call: AtenCall, x: Value, exponent: Any) -> Value:
    x = _as(call, x)
    named = {2: "square", 0.5: "sqrt"}.get(exponent) if not isinstance(exponent, Value) else None
    if named is not None and is_float(x.dtype):
        return call.graph.unary(named, x)
    return call.graph.binary("power", x, _as(call, exponent))


def _gelu(call: AtenCall, x: Value, *, approximate: str = "none") -> Value:
    return call.graph.unary("gelu" if approximate == "none" else "gelu_tanh", x)


def _clamp(call: AtenCall, x: Value, low: Any = None, high: Any = None) -> Value:
    found = _as(call, x)
    if low is not None:
        found = call.graph.binary("maximum", found, _as(call, low))
    return found if high is None else call.graph.binary("minimum", found, _as(call, high))


def _leaky_relu(call: AtenCall, x: Value, slope: float = 0.01) -> Value:
    g = call.graph
    return g.where(g.binary("greater", x, 0.0), x, x * slope)


def _where(call: AtenCall, condition: Value, a: Any, b: Any) -> Value:
    return call.graph.where(call.graph.cast(condition, np.bool_), _as(call, a), _as(call, b))


def _cast(call: AtenCall, x: Value, *_: Any, **__: Any) -> Value:
    return call.graph.cast(x, call.result.dtype)


def _same(_: AtenCall, x: Value, *__: Any, **___: Any) -> Value:
    return x


def _rsub(call: AtenCall, a: Any, b: Any, alpha: Any = 1) -> Value:
    return call.graph.binary("subtract", _as(call, b), _as(call, a) * alpha)


def _ternary(outer: Callable[[Value, Value], Value]) -> Row:
    """x + value · f(a, b)."""

    def convert(call: AtenCall, x: Value, a: Value, b: Value, *, value: Any = 1) -> Value:
        return _as(call, x) + outer(_as(call, a), _as(call, b)) * value

    return Row(convert)


def _axes(axes: Any, ndim: int) -> tuple[int, ...]:
    if axes is None or axes == []:
        return tuple(range(ndim))
    return tuple(axes) if isinstance(axes, (list, tuple)) else (axes,)


def reduction(function: str, *, integers: bool = False) -> Row:
    """A reduction, in the type of the result."""

    def convert(
        call: AtenCall,
        x: Value,
        axes: Any = None,
        keepdim: bool = False,
        *,
        dtype: Any = None,
    ) -> Value:
        if not integers and not is_float(x.dtype) and dtype is None:
            raise NotConvertible(reason=f"it reduces {x.dtype}")
        found = call.graph.cast(x, call.result.dtype)
        return call.graph.reduce(function, found, _axes(axes, x.ndim), keepdims=keepdim)  # type: ignore[arg-type]

    return Row(convert)


def _var(
    call: AtenCall, x: Value, axes: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> Value:
    """Variance: the mean of squared differences from the mean, corrected for the degrees of freedom."""
    places = _axes(axes, x.ndim)
    count = 1
    for axis in places:
        length = x.shape[axis].constant
        if length is None:
            raise NotConvertible(reason="the variance is of a symbolic number of elements")
        count *= length
    g = call.graph
    centred = x - g.reduce("mean", x, places, keepdims=True)
    squares = g.reduce("mean", g.unary("square", centred), places, keepdims=keepdim)
    free = count - (1 if correction is None else correction)
    if free <= 0:
        raise NotConvertible(reason=f"the variance of {count} elements has no degree of freedom")
    return squares if free == count else squares * (count / free)


def _softmax(*, log: bool) -> Row:
    def convert(call: AtenCall, x: Value, axis: int, half_to_float: Any = None) -> Value:  # noqa: ARG001
        made = call.graph.log_softmax if log else call.graph.softmax
        return made(_as(call, x), axis)

    return Row(convert, heavy=True)


def _full(call: AtenCall, value: Any, like: Sequence[Any] = ()) -> Value:  # noqa: ARG001
    dtype, shape = call.result
    return call.graph.expand(np.asarray(value, dtype), shape)


def _filled(value: int) -> Row:
    return Row(lambda call, *_, **__: _full(call, value))


def _convert_type(call: AtenCall, x: Value, dtype: Any) -> Value:
    wanted = numpy_type_of(dtype)
    if wanted is None:
        raise NotConvertible(reason=f"graphs have no element type {dtype}")
    return call.graph.cast(x, wanted)


_UNARY = {
    "relu": "relu",
    "silu": "silu",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
    "exp": "exp",
    "erf": "erf",
    "neg": "negative",
    "reciprocal": "reciprocal",
    "sqrt": "sqrt",
    "abs": "abs",
    "log": "log",
    "log2": "log2",
    "log1p": "log1p",
    "expm1": "expm1",
    "exp2": "exp2",
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "sinh": "sinh",
    "cosh": "cosh",
    "floor": "floor",
    "ceil": "ceil",
    "round": "rint",
    "trunc": "trunc",
    "bitwise_not": "invert",
    "square": "square",
}
_BINARY = {
    aten.add: "add",
    aten.sub: "subtract",
    aten.mul: "multiply",
    aten.div: "divide",
    aten.true_divide: "divide",
    aten.remainder: "remainder",
    aten.bitwise_and: "bitwise_and",
    aten.bitwise_or: "bitwise_or",
    aten.bitwise_xor: "bitwise_xor",
}
_COMPARISONS = {
    aten.eq: "equal",
    aten.ne: "not_equal",
    aten.lt: "less",
    aten.le: "less_equal",
    aten.gt: "greater",
    aten.ge: "greater_equal",
}

ELEMENT_ROWS: dict[Any, Row] = {
    **{getattr(aten, name).default: unary(ours) for name, ours in _UNARY.items()},
    **{packet.Tensor: binary(ours) for packet, ours in _BINARY.items()},
    **{packet.Scalar: binary(ours) for packet, ours in _BINARY.items()},
    **{packet.Tensor: comparison(ours) for packet, ours in _COMPARISONS.items()},
    **{packet.Scalar: comparison(ours) for packet, ours in _COMPARISONS.items()},
    aten.logical_not.default: logical("logical_not"),
    aten.logical_and.default: logical("logical_and"),
    aten.logical_or.default: logical("logical_or"),
    aten.logical_xor.default: logical("logical_xor"),
    aten.maximum.default: binary("maximum"),
    aten.minimum.default: binary("minimum"),
    aten.atan2.default: binary("arctan2"),
    aten.rsqrt.default: Row(_rsqrt),
    aten.rsub.Scalar: Row(_rsub),
    aten.rsub.Tensor: Row(_rsub),
    aten.pow.Tensor_Scalar: Row(_pow),
    aten.pow.Tensor_Tensor: Row(_pow),
    aten.gelu.default: Row(_gelu),
    aten.clamp.default: Row(_clamp),
    aten.clamp.Tensor: Row(_clamp),
    aten.clamp_min.default: Row(_clamp),
    aten.clamp_max.default: Row(lambda call, x, high: _clamp(call, x, None, high)),
    aten.hardtanh.default: Row(_clamp),
    aten.leaky_relu.default: Row(_leaky_relu),
    aten.where.self: Row(_where),
    aten.where.ScalarOther: Row(_where),
    aten.where.ScalarSelf: Row(_where),
    aten.masked_fill.Scalar: Row(lambda call, x, mask, value: _where(call, mask, value, x)),
    aten.addcmul.default: _ternary(lambda a, b: a * b),
    aten.addcdiv.default: _ternary(lambda a, b: a / b),
    aten._to_copy.default: Row(_cast),
    torch.ops.prims.convert_element_type.default: Row(_convert_type),
    aten.clone.default: Row(_same),
    aten.alias.default: Row(_same),
    aten.detach.default: Row(_same),
    aten.lift_fresh_copy.default: Row(_same),
    aten.dropout.default: Row(lambda call, x, p, train: _without_training(x, train)),  # noqa: ARG005
    aten.sum.dim_IntList: reduction("sum", integers=True),
    aten.sum.default: reduction("sum", integers=True),
    aten.mean.dim: reduction("mean"),
    aten.mean.default: reduction("mean"),
    aten.amax.default: reduction("max", integers=True),
    aten.amin.default: reduction("min", integers=True),
    aten.var.correction: Row(_var),
    aten._softmax.default: _softmax(log=False),
    aten._log_softmax.default: _softmax(log=True),
    aten.full.default: Row(lambda call, shape, value, **_: _full(call, value)),  # noqa: ARG005
    aten.full_like.default: Row(lambda call, x, value, **_: _full(call, value)),  # noqa: ARG005
    aten.scalar_tensor.default: Row(lambda call, value, **_: _full(call, value)),
    aten.zeros.default: _filled(0),
    aten.ones.default: _filled(1),
    aten.zeros_like.default: _filled(0),
    aten.ones_like.default: _filled(1),
}


def _without_training(x: Value, train: Any) -> Value:
    if train:
        raise NotConvertible(reason="it draws random numbers")
    return x
