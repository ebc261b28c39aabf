"""The statistics of a measurement: median, its confidence interval, geometric mean."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tilewright.errors import InvalidSize

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Probability with which the interval covers the true median.
CONFIDENCE = 0.95
#: With fewer values not even their whole range covers the median with that probability: 1 - 2 / 2^5 < 0.95.
FEWEST_FOR_INTERVAL = 6


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the two middle ones.

    >>> median([3.0, 1.0, 2.0, 10.0])
    2.5
    """
    if not values:
        raise InvalidSize(name="number of values", found=0, required="at least 1")
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def median_ranks(count: int, confidence: float = CONFIDENCE) -> tuple[int, int]:
    """Ranks (from 1) of the two order statistics between which the true median lies.

    Each of n independent values lies below the true median with probability 1/2, so the number of
    values below it is binomial, B(n, 1/2), whatever the distribution of the values is. The interval
    [x_(l), x_(n+1-l)] misses the median when fewer than l values lie below it, or fewer than l above:

        coverage(l) = 1 - 2 · P(B(n, 1/2) <= l - 1) = 1 - 2 · sum over i < l of C(n, i) / 2^n.

    The largest l with coverage(l) >= confidence is taken. Below `FEWEST_FOR_INTERVAL` values
    not even l = 1, the whole range, covers 95 %; the whole range is returned then.

    Examples
    --------
    >>> median_ranks(20)
    (6, 15)

    Source: David and Nagaraja, Order Statistics, 3rd ed., §7.1.
    """
    if count < 1:
        raise InvalidSize(name="number of values", found=count, required="at least 1")
    missed_at_most = (1 - confidence) / 2
    lower, below = 0, 0
    while lower < (count + 1) // 2:
        below += math.comb(count, lower)
        if below / 2**count > missed_at_most:
            break
        lower += 1
    lower = max(lower, 1)
    return lower, count + 1 - lower


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The confidence interval of the median; see `median_ranks`.

    >>> median_interval([float(i) for i in range(1, 21)])
    (6.0, 15.0)
    """
    lower, upper = median_ranks(len(values), confidence)
    ordered = sorted(values)
    return ordered[lower - 1], ordered[upper - 1]


def geometric_mean(values: Sequence[float]) -> float:
    """The n-th root of the product of n positive values, as means of ratios must be.

    >>> round(geometric_mean([0.5, 2.0]), 12)
    1.0
    """
    if not values:
        raise InvalidSize(name="number of values", found=0, required="at least 1")
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))


def rank_test(old: Sequence[float], new: Sequence[float]) -> float:
    """Two-sided p-value of the Mann-Whitney test: how likely two samples of one distribution differ so much.

    U counts the pairs in which the old value is the larger one, a tie as half. Its exact distribution counts
    the arrangements of both samples by U; with ties, the next whole U nearer to the middle is taken, so that
    the p-value is not too small.

    Examples
    --------
    >>> rank_test([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]) == 2 / 70
    True
    >>> rank_test([1.0, 3.0], [2.0, 4.0])
    0.6666666666666666

    Source: Mann and Whitney, Ann. Math. Statist. 18(1), 1947, pp. 50-60.
    """
    if not old or not new:
        raise InvalidSize(name="number of values", found=0, required="at least 1")
    larger = sum((x > y) + (x == y) / 2 for x in old for y in new)
    smaller = math.ceil(min(larger, len(old) * len(new) - larger))
    counts = _arrangements(len(old), len(new))
    return min(1.0, 2 * sum(counts[: smaller + 1]) / math.comb(len(old) + len(new), len(old)))


def _arrangements(m: int, n: int) -> list[int]:
    """How many arrangements of m and n values have each U from 0 to m·n: coefficients of a Gaussian binomial.

    >>> _arrangements(2, 2)
    [1, 1, 2, 1, 1]
    """
    counts = [1] + [0] * (m * n)
    for size in range(1, m + 1):
        for at in range(m * n, n + size - 1, -1):
            counts[at] -= counts[at - n - size]
        for at in range(size, m * n + 1):
            counts[at] += counts[at - size]
    return counts


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values of several tests, adjusted so that at most one in 20 families has a false finding below 0.05.

    >>> holm([0.01, 0.04, 0.5])
    [0.03, 0.08, 0.5]

    Source: Holm, Scand. J. Statist. 6(2), 1979, pp. 65-70.
    """
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda one: p_values[one])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def ratio_interval(above: Sequence[float], below: Sequence[float], draws: int = 1000) -> tuple[float, float]:
    """95 % confidence interval of the ratio of two medians: percentiles of a bootstrap, of a fixed seed.

    >>> lower, upper = ratio_interval([2.0, 2.1, 1.9, 2.0, 2.05], [1.0, 1.02, 0.98, 1.01, 1.0])
    >>> 1.8 < lower <= upper < 2.2
    True

    Source: Efron and Tibshirani, An Introduction to the Bootstrap, §13.3.
    """
    generator = np.random.default_rng(0)
    medians = [
        np.median(generator.choice(np.asarray(values), (draws, len(values))), axis=1)
        for values in (above, below)
    ]
    low, high = np.percentile(
        medians[0] / medians[1], (100 * (1 - CONFIDENCE) / 2, 100 * (1 + CONFIDENCE) / 2)
    )
    return float(low), float(high)
