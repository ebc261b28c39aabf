"""Comparing two runs: a change is found, noise is not; the tests behind it."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from math import comb
from pathlib import Path

import pytest
from fake_workers import fake_results, fake_row
from typer.testing import CliRunner

from tilewright.errors import InvalidSize
from tilewright.tools.bench.compare import SMALLEST, Change, compare
from tilewright.tools.bench.results import OURS, Results
from tilewright.tools.cli import app
from tilewright.tools.explore.statistics import holm, rank_test, ratio_interval

ROWS = 30


def a_run(seed: int, factors: dict[str, float] | None = None, peer: float = 1.0, **options: float) -> Results:
    """Thirty rows; the times of tilewright on some of them, and all times of NumPy, by a factor."""
    found = []
    for number in range(ROWS):
        label = f"row {number}"
        ours = 1e-3 * (factors or {}).get(label, 1.0)
        found.append(fake_row({"numpy": 2e-3 * peer, OURS: ours}, label=label, seed=seed, **options))  # type: ignore[arg-type]
    return fake_results(*found)


def test_noise_is_no_change() -> None:
    for seed in range(5):
        found = compare(a_run(2 * seed), a_run(2 * seed + 1))
        assert found.changes == ()
        assert found.tested == 2 * ROWS
        assert not found.is_slower


def test_many_rows_of_much_noise_are_no_finding() -> None:
    """Of 180 tests some have p < 0.05 by chance; their medians differ by more than the smallest change."""
    for seed in range(3):
        old, new = a_run(2 * seed, noise=0.3), a_run(2 * seed + 1, noise=0.3)
        upgraded = replace(new, identity={**new.identity, "versions": {"numpy": "3"}})
        found = compare(old, upgraded)
        assert found.noise == SMALLEST
        assert found.changes == ()


@pytest.mark.parametrize("count", [7, 20])
def test_a_change_is_found_in_either_direction(count: int) -> None:
    old, new = a_run(0, count=count), a_run(1, {"row 3": 1.2, "row 7": 0.7}, count=count)
    found = compare(old, new)
    assert [(one.label, one.system) for one in found.changes] == [("row 7", OURS), ("row 3", OURS)]
    assert found.changes[1].ratio == pytest.approx(1.2, rel=0.03)
    assert found.is_slower
    back = compare(new, old)
    assert {one.label: one.is_slower for one in back.changes} == {"row 3": False, "row 7": True}
    assert not compare(old, a_run(1, {"row 7": 0.7}, count=count)).is_slower


def test_a_small_change_does_not_count_however_sure_it_is() -> None:
    old, new = a_run(0, noise=0.001), a_run(1, {"row 3": 1 + 0.8 * SMALLEST}, noise=0.001)
    assert compare(old, new).changes == ()


def test_peers_of_the_same_version_show_the_noise_between_runs() -> None:
    """All of NumPy became 15 % slower: so did the machine, and 10 % of ours says nothing."""
    old, new = a_run(0), a_run(1, {"row 3": 1.1, "row 5": 1.4}, peer=1.15)
    found = compare(old, new)
    assert found.noise_of_peers == pytest.approx(0.15, abs=0.03)
    assert "row 3" not in {one.label for one in found.changes}
    assert [one.label for one in found.changes if one.system == OURS] == ["row 5"]
    upgraded = replace(new, identity={**new.identity, "versions": {"numpy": "3"}})
    found = compare(old, upgraded)
    assert found.noise_of_peers is None
    assert found.noise == SMALLEST
    assert {"row 3", "row 5"} <= {one.label for one in found.changes if one.system == OURS}
    assert found.differences["versions: numpy"] == ("2", "3")


def test_another_clock_rate_is_no_change() -> None:
    old = a_run(0)
    slower = [
        replace(
            row,
            systems=tuple(
                replace(one, seconds=tuple(2 * s for s in one.seconds), peaks=tuple(p / 2 for p in one.peaks))
                for one in row.systems
            ),
        )
        for row in a_run(1).rows
    ]
    assert compare(old, replace(old, rows=tuple(slower))).changes == ()


def test_memory_bound_rows_count_in_passes_over_memory() -> None:
    def bound(row: Results, factor: float) -> Results:
        rows = tuple(replace(one, memory_seconds=(factor * 5e-3,) * 20) for one in row.rows)
        return replace(row, rows=rows, identity={"versions": {"numpy": factor}})

    assert bound(a_run(0), 1).rows[0].is_memory_bound
    assert not compare(bound(a_run(0), 1), bound(a_run(1), 1)).changes
    changes = compare(bound(a_run(0), 1), bound(a_run(1), 2)).changes
    assert len(changes) == 2 * ROWS


def test_rows_of_one_run_are_named() -> None:
    old, new = a_run(0), a_run(1)
    found = compare(replace(old, rows=old.rows[1:]), replace(new, rows=new.rows[:-1]))
    assert (found.only_new, found.only_old) == (("products: row 0",), (f"products: row {ROWS - 1}",))


def test_the_command_has_an_exit_status(tmp_path: Path) -> None:
    paths = {name: tmp_path / f"{name}.json" for name in ("old", "same", "slower", "faster")}
    a_run(0).write(paths["old"])
    a_run(1).write(paths["same"])
    a_run(1, {"row 3": 1.5}).write(paths["slower"])
    a_run(1, {"row 3": 0.5}).write(paths["faster"])
    for name, status in (("same", 0), ("slower", 1), ("faster", 0)):
        out = tmp_path / "changes.json"
        words = ("bench", "--compare", str(paths["old"]), str(paths[name]), "--json", str(out))
        result = CliRunner().invoke(app, words, catch_exceptions=False)
        assert result.exit_code == status, result.output
        assert "Mann-Whitney" in result.stdout
        changes = [Change(**change) for change in json.loads(out.read_text())["changes"]]
        assert [change.label for change in changes] == ([] if name == "same" else ["row 3"])


# --- the tests behind it ---------------------------------------------------------------------------


def test_rank_test_counts_arrangements() -> None:
    """Against all arrangements of small samples."""
    for m, n in ((2, 3), (4, 4), (5, 2)):
        places = range(m + n)
        found = []
        for chosen in combinations(places, m):
            rest = [place for place in places if place not in chosen]
            found.append(sum(x > y for x in chosen for y in rest))
        for chosen in combinations(places, m):
            rest = [place for place in places if place not in chosen]
            u = sum(x > y for x in chosen for y in rest)
            tail = sum(one <= min(u, m * n - u) for one in found)
            expected = min(1.0, 2 * tail / comb(m + n, m))
            assert rank_test(list(map(float, chosen)), list(map(float, rest))) == pytest.approx(expected)


def test_rank_test_of_equal_samples() -> None:
    assert rank_test([1.0] * 5, [1.0] * 5) == 1
    with pytest.raises(InvalidSize):
        rank_test([], [1.0])


def test_holm_never_lowers_a_p_value() -> None:
    given = [0.03, 0.001, 0.9, 0.02, 0.02]
    found = holm(given)
    assert all(after >= before for before, after in zip(given, found, strict=True))
    assert found[1] == pytest.approx(0.005)
    assert holm([]) == []


def test_ratio_intervals_hold_the_ratio() -> None:
    row = fake_row({"numpy": 2e-3, OURS: 1e-3}, noise=0.1)
    lower, upper = ratio_interval(row.of("numpy").seconds, row.of(OURS).seconds)
    assert lower < 2 < upper
    assert ratio_interval([2.0], [1.0]) == (2.0, 2.0)
