"""Merges the states of rows over different keys: their maxima, sums and unfinished results."""

from __future__ import annotations

from tilewright.llvm.build import Function
from tilewright.llvm.floats import Floats
from tilewright.llvm.values import element_type, int64, vector_type
from tilewright.machine.isa import Isa
from tilewright.micro.calls import Operands, PrimitiveFunction, value, window
from tilewright.micro.elements.math import exp_nonpositive


def emit_merge(f: Function, isa: Isa, given: Operands) -> None:
    """Calls the function of a `Merge`."""
    acc = window(given, "out").dtype

    def write(f: Function, given: Operands) -> None:
        names = ("row_max", "row_sum", "out", "other_max", "other_sum", "other")
        most, total, out, other_max, other_sum, other = (window(given, name) for name in names)
        one = Floats(f, acc, element_type(acc), fused=isa.fused)
        kind, lanes, size = vector_type(acc, isa.lanes(acc)), isa.lanes(acc), acc.size
        with f.loop(int64(0), value(given, "rows"), int64(1), "row") as row:
            old, new = (f.load(one.type, part.at(f, row), size) for part in (most, other_max))
            larger = one.at_least(new, old)
            nothing = one.compare("==", larger, one.constant(float("-inf")))
            base = f.select(nothing, one.constant(0.0), larger)
            factors = [exp_nonpositive(one, one.subtract(part, base), flushed=True) for part in (old, new)]
            sums = [f.load(one.type, part.at(f, row), size) for part in (total, other_sum)]
            merged = one.multiply_add(sums[0], factors[0], one.multiply(sums[1], factors[1]))
            f.store(larger, most.at(f, row), size)
            f.store(merged, total.at(f, row), size)
            left, right = (f.splat(factor, lanes) for factor in factors)
            with f.loop(int64(0), value(given, "columns"), int64(lanes), "column") as column:
                values, added = (f.load(kind, part.at(f, row, column), size) for part in (out, other))
                result = f.multiply_add(values, left, f.times(added, right), fused=isa.fused)
                f.store(result, out.at(f, row, column), size)

    PrimitiveFunction(f, isa, "merge", acc, given).call(write)
