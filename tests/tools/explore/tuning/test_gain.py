"""The shapes and the figures of benchmarks/tune_gain.py."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tilewright.machine.catalog import CATALOG
from tilewright.spec.dtype import F32
from tilewright.spec.problem import ProductTypes
from tilewright.tools.explore.cases import parse_sizes
from tilewright.tools.explore.measure import Sample
from tilewright.tools.explore.tuning.classes import CLASSES, Situation

sys.path.append(str(Path(__file__).resolve().parents[4] / "benchmarks"))
from tune_gain import MODEL, Gain, cases, gain, summary, together

from tilewright.tools.bench.contest import ContestResult


def test_there_are_forty_shapes_that_tune_does_not_measure() -> None:
    labels = [label for label, _ in cases("f32")]
    assert len(labels) == len(set(labels)) == 40
    names = {case.name for _, case in cases("f32")}
    types = ProductTypes.parse(F32)
    for entry in (one for one in CATALOG if one.machine.arch == "x86_64"):
        now = Situation(entry.machine, types)
        measured = {shape.case(types).name for one in CLASSES for shape in one.measured_shapes(now, None)}
        assert not names & measured, entry.machine.name


def test_a_gain_is_of_shares_of_the_peak() -> None:
    (case,) = parse_sizes("5x10x10")
    samples = {
        "tilewright": [Sample(90, 100), Sample(45, 50), Sample(88, 100)],
        MODEL: [Sample(60, 100), Sample(30, 50), Sample(60, 100)],
    }
    parts = [{name: found[part] for name, found in samples.items()} for part in (slice(2), slice(2, 3))]
    found = gain("square 5", together([ContestResult(case, part, (), ()) for part in parts]))
    assert found.ratio == pytest.approx(1.5)
    assert found.interval == pytest.approx((88 / 60, 1.5))
    assert str(found).startswith("square 5")


def test_the_summary_counts_wins_and_losses() -> None:
    gains = [
        Gain("a", 2.0, (1.9, 2.1), 0.9),
        Gain("b", 0.5, (0.4, 0.6), 0.9),
        Gain("c", 1.0, (0.9, 1.1), 0.9),
    ]
    counts, extremes, mean = summary(gains)
    assert counts.startswith("1 of 3 shapes are faster, 1 slower")
    assert extremes == "least 0.500, most 2.000"
    assert mean.endswith("geometric mean over 3 shapes: 1.000")
