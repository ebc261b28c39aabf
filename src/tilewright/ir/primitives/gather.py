"""The primitive of rows that are gathered from a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import numpy as np

from tilewright.ir.expressions import ADJACENT, Expression, ScalarValue
from tilewright.ir.nodes import Primitive, PrimitiveOperands, Slice
from tilewright.records import dataclass
from tilewright.spec.dtype import F32, I8, I64, DType


@dataclass(frozen=True)
class GatherRows(Primitive):
    """to[i] = source[indices[i]], times a number and a number of the source's row where there are any.

    Elements of rows are adjacent. Without numbers all bits are copied; products are rounded to the type of
    `to`, the two numbers' own to that of the arithmetic.

    Attributes
    ----------
    indices : of 64-bit integers; the second stride is not used.
    scale : multiplies every element.
    scales : a float32 for each row of a source of int8; the second stride is not used.
    """

    word: ClassVar[str] = "gather_rows"
    emission: ClassVar[str] = "rows.gather:emit_gather_rows"

    to: Slice
    source: Slice
    indices: Slice
    rows: Expression
    columns: Expression
    scale: ScalarValue | None = None
    scales: Slice | None = None

    def rules(self, types: Mapping[str, DType]) -> Iterator[tuple[bool, str]]:
        """Adjacent elements; scales of rows for int8, and one type otherwise."""
        for name in ("to", "source"):
            yield getattr(self, name).strides[1] == ADJACENT, f"elements of rows must be adjacent in {name}"
        yield types["indices"] == I64, "indices are 64-bit integers"
        if self.scales is None:
            yield types["to"] == types["source"], "to and source have one type"
        else:
            kinds = (types["source"], types["to"], types["scales"])
            yield kinds == (I8, F32, F32), "scales of rows are float32, of rows of int8 that become float32"

    def run(self, at: PrimitiveOperands) -> None:
        """The rows, exactly, or their products in float64."""
        rows, columns = at.number("rows"), at.number("columns")
        if not rows:
            return
        places = at.window("indices", rows, 1)[:, 0]
        found = at.window("source", int(places.max()) + 1, columns)[places]
        if self.scales is not None:
            found = found * at.window("scales", int(places.max()) + 1, 1)[places].astype(np.float64)
        if self.scale is not None:
            found = found.astype(np.float64) * at.number("scale")
        at.window("to", rows, columns)[...] = found
