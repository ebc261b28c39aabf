"""Random contractions of two operands beside NumPy: how many are slower, the worst, the geometric mean.

Each has up to three labels of rows, of columns and a batch, one or two that are summed, in random order, and
the sizes that are drawn for them; most are awkward. One thread, one process, processor time, calls of both
systems in turn; results are compared with each other. `numpy.einsum` has ``optimize=True``. Run it with
``python benchmarks/random_contractions.py --seed 1 --count 300`` on a quiet machine.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import tilewright as tw
from tilewright.tools.explore.statistics import geometric_mean

#: Lengths that all labels of a kind come to about, and by how much each label's own share of them varies.
LENGTHS = {"rows": (20, 200, 2000), "columns": (20, 200, 2000), "summed": (8, 60, 400), "batch": (3, 30)}
VARIES = (0.6, 1.6)

#: Multiply-adds of a contraction, and elements of an operand: what takes 10 us to 50 ms here.
WORK, ELEMENTS = (2e5, 1e9), 2e7

#: Relative difference that two orders of float32 sums of positive numbers may have.
TOLERANCE = 1e-3


class Case(NamedTuple):
    """A contraction: subscripts, the length of each label, the element type."""

    subscripts: str
    sizes: dict[str, int]
    dtype: str

    @property
    def work(self) -> int:
        """Multiply-adds."""
        return prod(self.sizes.values())


class Found(NamedTuple):
    """Seconds of one call of each."""

    case: Case
    ours: float
    numpy: float

    @property
    def ratio(self) -> float:
        """How many times as fast as NumPy."""
        return self.numpy / self.ours


def drawn(source: random.Random) -> Case:
    """The next case that is neither too small nor too large."""
    while True:
        counts = {
            "rows": source.randint(0, 3),
            "columns": source.randint(0, 3),
            "summed": source.randint(1, 2),
            "batch": source.choice([0, 0, 0, 1]),
        }
        names = iter("abcdefghij")
        labels = {kind: [next(names) for _ in range(count)] for kind, count in counts.items()}
        sizes: dict[str, int] = {}
        for kind, letters in labels.items():
            total = source.choice(LENGTHS[kind])
            for letter in letters:
                sizes[letter] = max(2, int(total ** (1 / len(letters)) * source.uniform(*VARIES)))
        rows, columns, summed, batch = labels.values()
        parts = [[*rows, *summed, *batch], [*columns, *summed, *batch], [*rows, *columns, *batch]]
        for part in parts:
            source.shuffle(part)
        first, second, out = map("".join, parts)
        case = Case(f"{first},{second}->{out}", sizes, source.choice(["f4", "f4", "f8"]))
        largest = max(prod(sizes[letter] for letter in part) for part in parts)
        if WORK[0] <= case.work <= WORK[1] and largest <= ELEMENTS:
            return case


def seconds(call: Callable[[], Any], times: int) -> float:
    """Processor time of one call."""
    begin = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - begin) / times


def measured(case: Case, repeat: int) -> Found:
    """The shortest time of either system, in turn."""
    generator = np.random.default_rng(0)
    inputs = case.subscripts.split("->")[0].split(",")
    arrays = [
        generator.random([case.sizes[label] for label in labels], np.dtype(case.dtype)) for labels in inputs
    ]
    calls = (
        lambda: tw.einsum(case.subscripts, *arrays),
        lambda: np.einsum(case.subscripts, *arrays, optimize=True),
    )
    np.testing.assert_allclose(calls[0](), calls[1](), rtol=TOLERANCE)
    times = [max(1, int(2e-3 / max(seconds(call, 1), 1e-6))) for call in calls]
    best = [float("inf")] * 2
    for _ in range(repeat):
        for number, call in enumerate(calls):
            best[number] = min(best[number], seconds(call, times[number]))
    return Found(case, *best)


def main() -> None:
    """Prints the slowest, and what all come to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--show", type=int, default=12, help="how many of the slowest are listed")
    options = parser.parse_args()
    tw.set_num_threads(1)
    source = random.Random(options.seed)
    with threadpool_limits(1):
        found = [measured(drawn(source), options.repeat) for _ in range(options.count)]
    found.sort(key=lambda one: one.ratio)
    for one in found[: options.show]:
        lengths = " ".join(f"{label}={length}" for label, length in one.case.sizes.items())
        rate = 2e-9 * one.case.work / one.ours
        print(
            f"{one.ratio:6.2f}  {one.case.subscripts:24} {one.case.dtype} {one.ours * 1e3:8.3f} ms "
            f"{rate:6.1f} GFLOPS  {lengths}"
        )
    slower = sum(one.ratio < 1 for one in found)
    print(
        f"{len(found)} contractions of seed {options.seed}: {slower} slower than NumPy "
        f"({100 * slower / len(found):.1f} %), worst {found[0].ratio:.2f}, "
        f"geometric mean {geometric_mean([one.ratio for one in found]):.2f}"
    )


if __name__ == "__main__":
    main()
