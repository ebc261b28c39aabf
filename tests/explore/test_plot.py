"""The picture of a report."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tilewright.errors import InvalidChoice, OutputNotWritable, PackageMissing
from tilewright.explore.cases import parse_sizes
from tilewright.explore.measure import Plan, Report, Sample, make_rows
from tilewright.explore.plot import check_plot_path, draw_report

PLAN = Plan(parse_sizes("8,16"), peers=("numpy",), repeat=2)
SAMPLES = {(i, name): [Sample(50.0, 100.0)] * 2 for i in range(2) for name in PLAN.systems}
REPORT = Report({"cpu": "znver5", "isa": "avx512"}, "host", "FMA", 100.0, make_rows(PLAN, SAMPLES))


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
        "GFLOPS",
        "measured FMA peak: 100",
        "1.00×",
        "median and range",
    ):
        assert words in text


def test_unknown_ending() -> None:
    with pytest.raises(InvalidChoice, match=r"\.png, \.svg, \.pdf"):
        check_plot_path(Path("plot.txt"))


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PackageMissing, match=r"pip install tilewright\[bench\]"):
        check_plot_path(Path("plot.png"))


def test_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(OutputNotWritable, match="absent"):
        draw_report(PLAN, REPORT, tmp_path / "absent" / "plot.png")
