"""Softmax, norms and related functions of adjacent rows, in as few passes over memory as possible.

Each visits all columns in address order; partial results of every row are kept in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.llvm.values import Value
from tilewright.micro.calls import value
from tilewright.micro.elements.logarithm import log
from tilewright.micro.elements.math import exp_nonpositive
from tilewright.micro.rows.across import AcrossRows
from tilewright.micro.rows.lines import Spot
from tilewright.micro.rows.long_sums import tree_sum

#: The largest number of each type that is computed in.
_LARGEST = {32: (2 - 2.0**-23) * 2.0**127, 64: (2 - 2.0**-52) * 2.0**1023}


def _largest_and_sum(lines: AcrossRows) -> None:
    """State 0 becomes max x, the sum at state 1 Σ e^(x - max x), in one reading: sums follow the maximum.

    A maximum of -inf cannot be subtracted; until there is a larger one, weights are 0. The maximum ignores
    NaN, which remains in the sum.

    Source: Milakov and Gimelshein, Online normalizer calculation for softmax, arXiv:1805.02867, §3.
    """
    v = lines.v
    lines.begin(float("-inf"))
    lines.begin_sum(1)
    lowest = v.constant(-_LARGEST[lines.acc.bits])

    def meet(spots: Sequence[Spot]) -> None:
        most, found = lines.get(0, spots[0]), [lines.load(spot) for spot in spots]
        larger = most
        for x in found:
            larger = v.at_least(larger, x)
        lines.put(0, spots[0], larger)
        origin = v.at_least(larger, lowest)
        follow = exp_nonpositive(v, v.subtract(most, origin))
        lines.put_sum(1, spots[0], lines.sums.times(lines.sum_at(1, spots[0]), follow))
        weights = [exp_nonpositive(v, v.subtract(x, origin)) for x in found]
        lines.add_up(1, spots[0], weights)

    lines.over(meet)


def _settle_sum(lines: AcrossRows, change: Callable[[Value], Value]) -> None:
    """State 3 becomes a function of the sum at state 1.

    An empty sum is replaced by 1; its row would be NaN otherwise.
    """
    v = lines.v

    def settle(spot: Spot) -> None:
        total = lines.sums.rounded(lines.sum_at(1, spot))
        nothing = v.compare("==", total, v.constant(0.0))
        lines.put(3, spot, change(lines.quiet(spot, lines.f.select(nothing, v.constant(1.0), total))))

    lines.settle(settle)


def softmax(lines: AcrossRows) -> None:
    """Two passes: maximum and sum of exponentials; quotient."""
    v = lines.v
    _largest_and_sum(lines)
    _settle_sum(lines, lambda total: v.divide(v.constant(1.0), total))

    def finish(spot: Spot) -> None:
        weight = exp_nonpositive(v, _below(lines, spot))
        lines.store(spot, v.multiply(weight, lines.get(3, spot)))

    lines.each(finish)


def log_softmax(lines: AcrossRows) -> None:
    """Two passes: maximum and sum of exponentials; difference."""
    v = lines.v
    _largest_and_sum(lines)
    _settle_sum(lines, lambda total: log(v, total))
    lines.each(lambda spot: lines.store(spot, v.subtract(_below(lines, spot), lines.get(3, spot))))


def _below(lines: AcrossRows, spot: Spot) -> Value:
    """x - max x; 0 in lanes beyond the rows."""
    below = lines.v.subtract(lines.load(spot), lines.get(0, spot))
    return below if spot.mask is None else lines.f.select(spot.mask, below, lines.v.constant(0.0))


def _inverse_root(lines: AcrossRows, spot: Spot, mean_square: Value) -> Value:
    """1 / √(mean square + eps)."""
    v = lines.v
    eps = lines.f.splat(value(lines.given, "eps"), lines.lanes)
    root = v.root(lines.quiet(spot, v.add(mean_square, eps)))
    return v.divide(v.constant(1.0), root)


def _scaled(lines: AcrossRows, spot: Spot, normal: Value) -> None:
    """Stores normalised elements times weight and plus bias."""
    if lines.given.get("weight") is not None:
        normal = lines.v.multiply(normal, lines.along("weight", spot))
    if lines.given.get("bias") is not None:
        normal = lines.v.add(normal, lines.along("bias", spot))
    lines.store(spot, normal)


def _deviations(lines: AcrossRows) -> None:
    """Two passes: state 0 becomes the mean, 1 the inverse deviation, 2 what is added to normalised elements.

    As along rows, the differences' own sum corrects the variance and the results.
    """
    v, f = lines.v, lines.f
    count = f.splat(lines.count(), lines.lanes)
    lines.begin_sum(3)
    lines.add_columns(3, 1)
    lines.settle(lambda spot: lines.put(0, spot, lines.sums.rounded(lines.sum_at(3, spot), count)))
    lines.begin_sum(3)
    lines.settle(lambda spot: lines.put(1, spot, v.constant(0.0)))

    def square(spots: Sequence[Spot]) -> None:
        around, first = lines.get(0, spots[0]), spots[0]
        apart = [v.subtract(lines.load(spot), around) for spot in spots]
        rest = tree_sum(f, len(apart), apart.__getitem__)
        lines.put(1, first, v.add(lines.get(1, first), rest))
        lines.add_up(3, first, [v.multiply(d, d) for d in apart])

    lines.over(square)

    def settle(spot: Spot) -> None:
        rest = lines.get(1, spot)
        lost = v.divide(rest, count)
        squares = lines.sums.rounded(lines.sum_at(3, spot))
        variance = v.divide(v.subtract(squares, v.multiply(rest, lost)), count)
        # For equal elements, rounding may make the variance negative.
        factor = _inverse_root(lines, spot, v.at_least(variance, v.constant(0.0)))
        lines.put(1, spot, factor)
        lines.put(2, spot, v.negate(v.multiply(lost, factor)))

    lines.settle(settle)


def inverse_deviation(lines: AcrossRows) -> None:
    """Two passes, and one number for each row."""
    _deviations(lines)
    lines.settle(lambda spot: lines.store(spot, lines.get(1, spot)))


def layer_norm(lines: AcrossRows) -> None:
    """Three passes: two for the statistics; result."""
    v = lines.v
    _deviations(lines)

    def finish(spot: Spot) -> None:
        apart = v.subtract(lines.load(spot), lines.get(0, spot))
        _scaled(lines, spot, v.multiply_add(apart, lines.get(1, spot), lines.get(2, spot)))

    lines.each(finish)


def _inverse_roots(lines: AcrossRows) -> None:
    """One pass: state 0 becomes the factor of each row."""
    v = lines.v
    count = lines.f.splat(lines.count(), lines.lanes)
    lines.begin_sum(1)

    def square(spots: Sequence[Spot]) -> None:
        found = [lines.load(spot) for spot in spots]
        lines.add_up(1, spots[0], [v.multiply(x, x) for x in found])

    lines.over(square)

    def settle(spot: Spot) -> None:
        lines.put(0, spot, _inverse_root(lines, spot, lines.sums.rounded(lines.sum_at(1, spot), count)))

    lines.settle(settle)


def inverse_root(lines: AcrossRows) -> None:
    """One pass, and one number for each row."""
    _inverse_roots(lines)
    lines.settle(lambda spot: lines.store(spot, lines.get(0, spot)))


def rms_norm(lines: AcrossRows) -> None:
    """Two passes: sum of squares; result."""
    _inverse_roots(lines)
    lines.each(lambda spot: _scaled(lines, spot, lines.v.multiply(lines.load(spot), lines.get(0, spot))))
