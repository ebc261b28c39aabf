"""Functions of pairs of elements, along rows: vectors of both operands, or one element for a whole row."""

from __future__ import annotations

from tilewright.llvm.build import Function
from tilewright.llvm.floats import Floats
from tilewright.llvm.values import Value, int64, memory_type, truth_of
from tilewright.machine.isa import Isa
from tilewright.micro.calls import Operands, PrimitiveFunction, choice, value, window
from tilewright.micro.elements.math import emit
from tilewright.micro.rows.lines import UNROLLED, Lines, Spot
from tilewright.spec.binary_functions import BinaryOp
from tilewright.spec.dtype import F32, F64, DType
from tilewright.spec.functions import UnaryOp


def emit_combine_rows(f: Function, isa: Isa, given: Operands) -> None:
    """Calls the function of a `CombineRows`."""
    acc = F64 if window(given, "to").dtype == F64 else F32

    def write(inner: Function, operands: Operands) -> None:
        pairs = _Pairs(inner, isa, acc, operands)
        with inner.loop(int64(0), value(operands, "rows"), int64(1), "row") as row:
            pairs.row(row)
        if pairs.stream.known != 0:
            with inner.when(inner.icmp("!=", pairs.stream, 0)):
                inner.fence()

    PrimitiveFunction(f, isa, "combine_rows", acc, given).call(write)


class _Pairs(Lines):
    """The passes over rows of two operands."""

    def __init__(self, f: Function, isa: Isa, acc: DType, given: Operands) -> None:
        super().__init__(f, isa, acc, {**given, "source": given["left"]})
        self.op = choice(given, "op", BinaryOp)
        self.activation = None if given["activation"] is None else choice(given, "activation", UnaryOp)
        self.stream = self.number("stream")
        #: Values of operands that have one element for the whole of the current row.
        self.repeated: dict[str, Value] = {}

    def row(self, row: Value) -> None:
        """One row: near the caches, or past them with whole vectors that begin where the destination's do."""
        f, start = self.f, int64(0)
        self.repeated = {}
        for name in ("left", "right"):
            place = window(self.given, name)
            if place.column.known == 0:
                one = f.load(memory_type(place.dtype), place.at(f, row), place.dtype.size)
                vector = f.splat(self.same(one, place.dtype), self.lanes)
                self.repeated[name] = self._activated(vector) if name == "right" else vector
        if self.stream.known == 0:
            self._pass(row, start, past=False)
            return
        with f.branch(f.icmp("==", self.stream, 0)) as (near, past):
            with near:
                self._pass(row, start, past=False)
            with past:
                lead = self.lead(row)
                with f.when(f.icmp(">", lead, 0)):
                    self._vector(Spot(row, start, mask=f.lane_mask(lead, 0, self.lanes)))
                self._pass(row, lead, past=True)

    def _pass(self, row: Value, start: Value, *, past: bool) -> None:
        """The vectors of a row from a column on, several in a turn if they take few instructions."""
        f, lanes, columns = self.f, self.lanes, self.columns
        whole = f.add(start, f.and_(f.sub(columns, start), int64(-lanes)))
        light = self.activation is None or self.activation.single
        for step in (UNROLLED, 1) if light else (1,):
            last = f.sub(whole, (step - 1) * lanes)
            with f.carried_loop(start, last, int64(step * lanes), [start], "vector") as (at, _, advance):
                for number in range(step):
                    self._vector(Spot(row, f.add(at, number * lanes), past=past))
                advance([f.add(at, step * lanes)])
            (start,) = advance.results
        with f.when(f.icmp("<", whole, columns)):
            self._vector(Spot(row, whole, mask=f.lane_mask(f.sub(columns, whole), 0, lanes)))

    def _vector(self, spot: Spot) -> None:
        """One vector of results."""
        left = self._operand("left", spot)
        right = self.repeated.get("right")
        if right is None:
            right = self._activated(self._operand("right", spot))
        if spot.mask is not None and self.op is BinaryOp.DIVIDE:  # 0 / 0 in unused lanes would raise a flag
            right = self.f.select(spot.mask, right, self.v.constant(1.0))
        self.store(spot, _combined(self.v, self.op, left, right))

    def _operand(self, name: str, spot: Spot) -> Value:
        """Elements of an operand; zeros, or the one for the whole row, in unused lanes."""
        found = self.repeated.get(name)
        if found is not None:
            return found
        place = window(self.given, name)
        return self.widened(place, place.at(self.f, spot.row, spot.column), spot.mask)

    def _activated(self, right: Value) -> Value:
        """The activation of a vector of right's elements."""
        if self.activation is None:
            return right
        return emit(self.f, self.activation, self.acc, right, fused=self.fused)


def _combined(v: Floats, op: BinaryOp, left: Value, right: Value) -> Value:
    """The function on vectors."""
    match op:
        case BinaryOp.ADD:
            return v.add(left, right)
        case BinaryOp.SUBTRACT:
            return v.subtract(left, right)
        case BinaryOp.MULTIPLY:
            return v.multiply(left, right)
        case BinaryOp.DIVIDE:
            return v.divide(left, right)
        case BinaryOp.MAXIMUM:
            return _or_nan(v, right, v.at_least(left, right))
        case BinaryOp.MINIMUM:
            return _or_nan(v, right, v.at_most(left, right))


def _or_nan(v: Floats, right: Value, found: Value) -> Value:
    """The extremum of two elements, or right where that is NaN: comparisons with NaN leave left."""
    nothing = v.f.emit(truth_of(v.type), f"fcmp uno {right.typed}, {right.text}")
    return v.f.select(nothing, right, found)
