"""What `tilewright tune` gains over the models: forty shapes with and without the tuned constants.

Run ``tilewright tune --dtype f32`` first, then this, both on a quiet machine. Two processes multiply the same
operands, one with what was tuned on this CPU and one with ``TILEWRIGHT_TUNING=0``, interleaved in random
order; `tools/bench/contest.py` describes how. The ratio of a shape is that of the medians of their shares
of the peak. Where a process has its operands in memory decides which lines share sets of a cache, and changes
some shapes by several percent; so the rounds are spread over several pairs of processes. The last line has
the geometric mean over all shapes, which is 1.00 where tuning gains nothing. On x86 `tilewright tune`
measures none of these shapes. ``--row avx2`` limits both to the AVX2 kernels, which are tuned by
``TILEWRIGHT_ISA=avx2 tilewright tune --dtype f32``. ``TILEWRIGHT_TUNING=0`` compares the models with
themselves, which shows the noise.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from rich.progress import track

from tilewright.machine.host import detect_host
from tilewright.settings import variable_of
from tilewright.tools.bench.contest import Contest, ContestResult, find_contestants
from tilewright.tools.explore.cases import Case, parse_sizes
from tilewright.tools.explore.facts import describe_machine, machine_title
from tilewright.tools.explore.measure import REPEAT
from tilewright.tools.explore.statistics import geometric_mean, median_interval
from tilewright.tools.explore.systems import TILEWRIGHT

#: Pairs of processes that the rounds are spread over.
PROCESSES = 4
#: The models alone.
MODEL = "tilewright-model"
#: Kinds of shapes: sizes as `parse_sizes` reads them, and transposed operands.
SHAPES: tuple[tuple[str, str, str], ...] = (
    ("square", "64,96,128,160,192,224,320,384,512,640,1024,1536", "n"),
    ("edge", "100,200,300,333x517x791,1000,1001", "n"),
    ("tall", "8192x64x256,4096x128x512,16384x48x96", "n"),
    ("wide", "64x8192x256,128x4096x512,100x10000x100", "n"),
    ("deep", "128x128x8192,200x300x5000", "n"),
    ("flat", "4096x4096x64,2000x3000x16,1500x1500x32", "n"),
    ("few", "4x1000x1000,8x2048x2048,12x1000x1000,16x4096x1024,40x1000x1000", "n"),
    ("few", "1000x17x1000,2048x8x2048", "n"),
    ("power", "128x1024x1024,300x2048x1024", "n"),
    ("linear", "128x768x3072,512x512x2048", "b"),
)


@dataclass(frozen=True)
class Gain:
    """The gain at one shape."""

    label: str
    ratio: float
    interval: tuple[float, float]
    share: float

    def __str__(self) -> str:
        """A line of the table."""
        low, high = self.interval
        return f"{self.label:28} {self.ratio:6.3f}  {low:.3f}..{high:.3f}  {self.share:5.1%}"


def cases(dtype: str) -> Iterator[tuple[str, Case]]:
    """The shapes of every kind."""
    for kind, sizes, trans in SHAPES:
        for case in parse_sizes(sizes, dtype, trans):
            yield f"{kind} {case.label}", case


def together(measured: Sequence[ContestResult]) -> ContestResult:
    """The measurements of one shape by several pairs of processes as one."""
    names = (TILEWRIGHT.name, MODEL)
    samples = {name: [sample for one in measured for sample in one.samples[name]] for name in names}
    return ContestResult(measured[0].case, samples, (), ())


def gain(label: str, found: ContestResult) -> Gain:
    """The speed with tuned constants over that without, at one shape.

    The interval is of the ratios within each round.
    """
    shares = [
        [sample.gflops / sample.peak_gflops for sample in found.samples[name]]
        for name in (TILEWRIGHT.name, MODEL)
    ]
    ratios = [tuned / model for tuned, model in zip(*shares, strict=False)]
    share = found.share_of_peak(TILEWRIGHT.name)
    return Gain(label, share / found.share_of_peak(MODEL), median_interval(ratios), share)


def summary(gains: Sequence[Gain]) -> Iterator[str]:
    """The geometric mean, the extremes, and how many shapes differ by more than their noise."""
    ratios = sorted(one.ratio for one in gains)
    faster = sum(one.interval[0] > 1 for one in gains)
    slower = sum(one.interval[1] < 1 for one in gains)
    yield f"{faster} of {len(gains)} shapes are faster, {slower} slower, by more than their noise"
    yield f"least {ratios[0]:.3f}, most {ratios[-1]:.3f}"
    mean = geometric_mean(ratios)
    yield f"gain of tune over the model, geometric mean over {len(gains)} shapes: {mean:.3f}"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--repeat", type=int, default=REPEAT, help="rounds")
    parser.add_argument("--processes", type=int, default=PROCESSES)
    parser.add_argument("--row", choices=("host", "avx2"), default="host")
    options = parser.parse_args()
    if options.row != "host":
        os.environ[variable_of("isa")] = options.row
    facts = detect_host()
    machine = describe_machine(facts)
    print(f"{machine_title(machine)}, {options.dtype}, 1 thread, {options.repeat} rounds")
    print(
        "tuned: " + ("; ".join(machine["tunings"]) or "nothing, so that both processes run the same kernels")
    )
    chosen = dict(cases(options.dtype))
    contestants, absent = find_contestants(next(iter(chosen.values())), (TILEWRIGHT.name, MODEL), 1)
    assert not absent, absent
    found: dict[str, list[ContestResult]] = {label: [] for label in chosen}
    rounds = ceil(options.repeat / options.processes)
    for number in track(range(options.processes), "processes", transient=True):
        with Contest(contestants, 1, seed=number) as contest:
            for label, case in chosen.items():
                found[label].append(contest.measure(case, rounds))
    print(f"{'':28} {'gain':>6}  {'95 %':12}  {'share of peak':>5}")
    gains = [gain(label, together(measured)) for label, measured in found.items()]
    print(*gains, *summary(gains), sep="\n")


if __name__ == "__main__":
    main()
