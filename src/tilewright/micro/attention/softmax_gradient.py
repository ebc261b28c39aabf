"""Weights and gradients of scores whose softmax is known, and zeros for operands without weight."""

from __future__ import annotations

from tilewright.llvm.build import Function
from tilewright.llvm.convert import Convert
from tilewright.llvm.values import (
    Type,
    Value,
    element_type,
    every_lane,
    int64,
    truth_of,
    vector_of,
    vector_type,
    zero,
)
from tilewright.machine.isa import Isa
from tilewright.micro.attention.softmax import SoftmaxCode
from tilewright.micro.calls import Operands, PrimitiveFunction, Window, value, window
from tilewright.micro.elements.math import exp_nonpositive, tanh
from tilewright.spec.dtype import DType


class SoftmaxGradientCode(SoftmaxCode):
    """Writes the rows of a `SoftmaxGradient`; what a row sees and modified scores as in `Softmax`."""

    def __init__(self, f: Function, isa: Isa, acc: DType, given: Operands) -> None:
        self.f, self.isa, self.acc = f, isa, acc
        # The cap is applied here, because its derivative is wanted too.
        self.given = {**given, "softcap": None, "key_scale": None}
        self.capped = given["softcap"] is not None
        self.lanes = isa.lanes(acc)
        self.vector = vector_type(acc, self.lanes)
        self.convert = Convert(f, half=isa.half)
        self.scores, self.products = window(given, "scores"), window(given, "products")
        self.modified = self.capped or any(given[name] is not None for name in ("slope", "mask"))
        self.cap = f.splat(value(given, "softcap"), self.lanes) if self.capped else None

    def together(self) -> int:
        """One row at once: nothing waits for the sum of its lanes."""
        return 1

    def several(self, rows: list[Value]) -> None:
        """One row: weights and gradients of the columns it attends to, zeros around them."""
        (row,) = rows
        f, v, size = self.f, self.floats(self.vector), self.acc.size
        one, kind = self.floats(element_type(self.acc)), element_type(self.acc)
        lse = f.load(kind, window(self.given, "lse").at(f, row), size)
        # Nothing was seen: e^(t - inf) = 0, where e^(t + inf) would not be.
        seen_nothing = one.compare("==", lse, one.constant(float("-inf")))
        lse = f.select(seen_nothing, one.constant(float("inf")), lse)
        less = f.splat(one.negate(lse), self.lanes)
        delta = f.splat(f.load(kind, window(self.given, "delta").at(f, row), size), self.lanes)
        scale = f.splat(value(self.given, "scale"), self.lanes)
        span = self.span(row)

        def visit(column: Value, mask: Value | None, state: list[Value]) -> list[Value]:
            scores, products = (
                f.load(self.vector, place.at(f, row, column), size) for place in (self.scores, self.products)
            )
            if mask is not None:
                scores, products = (f.select(mask, part, zero(self.vector)) for part in (scores, products))
            derivative = None
            if self.modified:
                t = v.multiply(scores, scale)
                if self.cap is not None:
                    bounded = tanh(v, v.divide(t, self.cap))
                    t = v.multiply(self.cap, bounded)
                    derivative = v.subtract(v.constant(1.0), v.multiply(bounded, bounded))
                t = v.add(self.modify(v, t, row, column, mask), less)
            else:
                t = v.multiply_add(scores, scale, less)
            if mask is not None:
                t = f.select(mask, t, v.constant(float("-inf")))
            weights = exp_nonpositive(v, t, flushed=True)
            gradients = v.multiply(weights, v.subtract(products, delta))
            if derivative is not None:
                gradients = v.multiply(gradients, derivative)
            # A value of weight 0 has gradient 0, even if it is NaN.
            unseen = v.compare("==", weights, v.constant(0.0))
            self.both(weights, f.select(unseen, zero(self.vector), gradients), row, column)
            return state

        self.nothing(row, int64(0), span.begin)
        self.walk(span, [], visit)
        end = f.and_(f.add(span.end, self.lanes - 1), int64(-self.lanes))
        self.nothing(row, end, value(self.given, "padded"))

    def both(self, weights: Value, gradients: Value, row: Value, column: Value) -> None:
        """Stores a vector of each in their types; weights only if they are needed."""
        f = self.f
        for name, values in (("weights", weights), ("gradients", gradients)):
            to = self.given[name]
            if isinstance(to, Window):
                narrow = values if to.dtype == self.acc else self.convert(values, self.acc, to.dtype)
                f.store(narrow, to.at(f, row, column), to.dtype.size)

    def nothing(self, row: Value, begin: Value, end: Value) -> None:
        """Zeros in whole vectors."""
        if begin.known is not None and begin.known == end.known:
            return
        with self.f.loop(begin, end, int64(self.lanes), "nothing") as column:
            self.both(zero(self.vector), zero(self.vector), row, column)


def emit_softmax_gradient(f: Function, isa: Isa, given: Operands) -> None:
    """Calls the function of a `SoftmaxGradient`; a mask of another stride than 1 has one of its own."""
    acc = window(given, "scores").dtype
    mask = given["mask"]

    def write(inner: Function, operands: Operands) -> None:
        SoftmaxGradientCode(inner, isa, acc, operands).rows()

    def call(operands: Operands) -> None:
        PrimitiveFunction(f, isa, "softmax_gradient", acc, operands).call(write)

    if not isinstance(mask, Window) or mask.column.known is not None:
        call(given)
        return
    with f.branch(f.icmp("==", mask.column, 1)) as (adjacent, strided):
        with adjacent:
            call({**given, "mask": mask._replace(column=int64(1))})
        with strided:
            call(given)


def emit_finite(f: Function, isa: Isa, given: Operands) -> None:
    """Calls the function of a `Finite`: what has every bit of the exponent set becomes 0."""
    dtype = window(given, "values").dtype
    word = Type(f"i{dtype.bits}", f"i{dtype.bits}")
    fraction = dtype.significand - 1
    exponent = (1 << dtype.bits - 1 - fraction) - 1 << fraction

    def write(f: Function, given: Operands) -> None:
        values, end = window(given, "values"), value(given, "elements")

        def visit(element: Value, kind: Type) -> None:
            place = values.at(f, int64(0), element)
            bits = f.load(kind, place, dtype.size)
            mask = every_lane(bits, exponent)
            special = f.emit(truth_of(kind), f"icmp eq {f.and_(bits, mask).typed}, {mask.text}")
            f.store(f.select(special, zero(kind), bits), place, dtype.size)

        lanes = isa.lanes(dtype)
        last = f.and_(end, int64(-lanes))
        with f.loop(int64(0), last, int64(lanes), "vector") as element:
            visit(element, vector_of(word, lanes))
        with f.loop(last, end, int64(1), "element") as element:
            visit(element, word)

    PrimitiveFunction(f, isa, "finite", dtype, given).call(write)
