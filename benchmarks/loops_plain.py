"""Eleven plain products in C, each in three orders of the loops: clang, `tilewright cc`, and a call of BLAS.

The nests are those of ``tests/recognise/plain_nests.py``; one thread. ``python benchmarks/loops_plain.py``
prints a row for each nest and size: for each system the shortest of several calls, in turn and in random
order, of `--calls` for those that take less than a second, of one for the others; then the worst ratios.
BLAS is the OpenBLAS of NumPy's wheel, which chooses its kernels by the CPU. ``--sizes 352,1000`` are the
orders of the square matrices (the nest of fixed size has its own); ``--only NAME`` takes one nest.
"""

from __future__ import annotations

import argparse
import ctypes
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.tools.explore.rounds import call_seconds
from tilewright.tools.explore.statistics import geometric_mean

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from recognise.plain_nests import ORDERS, PLAIN_NESTS, PlainNest, c_source

Array = NDArray[Any]
CLANG = next(filter(None, map(shutil.which, ("clang-19", "clang"))), "clang")
FLAGS = ("-O3", "-march=native", "-ffast-math", "-w", "-shared", "-fPIC")
#: A call that takes longer is measured once.
LONG_SECONDS = 1.0
#: Shorter calls are repeated for so long.
REPEATED_SECONDS = 0.02
ROW_MAJOR, PLAIN, TRANSPOSED = 101, 111, 112
SYSTEMS = ("clang", "tilewright", "BLAS")


@dataclass(frozen=True)
class Row:
    """Shortest seconds of a nest by each system; None where BLAS has no such product."""

    name: str
    size: int
    seconds: tuple[float, float, float | None]
    replaced: bool

    @property
    def ratios(self) -> tuple[float, float | None]:
        """Times of clang and of BLAS over ours."""
        clang, ours, blas = self.seconds
        return clang / ours, None if blas is None else blas / ours


def compiled(driver: Sequence[str], folder: Path, stem: str) -> tuple[ctypes.CDLL, str]:
    """The library of all nests, and what was printed."""
    source, library = folder / "nests.c", folder / f"{stem}.so"
    source.write_text("\n".join(c_source(nest, order) for nest in PLAIN_NESTS for order in ORDERS))
    words = [*driver, CLANG, *FLAGS, str(source), "-o", str(library), "-lm"]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return ctypes.CDLL(str(library)), done.stdout + done.stderr


@cache
def blas_function(letter: str) -> Any:
    """`cblas_sgemm` or `cblas_dgemm` of NumPy's wheel, with 64-bit integers."""
    folder = Path(np.__file__).parent.parent / "numpy.libs"
    library = ctypes.CDLL(str(next(folder.glob("*openblas*"))))
    library.scipy_openblas_set_num_threads64_(1)
    return getattr(library, f"scipy_cblas_{letter}gemm64_")


def blas_call(
    nest: PlainNest, arrays: Sequence[Array], size: int, alpha: float
) -> Callable[[], object] | None:
    """A call of BLAS on the same arrays, C of which is by rows: by columns, factors change places."""
    if nest.element == "int":
        return None
    real = ctypes.c_float if nest.element == "float" else ctypes.c_double
    c, a, b = (ctypes.c_void_p(array.ctypes.data) for array in arrays)
    turns = [TRANSPOSED if name in nest.transposed else PLAIN for name in "ab"]
    if "c" in nest.transposed:
        a, b = b, a
        turns = [PLAIN if turn == TRANSPOSED else TRANSPOSED for turn in reversed(turns)]
    n = ctypes.c_int64(size)
    function = blas_function("s" if nest.element == "float" else "d")
    words = (ROW_MAJOR, *turns, n, n, n, real(alpha if nest.scaled else 1), a, n, b, n, real(1), c, n)
    return lambda: function(*words)


def nest_call(
    library: ctypes.CDLL, nest: PlainNest, order: str, arrays: Sequence[Array], size: int, alpha: float
) -> Callable[[], object]:
    """A call of one compiler's nest."""
    function = getattr(library, f"{nest.name}_{order}")
    function.restype = None
    index = {"int": ctypes.c_int, "long": ctypes.c_long, "unsigned long": ctypes.c_ulong}[nest.index](size)
    number: Any = {"float": ctypes.c_float, "double": ctypes.c_double, "int": lambda x: ctypes.c_int(int(x))}
    words = [*(ctypes.c_void_p(array.ctypes.data) for array in arrays), index, index, index]
    return lambda: function(*words, number[nest.element](alpha))


def operands(nest: PlainNest, size: int) -> list[Array]:
    """C, A and B, small integers: sums are exact in every type and order."""
    draws = np.random.default_rng(0)
    return [draws.integers(-2, 3, (size, size)).astype(nest.dtype) for _ in range(3)]


def shortest(call: Callable[[], object], first: float, calls: int) -> Iterator[float]:
    """Seconds of a call, beginning with those of its first one."""
    yield first
    if first <= LONG_SECONDS:
        for _ in range(calls):
            yield call_seconds(call, max(1, int(REPEATED_SECONDS / first)))


def measure(
    nest: PlainNest,
    order: str,
    size: int,
    libraries: Sequence[ctypes.CDLL],
    remarks: str,
    calls: int,
    draws: random.Random,
) -> Row:
    """One nest by all systems."""
    alpha = 2.0
    arrays = operands(nest, size)
    systems: list[Callable[[], object] | None] = [
        nest_call(library, nest, order, arrays, size, alpha) for library in libraries
    ]
    systems.append(blas_call(nest, arrays, size, alpha))
    results, firsts = [], []
    for system in systems:
        if system is None:
            continue
        arrays[0][...] = operands(nest, size)[0]
        start = time.perf_counter()
        system()
        firsts.append(time.perf_counter() - start)
        results.append(arrays[0].copy())
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0], f"{nest.name} {order} {size}")
    running = [
        shortest(system, first, calls) for system, first in zip(filter(None, systems), firsts, strict=True)
    ]
    found: list[list[float]] = [[] for _ in running]
    left = list(range(len(running)))
    while left:
        for number in draws.sample(left, len(left)):
            seconds = next(running[number], None)
            if seconds is None:
                left.remove(number)
            else:
                found[number].append(seconds)
    best = [min(times) for times in found]
    three = (best[0], best[1], best[2] if len(best) > 2 else None)
    return Row(f"{nest.name} {order}", size, three, f"replaced {nest.name}_{order}:" in remarks)


def shown(row: Row) -> str:
    """One line of the table."""
    times = "".join("          --  " if one is None else f"{one * 1e3:12.2f}  " for one in row.seconds)
    ratios = "".join("       --" if one is None else f"{one:9.2f}" for one in row.ratios)
    return f"{row.name:24} {row.size:5} {times}{ratios}  {'' if row.replaced else 'not replaced'}"


def main() -> int:
    """Print the table; the exit status is 1 if a nest was not replaced."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="352,1000")
    parser.add_argument("--calls", type=int, default=5)
    parser.add_argument("--only", choices=[nest.name for nest in PLAIN_NESTS], action="append")
    options = parser.parse_args()
    draws = random.Random(0)
    rows = []
    head = "".join(f"{system + ' ms':>14}" for system in SYSTEMS)
    print(f"{'':24} {'n':>5} {head}  clang/us  BLAS/us")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain, _ = compiled((), folder, "clang")
        driver = (sys.executable, "-m", "tilewright", "cc", "--remarks", "-", "--")
        ours, remarks = compiled(driver, folder, "tilewright")
        for nest in PLAIN_NESTS:
            if options.only and nest.name not in options.only:
                continue
            for size in [nest.fixed] if nest.fixed else map(int, options.sizes.split(",")):
                for order in ORDERS:
                    rows.append(measure(nest, order, size, (plain, ours), remarks, options.calls, draws))
                    print(shown(rows[-1]), flush=True)
    for system, number in (("clang", 0), ("BLAS", 1)):
        found = [ratio for row in rows if (ratio := row.ratios[number]) is not None]
        if found:
            print(f"over {system}: worst {min(found):.2f}, geometric mean {geometric_mean(found):.2f}")
    return int(not all(row.replaced for row in rows))


if __name__ == "__main__":
    sys.exit(main())
