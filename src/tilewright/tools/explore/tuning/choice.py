"""The rule by which `tilewright tune` replaces the models' choice: faster by more than the noise, twice.

In each round every variant is measured once on each shape, in random order, and the model's choice twice.
The score of a variant in a round is the geometric mean over shapes of its speed over that of the model's
choice (the geometric mean of its two), each divided by the peak measured right before. Of the scores the
median counts, with a confidence interval between two order statistics, which is a sign test and assumes no
distribution. A variant is faster if

- the lower end of the interval is above 1 + `LEAST_GAIN`. The error probability of the interval is divided by
  the number of variants, since the best of several is looked at;
- the median is above the noise: the far end of the interval of the model's choice over itself;
- no shape loses more than `MOST_LOSS`.

The fastest such variant is then measured alone against the model's choice in rounds of their own, since
the best of several owes some of its lead to chance. It must be faster there again; that gain is reported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.records import dataclass
from tilewright.tools.explore.statistics import CONFIDENCE, geometric_mean, median, median_interval

#: A smaller gain is not worth a kernel that differs from the models'.
LEAST_GAIN = 0.01
#: The speed that a shape may lose where the class gains.
MOST_LOSS = 0.03
#: Rounds of a class. Up to five variants are told apart at 95 % from nine rounds on: 2 / 2^9 < 0.05 / 5.
FEWEST_ROUNDS, MOST_ROUNDS = 9, 50

#: Times of one round: of each variant, of each shape, in cycles at the peak. The first two variants are the
#: model's choice.
Round = Sequence[Sequence[float]]
#: Variants that are the model's choice.
MODEL, AGAIN, FIRST_OTHER = 0, 1, 2


@dataclass(frozen=True)
class VariantComparison:
    """How a variant compares with the model's choice.

    Attributes
    ----------
    variant : its number in a round.
    gain, low, high : the median score and its confidence interval.
    worst : the least median over shapes.
    noise : as in `Finding`.
    """

    variant: int
    gain: float
    low: float
    high: float
    worst: float
    noise: float

    @property
    def is_faster(self) -> bool:
        """Whether the variant is faster by more than the noise, at no shape's cost."""
        return self.low > 1 + LEAST_GAIN and self.gain > self.noise and self.worst >= 1 - MOST_LOSS


def compare(rounds: Sequence[Round], weights: Sequence[float]) -> tuple[VariantComparison, ...]:
    """The comparison of each other variant with the model's choice.

    Parameters
    ----------
    rounds : the measurements.
    weights : of the shapes in the geometric mean.

    Examples
    --------
    >>> (comparison,) = compare([[[1.0], [1.0], [0.8]]] * 9, [1.0])
    >>> comparison.gain, comparison.is_faster
    (1.25, True)
    """
    variants = len(rounds[0]) - FIRST_OTHER
    noise = _noise(rounds, weights)
    confidence = 1 - (1 - CONFIDENCE) / max(variants, 1)
    found = []
    for variant in range(FIRST_OTHER, FIRST_OTHER + variants):
        ratios = [_ratios(times, variant) for times in rounds]
        scores = [_mean(ratio, weights) for ratio in ratios]
        low, high = median_interval(scores, confidence)
        worst = min(median([ratio[shape] for ratio in ratios]) for shape in range(len(weights)))
        found.append(VariantComparison(variant, median(scores), low, high, worst, noise))
    return tuple(found)


def fastest(comparisons: Sequence[VariantComparison]) -> VariantComparison | None:
    """The best of the variants that are faster; None if none is."""
    return max((one for one in comparisons if one.is_faster), key=lambda one: one.gain, default=None)


def _noise(rounds: Sequence[Round], weights: Sequence[float]) -> float:
    """The ratio up to which the model's choice differs from itself, at least 1."""
    scores = [
        _mean([again / once for once, again in zip(times[MODEL], times[AGAIN], strict=True)], weights)
        for times in rounds
    ]
    low, high = median_interval(scores)
    return max(high, 1 / low, 1.0)


def _ratios(times: Round, variant: int) -> list[float]:
    """Speed of a variant over the model's choice at each shape, in one round."""
    return [
        math.sqrt(once * again) / own
        for once, again, own in zip(times[MODEL], times[AGAIN], times[variant], strict=True)
    ]


def _mean(ratios: Sequence[float], weights: Sequence[float]) -> float:
    """The weighted geometric mean."""
    if len(set(weights)) == 1:
        return geometric_mean(ratios)
    total = math.fsum(weights)
    logs = (weight * math.log(ratio) for weight, ratio in zip(weights, ratios, strict=True))
    return math.exp(math.fsum(logs) / total)
