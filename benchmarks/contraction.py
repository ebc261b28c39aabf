"""Contractions as configured, and as the passes schedule them: shares of the peak of multiply-adds.

One thread, f32. The first rows are configurations of seed 002, §7.2: loops (M, N, K) of (32, 32, 8) around
a gemm of (32, 32, 32), and the same with the inner K of the loops as the batch of a brgemm, with and without
first and last touches; they run exactly as given. The last rows are given as loops alone, which the passes
schedule. Operands begin on pages. Rows and the peak are measured in turn in random order, results are checked
against float64 first; the table gives medians, and the share that is asked for. Run it with ``python
benchmarks/contraction.py`` on a quiet machine.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import tilewright as tw
from tilewright.compiler.peak import measure_peak
from tilewright.machine.host import host_machine
from tilewright.ops.contraction.dimension import Dimension
from tilewright.ops.contraction.memory import reach
from tilewright.ops.contraction.problem import Contraction
from tilewright.spec.dtype import F32
from tilewright.tools.explore.rounds import compare_calls
from tilewright.tools.explore.statistics import median

Array = NDArray[Any]

#: Seconds of one measurement, filled by repeating short calls.
SECONDS = 20e-3
#: Bytes on whose multiples operands begin.
PAGE = 4096
#: The largest difference from float64, of the largest result.
TOLERANCE = 1e-5


class Row(NamedTuple):
    """One line of the table: its label, what is run, and the share of peak that is asked for."""

    label: str
    problem: Contraction
    asked: float


def blocks(main: str, first: str, last: str | None) -> Contraction:
    """The loops and the primitive of seed 002: contiguous column-major blocks, a bias for each n."""
    inner = 32 * 32
    batch = "primitive" if main == "brgemm" else "sequential"
    return Contraction(
        [
            Dimension("m", "sequential", 32, in0=8 * inner, out=inner),
            Dimension("n", "sequential", 32, in1=8 * inner, out=32 * inner, bias=32),
            Dimension("k", batch, 8, in0=inner, in1=inner),
            Dimension("m", "primitive", 32, in0=1, out=1),
            Dimension("n", "primitive", 32, in1=32, out=32, bias=1),
            Dimension("k", "primitive", 32, in0=32, in1=1),
        ],
        main=main,
        first=first,
        last=last,
    )


def square(size: int) -> Contraction:
    """A product of row-major matrices as three loops."""
    return Contraction(
        [
            Dimension("m", size=size, in0=size, out=size),
            Dimension("n", size=size, in1=1, out=1),
            Dimension("k", size=size, in0=1, in1=size),
        ]
    )


def interleaved() -> Contraction:
    """M, N and K of 64 and 25 each, every other dimension of an operand of another type, as six loops."""
    plane = 25 * 25
    return Contraction(
        [
            Dimension("m", size=64, in0=64 * plane, out=64 * plane),
            Dimension("n", size=64, in1=plane, out=plane),
            Dimension("k", size=64, in0=plane, in1=64 * plane),
            Dimension("m", size=25, in0=25, out=25),
            Dimension("n", size=25, in1=1, out=1),
            Dimension("k", size=25, in0=1, in1=25),
        ]
    )


def rows() -> list[Row]:
    """Every line of the table."""
    found = []
    for main in ("gemm", "brgemm"):
        for first, last in (("zero", None), ("zero", "relu"), ("bias", "relu"), ("none", None)):
            asked = 0.85 if first == "zero" else 0.0
            touches = f"first {first}, last {last or 'none'}"
            found.append(Row(f"configured: {main:<6} {touches}", blocks(main, first, last), asked))
    found.append(Row("scheduled: 1600 x 1600 x 1600", square(1600), 0.88))
    found.append(Row("scheduled: M, N, K of (64, 25), interleaved", interleaved(), 0.80))
    return found


def operand(problem: Contraction, name: str, seed: int) -> Array:
    """Random elements that begin on a page."""
    count = reach(problem.having(name), name)[1] + 1
    raw = np.empty(count + PAGE, np.float32)
    start = -raw.__array_interface__["data"][0] % PAGE // raw.itemsize
    found = raw[start : start + count]
    found[...] = np.random.default_rng(seed).standard_normal(count, dtype=np.float32)
    return found


def prepared(row: Row) -> Callable[[], Any]:
    """The call of a row, whose result has been checked."""
    problem = row.problem
    arrays = {name: operand(problem, name, seed) for seed, name in enumerate(problem.names)}
    expected = problem.reference(**{name: arrays[name] for name in problem.names})
    kernel, bias = tw.compile(problem), arrays.pop("bias", None)
    out = kernel(*arrays.values(), bias=bias)
    found = problem.view("out", out)
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE * np.abs(expected).max())
    return lambda: kernel(*arrays.values(), bias=bias)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=20)
    options = parser.parse_args()
    tw.set_num_threads(1)
    table = rows()
    calls = {row.label: prepared(row) for row in table}
    peaks: list[float] = []
    found = compare_calls(
        calls,
        options.repeat,
        SECONDS,
        advance=lambda: peaks.append(measure_peak(F32, host_machine(), SECONDS)),
    )
    peak = median(peaks)
    print(f"peak {peak:.0f} GFLOPS\n{'':<46} GFLOPS   share  asked")
    for row in table:
        rate = (row.problem.flops or 0) / median(found[row.label]) * 1e-9
        asked = f"{row.asked:6.2f}" if row.asked else "     -"
        print(f"{row.label:<46} {rate:6.1f} {rate / peak:7.3f} {asked}")


if __name__ == "__main__":
    main()
