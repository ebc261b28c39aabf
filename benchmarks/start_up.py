"""What a first use costs: import, first and second product, contraction by tables, calls, memory.

Each figure is taken in fresh processes; the table gives the median of several. Run it with
``python benchmarks/start_up.py`` on a quiet machine.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile

PROCESSES = 9

FRESH = """
import json, time
import numpy as np, llvmlite
start = time.perf_counter()
import tilewright as tw
imported = time.perf_counter()
random = np.random.default_rng(0)
a, b = random.random((300, 200), np.float32), random.random((200, 100), np.float32)
begin = time.perf_counter()
tw.matmul(a, b)
first = time.perf_counter()
import tilewright.llvm.target as target
compiled = []
original = target.emit_object
target.emit_object = lambda *arguments: compiled.append(1) or original(*arguments)
again = time.perf_counter()
tw.matmul(a[:77], b[:, :55])
second = time.perf_counter()
print(json.dumps({"import_ms": (imported - start) * 1e3, "first_call_ms": (first - begin) * 1e3,
                  "second_call_us": (second - again) * 1e6, "compiled_by_second_call": len(compiled)}))
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


def medians(code: str, processes: int, *environment: str) -> dict[str, float]:
    """Runs a program in fresh processes; the median of each figure it prints."""
    runs = []
    for _ in range(processes):
        command = ["env", *environment, sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        runs.append(json.loads(done.stdout))
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def main() -> None:
    """Prints the figures."""
    with tempfile.TemporaryDirectory() as directory:
        cached = f"TILEWRIGHT_CACHE_DIR={directory}/cache"
        runs = (
            ("no cache", FRESH, PROCESSES, "TILEWRIGHT_CACHE=0"),
            ("warm cache", FRESH, PROCESSES, cached),
            ("no cache", TABLES, PROCESSES, "TILEWRIGHT_CACHE=0"),
            ("small", SMALL, 3, cached),
            ("10,000 shapes", GROWTH, 1, cached),
        )
        for title, code, processes, setting in runs:
            for name, value in medians(code, processes, setting).items():
                print(f"{title:14} {name:28} {value:10.2f}")


if __name__ == "__main__":
    main()
