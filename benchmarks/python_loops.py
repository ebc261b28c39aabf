"""Loops in Python over NumPy arrays: as written, by `tilewright.accelerate`, and compiled by Numba.

One thread, one process; systems in turn in random order, 20 runs each, medians. CPython, which takes seconds,
runs ``--slow`` times after them. Results are checked against float64 first. Numba's functions have
``fastmath=True``; "numba + tw" is `tilewright.accelerate` of them. Run it with
``python benchmarks/python_loops.py`` on a quiet machine, where Numba is installed.

Method: Kuzma et al., Softw. Pract. Exper. 2023, doi:10.1002/spe.3214, §4.1.4.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import tilewright as tw
from tilewright.tools.bench.families.loops import product, row_product
from tilewright.tools.explore.rounds import call_seconds, median_seconds
from tilewright.tools.explore.statistics import geometric_mean, median

Array = np.ndarray[Any, Any]

#: Runs of each system.
RUNS = 20
#: How far results may be from those of float64, in units of the largest element.
TOLERANCE = 1e-5


def sum_product(A: Array, B: Array, C: Array) -> None:
    """Sums in a variable, B transposed, alpha and beta."""
    for i in range(A.shape[0]):
        for j in range(B.shape[0]):
            s = 0.0
            for k in range(A.shape[1]):
                s += A[i, k] * B[j, k]
            C[i, j] = 0.5 * s + 0.25 * C[i, j]


def triangle(A: Array, B: Array, C: Array) -> None:
    """SYR2K of the lower triangle."""
    for i in range(A.shape[0]):
        for j in range(i + 1):
            for k in range(A.shape[1]):
                C[i, j] += A[i, k] * B[j, k] + B[i, k] * A[j, k]


def vector(A: Array, B: Array, C: Array) -> None:
    """A matrix times a vector."""
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            C[i, 0] += A[i, k] * B[k, 0]


class System(NamedTuple):
    """One way to run a function: its name, and what it makes of the function."""

    name: str
    make: Callable[[Callable[..., None]], Callable[..., None]]


def systems() -> list[System]:
    """CPython, ours, and Numba where it is installed."""
    found = [System("CPython", lambda function: function), System("tw.accelerate", tw.accelerate)]
    try:
        import numba
    except ImportError:
        print("Numba is not installed: its columns are left out")
        return found
    compiled = numba.njit(fastmath=True)
    return [
        *found,
        System("numba", compiled),
        System("numba + tw", lambda function: tw.accelerate(compiled(function))),
    ]


def checked(function: Callable[..., None], made: Callable[..., None], arrays: tuple[Array, ...]) -> None:
    """Ends the program where a result is not that of the loops in float64."""
    a, b, c = arrays
    expected = c.astype(np.float64)
    tw.accelerate(function)(a.astype(np.float64), b.astype(np.float64), expected)
    result = c.copy()
    made(a, b, result)
    error = np.abs(result - expected).max() / np.abs(expected).max()
    if not error <= TOLERANCE:
        raise SystemExit(f"{function.__name__}: a result is off by {error:.1e}; nothing is shown")


def measured(function: Callable[..., None], size: int, slow: int) -> dict[str, float]:
    """Seconds of a call by each system."""
    rng = np.random.default_rng(size)
    a, b, c = (rng.standard_normal((size, size)).astype(np.float32) for _ in range(3))
    ways = {system.name: system.make(function) for system in systems()}
    for name, made in ways.items():
        if name != "CPython":
            checked(function, made, (a, b, c))
    target = c.copy()
    calls = {name: partial(made, a, b, target) for name, made in ways.items()}
    as_written = calls.pop("CPython")
    times = median_seconds(calls, RUNS)
    if slow:  # in rounds of its own: it takes seconds, and its spread is far below what it is compared for
        times["CPython"] = median([call_seconds(as_written, 1) for _ in range(slow)])
    return times


def main() -> None:
    """Prints a line for each function and size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sizes", default="16,64,256")
    parser.add_argument("--slow", type=int, default=3, help="runs of CPython; 0 leaves it out")
    options = parser.parse_args()
    tw.set_num_threads(1)
    names = [system.name for system in systems()]
    print(f"{'function':>12} {'n':>5}  " + "".join(f"{name:>16}" for name in names) + "   speed-ups")
    ratios: dict[str, list[float]] = {}
    for function in (product, row_product, sum_product, triangle, vector):
        for size in map(int, options.sizes.split(",")):
            times = measured(function, size, options.slow)
            line = "".join(
                f"{times[name] * 1e6:>13.1f} us" if name in times else f"{'-':>16}" for name in names
            )
            found = []
            for slower, faster in (
                ("CPython", "tw.accelerate"),
                ("numba", "tw.accelerate"),
                ("numba", "numba + tw"),
            ):
                if slower in times and faster in times:
                    ratio = times[slower] / times[faster]
                    ratios.setdefault(f"{slower} / {faster}", []).append(ratio)
                    found.append(f"{ratio:.4g}")
            print(f"{function.__name__:>12} {size:>5}  {line}   {', '.join(found)}", flush=True)
    for name, all_found in ratios.items():
        print(f"{name}: geometric mean {geometric_mean(all_found):.4g}, worst {min(all_found):.3g}")


if __name__ == "__main__":
    main()
