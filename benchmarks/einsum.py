"""One-liners of einsum beside `numpy.einsum`; what a repeated call takes, and a new one to compile.

One thread. Both run in turn in random order on the same arrays, results are checked against float64 first;
the table gives ratios of median times: above 1, NumPy takes longer. Batch axes (b, h) have the lengths of
`BATCH`, all others that of the column; "-" stands where operands or multiply-adds are too many. Run it with
``python benchmarks/einsum.py`` on a quiet machine; ``--dtypes float32,complex64`` measures others.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilewright as tw
from tilewright.machine.host import host_machine
from tilewright.tools.explore.rounds import compare_calls
from tilewright.tools.explore.statistics import geometric_mean, median

#: The one-liners that the project promises figures for, then others that people write.
PROMISED = (
    "ij,jk",
    "bij,bjk->bik",
    "bhqd,bhkd->bhqk",
    "ijk,kl->ijl",
    "ij->ji",
    "ii",
    "i,j->ij",
    "ij,ij->",
    "bij,bij->b",
)
OTHERS = (
    "ij->",
    "ij->i",
    "ij->j",
    "ijk->j",
    "ij,j->i",
    "ij,i->j",
    "i,i->",
    "ij,ij->ij",
    "ij,j->ij",
    "ij,ij->i",
    "ii->i",
)
SIZES = (8, 16, 32, 64, 128, 256, 512)
#: Lengths of batch axes beside the others.
BATCH = {"b": 4, "h": 4}
#: Bytes of an operand or a result, and multiply-adds: NumPy's loops take a second for the latter.
MOST_BYTES, MOST = 1 << 28, 1 << 30
#: Seconds of one measurement, filled by repeating short calls.
SECONDS = 1e-3
#: Roundings that a sum of n products may be off by, relative to the sum of their magnitudes.
ROUNDINGS = 32

#: Calls whose time is all overhead: two elements along each axis; the last takes the path through Python.
SMALLEST = ("ij->ji", "ii", "ij->", "i,j->ij", "ij,ij->", "ij,jk", "bij,bjk->bik", "ij,jk,kl->il")

#: New contractions in a process that has made a product; each is compiled with an empty cache.
NEW = ("ij,jk->ki", "ij->", "ij,ij->i", "i,j->ij", "aibj,bkal->ijkl")
_COLD = """
import time, sys, numpy as np, tilewright as tw
one = np.ones((8, 8), np.float32)
tw.matmul(one, one)
for text in sys.argv[1:]:
    terms = text.partition("->")[0].split(",")
    operands = [np.ones((16,) * len(term), np.float32) for term in terms]
    start = time.perf_counter()
    tw.einsum(text, *operands)
    print(1e3 * (time.perf_counter() - start))
"""

Array = NDArray[Any]


def operands(text: str, size: int, dtype: str) -> list[Array]:
    """Random arrays with the labels' lengths; integers of the whole range of a byte."""
    random = np.random.default_rng(0)
    found = []
    for term in text.partition("->")[0].split(","):
        values = random.standard_normal([BATCH.get(label, size) for label in term])
        if np.dtype(dtype).kind == "c":
            values = values + 1j * random.standard_normal(values.shape)
        found.append((values if np.dtype(dtype).kind in "fc" else 40 * values).astype(dtype))
    return found


def too_large(text: str, size: int, dtype: str) -> bool:
    """Whether a case is left out."""
    lengths = {label: BATCH.get(label, size) for label in text if label.isalpha()}
    terms = text.replace("->", ",").split(",")
    largest = max(prod(lengths[label] for label in term) for term in terms)
    return largest * np.dtype(dtype).itemsize > MOST_BYTES or prod(lengths.values()) > MOST


def check(text: str, given: list[Array]) -> None:
    """The result beside that in float64, within what roundings of its products explain."""
    found = tw.einsum(text, *given)
    if found.dtype.kind not in "fc":
        np.testing.assert_array_equal(found, np.einsum(text, *given))
        return
    wide = np.result_type(found.dtype, np.float64)
    exact = np.einsum(text, *(one.astype(wide) for one in given), optimize=True)
    magnitude = np.einsum(text, *(abs(one).astype(np.float64) for one in given), optimize=True)
    bound = ROUNDINGS * float(np.finfo(found.dtype).eps) * magnitude
    assert (abs(found - exact) <= bound).all(), text


def compare(calls: dict[str, Callable[[], Any]], repeat: int) -> dict[str, float]:
    """Median seconds of each call, measured in turn in random order."""
    return {name: median(times) for name, times in compare_calls(calls, repeat, SECONDS).items()}


def ratio(text: str, given: list[Array], repeat: int) -> tuple[float, float]:
    """NumPy's time by ours, and ours."""
    calls = {"tilewright": lambda: tw.einsum(text, *given), "numpy": lambda: np.einsum(text, *given)}
    found = compare(calls, repeat)
    return found["numpy"] / found["tilewright"], found["tilewright"]


def table(dtype: str, sizes: tuple[int, ...], repeat: int) -> None:
    """Ratios of every one-liner at every size."""
    print(f"\n{dtype:<18}" + "".join(f"{size:>8}" for size in sizes))
    ratios: dict[str, list[tuple[float, str]]] = {"promised": [], "all": []}
    for text in (*PROMISED, *OTHERS):
        line = f"{text:<18}"
        for size in sizes:
            if too_large(text, size, dtype):
                line += f"{'-':>8}"
                continue
            given = operands(text, size, dtype)
            check(text, given)
            found, _ = ratio(text, given, repeat)
            line += f"{found:8.2f}"
            for name in ("promised", "all") if text in PROMISED else ("all",):
                ratios[name].append((found, f"{text} at {size}"))
        print(line, flush=True)
    for name, found_ratios in ratios.items():
        worst, place = min(found_ratios)
        mean = geometric_mean([one for one, _ in found_ratios])
        print(f"{name}: geometric mean {mean:.2f}, worst {worst:.2f} ({place})")


def overhead(repeat: int) -> None:
    """Calls of the smallest operands."""
    print(f"\n{'repeated calls, two elements an axis':<38}{'ours':>8}{'numpy':>8}  us")
    for text in SMALLEST:
        terms = text.partition("->")[0].split(",")
        given = [np.ones((2,) * len(term), np.float32) for term in terms]
        found, ours = ratio(text, given, repeat)
        print(f"{text:<38}{ours * 1e6:8.2f}{found * ours * 1e6:8.2f}")


def cold() -> None:
    """First calls in a process of its own whose cache of compiled code is empty; Python's own is not."""
    command = [sys.executable, "-c", _COLD, *NEW]
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "TILEWRIGHT_CACHE_DIR": folder}
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    output = done.stdout
    print("\nnew contractions, nothing compiled before but a product (the first brings einsum itself)")
    for text, milliseconds in zip(NEW, output.split(), strict=True):
        print(f"{text:<38}{float(milliseconds):8.1f} ms")


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--dtypes", default="float32,float64")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    options = parser.parse_args()
    tw.set_num_threads(1)
    print(f"{host_machine().cpu}, row {host_machine().isa.name}, NumPy {np.__version__}, one thread")
    for dtype in options.dtypes.split(","):
        table(dtype, tuple(map(int, options.sizes.split(","))), options.repeat)
    overhead(options.repeat)
    cold()


if __name__ == "__main__":
    main()
