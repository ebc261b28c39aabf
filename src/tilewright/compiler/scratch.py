"""The scratch that kernels of this host share, and who needs a pool of its own."""

from __future__ import annotations

from tilewright.machine.host import host_machine
from tilewright.macro.blocking import SUMS_COLUMNS, SUMS_ROWS, panel_bytes
from tilewright.preparing import once, preparing
from tilewright.spec.dtype import F32
from tilewright.threads.pool import MOST_THREADS
from tilewright.threads.scratch import ScratchPool

#: Bytes of the sums that one thread keeps outside of a narrower C: rows of the widest register tile.
THREAD_SUMS = SUMS_ROWS * 64 * F32.size


#: The one pool, once made; a list so that the common case takes no lock.
_pools: list[ScratchPool] = []


@once
def _scratch_pool() -> ScratchPool:
    """Blocks that hold the panels of any types: see `column_block`, `row_block` and `SUMS_ROWS`."""
    machine = host_machine()
    sums = SUMS_ROWS * SUMS_COLUMNS * F32.size
    shared, own = int(panel_bytes(machine)) + sums, machine.l2.size + THREAD_SUMS
    # One product of many threads, or one product of each thread that can run at once.
    return ScratchPool(max(shared + MOST_THREADS * own, machine.cores * (shared + own)))


def scratch_pool() -> ScratchPool:
    """The scratch that all kernels of this host share."""
    if not _pools:
        with preparing:  # native code keeps the address of the one pool's table
            _pools.append(_scratch_pool())
    return _pools[0]


def scratch_for(needed: int) -> ScratchPool:
    """The common scratch, or a pool of its own for a kernel whose blocks are larger."""
    common = scratch_pool()
    return common if needed <= common.size else ScratchPool(needed)
