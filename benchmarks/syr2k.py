"""syr2k, syrk and trmm beside SciPy's BLAS and beside whole products.

One thread. The systems of a case run in turn in random order, results are checked against float64 first; the
table gives medians: GFLOPS, the share of the multiply-add peak measured beside each case, and how many times
longer SciPy, whole products of this package and those of NumPy take. SciPy gets matrices in Fortran order, so
that it copies none, and writes over the result where its function may. Run it with
``python benchmarks/syr2k.py`` on a quiet machine; SciPy has to be installed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy
from scipy.linalg import blas
from threadpoolctl import threadpool_limits

import tilewright as tw
from tilewright.compiler.peak import measure_peak
from tilewright.machine.host import host_machine
from tilewright.spec.dtype import parse_dtype
from tilewright.tools.explore.rounds import median_seconds
from tilewright.tools.explore.statistics import geometric_mean

#: SciPy's functions begin with the letter of their element type.
LETTERS = {"f4": "s", "f8": "d", "c8": "c", "c16": "z"}
#: Asked of syr2k in float32 at these sizes: SciPy's time over ours.
ASKED, ASKED_SIZES = 1.5, (1024, 2048)
#: The largest relative difference from float64, times the square root of the depth.
TOLERANCE = {"f4": 1e-6, "c8": 1e-6, "f8": 1e-14, "c16": 1e-14}

Call = Callable[[], Any]


class Case(NamedTuple):
    """One function on matrices of some size: every system's call, and what the first one must give."""

    name: str
    calls: dict[str, Call]
    flops: int
    exact: Any


def matrices(n: int, dtype: str, count: int) -> list[Any]:
    """Square matrices of normal variates."""
    random = np.random.default_rng(n)
    found = [random.standard_normal((n, n)) for _ in range(count)]
    if dtype.startswith("c"):
        found = [matrix + 1j * random.standard_normal((n, n)) for matrix in found]
    return [matrix.astype(dtype) for matrix in found]


def cases(n: int, dtype: str) -> Iterator[Case]:
    """Every function on n x n matrices."""
    a, b, c = matrices(n, dtype, 3)
    a_col, b_col, c_col = (np.asfortranarray(matrix) for matrix in (a, b, c))
    whole, product = np.zeros_like(c), np.zeros_like(c)
    letter, factor = LETTERS[dtype], 4 if dtype.startswith("c") else 1
    wide = [matrix.astype("c16" if dtype.startswith("c") else "f8") for matrix in (a, b)]

    def products() -> None:
        tw.matmul(a, b.T, whole)
        tw.matmul(b, a.T, whole, beta=1)

    def numpy_products() -> None:
        np.matmul(a, b.T, out=whole)
        np.matmul(b, a.T, out=product)
        np.add(whole, product, out=whole)

    syr2k, syrk, trmm = (getattr(blas, letter + name) for name in ("syr2k", "syrk", "trmm"))
    both = wide[0] @ wide[1].T
    yield Case(
        "syr2k",
        {
            "tilewright": lambda: tw.syr2k(a, b, c),
            "SciPy": lambda: syr2k(1.0, a_col, b_col, c=c_col, lower=1, overwrite_c=1),
            "matmul": products,
            "NumPy": numpy_products,
        },
        2 * factor * n * n * (n + 1),
        (np.tril(both + both.T), np.tri(n, dtype=bool)),
    )
    yield Case(
        "syrk",
        {
            "tilewright": lambda: tw.syrk(a, c),
            "SciPy": lambda: syrk(1.0, a_col, c=c_col, lower=1, overwrite_c=1),
            "matmul": lambda: tw.matmul(a, a.T, whole),
            "NumPy": lambda: np.matmul(a, a.T, out=whole),
        },
        factor * n * n * (n + 1),
        (np.tril(wide[0] @ wide[0].T), np.tri(n, dtype=bool)),
    )
    triangle = np.tril(a)
    for side in ("left", "right"):
        left = side == "left"
        exact = np.tril(wide[0]) @ wide[1] if left else wide[1] @ np.tril(wide[0])
        yield Case(
            f"trmm, {side}",
            {
                "tilewright": lambda side=side: tw.trmm(a, b, c, side=side),
                # Not over b: repeated, the result would overflow.
                "SciPy": lambda left=left: trmm(1.0, a_col, b_col, side=0 if left else 1, lower=1),
                "matmul": lambda left=left: tw.matmul(*((triangle, b) if left else (b, triangle)), whole),
                "NumPy": lambda left=left: np.matmul(*((triangle, b) if left else (b, triangle)), out=whole),
            },
            factor * n * n * (n + 1),
            (exact, np.ones((n, n), bool)),
        )


def check(case: Case, dtype: str) -> None:
    """Compares the results of this package and of SciPy with float64."""
    exact, inside = case.exact
    for system in ("tilewright", "SciPy"):
        found = case.calls[system]()
        error = np.abs(found - exact)[inside].max() / np.abs(exact).max()
        assert error <= TOLERANCE[dtype] * np.sqrt(len(exact)), (case.name, system, error)


def table(sizes: list[int], dtype: str, repeat: int) -> None:
    """Every function and size of one element type."""
    unit = parse_dtype(dtype).real
    print(f"\n{dtype:<12}     n    GFLOPS  share   SciPy  matmul   NumPy")
    against = []
    for n in sizes:
        for case in cases(n, dtype):
            check(case, dtype)
            peak = measure_peak(unit, host_machine())
            found = median_seconds(case.calls, repeat)
            ours, *others = found.values()
            rate = case.flops / ours * 1e-9
            ratios = [other / ours for other in others]
            against.append(ratios[0])
            asked = case.name == "syr2k" and dtype == "f4" and n in ASKED_SIZES
            note = f"   asked {ASKED} of SciPy" if asked else ""
            shown = " ".join(f"{ratio:7.2f}" for ratio in ratios)
            print(f"{case.name:<12} {n:5} {rate:9.1f} {rate / peak:6.2f} {shown}{note}")
    print(f"SciPy's time over ours: geometric mean {geometric_mean(against):.2f}, worst {min(against):.2f}")


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--sizes", default="64,256,1024,2048")
    parser.add_argument("--dtypes", default="f4,f8,c8")
    options = parser.parse_args()
    tw.set_num_threads(1)
    print(f"{host_machine().cpu}, row {host_machine().isa.name}, SciPy {scipy.__version__}, one thread")
    with threadpool_limits(1):
        for dtype in options.dtypes.split(","):
            table([int(size) for size in options.sizes.split(",")], dtype, options.repeat)


if __name__ == "__main__":
    main()
