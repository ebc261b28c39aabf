"""The shapes and the figures of benchmarks/shapes_everywhere.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tilewright.tools.explore.cases import parse_sizes
from tilewright.tools.explore.measure import Sample

sys.path.append(str(Path(__file__).resolve().parents[3] / "benchmarks"))
from shapes_everywhere import (
    SHAPES,
    Found,
    bytes_of,
    label_of,
    mean_and_worst,
    share,
    to_best_peer,
    to_column,
)

from tilewright.tools.bench.contest import ContestResult

#: A product of 1000 operations.
(CASE,) = parse_sizes("5x10x10")


def measured(memory_seconds: tuple[float, ...] = (1e-8,)) -> Found:
    """Two rounds: the peak halves in the second, and so does every speed but that of one setting of NumPy."""
    samples = {
        "numpy": [Sample(50, 100), Sample(25, 50)],
        "numpy Zen": [Sample(40, 100), Sample(40, 50)],
        "tilewright": [Sample(80, 100), Sample(40, 50)],
    }
    return Found("tall", ContestResult(CASE, samples, memory_seconds, ()))


def test_shapes_are_distinct() -> None:
    labels = [label_of(shapes.kind, case) for shapes in SHAPES for case in shapes.cases]
    assert len(labels) == len(set(labels)) == 65


def test_bytes_of_a_batch() -> None:
    batch = next(case for shapes in SHAPES for case in shapes.cases if case.label == "500 of 37x6x90")
    assert bytes_of(batch) == 500 * 4 * (37 * 90 + 90 * 6 + 37 * 6)


def test_a_share_is_of_the_peak_that_was_measured_beside_it() -> None:
    assert share(measured())[1:] == pytest.approx((0.8, 0.8))


def test_a_pass_over_memory_that_lasts_longer_bounds_the_speed() -> None:
    """1000 operations in 12.5 ns are 80 GFLOPS, in 20 ns 50; the second peak is below both."""
    found = measured((12.5e-9, 20e-9, 20e-9))
    assert found.measured.is_memory_bound
    assert found.measured.share("tilewright") == pytest.approx((80 / 50 + 40 / 50) / 2)
    assert found.measured.best_share("tilewright") == pytest.approx(80 / 80)
    assert not measured().measured.is_memory_bound


def test_the_fastest_setting_of_a_peer_counts() -> None:
    (to_shipped,), (to_best,) = to_column([measured()], "numpy"), to_column([measured()], "numpy-best")
    assert to_shipped[1:] == pytest.approx((0.8 / 0.5, 80 / 50))
    assert to_best[1:] == pytest.approx((0.8 / 0.6, 80 / 50))
    assert to_best_peer([measured()]) == [to_best]
    assert to_column([measured()], "jax") == []


def test_peaks_tell_a_disturbed_problem() -> None:
    assert not measured().measured.is_quiet
    even = {"tilewright": [Sample(80, 100), Sample(80, 99), Sample(40, 50)]}
    assert ContestResult(CASE, even, (), ()).is_quiet


def test_lines_of_no_shapes_are_none() -> None:
    assert list(mean_and_worst("share", (0.9, 0.8), [])) == []
    mean, worst = mean_and_worst("share", (0.9, 0.8), [share(measured())])
    assert not mean.reached
    assert worst.reached
