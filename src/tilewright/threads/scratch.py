"""Reusable scratch for packed panels: aligned blocks on huge pages, one per running call.

Python callers take blocks from a list. Native callers use a table in memory: they take the block of
the first non-empty slot, leave 0 in it while they compute, and put it back into the same slot, all
with the GIL held. A native caller that finds no block counts itself in `wanted` and goes through
Python, which maps one more block into a fresh slot.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import mmap
import weakref

from tilewright.errors import ScratchAllocation
from tilewright.preparing import preparing
from tilewright.recorder import current
from tilewright.settings import read_settings
from tilewright.threads.lifetime import outlive, private_memory, reset_after_forks

#: Blocks of native callers; more of them at once go through Python.
SLOTS = 64

#: x86-64 and aarch64 huge page; blocks start on it so that one TLB entry covers 2 MiB of panels.
HUGE_PAGE = 2 << 20


class _Block:
    """Anonymous memory that starts on a huge page."""

    def __init__(self, size: int, *, huge_pages: bool) -> None:
        length = -(-size // HUGE_PAGE) * HUGE_PAGE + HUGE_PAGE
        try:
            self.memory = private_memory(length)
        except (OSError, ValueError, OverflowError) as error:
            raise ScratchAllocation(size=size, reason=str(error)) from error
        if huge_pages and hasattr(mmap, "MADV_HUGEPAGE"):
            with contextlib.suppress(OSError):  # a kernel without huge pages gives ordinary ones
                self.memory.madvise(mmap.MADV_HUGEPAGE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.address = -(-start // HUGE_PAGE) * HUGE_PAGE


class ScratchTable(ctypes.Structure):
    """The table native code reads: number of slots in use, count of failed requests, the slots."""

    _fields_ = (
        ("count", ctypes.c_int64),
        ("wanted", ctypes.c_int64),
        ("slots", ctypes.c_uint64 * SLOTS),
    )


class ScratchPool:
    """Scratch blocks of one size, kept for reuse until the process ends.

    Parameters
    ----------
    size : bytes of every block.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.table = ScratchTable()
        self.table_address = ctypes.addressof(self.table)  # for native code
        self._blocks: list[_Block] = []
        self._free: list[int] = []
        self._native: list[int] = []
        self._huge_pages = read_settings().huge_pages
        _pools.add(self)

    @property
    def blocks(self) -> tuple[mmap.mmap, ...]:
        """The memory of its blocks."""
        return tuple(block.memory for block in self._blocks)

    def _map(self) -> int:
        block = _Block(self.size, huge_pages=self._huge_pages)
        self._blocks.append(block)
        return block.address

    def take(self) -> int:
        """A block, which `give_back` returns; known to a recording."""
        try:
            address = self._free.pop()
        except IndexError:
            address = self._map()
        recorder = current.recorder
        if recorder is not None:
            recorder.scratch(address, self)
        return address

    def give_back(self, address: int) -> None:
        """A block that was taken is free again."""
        self._free.append(address)

    def block(self) -> _Loan:
        """A block for the duration of one call: a context manager of its address."""
        return _Loan(self)

    def reset(self) -> None:
        """In the child of a fork: blocks that other threads had taken are free."""
        native = self._native[: self.table.count]
        self.table.slots[: len(native)] = native
        self._free = [block.address for block in self._blocks if block.address not in native]

    def keep(self) -> None:
        """Keep the memory at process exit, because daemon threads may still compute in it."""
        for block in self._blocks:
            outlive(block.memory)

    def supply(self) -> None:
        """Maps blocks for native callers: the first one, and one for each that found none."""
        table = self.table
        if table.count and not table.wanted:
            return
        with preparing:
            if table.count == 0 or (table.wanted and table.count < SLOTS):
                address = self._map()
                table.slots[table.count] = address
                self._native.append(address)
                table.count += 1  # after the slot is filled: native code reads up to count
            table.wanted = 0


class _Loan:
    """Context manager of a block; a generator would take a microsecond."""

    __slots__ = ("_address", "_pool")

    def __init__(self, pool: ScratchPool) -> None:
        self._pool = pool

    def __enter__(self) -> int:
        self._address = self._pool.take()
        return self._address

    def __exit__(self, *failure: object) -> None:
        self._pool.give_back(self._address)


_pools: weakref.WeakSet[ScratchPool] = weakref.WeakSet()


def resident_scratch_bytes() -> int:
    """Bytes of memory that scratch blocks keep after calls: the pages which calls have written.

    Source: mincore(2), one byte a page whose lowest bit says that it is in memory.
    """
    library, page = ctypes.CDLL(None), mmap.PAGESIZE
    total = 0
    for block in (block for pool in _pools for block in pool.blocks):
        pages = len(block) // page
        states = (ctypes.c_ubyte * pages)()
        start = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(block)))
        if library.mincore(start, ctypes.c_size_t(len(block)), states) == 0:
            total += sum(state & 1 for state in states) * page
    return total


def _reset_pools() -> None:
    for pool in _pools:
        pool.reset()


def _keep_pools() -> None:
    for pool in _pools:
        pool.keep()


reset_after_forks(_reset_pools)
atexit.register(_keep_pools)
