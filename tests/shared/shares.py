"""Shares of a table that one loop walks: all of it in `make test-all`, a part in `make test`.

Apart from tiers.py, so that child processes need no pytest.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Hashable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from itertools import combinations, product
from typing import Any, TypeVar, cast

T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)
Test = TypeVar("Test", bound=Callable[..., None])

#: Whether this is a run of `make test-all`: conftest.py sets the variable for workers and children.
EVERY_TEST_RUNS = bool(os.environ.get("EVERY_TEST_RUNS"))
#: Whether no test with the mark `exhaustive` can run, as in `make test`.
EXHAUSTIVE_LEFT_OUT = bool(os.environ.get("EXHAUSTIVE_LEFT_OUT"))


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
    return cover(pairs)


def cover(parts: Mapping[Key, AbstractSet[Any]]) -> list[Key]:
    """Keys whose parts are together all the parts that there are, in the order of the mapping.

    >>> cover({"left": {1, 2}, "middle": {2, 3}, "right": {3, 4}})
    ['left', 'right']
    """
    left: set[Any] = set().union(*parts.values())
    found: set[Key] = set()
    while left:  # the first of the best, so that every run takes the same ones
        best = max((key for key in parts if key not in found), key=lambda key: len(parts[key] & left))
        found.add(best)
        left -= parts[best]
    return [key for key in parts if key in found]


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
    """Checks every case; the assertions that fail are reported together at the end."""
    failures = []
    for case in cases:
        try:
            check(case)
        except AssertionError as failure:
            failures.append(f"{case}: {failure}")
        except Exception as error:
            error.add_note(f"the case is {case}")
            raise
    assert not failures, f"{len(failures)} cases fail:\n" + "\n".join(failures)


def looped(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Test], Test]:
    """A test that checks many short cases in a loop: as `pytest.mark.parametrize`, without a test for each.

    Fixtures are those of one test for all cases.
    """
    kept, several = list(cases), not isinstance(names, str)

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)
        own = names if isinstance(names, tuple) else (names,)

        @functools.wraps(test)
        def checked(**fixtures: Any) -> None:
            def check(case: Any) -> None:
                test(**fixtures, **dict(zip(own, case if several else (case,), strict=True)))

            check_each(kept, check)

        rest = [parameter for name, parameter in signature.parameters.items() if name not in own]
        checked.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return cast("Test", checked)

    return decorate
