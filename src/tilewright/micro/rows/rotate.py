"""Rotary embeddings: vectors of pairs of a row's elements, times the cosines and sines of its position."""

from __future__ import annotations

from tilewright.llvm.build import Function
from tilewright.llvm.values import Value, int64, vector_type
from tilewright.machine.isa import Isa
from tilewright.micro.calls import Operands, PrimitiveFunction, choice, value, window
from tilewright.micro.rows.lines import Lines
from tilewright.spec.dtype import F32, F64, DType
from tilewright.spec.rotary import Pairing


def emit_rotate_rows(f: Function, isa: Isa, given: Operands) -> None:
    """Calls the function of a `RotateRows`."""
    acc = F64 if window(given, "to").dtype == F64 else F32

    def write(inner: Function, operands: Operands) -> None:
        rotation = _Rotation(inner, isa, acc, operands)
        positions = window(operands, "positions")
        with inner.loop(int64(0), value(operands, "rows"), int64(1), "row") as row:
            rotation.row(row, positions.entry(inner, inner.mul(row, positions.row)))

    PrimitiveFunction(f, isa, "rotate_rows", acc, given).call(write)


class _Rotation(Lines):
    """The pass over one row."""

    def __init__(self, f: Function, isa: Isa, acc: DType, given: Operands) -> None:
        pairs = value(given, "pairs")
        super().__init__(f, isa, acc, {**given, "columns": pairs})
        self.pairs, self.pairing = pairs, choice(given, "pairing", Pairing)

    def row(self, row: Value, position: Value) -> None:
        """Rotates the pairs of a row, whole vectors first, and copies its other elements."""
        f, lanes = self.f, self.lanes
        whole = f.and_(self.pairs, int64(-lanes))
        with f.loop(int64(0), whole, int64(lanes), "vector") as pair:
            self._rotate(row, position, pair, None)
        with f.when(f.icmp("<", whole, self.pairs)):
            self._rotate(row, position, whole, f.sub(self.pairs, whole))
        self._copy(row, f.mul(self.pairs, 2), f.add(f.mul(self.pairs, 2), value(self.given, "rest")))

    def _rotate(self, row: Value, position: Value, pair: Value, count: Value | None) -> None:
        """One vector of pairs, or `count` of them."""
        f, v = self.f, self.v
        mask = None if count is None else f.lane_mask(count, 0, self.lanes)
        tables = (window(self.given, name) for name in ("cos", "sin"))
        cos, sin = (self.widened(place, place.at(f, position, pair), mask) for place in tables)
        a, b = self._load(row, pair, count, mask)
        first = v.multiply_add(a, cos, v.negate(v.multiply(b, sin)))
        second = v.multiply_add(b, cos, v.multiply(a, sin))
        self._store(row, pair, count, mask, (first, second))

    def _load(self, row: Value, pair: Value, count: Value | None, mask: Value | None) -> tuple[Value, Value]:
        """The elements of pairs: the first ones, and the second ones."""
        f, source, lanes = self.f, self.source, self.lanes
        if self.pairing is Pairing.HALVES:
            places = (pair, f.add(pair, self.pairs))
            first, second = (self.widened(source, source.at(f, row, place), mask) for place in places)
            return first, second
        pointer, kind = source.at(f, row, f.mul(pair, 2)), vector_type(source.dtype, 2 * lanes)
        if count is None:
            both = f.load(kind, pointer, source.dtype.size)
        else:
            both = f.masked_load(kind, pointer, self._both(count), source.dtype.size)
        first, second = (f.shuffle(both, both, range(part, 2 * lanes, 2)) for part in range(2))
        return self.same(first, source.dtype), self.same(second, source.dtype)

    def _store(
        self, row: Value, pair: Value, count: Value | None, mask: Value | None, parts: tuple[Value, Value]
    ) -> None:
        """Writes rotated pairs, rounded to the element type."""
        f, to, lanes, size = self.f, self.to, self.lanes, self.to.dtype.size
        first, second = (self.convert(part, self.acc, to.dtype) for part in parts)
        if self.pairing is Pairing.HALVES:
            for part, place in ((first, pair), (second, f.add(pair, self.pairs))):
                pointer = to.at(f, row, place)
                if mask is None:
                    f.store(part, pointer, size)
                else:
                    f.masked_store(part, pointer, mask, size)
            return
        both = f.shuffle(first, second, [lane + lanes * part for lane in range(lanes) for part in range(2)])
        pointer = to.at(f, row, f.mul(pair, 2))
        if count is None:
            f.store(both, pointer, size)
        else:
            f.masked_store(both, pointer, self._both(count), size)

    def _both(self, count: Value) -> Value:
        """The lanes of both elements of so many pairs."""
        return self.f.lane_mask(self.f.mul(count, 2), 0, 2 * self.lanes)

    def _copy(self, row: Value, first: Value, end: Value) -> None:
        """Elements that are not rotated."""
        f, lanes, size = self.f, self.lanes, self.to.dtype.size
        kind = vector_type(self.to.dtype, lanes)
        whole = f.add(first, f.and_(f.sub(end, first), int64(-lanes)))
        with f.loop(first, whole, int64(lanes), "copied") as column:
            found = f.load(kind, self.source.at(f, row, column), size)
            f.store(found, self.to.at(f, row, column), size)
        with f.when(f.icmp("<", whole, end)):
            mask = f.lane_mask(f.sub(end, whole), 0, lanes)
            found = f.masked_load(kind, self.source.at(f, row, whole), mask, size)
            f.masked_store(found, self.to.at(f, row, whole), mask, size)
