"""Sums, means and extremes of whole rows, along a row or of rows side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tilewright.llvm.build import Function
from tilewright.llvm.floats import Floats
from tilewright.llvm.values import Value, truth_of
from tilewright.machine.isa import Isa
from tilewright.micro.calls import Operands, PrimitiveFunction, window
from tilewright.micro.rows.across import AcrossRows
from tilewright.micro.rows.by_length import by_length
from tilewright.micro.rows.lines import AlongRows, Join, Spot
from tilewright.spec.dtype import F32, F64, DType


class _Reduction(NamedTuple):
    """A reduction of a row to one number.

    Attributes
    ----------
    start : the neutral element: -0 for sums, since +0 would change a row of -0.
    join : of two numbers, one; NaN where one of them is NaN.
    averages : whether the result is divided by the number of elements.
    passing : as `join` in one instruction, which passes over a second number that is NaN.
    """

    start: float
    join: Join
    averages: bool = False
    passing: Join | None = None


def _sum(v: Floats, left: Value, right: Value) -> Value:
    return v.add(left, right)


def _nan_or(v: Floats, left: Value, chosen: Value) -> Value:
    """`left` if it is NaN."""
    return v.f.select(_is_nan(v, left), left, chosen)


def _is_nan(v: Floats, x: Value) -> Value:
    return v.f.emit(truth_of(x.type), f"fcmp uno {x.typed}, {x.text}")


def _larger(v: Floats, left: Value, right: Value) -> Value:
    return _nan_or(v, left, v.at_least(right, left))


def _smaller(v: Floats, left: Value, right: Value) -> Value:
    return _nan_or(v, left, v.at_most(right, left))


_SUM, _MEAN = _Reduction(-0.0, _sum), _Reduction(-0.0, _sum, averages=True)
_MAX = _Reduction(float("-inf"), _larger, passing=lambda v, left, right: v.at_least(left, right))
_MIN = _Reduction(float("inf"), _smaller, passing=lambda v, left, right: v.at_most(left, right))


def _along(lines: AlongRows, what: _Reduction) -> None:
    """One pass, row by row.

    An extreme that looks for NaN waits for a comparison at every vector. So it passes over NaN, which the
    second number of each row remembers.
    """
    v, one, nothing = lines.v, lines.one, lines.v.constant(what.start)

    def element(spot: Spot) -> Value:
        lines.fetch(spot)
        return lines.load(spot, nothing)

    passing = what.passing
    if passing is None:
        for row, total in zip(lines.rows, lines.totals(element), strict=True):
            lines.write(row, one.divide(total, lines.count()) if what.averages else total)
        return

    def visit(spot: Spot, state: list[Value]) -> list[Value]:
        x = element(spot)
        return [passing(v, state[0], x), v.f.select(_is_nan(v, x), x, state[1])]

    extremes = lines.reduce([what.start] * 2, visit, what.join)
    for row, (found, seen) in zip(lines.rows, extremes, strict=True):
        lines.write(row, _nan_or(one, seen, found))


def _across(lines: AcrossRows, what: _Reduction) -> None:
    """One reading, column by column; those that are met together are joined first."""
    v, f = lines.v, lines.f
    if what.passing is None:
        count = f.splat(lines.count(), lines.lanes) if what.averages else None
        lines.begin_sum(0)
        lines.add_columns(0, 2)
        lines.settle(lambda spot: lines.store(spot, lines.sums.rounded(lines.sum_at(0, spot), count)))
        return
    lines.begin(what.start)

    def meet(spots: Sequence[Spot]) -> None:
        found = [lines.load(spot) for spot in spots]
        while len(found) > 1:
            pairs = zip(found[::2], found[1::2], strict=True)
            found = [what.join(v, left, right) for left, right in pairs]
        lines.put(0, spots[0], what.join(v, lines.get(0, spots[0]), found[0]))

    lines.over(meet)
    lines.settle(lambda spot: lines.store(spot, lines.get(0, spot)))


def _emit(word: str, what: _Reduction) -> Callable[[Function, Isa, Operands], None]:
    """What calls the function of a primitive."""

    def emit(f: Function, isa: Isa, given: Operands) -> None:
        source = window(given, "source")
        acc: DType = source.dtype if source.dtype == F64 else F32

        def write(inner: Function, operands: Operands) -> None:
            by_length(
                inner,
                isa,
                (acc, operands),
                lambda lines: _along(lines, what),
                lambda lines: _across(lines, what),
                alike=what.passing is not None,
            )

        PrimitiveFunction(f, isa, word, acc, given).call(write)

    return emit


emit_sum_rows = _emit("sum_rows", _SUM)
emit_mean_rows = _emit("mean_rows", _MEAN)
emit_max_rows = _emit("max_rows", _MAX)
emit_min_rows = _emit("min_rows", _MIN)
