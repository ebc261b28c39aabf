"""Sums, means and extremes of rows, whose elements are adjacent or in different rows of memory."""

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
    join : makes one number of two; NaN if either is NaN.
    averages : whether the result is divided by the number of elements.
    ignoring_nan : `join` in one instruction, where a second number that is NaN is ignored; None for sums.
    """

    start: float
    join: Join
    averages: bool = False
    ignoring_nan: Join | None = None


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
_MAX = _Reduction(float("-inf"), _larger, ignoring_nan=lambda v, left, right: v.at_least(left, right))
_MIN = _Reduction(float("inf"), _smaller, ignoring_nan=lambda v, left, right: v.at_most(left, right))


def _along(lines: AlongRows, reduction: _Reduction) -> None:
    """Reduce rows along adjacent elements, in one pass.

    A check for NaN would delay an extreme by a comparison for every vector. So NaN is ignored, and the second
    number of each row remembers whether there was one.
    """
    v, one, nothing = lines.v, lines.one, lines.v.constant(reduction.start)

    def element(spot: Spot) -> Value:
        lines.fetch(spot)
        return lines.load(spot, nothing)

    ignoring_nan = reduction.ignoring_nan
    if ignoring_nan is None:
        for row, total in zip(lines.rows, lines.totals(element), strict=True):
            lines.write(row, one.divide(total, lines.count()) if reduction.averages else total)
        return

    def visit(spot: Spot, state: list[Value]) -> list[Value]:
        x = element(spot)
        return [ignoring_nan(v, state[0], x), v.f.select(_is_nan(v, x), x, state[1])]

    extremes = lines.reduce([reduction.start] * 2, visit, reduction.join)
    for row, (found, seen) in zip(lines.rows, extremes, strict=True):
        lines.write(row, _nan_or(one, seen, found))


def _across(lines: AcrossRows, reduction: _Reduction) -> None:
    """Reduce rows across memory, in one pass; elements that are visited together are joined first."""
    v, f = lines.v, lines.f
    if reduction.ignoring_nan is None:
        count = f.splat(lines.count(), lines.lanes) if reduction.averages else None
        lines.begin_sum(0)
        lines.add_columns(0, 2)
        lines.settle(lambda spot: lines.store(spot, lines.sums.rounded(lines.sum_at(0, spot), count)))
        return
    lines.begin(reduction.start)

    def visit(spots: Sequence[Spot]) -> None:
        found = [lines.load(spot) for spot in spots]
        while len(found) > 1:
            pairs = zip(found[::2], found[1::2], strict=True)
            found = [reduction.join(v, left, right) for left, right in pairs]
        lines.put(0, spots[0], reduction.join(v, lines.get(0, spots[0]), found[0]))

    lines.over(visit)
    lines.settle(lambda spot: lines.store(spot, lines.get(0, spot)))


def _emit(word: str, reduction: _Reduction) -> Callable[[Function, Isa, Operands], None]:
    """The emitter of a reduction's primitive, which calls a function of the module."""

    def emit(f: Function, isa: Isa, given: Operands) -> None:
        source = window(given, "source")
        acc: DType = source.dtype if source.dtype == F64 else F32

        def write(inner: Function, operands: Operands) -> None:
            by_length(
                inner,
                isa,
                (acc, operands),
                lambda lines: _along(lines, reduction),
                lambda lines: _across(lines, reduction),
                alike=reduction.ignoring_nan is not None,
            )

        PrimitiveFunction(f, isa, word, acc, given).call(write)

    return emit


emit_sum_rows = _emit("sum_rows", _SUM)
emit_mean_rows = _emit("mean_rows", _MEAN)
emit_max_rows = _emit("max_rows", _MAX)
emit_min_rows = _emit("min_rows", _MIN)
