"""Kernels of linear algebra in C, through ``tilewright cc`` and through clang alone: results and speed.

The kernels are those of ``tests/recognise/sources/kernels.c``, after the suite PolyBench: f64, square arrays.
``python benchmarks/loops_programs.py`` prints a row for each: the shortest of several calls of both, in turn,
how far results are apart, and the geometric mean over the kernels in which something was replaced.
``--size N`` is the order of the arrays, ``--calls N`` how often each is called, ``--only NAME`` one kernel.
"""

from __future__ import annotations

import argparse
import ctypes
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tilewright.tools.explore.statistics import geometric_mean

SOURCE = Path(__file__).parents[1] / "tests" / "recognise" / "sources" / "kernels.c"
CLANG = next(filter(None, map(shutil.which, ("clang-19", "clang"))), "clang")
FLAGS = ("-O3", "-march=native", "-ffast-math", "-w", "-shared", "-fPIC")
#: Results that differ by more of the largest element than this are wrong.
TOLERANCE = 1e-10
#: Each kernel: its arrays (m: square, v: a row, t: 16x16 rows, d: square and well-conditioned), its numbers.
KERNELS = {
    "gemm": ("mmm", (1.5, 1.2)),
    "two_products": ("mmmmm", (1.5, 1.2)),
    "three_products": ("mmmmmmm", ()),
    "syrk": ("mm", (1.5, 1.2)),
    "syr2k": ("mmm", (1.5, 1.2)),
    "trmm": ("mm", (1.5,)),
    "symm": ("mmm", (1.5, 1.2)),
    "doitgen": ("vmt", ()),
    "gemver": ("vmvvvvvvv", (1.5, 1.2)),
    "atax": ("vmvv", ()),
    "bicg": ("vmvvv", ()),
    "mvt": ("vmvvv", ()),
    "gesummv": ("vmmvv", (1.5, 1.2)),
    "cholesky": ("d", ()),
    "lu": ("d", ()),
    "correlation": ("mmvv", (1000.0,)),
    "covariance": ("mmv", (1000.0,)),
    "gramschmidt": ("mmm", ()),
}


@dataclass(frozen=True)
class Row:
    """Shortest seconds of a kernel by clang and by Tilewright, the distance of results, what was replaced."""

    name: str
    clang: float
    tilewright: float
    error: float
    replaced: int


def compiled(driver: Sequence[str], size: int, library: Path) -> str:
    """Compile the kernels to a library; returns what was printed."""
    words = [*driver, CLANG, *FLAGS, f"-DN={size}", str(SOURCE), "-o", str(library), "-lm"]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return done.stdout + done.stderr


def operands(kinds: str, size: int) -> list[NDArray[np.float64]]:
    """The arrays of a call, the same each time."""
    random = np.random.default_rng(1)
    shapes = {"v": (size,), "t": (16, 16, size)}
    found = []
    for kind in kinds:
        array = random.uniform(0.1, 1.1, shapes.get(kind, (size, size)))
        found.append(array @ array.T + size * np.eye(size) if kind == "d" else array)
    return found


def call(library: ctypes.CDLL, name: str, size: int) -> tuple[list[NDArray[np.float64]], float]:
    """The arrays after a call, and its seconds."""
    kinds, numbers = KERNELS[name]
    arrays = operands(kinds, size)
    arguments = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    function = getattr(library, name)
    function.restype = None
    start = time.perf_counter()
    function(*arguments, ctypes.c_int(size), *map(ctypes.c_double, numbers))
    return arrays, time.perf_counter() - start


def measure(names: Sequence[str], size: int, calls: int) -> list[Row]:
    """Every kernel by both compilers, in turn."""
    with tempfile.TemporaryDirectory() as folder:
        plain, ours = Path(folder, "clang.so"), Path(folder, "tilewright.so")
        compiled((), size, plain)
        driver = (sys.executable, "-m", "tilewright", "cc", "--remarks", "-", "--")
        remarks = compiled(driver, size, ours).splitlines()
        libraries = ctypes.CDLL(str(plain)), ctypes.CDLL(str(ours))
        rows = []
        for name in names:
            seconds: tuple[list[float], list[float]] = [], []
            error = 0.0
            for _ in range(calls):
                results = []
                for library, own in zip(libraries, seconds, strict=True):
                    arrays, took = call(library, name, size)
                    own.append(took)
                    results.append(arrays)
                for one, other in zip(*results, strict=True):
                    error = max(error, float(np.abs(one - other).max() / np.abs(one).max()))
            count = sum(f"replaced {name}:" in line for line in remarks)
            rows.append(Row(name, min(seconds[0]), min(seconds[1]), error, count))
            print(shown(rows[-1]), flush=True)
    return rows


def shown(row: Row) -> str:
    """One line of the table."""
    verdict = "equal" if row.error <= TOLERANCE else "WRONG"
    times = f"{row.clang * 1e3:9.2f} ms {row.tilewright * 1e3:9.2f} ms {row.clang / row.tilewright:7.2f}x"
    return f"{row.name:15} {times}  {row.replaced} replaced, {verdict} ({row.error:.0e})"


def main() -> int:
    """Print the table; the exit status is 1 if a result is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--calls", type=int, default=5)
    parser.add_argument("--only", choices=KERNELS, action="append")
    options = parser.parse_args()
    print(f"{'':15} {'clang':>12} {'tilewright':>12}")
    rows = measure(options.only or list(KERNELS), options.size, options.calls)
    touched = [row.clang / row.tilewright for row in rows if row.replaced]
    if touched:
        print(f"{len(touched)} of {len(rows)} touched, geometric mean {geometric_mean(touched):.2f}x")
    return int(any(row.error > TOLERANCE for row in rows))


if __name__ == "__main__":
    sys.exit(main())
