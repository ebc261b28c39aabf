"""Forks and the end of the process: locks, resets, memory that stays."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from first_calls import ARRAYS, FUNCTIONS, third
from shares import EVERY_TEST_RUNS
from support import filled, run_python
from tiers import sampled

import tilewright as tw
from tilewright.cached import cached_property
from tilewright.llvm.generation import generation
from tilewright.threads import lifetime
from tilewright.threads.scratch import ScratchPool

posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX processes")


def in_child(check: Callable[[], bool]) -> bool:
    """Whether a check holds in the child of a fork, which has five minutes for it, also beside other load."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns where threads run
        child = os.fork()
    if not child:
        import faulthandler

        faulthandler.dump_traceback_later(300, exit=True)
        os._exit(0 if check() else 1)
    return os.waitpid(child, 0)[1] == 0


@posix
@pytest.mark.parametrize("number", range(len(lifetime.locks_of_forks())))
def test_a_fork_waits_for_locks_of_others(number: int) -> None:
    """The child of a fork finds them free, though another thread held one."""
    lock = lifetime.locks_of_forks()[number]
    if lock is generation:
        pytest.skip("no lock: it waits for threads, see tests/llvm/test_generation.py")
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            let_go.wait(0.2)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    assert in_child(lambda: lock.__enter__() is not False)
    let_go.set()
    thread.join()
    assert lifetime._taken == []


@posix
def test_the_child_starts_anew() -> None:
    done: list[int] = []
    lifetime.reset_after_forks(lambda: done.append(1))
    try:
        assert in_child(lambda: done == [1])
        assert done == []
    finally:
        lifetime._resets.pop()


@posix
def test_memory_is_not_shared_with_the_child() -> None:
    memory = lifetime.private_memory(8192)
    memory[0] = 1

    def change() -> bool:
        memory[0] += 1
        return memory[0] == 2

    assert in_child(change)
    assert memory[0] == 1


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_forks_do_not_need_the_memory_of_scratch() -> None:
    """Blocks for many threads, of which little is touched, are no promise that a fork has to double."""
    total = int(Path("/proc/meminfo").read_text(encoding="ascii").split()[1]) * 1024
    blocks = [lifetime.private_memory(total // 2) for _ in range(5)]
    assert in_child(lambda: blocks[0][0] == 0)


@posix
def test_scratch_is_not_shared_with_the_child() -> None:
    """Parent and child compute at the same time, each with its own panels."""
    pool = ScratchPool(4096)
    with pool.block() as address:
        word = (ctypes.c_int64 * 1).from_address(address)
        word[0] = 1

        def change() -> bool:
            word[0] += 1
            return bool(word[0] == 2)

        assert in_child(change)
        assert word[0] == 1


FORKS = (
    ARRAYS
    + """
children, most = [], 3 if "EVERY_TEST_RUNS" in os.environ else 1
for number, function in enumerate(functions):
    thread = threading.Thread(target=function)
    thread.start()
    if most == 1:  # the moments take turns
        thread.join(number % 4 * 0.01)
    while thread.is_alive() and len(children) < most:
        child = os.fork()
        if not child:
            faulthandler.dump_traceback_later(280, exit=True)
            function()
            os._exit(0)
        children.append(child)
        thread.join(0.06 / most)
    thread.join()
    for child in children:
        assert os.waitpid(child, 0)[1] == 0, sys.argv[1:][functions.index(function)]
    children.clear()
"""
)


@posix
@pytest.mark.parametrize("number", sampled(range(3), 3, 0))
def test_forks_while_others_call_a_function_first(number: int) -> None:
    """Whatever the other thread was doing then (importing, compiling, linking), the child can do it too."""
    run_python("-c", FORKS, *third(number))


INTERRUPTED = (
    ARRAYS
    + """
from tilewright.errors import CalledWhileImporting
faulthandler.dump_traceback_later(280, exit=True)
calls, growth = 0, 1 if "EVERY_TEST_RUNS" in os.environ else 1.2
def again(*_):
    global calls, wait
    calls += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        function()
    except CalledWhileImporting:
        pass
    signal.setitimer(signal.ITIMER_REAL, wait)
    wait *= growth
signal.signal(signal.SIGALRM, again)
for function in functions:
    wait = 0.004
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    function()
    signal.setitimer(signal.ITIMER_REAL, 0)
    function()
signal.signal(signal.SIGALRM, signal.SIG_IGN)  # a handler that ran last has set the timer again
assert calls > len(functions), calls
"""
)


@posix
@pytest.mark.parametrize("number", sampled(range(3), 3, 1))
def test_a_signal_handler_calls_what_it_interrupted(number: int) -> None:
    """While its own thread compiles, the handler's call works, or says that it came during an import."""
    run_python("-c", INTERRUPTED, *third(number))


COMPUTING = (
    ARRAYS.replace('"TILEWRIGHT_CACHE"] = "0"', '"TILEWRIGHT_CACHE"] = "1"')
    + """
for function in functions:
    function()
stop = False
def work():
    while not stop:
        for function in functions:
            function()
threads = [threading.Thread(target=work) for _ in range(3)]
[thread.start() for thread in threads]
for _ in range(12 if "EVERY_TEST_RUNS" in os.environ else 5):
    time.sleep(0.003)
    child = os.fork()
    if not child:
        faulthandler.dump_traceback_later(280, exit=True)
        for function in functions:
            function()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
stop = True
[thread.join() for thread in threads]
"""
)


@posix
@pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(),
    reason="without the GIL, CPython's own dictionaries may stay locked in a child",
)
def test_forks_while_others_compute() -> None:
    """Functions that are compiled already run in the child, whatever other threads were in the middle of."""
    run_python(
        "-c", COMPUTING, *[line for line in FUNCTIONS if "compile" not in line and "range" not in line]
    )


class Waiting:
    """A property that one thread computes while the process forks."""

    def __init__(self) -> None:
        self.entered, self.leave = threading.Event(), threading.Event()

    @cached_property
    def number(self) -> int:
        if not self.entered.is_set():
            self.entered.set()
            assert self.leave.wait(300)
            return 1
        return 2


@posix
def test_a_property_that_another_thread_computes_is_free_in_the_child() -> None:
    waiting = Waiting()
    thread = threading.Thread(target=lambda: waiting.number)
    thread.start()
    assert waiting.entered.wait(300)
    assert in_child(lambda: waiting.number == 2)
    assert waiting.number == 2
    waiting.leave.set()
    thread.join()
    assert waiting.number == 2  # the first that was stored is everyone's


END = """
import threading, time
import numpy as np, tilewright as tw
a = np.ones((1500, 1500), np.float32)
def work():
    while True:
        tw.matmul(a, a)
        tw.matmul(a, a, alpha=2)
tw.matmul(a[:20], a)
[threading.Thread(target=work, daemon=True).start() for _ in range(2)]
time.sleep(0.1)
"""


def test_the_process_ends_while_products_run() -> None:
    """Daemon threads find their scratch until the process is gone."""
    for _ in range(5 if EVERY_TEST_RUNS else 2):
        run_python("-c", END)


@posix
def test_blocks_that_others_had_are_free_in_the_child() -> None:
    pool = ScratchPool(4096)
    pool.supply()
    pool.table.wanted = 1
    pool.supply()
    slots = list(pool.table.slots[:2])
    with pool.block() as taken:
        pool.table.slots[1] = 0  # as a native call leaves it meanwhile

        def whole() -> bool:
            with pool.block() as first:
                return list(pool.table.slots[:2]) == slots and first == taken

        assert in_child(whole)
    assert list(pool.table.slots[:2]) == [slots[0], 0]


def test_products_of_a_child() -> None:
    if sys.platform == "win32":
        return
    a = filled((50, 60))
    expected = a @ a.T
    assert in_child(lambda: np.array_equal(tw.matmul(a, a.T), expected))
