"""Attention as two pictures: time by sequence length, and memory by sequence length, a line per system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.errors import OutputNotWritable
from tilewright.plotting import check_plot_path
from tilewright.tools.explore.plot import system_colours
from tilewright.tools.explore.present import report_title

if TYPE_CHECKING:
    from tilewright.tools.explore.attention.cases import AttentionCase
    from tilewright.tools.explore.attention.memory import MemoryRow
    from tilewright.tools.explore.measure import BenchmarkPlan, BenchmarkReport

#: A line of one system: sequence lengths, values, and how far below and above each its interval goes.
Line = tuple[list[int], list[float], list[float], list[float]]


def draw_times(
    plan: BenchmarkPlan, report: BenchmarkReport, cases: Sequence[AttentionCase], path: Path
) -> None:
    """Milliseconds of one call by the number of keys, both axes logarithmic.

    Raises
    ------
    InvalidChoice, PackageMissing : see `plotting.check_plot_path`.
    OutputNotWritable : the file cannot be written.
    """
    lines: dict[str, Line] = {}
    for system in plan.systems:
        rows = [report.row(case.name, system) for case in cases]
        times = [case.flops / row.gflops_median * 1e-6 for case, row in zip(cases, rows, strict=True)]
        fastest = [case.flops / row.gflops_ci[1] * 1e-6 for case, row in zip(cases, rows, strict=True)]
        slowest = [case.flops / row.gflops_ci[0] * 1e-6 for case, row in zip(cases, rows, strict=True)]
        below = [time - low for time, low in zip(times, fastest, strict=True)]
        above = [high - time for time, high in zip(times, slowest, strict=True)]
        lines[system] = ([case.keys for case in cases], times, below, above)
    _draw(lines, report_title(plan, report), "milliseconds of one call (less is better)", path)


def draw_memory(title: str, rows: Sequence[MemoryRow], cases: Sequence[AttentionCase], path: Path) -> None:
    """MiB beyond operands and result by the number of keys, both axes logarithmic.

    Raises
    ------
    InvalidChoice, PackageMissing, OutputNotWritable : see `draw_times`.
    """
    keys = {case.name: case.keys for case in cases}
    lines: dict[str, Line] = {}
    for system in dict.fromkeys(row.system for row in rows):
        found = [row for row in rows if row.system == system]
        nothing = [0.0] * len(found)
        sizes = [row.extra_bytes / 2**20 for row in found]
        lines[system] = ([keys[row.problem] for row in found], sizes, nothing, nothing)
    _draw(lines, title, "MiB beyond operands and result (less is better)", path)


def _draw(lines: Mapping[str, Line], title: str, quantity: str, path: Path) -> None:
    """One picture of lines over the number of keys."""
    check_plot_path(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 5.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.add_subplot()
    colours = system_colours(lines)
    for system, (keys, values, below, above) in lines.items():
        order = sorted(range(len(keys)), key=keys.__getitem__)
        x, y, low, high = ([series[i] for i in order] for series in (keys, values, below, above))
        axes.errorbar(
            x, y, (low, high), color=colours[system], label=system, marker="o", markersize=4, capsize=2
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log" if all(value > 0 for line in lines.values() for value in line[1]) else "symlog")
    ticks = sorted({key for line in lines.values() for key in line[0]})
    axes.set_xticks(ticks, [str(tick) for tick in ticks], fontsize=9)
    axes.set_xlabel("keys")
    axes.set_ylabel(quantity)
    axes.set_title(title, loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=9)
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise OutputNotWritable(path=str(path), reason=error.strerror or str(error)) from error
