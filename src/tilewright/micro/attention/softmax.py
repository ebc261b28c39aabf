"""Online softmax on blocks of scores: maximum, exponentials, sums, and the state between blocks.

Vectors run along the columns, which are keys. A row is cut into vectors at fixed columns, so that its sums
have one order wherever it begins to see keys; lanes outside of what a row sees are computed from zeros, so
that they raise no floating-point flag.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import ml_dtypes

from tilewright.llvm.build import Function
from tilewright.llvm.convert import Convert
from tilewright.llvm.floats import Floats
from tilewright.llvm.values import (
    Type,
    Value,
    constant,
    element_type,
    int64,
    memory_type,
    truth_of,
    vector_type,
    zero,
)
from tilewright.machine.isa import Isa
from tilewright.micro.calls import Operands, PrimitiveFunction, Window, value, window
from tilewright.micro.elements.math import LN2, exp2_nonpositive, tanh
from tilewright.spec.dtype import BF16, U8, DType

LOG2_E = 1 / LN2

#: Vectors per iteration over scores: as many maxima hide the latency of each.
UNROLLED = 4


#: Rows at once, of which each takes eight registers: sums, bases, and what exponentials are computed in.
MOST_ROWS = 4


class _Span(NamedTuple):
    """The columns that a row attends to, first .. end, and the whole vectors among them, inner .. last."""

    first: Value
    end: Value
    begin: Value  # of the vector that holds the first
    inner: Value
    last: Value


class SoftmaxCode:
    """Writes the rows of a `Softmax`."""

    def __init__(self, f: Function, isa: Isa, acc: DType, given: Operands) -> None:
        self.f, self.isa, self.acc, self.given = f, isa, acc, given
        self.lanes = isa.lanes(acc)
        self.vector = vector_type(acc, self.lanes)
        self.convert = Convert(f, half=isa.half)
        self.scores, self.weights = window(given, "scores"), window(given, "weights")
        names = ("key_scale", "softcap", "slope", "mask")
        self.modified = any(given[name] is not None for name in names)

    def rows(self) -> None:
        """Every row; several at once where all see the same keys, so that their latencies overlap."""
        f, count = self.f, value(self.given, "rows")
        together = self.together()
        whole = f.and_(count, int64(-together))
        if together > 1:
            with f.loop(int64(0), whole, int64(together), "rows") as row:
                self.several([f.add(row, number) for number in range(together)])
        with f.loop(whole if together > 1 else int64(0), count, int64(1), "row") as row:
            self.several([row])

    def together(self) -> int:
        """Rows at once: several where all see the same keys, states are adjacent and code is not quick."""
        adjacent = all(window(self.given, name).row.known == 1 for name in ("row_max", "row_sum"))
        if self.f.module.quick or self.given["low"] is not None or not adjacent:
            return 1
        return MOST_ROWS if self.isa.vector_registers >= 8 * MOST_ROWS else MOST_ROWS // 2

    def floats(self, kind: Type) -> Floats:
        """Arithmetic on values of some type."""
        return Floats(self.f, self.acc, kind, fused=self.isa.fused)

    def several(self, rows: list[Value]) -> None:
        """One row, or several adjacent ones: maximum, weights and sum, then the state."""
        f = self.f
        one = self.floats(vector_type(self.acc, len(rows)) if len(rows) > 1 else element_type(self.acc))
        size = self.acc.size
        span = self.span(rows[0])
        places = {name: window(self.given, name).at(f, rows[0]) for name in ("row_max", "row_sum")}
        old, before = (f.load(one.type, place, size) for place in places.values())
        found = self.maximum(rows, span)
        # Most blocks have no larger score; then nothing is reduced over lanes nor rescaled.
        grown = self.any_lane(self.larger(found, old))
        with f.once_if(grown, [old, before]) as (_, advance):
            new = one.at_least(old, self.across(found, lambda w, left, right: w.at_least(left, right)))
            factor = exp2_nonpositive(one, one.multiply(self.difference(one, old, new), one.constant(LOG2_E)))
            f.store(new, places["row_max"], size)
            self.rescale(rows, factor)
            advance([new, one.multiply(before, factor)])
        new, before = advance.results
        nothing = one.compare("==", new, one.constant(float("-inf")))
        finite = f.select(nothing, one.constant(0.0), new)
        total = self.exponentials(rows, span, finite)
        f.store(one.add(before, total), places["row_sum"], size)

    def larger(self, found: list[Value], old: Value) -> Value:
        """The lanes in which some row has a larger score than before."""
        v, truths = self.floats(self.vector), None
        for scores, most in zip(found, self.each(old, len(found)), strict=True):
            more = v.compare(">", scores, self.f.splat(most, self.lanes))
            truths = more if truths is None else self.f.or_(truths, more)
        assert truths is not None, "one row"
        return truths

    def difference(self, one: Floats, old: Value, new: Value) -> Value:
        """old - new; where they are equal 0: beside a row that has grown, both may be -inf."""
        if not one.type.lanes:
            return one.subtract(old, new)
        same = one.compare("==", old, new)
        old, new = (self.f.select(same, one.constant(0.0), part) for part in (old, new))
        return one.subtract(old, new)

    def each(self, values: Value, rows: int) -> list[Value]:
        """The number of each row."""
        return [values] if rows == 1 else [self.f.extract(values, row) for row in range(rows)]

    def any_lane(self, truths: Value) -> Value:
        """Whether a condition holds in any lane."""
        bits = Type(f"i{self.lanes}", f"i{self.lanes}")
        return self.f.icmp("!=", self.f.bitcast(truths, bits), 0)

    def span(self, row: Value) -> _Span:
        """The columns that a row attends to; an empty span at column 0 if there are none."""
        f, columns = self.f, value(self.given, "columns")
        first, end = int64(0), columns
        if self.given["low"] is not None:
            first = f.maximum(f.add(value(self.given, "low"), row), int64(0))
            end = f.minimum(f.add(value(self.given, "high"), row), columns)
            some = f.icmp("<", first, end)
            first, end = (f.select(some, part, int64(0)) for part in (first, end))
        down = int64(-self.lanes)
        begin = f.and_(first, down)
        inner = f.and_(f.add(first, self.lanes - 1), down)
        return _Span(first, end, begin, inner, f.and_(end, down))

    def walk(
        self,
        span: _Span,
        state: Sequence[Value],
        visit: Callable[[Value, Value | None, list[Value]], list[Value]],
        unrolled: int = 1,
    ) -> list[Value]:
        """Visits every vector of a span: at a column, with a mask where it has lanes outside, and a state."""
        f = self.f
        found = list(state)
        if span.first.known != 0:
            with f.once_if(f.icmp("<", span.begin, span.inner), found) as (values, advance):
                advance(visit(span.begin, self.inside(span, span.begin), list(values)))
            found = list(advance.results)
        start = span.inner
        for step in dict.fromkeys((unrolled, 1)):
            end = span.last if step == 1 else f.sub(span.last, (step - 1) * self.lanes)
            seen = [start, *found]
            with f.carried_loop(start, end, int64(step * self.lanes), seen, "vector") as (
                at,
                values,
                advance,
            ):
                now = list(values)[1:]
                for number in range(step):
                    now = visit(f.add(at, number * self.lanes), None, now)
                    now = [*now[1:], now[0]] if unrolled > 1 else now
                advance([f.add(at, step * self.lanes), *now])
            start, *found = advance.results
        tail = f.icmp("<", span.last, span.end)
        if span.first.known != 0:
            tail = f.and_(tail, f.icmp("<=", span.inner, span.last))
        with f.once_if(tail, found) as (values, advance):
            advance(visit(span.last, self.inside(span, span.last), list(values)))
        return list(advance.results)

    def inside(self, span: _Span, column: Value) -> Value:
        """The lanes of the vector at a column that a row attends to."""
        f = self.f
        mask = f.lane_mask(f.sub(span.end, column), 0, self.lanes)
        if span.first.known == 0:
            return mask
        before = f.lane_mask(f.sub(span.first, column), 0, self.lanes)
        return f.and_(mask, f.emit(before.type, f"xor {before.typed}, splat (i1 true)"))

    def maximum(self, rows: list[Value], span: _Span) -> list[Value]:
        """The largest scores of each row in each lane, times the scale; modified ones are written back."""
        v, f = self.floats(self.vector), self.f
        scale = f.splat(value(self.given, "scale"), self.lanes)
        lowest = v.constant(float("-inf"))

        def largest(row: Value, column: Value, mask: Value | None, so_far: Value) -> Value:
            place = self.scores.at(f, row, column)
            scores = f.load(self.vector, place, self.acc.size)
            if mask is not None:
                scores = f.select(mask, scores, zero(self.vector))
            scores = v.multiply(scores, scale)
            if self.modified:
                scores = self.modify(v, scores, row, column, mask)
            if mask is not None:
                scores = f.select(mask, scores, lowest)
            if self.modified:
                f.store(scores, place, self.acc.size)
            return v.at_least(so_far, scores)

        def visit(column: Value, mask: Value | None, state: list[Value]) -> list[Value]:
            seen = [largest(row, column, mask, found) for row, found in zip(rows, state, strict=False)]
            return [*seen, *state[len(rows) :]]

        if len(rows) > 1:
            return self.walk(span, [lowest] * len(rows), visit)
        found = self.walk(span, [lowest] * UNROLLED, visit, UNROLLED)
        while len(found) > 1:
            found = [v.at_least(found[0], found[1]), *found[2:]]
        return found

    def modify(self, v: Floats, t: Value, row: Value, column: Value, mask: Value | None) -> Value:
        """Scores with scales of keys, a cap, slopes and a mask."""
        f, given = self.f, self.given
        if given["key_scale"] is not None:
            t = v.multiply(t, self.along(window(given, "key_scale"), int64(0), column, mask))
        if given["softcap"] is not None:
            cap = f.splat(value(given, "softcap"), self.lanes)
            t = v.multiply(cap, tanh(v, v.divide(t, cap)))
        if given["slope"] is not None:
            slope = f.load(element_type(self.acc), window(given, "slope").pointer, self.acc.size)
            distance = self.distances(v, f.sub(f.add(value(given, "distance"), column), row))
            t = v.subtract(t, v.multiply(f.splat(slope, self.lanes), distance))
        if given["mask"] is not None:
            t = self.masked(v, t, row, column, mask)
        return t

    def distances(self, v: Floats, first: Value) -> Value:
        """|first + lane|, as floats."""
        f = self.f
        start = f.emit(element_type(self.acc), f"sitofp {first.typed} to {element_type(self.acc).text}")
        one = element_type(self.acc).text
        steps = ", ".join(f"{one} {constant(self.acc, lane).text}" for lane in range(self.lanes))
        return v.magnitude(v.add(f.splat(start, self.lanes), Value(self.vector, f"<{steps}>")))

    def along(self, place: Window, row: Value, column: Value, mask: Value | None) -> Value:
        """Elements of an operand at the columns of a vector, in their type in memory; 0 outside of a mask."""
        f, kind = self.f, vector_type(place.dtype, self.lanes)
        if place.column.known == 1:
            pointer = place.at(f, row, column)
            if mask is None:
                return f.load(kind, pointer, place.dtype.size)
            return f.masked_load(kind, pointer, mask, place.dtype.size)
        held = f.alloca(memory_type(place.dtype), self.lanes, 64)
        f.store(zero(kind), held, place.dtype.size)
        count = int64(self.lanes)
        if mask is not None:
            count = f.minimum(f.sub(value(self.given, "columns"), column), count)
        with f.loop(int64(0), count, int64(1), "lane") as lane:
            element = f.load(
                memory_type(place.dtype), place.at(f, row, f.add(column, lane)), place.dtype.size
            )
            f.store(element, f.at(held, f.mul(lane, place.dtype.size)), place.dtype.size)
        return f.load(kind, held, place.dtype.size)

    def masked(self, v: Floats, t: Value, row: Value, column: Value, mask: Value | None) -> Value:
        """Scores under a mask of booleans or of numbers."""
        f, place = self.f, window(self.given, "mask")
        lowest = v.constant(float("-inf"))
        found = self.along(place, row, column, mask)
        if place.dtype == U8:
            seen = f.emit(truth_of(found.type), f"icmp ne {found.typed}, zeroinitializer")
            return f.select(seen, t, lowest)
        most = _least(place.dtype) / 2
        numbers = self.convert(found, place.dtype, self.acc) if place.dtype.bits <= self.acc.bits else found
        if place.dtype.bits > self.acc.bits:
            numbers = f.emit(self.vector, f"fptrunc {found.typed} to {self.vector.text}")
            most = max(most, _least(self.acc) / 2)
        return f.select(v.compare("<=", numbers, v.constant(most)), lowest, v.add(t, numbers))

    def exponentials(self, rows: list[Value], span: _Span, bases: Value) -> Value:
        """Writes the weights of rows and the zeros around them; returns the sum of each row.

        2^((score · scale - base) · log₂ e): what is rounded is small where the weight is not. (Scores times
        log₂ e, less the base times that, would be an instruction fewer; but masks add -1e9 to whole rows, of
        which the roundings differ by more than there are exponents.)
        """
        v, f = self.floats(self.vector), self.f
        scale = f.splat(value(self.given, "scale"), self.lanes)
        log2_e = v.constant(LOG2_E)
        negated = [v.negate(f.splat(base, self.lanes)) for base in self.each(bases, len(rows))]

        def weigh(at: int, column: Value, mask: Value | None, so_far: Value) -> Value:
            row = rows[at]
            scores = f.load(self.vector, self.scores.at(f, row, column), self.acc.size)
            if mask is not None:
                scores = f.select(mask, scores, zero(self.vector))
            less = v.add(scores, negated[at]) if self.modified else v.multiply_add(scores, scale, negated[at])
            weights = exp2_nonpositive(v, v.multiply(less, log2_e))
            if mask is not None:
                weights = f.select(mask, weights, zero(self.vector))
            sums = v.add(so_far, weights)
            if self.given["weight_scale"] is not None:
                scales = self.along(window(self.given, "weight_scale"), int64(0), column, mask)
                weights = v.multiply(weights, scales)
            self.put(weights, row, column)
            return sums

        def visit(column: Value, mask: Value | None, state: list[Value]) -> list[Value]:
            return [weigh(at, column, mask, so_far) for at, so_far in enumerate(state)]

        end = f.and_(f.add(span.end, self.lanes - 1), int64(-self.lanes))
        for row in rows:
            self.zeros(row, int64(0), span.begin)
            self.zeros(row, end, value(self.given, "padded"))
        sums = self.walk(span, [zero(self.vector)] * len(rows), visit)
        return self.across(sums, lambda w, left, right: w.add(left, right))

    def put(self, weights: Value, row: Value, column: Value) -> None:
        """Stores a vector of weights in their type."""
        f, to = self.f, self.weights
        match to.dtype:
            case self.acc:
                narrow = weights
            case dtype if dtype == BF16:
                narrow = self.rounded(weights)
            case _:
                narrow = self.convert(weights, self.acc, to.dtype)
        f.store(narrow, to.at(f, row, column), to.dtype.size)

    def rounded(self, weights: Value) -> Value:
        """Weights to the nearest bf16, halves upwards: three instructions where halves to even take six.

        They are not negative. A NaN may become a number: the row's sum has it.
        """
        f, v = self.f, self.floats(weights.type)
        bits = f.plus(v.bits(weights), v.integer(1 << 15))
        high = f.emit(bits.type, f"lshr {bits.typed}, splat (i32 16)")
        return f.trunc(high, vector_type(BF16, self.lanes))

    def zeros(self, row: Value, begin: Value, end: Value) -> None:
        """Stores zero weights, in whole vectors."""
        if begin.known is not None and begin.known == end.known:
            return
        with self.f.loop(begin, end, int64(self.lanes), "nothing") as column:
            self.put(zero(self.vector), row, column)

    def across(self, vectors: list[Value], join: Callable[[Floats, Value, Value], Value]) -> Value:
        """All lanes of each vector as one, by halves: a number, or one of each vector side by side.

        Halves of several vectors are joined together; each lane with the same ones as those of one vector:

        before: a = a0 a1 a2 a3, b = b0 b1 b2 b3
        after:  a0+a2 a1+a3 b0+b2 b1+b3, then a0+a2+a1+a3 b0+b2+b1+b3
        """
        f, lanes, rows = self.f, self.lanes, 1
        while lanes > 1:
            lanes //= 2
            firsts = [2 * lanes * row + lane for row in range(rows) for lane in range(lanes)]
            if len(vectors) > 1:
                pairs = list(zip(vectors[::2], vectors[1::2], strict=True))
                firsts += [2 * lanes * rows + first for first in firsts]
                rows *= 2
            else:
                pairs = [(vectors[0], vectors[0])]
            parts = (
                [f.shuffle(left, right, [first + more for first in firsts]) for more in (0, lanes)]
                if len(firsts) > 1
                else [f.extract(left, 0), f.extract(left, 1)]
                for left, right in pairs
            )
            vectors = [join(self.floats(low.type), low, high) for low, high in parts]
        return vectors[0] if len(vectors) == 1 else f.concatenate(vectors)

    def rescale(self, rows: list[Value], factors: Value) -> None:
        """Unfinished results of each row times a factor."""
        f, out = self.f, window(self.given, "out")
        spread = [f.splat(factor, self.lanes) for factor in self.each(factors, len(rows))]
        with f.loop(int64(0), value(self.given, "out_columns"), int64(self.lanes), "part") as column:
            for row, factor in zip(rows, spread, strict=True):
                place = out.at(f, row, column)
                f.store(f.times(f.load(self.vector, place, self.acc.size), factor), place, self.acc.size)


def _least(dtype: DType) -> float:
    """The lowest finite number of a float type."""
    return float(ml_dtypes.finfo(dtype.numpy).min)  # type: ignore[no-untyped-call]


def emit_softmax(f: Function, isa: Isa, given: Operands) -> None:
    """Calls the function of a `Softmax`; a mask of another stride than 1 has one of its own."""
    acc = window(given, "scores").dtype
    mask = given["mask"]

    def write(inner: Function, operands: Operands) -> None:
        SoftmaxCode(inner, isa, acc, operands).rows()

    if not isinstance(mask, Window) or mask.column.known is not None:
        PrimitiveFunction(f, isa, "softmax", acc, given).call(write)
        return
    with f.branch(f.icmp("==", mask.column, 1)) as (adjacent, strided):
        with adjacent:
            PrimitiveFunction(f, isa, "softmax", acc, {**given, "mask": mask._replace(column=int64(1))}).call(
                write
            )
        with strided:
            PrimitiveFunction(f, isa, "softmax", acc, given).call(write)
