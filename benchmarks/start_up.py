"""What a first use costs: import, first calls, a second shape, contraction by tables, calls, memory.

Each figure is taken in fresh processes: of first calls the minimum of several, of others the median. Run it
with ``python benchmarks/start_up.py`` on a quiet machine; the installed package should have its bytecode, as
pip leaves it.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator

PROCESSES = 9

#: The first call of a process, for each row: arrays, and the call.
FIRST_CALLS = {
    "matmul f32 300x200x100": ("a, b = array(300, 200), array(200, 100)", "tw.matmul(a, b)"),
    "matmul f64 300x200x100": (
        "a, b = array(300, 200, dtype='d'), array(200, 100, dtype='d')",
        "tw.matmul(a, b)",
    ),
    "linear with bias and GELU": (
        "x, w, bias = array(300, 200), array(100, 200), array(100)",
        "tw.linear(x, w, bias, 'gelu')",
    ),
    "attention f32, 4 heads, 128x64": (
        "q, k, v = (array(1, 4, 128, 64) for _ in range(3))",
        "tw.attention(q, k, v)",
    ),
}

#: Import and first call of a fresh process. NumPy, llvmlite and what they import are there before: they take
#: 0.2 s, and most programs have NumPy. Times are those of a clock, and of the CPU for all threads.
FRESH = """
import json, time
import numpy as np, numpy.random, llvmlite.binding
random = np.random.default_rng(0)
def array(*shape, dtype="f"):
    return random.random(shape, dtype)
{arrays}
clocks = time.perf_counter, time.process_time
start = [clock() for clock in clocks]
import tilewright as tw
imported = [clock() for clock in clocks]
{call}
done = [clock() for clock in clocks]
print(json.dumps({{
    "import": (imported[0] - start[0]) * 1e3, "import, CPU": (imported[1] - start[1]) * 1e3,
    "first call": (done[0] - imported[0]) * 1e3, "first call, CPU": (done[1] - imported[1]) * 1e3,
}}))
"""

#: A second shape after the first product: its time, and whether LLVM ran again.
SECOND = """
import json, time
import numpy as np, tilewright as tw
import tilewright.llvm.target as target
a, b = np.ones((300, 200), np.float32), np.ones((200, 100), np.float32)
tw.matmul(a, b)
compiled = []
original = target.emit_object
target.emit_object = lambda *arguments: compiled.append(1) or original(*arguments)
begin = time.perf_counter()
tw.matmul(a[:77], b[:, :55])
done = time.perf_counter()
print(json.dumps({"second_shape_us": (done - begin) * 1e6, "compiled_by_second_shape": len(compiled)}))
"""

TABLES = """
import json, time
import numpy as np, tilewright as tw
from tilewright.llvm.target import emit_object
from tilewright.machine.host import host_machine
from tilewright.compiler.pipeline import run_stages
from tilewright.ops.contraction.problem import table_contraction
machine = host_machine()
tw.matmul(np.ones((2, 2), np.float32), np.ones((2, 2), np.float32))
begin = time.perf_counter()
written = run_stages(table_contraction("f32"), machine, until="llvm")
middle = time.perf_counter()
emit_object(written.llvm, written.name, machine)
end = time.perf_counter()
print(json.dumps({"contraction_ir_ms": (middle - begin) * 1e3, "contraction_code_ms": (end - middle) * 1e3,
                  "contraction_ms": (end - begin) * 1e3}))
"""

SMALL = """
import json, timeit
import numpy as np, tilewright as tw
found = {}
for n in (4, 8, 16, 32, 64):
    random = np.random.default_rng(0)
    a, b = random.random((n, n), np.float32), random.random((n, n), np.float32)
    c = np.empty_like(a)
    tw.matmul(a, b, out=c)
    names = {"a": a, "b": b, "c": c, "tw": tw.matmul, "np": np.matmul}
    number = 20000 if n < 64 else 5000
    both = {"np": [], "tw": []}
    for _ in range(9):
        for system in both:
            seconds = timeit.timeit(f"{system}(a, b, out=c)", number=number, globals=names)
            both[system].append(seconds / number)
    numpy, ours = (sorted(both[system])[4] * 1e9 for system in ("np", "tw"))
    found |= {f"{n}^3 tilewright ns": ours, f"{n}^3 numpy ns": numpy, f"{n}^3 ratio": numpy / ours}
print(json.dumps(found))
"""

GROWTH = """
import json
import numpy as np, tilewright as tw
def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096
random = np.random.default_rng(0)
pool = random.random(400 * 400, np.float32)
out = np.empty(400 * 400, np.float32)
def product():
    m, n, k = random.integers(1, 400, 3)
    a, b = pool[:m * k].reshape(m, k), pool[:k * n].reshape(k, n)
    tw.matmul(a, b, out=out[:m * n].reshape(m, n))
for _ in range(200):
    product()
before = resident()
for _ in range(10000):
    product()
print(json.dumps({"growth_MiB": (resident() - before) / 2**20}))
"""


def runs_of(code: str, processes: int, *environment: str) -> Iterator[dict[str, float]]:
    """The figures that a program prints in each of some fresh processes."""
    for _ in range(processes):
        command = ["env", *environment, sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        yield json.loads(done.stdout)


def medians(code: str, processes: int, *environment: str) -> dict[str, float]:
    """Runs a program in fresh processes; the median of each figure it prints."""
    runs = list(runs_of(code, processes, *environment))
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def print_first_calls(cached: str, threads: int) -> None:
    """Prints the time of each first call, without the object cache and from it; minima of fresh processes."""
    names = ("first call", "first call, CPU", "import", "import, CPU")
    print(f"first calls in ms, {threads} threads, minimum of {PROCESSES}")
    print(f"{'':32}{'without cache':>24}{'from the cache':>24}{'import before':>24}")
    print(f"{'':32}" + f"{'clock':>14}{'CPU':>10}" * 3)
    for title, (arrays, call) in FIRST_CALLS.items():
        code = FRESH.format(arrays=arrays, call=call)
        setting = f"TILEWRIGHT_NUM_THREADS={threads}"
        list(runs_of(code, 1, cached, setting))  # fills the cache
        cold, warm = [], []
        for _ in range(PROCESSES):  # interleaved, so that other load meets both
            cold += runs_of(code, 1, "TILEWRIGHT_CACHE=0", setting)
            warm += runs_of(code, 1, cached, setting)
        found = [min(run[name] for run in runs) for runs in (cold, warm) for name in names[:2]]
        found += [min(run[name] for run in (*cold, *warm)) for name in names[2:]]
        print(f"{title:32}" + "".join(f"{found[at]:14.1f}{found[at + 1]:10.1f}" for at in (0, 2, 4)))
    print()


def main() -> None:
    """Prints the figures."""
    with tempfile.TemporaryDirectory() as directory:
        cached = f"TILEWRIGHT_CACHE_DIR={directory}/cache"
        for threads in dict.fromkeys((1, len(os.sched_getaffinity(0)))):
            print_first_calls(cached, threads)
        runs = (
            ("no cache", SECOND, PROCESSES, "TILEWRIGHT_CACHE=0"),
            ("no cache", TABLES, PROCESSES, "TILEWRIGHT_CACHE=0"),
            ("small", SMALL, 3, cached),
            ("10,000 shapes", GROWTH, 1, cached),
        )
        for title, code, processes, setting in runs:
            for name, value in medians(code, processes, setting).items():
                print(f"{title:14} {name:28} {value:10.2f}")


if __name__ == "__main__":
    main()
