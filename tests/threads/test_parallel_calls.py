"""Public calls on several threads: the same bits, workers at need, signals, forks, many callers."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from shares import EVERY_TEST_RUNS
from support import Array, filled, rough, run_python
from tiers import crossed

import tilewright as tw
from tilewright.errors import InvalidThreads
from tilewright.threads import pool as threads
from tilewright.threads.pool import MOST_THREADS, TEAM_WORK, call_team, limited, thread_pool

posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX processes")


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = tw.get_num_threads()
    yield
    tw.set_num_threads(before)


#: Products of more than `TEAM_WORK` multiply-adds: shapes of a and b.
SHAPES = {
    "square": ((150, 150), (150, 150)),
    "large": ((500, 700), (700, 600)),
    "few rows": ((6, 900), (900, 1000)),
    "one row": ((1, 2000), (2000, 3000)),
    "one column": ((3000, 2000), (2000, 1)),
    "deep": ((40, 5000), (5000, 50)),
    "batch of large ones": ((5, 130, 140), (5, 140, 150)),
    "batch of small ones": ((400, 20, 20), (400, 20, 20)),
    "batch over one matrix": ((30, 50, 80), (80, 90)),
    "two axes of a batch": ((3, 60, 30, 40), (3, 60, 40, 50)),
}

#: Ways to call: through the native entry, and through Python.
CALLS: dict[str, Callable[..., Array]] = {
    "native": tw.matmul,
    "python": lambda a, b: tw.matmul(a, b, alpha=1.5),
}


#: FE_UPWARD of fenv.h, for machines whose mode workers take over.
UPWARD = {"x86_64": 0x800, "aarch64": 0x400000}


@pytest.mark.skipif(platform.machine() not in UPWARD or sys.platform != "linux", reason="fenv.h of others")
def test_the_same_bits_in_the_rounding_mode_of_the_caller() -> None:
    """Workers started before the caller's mode changed."""
    a, b = rough((500, 700), np.float64), rough((700, 600), np.float64, 1)
    mathematics = ctypes.CDLL("libm.so.6" if platform.libc_ver()[0] == "glibc" else None)
    nearest = tw.matmul(a, b, threads=2)
    before = mathematics.fegetround()
    mathematics.fesetround(UPWARD[platform.machine()])
    try:
        alone = tw.matmul(a, b, threads=1)
        several = [tw.matmul(a, b, threads=4) for _ in range(20)]
    finally:
        mathematics.fesetround(before)
    assert not np.array_equal(alone, nearest)
    assert all(np.array_equal(alone, one) for one in several)


@pytest.mark.parametrize(
    ("shape", "call", "dtype"),
    crossed(SHAPES, product(["native", "python"], ["f4", "f8", "i4", "c8"]), 4),
)
def test_the_same_bits_with_any_number(shape: str, call: str, dtype: Any) -> None:
    a, b = (rough(size, np.float32, seed).astype(dtype) for seed, size in enumerate(SHAPES[shape]))
    work = CALLS[call if dtype != "i4" else "native"]  # integers have integer factors
    tw.set_num_threads(1)
    expected = work(a, b)
    for count in (2, 3, 5):
        tw.set_num_threads(count)
        for _ in range(3):
            thread_pool().state.alone_until = 0
            assert work(a, b).tobytes() == expected.tobytes(), count


def test_kernels_take_teams() -> None:
    a, b = rough((300, 200)), rough((200, 400))
    kernel = tw.compile(tw.Gemm())
    found = {}
    for count in (1, 3):
        tw.set_num_threads(count)
        called = kernel(a, b, np.full((300, 400), np.nan, np.float32))
        native = kernel.native(a, b, np.full((300, 400), np.nan, np.float32))
        found[count] = called.tobytes(), native.tobytes()
    assert found[1] == found[3]
    assert len(set(found[1])) == 1


def test_threads_of_one_call() -> None:
    a = filled((300, 300))
    tw.set_num_threads(1)
    before = thread_pool().workers
    assert np.array_equal(tw.matmul(a, a, threads=before + 3), a @ a)
    assert thread_pool().workers == before + 2
    assert tw.get_num_threads() == 1
    with limited(2), limited(None):
        assert threads.wanted_threads() == 2
    for wrong in (0, -1, MOST_THREADS + 1, True, 1.0):
        with pytest.raises(InvalidThreads):
            tw.matmul(a, a, threads=wrong)  # type: ignore[arg-type]
    assert threads.wanted_threads() == 1


def test_only_large_calls_take_a_team() -> None:
    tw.set_num_threads(2)
    with call_team(TEAM_WORK) as none, call_team(TEAM_WORK + 1) as some:
        assert none is None
        assert some is not None
        assert thread_pool().state.active == 1
    assert thread_pool().state.active == 0


STARTS = """
import threading
import numpy as np, tilewright as tw
from support import filled
from tilewright.threads.pool import thread_pool
def workers():
    return sum(thread.name.startswith("tilewright-") for thread in threading.enumerate())
tw.set_num_threads(2)
a = filled((300, 300))
for _ in range(3):
    assert np.array_equal(tw.matmul(a[:10], a), a[:10] @ a)
assert workers() == 0, "a small product"
for _ in range(3):
    assert np.array_equal(tw.matmul(a, a), a @ a)
assert workers() == 1
tw.set_num_threads(4)
for _ in range(3):
    assert np.array_equal(tw.matmul(a, a), a @ a)
assert workers() == 3, "the native entry asks for what is missing"
tw.set_num_threads(1)
opened = thread_pool().state.closed_at
assert np.array_equal(tw.matmul(a, a), a @ a)
assert thread_pool().state.closed_at == opened
"""


def test_workers_start_when_they_are_needed() -> None:
    run_python("-c", STARTS)


def test_a_quota_of_one_core_starts_nothing() -> None:
    code = "import os; os.environ['TILEWRIGHT_CPU_QUOTA'] = '1'\n" + STARTS.partition("tw.set_num")[0]
    code += "a = filled((300, 300))\ntw.matmul(a, a), tw.matmul(a, a)\nassert tw.get_num_threads() == 1\n"
    run_python("-c", code + "assert workers() == 0\n")


INTERRUPT = """
import os, signal, sys, threading, time
import numpy as np, tilewright as tw
from support import filled
signal.signal(signal.SIGINT, signal.default_int_handler)
threads = int(sys.argv[1])
tw.set_num_threads(threads)
a = np.ones((6000, 6000), np.float32)
out = np.empty_like(a)
for _ in range(2):
    tw.matmul(a[:1200], a[:, :1200], out=out[:1200, :1200].copy())
rounds = 2 if "EVERY_TEST_RUNS" in os.environ else 1
for options in ({}, {"alpha": 2}) * rounds:  # through the native entry, and through Python
    sent = []
    def interrupt():
        time.sleep(0.2)
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=interrupt).start()
    begin = time.process_time()
    try:
        tw.matmul(a, a, out=out, **options)
    except KeyboardInterrupt:
        took, whole = time.process_time() - sent[0], time.process_time() - begin
    else:
        raise SystemExit("no KeyboardInterrupt")
    print("took", took, whole)
    assert took < 0.2 * threads, took
b, c = filled((300, 200)), filled((200, 100))
assert np.array_equal(tw.matmul(b, c), b @ c)
assert np.array_equal(tw.matmul(b, c, alpha=2), 2 * (b @ c))
print("usable")
"""


@posix
@pytest.mark.parametrize("count", [1, 2])
def test_interrupts_end_a_call_between_tasks(count: int) -> None:
    """A product of seconds ends soon after Ctrl-C, and nothing is broken.

    Threads get 0.2 s of processors' time each until then, whatever else runs on these.
    """
    assert "usable" in run_python("-c", INTERRUPT, str(count))


FORKS = """
import os, sys, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)
import numpy as np, tilewright as tw
from support import filled
from tilewright.threads.pool import thread_pool
tw.set_num_threads(2)
a = filled((250, 250))
expected = a @ a
stop, wrong = threading.Event(), []
def work():
    while not stop.is_set():
        wrong.append(not np.array_equal(tw.matmul(a, a), expected))
        wrong.append(not np.array_equal(tw.matmul(a, a, alpha=2), 2 * expected))
tw.matmul(a, a), tw.matmul(a, a)
callers = [threading.Thread(target=work) for _ in range(2)]
[caller.start() for caller in callers]
for number in range(int(sys.argv[1])):
    child = os.fork()
    if not child:
        import faulthandler
        faulthandler.dump_traceback_later(280, exit=True)
        good = all(np.array_equal(tw.matmul(a, a), expected) for _ in range(3))
        os._exit(0 if good and thread_pool().workers == 1 else 1)
    assert os.waitpid(child, 0)[1] == 0, number
stop.set()
[caller.join() for caller in callers]
assert wrong and not any(wrong)
"""


@posix
def test_forks_while_products_run() -> None:
    run_python("-c", FORKS, "100" if EVERY_TEST_RUNS else "20")


def test_many_callers_of_few_threads() -> None:
    """Application threads share the pool; every result is right."""
    tw.set_num_threads(2)
    arrays = [filled((150 + 10 * number, 150), seed=number) for number in range(8)]
    wrong: list[int] = []

    def work(number: int) -> None:
        a = arrays[number]
        expected = a @ a.T
        for turn in range(40):
            found = tw.matmul(a, a.T) if turn % 2 else tw.matmul(a, a.T, alpha=2) / 2
            if not np.array_equal(found, expected):
                wrong.append(number)

    callers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(300)
    assert not any(caller.is_alive() for caller in callers)
    assert wrong == []
    assert thread_pool().state.active == 0


def test_calls_of_one_thread_need_no_workers() -> None:
    """A process in which every call is of one thread starts no worker and still repeats large products."""
    program = """
import numpy as np, tilewright as tw
from tilewright.threads.pool import thread_pool
tw.set_num_threads(2)
a = np.ones((400, 400), np.float32)
for _ in range(5):
    tw.matmul(a, a, alpha=2, threads=1)
(row,) = tw.show_calls()
print(row.repeated, row.first, thread_pool().workers)
"""
    assert run_python("-c", program).split() == ["4", "1", "0"]
