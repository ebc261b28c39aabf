"""Signal handlers run during long calls of every kind, and what they raise is what the caller sees."""

from __future__ import annotations

import os

import pytest
from support import run_python

posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX signals")

#: The handler of a timer counts how often it runs during each call: once, at the end, if nothing looks for
#: signals inside of the call. Then it raises.
CODE = """
import os, signal, time
import numpy as np, tilewright as tw
from numpy.lib.stride_tricks import as_strided

ticks = []

def hankel(rows, columns, dtype="f4"):
    # Overlapping rows: many elements in little memory.
    x = np.ones(rows + columns, dtype)
    return as_strided(x, (rows, columns), (x.itemsize, x.itemsize), writeable=False)


line = np.ones((1, 40_000_000), "f4")
square, columns = line.reshape(8000, 5000), line.reshape(5000, 8000).T
bytes_, flat = np.ones((14000, 12000), "i1"), hankel(12, 40_000_000)
many_rows = hankel(128, 40_000_000)  # long enough on the fastest hosts, as the integers below are
tall, small = hankel(1_500_000, 128), np.ones((128, 16), "f4")
four = as_strided(np.ones(4_000_016, "f4"), (4_000_000, 4, 4), (4, 16, 4), writeable=False)
words = tw.pack(square)
tanh = tw.compile(tw.Unary("tanh"))
CALLS = {
    "transpose": lambda: tw.transpose(bytes_),
    "softmax": lambda: tw.softmax(line),
    "softmax of columns": lambda: tw.softmax(line.reshape(-1, 20), axis=0),
    "gelu": lambda: tw.gelu(line),
    "matrix times vector": lambda: tw.matmul(many_rows, line[0]),
    "tall product": lambda: tw.matmul(tall, small),
    "column times row": lambda: tw.matmul(np.ones((8000, 1), "f4"), np.ones((1, 8000), "f4")),
    "batch": lambda: tw.matmul(four, four),
    "einsum": lambda: tw.einsum("ij,j->ij", square, square[0]),
    "einsum of integers": lambda: tw.einsum("ij->", hankel(768, 24_000_000, "i1")),
    "pack": lambda: tw.pack(square.T),
    "unpack": lambda: tw.unpack(words),
    "quantize_weights": lambda: tw.quantize_weights(square, bits=4, group=64),
    "quantize_rows": lambda: tw.quantize_rows(flat[:4]),
    "compiled tanh": lambda: tanh(columns, np.empty_like(columns)),
}

class Stop(Exception):
    pass

def stop(*_):
    raise Stop

for call in CALLS.values():
    call()  # compiles
seldom, compared = {}, 0
every = list(CALLS.items())
for threads in (1, 2):
    tw.set_num_threads(threads)
    # In `make test` each call on one thread or on two.
    calls = every if "EVERY_TEST_RUNS" in os.environ else every[threads - 1 :: 2]
    signal.signal(signal.SIGALRM, lambda *_: ticks.append(time.monotonic()))
    for name, call in calls:
        ticks.clear()
        begin = time.process_time()
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        call()
        signal.setitimer(signal.ITIMER_REAL, 0)
        took = (time.process_time() - begin) / threads  # at most what has passed, also beside other load
        if took > 0.1:  # else the timer and the looks for signals may have missed each other
            compared += 1
            if len(ticks) < 2:
                seldom[name, threads] = took, len(ticks)
    assert not seldom, seldom
    assert compared, "no call was long enough"

    signal.signal(signal.SIGALRM, stop)
    for name, call in calls:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        try:  # the outer one for a signal that arrives when the call has just ended
            try:
                call()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except Stop:
            pass
a = np.ones((300, 200), "f4")
assert np.array_equal(tw.matmul(a, a.T), a @ a.T)
assert np.array_equal(tw.transpose(a), a.T)
assert np.array_equal(tw.unpack(tw.pack(a)), a)
from tilewright.threads.pool import thread_pool
assert thread_pool().state.active == 0
print("usable")
"""


@posix
def test_handlers_run_during_long_calls() -> None:
    """On one thread and on two."""
    assert "usable" in run_python("-c", CODE)
