"""Conditions on rows behind pointers: those of C overlap no other row, no operand, no table of pointers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.llvm.build import Function
from tilewright.llvm.values import INT1, Value, int64
from tilewright.loops.llvm.symbols import Reloaded, split_rows
from tilewright.loops.nests.nest import ProductDimension
from tilewright.loops.splice.arithmetic import Invariants, kind_of, least, most
from tilewright.loops.splice.conditions import bytes_of
from tilewright.loops.splice.table_code import TableCode
from tilewright.loops.splice.table_operands import fused_dimensions, origin_of
from tilewright.loops.splice.table_plan import LocatedOperand, TablePlan
from tilewright.records import dataclass


@dataclass(frozen=True)
class RowSet:
    """Rows of one length: row i is the `length` bytes from `begin` + at[i] * size on."""

    at: Value
    count: Value
    begin: Value
    length: Value
    size: Value

    @property
    def arguments(self) -> list[Value]:
        """As `TableCode.apart` takes them."""
        return [self.at, self.count, self.begin, self.length, self.size]


class RowConditions:
    """The conditions of one product on rows, emitted into its function behind the filling of its tables.

    Parameters
    ----------
    counts : trip count of each dimension.
    tables, sizes : offsets of lanes and depths by letter and operand ("m.c"), and their numbers by letter.
    """

    def __init__(
        self,
        f: Function,
        invariants: Invariants,
        plan: TablePlan,
        counts: Mapping[ProductDimension, Value],
        code: TableCode,
        tables: Mapping[str, Value],
        sizes: Mapping[str, Value],
    ) -> None:
        self._f, self._invariants, self._plan, self._counts = f, invariants, plan, counts
        self._code, self._tables, self._sizes = code, tables, sizes

    def hold(self, reloaded: Sequence[Reloaded]) -> Value:
        """Whether the product may replace its loops.

        Parameters
        ----------
        reloaded : what is loaded in front of the nest, and so must not be written in it.
        """
        f = self._f
        a, b, c = self._plan.operands
        written = self._rows(c)
        holds = Value(INT1, "true") if c.rows is None else self._distinct(c)
        for other in (a, b):
            holds = f.and_(holds, self._apart(written, self._rows(other)))
        for one in (a, b, c):
            if one.rows is not None:
                holds = f.and_(holds, self._apart(written, self._pointers(one)))
        for symbol in reloaded:
            place = self._invariants.address(symbol.base, symbol.offset)
            read = self._single(f.ptrtoint(place), int64(bytes_of(kind_of(symbol).text)))
            holds = f.and_(holds, self._apart(written, read))
        return holds

    def _apart(self, left: RowSet, right: RowSet) -> Value:
        return self._f.call(self._code.apart, [*left.arguments, *right.arguments])

    def _single(self, begin: Value, length: Value) -> RowSet:
        return RowSet(self._tables["zeros"], int64(1), begin, length, int64(1))

    def _sides(self, one: LocatedOperand) -> tuple[tuple[Value, Value], tuple[Value, Value]]:
        """Offsets and their number: first of the dimensions that step from pointer to pointer."""
        sides = [fused for fused in fused_dimensions(self._plan) if one.name in fused.operands]
        sides.sort(key=lambda fused: not any(map(one.steps_rows, fused.dimensions)))
        first, second = (
            (self._tables[f"{fused.letter}.{one.name}"], self._sizes[fused.letter]) for fused in sides
        )
        return first, second

    def _reach(self, offsets: tuple[Value, Value]) -> tuple[Value, Value]:
        """The least and the largest offset."""
        low, high = (self._f.call(self._code.extreme, [*offsets, int64(sign)]) for sign in (1, -1))
        return low, high

    def _rows(self, one: LocatedOperand) -> RowSet:
        """The bytes of an operand; of a matrix, one row from the first to the last."""
        f, size = self._f, int64(one.dtype.size)
        outer, inner = self._sides(one)
        low, high = self._reach(inner)
        at, count = outer
        if one.rows is None:
            lowest, highest = self._reach(outer)
            low, high = f.add(low, lowest), f.add(high, highest)
            at, count = self._tables["zeros"], int64(1)
        begin = f.add(f.ptrtoint(origin_of(f, self._invariants, one)), f.mul(low, size))
        length = f.mul(f.add(f.sub(high, low), 1), size)
        return RowSet(at, count, begin, length, size)

    def _distinct(self, one: LocatedOperand) -> Value:
        """Whether no two iterations over C's dimensions have the same element."""
        f, distinct = self._f, self._code.distinct
        outer, inner = self._sides(one)
        low, high = self._reach(inner)
        rows = f.call(distinct, [*outer, f.add(f.sub(high, low), 1)])
        return f.and_(rows, f.call(distinct, [*inner, int64(1)]))

    def _pointers(self, one: LocatedOperand) -> RowSet:
        """The bytes of a table from the first to the last pointer that is read."""
        f, integer = self._f, self._invariants.integer
        low, high = int64(0), int64(8)
        for dimension, count in self._counts.items():
            step = split_rows(one.stride(dimension))[0]
            reach = f.mul(f.sub(count, 1), integer(step, f))
            low, high = f.add(low, least(f, reach, int64(0))), f.add(high, most(f, reach, int64(0)))
        start = f.ptrtoint(self._invariants.address(one.base, split_rows(one.operand.offset)[0]))
        return self._single(f.add(start, low), f.sub(high, low))
