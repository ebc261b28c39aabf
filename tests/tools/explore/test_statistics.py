"""Median, confidence interval and geometric mean against tables."""

from __future__ import annotations

import math
import random

import pytest
from shares import looped

from tilewright.errors import InvalidSize
from tilewright.tools.explore.statistics import (
    FEWEST_FOR_INTERVAL,
    geometric_mean,
    median,
    median_interval,
    median_ranks,
)

#: From binomial tails: for 20 values P(B <= 5) = 0.0207 and P(B <= 6) = 0.0577, so the 6th from each end.
RANKS = {
    6: (1, 6),
    7: (1, 7),
    8: (1, 8),
    9: (2, 8),
    10: (2, 9),
    11: (2, 10),
    12: (3, 10),
    15: (4, 12),
    16: (4, 13),
    17: (5, 13),
    20: (6, 15),
    25: (8, 18),
    30: (10, 21),
    50: (18, 33),
    100: (40, 61),
}


@pytest.mark.parametrize(("count", "ranks"), RANKS.items())
def test_ranks_table(count: int, ranks: tuple[int, int]) -> None:
    assert median_ranks(count) == ranks


@pytest.mark.parametrize("count", range(1, FEWEST_FOR_INTERVAL))
def test_few_values_give_their_range(count: int) -> None:
    assert median_ranks(count) == (1, count)


@looped("count", range(FEWEST_FOR_INTERVAL, 60))
def test_ranks_are_the_tightest_that_cover(count: int) -> None:
    def coverage(lower: int) -> float:
        return 1 - 2 * sum(math.comb(count, i) for i in range(lower)) / 2.0**count

    lower, upper = median_ranks(count)
    assert lower + upper == count + 1
    assert coverage(lower) >= 0.95 > coverage(lower + 1)


def test_interval_covers_the_median_of_a_skewed_distribution() -> None:
    generator = random.Random(3)
    true_median = math.log(2)
    covered = 0
    for _ in range(2000):
        lower, upper = median_interval([generator.expovariate(1) for _ in range(20)])
        covered += lower <= true_median <= upper
    assert 0.94 < covered / 2000 < 0.975  # 0.9586 exactly, by the formula


@pytest.mark.parametrize(
    ("values", "expected"),
    [([5.0], 5.0), ([1.0, 9.0], 5.0), ([9.0, 1.0, 2.0], 2.0), ([4.0, 1.0, 2.0, 9.0], 3.0)],
)
def test_median(values: list[float], expected: float) -> None:
    assert median(values) == expected


def test_geometric_mean() -> None:
    assert geometric_mean([0.5, 2.0, 8.0]) == pytest.approx(2.0)


@pytest.mark.parametrize("function", [median, geometric_mean, median_interval])
def test_no_values(function: object) -> None:
    with pytest.raises(InvalidSize):
        function([])  # type: ignore[operator]
