"""Primitives of panels and tiles whose elements are stored at addresses from tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import numpy as np

from tilewright.ir.expressions import Expression, ScalarValue
from tilewright.ir.nodes import Primitive, PrimitiveOperands, Slice
from tilewright.records import dataclass
from tilewright.spec.dtype import I64, DType

#: The step of a panel whose lanes have no common distance.
NO_STEP = -(1 << 62)


@dataclass(frozen=True)
class PackTable(Primitive):
    """Packs lanes and depths whose offsets are in tables; see `Pack` for the layout of panels.

    Element (i, p) is at source + lanes_at[i] + depths_at[p]. Panels are whole: lanes beyond `counts` repeat
    the last. For each panel, `steps` is the distance between its lanes if they have a common one, and
    `shifts` the number of panels from it on that have as many lanes, each one element after that of the
    previous panel; for each depth, `runs` is the number of depths from it on at equal distances, and `turns`
    the number of runs of that length, each starting one element after the previous.
    """

    word: ClassVar[str] = "pack_table"
    emission: ClassVar[str] = "packing.pack_table:emit_pack_table"

    to: Slice
    source: Slice
    lanes_at: Slice
    steps: Slice
    counts: Slice
    shifts: Slice
    depths_at: Slice
    runs: Slice
    turns: Slice
    lanes: Expression
    depth: Expression
    panel: Expression

    def rules(self, types: Mapping[str, DType]) -> Iterator[tuple[bool, str]]:
        """Tables of 64-bit integers."""
        names = ("lanes_at", "steps", "counts", "shifts", "depths_at", "runs", "turns")
        yield from _tables(types, names)

    def run(self, at: PrimitiveOperands) -> None:
        """Panels: depth after depth, lanes adjacent."""
        lanes, depth, panel = (at.number(name) for name in ("lanes", "depth", "panel"))
        if not depth:
            return
        rows, depths = at.window("lanes_at", lanes, 1), at.window("depths_at", depth, 1)
        source, start = at.buffer("source")
        whole = source[start + rows + depths[:, 0]]
        order = whole.reshape(lanes // panel, panel, depth).transpose(0, 2, 1)
        at.contiguous("to", order.size)[...] = order.reshape(-1)


@dataclass(frozen=True)
class ScatterTile(Primitive):
    """to[rows_at[i] + columns_at[j]] = tile[i, j] + beta · (previous value); beta = 0 does not read it.

    `step` is the distance between columns, if they have a common one.
    """

    word: ClassVar[str] = "scatter_tile"
    emission: ClassVar[str] = "packing.scatter:emit_scatter_tile"

    to: Slice
    tile: Slice
    rows_at: Slice
    columns_at: Slice
    rows: Expression
    columns: Expression
    step: Expression
    beta: ScalarValue

    def rules(self, types: Mapping[str, DType]) -> Iterator[tuple[bool, str]]:
        """Tables of 64-bit integers."""
        yield from _tables(types, ("rows_at", "columns_at"))

    def run(self, at: PrimitiveOperands) -> None:
        """The tile, at places that are sums of two table entries."""
        rows, columns, beta = (at.number(name) for name in ("rows", "columns", "beta"))
        to, start = at.buffer("to")
        places = start + at.window("rows_at", rows, 1) + at.window("columns_at", columns, 1).T
        values = at.window("tile", rows, columns).astype(np.float64)
        to[places] = values + (beta * to[places].astype(np.float64) if beta else 0)


def _tables(types: Mapping[str, DType], names: tuple[str, ...]) -> Iterator[tuple[bool, str]]:
    """Tables of 64-bit integers."""
    for name in names:
        yield types[name] == I64, f"{name} is a table of i64"
