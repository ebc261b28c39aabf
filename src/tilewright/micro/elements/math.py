"""Elementwise functions as a few arithmetic instructions, on scalars and vectors of any target.

Nothing branches, calls a library or looks up a table. Each function takes a `Floats` and a value of its
type, writes its instructions and gives the result. The error stated is the largest found, in ulps of the
exact result, subnormal results included: over all f32 values from 1e-10 to 120 in size, one in 64 of the
others, and samples of f64, which stay below it. Round-to-nearest is assumed. Finite operands raise neither
`invalid` nor, but for the reciprocal of zero, `division by zero`; NaN gives NaN. docs/polynomials.py
derives the coefficients, docs/decisions/009-elementwise-functions.md says what else was tried.

Source: Cody and Waite, Software Manual for the Elementary Functions (1980), for the reduction of exp;
Muller, Elementary Functions (3rd ed.), §3.3 (Remez), §11 (reduction); Dekker, Numer. Math. 18 (1971), for
exact sums and products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tilewright.llvm.build import Function
from tilewright.llvm.floats import Floats
from tilewright.llvm.values import Value, zero
from tilewright.micro.elements.polynomials import CONSTANTS
from tilewright.spec.dtype import DType
from tilewright.spec.functions import UnaryOp

#: Beyond this 1 ± exp(-x) is 1 in f64, and so in f32.
SATURATED = 40.0

#: Beyond this x·Φ(-x), and its approximation by tanh, is nothing beside x in f64, and so in f32.
NORMAL_SATURATED = 9.0

LN2 = 0.6931471805599453

#: Adding 1.5 · 2^mantissa_bits to a smaller number rounds it to an integer and leaves that in the low bits.
ROUNDING = 1.5


def emit(f: Function, op: UnaryOp, dtype: DType, x: Value, *, fused: bool) -> Value:
    """The operation on each lane of x.

    Parameters
    ----------
    f : the function that is written.
    op : the operation.
    dtype : the element type of x, f32 or f64.
    x : a scalar, or a vector of any number of lanes.
    fused : the target multiplies and adds with one rounding, as `TileFma.fused` says.
    """
    return FUNCTIONS[op](Floats(f, dtype, x.type, fused=fused), x)


# --- exp ------------------------------------------------------------------------------------------


def exp(v: Floats, x: Value) -> Value:
    """e^x. 1.6 ulp, 2.0 without fused multiply-add.

    With n the integer nearest to x / (2 ln 2), r = x - n·2 ln 2 and a polynomial in r, e^x = e^r·2^n·2^n.
    The even power of two costs two more terms of the polynomial and saves what splits an odd one: both
    factors are in range wherever the result is, so overflow and gradual underflow need nothing more.

    e^-inf = 0, e^inf = inf, e^±0 = 1.
    """
    c = CONSTANTS[v.dtype]
    within = v.at_least(v.at_most(x, v.constant(c.exp_most)), v.constant(c.exp_least))
    reduced = _reduce(v, within, step=2, offset=c.exponent_bias)
    power = v.from_bits(reduced.exponent)
    scaled = v.multiply(_polynomial(v, reduced.rest, (1.0, 1.0, *c.exp_far)), power)
    return v.multiply(scaled, power)


def exp_nonpositive(v: Floats, x: Value, *, flushed: bool = False) -> Value:
    """e^x for x <= 0, in fewer instructions. 2.0 ulp, 2.3 without fused multiply-add.

    `flushed`: results that would be subnormal are 0, for weights of a sum that has at least one of 1.

    With n the integer nearest to x / ln 2 and r = x - n·ln 2, this is e^r·2^n. The power is larger by the
    headroom and the polynomial's coefficients are smaller by it, so that both are normal numbers and their
    product rounds once. Right also for positive x up to 43 in f32 and 292 in f64; beyond, the result has
    no meaning.

    e^-inf = 0, e^±0 = 1.
    """
    c = CONSTANTS[v.dtype]
    # The logarithm of the smallest normal number, nearer to zero by what rounding may take off.
    flushing = LN2 * _least_exponent(v) * (1 - 2.0 ** (1 - c.mantissa_bits))
    least = v.constant(flushing if flushed else c.exp_least)
    reduced = _reduce(v, v.at_least(x, least), step=1, offset=c.exponent_bias + c.headroom)
    # Underflow costs 20 cycles on Zen 5, more on Intel; a masked score of -inf is not made to pay them.
    power = v.from_bits(v.f.select(v.compare("<", x, least), v.integer(0), reduced.exponent))
    scaled = [2.0**-c.headroom * coefficient for coefficient in (1.0, *c.exp_near)]
    # Not by adding to the exponent: NaN would become a number.
    return v.multiply(_polynomial(v, reduced.rest, scaled), power)


def exp2_nonpositive(v: Floats, x: Value) -> Value:
    """2^x for x <= 0, in fewer instructions than e^x: x less its nearest integer is exact. 2.0 ulp.

    Otherwise as `exp_nonpositive` `flushed`, whose polynomial this is, in x·ln 2. 2^-inf = 0, 2^±0 = 1.
    """
    c = CONSTANTS[v.dtype]
    least = v.constant(float(_least_exponent(v)))
    rounding = v.constant(ROUNDING * 2**c.mantissa_bits + c.exponent_bias + c.headroom)
    within = v.at_least(x, least)
    shifted = v.add(within, rounding)
    rest = v.subtract(within, v.subtract(shifted, rounding))
    exponent = v.f.shl(v.bits(shifted), v.integer(c.mantissa_bits))
    power = v.from_bits(v.f.select(v.compare("<", x, least), v.integer(0), exponent))
    near = [2.0**-c.headroom * c_i * LN2**i for i, c_i in enumerate((1.0, *c.exp_near))]
    return v.multiply(_polynomial(v, rest, near), power)


def _least_exponent(v: Floats) -> int:
    """2 to the power of this is the smallest normal number.

    Multiply-adds of subnormal numbers take more than a hundred cycles on Intel's cores: attention of scores
    a hundred apart took 16 times as long with weights below it.
    """
    return 1 - CONSTANTS[v.dtype].exponent_bias


class _Reduced(NamedTuple):
    """x = n·step·ln 2 + rest; `exponent` holds n + offset in the place of the exponent."""

    rest: Value
    exponent: Value


def _reduce(v: Floats, x: Value, *, step: int, offset: int, low: Value | None = None) -> _Reduced:
    """Splits x, or x + low, at the nearest multiple of step·ln 2: |rest| <= step·ln 2 / 2.

    Adding 1.5·2^p, p the bits of the mantissa, rounds to an integer. The offset is added along with it.
    n·ln2_high is exact, and so is its difference from x; only the second step rounds.
    """
    c = CONSTANTS[v.dtype]
    rounding = v.constant(ROUNDING * 2**c.mantissa_bits + offset)
    shifted = v.multiply_add(x, v.constant(c.log2_e / step), rounding)
    n = v.subtract(shifted, rounding)
    high = v.multiply_add(n, v.constant(-c.ln2_high * step), x)
    less = v.constant(-c.ln2_low * step)
    rest = v.multiply_add(n, less, high) if low is None else v.add(high, v.multiply_add(n, less, low))
    return _Reduced(rest, v.f.shl(v.bits(shifted), v.integer(c.mantissa_bits)))


class _Growth(NamedTuple):
    """e^x = power·(1 + growth): a power of two, and e^rest - 1 with a small relative error."""

    power: Value
    growth: Value


def _growth(v: Floats, x: Value, *, offset: int, low: Value | None = None) -> _Growth:
    """e^(x + low)·2^offset in two factors."""
    c = CONSTANTS[v.dtype]
    rest, exponent = _reduce(v, x, step=1, offset=c.exponent_bias + offset, low=low)
    square = v.multiply(rest, rest)
    return _Growth(v.from_bits(exponent), v.multiply_add(square, _polynomial(v, rest, c.growth), rest))


def _polynomial(v: Floats, x: Value, coefficients: Sequence[float]) -> Value:
    """Horner's rule; lowest power first."""
    *lower, highest = coefficients
    total = v.constant(highest)
    for coefficient in reversed(lower):
        total = v.multiply_add(total, x, v.constant(coefficient))
    return total


# --- functions of exp -----------------------------------------------------------------------------


def tanh(v: Floats, x: Value) -> Value:
    """The hyperbolic tangent. 2.0 ulp.

    (1 - e)/(1 + e) with e = exp(-2|x|) = p·(1 + g): numerator (1 - p) - p·g and denominator
    (1 + p) + p·g round once each. Near 0, p = 1 and the numerator is -g, which has a small relative error.

    tanh(±0) = ±0, tanh(±inf) = ±1.
    """
    twice = v.multiply(v.magnitude(x), v.constant(-2.0))
    power, growth = _growth(v, v.at_least(twice, v.constant(-SATURATED)), offset=0)
    part, one = v.multiply(power, growth), v.constant(1.0)
    numerator = v.subtract(v.subtract(one, power), part)
    denominator = v.add(v.add(one, power), part)
    return v.with_sign(v.divide(numerator, denominator), x)


def sigmoid(v: Floats, x: Value) -> Value:
    """1 / (1 + e^-x). 2.0 ulp.

    The denominator is kept smaller by the headroom, so that it cannot overflow; the division rounds once,
    also into the subnormal numbers.

    sigmoid(-inf) = 0, sigmoid(inf) = 1.
    """
    c = CONSTANTS[v.dtype]
    least, most = v.constant(-SATURATED), v.constant(-c.exp_least)
    within = v.at_least(v.at_most(v.negate(x), most), least)
    return v.divide(v.constant(2.0**-c.headroom), _one_plus_exp(v, within))


def silu(v: Floats, x: Value) -> Value:
    """x·sigmoid(x). 2.0 ulp.

    max(x, 0) - |x| / (1 + e^|x|): the second term has a small relative error, and is at most half of the
    first where that is not 0.

    silu(±0) = ±0, silu(inf) = inf; silu(-inf) = -0, the limit (the formula read literally gives NaN).
    """
    size = _bounded_size(v, x, CONSTANTS[v.dtype].silu_vanishes, SATURATED)
    quotient = v.divide(size, _one_plus_exp(v, size))
    return _less_than_relu(v, x, quotient, CONSTANTS[v.dtype].silu_vanishes)


def gelu_tanh(v: Floats, x: Value) -> Value:
    """x·(1 + tanh(u))/2 with u = √(2/π)·(x + 0.044715 x³). 2.0 ulp.

    This is x·sigmoid(2u), computed as `silu` is. 2|u| = |x|·(linear + cubic·x²) grows to 105, and its
    absolute error is the relative one of the result: it is computed in two parts, to about twice the
    precision of the type.

    gelu_tanh(±0) = ±0, gelu_tanh(inf) = inf; gelu_tanh(-inf) = -0, the limit.
    """
    c = CONSTANTS[v.dtype]
    size = _bounded_size(v, x, c.gelu_tanh_vanishes, NORMAL_SATURATED)
    square = v.multiply(size, size)
    cubic = v.constant(c.gelu_cubic_high)
    part = v.multiply(square, cubic)
    linear = v.constant(c.gelu_linear_high)
    factor = v.add(part, linear)
    # Few bits of `linear` are set, and so factor - linear is exact, and the rounding of `factor` known.
    lost = v.subtract(part, v.subtract(factor, linear))
    lost = v.add(lost, _product_error(v, square, cubic, part))
    lost = v.multiply_add(_product_error(v, size, size, square), cubic, lost)
    small = v.multiply_add(square, v.constant(c.gelu_cubic_low), v.constant(c.gelu_linear_low))
    argument = v.multiply(size, factor)
    low = v.multiply_add(size, v.add(lost, small), _product_error(v, size, factor, argument))
    return _less_than_relu(v, x, v.divide(size, _one_plus_exp(v, argument, low)), c.gelu_tanh_vanishes)


def _one_plus_exp(v: Floats, x: Value, low: Value | None = None) -> Value:
    """(1 + e^(x + low))·2^-headroom; two roundings, the first of the smaller part."""
    headroom = CONSTANTS[v.dtype].headroom
    power, growth = _growth(v, x, offset=-headroom, low=low)
    return v.add(v.multiply_add(power, growth, v.constant(2.0**-headroom)), power)


def _bounded_size(v: Floats, x: Value, least: float, most: float) -> Value:
    """|x| for -least <= x <= most, else the bound: what is subtracted from a large x does not underflow."""
    return v.magnitude(v.at_least(v.at_most(x, v.constant(most)), v.constant(-least)))


def _less_than_relu(v: Floats, x: Value, scaled: Value, vanishes: float) -> Value:
    """max(x, 0) - scaled·2^-headroom; where the second is 0, ±0 stay and negative x give -0.

    Below -vanishes it is made 0 rather than computed: an underflow takes more than a hundred cycles on
    Intel's cores.
    """
    scaled = v.f.select(v.compare("<", x, v.constant(-vanishes)), v.constant(0.0), scaled)
    tail = v.multiply(scaled, v.constant(2.0 ** -CONSTANTS[v.dtype].headroom))
    return v.subtract(v.at_least(x, v.constant(-0.0)), tail)


def _product_error(v: Floats, x: Value, y: Value, product: Value) -> Value:
    """x·y - product, where that is the rounded product.

    Without fused multiply-add both are cut into halves of the mantissa, whose products are exact.
    """
    if v.fused:
        return v.multiply_add(x, y, v.negate(product))
    half = v.integer(-(1 << (CONSTANTS[v.dtype].mantissa_bits + 2) // 2))
    x_high, y_high = (v.from_bits(v.f.and_(v.bits(factor), half)) for factor in (x, y))
    x_low, y_low = v.subtract(x, x_high), v.subtract(y, y_high)
    error = v.subtract(v.multiply(x_high, y_high), product)
    for left, right in ((x_high, y_low), (x_low, y_high), (x_low, y_low)):
        error = v.add(error, v.multiply(left, right))
    return error


# --- the normal distribution ----------------------------------------------------------------------


def erf(v: Floats, x: Value) -> Value:
    """The error function. 1.4 ulp, 1.6 without fused multiply-add.

    x + x·P(x²) near 0, 1 - exp(P(|x|)) beyond `erf_border`: of two polynomials each lane takes one.

    erf(±0) = ±0, erf(±inf) = ±1.
    """
    c = CONSTANTS[v.dtype]
    size = v.at_most(v.magnitude(x), v.constant(c.erf_one))
    near = v.multiply_add(_polynomial(v, v.multiply(size, size), c.erf_near), size, size)
    tail = exp_nonpositive(v, _polynomial(v, size, c.erf_far))
    far = v.subtract(v.constant(1.0), tail)
    is_near = v.compare("<", size, v.constant(c.erf_border))
    return v.with_sign(v.f.select(is_near, near, far), x)


def gelu(v: Floats, x: Value) -> Value:
    """x·Φ(x), Φ the normal distribution. 2.9 ulp, 3.4 without fused multiply-add.

    max(x, 0) - |x|·Φ(-|x|), and Φ(-a) = exp(-a²/2) / (slope·a + P(a)/Q(a)) with a small relative error
    however far out. As numerator aQ and denominator (2 + s)·e^(a²/2), where s = slope·aQ + aP' and
    P = 2 + aP': near 0 both s and e^(a²/2) - 1 are small, and little is rounded. The square is computed in
    two parts.

    More than 2 ulp, because the numerator, s, the denominator and the quotient round once each. With
    those errors carried along 2.2 ulp were reached, in 50 % more time.

    gelu(±0) = ±0, gelu(inf) = inf; gelu(-inf) = -0, the limit (the formula read literally gives NaN).
    """
    c = CONSTANTS[v.dtype]
    two = v.constant(2.0)
    size = _bounded_size(v, x, c.gelu_vanishes, NORMAL_SATURATED)
    half = v.multiply(size, v.constant(0.5))
    square = v.multiply(size, half)
    low = _product_error(v, size, half, square)
    power, growth = _growth(v, square, offset=-c.headroom, low=low)
    rest = v.multiply(size, _polynomial(v, size, c.mills_denominator[1:]))
    numerator = v.multiply_add(rest, size, size)
    above_two = v.multiply(size, _polynomial(v, size, c.mills_numerator[1:]))
    above_two = v.multiply_add(numerator, v.constant(c.mills_slope), above_two)
    grown = v.multiply_add(v.add(above_two, two), growth, above_two)
    denominator = v.multiply(v.add(grown, two), power)
    return _less_than_relu(v, x, v.divide(numerator, denominator), c.gelu_vanishes)


# --- one instruction ------------------------------------------------------------------------------


def _zero(v: Floats, x: Value) -> Value:  # noqa: ARG001
    """+0, whatever x is: NaN too."""
    return zero(v.type)


def _identity(v: Floats, x: Value) -> Value:  # noqa: ARG001
    """x, bit by bit."""
    return x


def relu(v: Floats, x: Value) -> Value:
    """max(x, 0), exact. relu(-0) = -0, as the larger of two equal values may be either."""
    return v.at_least(x, v.constant(0.0))


def square(v: Floats, x: Value) -> Value:
    """x², correctly rounded."""
    return v.multiply(x, x)


def negate(v: Floats, x: Value) -> Value:
    """-x, exact; of zero and NaN too the sign alone changes."""
    return v.negate(x)


def reciprocal(v: Floats, x: Value) -> Value:
    """1/x by true division, correctly rounded. 1/±0 = ±inf, and raises `division by zero`."""
    return v.divide(v.constant(1.0), x)


#: What each operation is.
FUNCTIONS: dict[UnaryOp, Callable[[Floats, Value], Value]] = {
    UnaryOp.ZERO: _zero,
    UnaryOp.IDENTITY: _identity,
    UnaryOp.RELU: relu,
    UnaryOp.SQUARE: square,
    UnaryOp.EXP: exp,
    UnaryOp.TANH: tanh,
    UnaryOp.GELU: gelu,
    UnaryOp.GELU_TANH: gelu_tanh,
    UnaryOp.SILU: silu,
    UnaryOp.SIGMOID: sigmoid,
    UnaryOp.RECIPROCAL: reciprocal,
    UnaryOp.NEGATE: negate,
    UnaryOp.ERF: erf,
}
