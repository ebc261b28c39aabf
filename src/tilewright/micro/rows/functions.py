"""Softmax, norms and related functions of whole rows: each is a few passes over vectors of `Lines`.

The first pass reads a row from memory, the others from L1. Unused lanes hold values that raise no
floating-point flag.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tilewright.llvm.build import Function
from tilewright.llvm.floats import Floats
from tilewright.llvm.values import Value
from tilewright.machine.isa import Isa
from tilewright.micro.calls import Operands, PrimitiveFunction, value, window
from tilewright.micro.elements.logarithm import log
from tilewright.micro.elements.math import exp_nonpositive
from tilewright.micro.rows import across_functions as across
from tilewright.micro.rows.across import AcrossRows
from tilewright.micro.rows.by_length import by_length
from tilewright.micro.rows.lines import AlongRows, Spot
from tilewright.spec.dtype import F32, F64, DType

#: Writers of the body of the loops over rows; and over columns of adjacent rows.
Along: TypeAlias = Callable[[AlongRows], None]
Across: TypeAlias = Callable[[AcrossRows], None]


def _larger(v: Floats, left: Value, right: Value) -> Value:
    return v.at_least(left, right)


def _largest(lines: AlongRows) -> list[Value]:
    """max x of each part, in every lane; NaN is ignored here, and appears in the sum."""
    lowest = lines.v.constant(float("-inf"))
    found = lines.reduce(
        [float("-inf")], lambda spot, state: [lines.v.at_least(state[0], lines.load(spot, lowest))], _larger
    )
    return [lines.spread(most) for (most,) in found]


def _weight(lines: AlongRows, spot: Spot, most: Value) -> Value:
    """e^(x - max x), and 0 in unused lanes."""
    v, f = lines.v, lines.f
    below = v.subtract(lines.load(spot, most if spot.mask is not None else None), most)
    if spot.mask is not None:  # of a row of infinities too the others are 0 - 0
        below = f.select(spot.mask, below, v.constant(0.0))
    weight = exp_nonpositive(v, below)
    return weight if spot.mask is None else f.select(spot.mask, weight, v.constant(0.0))


def _softmax(lines: AlongRows) -> None:
    """Three passes: maximum, exponentials and their sum, quotient.

    Exponentials are kept in the buffer of a row, or in the destination if it has their type; else they are
    computed again.
    """
    v, one = lines.v, lines.one
    most = _largest(lines)
    waits = lines.given["kept"] is not None or lines.to.dtype == lines.acc

    def weigh(spot: Spot, state: list[Value]) -> list[Value]:
        lines.fetch(spot)
        weight = _weight(lines, spot, most[spot.part])
        if waits:
            lines.keep(spot, weight)
        return [v.add(state[0], weight)]

    sums = lines.sums(1, weigh)
    factors = [lines.spread(one.divide(one.constant(1.0), total)) for (total,) in sums]

    def finish(spot: Spot) -> None:
        weight = lines.kept(spot) if waits else _weight(lines, spot, most[spot.part])
        lines.store(spot, v.multiply(weight, factors[spot.part]))

    lines.each(finish)


def _log_softmax(lines: AlongRows) -> None:
    """Three passes: maximum, sum of exponentials, difference."""
    v, one = lines.v, lines.one
    most = _largest(lines)

    def weigh(spot: Spot, state: list[Value]) -> list[Value]:
        lines.fetch(spot)
        return [v.add(state[0], _weight(lines, spot, most[spot.part]))]

    sums = lines.sums(1, weigh)
    logs = [lines.spread(log(one, total)) for (total,) in sums]

    def finish(spot: Spot) -> None:
        below = v.subtract(lines.load(spot, most[spot.part]), most[spot.part])
        lines.store(spot, v.subtract(below, logs[spot.part]))

    lines.each(finish)


def _inverse_root(lines: AlongRows, mean_square: Value) -> Value:
    """1 / √(mean square + eps)."""
    one = lines.one
    eps = value(lines.given, "eps")
    root = one.root(one.add(mean_square, eps))
    return lines.spread(one.divide(one.constant(1.0), root))


def _scaled(lines: AlongRows, spot: Spot, normal: Value) -> None:
    """Stores normalised elements times weight and plus bias."""
    v, given = lines.v, lines.given
    weighted, biased = given.get("weight") is not None, given.get("bias") is not None
    if weighted and biased:
        normal = v.multiply_add(normal, lines.along("weight", spot), lines.along("bias", spot))
    elif weighted:
        normal = v.multiply(normal, lines.along("weight", spot))
    elif biased:
        normal = v.add(normal, lines.along("bias", spot))
    lines.store(spot, normal)


def _deviations(lines: AlongRows) -> tuple[list[Value], list[Value], list[Value]]:
    """Two passes: sum; sums of differences from the mean and of their squares.

    For each row the mean, the inverse deviation, and what is added to normalised elements.

    The sum of the differences is the rounding error of the mean. It corrects the variance and the results;
    not the mean itself, where it would be lost again.

    Source: Chan, Golub and LeVeque, The American Statistician 37(3), 1983, the corrected two-pass algorithm.
    """
    v, one = lines.v, lines.one
    count = lines.count()
    sums = lines.sums(1, lambda spot, state: [v.add(state[0], lines.load(spot))])
    around = [lines.spread(one.divide(total, count)) for (total,) in sums]

    def square(spot: Spot, state: list[Value]) -> list[Value]:
        lines.fetch(spot)
        mean = around[spot.part]
        difference = v.subtract(lines.load(spot, mean), mean)
        if spot.mask is not None:  # inf - inf would be NaN
            difference = lines.f.select(spot.mask, difference, v.constant(0.0))
        return [v.add(state[0], difference), v.multiply_add(difference, difference, state[1])]

    factors, shifts = [], []
    for rest, squares in lines.sums(2, square):
        lost = one.divide(rest, count)
        variance = one.divide(one.subtract(squares, one.multiply(rest, lost)), count)
        # For equal elements, rounding may make the variance negative.
        factors.append(_inverse_root(lines, one.at_least(variance, one.constant(0.0))))
        shifts.append(v.negate(v.multiply(lines.spread(lost), factors[-1])))
    return around, factors, shifts


def _layer_norm(lines: AlongRows) -> None:
    """Three passes: two for the statistics; result."""
    v = lines.v
    around, factors, shifts = _deviations(lines)

    def finish(spot: Spot) -> None:
        difference = v.subtract(lines.load(spot, around[spot.part]), around[spot.part])
        _scaled(lines, spot, v.multiply_add(difference, factors[spot.part], shifts[spot.part]))

    lines.each(finish)


def _inverse_roots(lines: AlongRows, count: Value) -> list[Value]:
    """One pass: the factor of each row by its sum of squares."""

    def square(spot: Spot, state: list[Value]) -> list[Value]:
        x = lines.load(spot)
        return [lines.v.multiply_add(x, x, state[0])]

    sums = lines.sums(1, square)
    return [_inverse_root(lines, lines.one.divide(total, count)) for (total,) in sums]


def _rms_norm(lines: AlongRows) -> None:
    """Two passes: sum of squares; result."""
    v = lines.v
    factors = _inverse_roots(lines, lines.count())

    def finish(spot: Spot) -> None:
        lines.fetch(spot)
        _scaled(lines, spot, v.multiply(lines.load(spot), factors[spot.part]))

    lines.each(finish)


def _write_factors(lines: AlongRows, factors: list[Value]) -> None:
    """One number for each row."""
    for row, factor in zip(lines.rows, factors, strict=True):
        lines.write(row, lines.f.extract(factor, 0))


def _emit(f: Function, isa: Isa, given: Operands, word: str, body: tuple[Along, Across]) -> None:
    """Calls the function of a primitive: along rows, or across adjacent rows."""
    to = window(given, "to")
    acc: DType = to.dtype if to.dtype == F64 else F32
    along, beside = body

    def write(inner: Function, operands: Operands) -> None:
        by_length(inner, isa, (acc, operands), along, beside)
        stream = operands.get("stream")
        if isinstance(stream, Value) and stream.known != 0:
            with inner.when(inner.icmp("!=", stream, 0)):
                inner.fence()

    PrimitiveFunction(f, isa, word, acc, given).call(write)


def emit_softmax_rows(f: Function, isa: Isa, given: Operands) -> None:
    """Calls the function of a `SoftmaxRows`."""
    _emit(f, isa, given, "softmax_rows", (_softmax, across.softmax))


def emit_log_softmax(f: Function, isa: Isa, given: Operands) -> None:
    """Calls the function of a `LogSoftmaxRows`."""
    _emit(f, isa, given, "log_softmax_rows", (_log_softmax, across.log_softmax))


def emit_layer_norm(f: Function, isa: Isa, given: Operands) -> None:
    """Calls the function of a `LayerNormRows`."""
    _emit(f, isa, given, "layer_norm_rows", (_layer_norm, across.layer_norm))


def emit_rms_norm(f: Function, isa: Isa, given: Operands) -> None:
    """Calls the function of a `RmsNormRows`."""
    _emit(f, isa, given, "rms_norm_rows", (_rms_norm, across.rms_norm))


def emit_inverse_deviation(f: Function, isa: Isa, given: Operands) -> None:
    """Calls the function of an `InverseDeviationRows`."""

    def along(lines: AlongRows) -> None:
        _write_factors(lines, _deviations(lines)[1])

    _emit(f, isa, given, "inverse_deviation_rows", (along, across.inverse_deviation))


def emit_inverse_root(f: Function, isa: Isa, given: Operands) -> None:
    """Calls the function of an `InverseRootRows`."""

    def along(lines: AlongRows) -> None:
        _write_factors(lines, _inverse_roots(lines, lines.count()))

    _emit(f, isa, given, "inverse_root_rows", (along, across.inverse_root))
