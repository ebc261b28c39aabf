"""What `tilewright bench attention` does: measure, print, and keep for JSON and pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from tilewright.progress import Steps
from tilewright.records import dataclass
from tilewright.tools.explore.attention import plot
from tilewright.tools.explore.attention.memory import MemoryRow, measure_memory
from tilewright.tools.explore.present import measure_with_progress, print_report, report_title

if TYPE_CHECKING:
    from rich.console import Console

    from tilewright.tools.explore.attention.cases import AttentionCase
    from tilewright.tools.explore.measure import BenchmarkPlan, BenchmarkReport


@dataclass(frozen=True)
class AttentionBench:
    """What is measured: a plan of attention, its cases again by their type, and whether memory is too."""

    plan: BenchmarkPlan
    cases: tuple[AttentionCase, ...]
    memory: bool = False


@dataclass(frozen=True)
class AttentionReport:
    """What was found."""

    bench: AttentionBench
    report: BenchmarkReport
    memory: tuple[MemoryRow, ...]

    @property
    def title(self) -> str:
        """What was measured where."""
        return report_title(self.bench.plan, self.report)

    def to_json(self) -> str:
        """The report as a JSON text: that of `BenchmarkReport`, with the rows of memory if measured."""
        fields = json.loads(self.report.to_json())
        if self.bench.memory:
            fields["memory"] = [row.json_fields for row in self.memory]
        return json.dumps(fields, indent=2) + "\n"

    def draw_times(self, path: Path) -> None:
        """See `plot.draw_times`."""
        plot.draw_times(self.bench.plan, self.report, self.bench.cases, path)

    def draw_memory(self, path: Path) -> None:
        """See `plot.draw_memory`."""
        plot.draw_memory(self.title, self.memory, self.bench.cases, path)


def run_bench(bench: AttentionBench, console: Console) -> AttentionReport:
    """Measure under a progress bar, and print tables.

    Raises
    ------
    WrongResult, WorkerFailed, PackageMissing : see `measure.measure`.
    ToolMissing : see `memory.measure_memory`.
    """
    plan = bench.plan
    report = measure_with_progress(plan)
    print_report(plan, report, console)
    memory: tuple[MemoryRow, ...] = ()
    if bench.memory:
        with Steps("memory", len(bench.cases) * len(plan.systems), timed=True) as steps:
            memory = measure_memory(bench.cases, plan.systems, plan.threads, plan.seed, steps.advance)
        console.print(memory_table(bench, memory))
    return AttentionReport(bench, report, memory)


def memory_table(bench: AttentionBench, rows: tuple[MemoryRow, ...]) -> Table:
    """MiB of every system, one line per case."""
    table = Table(title="most memory beyond operands and result in MiB")
    table.add_column("size")
    for system in bench.plan.systems:
        table.add_column(system, justify="right")
    found = {(row.problem, row.system): row.extra_bytes for row in rows}
    for case in bench.cases:
        cells = (f"{found[case.name, system] / 2**20:.1f}" for system in bench.plan.systems)
        table.add_row(escape(case.label), *cells)
    return table
