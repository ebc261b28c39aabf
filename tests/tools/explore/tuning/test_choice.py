"""The rule by which tuned constants replace the models' choice."""

from __future__ import annotations

import random

import pytest

from tilewright.tools.explore.statistics import median_ranks
from tilewright.tools.explore.tuning.choice import (
    FEWEST_ROUNDS,
    LEAST_GAIN,
    MOST_LOSS,
    MOST_ROUNDS,
    Round,
    compare,
    fastest,
)


def drawn(speeds: list[list[float]], noise: float, rounds: int = MOST_ROUNDS, seed: int = 0) -> list[Round]:
    """Rounds of kernels of some speeds at each shape; times vary by `noise`, some are thrice as long."""
    generator = random.Random(seed)

    def time(speed: float) -> float:
        slow = 3.0 if generator.random() < noise else 1.0
        return slow * (1 + noise * generator.random()) / speed

    return [[[time(speed) for speed in shapes] for shapes in speeds] for _ in range(rounds)]


SAME = [1.0, 1.0, 1.0]
RULES: list[tuple[str, list[list[float]], float, int | None]] = [
    ("nothing is faster", [SAME, SAME, SAME, SAME], 0.02, None),
    ("one is faster", [SAME, SAME, [1.1, 1.1, 1.1], SAME], 0.02, 2),
    ("the best of two", [SAME, SAME, [1.1, 1.1, 1.1], [1.2, 1.2, 1.2]], 0.02, 3),
    ("less than the least gain", [SAME, SAME, [1.006, 1.006, 1.006]], 0.0, None),
    ("a little more than that", [SAME, SAME, [1.02, 1.02, 1.02]], 0.001, 2),
    ("less than the noise", [SAME, SAME, [1.03, 1.03, 1.03]], 0.3, None),
    ("one shape loses", [SAME, SAME, [1.3, 1.3, 0.95]], 0.005, None),
    ("one shape loses little", [SAME, SAME, [1.3, 1.3, 0.98]], 0.005, 2),
    ("all are slower", [SAME, SAME, [0.8, 0.8, 0.8], [0.9, 0.9, 0.9]], 0.02, None),
]


@pytest.mark.parametrize(("case", "speeds", "noise", "expected"), RULES, ids=[rule[0] for rule in RULES])
def test_which_variant_counts(
    case: str,
    speeds: list[list[float]],
    noise: float,
    expected: int | None,
) -> None:
    found = fastest(compare(drawn(speeds, noise), [1.0] * 3))
    assert (None if found is None else found.variant) == expected


def test_equal_kernels_are_seldom_taken_for_faster_ones() -> None:
    """Of 200 series of five equal kernels in noise, as many as the confidence allows, and the gain fewer."""
    wrong = sum(
        fastest(compare(drawn([SAME] * 7, 0.05, FEWEST_ROUNDS, seed), [1.0] * 3)) is not None
        for seed in range(200)
    )
    assert wrong <= 2


def test_figures_of_a_comparison() -> None:
    rounds: list[Round] = [[[4.0], [1.0], [1.0]]] * 9
    (comparison,) = compare(rounds, [1.0])
    assert (comparison.gain, comparison.low, comparison.high, comparison.worst) == (2.0, 2.0, 2.0, 2.0)
    assert comparison.noise == 4.0  # of the model's choice over itself
    assert not comparison.is_faster


def test_shapes_have_weights() -> None:
    rounds: list[Round] = [[[1.0, 1.0], [1.0, 1.0], [0.5, 1.0]]] * 9
    assert compare(rounds, [1.0, 1.0])[0].gain == pytest.approx(2**0.5)
    assert compare(rounds, [3.0, 1.0])[0].gain == pytest.approx(2**0.75)
    assert compare(rounds, [0.0, 1.0])[0].gain == pytest.approx(1.0)


def test_the_fewest_rounds_tell_five_variants_apart() -> None:
    """With fewer, the interval would be the whole range and cover less than it says."""
    low, high = median_ranks(FEWEST_ROUNDS, 1 - 0.05 / 5)
    assert (low, high) == (1, FEWEST_ROUNDS)
    assert 2 / 2**FEWEST_ROUNDS < 0.05 / 5
    assert 0 < LEAST_GAIN < MOST_LOSS
