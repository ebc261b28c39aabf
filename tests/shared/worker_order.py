"""The order of tests on several workers: those that take seconds first, so that all workers end together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

#: Folders and files below `tests` whose tests take seconds: binaries of many kernels, child processes.
LONG = (
    "emulated",
    "guard_pages",
    "recognise",
    "threads",
    "micro/test_no_libcalls.py",
    "micro/test_spills.py",
    "ops/matmul/test_numpy_suite.py",
)


@cache
def is_long(path: Path) -> bool:
    """Whether tests of a file take seconds."""
    root = Path(__file__).resolve().parents[1]
    return any(path.is_relative_to(root / part) for part in LONG)


def from_the_end(worker: str) -> bool:
    """Whether a worker collects folders from their ends: every second one.

    A worker writes the bytecode of a module that none has collected before. Two that begin at different ends
    write half of it each.

    >>> [from_the_end(worker) for worker in ("gw0", "gw1", "gw2", "gw11")]
    [False, True, False, True]
    """
    return int(worker.removeprefix("gw")) % 2 == 1


def long_first(tests: Sequence[T], long: Callable[[T], bool]) -> list[T]:
    """Tests in the order in which two workers end together; pytest-xdist's `worksteal` gives each one half.

    Each half begins with every second one of the long tests. A worker without work takes from the end of the
    other's half, where the short tests are.

    >>> "".join(long_first("abCdEfgHij", str.isupper))
    'CHabdEfgij'
    """
    slow, quick = [one for one in tests if long(one)], [one for one in tests if not long(one)]
    rest = len(tests) // 2 - len(slow[::2])
    if rest < 0:
        return [*slow, *quick]
    return [*slow[::2], *quick[:rest], *slow[1::2], *quick[rest:]]
