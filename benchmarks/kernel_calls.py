"""What a kernel object costs: compiling it, linking it from the object cache, calling it natively.

Compiling and linking are timed in fresh processes that have compiled another kernel before, so that LLVM
is loaded; the call in one process, against a compiled loop over the same kernel. Run it with
``python benchmarks/kernel_calls.py`` on a quiet machine.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
from typing import NamedTuple

import numpy as np

import tilewright as tw
from tilewright.calls.batch import fixed_batch_function
from tilewright.calls.layout import native_entry_possible

PROCESSES = 9

#: Sides of the square kernels called.
SIDES = (1, 4, 8, 16, 32, 64)

COMPILE = """
import json, time
import tilewright as tw
from tilewright.compiler.pipeline import run_stages
tw.compile(tw.BatchReduceGemm(8, 8, 8)).address
problem = tw.BatchReduceGemm(64, 64, 64)
start = time.perf_counter()
kernel = tw.compile(problem)
made = time.perf_counter()
kernel.address
linked = time.perf_counter()
kernel.native
bound = time.perf_counter()
print(json.dumps({"tw.compile ms": (made - start) * 1e3, "link ms": (linked - made) * 1e3,
                  "first native ms": (bound - linked) * 1e3}))
"""

LINK = """
import json, time
import tilewright as tw
from tilewright.llvm.jit import Linked
from tilewright.llvm.object_cache import cached_object
first = tw.compile(tw.BatchReduceGemm(8, 8, 8))
first.address
kernel = tw.compile(tw.BatchReduceGemm(64, 64, 64))
compilation = kernel._compilation
what = f"{compilation.name} {compilation.problem!r} {compilation.blocking!r}"
def refuse():
    raise SystemExit("not in the cache")
start = time.perf_counter()
code = cached_object(what, kernel.machine, refuse)
read = time.perf_counter()
Linked(code, (kernel.symbol,), {}).address(kernel.symbol)
linked = time.perf_counter()
print(json.dumps({"read the object ms": (read - start) * 1e3, "link the object ms": (linked - read) * 1e3,
                  "both ms": (linked - start) * 1e3}))
"""


def medians(code: str, processes: int, *environment: str) -> dict[str, float]:
    """Runs a program in fresh processes; the median of each figure it prints."""
    runs = []
    for _ in range(processes):
        command = ["env", *environment, sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        runs.append(json.loads(done.stdout))
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


class Call(NamedTuple):
    """Medians in nanoseconds; the overhead is the median of differences taken next to each other."""

    bare: float
    overhead: float
    python: float


def measure_call(side: int, repeat: int = 41) -> Call:
    """Machine code in a compiled loop, ``kernel.native(a, b, c)`` beyond it, and ``kernel(a, b, c)``."""
    kernel = tw.compile(tw.BatchReduceGemm(side, side, side, a="row", b="row", c="row", beta=0))
    random = np.random.default_rng(0)
    a, b = random.random((2, side, side), np.float32)
    c = np.empty_like(a)
    pointers = [array.ctypes.data for array in (a, b, c)]
    run, address = fixed_batch_function(), kernel.address
    names = {"kernel": kernel, "a": a, "b": b, "c": c}
    native, empty, python = (
        timeit.Timer(text, globals=names) for text in ("kernel.native(a, b, c)", "pass", "kernel(a, b, c)")
    )
    number = 20_000 if side < 32 else 5_000
    bare, overheads, slow = [], [], []
    for _ in range(repeat):
        start = time.perf_counter()
        run(address, number, 0, 0, 0, *pointers, side, side, side, None)
        bare.append((time.perf_counter() - start) / number)
        overheads.append((native.timeit(number) - empty.timeit(number)) / number - bare[-1])
        slow.append(python.timeit(number // 100) / (number // 100))
    assert np.allclose(c, a @ b)
    return Call(*(statistics.median(seconds) * 1e9 for seconds in (bare, overheads, slow)))


def main() -> None:
    """Prints the figures."""
    for name, value in medians(COMPILE, PROCESSES, "TILEWRIGHT_CACHE=0").items():
        print(f"{'no cache':12} {name:24} {value:10.2f}")
    with tempfile.TemporaryDirectory() as directory:
        cached = f"TILEWRIGHT_CACHE_DIR={directory}/cache"
        medians(LINK.replace('raise SystemExit("not in the cache")', 'return b""'), 1, cached)
        for code in (LINK, COMPILE):
            for name, value in medians(code, PROCESSES, cached).items():
                print(f"{'warm cache':12} {name:24} {value:10.2f}")
    if not native_entry_possible():
        print("no native entry on this interpreter")
        return
    for side in SIDES:
        call = measure_call(side)
        print(
            f"{side:3}^3  machine code {call.bare:8.1f} ns   kernel.native +{call.overhead:5.1f} ns   "
            f"kernel {call.python:8.1f} ns"
        )


if __name__ == "__main__":
    main()
