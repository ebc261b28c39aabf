"""Products that are not large squares, beside NumPy and the bound of each: calls, batches, matrix-vector.

Single thread. Systems run in turn in random order on the same arrays, results are checked against float64
first; the table gives medians of ratios. ``torch.bmm`` joins where torch is installed. Run it with
``python benchmarks/shapes.py`` on a quiet machine.
"""

from __future__ import annotations

import argparse
import importlib.util
from timeit import Timer
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import tilewright as tw
from tilewright.machine.host import host_machine
from tilewright.tools.bench.bandwidth import MemoryProbe
from tilewright.tools.explore.statistics import median

#: Seconds of one measurement, filled by repeating short calls.
SECONDS = 2e-3

#: Calls before measuring: caches are warm, and shapes that recur have their kernel.
WARM_CALLS = 12_000


def timed(call: Timer, times: int) -> float:
    """Seconds of one call."""
    return call.timeit(times) / times


def compare(calls: dict[str, Timer], repeat: int) -> dict[str, float]:
    """Median seconds of each call, measured in turn in random order."""
    random = np.random.default_rng(0)
    times = {}
    for name, call in calls.items():
        times[name] = max(1, int(SECONDS / timed(call, 3)))
        timed(call, min(WARM_CALLS, 5 * times[name]))
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeat):
        for name in random.permutation(list(calls)):
            found[name].append(timed(calls[name], times[name]))
    return {name: median(seconds) for name, seconds in found.items()}


def arrays(*shape: int) -> np.ndarray[Any, Any]:
    """Random numbers in float32."""
    return np.random.default_rng(len(shape)).random(shape, dtype=np.float32)


def check(a: Any, b: Any) -> None:
    """That tilewright's product is right."""
    exact = np.matmul(a.astype(np.float64), b.astype(np.float64))
    np.testing.assert_allclose(tw.matmul(a, b), exact, rtol=1e-5 * a.shape[-1] ** 0.5)


def beside_numpy(a: Any, b: Any, out: Any) -> dict[str, Timer]:
    """The two calls of one product, as statements: a function around them would be timed too."""
    names = {"a": a, "b": b, "c": out}
    return {
        system: Timer("matmul(a, b, out=c)", globals={**names, "matmul": matmul})
        for system, matmul in (("tilewright", tw.matmul), ("numpy", np.matmul))
    }


def small_squares(repeat: int) -> None:
    """``matmul(a, b, out=c)`` of small squares."""
    print("matmul(a, b, out=c), f32              tilewright     NumPy   ratio")
    for n in (4, 8, 16, 32, 64):
        a, b, c = arrays(n, n), arrays(n, n), np.empty((n, n), np.float32)
        check(a, b)
        found = compare(beside_numpy(a, b, c), repeat)
        ours, theirs = found["tilewright"], found["numpy"]
        print(f"{n}x{n}x{n:<30} {ours * 1e9:8.0f} ns {theirs * 1e9:6.0f} ns {theirs / ours:7.2f}")


def batches(repeat: int) -> None:
    """Many small products in one call."""
    torch: Any = importlib.import_module("torch") if importlib.util.find_spec("torch") else None
    print("\none call, f32                         tilewright     NumPy   ratio   torch.bmm   ratio")
    for count, n in ((1000, 16), (1000, 4), (1000, 8), (1000, 32), (100, 16)):
        a, b, c = arrays(count, n, n), arrays(count, n, n), np.empty((count, n, n), np.float32)
        check(a, b)
        calls = beside_numpy(a, b, c)
        if torch is not None:
            torch.set_num_threads(1)
            left, right, out = (torch.from_numpy(array) for array in (a, b, c))
            names = {"a": left, "b": right, "c": out, "bmm": torch.bmm}
            calls["torch"] = Timer("bmm(a, b, out=c)", globals=names)
        found = compare(calls, repeat)
        ours, theirs = found["tilewright"], found["numpy"]
        line = f"{count} of {n}x{n}x{n}"
        print(f"{line:<34} {ours * 1e6:10.1f} us {theirs * 1e6:6.1f} us {theirs / ours:7.2f}", end="")
        print(f" {found['torch'] * 1e6:8.1f} us {found['torch'] / ours:7.2f}" if "torch" in found else "")


def vectors(n: int, repeat: int) -> None:
    """A matrix times a vector, from either side and in either layout, beside a plain read of the matrix."""
    a, x = arrays(n, n), arrays(n, 1)
    probe = MemoryProbe(host_machine(), a.nbytes)
    print(f"\nn = {n}, f32: GB/s of the matrix     tilewright   NumPy   ratio    read   share")
    cases = {
        "A @ x": (a, x),
        "A.T @ x": (a.T, x),
        "x.T @ A": (x.T, a),
        "x.T @ A.T": (x.T, a.T),
    }
    for name, (left, right) in cases.items():
        out = np.empty((left.shape[0], right.shape[1]), np.float32)
        check(left, right)

        calls = {**beside_numpy(left, right, out), "read": Timer(probe.read_seconds)}
        found = compare(calls, repeat)
        speeds = {system: a.nbytes / seconds * 1e-9 for system, seconds in found.items()}
        ratio, share = speeds["tilewright"] / speeds["numpy"], speeds["tilewright"] / speeds["read"]
        line = f"{name:<34} {speeds['tilewright']:12.1f} {speeds['numpy']:7.1f} {ratio:7.2f}"
        print(f"{line} {speeds['read']:7.1f} {share:7.2f}")


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--sides", default="4096,1024", help="sides of the matrices times a vector")
    options = parser.parse_args()
    print(f"{host_machine().cpu}, row {host_machine().isa.name}, NumPy {np.__version__}, one thread\n")
    with threadpool_limits(1):
        small_squares(options.repeat)
        batches(options.repeat)
        for side in options.sides.split(","):
            vectors(int(side), options.repeat)


if __name__ == "__main__":
    main()
