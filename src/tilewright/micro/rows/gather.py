"""Rows gathered from a table: copied, or multiplied by a number; the next row is fetched meanwhile."""

from __future__ import annotations

from tilewright.llvm.build import Function
from tilewright.llvm.values import Value, element_type, int64, vector_type
from tilewright.machine.isa import Isa
from tilewright.micro.calls import Operands, PrimitiveFunction, value, window
from tilewright.micro.rows.lines import UNROLLED, Lines, Spot
from tilewright.spec.dtype import F32, F64, DType

#: Bytes of the next row that are fetched, and of a line: hardware fetches what follows in a row.
_FETCHED, _LINE = 256, 64


def emit_gather_rows(f: Function, isa: Isa, given: Operands) -> None:
    """Calls the function of a `GatherRows`."""
    acc = F64 if window(given, "to").dtype == F64 else F32
    PrimitiveFunction(f, isa, "gather_rows", acc, given).call(
        lambda inner, operands: _Gather(inner, isa, acc, operands).every()
    )


class _Gather(Lines):
    """The loop over the rows of the result."""

    def __init__(self, f: Function, isa: Isa, acc: DType, given: Operands) -> None:
        super().__init__(f, isa, acc, given)
        self.indices = window(given, "indices")
        self.scaled = given["scale"] is not None or given["scales"] is not None

    def every(self) -> None:
        """All rows."""
        f, rows = self.f, value(self.given, "rows")
        last = f.sub(rows, 1)
        with f.loop(int64(0), rows, int64(1), "row") as row:
            following = self.source.at(f, self._index(f.minimum(f.add(row, 1), last)))
            for line in range(0, _FETCHED, _LINE):
                f.prefetch(f.at(following, line), write=False, locality=3)
            index = self._index(row)
            self._row(row, index, self._factor(index) if self.scaled else None)

    def _index(self, row: Value) -> Value:
        """The row of the source for one of the result."""
        return self.indices.entry(self.f, self.f.mul(row, self.indices.row))

    def _factor(self, index: Value) -> Value:
        """What a row is multiplied by, in every lane."""
        f, scale = self.f, self.given["scale"]
        factors = [] if scale is None else [value(self.given, "scale")]
        if self.given["scales"] is not None:
            scales = window(self.given, "scales")
            factors.append(f.load(element_type(F32), scales.at(f, index), F32.size))
        factor = factors[0] if len(factors) == 1 else f.times(*factors)
        return f.splat(factor, self.lanes)

    def _row(self, row: Value, index: Value, factor: Value | None) -> None:
        """One row: whole vectors, several in a turn, then its last elements."""
        f, lanes, start = self.f, self.lanes, int64(0)
        whole = f.and_(self.columns, int64(-lanes))
        for step in (UNROLLED, 1):
            end = f.sub(whole, (step - 1) * lanes)
            with f.carried_loop(start, end, int64(step * lanes), [start], "vector") as (at, _, advance):
                for number in range(step):
                    self._vector(Spot(row, f.add(at, number * lanes)), index, factor)
                advance([f.add(at, step * lanes)])
            (start,) = advance.results
        with f.when(f.icmp("<", whole, self.columns)):
            mask = f.lane_mask(f.sub(self.columns, whole), 0, lanes)
            self._vector(Spot(row, whole, mask), index, factor)

    def _vector(self, spot: Spot, index: Value, factor: Value | None) -> None:
        """One vector of a row."""
        f, source = self.f, self.source
        place = source.at(f, index, spot.column)
        if factor is not None:
            self.store(spot, self.v.multiply(self.widened(source, place, spot.mask), factor))
            return
        kind, size = vector_type(source.dtype, self.lanes), source.dtype.size
        to = self.to.at(f, spot.row, spot.column)
        if spot.mask is None:
            f.store(f.load(kind, place, size), to, size)
        else:
            f.masked_store(f.masked_load(kind, place, spot.mask, size), to, spot.mask, size)
