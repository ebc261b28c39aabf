"""Many callers, interrupts, and what stays behind: threads, Ctrl-C, memory, compiled code."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from first_calls import ARRAYS, third
from support import Array, filled, run_python
from tiers import sampled

import tilewright as tw
from tilewright.llvm.quick import quick_code
from tilewright.llvm.target import compilations
from tilewright.ops.gemm.kernel import GemmKernel
from tilewright.threads import scratch

THREADS = 24
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

#: Shapes of the threads: below and above the size at which the entry releases the GIL, and a batch.
SHAPES = [((9, 7), (7, 5)), ((70, 90), (90, 110)), ((300, 400), (400, 330)), ((3, 20, 30), (30, 40))]


def work(number: int, barrier: threading.Barrier) -> int:
    """Products of one thread, natively and through Python; the number of wrong ones."""
    shape_a, shape_b = SHAPES[number % len(SHAPES)]
    dtype = (np.float32, np.float64)[number // len(SHAPES) % 2]
    a, b = filled(shape_a, dtype, number), filled(shape_b, dtype, number + 1)
    b = np.array(b, order="F")  # its columns are not adjacent, so that it is packed into scratch
    expected = a @ b
    out = np.empty_like(expected)
    barrier.wait()
    wrong = 0
    for turn in range(30):
        out[...] = np.nan
        if turn % 3 == 0:
            tw.matmul(a, b, out=out)
        elif turn % 3 == 1:
            out = tw.matmul(a, b)
        else:
            out[...] = 1
            tw.matmul(a, b, out=out, alpha=2, beta=-1)
            out = (out + 1) / 2
        wrong += not np.array_equal(out, expected)
    return wrong


def test_many_threads() -> None:
    barrier = threading.Barrier(THREADS)
    with ThreadPoolExecutor(THREADS) as pool:
        wrong = list(pool.map(lambda number: work(number, barrier), range(THREADS)))
    assert wrong == [0] * THREADS


FIRST_CALLS = """
import threading, numpy as np, tilewright as tw
from support import filled
barrier, wrong = threading.Barrier(24), []
def work(number):
    dtype = (np.float32, np.float64)[number % 2]
    a, b = filled((40 + number, 90), dtype, number), filled((90, 70), dtype, 1)
    barrier.wait()
    for _ in range(5):
        wrong.append(not np.array_equal(tw.matmul(a, b), a @ b))
threads = [threading.Thread(target=work, args=(number,)) for number in range(24)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert len(wrong) == 120 and not any(wrong)
"""


def test_the_first_calls_of_many_threads() -> None:
    """Compilation, the exchange of the entry's code and the first scratch, all at once."""
    run_python("-c", FIRST_CALLS)


EVERY_FUNCTION = (
    ARRAYS
    + """
sys.setswitchinterval(1e-5)
for function in functions:
    barrier, done = threading.Barrier(6), []
    def work():
        barrier.wait()
        for _ in range(2):
            function()
        done.append(1)
    threads = [threading.Thread(target=work) for _ in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(done) == 6
"""
)


@pytest.mark.parametrize("number", sampled(range(3), 3, 2))
def test_the_first_calls_of_every_function(number: int) -> None:
    """What threads make at the same time is made once, and no thread keeps an address of what is freed."""
    run_python("-c", EVERY_FUNCTION, *third(number))


FIRST_NATIVES = """
import gc, threading, numpy as np, tilewright as tw
barrier = threading.Barrier(6)
kernels = [tw.compile(tw.Gemm(8, 8, 8 + number)) for number in range(6)]
natives = [None] * 6
def work(number):
    barrier.wait()
    natives[number] = kernels[number].native
threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
del kernels
gc.collect()
others = [tw.compile(tw.Gemm(8, 9, 8 + number)).native for number in range(6)]  # in place of what is freed
for number, native in enumerate(natives):
    a, b = np.ones((8, 8 + number), np.float32), np.ones((8 + number, 8), np.float32)
    assert (native(a, b, np.empty((8, 8), np.float32)) == 8 + number).all()
"""


def test_the_first_natives_of_many_threads() -> None:
    run_python("-c", FIRST_NATIVES)


def test_a_builtin_keeps_its_code() -> None:
    """Whoever drops the kernel in one thread does not pull the code from under another."""
    kernel = tw.compile(tw.BatchReduceGemm(8, 8, 8, 1, a="row", b="row", c="row", beta=0))
    code, native = weakref.ref(kernel._code), kernel.native
    del kernel
    gc.collect()
    x = np.ones((8, 8), np.float32)
    assert code() is not None
    assert (native(x, x, np.empty_like(x)) == 8).all()
    del native
    gc.collect()
    assert code() is None


def test_a_function_keeps_its_code() -> None:
    kernel = tw.compile(tw.Gemm(m=4, n=4, k=4, strategy="tiling"))
    code, function = weakref.ref(kernel._code), kernel.function
    del kernel
    gc.collect()
    assert code() is not None
    del function
    gc.collect()
    assert code() is None


def test_blocks_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Native calls at the same time get separate scratch, and as many blocks as there were calls."""
    pool = scratch.ScratchPool(4096)
    pool.supply()
    assert pool.table.count == 1
    pool.table.wanted = 3
    pool.supply()
    assert (pool.table.count, pool.table.wanted) == (2, 0)
    monkeypatch.setattr(scratch, "SLOTS", 2)
    pool.table.wanted = 1
    pool.supply()
    assert pool.table.count == 2
    with pool.block() as first, pool.block() as second:
        taken = {first, second, *pool.table.slots[: pool.table.count]}
    assert len(taken) == 4
    assert all(address % scratch.HUGE_PAGE == 0 for address in taken)
    with pool.block() as again:
        assert again in (first, second)


INTERRUPT = """
import os, signal, sys, threading, numpy as np, tilewright as tw
from support import filled
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits that it is ignored
a, through_python = filled((2500, 2500)), sys.argv[1] == "python"
options = {"alpha": 2} if through_python else {}
tw.matmul(a[:9, :9], a[:9, :9])
for turn in range(2):
    started = threading.Event()
    def interrupt():
        started.wait()
        threading.Event().wait(0.02)
        os.kill(os.getpid(), signal.SIGINT)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        started.set()
        while True:
            tw.matmul(a, a, **options)
    except KeyboardInterrupt:
        thread.join()
    else:
        raise SystemExit("no KeyboardInterrupt")
    b, c = filled((300, 200)), filled((200, 100))
    assert np.array_equal(tw.matmul(b, c), b @ c)
    assert np.array_equal(tw.matmul(b, c, alpha=2), 2 * (b @ c))
print("usable")
"""


@pytest.mark.parametrize("path", ["native", "python"])
@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_interrupt(path: str) -> None:
    """Ctrl-C during a long product raises KeyboardInterrupt when it ends, and nothing is broken."""
    assert "usable" in run_python("-c", INTERRUPT, path)


RESIDENT = """
import gc, random, numpy as np, tilewright as tw
PAGE = __import__("resource").getpagesize()
def resident():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * PAGE
random.seed(1)
pool = np.ones(200 * 200, np.float32), np.ones(200 * 200)
seen = set()
def calls(count):
    for number in range(count):
        m, n, k = (random.randint(1, 100) for _ in range(3))
        source = pool[number % 2]
        a, b = source[: m * k].reshape(m, k), source[: k * n].reshape(k, n)
        tw.matmul(a, b) if number % 3 else tw.matmul(a, b, alpha=2)
        seen.add((m, n, k))
a = pool[0].reshape(200, 200)
for big in (a, a.astype(float)):
    tw.matmul(big, big), tw.matmul(big.T, big.T), tw.matmul(big, big, alpha=2)
calls(300)
before = resident()
calls(10_000)
print(len(seen), resident() - before)
"""


@linux_only
def test_memory_does_not_grow() -> None:
    shapes, growth = map(int, run_python("-c", RESIDENT).split())
    assert shapes > 9000
    assert growth < 5 * 2**20


# --- compiled code --------------------------------------------------------------------------------


@pytest.mark.usefixtures("uncached")
def test_a_second_call_compiles_nothing() -> None:
    def calls(size: int) -> None:
        for dtype in (np.float32, np.float64):
            a = np.ones((size, size + 1), dtype)
            for left, right in ((a, a.T), (a.T, a), (a[None], a.T), (a[::-1], a.T[:, ::2])):
                tw.matmul(left, right)
                tw.matmul(left, right, alpha=2)

    quick_code.finish()
    tw.matmul(np.ones((300, 300), np.float32), np.ones((300, 300), np.float32))  # the thread pool
    calls(3)
    before = compilations.number
    for size in (1, 4, 17, 64, 100, 300):
        calls(size)
    assert compilations.number == before
    tw.compile(tw.Gemm(m=3, n=3, k=3, strategy="tiling"))
    assert compilations.number > before


def executable_mappings() -> int:
    """Anonymous regions of this process that can be executed."""
    lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    return sum(" r-xp " in line and "/" not in line for line in lines)


def test_code_goes_with_its_kernel() -> None:
    first = tw.compile(tw.Gemm(m=5, n=6, k=7, strategy="tiling"))
    a, b = filled((5, 7)), filled((7, 6))

    def run(kernel: Any) -> Array:
        found: Array = kernel(a, b, np.empty((5, 6), np.float32))
        return found

    assert np.array_equal(run(first), a @ b)
    kernels = [GemmKernel(first.compilation) for _ in range(50)]
    for kernel in kernels:
        assert np.array_equal(run(kernel), a @ b)
    linked = [weakref.ref(kernel._code) for kernel in kernels]
    assert len({code() for code in linked}) == 50
    counted = sys.platform == "linux"
    many = executable_mappings() if counted else 0
    del kernel, kernels
    gc.collect()
    assert not any(code() for code in linked)
    if counted:
        assert executable_mappings() < many
    assert np.array_equal(run(first), a @ b)
