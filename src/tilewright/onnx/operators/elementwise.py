"""Operators of single elements: arithmetic, comparisons, activations, conversions."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from tilewright.graph.value import Value
from tilewright.onnx.call import NodeCall, NotSupported, OperatorTable, Results, is_kind
from tilewright.onnx.tensors import element_dtype

OPERATORS = OperatorTable()

#: Operators that are functions of the graph.
_UNARY = {
    "Abs": "abs",
    "Neg": "negative",
    "Sign": "sign",
    "Floor": "floor",
    "Ceil": "ceil",
    "Round": "rint",
    "Sqrt": "sqrt",
    "Reciprocal": "reciprocal",
    "Exp": "exp",
    "Log": "log",
    "Erf": "erf",
    "Sin": "sin",
    "Cos": "cos",
    "Tan": "tan",
    "Asin": "arcsin",
    "Acos": "arccos",
    "Atan": "arctan",
    "Sinh": "sinh",
    "Cosh": "cosh",
    "Tanh": "tanh",
    "Asinh": "arcsinh",
    "Acosh": "arccosh",
    "Atanh": "arctanh",
    "Sigmoid": "sigmoid",
    "Relu": "relu",
    "Not": "logical_not",
    "BitwiseNot": "invert",
    "IsNaN": "isnan",
    "Identity": "",
}
_BINARY = {
    "Add": "add",
    "Sub": "subtract",
    "Mul": "multiply",
    "Equal": "equal",
    "Less": "less",
    "LessOrEqual": "less_equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_equal",
    "And": "logical_and",
    "Or": "logical_or",
    "Xor": "logical_xor",
    "BitwiseAnd": "bitwise_and",
    "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor",
}
#: Of any number of operands.
_VARIADIC = {"Sum": "add", "Max": "maximum", "Min": "minimum", "Mean": "add"}


def _unary(function: str, call: NodeCall) -> Results:
    x = call.value(0)
    if not function:
        return x
    if function == "relu" and not is_kind(x, "f"):
        return call.graph.binary("maximum", x, call.graph.number(x, 0))
    return call.graph.unary(function, x)


def _binary(function: str, call: NodeCall) -> Results:
    return call.graph.binary(function, call.value(0), call.value(1))


def _variadic(function: str, call: NodeCall) -> Results:
    values = call.values()
    found = values[0]
    for other in values[1:]:
        found = call.graph.binary(function, found, other)
    return found / len(values) if call.operator == "Mean" else found


for _name, _function in _UNARY.items():
    OPERATORS["", _name] = partial(_unary, _function)
for _name, _function in _BINARY.items():
    OPERATORS["", _name] = partial(_binary, _function)
for _name, _function in _VARIADIC.items():
    OPERATORS["", _name] = partial(_variadic, _function)


@OPERATORS.add("Div")
def divide(call: NodeCall) -> Results:
    """a / b; of integers rounded towards 0."""
    a, b = call.value(0), call.value(1)
    if is_kind(a, "f"):
        return a / b
    if is_kind(a, "i"):  # a without its remainder is a multiple of b
        a = a - call.graph.binary("fmod", a, b)
    return call.graph.binary("floor_divide", a, b)


@OPERATORS.add("Mod")
def modulo(call: NodeCall) -> Results:
    """The remainder, with the sign of b, or of a with fmod."""
    function = "fmod" if call.flag("fmod") else "remainder"
    return call.graph.binary(function, call.value(0), call.value(1))


@OPERATORS.add("Pow")
def power(call: NodeCall) -> Results:
    """a to the power of b, in the type of a."""
    a, b = call.value(0), call.value(1)
    if is_kind(a, "f"):
        return call.graph.binary("power", a, call.graph.cast(b, a.dtype))
    wide = call.graph.binary("power", call.graph.cast(a, "f64"), call.graph.cast(b, "f64"))
    return call.graph.cast(wide, a.dtype)


@OPERATORS.add("BitShift")
def bit_shift(call: NodeCall) -> Results:
    """a shifted by b bits."""
    function = {"LEFT": "left_shift", "RIGHT": "right_shift"}.get(call.attribute("direction", ""))
    if function is None:
        raise NotSupported("attribute direction must be LEFT or RIGHT")
    return call.graph.binary(function, call.value(0), call.value(1))


@OPERATORS.add("Where")
def where(call: NodeCall) -> Results:
    """a where the condition holds, else b."""
    return call.graph.where(call.value(0), call.value(1), call.value(2))


@OPERATORS.add("IsInf")
def is_infinite(call: NodeCall) -> Results:
    """Whether elements are infinities of the chosen signs."""
    x = call.value(0)
    below, above = (call.flag(f"detect_{sign}", default=True) for sign in ("negative", "positive"))
    if below and above:
        return call.graph.unary("isinf", x)
    if not below and not above:
        return call.graph.broadcast_to(call.graph.constant(np.asarray(False)), x.shape)
    return call.graph.binary("equal", x, call.graph.number(x, math.inf if above else -math.inf))


# --- conversions ------------------------------------------------------------------------------------


@OPERATORS.add("Cast")
def cast(call: NodeCall) -> Results:
    """x in another element type."""
    dtype = element_dtype(call.integer("to"))
    if dtype is None:
        raise NotSupported("strings and unknown element types cannot be converted")
    return _converted(call, dtype)


@OPERATORS.add("CastLike")
def cast_like(call: NodeCall) -> Results:
    """x in the element type of another value."""
    return _converted(call, call.value(1).dtype)


def _converted(call: NodeCall, dtype: np.dtype[Any]) -> Results:
    x = call.value(0)
    saturate = call.flag("saturate", default=True)
    call.ignore("round_mode")
    if dtype.name == "float8_e8m0fnu":
        raise NotSupported("float8e8m0 has rounding modes of its own")
    if is_narrow_float(dtype) and is_kind(x, "f") and saturate and x.dtype != dtype:
        x = saturated(call, x, dtype)
    if is_kind(x, "f") and dtype.name in ("int4", "uint4", "int2", "uint2"):
        x = call.graph.cast(x, "i32")
    return call.graph.cast(x, dtype)


def is_narrow_float(dtype: np.dtype[Any]) -> bool:
    """Return whether a type is a float of 8 bits or fewer."""
    return dtype.itemsize == 1 and "float" in dtype.name


def saturated(call: NodeCall, x: Value, dtype: np.dtype[Any]) -> Value:
    """Floats between the least and the largest number of a narrow type."""
    limits: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    wide = call.graph.cast(x, "f32") if x.dtype.itemsize < 4 else x
    low, high = (call.graph.number(wide, float(one)) for one in (limits.min, limits.max))
    return call.graph.clipped(wide, low, high)


# --- activations ------------------------------------------------------------------------------------


@OPERATORS.add("Clip")
def clip(call: NodeCall) -> Results:
    """min(max(x, low), high)."""
    return call.graph.clipped(call.value(0), call.optional(1), call.optional(2))


@OPERATORS.add("Gelu", "com.microsoft:Gelu")
def gelu(call: NodeCall) -> Results:
    """GELU, with the error function or tanh."""
    form = {"none": "gelu", "tanh": "gelu_tanh"}.get(call.attribute("approximate", "none"))
    if form is None:
        raise NotSupported("attribute approximate must be none or tanh")
    return call.graph.unary(form, call.value(0))


@OPERATORS.add("com.microsoft:FastGelu", "com.microsoft:BiasGelu")
def bias_gelu(call: NodeCall) -> Results:
    """GELU of x + bias."""
    x, bias = call.value(0), call.optional(1)
    form = "gelu_tanh" if call.operator == "FastGelu" else "gelu"
    return call.graph.unary(form, x if bias is None else x + bias)


@OPERATORS.add("com.microsoft:QuickGelu", "Swish")
def swish(call: NodeCall) -> Results:
    """x · sigmoid(alpha · x)."""
    alpha = float(call.attribute("alpha", 1.702 if call.operator == "QuickGelu" else 1.0))
    x = call.value(0)
    if alpha == 1:
        return call.graph.silu(x)
    return x * call.graph.sigmoid(x * alpha)


@OPERATORS.add("LeakyRelu")
def leaky_relu(call: NodeCall) -> Results:
    """x where it is positive, else alpha · x."""
    return _leaky(call, call.value(0), float(call.attribute("alpha", 0.01)))


@OPERATORS.add("PRelu")
def parametric_relu(call: NodeCall) -> Results:
    """x where it is positive, else slope · x."""
    return _leaky(call, call.value(0), call.value(1))


def _leaky(call: NodeCall, x: Value, slope: Any) -> Value:
    negative = call.graph.binary("less", x, call.graph.number(x, 0))
    return call.graph.where(negative, x * slope, x)


@OPERATORS.add("ThresholdedRelu")
def thresholded_relu(call: NodeCall) -> Results:
    """x where it is above alpha, else 0."""
    x, alpha = call.value(0), float(call.attribute("alpha", 1.0))
    above = call.graph.binary("greater", x, call.graph.number(x, alpha))
    return call.graph.where(above, x, call.graph.number(x, 0))


def _exponential(call: NodeCall, x: Value, alpha: float, scale: float = 1.0) -> Value:
    """alpha · (e^(x / scale) - 1) below 0, else x."""
    g = call.graph
    zero = g.number(x, 0)
    below = g.unary("expm1", g.binary("minimum", x, zero) / scale) * alpha
    return g.where(g.binary("less", x, zero), below, x)


@OPERATORS.add("Elu")
def elu(call: NodeCall) -> Results:
    """alpha · (e^x - 1) below 0, else x."""
    return _exponential(call, call.value(0), float(call.attribute("alpha", 1.0)))


@OPERATORS.add("Celu")
def celu(call: NodeCall) -> Results:
    """alpha · (e^(x / alpha) - 1) below 0, else x."""
    alpha = float(call.attribute("alpha", 1.0))
    return _exponential(call, call.value(0), alpha, alpha)


@OPERATORS.add("Selu")
def selu(call: NodeCall) -> Results:
    """gamma times ELU: Klambauer et al., arXiv:1706.02515, have the constants."""
    alpha = float(call.attribute("alpha", 1.67326319217681884765625))
    gamma = float(call.attribute("gamma", 1.05070102214813232421875))
    return _exponential(call, call.value(0), alpha) * gamma


@OPERATORS.add("HardSigmoid", "HardSwish")
def hard_sigmoid(call: NodeCall) -> Results:
    """A line between 0 and 1; HardSwish multiplies x with it."""
    x, swish = call.value(0), call.operator == "HardSwish"
    alpha = 1 / 6 if swish else float(call.attribute("alpha", 0.2))
    beta = 0.5 if swish else float(call.attribute("beta", 0.5))
    line = call.graph.clipped(x * alpha + beta, call.graph.number(x, 0), call.graph.number(x, 1))
    return x * line if swish else line


def softplus_of(call: NodeCall, x: Value) -> Value:
    """log(1 + e^x), for large x too."""
    g = call.graph
    return g.binary("maximum", x, g.number(x, 0)) + g.unary("log1p", g.exp(-g.unary("abs", x)))


@OPERATORS.add("Softplus")
def softplus(call: NodeCall) -> Results:
    """log(1 + e^x)."""
    return softplus_of(call, call.value(0))


@OPERATORS.add("Mish")
def mish(call: NodeCall) -> Results:
    """x · tanh(softplus(x))."""
    x = call.value(0)
    return x * call.graph.tanh(softplus_of(call, x))


@OPERATORS.add("Softsign")
def softsign(call: NodeCall) -> Results:
    """x / (1 + |x|)."""
    x = call.value(0)
    return x / (call.graph.unary("abs", x) + 1.0)


@OPERATORS.add("Shrink")
def shrink(call: NodeCall) -> Results:
    """x moved towards 0 by bias where |x| is above lambd, else 0."""
    g, x = call.graph, call.value(0)
    bias, limit = float(call.attribute("bias", 0.0)), float(call.attribute("lambd", 0.5))
    zero = g.number(x, 0)
    above = g.where(g.binary("greater", x, g.number(x, limit)), x - g.number(x, bias), zero)
    return g.where(g.binary("less", x, g.number(x, -limit)), x + g.number(x, bias), above)


@OPERATORS.add("SwiGLU")
def swiglu(call: NodeCall) -> Results:
    """a · sigmoid(alpha · a) · b."""
    a, alpha = call.value(0), float(call.attribute("alpha", 1.0))
    gate = call.graph.silu(a) if alpha == 1 else a * call.graph.sigmoid(a * alpha)
    return gate * call.value(1)


@OPERATORS.add("Dropout")
def dropout(call: NodeCall) -> Results:
    """x: nothing is dropped in inference."""
    call.ignore("seed", "ratio")
    x = call.value(0)
    call.ignore_inputs(1)
    if call.has(2) and bool(call.array(2).any()):
        raise NotSupported("training mode")
    mask = None
    if call.wants(1):
        mask = call.graph.broadcast_to(call.graph.constant(np.asarray(True)), x.shape)
    return x, mask
