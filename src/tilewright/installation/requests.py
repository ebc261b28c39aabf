"""What machine code asks of Python, rarely: kernels, scratch, workers."""

from __future__ import annotations

from enum import IntEnum


class SupplyRequest(IntEnum):
    """What a loop asks for."""

    KERNEL = 0
    SCRATCH = 1
    WORKERS = 2
    EXACT_SIZES = 3
