# ruff: noqa: T201
"""Recomputes the coefficients of `tilewright.micro.elements.polynomials` and compares the committed ones.

    pip install mpmath; PYTHONPATH=src python docs/polynomials.py

Each row of `FITS` is a function, a weight and an interval. The Remez exchange finds the polynomial, or
the quotient of two, whose largest weighted error is least: on n + 1 points where the error of n
coefficients has the same size and alternates in sign, then on the points where that error is largest,
until nothing changes (Remez 1934; for quotients Fraser and Hart, CACM 1962). Coefficients are then
rounded one by one, lowest first, and the others are fitted again after each, so that what is lost by
rounding one is regained by the next.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import mpmath
from mpmath import mpf

from tilewright.micro.elements.polynomials import CONSTANTS
from tilewright.spec.dtype import F32, F64, DType

mpmath.mp.dps = 60

Real = Callable[[mpf], mpf]

MANTISSA_BITS = {F32: 24, F64: 53}
POINTS_PER_COEFFICIENT = 20


@dataclass(frozen=True)
class Fit:
    """One approximation.

    Attributes
    ----------
    dtype, names : the record and its fields: a polynomial, or numerator and denominator.
    function : what is approximated.
    weight : what the error is multiplied by; never negative.
    interval : where; its points are denser where `crowd` maps [0, 1] to them more densely.
    counts : coefficients of numerator and denominator.
    known : the lowest coefficients that are given; a denominator begins with 1.
    """

    dtype: DType
    names: tuple[str, ...]
    function: Real
    weight: Real
    interval: tuple[mpf, mpf]
    counts: tuple[int, int]
    known: tuple[tuple[mpf, ...], tuple[mpf, ...]] = ((), (mpf(1),))
    crowd: Real = field(default=lambda part: part)

    def points(self, count: int) -> list[mpf]:
        """Points of the interval, dense at its ends."""
        low, high = self.interval
        parts = [(1 - mpmath.cos(mpmath.pi * k / (count - 1))) / 2 for k in range(count)]
        return [low + (high - low) * self.crowd(part) for part in parts]


def value(coefficients: list[mpf], x: mpf) -> mpf:
    """A polynomial at x, lowest coefficient first."""
    total = mpf(0)
    for coefficient in reversed(coefficients):
        total = total * x + coefficient
    return total


class Exchange:
    """The Remez exchange of one fit, on a fine grid of its interval."""

    def __init__(self, fit: Fit) -> None:
        self.counts = fit.counts
        unknown = sum(fit.counts) - sum(map(len, fit.known))
        self.grid = fit.points(POINTS_PER_COEFFICIENT * (unknown + 1) + 1)
        weights = [fit.weight(x) for x in self.grid]
        # Where the weight vanishes, up to the arithmetic, any value does; the function may have none there.
        self.weights = [weight if weight > mpf("1e-30") else mpf(0) for weight in weights]
        pairs = zip(self.grid, self.weights, strict=True)
        self.values = [fit.function(x) if weight else mpf(0) for x, weight in pairs]

    def solve(self, known: tuple[list[mpf], list[mpf]]) -> tuple[list[mpf], list[mpf], mpf]:
        """The best numerator and denominator that begin with known coefficients, and their error."""
        free = sum(self.counts) - sum(map(len, known))
        # Not the very first point: known coefficients may leave no error there.
        places = [max(1, round((len(self.grid) - 1) * k / free)) for k in range(free + 1)]
        places = [place if self.weights[place] else place + POINTS_PER_COEFFICIENT // 3 for place in places]
        best: tuple[list[mpf], list[mpf], mpf] = ([], [], mpf("inf"))
        denominator = [*known[1], *[mpf(0)] * (self.counts[1] - len(known[1]))]
        for _ in range(50):
            numerator, denominator, level = self._level(known, places, denominator)
            errors = [
                weight * (wanted - value(numerator, x) / value(denominator, x))
                for x, weight, wanted in zip(self.grid, self.weights, self.values, strict=True)
            ]
            largest = max(map(abs, errors))
            if largest < best[2]:
                best = (numerator, denominator, largest)
            places = _alternating(errors, free + 1)
            if len(places) <= free or largest - level < largest / 1000:
                break
        return best

    def _level(
        self, known: tuple[list[mpf], list[mpf]], places: list[int], denominator: list[mpf]
    ) -> tuple[list[mpf], list[mpf], mpf]:
        """Coefficients whose weighted error at the places is ±E, and E.

        w·(f·Q - P) ∓ E·Q = 0 is linear but for E·Q, in which Q is the one of the last round.
        """
        free_p, free_q = (count - len(part) for count, part in zip(self.counts, known, strict=True))
        size = free_p + free_q + 1
        level = mpf(0)
        for _ in range(8 if free_q else 1):
            left, right = mpmath.matrix(size, size), mpmath.matrix(size, 1)
            for row, place in enumerate(places):
                x, weight, wanted = self.grid[place], self.weights[place], self.values[place]
                for j in range(free_p):
                    left[row, j] = -weight * x ** (len(known[0]) + j)
                for j in range(free_q):
                    left[row, free_p + j] = weight * wanted * x ** (len(known[1]) + j)
                left[row, size - 1] = -((-1) ** row) * value(denominator, x)
                right[row] = weight * (value(known[0], x) - wanted * value(known[1], x))
            solution = list(mpmath.lu_solve(left, right))
            numerator = [*known[0], *solution[:free_p]]
            denominator = [*known[1], *solution[free_p:-1]]
            before, level = level, abs(solution[-1])
            if abs(level - before) < level / 10**6:
                break
        return numerator, denominator, level


def _alternating(errors: list[mpf], count: int) -> list[int]:
    """Where the error is largest between two changes of sign; the smallest are dropped, in pairs inside."""
    places: list[int] = []
    for place, error in enumerate(errors):
        if places and errors[places[-1]] * error > 0:
            if abs(error) > abs(errors[places[-1]]):
                places[-1] = place
        elif error:
            places.append(place)
    while len(places) > count:
        sizes = [abs(errors[place]) for place in places]
        least = sizes.index(min(sizes))
        if len(places) == count + 1:
            places.pop(0 if sizes[0] < sizes[-1] else -1)
        elif least in (0, len(places) - 1):
            places.pop(least)
        else:
            first = least - 1 if sizes[least - 1] < sizes[least + 1] else least
            del places[first : first + 2]
    return places


def rounded(x: mpf, bits: int) -> mpf:
    """x with a mantissa of `bits` bits, to nearest."""
    mantissa, exponent = mpmath.frexp(x)
    return mpmath.ldexp(mpmath.nint(mpmath.ldexp(mantissa, bits)), exponent - bits)


def rounded_fit(fit: Fit) -> tuple[tuple[list[mpf], list[mpf]], mpf, mpf]:
    """Rounded coefficients, the error before rounding and after."""
    exchange, bits = Exchange(fit), MANTISSA_BITS[fit.dtype]
    parts = [list(part) for part in fit.known]
    errors = []
    while [len(part) for part in parts] != list(fit.counts):
        *best, error = exchange.solve((parts[0], parts[1]))
        errors.append(error)
        missing = [side for side in (0, 1) if len(parts[side]) < fit.counts[side]]
        side = min(missing, key=lambda side: len(parts[side]))
        parts[side].append(rounded(best[side][len(parts[side])], bits))
    numerator, denominator = parts
    last = max(
        fit.weight(x) * abs(fit.function(x) - value(numerator, x) / value(denominator, x))
        for x in fit.points(1000)
        if fit.weight(x)
    )
    return (numerator, denominator), errors[0], last


# --- what is approximated -------------------------------------------------------------------------

LN2 = mpmath.log(2)
SLOPE = mpmath.sqrt(2 * mpmath.pi)

#: Rounding to the nearest multiple of ln 2 leaves a little more than half of it.
SLACK = mpf("1.00002")


def exp_rest(terms: int) -> Real:
    """(exp(r) - the first terms of its series) / r^terms."""

    def rest(r: mpf) -> mpf:
        first = sum((r**k / mpmath.factorial(k) for k in range(terms)), mpf(0))
        return (mpmath.exp(r) - first) / r**terms

    return rest


def relative_to_exp(terms: int) -> Real:
    """The error of exp(r) relative to it, where it is that of the rest times r^terms."""
    return lambda r: abs(r) ** terms * mpmath.exp(-r)


def in_ulps(r: mpf) -> mpf:
    """The error of exp(r) in ulps, where it is that of the rest times r: below 1 they are half as wide."""
    return abs(r) * (2 if r < 0 else 1)


def erf_rest(z: mpf) -> mpf:
    """erf(x)/x - 1 of z = x²."""
    x = mpmath.sqrt(z)
    return mpmath.erf(x) / x - 1 if x else 2 / mpmath.sqrt(mpmath.pi) - 1


def log_erfc(a: mpf) -> mpf:
    """log(erfc(a))."""
    return mpmath.log(mpmath.erfc(a))


def mills(a: mpf) -> mpf:
    """Φ(-a)·exp(a²/2)."""
    return mpmath.erfc(a / mpmath.sqrt(2)) * mpmath.exp(a * a / 2) / 2


def mills_rest(dtype: DType) -> Real:
    """1 / mills(a) less its asymptote, whose slope is √(2π) as the type rounds it."""
    slope = rounded(SLOPE, MANTISSA_BITS[dtype])
    return lambda a: 1 / mills(a) - slope * a


def fits(dtype: DType) -> tuple[Fit, ...]:
    """Every approximation of one type; sizes come from the committed record."""
    c = CONSTANTS[dtype]
    near, far = LN2 / 2 * SLACK, LN2 * SLACK
    border, one = mpf(c.erf_border), mpf(c.erf_one)

    def polynomial(name: str, function: Real, weight: Real, interval: tuple[mpf, mpf]) -> Fit:
        return Fit(dtype, (name,), function, weight, interval, (len(getattr(c, name)), 1))

    gelu = Fit(
        dtype,
        ("mills_numerator", "mills_denominator"),
        mills_rest(dtype),
        mills,
        (mpf(0), mpf(c.gelu_vanishes)),
        (len(c.mills_numerator), len(c.mills_denominator)),
        ((mpf(2),), (mpf(1),)),
        crowd=lambda part: part**2,
    )
    return (
        polynomial("exp_far", exp_rest(2), relative_to_exp(2), (-far, far)),
        polynomial("exp_near", exp_rest(1), in_ulps, (-near, near)),
        polynomial("growth", exp_rest(2), relative_to_exp(2), (-near, near)),
        polynomial("erf_near", erf_rest, lambda z: 1 / (1 + erf_rest(z)), (mpf(0), border**2)),
        polynomial("erf_far", log_erfc, mpmath.erfc, (border, one)),
        gelu,
    )


def check(fit: Fit) -> bool:
    """Prints one row; whether the committed coefficients are the ones computed."""
    parts, before, after = rounded_fit(fit)
    low, high = (mpmath.nstr(end, 5) for end in fit.interval)
    same = True
    for name, part in zip(fit.names, parts, strict=False):
        found, committed = tuple(map(float, part)), getattr(CONSTANTS[fit.dtype], name)
        errors = (
            f"2^{mpmath.nstr(mpmath.log(before, 2), 4)}, rounded 2^{mpmath.nstr(mpmath.log(after, 2), 4)}"
        )
        print(f"{fit.dtype} {name:18} {len(part):2} on [{low}, {high}]: {errors}")
        if found != committed:
            print(f"    committed {committed}\n    computed  {found}")
            same = False
    return same


def check_constants(dtype: DType) -> bool:
    """ln 2 in two parts and the constants of GELU, each the nearest of its type."""
    c, bits = CONSTANTS[dtype], MANTISSA_BITS[dtype]
    scale = 2 * mpmath.sqrt(2 / mpmath.pi)
    cubic = scale * mpf("0.044715")
    exponent_bits = {F32: 8, F64: 11}[dtype]
    high = mpmath.floor(LN2 * 2 ** (bits - exponent_bits)) / 2 ** (bits - exponent_bits)
    linear_high = rounded(scale, bits // 2)
    exact = {
        "log2_e": rounded(1 / LN2, bits),
        "ln2_high": high,
        "ln2_low": rounded(LN2 - high, bits),
        "mills_slope": rounded(SLOPE, bits),
        "gelu_linear_high": linear_high,
        "gelu_linear_low": rounded(scale - linear_high, bits),
        "gelu_cubic_high": rounded(cubic, bits),
        "gelu_cubic_low": rounded(cubic - rounded(cubic, bits), bits),
    }
    wrong = {name: float(found) for name, found in exact.items() if float(found) != getattr(c, name)}
    for name, found in wrong.items():
        print(f"{dtype} {name}: committed {getattr(c, name)!r}, computed {found!r}")
    return not wrong


if __name__ == "__main__":
    dtypes = (F32, F64)
    rows = [check_constants(dtype) for dtype in dtypes]
    rows += [check(fit) for dtype in dtypes for fit in fits(dtype)]
    sys.exit(not all(rows))
