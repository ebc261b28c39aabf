"""Forks and the end of the process: what is not cut in the middle, and what outlives Python's objects.

A fork copies one thread. Locks that another thread holds would stay held in the copy for ever, and LLVM would
stay inside of what it was doing; so the locks of the package are taken before a fork and released after it,
on both sides. There are three: what threads share is made under `preparing`, imports inside functions happen
under `importing`, and llvmlite has a lock of its own. What belonged to the other threads is forgotten in the
copy.
"""

from __future__ import annotations

import ctypes
import logging  # noqa: F401  (it watches forks itself, and must not begin to in the middle of one)
import mmap
import os
import platform
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import llvmlite.binding as llvm

from tilewright.preparing import importing, preparing

Lock: TypeAlias = AbstractContextManager[Any]

#: linux/mman.h, MAP_NORESERVE, which Python 3.11 has no name for: a fork does not have to promise the memory.
_NO_RESERVE = {"x86_64": 0x4000, "aarch64": 0x4000, "riscv64": 0x4000, "ppc64le": 0x40}

_taken: list[Lock] = []
_resets: list[Callable[[], None]] = []


def reset_after_forks(reset: Callable[[], None]) -> None:
    """Registers what the child does first, while no other thread of it exists."""
    _resets.append(reset)


def outlive(value: object) -> None:
    """Keeps an object until the process ends.

    When the interpreter ends it drops modules while daemon threads still run compiled code, which must
    find its memory.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


def private_memory(size: int) -> mmap.mmap:
    """Zeroed pages of this process alone: Python's own anonymous memory is shared with the child of a fork.

    Pages count as memory once they are touched, so that blocks may be as large as many threads would need.

    Raises
    ------
    OSError, ValueError, OverflowError : as `mmap.mmap`.
    """
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    unreserved = _NO_RESERVE.get(platform.machine(), 0) if sys.platform == "linux" else 0
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | unreserved)


def locks_of_forks() -> tuple[Lock, ...]:
    """Every lock of the package, in the order in which threads take them."""
    return preparing, importing.lock, llvm.ffi.lib._lock  # noqa: SLF001


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
    """Has Python call these functions at every fork from here on; the package does so when it is imported."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after_in_child)
