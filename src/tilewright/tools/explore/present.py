"""A measurement on the terminal: progress bar, table, summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from tilewright.machine.host import detect_host
from tilewright.progress import Steps
from tilewright.tools.explore.facts import describe_machine, machine_title
from tilewright.tools.explore.measure import LONG_CALL_SECONDS, measure, summarise
from tilewright.tools.explore.statistics import FEWEST_FOR_INTERVAL
from tilewright.tools.explore.systems import TILEWRIGHT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from tilewright.tools.explore.measure import BenchmarkPlan, BenchmarkReport, BenchmarkRow


#: Peers that still have columns of their own in a terminal of 80 columns.
MOST_COLUMNS = 1


def measure_with_progress(plan: BenchmarkPlan) -> BenchmarkReport:
    """Carry out a plan under a progress bar; see `measure`."""
    with Steps("check and measure", plan.steps, timed=True) as steps:
        return measure(plan, describe_machine(detect_host()), steps.advance)


def report_title(plan: BenchmarkPlan, report: BenchmarkReport) -> str:
    """What was measured where, in one line."""
    threads = "1 thread" if plan.threads == 1 else f"{plan.threads} threads"
    target = "" if plan.target is None else f", kernels for {plan.target}"
    return f"{plan.types.name} {plan.cases[0].subject} on {machine_title(report.machine)}{target}, {threads}"


def report_table(plan: BenchmarkPlan, report: BenchmarkReport) -> Table:
    """One line per case: each system's speed, tilewright's ratio to each peer, its share of the peak.

    With more than `MOST_COLUMNS` peers there is one line per case and system instead.
    """
    if len(plan.peers) > MOST_COLUMNS:
        return _table_of_systems(plan, report)
    table = Table(title=report_title(plan, report), caption=_caption(plan, report))
    table.add_column("size")
    for system in plan.systems:
        table.add_column(f"{_in_lines(system)}\nGFLOPS", justify="right")
    for peer in plan.peers:
        table.add_column(f"ratio to\n{_in_lines(peer)}", justify="right")
    table.add_column("share of\npeak", justify="right")
    for case in plan.cases:
        ours = report.row(case.name, TILEWRIGHT.name)
        table.add_row(
            escape(case.label),
            *(_speed(plan, report.row(case.name, system)) for system in plan.systems),
            *(f"{ours.ratio_to[peer]:.2f}" for peer in plan.peers),
            f"{ours.share_of_peak:.1%}",
        )
    return table


def _table_of_systems(plan: BenchmarkPlan, report: BenchmarkReport) -> Table:
    """One line per case and system: speed, share of the peak, and tilewright's ratio to it."""
    table = Table(title=report_title(plan, report), caption=_caption(plan, report))
    table.add_column("size")
    table.add_column("system")
    for name in ("GFLOPS", "interval", "share of peak", "tilewright's ratio"):
        table.add_column(name, justify="right")
    for case in plan.cases:
        ours = report.row(case.name, TILEWRIGHT.name)
        for place, system in enumerate(plan.systems):
            row = report.row(case.name, system)
            lower, upper = row.gflops_ci
            fewer = f" ({row.measurements})" if row.measurements < plan.repeat else ""
            table.add_row(
                escape(case.label) if place == 0 else "",
                system,
                f"{row.gflops_median:.1f}{fewer}",
                f"{lower:.1f}..{upper:.1f}",
                f"{row.share_of_peak:.1%}",
                "" if system == TILEWRIGHT.name else f"{ours.ratio_to[system]:.2f}",
                end_section=system == TILEWRIGHT.name,
            )
    return table


def _in_lines(system: str) -> str:
    return system.replace("-", "\n")


def _speed(plan: BenchmarkPlan, row: BenchmarkRow) -> str:
    lower, upper = row.gflops_ci
    digits = 0 if upper >= 100 else 1
    speed = f"{row.gflops_median:.1f} [dim]{lower:.{digits}f}..{upper:.{digits}f}[/dim]"
    return f"{speed} [dim]({row.measurements})[/dim]" if row.measurements < plan.repeat else speed


def interval_note(plan: BenchmarkPlan) -> str:
    """What the numbers of a report are: few measurements have no 95 % interval, only a range."""
    if plan.repeat < FEWEST_FOR_INTERVAL:
        return f"median and range of {plan.repeat} measurements"
    return f"median of {plan.repeat} measurements with its 95 % confidence interval"


def _caption(plan: BenchmarkPlan, report: BenchmarkReport) -> str:
    exact = "exact integers" if plan.types.a.is_integer else "float64"
    fewer = ""
    if any(row.measurements < plan.repeat for row in report.rows):
        fewer = f"; (3): where one call takes longer than {LONG_CALL_SECONDS:g} s, median and range of 3"
    return (
        f"{interval_note(plan)}{fewer}; every result checked against {exact}; "
        f"{report.unit} peak in the same run: {report.peak_gflops:.1f} GFLOPS"
    )


def summary_table(plan: BenchmarkPlan, report: BenchmarkReport) -> Table:
    """Geometric means over all cases, and the worst case of each figure; the best peer comes first."""
    labels = {case.name: case.label for case in plan.cases}
    table = Table(title="tilewright over all sizes")
    for name in ("figure", "geometric mean", "worst", "at"):
        table.add_column(name, justify="left" if name in ("figure", "at") else "right")
    for line in summarise(report):
        table.add_row(
            line.figure, f"{line.geometric_mean:.3f}", f"{line.worst:.3f}", escape(labels[line.worst_problem])
        )
    return table


def slower_lines(plan: BenchmarkPlan, report: BenchmarkReport) -> tuple[str, ...]:
    """Where a peer is faster, one sentence per peer; "nowhere" is said too."""
    lines = []
    for peer in plan.peers:
        ours = ((case, report.row(case.name, TILEWRIGHT.name).ratio_to[peer]) for case in plan.cases)
        losses = [f"{case.label} ({ratio:.2f})" for case, ratio in ours if round(ratio, 2) < 1]
        lines.append(f"slower than {peer} at: {', '.join(losses) or 'none of these sizes'}")
    return tuple(lines)


def call_lines(plan: BenchmarkPlan, report: BenchmarkReport) -> tuple[str, ...]:
    """Footnotes: what a peer computes if it differs from the others, and its chosen settings."""
    rows = [report.row(plan.cases[0].name, peer) for peer in plan.peers]
    plain = all(plan.types_of(row.system) == plan.types and plan.types.a == plan.types.c for row in rows)
    calls = [] if plain else [f"{row.system} computes {row.call}" for row in rows]
    chosen = [
        f"{row.system}, the fastest of {count} settings: {chosen_setting(row.environment)}"
        for row in rows
        if (count := len(plan.cases[0].environments_of(row.system, plan.threads))) > 1
    ]
    return (*calls, *chosen)


def chosen_setting(environment: Mapping[str, str]) -> str:
    """Environment variables as a shell writes them.

    >>> chosen_setting({"OPENBLAS_CORETYPE": "SkylakeX"}), chosen_setting({})
    ('OPENBLAS_CORETYPE=SkylakeX', 'none: as shipped')
    """
    return " ".join(f"{name}={value}" for name, value in environment.items()) or "none: as shipped"


def print_report(plan: BenchmarkPlan, report: BenchmarkReport, console: Console) -> None:
    """Print everything a finished measurement says."""
    console.print(report_table(plan, report))
    console.print(summary_table(plan, report))
    for line in (*call_lines(plan, report), *slower_lines(plan, report)):
        console.print(line, markup=False)
