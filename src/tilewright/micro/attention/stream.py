"""Rows of keys and values, read once for few queries: the multiply instruction, and vectors of a row."""

from __future__ import annotations

from tilewright.llvm.build import Function
from tilewright.llvm.convert import Convert
from tilewright.llvm.values import (
    INT1,
    INT32,
    Type,
    Value,
    element_type,
    int64,
    memory_type,
    vector_constant,
    vector_of,
    vector_type,
    zero,
)
from tilewright.machine.isa import Edge, Isa
from tilewright.machine.machine import CACHE_LINE
from tilewright.micro.units.instructions import find_multiply
from tilewright.micro.units.multiply import VectorMultiply
from tilewright.spec.dtype import BF16, DType

#: Rows (of queries) whose products share the loads of one row of keys or values, tallest first.
HEIGHTS = (4, 2, 1)

#: Accumulators that hide the latency of any row's multiply-add, where there are registers for them.
MOST_ACCUMULATORS = 16


class Stream:
    """One matrix whose rows (keys or values) are read once, in vectors along the row.

    Parameters
    ----------
    isa : the row.
    a : element type of what it is multiplied with: queries, or weights.
    stored : its own element type in memory.
    acc : the type of the sums.
    columns : elements of a row, adjacent.
    """

    def __init__(self, isa: Isa, a: DType, stored: DType, acc: DType, columns: int) -> None:
        self.isa, self.stored, self.acc, self.columns = isa, stored, acc, columns
        self.tile = isa.pair_tile(a, stored)
        self.operand = acc if self.tile is None else BF16
        self.lanes = isa.lanes(acc)
        self.pairs = 1 if self.tile is None else 2
        #: Elements of one vector of the multiply instruction.
        self.width = self.lanes * self.pairs
        self.kind = vector_of(element_type(acc), self.lanes)
        accumulators = max(self.lanes, min(MOST_ACCUMULATORS, isa.vector_registers // 2))
        self.accumulators = accumulators
        self._multiply: VectorMultiply | None = None
        if self.tile is not None:
            multiply = find_multiply(isa, self.tile)
            assert isinstance(multiply, VectorMultiply), "one row of A"
            self._multiply = multiply

    @property
    def name(self) -> str:
        """Its part of a function's name."""
        return f"{self.operand}_{self.stored}_{self.columns}"

    @property
    def row_lines(self) -> int:
        """Cache lines of one row, of those that start on one."""
        return -(-self.columns * self.stored.size // CACHE_LINE)

    def multiply(self, f: Function, a: Value, b: Value, total: Value) -> Value:
        """total + a · b, of one element or one pair in each lane."""
        if self._multiply is None:
            return f.multiply_add(a, b, total, fused=self.isa.fused)
        return self._multiply.multiply(f, a, b, total)

    def word(self) -> Type:
        """What one lane of an operand holds: an element, or a pair."""
        return INT32 if self.pairs == 2 else element_type(self.operand)

    def load(self, f: Function, row: Value, first: int) -> Value:
        """Elements first .. first + width of a row in their type in memory, zero beyond its end."""
        size, rest = self.stored.size, min(self.width, self.columns - first)
        place = f.at(row, first * size)
        kind = vector_type(self.stored, self.width)
        if rest == self.width:
            return f.load(kind, place, size)
        if self.isa.edge_of(self.stored) is Edge.MASK:
            mask = vector_constant(INT1, [int(lane < rest) for lane in range(self.width)])
            return f.masked_load(kind, place, mask, size)
        vector = zero(kind)
        for lane in range(rest):
            one = f.load(memory_type(self.stored), f.at(place, lane * size), size)
            text = f"insertelement {vector.typed}, {one.typed}, i32 {lane}"
            vector = f.emit(kind, text)
        return vector

    def operands(self, f: Function, vector: Value) -> Value:
        """A vector from memory as the instruction takes it: words of pairs, or elements of the acc type."""
        if self.pairs == 2:
            return f.bitcast(vector, vector_of(INT32, self.lanes))
        return widen(f, self.isa, vector, self.stored, self.acc)

    def prefetch(self, f: Function, row: Value) -> None:
        """Prefetches a row of another matrix of this size to L1."""
        for line in range(self.row_lines):
            f.prefetch(f.at(row, line * CACHE_LINE), write=False, locality=3)


def widen(f: Function, isa: Isa, value: Value, source: DType, to: DType) -> Value:
    """A scalar or vector of memory as a float of another type; integers become floats, exactly."""
    if not source.is_integer:
        return Convert(f, half=isa.half)(value, source, to)
    lanes = value.type.lanes
    wide = vector_of(INT32, lanes) if lanes else INT32
    integers = f.sext(value, wide)
    kind = vector_of(element_type(to), lanes) if lanes else element_type(to)
    return f.emit(kind, f"sitofp {integers.typed} to {kind.text}")


def heights(f: Function, rows: Value) -> list[tuple[int, Value, Value]]:
    """Row tiles: for each height the first row and one past the last one; the tallest take most.

    Rows 0 .. of 4, then a tile of 2 and one of 1, as binary digits of the number of rows say.
    """
    found, begin = [], int64(0)
    for height in HEIGHTS:
        left = f.sub(rows, begin)
        whole = f.and_(left, int64(-height))
        end = f.add(begin, whole)
        found.append((height, begin, end))
        begin = end
    return found
