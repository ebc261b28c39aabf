"""Carries out the whole benchmark: finds the peers, measures row after row, and keeps what is measured.

The method is that of `contest.py`: one process per system, results checked first, rounds in random order, the
peak before each measurement, a pass over as many bytes in each round. Rows whose results are in the file
already are not measured again, if machine, versions and code are the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tilewright.errors import (
    InvalidChoice,
    PackageMissing,
    ReportOfAnotherRun,
    ToolMissing,
    UnsupportedDtype,
)
from tilewright.llvm.object_cache import generator_version
from tilewright.machine.host import detect_host
from tilewright.records import dataclass
from tilewright.tools.bench.case import OperationCase
from tilewright.tools.bench.contest import ATTEMPTS, Contest, Contestant, ContestResult, MemoryPass
from tilewright.tools.bench.peers import PEERS
from tilewright.tools.bench.results import OURS, Results, RowResult, SystemResult, read_results
from tilewright.tools.bench.table import COMPILING, TableRow
from tilewright.tools.explore.cases import parse_sizes
from tilewright.tools.explore.facts import describe_machine
from tilewright.tools.explore.measure import REPEAT, BenchmarkPlan, fastest_environment
from tilewright.tools.explore.prepared import Environment

#: Rounds of the quick form: with 7 against 7 a rank test over a hundred rows can still find a change.
QUICK_REPEAT = 7
#: Its rounds where the rows before took so long that those to come have less than half of their time.
FEWEST = 3
#: How often it measures a low peak at most.
QUICK_ATTEMPTS = 2
#: Seconds that the rows of the quick form may take; starting and writing the page come on top.
QUICK_SECONDS = 140.0
#: Seconds that a row of the quick form has.
PACE = QUICK_SECONDS / 77
#: Sizes on which the settings of NumPy are tried.
_TRIED = "512"


@dataclass(frozen=True)
class Run:
    """What is measured, and where it is kept.

    Attributes
    ----------
    rows : the table.
    path : the file of results; None keeps them in memory.
    quick : fewer rounds, and peers that compile for seconds on some rows only.
    fresh : whether results in the file are replaced.
    peers : by name; all that are known by default.
    seed : of the operands and of the order.
    """

    rows: tuple[TableRow, ...]
    path: Path | None = None
    quick: bool = False
    fresh: bool = False
    peers: tuple[str, ...] = tuple(peer.name for peer in PEERS)
    seed: int = 0


@dataclass(frozen=True)
class Progress:
    """What a run reports while it goes on: before each row, and at its end.

    Attributes
    ----------
    row : called with the label of a row that is measured next, and how many are done.
    """

    row: Callable[[str, int], None] = lambda label, done: None  # noqa: ARG005


def find_peers(names: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """The peers that are here, and why others are not.

    >>> find_peers(["numpy"])
    (('numpy',), {})
    """
    found, skipped = [], {}
    for peer in PEERS:
        if peer.name not in names:
            skipped[peer.name] = "not asked for"
            continue
        try:
            peer.check()
        except (PackageMissing, ToolMissing) as error:
            skipped[peer.name] = str(error)
        else:
            found.append(peer.name)
    return tuple(found), skipped


def identity_of(machine: Mapping[str, Any], run: Run) -> dict[str, Any]:
    """What must be the same for results to be of one run."""
    kept = {name: machine[name] for name in ("cpu", "isa", "system", "versions")}
    form = "quick" if run.quick else "whole"
    return {**kept, "code": generator_version(), "form": form, "seed": run.seed, "peers": list(run.peers)}


def start(run: Run) -> Results:
    """The results that a run goes on from: those of the file, or none.

    Raises
    ------
    ReportOfAnotherRun : the file has results of another machine, other versions or another form.
    """
    started = datetime.now(UTC).isoformat(timespec="minutes")
    machine = {**describe_machine(detect_host()), "started": started}
    _, skipped = find_peers(run.peers)
    empty = Results(identity_of(machine, run), machine, skipped)
    if run.path is None or run.fresh or not run.path.exists():
        return empty
    known = read_results(run.path)
    for name, wanted in empty.identity.items():
        found = known.identity.get(name)
        if found != wanted:
            raise ReportOfAnotherRun(
                path=str(run.path), found=f"{name} {_short(found)}", wanted=_short(wanted)
            )
    return Results(empty.identity, known.machine, skipped, known.rows)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def carry_out(run: Run, progress: Progress | None = None) -> Results:
    """Measure the rows that are missing; the file is written after each.

    Raises
    ------
    WrongResult, WorkerFailed : by tilewright itself.
    ReportOfAnotherRun, OutputNotWritable
    """
    report, began = progress or Progress(), time.monotonic()
    results = start(run)
    missing = [row for row in run.rows if row.key not in results.keys]
    peers, _ = find_peers(run.peers)
    done = len(run.rows) - len(missing)
    with ExitStack() as stack:
        contests = _contests(missing, peers, run, stack)
        for number, row in enumerate(missing):
            report.row(row.label, done + number)
            pace = (QUICK_SECONDS - (time.monotonic() - began)) / (len(missing) - number)
            found = _measure(row, contests[row.threads], run, pace)
            if found is not None:
                results = results.with_row(found)
                if run.path is not None:
                    results.write(run.path)
    if run.path is not None:
        results.write(run.path)
    report.row("", len(run.rows))
    return results


def _contests(
    rows: Sequence[TableRow], peers: Sequence[str], run: Run, stack: ExitStack
) -> dict[int, Contest]:
    """The processes for each number of threads; each is started when a row needs it."""
    settings: dict[str, Environment] = {}
    if "numpy-best" in peers and any(_computes(row, "numpy-best") for row in rows):
        plan = BenchmarkPlan(parse_sizes(_TRIED), ("numpy-best",))
        settings["numpy-best"] = fastest_environment(plan, "numpy-best")
    (case,) = parse_sizes("64")
    found = {}
    for threads in sorted({row.threads for row in rows}):
        if "jax" in peers:
            settings["jax"] = case.environments_of("jax", threads)[0]
        contestants = [Contestant(name, settings.get(name, {})) for name in (*peers, OURS)]
        attempts = QUICK_ATTEMPTS if run.quick else ATTEMPTS
        found[threads] = stack.enter_context(Contest(contestants, threads, run.seed, attempts))
    return found


def _computes(row: TableRow, system: str) -> bool:
    """Whether a system is here and computes a row."""
    try:
        row.case.types_of(system)
    except (PackageMissing, ToolMissing, UnsupportedDtype, InvalidChoice):
        return False
    return True


def _systems(row: TableRow, contest: Contest, run: Run, *, late: bool) -> dict[str, str]:
    """Names of the contestants that compute a row, by system; `late` leaves out those that compile."""
    found = {}
    for name in contest.names:
        system = name.partition(" ")[0]
        if run.quick and system in COMPILING and (late or not row.compiling):
            continue
        if _computes(row, system):
            found[system] = name
    return found


def quick_rounds(pace: float) -> int:
    """Rounds of the quick form, where a row has so many seconds.

    >>> quick_rounds(2.0), quick_rounds(0.0)
    (7, 3)
    """
    if pace < PACE / 2:
        return FEWEST
    return QUICK_REPEAT if pace >= 0.8 * PACE else (FEWEST + QUICK_REPEAT) // 2


def _measure(row: TableRow, contest: Contest, run: Run, pace: float) -> RowResult | None:
    """One row; None where tilewright does not compute it here. `pace` is how long it may take, in seconds."""
    names = _systems(row, contest, run, late=pace < PACE / 2)
    if OURS not in names:
        return None
    repeat = quick_rounds(pace) if run.quick else REPEAT
    memory = MemoryPass(row.moved, row.threads) if row.moved else None
    found = contest.measure(row.case, repeat, memory, names.values())
    absent = [name for name in COMPILING if name in contest.names and name not in names]
    late = [
        f"{name} is left out: it compiles for seconds, which were not left"
        for name in absent
        if run.quick and row.compiling and _computes(row, name)
    ]
    return _result(row, replace(found, failures=(*found.failures, *late)), names, contest)


def _result(row: TableRow, found: ContestResult, names: Mapping[str, str], contest: Contest) -> RowResult:
    case = row.case
    counts = "flops"
    if isinstance(case, OperationCase) and case.row.work is None:
        counts = "bytes" if row.moved else "calls"
    systems = tuple(_system_results(row, found, names, contest))
    return RowResult(
        key=row.key,
        family=row.family,
        label=row.label,
        problem=case.name,
        dtype=case.types.name,
        sizes=case.size_fields,
        threads=row.threads,
        counts=counts,
        work=case.flops_of(OURS),
        moved=row.moved,
        memory_seconds=tuple(found.memory_seconds),
        systems=systems,
        failures=tuple(found.failures),
    )


def _system_results(
    row: TableRow, found: ContestResult, names: Mapping[str, str], contest: Contest
) -> Iterator[SystemResult]:
    for system, name in names.items():
        samples = found.samples.get(name, ())
        if samples:
            flops = row.case.flops_of(system)
            yield SystemResult(
                system,
                row.case.call_of(system),
                dict(contest.environment(name)),
                tuple(flops / sample.gflops * 1e-9 for sample in samples),
                tuple(sample.peak_gflops for sample in samples),
            )
