"""Batch-reduce kernels beside LIBXSMM's, both in the same native loop, interleaved in random order.

Needs a C compiler and LIBXSMM (Debian: libxsmm-dev). Run ``python benchmarks/compare_libxsmm.py``;
``--sample N`` takes N shapes of the seed's grid instead of the awkward and the square ones, ``--grid`` all
20,480 of them, each measured for a shorter time (ten minutes).
"""

from __future__ import annotations

import argparse
import ctypes
import random
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from tilewright.calls.compile import compile_problem
from tilewright.compiler.peak import measure_peak
from tilewright.machine.host import host_machine
from tilewright.ops.batch_reduce.problem import BatchReduceGemm
from tilewright.spec.dtype import F32
from tilewright.tools.explore.kernels import grid, operands, sample_grid
from tilewright.tools.explore.statistics import geometric_mean, median

SQUARES = tuple((n, n, n) for n in (16, 32, 48, 64, 96, 128))
AWKWARD = tuple((n, n, n) for n in (5, 13, 23, 100))
HARNESS = Path(__file__).with_name("libxsmm_harness.c")

#: Seconds of the peak beside each measurement, for each of its multiply-adds.
PEAK_SECONDS = 2e-3 / (1 << 28)

#: Multiply-adds of one measurement, about 2 ms at the peak; of one of the whole grid.
WORK, GRID_WORK = 1 << 28, 1 << 24


def build(directory: str) -> ctypes.CDLL:
    """The harness as a shared library."""
    library = Path(directory) / "harness.so"
    command = ["cc", "-O2", "-shared", "-fPIC", str(HARNESS), "-o", str(library), "-lxsmm", "-lxsmmnoblas"]
    subprocess.run(command, check=True)
    found = ctypes.CDLL(str(library))
    found.time_libxsmm.restype = found.time_brgemm.restype = ctypes.c_double
    found.target_arch.restype = ctypes.c_char_p
    return found


def measure(
    harness: ctypes.CDLL, shape: tuple[int, int, int], repeat: int, work: int
) -> tuple[float, float, float]:
    """Median GFLOPS of tilewright and LIBXSMM on one shape, and tilewright's share of the peak."""
    m, n, k = shape
    problem = BatchReduceGemm(m, n, k, 1)
    a, b, c = operands(problem, np.random.default_rng(0))
    sizes = (*map(ctypes.c_int, shape), *(ctypes.c_void_p(array.ctypes.data) for array in (a, b, c)))
    kernel = compile_problem(problem)
    address = ctypes.c_void_p(kernel.address)
    calls = ctypes.c_int64(min(max(10, work // (m * n * k)), work >> 8))
    speeds: dict[str, list[float]] = {"tilewright": [], "libxsmm": []}
    shares = []
    for _ in range(repeat):
        for system in random.sample(list(speeds), 2):
            if system == "libxsmm":
                seconds = harness.time_libxsmm(*sizes, calls)
            else:
                peak = measure_peak(F32, host_machine(), work * PEAK_SECONDS)
                seconds = harness.time_brgemm(address, *sizes, calls)
                shares.append(2 * m * n * k / seconds * 1e-9 / peak)
            speeds[system].append(2 * m * n * k / seconds * 1e-9)
    return median(speeds["tilewright"]), median(speeds["libxsmm"]), median(shares)


def main() -> None:
    """Prints a line a shape and the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--grid", action="store_true")
    options = parser.parse_args()
    groups = {"squares": SQUARES, "awkward": AWKWARD}
    work = WORK
    if options.sample:
        groups = {"grid sample": sample_grid(options.sample, options.seed)}
    if options.grid:
        groups, work = {"grid": tuple(grid())}, GRID_WORK
    with tempfile.TemporaryDirectory() as directory:
        harness = build(directory)
        print(f"LIBXSMM target {harness.target_arch().decode()}, tilewright row {host_machine().isa.name}")
        for name, shapes in groups.items():
            ratios, ours, theirs, shares = [], [], [], []
            for shape in shapes:
                tilewright, libxsmm, share = measure(harness, shape, options.repeat, work)
                ratios.append(tilewright / libxsmm)
                ours.append(tilewright)
                theirs.append(libxsmm)
                shares.append(share)
                if not (options.sample or options.grid):
                    size = "x".join(map(str, shape))
                    print(f"{size:14} {tilewright:7.1f} {libxsmm:7.1f} GFLOPS  {ratios[-1]:.2f}  {share:.1%}")
            mean = f"{np.mean(ours):.1f} and {np.mean(theirs):.1f} GFLOPS arithmetic mean"
            print(f"{name}: ratio {geometric_mean(ratios):.3f} (worst {min(ratios):.2f}), {mean}")
            arithmetic = np.mean(ours) / np.mean(theirs)
            print(f"  ratio of the means {arithmetic:.3f}; mean share of the peak {np.mean(shares):.3f}")


if __name__ == "__main__":
    main()
