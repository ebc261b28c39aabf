"""Measured points of a page: the call that is drawn on this host, beside peers where they compute it.

The kernel runs in a loop of machine code on operands of its own. Peers, and the public function that has the
kernel, run by the method of `tilewright bench`: each in a process of its own, in turns. Times are compared
with a peak that is measured right before each of them, so they are cycles of the clock at that moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tilewright.compiler.example import Example
from tilewright.compiler.kernel import Kernel
from tilewright.compiler.matrix_example import example_of
from tilewright.compiler.peak import measure_peak
from tilewright.errors import NotMeasured
from tilewright.machine.host import host_machine
from tilewright.spec.dtype import F32, DType
from tilewright.tools.bench.contest import ATTEMPTS, QUIET, Contest, ContestResult, find_contestants
from tilewright.tools.bench.peers import find_peer, title_of
from tilewright.tools.explore.measure import LONGEST_PEAK_SECONDS, Sample
from tilewright.tools.explore.measured import Measured
from tilewright.tools.explore.page.costs import peak_rate
from tilewright.tools.explore.page.kernel_call import ExampleCall
from tilewright.tools.explore.page.peer_cases import case_of
from tilewright.tools.explore.statistics import median
from tilewright.tools.explore.systems import TILEWRIGHT
from tilewright.tools.explore.worker import call_seconds, warmed_up

#: Rounds of a measurement: seconds for products of a thousand rows.
REPEAT = 7
#: The peers that are measured unless others are named: those that compile nothing for seconds.
USUAL_PEERS = ("numpy", "scipy", "torch", "jax", "onnxruntime")
#: Times whose median is longer than the shortest by this share were disturbed.
MOST_SPREAD = 0.1


class Point(NamedTuple):
    """One system at the call of a page.

    Attributes
    ----------
    title : its name.
    call : what is called.
    cycles, shortest, longest : of one call in all rounds: the median, the least, the most, in cycles of the
        clock at which the peak was measured.
    """

    title: str
    call: str
    cycles: float
    shortest: float
    longest: float

    @property
    def spread(self) -> float:
        """By how much the median is longer than the shortest time, as a share of that."""
        return self.cycles / self.shortest - 1


class Points(NamedTuple):
    """Points that were measured together, and the peaks of their rounds in GFLOPS."""

    points: tuple[Point, ...]
    peaks: tuple[float, ...]
    notes: tuple[str, ...] = ()


def check_measurable(kernels: Sequence[Kernel], peers: Sequence[str] | None) -> None:
    """Refuse what cannot be measured, before anything takes time.

    Raises
    ------
    NotMeasured : this host is not among the targets.
    InvalidChoice : no peer has a name.
    """
    for name in peers or ():
        find_peer(name)
    if all(kernel.machine != host_machine() for kernel in kernels):
        raise NotMeasured(reason="host is not among the targets")


def add_measured(
    kernels: Sequence[Kernel],
    records: Sequence[dict[str, Any]],
    peers: Sequence[str] | None,
    wanted: Mapping[str, int],
) -> None:
    """Measures the call that is drawn and adds its points to the record of this host.

    Parameters
    ----------
    kernels, records : of the targets, in order; this host is one of them.
    peers : names of those to measure beside it; `USUAL_PEERS` that are installed by default.
    wanted : lengths of axes that the problem leaves open, as for the call that is drawn.
    """
    host = host_machine()
    at = next(at for at, kernel in enumerate(kernels) if kernel.machine == host)
    kernel, record = kernels[at], records[at]
    example = example_of(kernel, wanted)
    units = unit_of(kernel.problem)
    found = measure_kernel(kernel, example, units)
    case = case_of(kernel.problem, example.shape)
    others = Points((), (), _without_row(peers)) if case is None else measure_peers(case, peers)
    points = (*found.points, *others.points)
    record["measured"] = {
        "points": [one._asdict() for one in points],
        "notes": list(others.notes),
        "disturbed": list(disturbances(points, (found.peaks, others.peaks))),
        "rounds": REPEAT,
        "peak": {
            "types": "x".join(dict.fromkeys(map(str, units))),
            "gflops": median(found.peaks),
            "rate": peak_rate(*units, host),
        },
    }
    flops = record["example"]["flops"]
    record["roofline"]["points"] = [[one.title, flops / one.cycles] for one in points] if flops else []


def unit_of(problem: Any) -> tuple[DType, DType]:
    """The element types whose peak is measured: those of the problem's products, else float32."""
    types = getattr(problem, "types", None)
    a = getattr(problem, "dtype", F32) if types is None else types.a
    b = a if types is None else types.b
    return (a, b) if peak_rate(a, b, host_machine()) else (F32, F32)


def _units(case: Measured) -> tuple[DType, DType]:
    return case.types.a, case.types.b


def measure_kernel(kernel: Kernel, example: Example, units: tuple[DType, DType]) -> Points:
    """The kernel in this process on one thread, after the peak of two element types in each round."""
    a, b = units
    timed, highest, samples = warmed_up(ExampleCall(kernel, example), 0.0), 0.0, []
    for _ in range(REPEAT):
        for _ in range(ATTEMPTS):
            seconds = min(timed.seconds, LONGEST_PEAK_SECONDS)
            peak = measure_peak(a, kernel.machine, seconds, b_dtype=b)
            highest = max(peak, highest)
            if peak >= QUIET * highest:
                break
        samples.append(Sample(1e-9 / call_seconds(timed), peak))
    point = _point(
        "this kernel", "its machine code, in a compiled loop", samples, 1, peak_rate(a, b, kernel.machine)
    )
    return Points((point,), tuple(one.peak_gflops for one in samples))


def measure_peers(case: Measured, peers: Sequence[str] | None) -> Points:
    """The public function and its peers, in turns; of a system in several settings, the fastest one."""
    contestants, absent = find_contestants(
        case, (TILEWRIGHT.name, *(USUAL_PEERS if peers is None else peers)), threads=1
    )
    with Contest(contestants, threads=1) as contest:
        found = contest.measure(case, REPEAT)
    points: dict[str, Point] = {}
    for name in found.samples:
        system = name.split()[0]
        point = _point_of(case, found, name, system)
        if system not in points or point.cycles < points[system].cycles:
            points[system] = point
    notes = tuple(found.failures) if peers is None else (*absent, *found.failures)
    return Points(tuple(points.values()), tuple(found.peaks), notes)


def _point_of(case: Measured, found: ContestResult, name: str, system: str) -> Point:
    """The point of one contestant."""
    rate = peak_rate(*_units(case), host_machine())
    return _point(title_of(system), case.call_of(system), found.samples[name], case.flops_of(system), rate)


def _point(title: str, call: str, samples: Sequence[Sample], flops: int, rate: float) -> Point:
    """The point of some samples, given the operations a cycle of the peak that was measured before them.

    >>> _point("x", "f", [Sample(8.0, 100.0), Sample(4.0, 100.0), Sample(10.0, 100.0)], 64, 32.0)
    Point(title='x', call='f', cycles=25.0, shortest=20.0, longest=50.0)
    """
    cycles = [flops * one.peak_gflops / one.gflops / rate for one in samples]
    return Point(title, call, median(cycles), min(cycles), max(cycles))


def disturbances(points: Sequence[Point], peaks: Sequence[Sequence[float]]) -> Iterator[str]:
    """What says that other programs ran beside the measurement.

    >>> list(disturbances([Point("NumPy", "f", 25.0, 20.0, 50.0)], [(100.0, 99.0)]))
    ['the median round took longer than the shortest one: NumPy by 25 %']
    """
    lowest = min((median(series) / max(series) for series in peaks if series), default=1.0)
    if lowest < QUIET:
        yield f"the median of the measured peaks was {lowest * 100:.0f} % of the highest one"
    slower = [f"{one.title} by {one.spread * 100:.0f} %" for one in points if one.spread > MOST_SPREAD]
    if slower:
        yield f"the median round took longer than the shortest one: {', '.join(slower)}"


def _without_row(peers: Sequence[str] | None) -> tuple[str, ...]:
    """What is said of peers that have no call for a problem."""
    return tuple(f"{peer} is left out: it has no call that computes this problem" for peer in peers or ())
