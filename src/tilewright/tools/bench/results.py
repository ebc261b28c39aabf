"""What was measured: every sample of every row, in one file that grows row by row."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tilewright.atomic import replacing
from tilewright.cached import cached_property
from tilewright.errors import InputNotReadable, OutputNotWritable, ReportInvalid
from tilewright.reading import read_input
from tilewright.records import dataclass
from tilewright.tools.explore.statistics import geometric_mean, median, median_interval, ratio_interval
from tilewright.tools.explore.systems import TILEWRIGHT

#: The form of the file; another number is refused.
FORMAT = 1
#: A report of all rows beside ten systems has some megabytes.
_MOST_BYTES = 256 << 20

OURS = TILEWRIGHT.name
#: A row is quiet if the median of its peaks is this share of the highest.
QUIET = 0.95


@dataclass(frozen=True)
class SystemResult:
    """One system on one row.

    Attributes
    ----------
    call : what was called.
    environment : the variables its process was started with beside the thread counts.
    seconds : of one call, in each measurement.
    peaks : the peak measured right before each, in GFLOPS.
    """

    system: str
    call: str
    environment: Mapping[str, str]
    seconds: tuple[float, ...]
    peaks: tuple[float, ...]


@dataclass(frozen=True)
class RowResult:
    """One row; the fields are the JSON form.

    Attributes
    ----------
    problem : operation and sizes, the same for any number of threads.
    work : operations of one call, or the bytes it moves where `counts` says so; 1 for calls.
    counts : "flops", "bytes" or "calls".
    moved : bytes of operands and results; 0 where they do not matter.
    memory_seconds : passes over as many bytes.
    failures : why systems that compute it have no samples.
    """

    key: str
    family: str
    label: str
    problem: str
    dtype: str
    sizes: Mapping[str, int]
    threads: int
    counts: str
    work: int
    moved: int
    memory_seconds: tuple[float, ...]
    systems: tuple[SystemResult, ...]
    failures: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The systems that were measured."""
        return tuple(one.system for one in self.systems)

    def of(self, system: str) -> SystemResult:
        """One system."""
        return next(one for one in self.systems if one.system == system)

    def seconds(self, system: str) -> float:
        """The median time of a call."""
        return median(self.of(system).seconds)

    def interval(self, system: str) -> tuple[float, float]:
        """The confidence interval of that median."""
        return median_interval(self.of(system).seconds)

    def gflops(self, system: str) -> float:
        """Operations, or bytes, in a nanosecond."""
        return self.work / self.seconds(system) * 1e-9

    @cached_property
    def peak(self) -> float:
        """The median of all peaks of the row, in GFLOPS."""
        return median([peak for one in self.systems for peak in one.peaks])

    @property
    def is_quiet(self) -> bool:
        """Whether most peaks are near the highest one: nothing else ran beside the measurements."""
        peaks = [peak for one in self.systems for peak in one.peaks]
        return median(peaks) >= QUIET * max(peaks)

    @cached_property
    def bound_seconds(self) -> float:
        """The roofline: operations at the peak, or one pass over the bytes; 0 of calls."""
        at_peak = self.work / self.peak * 1e-9 if self.counts == "flops" else 0.0
        return max(at_peak, median(self.memory_seconds) if self.memory_seconds else 0.0)

    @cached_property
    def is_memory_bound(self) -> bool:
        """Whether the pass over memory is the longer bound."""
        return bool(self.memory_seconds) and self.bound_seconds == median(self.memory_seconds)

    def share(self, system: str) -> float | None:
        """The share of the roofline; None where there is none."""
        return self.bound_seconds / self.seconds(system) if self.bound_seconds else None

    @property
    def peers(self) -> tuple[str, ...]:
        """The systems beside tilewright, the fastest first."""
        return tuple(sorted((name for name in self.names if name != OURS), key=self.seconds))

    def ratio(self, peer: str) -> float:
        """How many times longer a peer takes: above 1, tilewright is faster."""
        return self.seconds(peer) / self.seconds(OURS)

    def ratio_interval(self, peer: str) -> tuple[float, float]:
        """The confidence interval of that ratio."""
        return ratio_interval(self.of(peer).seconds, self.of(OURS).seconds)

    def normalised(self, system: str) -> list[float]:
        """Times in units of the roofline's clock, by which runs are compared that saw other clock rates.

        Seconds by the peak that was measured right before, or, where memory is the bound, by the median pass
        over memory.
        """
        one = self.of(system)
        if self.is_memory_bound:
            return [seconds / self.bound_seconds for seconds in one.seconds]
        return [seconds * peak for seconds, peak in zip(one.seconds, one.peaks, strict=True)]


@dataclass(frozen=True)
class Results:
    """A run, finished or not; the fields are the JSON form.

    Attributes
    ----------
    identity : what must be the same for a run to go on: machine, versions, code, form of the run.
    machine : facts of the host.
    skipped : why peers were left out of the whole run, by name.
    rows : those that are measured.
    """

    identity: Mapping[str, Any]
    machine: Mapping[str, Any]
    skipped: Mapping[str, str]
    rows: tuple[RowResult, ...] = ()

    def with_row(self, row: RowResult) -> Results:
        """The same run with one more row."""
        return Results(self.identity, self.machine, self.skipped, (*self.rows, row))

    @property
    def keys(self) -> frozenset[str]:
        """The rows that are measured."""
        return frozenset(row.key for row in self.rows)

    def find(self, key: str) -> RowResult | None:
        """The row of a key."""
        return next((row for row in self.rows if row.key == key), None)

    @property
    def systems(self) -> tuple[str, ...]:
        """Every system that has a sample, in order of appearance; tilewright is the last."""
        names = dict.fromkeys(name for row in self.rows for name in row.names if name != OURS)
        return (*names, OURS)

    @property
    def families(self) -> tuple[str, ...]:
        """In order of appearance."""
        return tuple(dict.fromkeys(row.family for row in self.rows))

    @property
    def noisy_rows(self) -> int:
        """Rows beside which something else ran on the machine."""
        return sum(not row.is_quiet for row in self.rows)

    def mean_ratio(self, family: str) -> float | None:
        """Geometric mean of the ratio to the fastest peer of each row; None without peers."""
        ratios = [row.ratio(row.peers[0]) for row in self.rows if row.family == family and row.peers]
        return geometric_mean(ratios) if ratios else None

    def to_json(self) -> str:
        """The run as a JSON text."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n"

    def write(self, path: Path) -> None:
        """Replace the file, so that a run that is interrupted leaves the rows that it has.

        Raises
        ------
        OutputNotWritable
        """
        try:
            with replacing(path) as stream:
                stream.write(self.to_json().encode())
        except OSError as error:
            raise OutputNotWritable(path=str(path), reason=error.strerror or str(error)) from error


def read_results(path: Path) -> Results:
    """The run of a file.

    Raises
    ------
    InputNotReadable : the file cannot be read.
    ReportInvalid : it is no report of the whole benchmark.
    """
    try:
        fields = json.loads(read_input(path, _MOST_BYTES))
    except OSError as error:
        raise InputNotReadable(path=str(path), reason=error.strerror or str(error)) from error
    except (ValueError, RecursionError) as error:
        raise ReportInvalid(path=str(path), reason=f"it is no JSON: {error}") from error
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise ReportInvalid(path=str(path), reason=f'its "format" is not {FORMAT}')
    try:
        rows = tuple(_row(row) for row in fields["rows"])
        return Results(dict(fields["identity"]), dict(fields["machine"]), dict(fields["skipped"]), rows)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ReportInvalid(path=str(path), reason=f"{type(error).__name__}: {error}") from error


def _row(fields: Mapping[str, Any]) -> RowResult:
    systems = tuple(
        SystemResult(
            str(one["system"]),
            str(one["call"]),
            dict(one["environment"]),
            _times(one["seconds"]),
            _times(one["peaks"]),
        )
        for one in fields["systems"]
    )
    for one in systems:
        if len(one.seconds) != len(one.peaks) or not one.seconds:
            raise ValueError(f"{one.system} has {len(one.seconds)} times and {len(one.peaks)} peaks")
    given = {
        **fields,
        "systems": systems,
        "memory_seconds": _times(fields["memory_seconds"]),
        "failures": tuple(map(str, fields["failures"])),
    }
    return RowResult(**given)


def _times(values: Sequence[Any]) -> tuple[float, ...]:
    """Positive numbers."""
    found = tuple(float(value) for value in values)
    if not all(value > 0 and math.isfinite(value) for value in found):
        raise ValueError("a time or a peak is not a positive number")
    return found
