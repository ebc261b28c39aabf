"""Measures problems one after the other, each by every system in turn, beside the machine's roofline.

The method is that of ``tilewright bench`` (`tilewright.tools.explore.measure`): one process per system,
operands of one seed, every result checked against float64 before anything is timed, rounds in random order,
the peak of the multiply unit right before each measurement. Four things differ. The processes stay while the
problems change, so that many problems need little memory. A system that has several settings (NumPy with each
core type of OpenBLAS) has a process for each, and the fastest at each problem counts. Passes over memory are
measured between the systems in each round. A peak that is lower than others at the same problem shows that
something else runs on the machine, and is measured again some times before the system is measured.

The roofline of a problem is the longer of two times: its operations at the peak, and one pass over the bytes
of A, B and C. The pass is measured on memory of that size that was passed over just before, so it runs at the
bandwidth of the cache level that holds the operands, or of main memory where none does. It is the shorter one
of reading all bytes and of copying one half of them to the other. Operands of less than `SMALLEST_PASS_BYTES`
count at the bandwidth of that size.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType

from tilewright.errors import InvalidChoice, PackageMissing, TilewrightError, ToolMissing, UnsupportedDtype
from tilewright.machine.host import host_machine
from tilewright.records import dataclass
from tilewright.tools.bench.bandwidth import SharedProbe
from tilewright.tools.explore.measure import LONGEST_PEAK_SECONDS, Sample, WorkerProcess, choose_rounds
from tilewright.tools.explore.measured import Measured
from tilewright.tools.explore.prepared import Environment
from tilewright.tools.explore.rounds import turns
from tilewright.tools.explore.statistics import median
from tilewright.tools.explore.systems import TILEWRIGHT
from tilewright.tools.explore.worker import MEASUREMENT_SECONDS

#: The least that is passed over: a call from Python takes 0.5 us, a pass over 256 KiB at 64 GB/s 4 us.
SMALLEST_PASS_BYTES = 1 << 18
#: A peak of less than this share of the highest one at the same problem is measured again, so many times.
QUIET, ATTEMPTS = 0.95, 5
#: The variable in which the settings of one system differ.
CORE_TYPE = "OPENBLAS_CORETYPE"
#: The turn in which passes over memory are measured.
_MEMORY = "memory"


@dataclass(frozen=True)
class Contestant:
    """One system in one environment: a process.

    >>> Contestant("numpy", {"OPENBLAS_CORETYPE": "Haswell"}).name
    'numpy Haswell'
    """

    system: str
    environment: Environment

    @property
    def name(self) -> str:
        """The system, and its core type where one is set."""
        return f"{self.system} {self.environment.get(CORE_TYPE, '')}".rstrip()


def find_contestants(
    case: Measured, systems: Iterable[str], threads: int
) -> tuple[tuple[Contestant, ...], tuple[str, ...]]:
    """The systems that are installed and compute a case, in each of their environments; why others do not."""
    found, absent = [], []
    for system in systems:
        try:
            case.types_of(system)
        except (PackageMissing, ToolMissing, UnsupportedDtype, InvalidChoice) as error:
            absent.append(f"{system} is left out: {error}")
        else:
            found += [Contestant(system, setting) for setting in case.environments_of(system, threads)]
    return tuple(found), tuple(absent)


class MemoryPass:
    """The shortest pass of some threads over memory of one size."""

    def __init__(self, size_bytes: int, threads: int) -> None:
        held = max(size_bytes, SMALLEST_PASS_BYTES)
        self._scale = size_bytes / held
        self._whole = SharedProbe(host_machine(), held, threads)
        self._half = SharedProbe(host_machine(), held // 2, threads)

    def seconds(self) -> float:
        """Of reading all bytes once, or of copying one half of them to the other: the less."""
        shortest = math.inf
        for measure in (self._whole.read_seconds, self._half.copy_seconds):
            times = math.ceil(MEASUREMENT_SECONDS / measure())
            shortest = min(shortest, measure(times))
        return shortest * self._scale


@dataclass(frozen=True)
class ContestResult:
    """What was measured of one problem.

    Attributes
    ----------
    case : the problem.
    samples : of each contestant by name.
    memory_seconds : of passes over the bytes of its operands; empty where they do not matter.
    failures : why contestants have no samples.
    """

    case: Measured
    samples: Mapping[str, Sequence[Sample]]
    memory_seconds: Sequence[float]
    failures: Sequence[str]

    def speed(self, name: str) -> float:
        """Median GFLOPS of one contestant."""
        return median([sample.gflops for sample in self.samples[name]])

    def share_of_peak(self, name: str) -> float:
        """The median of its speed over the peak measured right before."""
        return median([sample.gflops / sample.peak_gflops for sample in self.samples[name]])

    @property
    def peaks(self) -> list[float]:
        """Every measurement of the peak, in GFLOPS."""
        return [sample.peak_gflops for samples in self.samples.values() for sample in samples]

    @property
    def is_quiet(self) -> bool:
        """Whether at least half of the peaks are near the highest."""
        return median(self.peaks) >= QUIET * max(self.peaks)

    def _memory_gflops(self, choose: Callable[[Sequence[float]], float]) -> float:
        """The speed at which the operations last as long as one of the passes over memory."""
        if not self.memory_seconds:
            return math.inf
        return self.case.flops_of(TILEWRIGHT.name) / choose(self.memory_seconds) * 1e-9

    @property
    def is_memory_bound(self) -> bool:
        """Whether the median pass over memory lasts longer than the operations at the median peak."""
        return self._memory_gflops(median) < median(self.peaks)

    def share(self, name: str) -> float:
        """The median of its speed over the roofline."""
        bound = self._memory_gflops(median)
        return median([sample.gflops / min(sample.peak_gflops, bound) for sample in self.samples[name]])

    def best_speed(self, name: str) -> float:
        """GFLOPS of its shortest time."""
        return max(sample.gflops for sample in self.samples[name])

    def best_share_of_peak(self, name: str) -> float:
        """Its shortest time, and the highest peak."""
        return self.best_speed(name) / max(self.peaks)

    def best_share(self, name: str) -> float:
        """Its shortest time, the highest peak and the shortest pass over memory."""
        return self.best_speed(name) / min(max(self.peaks), self._memory_gflops(min))

    def fastest(self, names: Iterable[str]) -> str | None:
        """The contestant with the highest median share of some, or None for none."""
        return max(names, key=self.share_of_peak, default=None)


class Contest:
    """The processes of some contestants, ready for one problem after the other; tilewright is among them.

    Parameters
    ----------
    contestants : the processes.
    threads : how many threads each may use.
    seed : of the operands and of the order.
    attempts : how often a low peak is measured at most.
    """

    def __init__(
        self, contestants: Iterable[Contestant], threads: int, seed: int = 0, attempts: int = ATTEMPTS
    ) -> None:
        self._threads, self._seed, self._attempts = threads, seed, attempts
        self._order = random.Random(seed)  # noqa: S311  (an order, not a secret)
        self._stack = ExitStack()
        self._contestants = {one.name: one for one in contestants}
        self._workers: dict[str, WorkerProcess] = {}

    def __enter__(self) -> Contest:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    @property
    def names(self) -> tuple[str, ...]:
        """The contestants that are left."""
        return tuple(self._contestants)

    def environment(self, name: str) -> Environment:
        """The variables of a contestant's process; none of one that is left out."""
        return self._contestants[name].environment if name in self._contestants else {}

    def leave_out(self, name: str) -> None:
        """Measure one contestant no more."""
        del self._contestants[name]

    def _failed(self, name: str, error: TilewrightError) -> str:
        """What is said of a peer that fails; one whose process has ended is left out from then on."""
        if name == TILEWRIGHT.name:
            raise error
        if not self._workers[name].is_alive:
            self.leave_out(name)
        return f"{name} is left out: {error}"

    def _worker(self, name: str) -> WorkerProcess:
        """The process of a contestant, started when it is needed first."""
        if name not in self._workers:
            one = self._contestants[name]
            worker = WorkerProcess(one.system, self._threads, None, one.environment)
            self._workers[name] = self._stack.enter_context(worker)
        return self._workers[name]

    def measure(
        self,
        case: Measured,
        repeat: int,
        memory: MemoryPass | None = None,
        names: Iterable[str] | None = None,
    ) -> ContestResult:
        """Check and measure one problem in so many rounds.

        A peer that fails at this problem, or whose result is wrong, is left out of it; one whose process has
        ended is left out from then on.

        Parameters
        ----------
        case : the problem.
        repeat : how many rounds.
        memory : a pass over the bytes of its operands, measured in each round.
        names : the contestants that take part; all that are left by default.

        Raises
        ------
        WrongResult, WorkerFailed : by tilewright itself.
        """
        lasting: dict[str, float] = {}
        failures = []
        taking_part = [name for name in names or self.names if name in self._contestants]
        # All processes are started before the first is asked, so that they load their libraries side by side.
        for name, worker in {name: self._worker(name) for name in taking_part}.items():
            try:
                lasting[name] = worker.ask("prepare", index=0, **case.request, seed=self._seed)["seconds"]
            except TilewrightError as error:
                failures.append(self._failed(name, error))
        rounds = {name: choose_rounds(seconds, repeat, self._order) for name, seconds in lasting.items()}
        if memory is not None:
            rounds[_MEMORY] = frozenset(range(repeat))
        samples: dict[str, list[Sample]] = {name: [] for name in lasting}
        passes, highest = [], 0.0
        for name, due in turns(rounds, repeat, self._order):
            if not due:
                continue
            if name == _MEMORY and memory is not None:
                passes.append(memory.seconds())
                continue
            if name not in samples:
                continue
            seconds = min(lasting[name], LONGEST_PEAK_SECONDS)
            peak = self._peak(case, seconds, highest)
            highest = max(peak, highest)
            try:
                taken = self._worker(name).ask("measure", index=0)["seconds"]
            except TilewrightError as error:
                failures.append(self._failed(name, error))
                del samples[name]
                continue
            flops = case.flops_of(name.split()[0])
            samples[name].append(Sample(flops / taken * 1e-9, peak))
        return ContestResult(case, samples, passes, failures)

    def _peak(self, case: Measured, seconds: float, highest: float) -> float:
        """The peak for the types of a case, over some seconds; `highest` is the best one so far."""
        unit = {"dtype": str(case.types.a), "b_dtype": str(case.types.b)}
        peak = 0.0
        for _ in range(self._attempts):
            peak = float(self._worker(TILEWRIGHT.name).ask("peak", **unit, seconds=seconds)["gflops"])
            if peak >= QUIET * highest:
                break
        return peak
