"""A measurement as a picture: each system's share of the measured peak, against size or in groups of bars."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any

from tilewright.errors import OutputNotWritable
from tilewright.plotting import OUR_COLOUR, check_plot_path
from tilewright.tools.explore.present import chosen_setting, interval_note, report_title
from tilewright.tools.explore.systems import OURS, TILEWRIGHT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from tilewright.tools.explore.measure import BenchmarkPlan, BenchmarkReport, BenchmarkRow

#: Colour of each system (Okabe and Ito's palette, darkened where it is pale); others take `_OTHER_COLOURS`.
#: The picture is an opaque white card on dark pages too; every colour has a contrast of at least 3 to it.
COLOURS = {
    "tilewright": OUR_COLOUR,
    "tilewright-avx2": "#3E9BD3",
    "numpy": "#8C8C8C",
    "numpy-best": "#3D3D3D",
    "torch": "#D55E00",
    "jax": "#008F68",
    "onnxruntime": "#B0568B",
    "scipy": "#7A5195",
    "iree": "#A07800",
}
_OTHER_COLOURS = ("#5B6E00", "#8A4B2F", "#2F5D8A")
#: What a reader knows each system as.
TITLES = {
    "tilewright-avx2": "tilewright, AVX2 kernels",
    "numpy": "NumPy as shipped",
    "torch": "PyTorch",
    "jax": "JAX",
    "onnxruntime": "ONNX Runtime",
}
_INK, _PEAK_COLOUR = "#222222", "#555555"
_BAR_SPACE = 0.8
#: Height of a row of ratios, as a share of the tallest bar.
_RATIO_ROW = 0.07
#: More peers than this have no rows of ratios above their bars.
_MOST_RATIO_ROWS = 2
#: Minimum distance between two line labels, as a share of the height of the axes.
_LABEL_GAP = 0.052


def draw_report(plan: BenchmarkPlan, report: BenchmarkReport, path: Path) -> None:
    """Draw each system's share of the peak measured in the same run, from zero, and write the picture.

    Lines by size where the cases are square products of increasing sizes, groups of bars otherwise. Where the
    systems compute several element types, whose units differ, the picture shows GFLOPS instead.

    Raises
    ------
    InvalidChoice, PackageMissing : see `check_plot_path`.
    OutputNotWritable : the file cannot be written.
    """
    check_plot_path(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    count = len(plan.cases)
    lines = _is_series(plan)
    width = 9.0 if lines else max(7.0, 2.2 + 0.95 * count)
    figure = Figure(figsize=(width, 5.2), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot(facecolor="white")
    shares = all(plan.types_of(system) == plan.types for system in plan.systems)
    peak = 100.0 if shares else report.peak_gflops
    axes.axhline(peak, color=_PEAK_COLOUR, linestyle="--", linewidth=1.2)
    axes.annotate(
        f"measured {report.unit} peak: {report.peak_gflops:.0f} GFLOPS",
        (0.0, peak),
        xycoords=("axes fraction", "data"),
        xytext=(6, 4),
        textcoords="offset points",
        color=_PEAK_COLOUR,
        fontsize=9,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
    )
    axes.set_ylabel("share of the measured peak, %" if shares else "speed in GFLOPS", color=_INK)
    axes.set_xlabel(f"{plan.cases[0].size_note}\n{interval_note(plan)}", fontsize=9, color=_INK)
    axes.set_xticks(range(count), ["\n".join(case.label.rsplit(" ", 1)) for case in plan.cases], fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.25)
    axes.set_axisbelow(True)
    values = {
        (case.name, system): _value(report.row(case.name, system), shares)
        for case in plan.cases
        for system in plan.systems
    }
    title = report_title(plan, report)
    if lines:
        _draw_lines(axes, plan, report, values, peak)
        axes.set_title(title, loc="left", fontsize=12, color=_INK)
    else:
        _draw_bars(axes, plan, report, values, peak)
        axes.set_title(title, loc="left", fontsize=12, pad=26, color=_INK)
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise OutputNotWritable(path=str(path), reason=error.strerror or str(error)) from error


#: The median of a row, and the two ends of its interval, in the unit of the axis.
_Value = tuple[float, float, float]


def _value(row: BenchmarkRow, shares: bool) -> _Value:
    """The plotted value of a row: per cent of the peak, or GFLOPS."""
    scale = 100 * row.share_of_peak / row.gflops_median if shares else 1.0
    return row.gflops_median * scale, row.gflops_ci[0] * scale, row.gflops_ci[1] * scale


def _is_series(plan: BenchmarkPlan) -> bool:
    """Return whether the cases are square products of increasing size, which lines may connect."""
    if len(plan.cases) < 2 or not all(case.label.isdecimal() for case in plan.cases):
        return False
    sizes = [int(case.label) for case in plan.cases]
    return sizes == sorted(sizes) and all(
        set(case.size_fields.values()) == {size} for case, size in zip(plan.cases, sizes, strict=True)
    )


def system_colours(systems: Iterable[str]) -> dict[str, str]:
    """The colour of each system.

    >>> system_colours(["tilewright", "tilewright-unfused"])
    {'tilewright': '#0072B2', 'tilewright-unfused': '#5B6E00'}
    """
    others = cycle(_OTHER_COLOURS)
    return {system: COLOURS.get(system) or next(others) for system in systems}


def _title(report: BenchmarkReport, system: str) -> str:
    """A system as labels name it, with the setting that was chosen for it."""
    if system == "numpy-best":
        row = next(row for row in report.rows if row.system == system)
        return f"NumPy, {chosen_setting(row.environment)}" if row.environment else "NumPy, best: as shipped"
    return TITLES.get(system, system)


def _draw_lines(
    axes: Any,
    plan: BenchmarkPlan,
    report: BenchmarkReport,
    values: Mapping[tuple[str, str], _Value],
    peak: float,
) -> None:
    """One line per system, with its interval at each size and its name at its end."""
    places = range(len(plan.cases))
    colours = system_colours(plan.systems)
    top = max(peak, *(value[2] for value in values.values())) * 1.08
    for system in plan.systems:
        found = [values[case.name, system] for case in plan.cases]
        ours = system == TILEWRIGHT.name
        axes.fill_between(
            places,
            [value[1] for value in found],
            [value[2] for value in found],
            color=colours[system],
            alpha=0.12,
            linewidth=0,
        )
        axes.plot(
            places,
            [value[0] for value in found],
            color=colours[system],
            linewidth=3.0 if ours else 1.6,
            linestyle="--" if system in OURS and not ours else "-",
            marker="o",
            markersize=6 if ours else 4,
            zorder=3 if ours else 2,
        )
    axes.set_ylim(0, top)
    axes.set_xlim(-0.2, len(plan.cases) - 0.9)
    ends = {system: values[plan.cases[-1].name, system][0] for system in plan.systems}
    for system, height in spread_labels(ends, _LABEL_GAP * top).items():
        axes.annotate(
            _title(report, system),
            (places[-1], ends[system]),
            xytext=(1.012, height),
            textcoords=("axes fraction", "data"),
            va="center",
            fontsize=10,
            color=colours[system],
            fontweight="bold" if system == TILEWRIGHT.name else "normal",
            annotation_clip=False,
        )


def spread_labels(heights: Mapping[str, float], gap: float) -> dict[str, float]:
    """Heights of labels that are at least `gap` apart, in the same order and as near as that allows.

    Neighbours that are too close form a group, which is centred on the mean of its heights.

    >>> spread_labels({"a": 10.0, "b": 11.0, "c": 50.0}, 4.0)
    {'a': 8.5, 'b': 12.5, 'c': 50.0}
    """
    names = sorted(heights, key=heights.__getitem__)
    groups: list[list[str]] = []
    for name in names:
        groups.append([name])
        while len(groups) > 1:
            below, above = (_span(group, heights, gap) for group in groups[-2:])
            if below[1] + gap <= above[0]:
                break
            last = groups.pop()
            groups[-1].extend(last)
    placed = {}
    for group in groups:
        low, _ = _span(group, heights, gap)
        placed.update({name: low + place * gap for place, name in enumerate(group)})
    return placed


def _span(group: Sequence[str], heights: Mapping[str, float], gap: float) -> tuple[float, float]:
    """The lowest and the highest label of a group."""
    centre = sum(heights[name] for name in group) / len(group)
    half = (len(group) - 1) / 2 * gap
    return centre - half, centre + half


def _draw_bars(
    axes: Any,
    plan: BenchmarkPlan,
    report: BenchmarkReport,
    values: Mapping[tuple[str, str], _Value],
    peak: float,
) -> None:
    """A bar per system and case, with its interval; of a few peers the ratios are above."""
    width = _BAR_SPACE / len(plan.systems)
    colours = system_colours(plan.systems)
    for place, system in enumerate(plan.systems):
        found = [values[case.name, system] for case in plan.cases]
        centres = [index + (place - (len(plan.systems) - 1) / 2) * width for index in range(len(plan.cases))]
        heights = [value[0] for value in found]
        intervals = ([value[0] - value[1] for value in found], [value[2] - value[0] for value in found])
        axes.bar(centres, heights, width * 0.94, color=colours[system], label=_title(report, system))
        axes.errorbar(centres, heights, intervals, fmt="none", ecolor=_INK, elinewidth=1, capsize=2)
    tallest = max(peak, *(value[2] for value in values.values()))
    peers = plan.peers if len(plan.peers) <= _MOST_RATIO_ROWS else ()
    axes.set_xlim(-0.6, len(plan.cases) - 0.4)
    axes.set_ylim(0, tallest * (1.1 + _RATIO_ROW * len(peers)))
    for place, peer in enumerate(peers):
        _draw_ratios(axes, plan, report, peer, height=tallest * (1.1 + _RATIO_ROW * place))
    axes.legend(
        loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=len(plan.systems), frameon=False, fontsize=9
    )


def _draw_ratios(axes: Any, plan: BenchmarkPlan, report: BenchmarkReport, peer: str, height: float) -> None:
    """A row of figures above all bars: how many times faster than one peer, less than 1 where slower."""
    for index, case in enumerate(plan.cases):
        ratio = report.row(case.name, TILEWRIGHT.name).ratio_to[peer]
        axes.text(index, height, f"{ratio:.2f}×", ha="center", fontsize=9, color=OUR_COLOUR)
    end = len(plan.cases) - 0.4
    axes.text(end, height, f" vs {peer}", ha="left", fontsize=9, color=OUR_COLOUR)
