"""Complex numbers in vectors of their parts."""

from __future__ import annotations

from tilewright.llvm.build import Function
from tilewright.llvm.values import Value


def times_i(f: Function, vector: Value) -> Value:
    """i times complex numbers, whose parts are adjacent: these exchanged, and the real ones negated."""
    lanes = vector.type.lanes
    swapped = f.shuffle(vector, vector, [lane ^ 1 for lane in range(lanes)])
    negative = f.emit(swapped.type, f"fneg {swapped.typed}")
    return f.shuffle(swapped, negative, [lane if lane % 2 else lanes + lane for lane in range(lanes)])
