"""Prefetches of rows that are read later."""

from __future__ import annotations

from typing import ClassVar

from tilewright.ir.expressions import Expression
from tilewright.ir.nodes import Primitive, PrimitiveOperands, Slice
from tilewright.records import dataclass


@dataclass(frozen=True)
class PrefetchRows(Primitive):
    """Prefetches the lines of `columns` adjacent elements of each of some rows; what is not there is skipped.

    Hardware prefetchers follow a few long streams. The rows of a strip of A are many short ones.
    """

    word: ClassVar[str] = "prefetch_rows"
    emission: ClassVar[str] = "packing.prefetch:emit_prefetch_rows"

    source: Slice
    rows: Expression
    columns: Expression

    def run(self, at: PrimitiveOperands) -> None:
        """Changes no buffer."""
