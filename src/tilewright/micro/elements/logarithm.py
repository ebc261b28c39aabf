"""The natural logarithm of normal numbers, as a few arithmetic instructions on scalars and vectors."""

from __future__ import annotations

import math

from tilewright.llvm.floats import Floats
from tilewright.llvm.values import Value, truth_of
from tilewright.micro.elements.polynomials import CONSTANTS

#: With f = (m - 1) / (m + 1) and m from √½ to √2, |f| is at most this.
_MOST = (math.sqrt(2) - 1) / (math.sqrt(2) + 1)


def _coefficients(precision: int) -> list[float]:
    """2/3, 2/5, ...: those of log m = 2f + f³ · (2/3 + 2/5·f² + …) that count beside 2f in so many bits."""
    count = 1
    while _MOST ** (2 * count) / (2 * count + 1) > 2.0 ** -(precision + 2):
        count += 1
    return [2 / (2 * term + 1) for term in range(1, count)]


def log(v: Floats, x: Value) -> Value:
    """log x of normal x > 0. 1.9 ulp from 1 on; beside 1 from below the exponent's part cancels.

    With x = m·2^n and m from √½ to √2, log x = n·ln 2 + log m. NaN gives NaN.

    Source: Muller, Elementary Functions (3rd ed.), §11.4: the series of artanh.
    """
    f, c = v.f, CONSTANTS[v.dtype]
    bits = v.bits(x)
    half_root = v.bits(v.constant(math.sqrt(0.5)))
    places = v.integer(c.mantissa_bits)
    exponent = f.ashr(f.sub(bits, half_root), places)
    mantissa = v.from_bits(f.sub(bits, f.shl(exponent, places)))
    n = f.emit(v.type, f"sitofp {exponent.typed} to {v.type.text}")
    one = v.constant(1.0)
    ratio = v.divide(v.subtract(mantissa, one), v.add(mantissa, one))
    square = v.multiply(ratio, ratio)
    *lower, series = map(v.constant, _coefficients(c.mantissa_bits + 1))
    for coefficient in reversed(lower):
        series = v.multiply_add(series, square, coefficient)
    double = v.add(ratio, ratio)
    rest = v.multiply_add(v.multiply(ratio, square), series, v.multiply(n, v.constant(c.ln2_low)))
    found = v.multiply_add(n, v.constant(c.ln2_high), v.add(double, rest))
    nothing = f.emit(truth_of(v.type), f"fcmp uno {x.typed}, {x.text}")
    return f.select(nothing, x, found)
