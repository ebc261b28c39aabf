"""Two tiers of tests: `make test`, which every change passes, and `make test-all`, which runs the rest too.

A test or a parameter marked `exhaustive` runs in `make test-all` only. The mark is for repetitions: another
machine of a row that runs already, more draws of the same generator, the remaining combinations of a table.
Whatever changes the generated code (the row, the vector length, streaming mode, an instruction, an element
type) runs at least once in `make test`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import product
from typing import Any, TypeVar, cast

import pytest
from _pytest.mark.structures import ParameterSet
from hypothesis import settings
from shares import EVERY_TEST_RUNS, EXHAUSTIVE_LEFT_OUT, cover, pairs_of, places_of

T = TypeVar("T")

exhaustive = pytest.mark.exhaustive
#: Of a test's cases `make test` runs some in which each value of each parameter occurs (`mark_repetitions`).
each_value = pytest.mark.each_value
#: The same with each pair of values that occur together.
each_pair = pytest.mark.each_pair
#: `make test` draws one example in so many.
DRAWN = 4


def draws(examples: int, each: int = DRAWN) -> settings:
    """The settings of a property that is tried on so many examples in `make test-all`, one in `each` else."""
    return settings(deadline=None, max_examples=examples if EVERY_TEST_RUNS else max(examples // each, 10))


def collected(cases: list[ParameterSet]) -> list[ParameterSet]:
    """The cases that pytest is told of: in `make test` those it runs, as each takes 0.3 ms to collect."""
    runs = [one for one in cases if not one.marks]
    return runs if EXHAUSTIVE_LEFT_OUT and runs else cases


def as_tuple(values: Any) -> tuple[Any, ...]:
    """The arguments of one case: those of a tuple or list, which may hold a single tuple, else the value."""
    several = isinstance(values, tuple | list) and not hasattr(values, "_fields")
    return tuple(values) if several else (values,)


def sampled(cases: Iterable[Any], each: int, first: int = 0) -> list[ParameterSet]:
    """Cases of which one in `each` runs in `make test`, beginning with number `first`."""
    return collected(
        [
            pytest.param(*as_tuple(values), marks=() if number % each == first else exhaustive)
            for number, values in enumerate(cases)
        ]
    )


def first_of(cases: Iterable[T], key: Callable[[T], Hashable]) -> list[ParameterSet]:
    """Cases of which the first of each `key` runs in `make test`."""
    seen: set[Hashable] = set()
    found = []
    for values in cases:
        new = key(values) not in seen
        seen.add(key(values))
        found.append(pytest.param(*as_tuple(values), marks=() if new else exhaustive))
    return collected(found)


def crossed(rows: Iterable[Any], cases: Iterable[Any], each: int) -> list[ParameterSet]:
    """Every row with every case; in `make test` a row meets one case in `each`, the next row the next ones.

    >>> [one.values for one in crossed("ab", "xy", 2) if not one.marks]
    [('a', 'x'), ('b', 'y')]
    """
    columns = list(cases)
    return collected(
        [
            pytest.param(*as_tuple(row), *as_tuple(case), marks=() if (i + j) % each == 0 else exhaustive)
            for i, row in enumerate(rows)
            for j, case in enumerate(columns)
        ]
    )


def pairwise(*parameters: Iterable[Any]) -> list[ParameterSet]:
    """The product of parameters; in `make test` a part of it in which each pair of two values occurs.

    >>> [one.values for one in pairwise("ab", "xy", (1, 2)) if not one.marks]
    [('a', 'x', 1), ('a', 'y', 2), ('b', 'x', 2), ('b', 'y', 1)]
    """
    lists = [list(parameter) for parameter in parameters]
    chosen = set(places_of(lists))
    return collected(
        [
            pytest.param(
                *(values[place] for values, place in zip(lists, places, strict=True)),
                marks=() if places in chosen else exhaustive,
            )
            for places in product(*(range(len(values)) for values in lists))
        ]
    )


def mark_repetitions(items: Iterable[pytest.Item]) -> None:
    """Marks as `exhaustive` cases of tests with `each_value` or `each_pair` that add no value, or no pair."""
    if EVERY_TEST_RUNS:
        return
    groups: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
    members: dict[tuple[str, str], list[pytest.Item]] = {}
    for item in items:
        mark = item.get_closest_marker("each_value") or item.get_closest_marker("each_pair")
        if mark is None or item.get_closest_marker("exhaustive"):
            continue
        test = (mark.name, item.nodeid.partition("[")[0])
        given: dict[str, Any] = item.callspec.params  # type: ignore[attr-defined]
        groups.setdefault(test, []).append(tuple(_key(given[name]) for name in sorted(given)))
        members.setdefault(test, []).append(item)
    for test, values in groups.items():
        kept = pairs_of(values) if test[0] == "each_pair" else cover(dict(enumerate(map(_parts, values))))
        for number in set(range(len(values))) - set(kept):
            members[test][number].add_marker(exhaustive)


def _key(value: Any) -> Hashable:
    """What tells a value from others of a parameter."""
    try:
        hash(value)
    except TypeError:  # a list, or a tuple of lists
        return repr(value)
    return cast("Hashable", value)


def _parts(values: tuple[Any, ...]) -> set[tuple[int, Any]]:
    """The values of one case, by parameter."""
    return set(enumerate(values))


def named(value: Any) -> str | None:
    """The name of a case's argument, as `ids` of `pytest.mark.parametrize`."""
    if isinstance(value, (list, tuple)):
        return "-".join(map(str, value))
    found = getattr(value, "name", None) or getattr(value, "value", None)
    return found if isinstance(found, str) else str(value)
