"""A measurement as a picture: bars per system, confidence intervals, ratios, and the measured peak."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.errors import InvalidChoice, OutputNotWritable, PackageMissing
from tilewright.explore.present import interval_note, report_title
from tilewright.explore.systems import TILEWRIGHT

if TYPE_CHECKING:
    from pathlib import Path

    from tilewright.explore.measure import Plan, Report

#: One colour per system in the order measured, tilewright always the last (Okabe and Ito's palette).
PEER_COLOURS = ("#999999", "#56B4E9", "#CC79A7", "#F0E442")
OUR_COLOUR = "#0072B2"
_PEAK_COLOUR = "#D55E00"
_BAR_SPACE = 0.8
#: Height of a row of ratios, as a share of the tallest bar.
_RATIO_ROW = 0.07
#: File name endings that are drawn.
FORMATS = (".png", ".svg", ".pdf")


def check_plot_path(path: Path) -> None:
    """Refuse, before anything is measured, a plot that could not be drawn afterwards.

    Raises
    ------
    InvalidChoice : the file name has another ending than `FORMATS`.
    PackageMissing : matplotlib is not installed.
    """
    from importlib.util import find_spec

    if path.suffix.lower() not in FORMATS:
        raise InvalidChoice(
            name="ending of the plot's file name", found=repr(path.name), allowed=", ".join(FORMATS)
        )
    if find_spec("matplotlib") is None:
        raise PackageMissing(purpose="drawing a plot", package="matplotlib", install="tilewright[bench]")


def draw_report(plan: Plan, report: Report, path: Path) -> None:
    """Draw speeds in GFLOPS, one group of bars per case, and write the picture.

    Raises
    ------
    InvalidChoice, PackageMissing : see `check_plot_path`.
    OutputNotWritable : the file cannot be written.
    """
    check_plot_path(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    count = len(plan.cases)
    figure = Figure(figsize=(max(7.0, 2.2 + 0.95 * count), 5.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    _draw_bars(axes, plan, report)
    axes.axhline(report.peak_gflops, color=_PEAK_COLOUR, linestyle="--", linewidth=1.4)
    axes.annotate(
        f"measured {report.unit} peak: {report.peak_gflops:.0f} GFLOPS",
        (0.0, report.peak_gflops),
        xycoords=("axes fraction", "data"),
        xytext=(6, 4),
        textcoords="offset points",
        color=_PEAK_COLOUR,
        fontsize=9,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
    )
    axes.set_title(report_title(plan, report), loc="left", fontsize=12, pad=26)
    axes.set_ylabel("speed in GFLOPS (more is better)")
    axes.set_xlabel(f"{plan.cases[0].size_note}\n{interval_note(plan)}", fontsize=9)
    axes.set_xticks(range(count), ["\n".join(case.label.rsplit(" ", 1)) for case in plan.cases], fontsize=9)
    axes.set_xlim(-0.6, count - 0.4)
    tallest = max(report.peak_gflops, *(row.gflops_ci[1] for row in report.rows))
    axes.set_ylim(0, tallest * (1.1 + _RATIO_ROW * len(plan.peers)))
    for place, peer in enumerate(plan.peers):
        _draw_ratios(axes, plan, report, peer, height=tallest * (1.1 + _RATIO_ROW * place))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.25)
    axes.set_axisbelow(True)
    axes.legend(
        loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=len(plan.systems), frameon=False, fontsize=9
    )
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise OutputNotWritable(path=str(path), reason=error.strerror or str(error)) from error


def _draw_bars(axes: Any, plan: Plan, report: Report) -> None:
    """A bar per system and case, with its interval."""
    width = _BAR_SPACE / len(plan.systems)
    colours = (*PEER_COLOURS[: len(plan.peers)], OUR_COLOUR)
    for place, (system, colour) in enumerate(zip(plan.systems, colours, strict=True)):
        rows = [report.row(case.name, system) for case in plan.cases]
        centres = [index + (place - (len(plan.systems) - 1) / 2) * width for index in range(len(plan.cases))]
        heights = [row.gflops_median for row in rows]
        below = [row.gflops_median - row.gflops_ci[0] for row in rows]
        above = [row.gflops_ci[1] - row.gflops_median for row in rows]
        axes.bar(centres, heights, width * 0.94, color=colour, label=system)
        axes.errorbar(centres, heights, (below, above), fmt="none", ecolor="#222222", elinewidth=1, capsize=2)


def _draw_ratios(axes: Any, plan: Plan, report: Report, peer: str, height: float) -> None:
    """A row of figures above all bars: how many times faster than one peer, less than 1 where slower."""
    for index, case in enumerate(plan.cases):
        ratio = report.row(case.name, TILEWRIGHT.name).ratio_to[peer]
        axes.text(index, height, f"{ratio:.2f}×", ha="center", fontsize=9, color=OUR_COLOUR)
    end = len(plan.cases) - 0.4
    axes.text(end, height, f" vs {peer}", ha="left", fontsize=9, color=OUR_COLOUR)
