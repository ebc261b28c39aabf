"""The statistics of a measurement: median, its confidence interval, geometric mean."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

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
