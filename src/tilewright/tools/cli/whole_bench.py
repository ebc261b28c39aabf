"""The whole benchmark on the terminal: progress bar, summary, comparison of two runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.machine.host import detect_host
from tilewright.progress import Steps
from tilewright.tools.bench.compare import RunComparison, compare
from tilewright.tools.bench.page import render_page
from tilewright.tools.bench.peers import PEERS, find_peer, title_of
from tilewright.tools.bench.results import OURS, Results, RowResult, read_results
from tilewright.tools.bench.run import Progress, Run, carry_out
from tilewright.tools.bench.table import rows
from tilewright.tools.bench.verdicts import Verdict, verdict_of
from tilewright.tools.cli import terminal

if TYPE_CHECKING:
    from rich.console import Console

#: Exit status of a comparison in which Tilewright became slower somewhere.
SLOWER_STATUS = 1
#: Characters of a row's label beside the bar.
LABEL_WIDTH = 32


def run_whole(
    page_path: Path | None, json_path: Path | None, peers: str | None, *, quick: bool, fresh: bool
) -> Results:
    """Measure what is missing, write the page, print the summary.

    Raises
    ------
    InvalidChoice : a peer that is none.
    OutputNotWritable, and what `run.carry_out` raises
    """
    known = tuple(peer.name for peer in PEERS)
    names = (
        known if peers is None else tuple(find_peer(name.strip()).name for name in peers.split(",") if name)
    )
    kept = json_path if json_path is not None or page_path is None else page_path.with_suffix(".json")
    for path in (page_path, kept):
        if path is not None:
            terminal.check_writable(path)
    run = Run(rows(detect_host().usable_cores, quick=quick), kept, quick, fresh, names)
    console = terminal.console()
    results = _with_progress(run)
    if page_path is not None:
        terminal.write(page_path, render_page(results))
    _print_summary(results, console)
    for path in (page_path, kept):
        if path is not None:
            console.print(f"wrote {path}", markup=False, highlight=False)
    return results


def _with_progress(run: Run) -> Results:
    """A bar with the time that is left; nothing where no person reads."""
    with Steps("", len(run.rows), timed=True) as steps:
        return carry_out(run, Progress(lambda label, done: steps.reach(done, _in_column(label))))


def _in_column(label: str) -> str:
    """A label in a column of constant width, so that the bar stays at its place."""
    return label[:LABEL_WIDTH].ljust(LABEL_WIDTH)


def _print_summary(results: Results, console: Console) -> None:
    """A line for each family, then where a peer is faster, as long as the list is."""
    lines = []
    for family in results.families:
        members = [row for row in results.rows if row.family == family]
        counts = {verdict: sum(verdict_of(row) is verdict for row in members) for verdict in Verdict}
        mean = results.mean_ratio(family)
        lines.append(
            (
                family,
                str(len(members)),
                *(str(counts[verdict]) for verdict in (Verdict.FASTER, Verdict.EVEN, Verdict.SLOWER)),
                "" if mean is None else f"{mean:.2f}",
            )
        )
    columns = ("family", "rows", "faster", "even", "slower", "speed over the fastest peer")
    terminal.print_table(console, f"{len(results.rows)} rows", columns, lines)
    for row in sorted(_losses(results), key=lambda one: one.ratio(one.peers[0])):
        peer = row.peers[0]
        text = f"slower than {title_of(peer)}: {row.family}, {row.label} ({row.ratio(peer):.2f})"
        console.print(text, markup=False, highlight=False)
    if results.noisy_rows:
        text = f"something else ran on the machine beside {results.noisy_rows} of {len(results.rows)} rows"
        console.print(text, markup=False, highlight=False)
    for name, reason in results.skipped.items():
        console.print(f"left out: {title_of(name)}: {reason}", markup=False, highlight=False)


def _losses(results: Results) -> list[RowResult]:
    return [row for row in results.rows if verdict_of(row) is Verdict.SLOWER]


def compare_files(old_path: Path, new_path: Path, json_path: Path | None) -> RunComparison:
    """Compare two files of results and print what changed.

    Raises
    ------
    InputNotReadable, ReportInvalid, OutputNotWritable
    """
    if json_path is not None:
        terminal.check_writable(json_path)
    found = compare(read_results(old_path), read_results(new_path))
    console = terminal.console()
    for name, (before, after) in found.differences.items():
        console.print(f"differs: {name}: {before} -> {after}", markup=False, highlight=False)
    lines = [
        (
            one.family,
            one.label,
            title_of(one.system),
            f"{one.ratio:.3f}",
            "slower" if one.is_slower else "faster",
            f"{one.p:.2g}",
        )
        for one in sorted(found.changes, key=lambda one: one.system != OURS)
    ]
    if lines:
        columns = ("family", "row", "system", "time, new / old", "", "p (Holm)")
        terminal.print_table(console, "changes beyond noise", columns, lines)
    peers = "too few peers of the same version to tell the noise between runs"
    if found.noise_of_peers is not None:
        peers = f"95 % of the peers of the same version differ by less than {found.noise_of_peers:.1%}"
    console.print(
        f"{len(found.changes)} of {found.tested} measurements changed by more than {found.noise:.1%} "
        f"(Mann-Whitney test, Holm, p < 0.05); {peers}",
        markup=False,
        highlight=False,
    )
    for title, keys in (("only in the old run", found.only_old), ("only in the new run", found.only_new)):
        if keys:
            console.print(f"{title}: {len(keys)} rows", markup=False, highlight=False)
    if json_path is not None:
        terminal.write(json_path, found.to_json())
    return found
