"""The primitive of rotary embeddings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import ClassVar

from tilewright.ir.expressions import ADJACENT, Expression
from tilewright.ir.nodes import Primitive, PrimitiveOperands, Slice
from tilewright.records import dataclass
from tilewright.spec.dtype import I64, DType
from tilewright.spec.rotary import Pairing, rotary_meaning


@dataclass(frozen=True)
class RotateRows(Primitive):
    """to[i] = source[i] with its pairs of elements rotated by the angles of row positions[i] of two tables.

    Elements of rows are adjacent in all windows of floats. `to` is the source itself or shares no memory with
    it.

    Attributes
    ----------
    cos, sin : `pairs` numbers for each position.
    positions : of 64-bit integers; the second stride is not used.
    pairs, rest : a row has 2·pairs elements that are rotated, then so many that are copied.
    """

    word: ClassVar[str] = "rotate_rows"
    emission: ClassVar[str] = "rows.rotate:emit_rotate_rows"
    choices: ClassVar[Mapping[str, type[Enum]]] = {"pairing": Pairing}

    pairing: Pairing
    to: Slice
    source: Slice
    cos: Slice
    sin: Slice
    positions: Slice
    rows: Expression
    pairs: Expression
    rest: Expression

    def rules(self, types: Mapping[str, DType]) -> Iterator[tuple[bool, str]]:
        """Adjacent elements, one type of the rows and one of the tables."""
        for name in ("to", "source", "cos", "sin"):
            yield getattr(self, name).strides[1] == ADJACENT, f"elements of rows must be adjacent in {name}"
        yield types["to"] == types["source"], "to and source have one type"
        yield types["cos"] == types["sin"], "cos and sin have one type"
        yield types["positions"] == I64, "positions are 64-bit integers"

    def run(self, at: PrimitiveOperands) -> None:
        """The rotation in float64."""
        rows, pairs = at.number("rows"), at.number("pairs")
        columns = 2 * pairs + at.number("rest")
        if not rows:
            return
        positions = at.window("positions", rows, 1)[:, 0]
        cos, sin = (at.window(name, int(positions.max()) + 1, pairs)[positions] for name in ("cos", "sin"))
        found = rotary_meaning(at.window("source", rows, columns), cos, sin, self.pairing)
        at.window("to", rows, columns)[...] = found
