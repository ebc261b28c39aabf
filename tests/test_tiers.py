"""The samples of `each_value` and `each_pair`: what `make test` leaves to `make test-all`."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
import tiers

ROWS, TYPES, LAYOUTS = ("avx2", "neon", "vsx"), ("f32", "bf16"), ((1, [2]), [2, 1])


class Case:
    """A case of a test as pytest collects it."""

    def __init__(self, mark: str, **given: Any) -> None:
        self.nodeid = f"test_x.py::test_x[{'-'.join(map(str, given.values()))}]"
        self.callspec = SimpleNamespace(params=given)
        self.marks = {mark}

    def get_closest_marker(self, name: str) -> Any:
        return SimpleNamespace(name=name) if name in self.marks else None

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.marks.add(mark.name)


def kept(mark: str, monkeypatch: pytest.MonkeyPatch, *, every: bool = False) -> tuple[list[Case], list[Case]]:
    """All cases of a test with a mark, and those that `make test` runs."""
    monkeypatch.setattr(tiers, "EVERY_TEST_RUNS", every)
    cases = [Case(mark, row=row, dtype=t, layout=layout) for row, t, layout in product(ROWS, TYPES, LAYOUTS)]
    tiers.mark_repetitions(cases)  # type: ignore[arg-type]
    return cases, [case for case in cases if "exhaustive" not in case.marks]


def values(case: Case) -> list[str]:
    return [str(value) for value in case.callspec.params.values()]


def test_each_value_occurs(monkeypatch: pytest.MonkeyPatch) -> None:
    every, chosen = kept("each_value", monkeypatch)
    assert {value for case in every for value in values(case)} == {
        value for case in chosen for value in values(case)
    }
    assert len(chosen) == len(ROWS)


def test_each_pair_occurs(monkeypatch: pytest.MonkeyPatch) -> None:
    every, chosen = kept("each_pair", monkeypatch)

    def pairs(cases: list[Case]) -> set[tuple[str, ...]]:
        return {pair for case in cases for pair in product(values(case), repeat=2)}

    assert pairs(every) == pairs(chosen)
    assert len(ROWS) * len(TYPES) <= len(chosen) < len(every)


@pytest.mark.parametrize(("mark", "every"), [("each_value", True), ("skip", False)])
def test_all_cases_are_kept(monkeypatch: pytest.MonkeyPatch, mark: str, every: bool) -> None:
    """In `make test-all`, and where a test has no such mark."""
    cases, chosen = kept(mark, monkeypatch, every=every)
    assert chosen == cases
