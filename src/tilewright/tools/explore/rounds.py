"""The loop that measures: whatever is compared takes turns, in a new random order in each round."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeVar

from tilewright.tools.explore.statistics import median

Key = TypeVar("Key")

#: Seconds of one measurement of calls in this process, filled by repeating short ones.
SECONDS = 2e-3


def turns(
    rounds: Mapping[Key, Collection[int]], repeat: int, order: random.Random
) -> Iterator[tuple[Key, bool]]:
    """Every key once per round, in an order drawn anew; whether the round is one of the key's own.

    Parameters
    ----------
    rounds : the rounds, from 0, in which each key is measured.
    repeat : how many rounds there are.
    order : draws the order of each round.

    Examples
    --------
    >>> found = list(turns({"a": range(3), "b": {1}}, 3, random.Random(0)))
    >>> len(found), [key for key, due in found if due].count("b")
    (6, 1)

    Source: Kuzma et al., Softw. Pract. Exper. 2023, doi:10.1002/spe.3214, §4.1.
    """
    for number in range(repeat):
        for key in order.sample(list(rounds), len(rounds)):
            yield key, number in rounds[key]


def compare_calls(
    calls: Mapping[str, Callable[[], Any]],
    repeat: int,
    seconds: float = SECONDS,
    seed: int = 0,
    rest: float = 0.0,
    advance: Callable[[], None] = lambda: None,
) -> dict[str, list[float]]:
    """Seconds of a call of each system in each round, all in this process.

    Each measurement repeats its call until it lasts about `seconds`, after one call that is not timed, and
    after `rest` seconds in which idle threads of the other systems stop to spin; then `advance` is called.

    >>> {name: len(times) for name, times in compare_calls({"nothing": int}, 3, 1e-4).items()}
    {'nothing': 3}
    """
    counts = {name: max(1, round(seconds / call_seconds(call, 3))) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    rounds = dict.fromkeys(calls, range(repeat))
    for name, _ in turns(rounds, repeat, random.Random(seed)):  # noqa: S311  (an order, not a secret)
        time.sleep(rest)
        calls[name]()
        samples[name].append(call_seconds(calls[name], counts[name]))
        advance()
    return samples


def median_seconds(
    calls: Mapping[str, Callable[[], Any]], repeat: int, seconds: float = SECONDS
) -> dict[str, float]:
    """The median of `compare_calls` for each system.

    >>> median_seconds({"nothing": int}, 3, 1e-4)["nothing"] < 1
    True
    """
    return {name: median(times) for name, times in compare_calls(calls, repeat, seconds).items()}


def call_seconds(call: Callable[[], Any], count: int) -> float:
    """Seconds of one call, the mean of several; never 0."""
    start = time.perf_counter()
    for _ in range(count):
        call()
    return max(time.perf_counter() - start, 1e-9) / count
