"""The picture of a report."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from tilewright import plotting
from tilewright.errors import InvalidChoice, OutputNotWritable, PackageMissing
from tilewright.plotting import check_plot_path
from tilewright.tools.explore.cases import parse_sizes
from tilewright.tools.explore.measure import BenchmarkPlan, BenchmarkReport, Sample, make_rows
from tilewright.tools.explore.plot import COLOURS, draw_report, spread_labels
from tilewright.tools.explore.systems import PEERS


def report_of(plan: BenchmarkPlan) -> BenchmarkReport:
    samples = {(i, name): [Sample(50.0, 200.0)] * 2 for i in range(len(plan.cases)) for name in plan.systems}
    rows = make_rows(plan, samples, {"numpy-best": {"OPENBLAS_CORETYPE": "Zen"}})
    return BenchmarkReport({"cpu": "znver5", "isa": "avx512"}, "host", "FMA", 200.0, rows)


#: Bars: a shape that is not square.
PLAN = BenchmarkPlan(parse_sizes("8,16x8x4"), peers=("numpy",), repeat=2)
REPORT = report_of(PLAN)
#: Lines: square products of increasing sizes.
SERIES = BenchmarkPlan(parse_sizes("8,16,32"), peers=("numpy", "numpy-best", "tilewright-avx2"), repeat=2)


def test_png_is_a_png(tmp_path: Path) -> None:
    draw_report(PLAN, REPORT, tmp_path / "plot.png")
    content = (tmp_path / "plot.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) > 10_000


def test_svg_has_the_words_of_the_plot(tmp_path: Path) -> None:
    draw_report(PLAN, REPORT, tmp_path / "plot.svg")
    text = (tmp_path / "plot.svg").read_text(encoding="utf-8")
    for words in (
        "znver5 (avx512), 1 thread",
        "share of the measured peak, %",
        "measured FMA peak: 200 GFLOPS",
        "NumPy as shipped",
        "1.00×",
        "median and range",
    ):
        assert words in text


def test_lines_have_their_names_beside_them(tmp_path: Path) -> None:
    draw_report(SERIES, report_of(SERIES), tmp_path / "plot.svg")
    text = (tmp_path / "plot.svg").read_text(encoding="utf-8")
    for words in (
        "NumPy as shipped",
        "NumPy, OPENBLAS_CORETYPE=Zen",
        "tilewright, AVX2 kernels",
        "<!-- tilewright -->",
        "n x n x n",
    ):
        assert words in text


def test_axes_begin_at_zero_and_show_shares(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    for plan in (PLAN, SERIES):
        drawn: list[Figure] = []
        monkeypatch.setattr(Figure, "savefig", lambda figure, *_, drawn=drawn, **__: drawn.append(figure))
        draw_report(plan, report_of(plan), tmp_path / "plot.png")
        (axes,) = drawn[0].axes
        low, high = axes.get_ylim()
        assert low == 0
        assert high > 100
        marks: list[Any] = [line for line in axes.lines if line.get_marker() == "o"]
        bars: list[Any] = list(axes.patches)
        heights = [bar.get_height() for bar in bars] + [float(y) for mark in marks for y in mark.get_ydata()]
        assert heights
        assert set(heights) == {25.0}


def test_several_element_types_are_drawn_in_gflops(tmp_path: Path) -> None:
    plan = BenchmarkPlan(parse_sizes("8,16", "u8i8"), peers=("numpy", "tilewright-f32"), repeat=2)
    draw_report(plan, report_of(plan), tmp_path / "plot.svg")
    text = (tmp_path / "plot.svg").read_text(encoding="utf-8")
    assert "speed in GFLOPS" in text
    assert "share of" not in text


def test_every_peer_has_a_colour_of_its_own() -> None:
    assert {peer.name for peer in PEERS} <= set(COLOURS)
    assert len(set(COLOURS.values())) == len(COLOURS)


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2, definition)."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("colour", COLOURS.values())
def test_colours_stand_out_from_the_white_card(colour: str) -> None:
    assert 1.05 / (luminance(colour) + 0.05) >= 3  # WCAG 2.2, 1.4.11: graphical objects


def test_labels_keep_their_distance() -> None:
    heights = {"a": 90.0, "b": 91.0, "c": 92.5, "d": 50.0, "e": 99.0}
    placed = spread_labels(heights, 5.0)
    order = sorted(heights, key=heights.__getitem__)
    assert sorted(placed, key=placed.__getitem__) == order
    gaps = [placed[above] - placed[below] for below, above in itertools.pairwise(order)]
    assert min(gaps) >= 5.0 - 1e-9
    assert placed["d"] == 50.0


def test_unknown_ending() -> None:
    with pytest.raises(InvalidChoice, match=r"\.png, \.svg, \.pdf"):
        check_plot_path(Path("plot.txt"))


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plotting, "find_spec", lambda name: None)
    with pytest.raises(PackageMissing, match=r"pip install tilewright\[bench\]"):
        check_plot_path(Path("plot.png"))


def test_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(OutputNotWritable, match="absent"):
        draw_report(PLAN, REPORT, tmp_path / "absent" / "plot.png")
