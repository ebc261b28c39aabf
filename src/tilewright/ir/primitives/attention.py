"""Primitives of attention: an online softmax, its gradient, and products of few queries.

The steps (max, exp, sum, rescale, normalise) are those of Fu et al., ICS 2024, section 5.1,
doi:10.1145/3650200.3656620.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import numpy as np

from tilewright.ir.expressions import ADJACENT, Constant, Expression, ScalarValue
from tilewright.ir.nodes import Array, Primitive, PrimitiveOperands, Slice
from tilewright.preparing import importing
from tilewright.records import dataclass
from tilewright.spec.dtype import I64, DType


def masked(t: Array, mask: Array) -> Array:
    """Scores under a mask: of booleans stored as bytes, or of numbers that are added."""
    if mask.dtype == np.uint8:
        return np.where(mask != 0, t, -np.inf)
    with importing:
        import ml_dtypes  # 5 ms that kernels without it need not pay

    lowest = float(ml_dtypes.finfo(mask.dtype).min)  # type: ignore[no-untyped-call]
    numbers = mask.astype(np.float64)
    return np.where(numbers <= lowest / 2, -np.inf, t + numbers)


@dataclass(frozen=True)
class Begin(Primitive):
    """The initial state of rows: maximum -inf, sums 0; with a `sink`, its score and 1.

    Attributes
    ----------
    row_max, row_sum : of each row; the second stride is not used.
    out : unfinished results, which become 0.
    sink : the score of a key that has no value, one number.
    """

    word: ClassVar[str] = "begin"
    emission: ClassVar[str] = "attention.row_states:emit_begin"

    row_max: Slice
    row_sum: Slice
    out: Slice
    rows: Expression
    columns: Expression
    sink: Slice | None = None

    def rules(self, types: Mapping[str, DType]) -> Iterator[tuple[bool, str]]:
        """State and sums of one type."""
        yield (
            len({types[name] for name in ("row_max", "row_sum", "out")}) == 1,
            "state and sums have one type",
        )

    def run(self, at: PrimitiveOperands) -> None:
        """Initial values."""
        rows, columns = at.number("rows"), at.number("columns")
        at.window("out", rows, columns)[...] = 0
        sunk = self.sink is not None
        at.window("row_max", rows, 1)[...] = at.window("sink", 1, 1) if sunk else -np.inf
        at.window("row_sum", rows, 1)[...] = 1 if sunk else 0


@dataclass(frozen=True)
class Softmax(Primitive):
    """A block of scores becomes weights: one step of an online softmax (Fu et al. 2024, §5.1).

    With t = scale · score (and what modifies it), m' = max(m, max t), w = e^(t - m'), every row's sum becomes
    e^(m - m')·sum + Σ w and its `out` e^(m - m')·out. Columns outside of low + row .. high + row have no
    score and weight 0; so have all up to `padded`. Scores are changed.

    Modifications in their order: t · key_scale; softcap · tanh(t / softcap); t - slope · |distance + column -
    row|; mask: of bytes, -inf where it is 0, of numbers, added, or -inf at half of the lowest number or less.

    Attributes
    ----------
    scores, weights : rows × columns, adjacent along the columns; the same memory where they are of one type.
    out : rows × out_columns, whole vectors.
    low, high : the columns that row 0 attends to; for each further row both are one larger.
    key_scale, weight_scale : a number for each column; the second multiplies the weight that is stored.
    slope : one number.
    distance : of column 0 from row 0.
    mask : rows × columns of any strides.
    """

    word: ClassVar[str] = "softmax"
    emission: ClassVar[str] = "attention.softmax:emit_softmax"

    scores: Slice
    weights: Slice
    row_max: Slice
    row_sum: Slice
    out: Slice
    rows: Expression
    columns: Expression
    padded: Expression
    out_columns: Expression
    scale: ScalarValue
    low: Expression | None = None
    high: Expression | None = None
    key_scale: Slice | None = None
    weight_scale: Slice | None = None
    softcap: ScalarValue | None = None
    slope: Slice | None = None
    distance: Expression | None = None
    mask: Slice | None = None

    @property
    def modified(self) -> bool:
        """Whether scores are more than products times a scale."""
        return any(part is not None for part in (self.key_scale, self.softcap, self.slope, self.mask))

    def rules(self, types: Mapping[str, DType]) -> Iterator[tuple[bool, str]]:
        """Adjacent columns, one type, and pairs of operands that come together."""
        for name in ("scores", "weights"):
            yield getattr(self, name).strides[1] == ADJACENT, f"columns of {name} must be adjacent"
        states = {types[name] for name in ("scores", "row_max", "row_sum", "out")}
        yield len(states) == 1, "scores, state and out have one type"
        yield from _in_pairs(self)

    def run(self, at: PrimitiveOperands) -> None:
        """One step of an online softmax, in float64."""
        rows, columns, padded = (at.number(name) for name in ("rows", "columns", "padded"))
        t = at.window("scores", rows, columns).astype(np.float64) * at.number("scale")
        if self.key_scale is not None:
            t = t * at.window("key_scale", 1, columns)
        if self.softcap is not None:
            t = at.number("softcap") * np.tanh(t / at.number("softcap"))
        t = _biased(self, at, t)
        row_max, row_sum = at.window("row_max", rows, 1), at.window("row_sum", rows, 1)
        out = at.window("out", rows, at.number("out_columns"))
        old = row_max.astype(np.float64)
        highest = np.max(np.where(np.isnan(t), -np.inf, t), axis=1, keepdims=True, initial=-np.inf)
        new = np.maximum(old, highest)
        base = np.where(new == -np.inf, 0, new)
        weights, factor = np.exp(t - base), np.exp(old - base)
        row_max[...] = new
        row_sum[...] = row_sum * factor + weights.sum(axis=1, keepdims=True)
        out *= factor
        if self.weight_scale is not None:
            weights = weights * at.window("weight_scale", 1, columns)
        _store_padded(at.window("weights", rows, padded), weights)


@dataclass(frozen=True)
class Normalise(Primitive):
    """Results: sums / row_sum, and 0 if that is 0; a flag becomes 1 if one of them is NaN.

    The state is also copied to `to_max` and `to_sum`.
    """

    word: ClassVar[str] = "normalise"
    emission: ClassVar[str] = "attention.row_states:emit_normalise"

    to: Slice
    sums: Slice
    row_max: Slice
    row_sum: Slice
    to_max: Slice
    to_sum: Slice
    rows: Expression
    columns: Expression
    flag: Slice | None = None

    def rules(self, types: Mapping[str, DType]) -> Iterator[tuple[bool, str]]:
        """State and sums of one type."""
        yield (
            len({types[name] for name in ("sums", "row_max", "row_sum")}) == 1,
            "state and sums have one type",
        )
        yield types.get("flag") in (None, I64), "a flag is i64"

    def run(self, at: PrimitiveOperands) -> None:
        """Quotients, and the state besides."""
        rows, columns = at.number("rows"), at.number("columns")
        sums = at.window("row_sum", rows, 1)
        with np.errstate(divide="ignore"):
            factor = np.where(sums == 0, 0, 1 / sums.astype(np.float64))
        values = at.window("sums", rows, columns) * factor
        at.window("to", rows, columns)[...] = values
        at.window("to_max", rows, 1)[...] = at.window("row_max", rows, 1)
        at.window("to_sum", rows, 1)[...] = sums
        if self.flag is not None and np.any(np.isnan(values)):
            at.window("flag", 1, 1)[...] = 1


@dataclass(frozen=True)
class Keep(Primitive):
    """Copies rows of values whose weight is not 0, and zeros the others, so that masked rows hold no NaN."""

    word: ClassVar[str] = "keep"
    emission: ClassVar[str] = "attention.row_states:emit_keep"

    to: Slice
    values: Slice
    weights: Slice
    rows: Expression
    columns: Expression

    def rules(self, types: Mapping[str, DType]) -> Iterator[tuple[bool, str]]:
        """A copy of the same type."""
        yield types["to"] == types["values"], "values keep their type"

    def run(self, at: PrimitiveOperands) -> None:
        """A copy of the rows with weight."""
        rows, columns = at.number("rows"), at.number("columns")
        seen = at.window("weights", rows, 1) != 0
        at.window("to", rows, columns)[...] = np.where(seen, at.window("values", rows, columns), 0)


@dataclass(frozen=True)
class SoftmaxGradient(Primitive):
    """Weights and gradients of scores whose softmax is known: P = e^(t - lse), dS = P ∘ (dP - delta).

    With t = scale · score (and what modifies it, as in `Softmax`). Under a softcap dS is also multiplied by
    1 - tanh²(t / softcap). Columns that are masked, or whose weight is 0, have gradient 0 for any dP, and so
    have all up to `padded`. A row whose lse is -inf has weights 0.

    Attributes
    ----------
    gradients : rows × padded, where dS goes; the memory of `products` where both are of one type.
    weights : the same for P and `scores`; None if P is not needed.
    scores, products : rows × columns of Q·Kᵀ and dO·Vᵀ.
    lse, delta : of each row; the second stride is not used.
    """

    word: ClassVar[str] = "softmax_gradient"
    emission: ClassVar[str] = "attention.softmax_gradient:emit_softmax_gradient"

    gradients: Slice
    scores: Slice
    products: Slice
    lse: Slice
    delta: Slice
    rows: Expression
    columns: Expression
    padded: Expression
    scale: ScalarValue
    weights: Slice | None = None
    low: Expression | None = None
    high: Expression | None = None
    softcap: ScalarValue | None = None
    slope: Slice | None = None
    distance: Expression | None = None
    mask: Slice | None = None

    def rules(self, types: Mapping[str, DType]) -> Iterator[tuple[bool, str]]:
        """Adjacent columns, one type, and pairs of operands that come together."""
        for window in (self.gradients, self.scores, self.products, self.weights):
            adjacent = window is None or window.strides[1] == ADJACENT
            yield adjacent, "columns of scores, products and what becomes of them must be adjacent"
        states = {types[name] for name in ("scores", "products", "lse", "delta")}
        yield len(states) == 1, "scores, products, lse and delta have one type"
        yield from _in_pairs(self)

    def run(self, at: PrimitiveOperands) -> None:
        """Weights and gradients, in float64."""
        rows, columns, padded = (at.number(name) for name in ("rows", "columns", "padded"))
        t = at.window("scores", rows, columns).astype(np.float64) * at.number("scale")
        products = at.window("products", rows, columns).astype(np.float64)
        slope: Array | float = 1.0
        if self.softcap is not None:
            bounded = np.tanh(t / at.number("softcap"))
            t, slope = at.number("softcap") * bounded, 1 - bounded**2
        t = _biased(self, at, t)
        lse = at.window("lse", rows, 1).astype(np.float64)
        weights = np.exp(t - np.where(lse == -np.inf, np.inf, lse))
        gradients = np.where(weights == 0, 0, weights * (products - at.window("delta", rows, 1)) * slope)
        if self.weights is not None:
            _store_padded(at.window("weights", rows, padded), weights)
        _store_padded(at.window("gradients", rows, padded), gradients)


@dataclass(frozen=True)
class KeyScores(Primitive):
    """scores[r, j] = Σ_p q[r, p] · k[j, p] with keys read in place: products of few queries.

    Attributes
    ----------
    scores : rows × keys, adjacent along the keys; with room for 15 more in each row, which may be written.
    q : rows × depth of an operand type, adjacent along the depth, zeros behind it up to whole vectors.
    k : keys × depth, adjacent along the depth.
    fetched : rows of another matrix, one for each key, that are prefetched to L1.
    """

    word: ClassVar[str] = "key_scores"
    emission: ClassVar[str] = "attention.keys:emit_key_scores"

    scores: Slice
    q: Slice
    k: Slice
    fetched: Slice
    rows: Expression
    keys: Expression
    depth: Expression

    def rules(self, types: Mapping[str, DType]) -> Iterator[tuple[bool, str]]:
        """Adjacent rows, and a known depth."""
        del types
        for name in ("scores", "q", "k"):
            yield getattr(self, name).strides[1] == ADJACENT, f"elements of a row of {name} must be adjacent"
        yield isinstance(self.depth, Constant), "the depth is a constant"

    def run(self, at: PrimitiveOperands) -> None:
        """The product Q·Kᵀ, in float64."""
        rows, keys, depth = (at.number(name) for name in ("rows", "keys", "depth"))
        if keys > 0:
            q, k = at.window("q", rows, depth), at.window("k", keys, depth)
            at.window("scores", rows, keys)[...] = q.astype(np.float64) @ k.astype(np.float64).T


@dataclass(frozen=True)
class SumValues(Primitive):
    """out[r, :] += Σ_j weights[r, j] · values[j, :], with values read in place.

    A value whose weight is 0 does not count, even if it is NaN or infinite.

    Attributes
    ----------
    out : rows × columns, whole vectors.
    weights : rows × keys of an operand type, adjacent along the keys.
    values : keys × columns, adjacent along the columns.
    fetched : as `KeyScores` has it.
    """

    word: ClassVar[str] = "sum_values"
    emission: ClassVar[str] = "attention.values:emit_sum_values"

    out: Slice
    weights: Slice
    values: Slice
    fetched: Slice
    rows: Expression
    keys: Expression
    columns: Expression

    def rules(self, types: Mapping[str, DType]) -> Iterator[tuple[bool, str]]:
        """Adjacent rows, and a known number of columns."""
        del types
        for name in ("out", "weights", "values"):
            yield getattr(self, name).strides[1] == ADJACENT, f"elements of a row of {name} must be adjacent"
        yield isinstance(self.columns, Constant), "the number of columns is a constant"

    def run(self, at: PrimitiveOperands) -> None:
        """The product P·V, in float64; values of weight 0 do not count."""
        rows, keys, columns = (at.number(name) for name in ("rows", "keys", "columns"))
        if keys > 0:
            weights = at.window("weights", rows, keys).astype(np.float64)
            values = at.window("values", keys, columns).astype(np.float64)
            products = weights[:, :, None] * np.where(weights[:, :, None] == 0, 0, values)
            at.window("out", rows, columns)[...] += products.sum(axis=1)


@dataclass(frozen=True)
class Merge(Primitive):
    """Merges two states of rows: m' = max(m, other m), and both are rescaled.

    Where both maxima are -inf, no key has been seen and all stays 0.

    Attributes
    ----------
    out, other : rows × columns, whole vectors; unfinished results.
    """

    word: ClassVar[str] = "merge"
    emission: ClassVar[str] = "attention.merge:emit_merge"

    row_max: Slice
    row_sum: Slice
    out: Slice
    other_max: Slice
    other_sum: Slice
    other: Slice
    rows: Expression
    columns: Expression

    def rules(self, types: Mapping[str, DType]) -> Iterator[tuple[bool, str]]:
        """States of one type."""
        names = ("row_max", "row_sum", "out", "other_max", "other_sum", "other")
        yield len({types[name] for name in names}) == 1, "states have one type"

    def run(self, at: PrimitiveOperands) -> None:
        """Both states, rescaled to the larger maximum, and added."""
        rows, columns = at.number("rows"), at.number("columns")
        most, others = (at.window(name, rows, 1) for name in ("row_max", "other_max"))
        new = np.maximum(most, others).astype(np.float64)
        base = np.where(new == -np.inf, 0, new)
        factor, other = np.exp(most - base), np.exp(others - base)
        for name, added, width in (("row_sum", "other_sum", 1), ("out", "other", columns)):
            total = at.window(name, rows, width)
            total[...] = total * factor + at.window(added, rows, width) * other
        most[...] = new


@dataclass(frozen=True)
class Finite(Primitive):
    """NaN and infinities among adjacent elements become 0, so that a weight of 0 times one of them is 0.

    If the weight is not 0, it is NaN itself, since it results from a product with the same element.
    """

    word: ClassVar[str] = "finite"
    emission: ClassVar[str] = "attention.softmax_gradient:emit_finite"

    values: Slice
    elements: Expression

    def rules(self, types: Mapping[str, DType]) -> Iterator[tuple[bool, str]]:
        """Adjacent elements."""
        del types
        yield self.values.strides[1] == ADJACENT, "elements must be adjacent"

    def run(self, at: PrimitiveOperands) -> None:
        """Zeros in place of NaN and infinities."""
        values = at.window("values", 1, at.number("elements"))
        values[~np.isfinite(values.astype(np.float64))] = 0


def _in_pairs(node: Softmax | SoftmaxGradient) -> Iterator[tuple[bool, str]]:
    """Operands that are given together or not at all."""
    yield (node.low is None) is (node.high is None), "low and high come together"
    yield (node.slope is None) is (node.distance is None), "slope and distance come together"


def _biased(node: Softmax | SoftmaxGradient, at: PrimitiveOperands, t: Array) -> Array:
    """Scores after the slope, the mask and the bounds."""
    rows, columns = t.shape
    i, j = np.ogrid[:rows, :columns]
    if node.slope is not None:
        t = t - at.window("slope", 1, 1) * np.abs(at.number("distance") + j - i)
    if node.mask is not None:
        t = masked(t, at.window("mask", rows, columns))
    if node.low is not None:
        t = np.where((at.number("low") + i <= j) & (j < at.number("high") + i), t, -np.inf)
    return t


def _store_padded(to: Array, values: Array) -> None:
    """Stores values, and zeros in the columns behind them."""
    to[:, values.shape[1] :] = 0
    to[:, : values.shape[1]] = values
