"""The memory probe of the benchmarks reads and copies what it says."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from support import host_rows

import tilewright as tw
from tilewright.tools.bench.bandwidth import PAGE_BYTES, VECTORS, MemoryProbe, SharedProbe


@pytest.mark.parametrize("row", [isa.name for isa in host_rows()])
def test_every_byte_is_read(row: str) -> None:
    """The sums that the machine code leaves behind are those of all elements, ones of four bytes each."""
    machine = tw.machine(row)
    probe = MemoryProbe(machine, 3 * PAGE_BYTES)
    elements = 3 * PAGE_BYTES // 4
    lanes = machine.isa.vector_bits // 32
    memory = (ctypes.c_float * elements).from_address(probe._source)
    np.ctypeslib.as_array(memory)[:] = 1
    assert probe.read_seconds() > 0
    sink = (ctypes.c_float * (VECTORS * lanes)).from_address(probe._sink)
    assert sum(sink) == elements


def test_a_copy_is_one() -> None:
    probe = MemoryProbe(tw.machine(), 5000)
    assert probe.size_bytes == 2 * PAGE_BYTES
    source = (ctypes.c_uint8 * probe.size_bytes).from_address(probe._source)
    destination = (ctypes.c_uint8 * probe.size_bytes).from_address(probe._destination)
    np.ctypeslib.as_array(source)[:] = np.arange(probe.size_bytes) % 251
    assert probe.copy_seconds() > 0
    assert bytes(source) == bytes(destination)


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_share_the_memory(threads: int) -> None:
    probe = SharedProbe(tw.machine(), 4 * PAGE_BYTES, threads)
    assert [part.size_bytes for part in probe._probes] == [4 * PAGE_BYTES // threads] * threads
    assert probe.read_seconds() > 0
    assert probe.copy_seconds(times=2) > 0
