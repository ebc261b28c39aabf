"""Batch-reduce kernels beside LIBXSMM's, both in the same native loop, interleaved in random order.

Needs a C compiler and LIBXSMM (Debian: libxsmm-dev). Run ``python benchmarks/compare_libxsmm.py``;
``--sample N`` takes N shapes of the seed's grid instead of the awkward and the square ones.
"""

from __future__ import annotations

import argparse
import ctypes
import random
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from tilewright.explore.kernels import operands, sample_grid
from tilewright.explore.statistics import geometric_mean, median
from tilewright.machine.host import host_machine
from tilewright.runtime.compile import compile_problem
from tilewright.runtime.peak import measure_peak
from tilewright.spec.dtype import F32
from tilewright.spec.problem import BatchReduceGemm

SQUARES = tuple((n, n, n) for n in (16, 32, 48, 64, 96, 128))
AWKWARD = tuple((n, n, n) for n in (5, 13, 23, 100))
HARNESS = Path(__file__).with_name("libxsmm_harness.c")

#: Multiply-adds of one measurement: about 2 ms at the peak.
WORK = 1 << 28


def build(directory: str) -> ctypes.CDLL:
    """The harness as a shared library."""
    library = Path(directory) / "harness.so"
    command = ["cc", "-O2", "-shared", "-fPIC", str(HARNESS), "-o", str(library), "-lxsmm", "-lxsmmnoblas"]
    subprocess.run(command, check=True)
    found = ctypes.CDLL(str(library))
    found.time_libxsmm.restype = found.time_brgemm.restype = ctypes.c_double
    found.target_arch.restype = ctypes.c_char_p
    return found


def measure(harness: ctypes.CDLL, shape: tuple[int, int, int], repeat: int) -> tuple[float, float, float]:
    """Median GFLOPS of tilewright and LIBXSMM on one shape, and tilewright's share of the peak."""
    m, n, k = shape
    problem = BatchReduceGemm(m, n, k, 1)
    a, b, c = operands(problem, np.random.default_rng(0))
    sizes = (*map(ctypes.c_int, shape), *(ctypes.c_void_p(array.ctypes.data) for array in (a, b, c)))
    kernel = compile_problem(problem)
    address = ctypes.c_void_p(kernel.address)
    calls = ctypes.c_int64(max(10, WORK // (m * n * k)) if m * n * k > 64 else 1 << 20)
    speeds: dict[str, list[float]] = {"tilewright": [], "libxsmm": []}
    shares = []
    for _ in range(repeat):
        for system in random.sample(list(speeds), 2):
            if system == "libxsmm":
                seconds = harness.time_libxsmm(*sizes, calls)
            else:
                peak = measure_peak(F32, host_machine(), 2e-3)
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
    options = parser.parse_args()
    groups = {"squares": SQUARES, "awkward": AWKWARD}
    if options.sample:
        groups = {"grid sample": sample_grid(options.sample, options.seed)}
    with tempfile.TemporaryDirectory() as directory:
        harness = build(directory)
        print(f"LIBXSMM target {harness.target_arch().decode()}, tilewright row {host_machine().isa.name}")
        for name, shapes in groups.items():
            ratios, ours, theirs = [], [], []
            for shape in shapes:
                tilewright, libxsmm, share = measure(harness, shape, options.repeat)
                ratios.append(tilewright / libxsmm)
                ours.append(tilewright)
                theirs.append(libxsmm)
                if not options.sample:
                    size = "x".join(map(str, shape))
                    print(f"{size:14} {tilewright:7.1f} {libxsmm:7.1f} GFLOPS  {ratios[-1]:.2f}  {share:.1%}")
            mean = f"{np.mean(ours):.1f} and {np.mean(theirs):.1f} GFLOPS arithmetic mean"
            print(f"{name}: ratio {geometric_mean(ratios):.3f} (worst {min(ratios):.2f}), {mean}")


if __name__ == "__main__":
    main()
