"""The measuring method: systems interleaved in random order, one process each, beside the machine's peak.

One process per system is fed over a pipe. Every result is checked against float64, or exact integers,
before anything is timed. Then come `repeat` rounds; a round measures every system on every case once, in a
new random order, and right before each of these the peak of the multiply unit is measured by the tilewright
process, for as long as the measurement will last (a longer one would more often be interrupted, and so read
too low). A system that takes longer than `LONG_CALL_SECONDS` for a call is measured in `LONG_CALL_REPEAT`
of the rounds only.

The environment of each process is the caller's without `REMOVED_VARIABLES`, plus the thread count and what
the system's row sets. Where a row has several environments (NumPy with each core type of OpenBLAS), all are
tried first, interleaved, `TRIALS` times on the cases of at most `TRIAL_FLOPS` operations, and the fastest by
the geometric mean of its best times is measured. Reported are

- gflops: flops / seconds of each measurement; the median, and its 95 % confidence interval between two
  order statistics (`statistics.median_ranks`);
- share_of_peak: the median, over the measurements, of gflops / the peak measured right before, so that
  both saw the same clock frequency and the same neighbours on the machine; the unit is the one that the
  target has for the element types which that system computes;
- ratio_to: the ratio of the medians of two systems.

Source: Kuzma et al., Softw. Pract. Exper. 2023, doi:10.1002/spe.3214, §4.1: every executable once per round,
in an order drawn anew, until there are twenty.
"""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tilewright import errors
from tilewright.errors import InvalidChoice, InvalidSize, WorkerFailed, WrongResult
from tilewright.records import dataclass
from tilewright.tools.explore.prepared import Environment
from tilewright.tools.explore.rounds import turns
from tilewright.tools.explore.statistics import geometric_mean, median, median_interval
from tilewright.tools.explore.systems import OURS, REMOVED_VARIABLES, TILEWRIGHT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from tilewright.spec.problem import ProductTypes
    from tilewright.tools.explore.measured import Measured

#: Measurements of each system on each case (Kuzma et al. 2023, §4.1).
REPEAT = 20
#: The variables by which libraries learn how many threads they may use; set in every worker.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TILEWRIGHT_NUM_THREADS")
#: Measurements of each environment of a system on each case before the fastest is chosen.
TRIALS = 3
#: Times that differ by less are those of the same kernels: the medians of repeated runs differ by up to 2 %.
SAME_SPEED = 0.02
#: Larger cases are left out of these trials where there are smaller ones: 0.1 s at 200 GFLOPS.
TRIAL_FLOPS = 2e10
#: A system that takes longer for one call is measured this often.
LONG_CALL_SECONDS, LONG_CALL_REPEAT = 1.0, 3
#: One measurement of the peak lasts at most this long, whatever it stands beside.
LONGEST_PEAK_SECONDS = 0.1
#: How long a worker may take to end after its pipe is closed.
_END_SECONDS = 5.0

#: What a worker process runs first: the variables must be set before any library is loaded.
_START = (
    "import json, os, sys; start = json.loads(sys.argv[1]); "
    "[os.environ.pop(name, None) for name in start['removed']]; os.environ.update(start['environment']); "
    "sys.path[:] = start['path']; from tilewright.tools.explore.worker import main; "
    "main(start['system'], start['threads'], start['target'])"
)


@dataclass(frozen=True)
class BenchmarkPlan:
    """What is measured.

    Attributes
    ----------
    cases : the problems, all of the same element types, since they are compared with one peak.
    peers : systems beside tilewright, by name; each has the types, or some to compare with.
    threads : how many threads each system may use.
    repeat : measurements of each system on each case.
    seed : of the operands and of the order.
    target : whose kernels tilewright runs; None is this host and `matmul`.

    Raises
    ------
    InvalidSize, InvalidChoice : it can't be measured.
    UnsupportedDtype : a peer has no such types.
    """

    cases: tuple[Measured, ...]
    peers: tuple[str, ...] = ("numpy",)
    threads: int = 1
    repeat: int = REPEAT
    seed: int = 0
    target: str | None = None

    def __post_init__(self) -> None:
        for name, value in (("cases", len(self.cases)), ("threads", self.threads), ("repeat", self.repeat)):
            if value < 1:
                raise InvalidSize(name=name, found=value, required="at least 1")
        if len({case.name for case in self.cases}) < len(self.cases):
            raise InvalidChoice(name="cases", found="a list with duplicates", allowed="different cases")
        if len({case.types for case in self.cases}) > 1:
            raise InvalidChoice(name="cases", found="several dtypes", allowed="one dtype per report")
        for system in self.systems:
            for case in self.cases:
                case.types_of(system)

    @property
    def systems(self) -> tuple[str, ...]:
        """Everything that is measured: the peers, then tilewright."""
        return (*self.peers, TILEWRIGHT.name)

    @property
    def types(self) -> ProductTypes:
        """The element types that are wanted."""
        return self.cases[0].types

    def types_of(self, system: str) -> ProductTypes:
        """The element types that one system computes."""
        return self.cases[0].types_of(system)

    @property
    def steps(self) -> int:
        """How often `measure` reports progress: each preparation and each measurement."""
        return (1 + self.repeat) * len(self.cases) * len(self.systems)


@dataclass(frozen=True)
class BenchmarkRow:
    """One system on one problem; the fields are the JSON form, that of `sizes` in its place.

    `gflops_ci` is the 95 % confidence interval of the median; `ratio_to` maps each other system to
    this system's speed over that one's, so more than 1 means faster. `dtype` names the wanted element
    types, `call` says what the system computes, `environment` the variables its process was started with
    beside the thread counts, `measurements` how many there are.
    """

    problem: str
    dtype: str
    sizes: Mapping[str, int]
    threads: int
    system: str
    call: str
    environment: Mapping[str, str]
    measurements: int
    gflops_median: float
    gflops_ci: tuple[float, float]
    share_of_peak: float
    ratio_to: Mapping[str, float]

    @property
    def json_fields(self) -> dict[str, Any]:
        """The fields as the report writes them."""
        fields = asdict(self)
        before = {name: fields.pop(name) for name in ("problem", "dtype")}
        return {**before, **fields.pop("sizes"), **fields}


@dataclass(frozen=True)
class BenchmarkReport:
    """A finished measurement; the fields are the JSON form.

    `machine` names where it ran, `target` whose kernels did; `unit` is the instruction that tilewright
    multiplies with, and `peak_gflops` the median of all measurements of its peak, on as many cores as there
    were threads.
    """

    machine: Mapping[str, object]
    target: str
    unit: str
    peak_gflops: float
    rows: tuple[BenchmarkRow, ...]

    def to_json(self) -> str:
        """The report as a JSON text."""
        fields = {**vars(self), "rows": [row.json_fields for row in self.rows]}
        return json.dumps(fields, indent=2) + "\n"

    def row(self, problem: str, system: str) -> BenchmarkRow:
        """The row of one system on one problem."""
        return next(row for row in self.rows if (row.problem, row.system) == (problem, system))


@dataclass(frozen=True)
class Sample:
    """One measurement: the speed reached and the peak measured right before."""

    gflops: float
    peak_gflops: float


@dataclass(frozen=True)
class Summary:
    """The geometric mean of one figure over all problems, the worst of them, and where that is."""

    figure: str
    geometric_mean: float
    worst: float
    worst_problem: str


class WorkerProcess:
    """The parent's end of the pipe to one worker."""

    def __init__(
        self,
        system: str,
        threads: int,
        target: str | None = None,
        environment: Environment = MappingProxyType({}),
    ) -> None:
        self.system, self.environment = system, environment
        start = {
            "system": system,
            "threads": threads,
            "target": target,
            "environment": {**dict.fromkeys(THREAD_VARIABLES, str(threads)), **environment},
            "removed": REMOVED_VARIABLES,
            "path": sys.path,
        }
        self._complaints = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, json.dumps(start)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
            encoding="utf-8",
        )

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the pipe, upon which the worker ends; one that does not is killed."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                continue
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._complaints.close()

    @property
    def is_alive(self) -> bool:
        """Whether the process runs: a system may fail at one problem and compute others."""
        return self._process.poll() is None

    def ask(self, command: str, **arguments: object) -> Any:
        """Send one command and wait for its answer.

        Raises
        ------
        TilewrightError : the one that the worker met, as if it had been raised here.
        WorkerFailed : the worker met another failure, or ended.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({command: arguments}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise WorkerFailed(system=self.system, reason=self._last_words())
        answer = json.loads(line)
        if "failure" in answer:
            raise WorkerFailed(system=self.system, reason=answer["failure"])
        if "error" in answer:
            raise getattr(errors, answer["error"])(**answer["fields"])
        return answer

    def _last_words(self) -> str:
        """Why the process ended: its exit status and the last line it wrote to standard error."""
        status = self._process.wait()
        self._complaints.seek(0)
        lines = self._complaints.read().split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "no message")
        return f"its process ended with status {status}: {last}"


def measure(
    plan: BenchmarkPlan, machine: Mapping[str, object], on_step: Callable[[], None] = lambda: None
) -> BenchmarkReport:
    """Carry out a plan; the method is described at the head of this file.

    Parameters
    ----------
    plan : what is measured.
    machine : what the report says about the machine.
    on_step : called `plan.steps` times on the way.

    Raises
    ------
    WrongResult : a system returned a wrong product.
    WorkerFailed : a system's process failed.
    PackageMissing : a peer is not installed.
    """
    order = random.Random(plan.seed)  # noqa: S311  (an order, not a secret)
    samples: dict[tuple[int, str], list[Sample]] = {}
    lasting: dict[tuple[int, str], float] = {}
    rounds: dict[tuple[int, str], frozenset[int]] = {}
    with ExitStack() as stack:
        workers = {system: stack.enter_context(start_worker(plan, system)) for system in plan.systems}
        environments = {system: worker.environment for system, worker in workers.items()}
        for index, case in enumerate(plan.cases):
            for system, worker in workers.items():
                duration = _prepare(worker, index, case, plan.seed + index)
                lasting[index, system] = min(duration, LONGEST_PEAK_SECONDS)
                rounds[index, system] = choose_rounds(duration, plan.repeat, order)
                samples[index, system] = []
                on_step()
        peak_worker = workers[TILEWRIGHT.name]
        units = {system: _unit_fields(plan.types_of(system)) for system in plan.systems}
        for unit in units.values():
            peak_worker.ask("peak", **unit, seconds=LONGEST_PEAK_SECONDS)
        for (index, system), due in turns(rounds, plan.repeat, order):
            if due:
                peak = peak_worker.ask("peak", **units[system], seconds=lasting[index, system])["gflops"]
                seconds = workers[system].ask("measure", index=index)["seconds"]
                flops = plan.cases[index].flops_of(system)
                samples[index, system].append(Sample(flops / seconds * 1e-9, peak))
            on_step()
    peaks = [
        sample.peak_gflops
        for (_, system), series in samples.items()
        for sample in series
        if units[system] == units[TILEWRIGHT.name]
    ]
    rows = make_rows(plan, samples, environments)
    return BenchmarkReport(machine, plan.target or "host", _unit_name(plan), median(peaks), rows)


def start_worker(plan: BenchmarkPlan, system: str) -> WorkerProcess:
    """The process of one system, in the fastest of its environments; see `fastest_environment`."""
    return WorkerProcess(system, plan.threads, plan.target, fastest_environment(plan, system))


def fastest_environment(plan: BenchmarkPlan, system: str) -> Environment:
    """The fastest of a system's environments, each tried on the cases of a plan.

    An environment in which the system fails is left out: its kernels need instructions that the CPU lacks.

    Raises
    ------
    WrongResult, WorkerFailed : the system fails in its first environment.
    """
    first, *others = plan.cases[0].environments_of(system, plan.threads)
    if not others:
        return first
    cases = [case for case in plan.cases if case.flops_of(system) <= TRIAL_FLOPS]
    cases = cases or [min(plan.cases, key=lambda case: case.flops_of(system))]
    with ExitStack() as stack:
        workers = []
        for environment in (first, *others):
            worker = stack.enter_context(WorkerProcess(system, plan.threads, plan.target, environment))
            try:
                for index, case in enumerate(cases):
                    _prepare(worker, index, case, plan.seed + index)
            except (WorkerFailed, WrongResult):
                if environment is first:
                    raise
            else:
                workers.append(worker)
        return _fastest(workers, cases).environment


def _fastest(workers: Sequence[WorkerProcess], cases: Sequence[Measured]) -> WorkerProcess:
    """The worker with the least geometric mean over cases of the best of `TRIALS` times.

    Several settings may select the same kernels. Of those within `SAME_SPEED` of the fastest the first is
    taken, which is the system as shipped where no setting is better.
    """
    seconds: list[list[float]] = [[math.inf] * len(cases) for _ in workers]
    for _ in range(TRIALS):
        for worker, best in zip(workers, seconds, strict=True):
            for index in range(len(cases)):
                best[index] = min(best[index], worker.ask("measure", index=index)["seconds"])
    means = [geometric_mean(best) for best in seconds]
    return next(
        worker for worker, mean in zip(workers, means, strict=True) if mean <= min(means) * (1 + SAME_SPEED)
    )


def choose_rounds(seconds: float, repeat: int, order: random.Random) -> frozenset[int]:
    """The rounds in which a system is measured: all of them, or a few at random where it takes long.

    >>> len(choose_rounds(0.1, 20, random.Random(0))), len(choose_rounds(10.0, 20, random.Random(0)))
    (20, 3)
    """
    count = repeat if seconds <= LONG_CALL_SECONDS else min(repeat, LONG_CALL_REPEAT)
    return frozenset(order.sample(range(repeat), count))


def _unit_fields(types: ProductTypes) -> dict[str, str]:
    """What a worker must know of a unit to measure its peak."""
    return {"dtype": str(types.a), "b_dtype": str(types.b)}


def _unit_name(plan: BenchmarkPlan) -> str:
    from tilewright.compiler.peak import peak_name
    from tilewright.compiler.target import resolve_target

    return peak_name(plan.types.a, plan.types.b, resolve_target(plan.target))


def _prepare(worker: WorkerProcess, index: int, case: Measured, seed: int) -> float:
    """Seconds that one measurement will last."""
    return float(worker.ask("prepare", index=index, **case.request, seed=seed)["seconds"])


def make_rows(
    plan: BenchmarkPlan,
    samples: Mapping[tuple[int, str], Sequence[Sample]],
    environments: Mapping[str, Environment] = MappingProxyType({}),
) -> tuple[BenchmarkRow, ...]:
    """The rows of a report from all measurements, which are keyed by case index and system."""
    medians = {key: median([sample.gflops for sample in series]) for key, series in samples.items()}
    rows = []
    for (index, system), series in samples.items():
        case = plan.cases[index]
        speed = medians[index, system]
        rows.append(
            BenchmarkRow(
                problem=case.name,
                dtype=case.types.name,
                sizes=case.size_fields,
                threads=plan.threads,
                system=system,
                call=case.call_of(system),
                environment=dict(environments.get(system, {})),
                measurements=len(series),
                gflops_median=speed,
                gflops_ci=median_interval([sample.gflops for sample in series]),
                share_of_peak=median([sample.gflops / sample.peak_gflops for sample in series]),
                ratio_to={other: speed / medians[index, other] for other in plan.systems if other != system},
            )
        )
    return tuple(rows)


def best_peer(report: BenchmarkReport, peers: Sequence[str]) -> str | None:
    """The fastest of some systems by the geometric mean of their speeds, or None for an empty list."""

    def mean(system: str) -> float:
        return geometric_mean([row.gflops_median for row in report.rows if row.system == system])

    return max(peers, key=mean, default=None)


def summarise(report: BenchmarkReport, system: str = TILEWRIGHT.name) -> tuple[Summary, ...]:
    """Geometric mean and worst of one system's share of peak and of its ratio to each other system.

    Where there are several peers, the first ratios are those to the best one, by the geometric mean of its
    speeds, and to whichever is the fastest at each size.
    """
    rows = [row for row in report.rows if row.system == system]
    figures = {"share of peak": [row.share_of_peak for row in rows]}
    peers = [other for other in rows[0].ratio_to if other not in OURS]
    best = best_peer(report, peers)
    if best is not None and len(peers) > 1:
        figures[f"ratio to the best peer, {best}"] = [row.ratio_to[best] for row in rows]
        figures["ratio to the fastest peer at each size"] = [
            min(row.ratio_to[peer] for peer in peers) for row in rows
        ]
    for other in rows[0].ratio_to:
        figures[f"ratio to {other}"] = [row.ratio_to[other] for row in rows]
    return tuple(
        Summary(figure, geometric_mean(values), min(values), rows[values.index(min(values))].problem)
        for figure, values in figures.items()
    )
