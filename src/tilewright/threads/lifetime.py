"""Fork and exit safety: locks held across forks, and memory that outlives Python's objects.

A fork copies only the calling thread. A lock held by another thread would stay locked in the child for ever,
and LLVM's state could be inconsistent, so all locks of the package are acquired before a fork and released
after it in both processes. There are three: shared objects are created under `preparing`, imports inside
functions happen under `importing`, and llvmlite has its own lock; threads that generate code without it are
waited for. The child discards the state of the other threads.
"""

from __future__ import annotations

import ctypes
import logging  # noqa: F401  (it watches forks itself, and must not begin to in the middle of one)
import mmap
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import llvmlite.binding as llvm

from tilewright.llvm.generation import generation
from tilewright.machine.arch import linux_arch
from tilewright.preparing import importing, preparing

Lock: TypeAlias = AbstractContextManager[Any]

_taken: list[Lock] = []
_resets: list[Callable[[], None]] = []


def reset_after_forks(reset: Callable[[], None]) -> None:
    """Register a function that the child calls first, while it has no other threads."""
    _resets.append(reset)


def outlive(value: object) -> None:
    """Keep an object alive until the process ends.

    The interpreter drops modules at exit while daemon threads still run compiled code, which must find its
    memory.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


def private_memory(size: int) -> mmap.mmap:
    """Zeroed private pages: Python's own anonymous memory is shared with the child of a fork.

    Pages are committed on first touch, so blocks may be as large as the maximum number of threads requires.

    Raises
    ------
    OSError, ValueError, OverflowError : as `mmap.mmap`.
    """
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    arch = linux_arch()
    unreserved = 0 if arch is None else arch.map_noreserve  # Python 3.11 has no name for it
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | unreserved)


def locks_of_forks() -> tuple[Lock, ...]:
    """Every lock of the package, in acquisition order."""
    return preparing, importing.lock, generation, llvm.ffi.lib._lock  # noqa: SLF001


def _before() -> None:
    for lock in locks_of_forks():
        lock.__enter__()
        _taken.append(lock)


def _after() -> None:
    while _taken:
        _taken.pop().__exit__(None, None, None)


def _after_in_child() -> None:
    for reset in _resets:
        reset()
    _after()


def watch_forks() -> None:
    """Register the fork handlers; called when the package is imported."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after_in_child)
