"""What threads cost and gain: fork and join, speed-ups, many callers, a quota of one core.

Ways of calling run in turn in random order on the same arrays; the table gives medians of ratios. Run it with
``python benchmarks/threads.py`` on a quiet machine.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import threading
import time
from functools import partial

import numpy as np
from numpy.typing import NDArray

import tilewright as tw
from tilewright.llvm.build import Module
from tilewright.llvm.jit import Linked
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT64, POINTER, VOID
from tilewright.machine.host import host_machine
from tilewright.threads.pool import ThreadPool, thread_pool
from tilewright.tools.explore.rounds import compare_calls
from tilewright.tools.explore.statistics import median

Array = NDArray[np.float32]

#: Seconds of one measurement, filled by repeating short calls.
SECONDS = 5e-3

#: Sizes of square products, and what two threads are to gain.
GAINS = {128: 1.2, 256: 1.6, 512: 1.8, 1024: 1.9, 2048: 1.9, 4096: 1.9}

CALLERS, SIDE = 8, 256


def fork_and_join(threads: int) -> tuple[float, float]:
    """Microseconds of a run of as many empty tasks as threads: workers poll, and workers sleep."""
    machine = host_machine()
    module = Module("empty", machine.triple, data_layout(machine))
    module.define("empty", VOID, [("env", POINTER), ("thread", INT64), ("task", INT64)], exported=True).ret()
    code = Linked(emit_object(str(module), "empty", machine), ("empty",), {})
    pool = ThreadPool(threads, os.cpu_count() or 1)
    hot, cold = [], []
    with pool.team() as team:
        run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(
            ctypes.c_void_p.from_address(team).value
        )

        def seconds() -> float:
            pool.state.alone_until = 0
            begin = time.perf_counter()
            run(team, code.address("empty"), None, threads)
            return time.perf_counter() - begin

        seconds()
        for _ in range(300):
            time.sleep(0.002)
            cold.append(seconds())
            hot += [seconds() for _ in range(10)]
    pool.resize(1)
    with pool.team() as alone:
        begin = time.perf_counter()
        for _ in range(1000):
            run(alone, code.address("empty"), None, 1)
        call = (time.perf_counter() - begin) / 1000
    return (median(hot) - call) * 1e6, (median(cold) - call) * 1e6


def product_on(threads: int, a: Array, b: Array, out: Array) -> None:
    """A product on so many threads."""
    if tw.get_num_threads() != threads:
        tw.set_num_threads(threads)
    tw.matmul(a, b, out=out)


def gains(sizes: list[int], threads: int, repeat: int) -> None:
    """Products on several threads beside the same on one."""
    random = np.random.default_rng(0)
    for size in sizes:
        a, b = (random.random((size, size), np.float32) for _ in range(2))
        out = np.empty_like(a)
        calls = {str(count): partial(product_on, count, a, b, out) for count in (1, threads)}
        taken = compare_calls(calls, repeat, SECONDS)
        several = taken[str(threads)]
        ratios = [alone / together for alone, together in zip(taken["1"], several, strict=True)]
        print(
            f"n = {size:5}: {threads} threads / 1 = {median(ratios):5.2f}"
            f"   (asked {GAINS.get(size, 1):.1f}), {2 * size**3 / median(several) * 1e-9:6.0f} GFLOPS",
            flush=True,
        )
    tw.set_num_threads(threads)


def throughput(callers: int, seconds: float) -> float:
    """Products a second of so many threads of the application together."""
    a = np.random.default_rng(0).random((SIDE, SIDE), np.float32)
    done = [0] * callers
    stop = threading.Event()

    def work(number: int) -> None:
        out = np.empty_like(a)
        while not stop.is_set():
            tw.matmul(a, a, out=out)
            done[number] += 1

    workers = [threading.Thread(target=work, args=(number,)) for number in range(callers)]
    begin = time.perf_counter()
    for worker in workers:
        worker.start()
    time.sleep(seconds)
    stop.set()
    for worker in workers:
        worker.join()
    return sum(done) / (time.perf_counter() - begin)


QUOTA = """
import json, time, numpy as np, tilewright as tw
a = np.random.default_rng(0).random((512, 512), np.float32)
out = np.empty_like(a)
tw.matmul(a, a, out=out), tw.matmul(a, a, out=out)
begin = time.perf_counter()
for _ in range(40):
    tw.matmul(a, a, out=out)
print(json.dumps([time.perf_counter() - begin, tw.get_num_threads()]))
"""


def quota(repeat: int) -> None:
    """A process with a quota of one core, beside one whose pool has one thread."""
    settings = {"quota": {"TILEWRIGHT_CPU_QUOTA": "1"}, "pool of 1": {"TILEWRIGHT_NUM_THREADS": "1"}}
    found: dict[str, list[float]] = {name: [] for name in settings}
    for _ in range(repeat):
        for name, setting in settings.items():
            done = subprocess.run(
                [sys.executable, "-c", QUOTA], env=os.environ | setting, capture_output=True, check=True
            )
            seconds, threads = json.loads(done.stdout)
            assert threads == 1
            found[name].append(seconds)
    slower = median([one / other for one, other in zip(*found.values(), strict=True)])
    print(f"quota of one core / pool of 1 = {slower:.3f}   (asked at most 1.05)")


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="128,256,512,1024,2048,4096")
    parser.add_argument("--threads", type=int, default=thread_pool().size)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement of many callers")
    options = parser.parse_args()
    polling, asleep = fork_and_join(options.threads)
    print(f"fork and join of {options.threads} threads: {polling:.2f} us polling, {asleep:.2f} us from sleep")
    gains([int(size) for size in options.sizes.split(",")], options.threads, options.repeat)
    ratios = []
    for _ in range(3):
        one, many = throughput(1, options.seconds), throughput(CALLERS, options.seconds)
        ratios.append(many / one)
    print(f"{CALLERS} callers of {SIDE} cubed / 1 = {median(ratios):.2f}   (asked 0.9)")
    quota(max(3, options.repeat // 4))


if __name__ == "__main__":
    main()
