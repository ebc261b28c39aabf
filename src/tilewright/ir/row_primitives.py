"""Primitives of functions of whole rows: softmax, norms, and what makes one number of each row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir.nodes import Constant, Expression, Primitive, ScalarValue, Slice
from tilewright.spec.dtype import F32, F64, DType

#: Adjacent rows are computed so many at a time: the sums of one become one number while the next is added up.
PAIR = 2


#: Rows that are side by side have so many numbers each between two readings: of layer norm a mean, a
#: factor, a shift and a long sum, which takes two.
STATES = 5


@dataclass(frozen=True)
class SoftmaxRows(Primitive):
    """to = e^(x - max x) / Σ e^(x - max x) of every row x of a source, which may be `to` itself.

    Elements of rows are adjacent in both, or those of columns are. A row with NaN or inf, or without any
    number above -inf, becomes NaN.

    Attributes
    ----------
    stream : results of adjacent elements go past the caches where it is not 0.
    ahead : the source is fetched so many elements in front of what is computed; 0 of rows that the caches
        would lose again.
    kept : where exponentials of `PAIR` rows wait, whole vectors; without it in `to`, or they are computed
        twice.
    state : of columns that are adjacent, where what is known of the rows waits: `STATES` numbers of each, and
        room for whole vectors behind the last row.
    """

    word: ClassVar[str] = "softmax_rows"
    long: ClassVar[bool] = True

    to: Slice
    source: Slice
    rows: Expression
    columns: Expression
    stream: Expression
    ahead: Expression
    kept: Slice | None = None
    state: Slice | None = None


@dataclass(frozen=True)
class LogSoftmaxRows(Primitive):
    """to = x - max x - log Σ e^(x - max x) of every row; otherwise as `SoftmaxRows`."""

    word: ClassVar[str] = "log_softmax_rows"
    long: ClassVar[bool] = True

    to: Slice
    source: Slice
    rows: Expression
    columns: Expression
    stream: Expression
    ahead: Expression
    state: Slice | None = None


@dataclass(frozen=True)
class LayerNormRows(Primitive):
    """to = (x - mean) / √(variance + eps) · weight + bias of every row; windows as of `SoftmaxRows`.

    Attributes
    ----------
    weight, bias : a number for each column, adjacent; the first stride is not used.
    """

    word: ClassVar[str] = "layer_norm_rows"
    long: ClassVar[bool] = True

    to: Slice
    source: Slice
    rows: Expression
    columns: Expression
    stream: Expression
    ahead: Expression
    eps: ScalarValue
    weight: Slice | None = None
    bias: Slice | None = None
    state: Slice | None = None


@dataclass(frozen=True)
class RmsNormRows(Primitive):
    """to = x / √(mean of x² + eps) · weight of every row; otherwise as `LayerNormRows`."""

    word: ClassVar[str] = "rms_norm_rows"
    long: ClassVar[bool] = True

    to: Slice
    source: Slice
    rows: Expression
    columns: Expression
    stream: Expression
    ahead: Expression
    eps: ScalarValue
    weight: Slice | None = None
    state: Slice | None = None


@dataclass(frozen=True)
class SumRows(Primitive):
    """to = Σ x of every row x of a source, one number each.

    Elements of rows are adjacent in the source, or those of columns, and then the numbers are too.

    Attributes
    ----------
    to : the second stride is not used.
    ahead, state : as of `SoftmaxRows`.
    """

    word: ClassVar[str] = "sum_rows"
    long: ClassVar[bool] = True

    to: Slice
    source: Slice
    rows: Expression
    columns: Expression
    ahead: Expression
    state: Slice | None = None


@dataclass(frozen=True)
class MeanRows(SumRows):
    """to = Σ x / columns of every row; otherwise as `SumRows`."""

    word: ClassVar[str] = "mean_rows"


@dataclass(frozen=True)
class MaxRows(SumRows):
    """to = max x of every row, NaN where it has NaN; otherwise as `SumRows`."""

    word: ClassVar[str] = "max_rows"


@dataclass(frozen=True)
class MinRows(SumRows):
    """to = min x of every row, NaN where it has NaN; otherwise as `SumRows`."""

    word: ClassVar[str] = "min_rows"


#: All of them.
ROW_PRIMITIVES: tuple[type[Primitive], ...] = (
    SoftmaxRows,
    LogSoftmaxRows,
    LayerNormRows,
    RmsNormRows,
    SumRows,
    MeanRows,
    MaxRows,
    MinRows,
)


def row_rules(node: Primitive, dtypes: Mapping[str, DType]) -> Iterator[tuple[bool, str]]:
    """What one of these asks of its windows; nothing of others."""
    if not isinstance(node, SoftmaxRows | LogSoftmaxRows | LayerNormRows | RmsNormRows | SumRows):
        return
    one, dtype = Constant(1), dtypes[node.to.buffer]
    wide = F64 if dtype.bits == F64.bits else F32
    by_rows = node.source.strides[1] == one
    if isinstance(node, SumRows):
        across = node.source.strides[0] == node.to.strides[0] == one
        yield by_rows or across, "elements of rows, or rows and their numbers, must be adjacent"
    else:
        both = (node.to.strides, node.source.strides)
        adjacent = any(all(strides[axis] == one for strides in both) for axis in (0, 1))
        yield adjacent, "elements of rows, or of columns, must be adjacent in to and source"
    yield dtype == dtypes[node.source.buffer], "to and source have one type"
    yield by_rows or node.state is not None, "adjacent rows need their state"
    for name in ("weight", "bias", "kept", "state"):
        along: Slice | None = getattr(node, name, None)
        if along is not None:
            yield along.strides[1] == one, f"elements of {name} must be adjacent"
            kept = name in ("weight", "bias") or dtypes[along.buffer] == wide
            yield kept, f"{name} is of the type that rows are computed in"
