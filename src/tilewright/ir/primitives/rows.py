"""Primitives of functions of whole rows: softmax, norms, and reductions to one number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import numpy as np

from tilewright.ir.expressions import ADJACENT, Expression, ScalarValue
from tilewright.ir.nodes import Primitive, PrimitiveOperands, Slice
from tilewright.records import dataclass
from tilewright.spec.dtype import F32, F64, DType
from tilewright.spec.row_functions import RowOp, row_meaning

#: Adjacent rows computed at a time: the sums of one become one number while the next is added up.
PAIR = 2

#: Numbers stored for each of several adjacent rows between two passes over them: for layer norm a mean, a
#: factor, a shift and a long sum, which takes two.
STATES = 5


@dataclass(frozen=True)
class RowPrimitive(Primitive):
    """Base of functions of rows: ``to`` from ``source``, `rows` of `columns` elements."""

    long: ClassVar[bool] = True
    op: ClassVar[RowOp]

    to: Slice
    source: Slice
    rows: Expression
    columns: Expression

    def rules(self, types: Mapping[str, DType]) -> Iterator[tuple[bool, str]]:
        """Adjacent elements along one axis, one type, and a state if rows are adjacent."""
        to, source = self._window("to"), self._window("source")
        assert to is not None
        assert source is not None
        wide = F64 if types["to"].bits == F64.bits else F32
        by_rows = source.strides[1] == ADJACENT
        if self.op.reduces:
            across = source.strides[0] == to.strides[0] == ADJACENT
            yield by_rows or across, "elements of rows, or rows and their numbers, must be adjacent"
        else:
            both = (to.strides, source.strides)
            adjacent = any(all(strides[axis] == ADJACENT for strides in both) for axis in (0, 1))
            yield adjacent, "elements of rows, or of columns, must be adjacent in to and source"
        yield types["to"] == types["source"], "to and source have one type"
        yield by_rows or self._window("state") is not None, "adjacent rows need their state"
        for name in ("weight", "bias", "kept", "state"):
            along = self._window(name)
            if along is not None:
                yield along.strides[1] == ADJACENT, f"elements of {name} must be adjacent"
                kept = name in ("weight", "bias") or types[name] == wide
                yield kept, f"{name} is of the type that rows are computed in"

    def run(self, at: PrimitiveOperands) -> None:
        """The operation on every row, in float64."""
        rows, columns = at.number("rows"), at.number("columns")
        eps = at.number("eps") if self.op.takes_eps else 0.0
        with np.errstate(all="ignore"):
            found = row_meaning(self.op, at.window("source", rows, columns).astype(np.float64), eps)
        if self._window("weight") is not None:
            found = found * at.window("weight", 1, columns)
        if self._window("bias") is not None:
            found = found + at.window("bias", 1, columns)
        if self.op.reduces:
            at.window("to", rows, 1)[...] = found[:, np.newaxis]
        else:
            at.window("to", rows, columns)[...] = found

    def _window(self, name: str) -> Slice | None:
        """A field that is a window; None if the primitive has no such field."""
        found: Slice | None = getattr(self, name, None)
        return found


@dataclass(frozen=True)
class WholeRows(RowPrimitive):
    """Base of functions whose results are rows as long as the source's, which may be `to` itself.

    Attributes
    ----------
    stream : results of adjacent elements are stored past the caches if it is not 0.
    ahead : prefetch distance of the source in elements; 0 if the caches could not keep the rows.
    """

    stream: Expression
    ahead: Expression


@dataclass(frozen=True)
class SoftmaxRows(WholeRows):
    """to = e^(x - max x) / Σ e^(x - max x) of every row x.

    Elements of rows are adjacent in both, or those of columns are. A row with NaN or inf, or without any
    number above -inf, becomes NaN.

    Attributes
    ----------
    kept : buffer for the exponentials of `PAIR` rows, whole vectors; without it they are kept in `to` or
        computed twice.
    state : if columns are adjacent, a buffer for partial results: `STATES` numbers per row, and room for
        whole vectors after the last row.
    """

    word: ClassVar[str] = "softmax_rows"
    emission: ClassVar[str] = "rows.functions:emit_softmax_rows"
    op: ClassVar[RowOp] = RowOp.SOFTMAX

    kept: Slice | None = None
    state: Slice | None = None


@dataclass(frozen=True)
class LogSoftmaxRows(WholeRows):
    """to = x - max x - log Σ e^(x - max x) of every row; otherwise as `SoftmaxRows`."""

    word: ClassVar[str] = "log_softmax_rows"
    emission: ClassVar[str] = "rows.functions:emit_log_softmax"
    op: ClassVar[RowOp] = RowOp.LOG_SOFTMAX

    state: Slice | None = None


@dataclass(frozen=True)
class LayerNormRows(WholeRows):
    """to = (x - mean) / √(variance + eps) · weight + bias of every row; windows as of `SoftmaxRows`.

    Attributes
    ----------
    weight, bias : a number for each column, adjacent; the first stride is not used.
    """

    word: ClassVar[str] = "layer_norm_rows"
    emission: ClassVar[str] = "rows.functions:emit_layer_norm"
    op: ClassVar[RowOp] = RowOp.LAYER_NORM

    eps: ScalarValue
    weight: Slice | None = None
    bias: Slice | None = None
    state: Slice | None = None


@dataclass(frozen=True)
class RmsNormRows(WholeRows):
    """to = x / √(mean of x² + eps) · weight of every row; otherwise as `LayerNormRows`."""

    word: ClassVar[str] = "rms_norm_rows"
    emission: ClassVar[str] = "rows.functions:emit_rms_norm"
    op: ClassVar[RowOp] = RowOp.RMS_NORM

    eps: ScalarValue
    weight: Slice | None = None
    state: Slice | None = None


@dataclass(frozen=True)
class SumRows(RowPrimitive):
    """to = Σ x of every row x of a source, one number each.

    Elements of rows are adjacent in the source, or those of columns, and then the numbers are too.

    Attributes
    ----------
    to : the second stride is not used.
    ahead, state : as of `WholeRows` and `SoftmaxRows`.
    """

    word: ClassVar[str] = "sum_rows"
    emission: ClassVar[str] = "rows.sums:emit_sum_rows"
    op: ClassVar[RowOp] = RowOp.SUM

    ahead: Expression
    state: Slice | None = None


@dataclass(frozen=True)
class MeanRows(SumRows):
    """to = Σ x / columns of every row; otherwise as `SumRows`."""

    word: ClassVar[str] = "mean_rows"
    emission: ClassVar[str] = "rows.sums:emit_mean_rows"
    op: ClassVar[RowOp] = RowOp.MEAN


@dataclass(frozen=True)
class MaxRows(SumRows):
    """to = max x of every row, NaN where it has NaN; otherwise as `SumRows`."""

    word: ClassVar[str] = "max_rows"
    emission: ClassVar[str] = "rows.sums:emit_max_rows"
    op: ClassVar[RowOp] = RowOp.MAX


@dataclass(frozen=True)
class MinRows(SumRows):
    """to = min x of every row, NaN where it has NaN; otherwise as `SumRows`."""

    word: ClassVar[str] = "min_rows"
    emission: ClassVar[str] = "rows.sums:emit_min_rows"
    op: ClassVar[RowOp] = RowOp.MIN


@dataclass(frozen=True)
class InverseDeviationRows(RowPrimitive):
    """to = 1 / √(variance + eps) of every row; windows as of `SumRows`."""

    word: ClassVar[str] = "inverse_deviation_rows"
    emission: ClassVar[str] = "rows.functions:emit_inverse_deviation"
    op: ClassVar[RowOp] = RowOp.INVERSE_DEVIATION

    ahead: Expression
    eps: ScalarValue
    state: Slice | None = None


@dataclass(frozen=True)
class InverseRootRows(InverseDeviationRows):
    """to = 1 / √(mean of x² + eps) of every row; otherwise as `InverseDeviationRows`."""

    word: ClassVar[str] = "inverse_root_rows"
    emission: ClassVar[str] = "rows.functions:emit_inverse_root"
    op: ClassVar[RowOp] = RowOp.INVERSE_ROOT
