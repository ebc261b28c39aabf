"""Shares of a table that one loop walks: all of it in `make test-all`, a part in `make test`.

Apart from tiers.py, so that child processes need no pytest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from itertools import combinations, product
from typing import Any, TypeVar

T = TypeVar("T")

#: Whether this is a run of `make test-all`: conftest.py sets the variable for workers and children.
EVERY_TEST_RUNS = bool(os.environ.get("EVERY_TEST_RUNS"))


def share(cases: Iterable[T], each: int, first: int = 0) -> list[T]:
    """Cases of one loop: all of them in `make test-all`, else one in `each`, beginning with `first % each`.

    Where a row meets a share of a table, the next row takes the next one, so that `make test` meets all.
    """
    found = list(cases)
    return found if EVERY_TEST_RUNS else found[first % each :: each]


def pairs_of(tuples: Iterable[tuple[Any, ...]]) -> list[int]:
    """Numbers of tuples in which each pair of two values occurs that occurs in any of them."""
    pairs = {
        number: {
            (i, j, values[i], values[j])
            for i, j in (combinations(range(len(values)), 2) if len(values) > 1 else [(0, 0)])
        }
        for number, values in enumerate(tuples)
    }
    left, found = set().union(*pairs.values()), []
    while left:  # the first of the best, so that every run takes the same ones
        best = max(pairs, key=lambda number: len(pairs[number] & left))
        found.append(best)
        left -= pairs.pop(best)
    return sorted(found)


def places_of(parameters: Iterable[Iterable[Any]]) -> list[tuple[int, ...]]:
    """Places in the product of parameters, so that each pair of values of two parameters occurs in one.

    >>> places_of(("ab", "xy", (1, 2)))
    [(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0)]
    """
    every = list(product(*(range(len(list(parameter))) for parameter in parameters)))
    return [every[number] for number in pairs_of(every)]


def covering(*parameters: Iterable[Any]) -> list[tuple[Any, ...]]:
    """The product of parameters, for one loop; in `make test` a part in which each pair of values occurs."""
    lists = [list(parameter) for parameter in parameters]
    if EVERY_TEST_RUNS:
        return list(product(*lists))
    return [
        tuple(values[place] for values, place in zip(lists, places, strict=True))
        for places in places_of(lists)
    ]


def check_each(cases: Iterable[T], check: Callable[[T], None]) -> None:
    """Checks every case; the failures are reported together at the end."""
    failures = []
    for case in cases:
        try:
            check(case)
        except AssertionError as failure:
            failures.append(f"{case}: {failure}")
    assert not failures, f"{len(failures)} cases fail:\n" + "\n".join(failures)
