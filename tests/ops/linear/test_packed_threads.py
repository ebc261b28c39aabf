"""Products of packed operands have the same bits for any number of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from support import Array, rough

import tilewright as tw


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = tw.get_num_threads()
    yield
    tw.set_num_threads(before)


def products() -> dict[str, Callable[[], Array]]:
    """Calls long enough to be shared, by name."""
    a, b = rough((700, 1300), seed=1), rough((1300, 500), seed=2)
    left, right, bias = tw.pack(a, role="a"), tw.pack(b), rough((500,), seed=3)
    halves = tw.pack(b.astype(np.float16))
    tiles = rough((60, 200, 8, 2), seed=4), rough((70, 200, 8, 2), seed=5)
    chain = tw.compile(tw.LinearChain((1300, 500, 300), ("gelu", None)))
    last, end = tw.pack(rough((500, 300), seed=6)), rough((300,), seed=7)
    return {
        "packed B": lambda: tw.matmul(a, right),
        "packed A": lambda: tw.matmul(left, b),
        "linear": lambda: tw.linear(a, right, bias, "gelu"),
        "a narrower C": lambda: tw.matmul(a.astype(np.float16), halves),
        "a batch": lambda: tw.matmul(a.reshape(7, 100, 1300)[:, ::-1], right),
        "mmt4d in place": lambda: tw.mmt4d(left, right),
        "mmt4d packed again": lambda: tw.mmt4d(*tiles),
        "chain": lambda: chain(a, [right, last], [bias, end]),
    }


def test_any_number_of_threads_gives_the_same_bits() -> None:
    calls = products()
    tw.set_num_threads(1)
    alone = {name: call() for name, call in calls.items()}
    for threads in (2, 3, 7):
        tw.set_num_threads(threads)
        for name, call in calls.items():
            assert call().tobytes() == alone[name].tobytes(), (name, threads)
