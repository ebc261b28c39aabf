"""NumPy's `a @ b` under `tilewright.install` against NumPy alone and `tilewright.matmul`, in one process.

    python benchmarks/install.py --types fd --threads 1 [square|vectors|skewed|batches|names]

Each sample runs the three in turn, in changing order. Two ratios are given: the median of the samples', and
that of the fastest samples. Leave OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE unset, so that NumPy is at its best;
the first line says which kernels its BLAS has chosen. The last word says who computes under the installation.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import threadpoolctl

import tilewright as tw
from tilewright.installation.state import state

#: Seconds of one sample, at least.
SAMPLE = 0.0005


def operand(rng: np.random.Generator, shape: tuple[int, ...], letter: str) -> Any:
    found = rng.standard_normal(shape) * 4
    if letter in "FD":
        found = found + 1j * rng.standard_normal(shape)
    return found.astype(letter)


def products(kind: str, letter: str) -> Iterator[tuple[str, Callable[[], Any], Callable[[], Any]]]:
    """A name, the call of NumPy, and the same by this package."""
    rng = np.random.default_rng(0)

    def matmul(*shapes: tuple[int, ...], name: str) -> tuple[str, Callable[[], Any], Callable[[], Any]]:
        a, b = (operand(rng, shape, letter) for shape in shapes)
        return name, lambda: a @ b, lambda: tw.matmul(a, b)

    if kind == "square":
        for n in (2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048):
            yield matmul((n, n), (n, n), name=f"{n}")
    elif kind == "vectors":
        for n in (8, 32, 128, 512, 2048):
            yield matmul((n, n), (n,), name=f"{n}x{n} @ {n}")
            yield matmul((n,), (n, n), name=f"{n} @ {n}x{n}")
            yield matmul((n,), (n,), name=f"{n} @ {n}")
        for n, count in ((4, 15000), (16, 4000), (64, 1000), (256, 200)):
            x, y, a = (operand(rng, shape, letter) for shape in ((count, n), (n,), (n, n)))
            for name, first, second in (("vecdot", x, y), ("matvec", a, x), ("vecmat", x, a)):
                given = (first, second)
                calls = (partial(getattr(module, name), *given) for module in (np, tw))
                yield f"{name} {first.shape}, {second.shape}", *calls
    elif kind == "skewed":
        for m, k, n in (
            (2000, 16, 2000),
            (16, 2000, 2000),
            (2000, 2000, 16),
            (24, 2000, 24),
            (10000, 200, 8),
        ):
            yield matmul((m, k), (k, n), name=f"{m}x{k}x{n}")
    elif kind == "batches":
        for n in (2, 4, 8, 16, 32, 64):
            count = max(4, 40_000 // n**2)
            yield matmul((count, n, n), (count, n, n), name=f"{count} of {n}")
            yield matmul((count, n, n), (n, n), name=f"{count} of {n}, one B")
    else:
        a, b = operand(rng, (48, 30, 40), letter), operand(rng, (30, 40, 60), letter)
        m, n = operand(rng, (300, 200), letter), operand(rng, (200, 300), letter)
        small = operand(rng, (30, 30), letter)
        yield "tensordot", lambda: np.tensordot(a, b, 2), lambda: tw.tensordot(a, b, 2)
        yield "einsum", lambda: np.einsum("ij,jk->ik", m, n), lambda: tw.einsum("ij,jk->ik", m, n)
        yield "dot", lambda: np.dot(m, n), lambda: tw.matmul(m, n)
        yield "inner", lambda: np.inner(m, n.T), lambda: tw.inner(m, n.T)
        tiny = small[:8, :8]
        yield "dot 8", lambda: np.dot(tiny, tiny), lambda: tw.matmul(tiny, tiny)
        yield "kron", lambda: np.kron(small, small), lambda: tw.kron(small, small)


def sample(call: Callable[[], Any], count: int) -> float:
    for _ in range(1 + count // 4):  # what ran before has taken the caches
        call()
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begin) / count


def taken() -> int:
    return sum(one.repeated for one in tw.show_calls() if one.function.startswith("numpy."))


def switch(*, on: bool) -> None:
    """Installs or not; loops stay where they are, since exchanging them takes time and cache."""
    current = state()
    current.loops.table.enabled = int(on)
    current.names.uninstall()
    if on:
        current.names.install()


def measure(name: str, call: Callable[[], Any], ours: Callable[[], Any], samples: int) -> None:
    switch(on=True)
    call()
    before = taken()
    call()
    by_kernel = taken() > before
    ours()
    count = max(1, int(SAMPLE / max(sample(call, 3), 1e-7)))
    times: dict[str, list[float]] = {"installed": [], "numpy": [], "tilewright": []}
    for number in range(samples):
        for turn in range(3):
            what = list(times)[(number + turn) % 3]
            switch(on=what == "installed")
            times[what].append(sample(ours if what == "tilewright" else call, count))
    best = {what: min(found) * 1e6 for what, found in times.items()}
    ratios = {}
    for other in ("numpy", "tilewright"):
        pairs = zip(times[other], times["installed"], strict=True)
        ratios[other] = statistics.median(theirs / mine for theirs, mine in pairs)
    fastest = {other: best[other] / best["installed"] for other in ratios}
    texts = [f"{other} {ratios[other]:5.2f} (fastest {fastest[other]:5.2f})" for other in ratios]
    who = "taken" if by_kernel else "numpy"
    print(f"{name:>24} {best['installed']:>10.2f} us  {'  '.join(texts)}  {who}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinds", nargs="*", default=["square"])
    parser.add_argument("--types", default="f", help="letters of NumPy's types")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--samples", type=int, default=61)
    asked = parser.parse_args()
    blas = [one for one in threadpoolctl.threadpool_info() if one["user_api"] == "blas"]
    for one in blas:
        print(one["internal_api"], one.get("architecture"), one["version"], f"{asked.threads} threads")
    tw.install()
    tw.set_num_threads(asked.threads)
    threadpoolctl.threadpool_limits(asked.threads, "blas")
    for letter in asked.types:
        for kind in asked.kinds:
            print(f"{np.dtype(letter)}, {kind}: time under install, then that of others in units of it")
            for name, call, ours in products(kind, letter):
                measure(name, call, ours, asked.samples)


if __name__ == "__main__":
    main()
