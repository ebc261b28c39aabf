"""Prefetches of rows, line by line."""

from __future__ import annotations

from tilewright.llvm.build import Function
from tilewright.llvm.values import int64
from tilewright.machine.isa import Isa
from tilewright.machine.machine import CACHE_LINE
from tilewright.micro.calls import Operands, PrimitiveFunction, value, window


def emit_prefetch_rows(f: Function, isa: Isa, given: Operands) -> None:
    """Calls the function of a `PrefetchRows`."""
    PrimitiveFunction(f, isa, "prefetch_rows", window(given, "source").dtype, given).call(_prefetch)


def _prefetch(f: Function, given: Operands) -> None:
    source = window(given, "source")
    row_bytes = f.mul(source.row, source.dtype.size)
    bytes_of_row = f.mul(value(given, "columns"), source.dtype.size)
    state = [source.pointer]
    with f.carried_loop(int64(0), value(given, "rows"), int64(1), state, "row") as (_, (row,), advance):
        with f.loop(int64(0), bytes_of_row, int64(CACHE_LINE), "line") as line:
            f.prefetch(f.at(row, line), write=False, locality=3)
        advance([f.at(row, row_bytes)])
