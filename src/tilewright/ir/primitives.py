"""Primitives of softmax on tiles (Fu et al. 2024, §5.1: max, exp, sum, rescale, norm), and of tables.

A new primitive is a class here, its meaning in `meaning.py`, its code in `micro/` and one row in
`compiler/primitives.py`; text, parser and verifier follow from its fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import ClassVar

from tilewright.ir.nodes import Constant, Expression, Primitive, ScalarValue, Slice
from tilewright.ir.row_primitives import ROW_PRIMITIVES, row_rules
from tilewright.spec.dtype import I64, DType


@dataclass(frozen=True)
class Spend(Primitive):
    """Takes so many elements or multiply-adds off the budget of the task: the end of a cancelled call.

    Stands in loops of a task that may take any number of turns; without parallel loops it does nothing.
    """

    word: ClassVar[str] = "spend"
    long: ClassVar[bool] = True

    work: Expression


@dataclass(frozen=True)
class Begin(Primitive):
    """The state of rows that no key has met: maximum -inf, sums 0; of a `sink`, its score and 1.

    Attributes
    ----------
    row_max, row_sum : of each row; the second stride is not used.
    out : unfinished results, which become 0.
    sink : the score of a key without value, one number.
    """

    word: ClassVar[str] = "begin"

    row_max: Slice
    row_sum: Slice
    out: Slice
    rows: Expression
    columns: Expression
    sink: Slice | None = None


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
    low, high : the columns that row 0 sees; every row sees one column further on.
    key_scale, weight_scale : a number for each column; the second multiplies the weight that is stored.
    slope : one number.
    distance : of column 0 from row 0.
    mask : rows × columns of any strides.
    """

    word: ClassVar[str] = "softmax"

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


@dataclass(frozen=True)
class Normalise(Primitive):
    """Results: sums / row_sum, and 0 where that is 0; a flag becomes 1 where one of them is NaN.

    The state goes to `to_max` and `to_sum` besides.
    """

    word: ClassVar[str] = "normalise"

    to: Slice
    sums: Slice
    row_max: Slice
    row_sum: Slice
    to_max: Slice
    to_sum: Slice
    rows: Expression
    columns: Expression
    flag: Slice | None = None


@dataclass(frozen=True)
class Keep(Primitive):
    """Rows of values whose weight is not 0 are copied, the others become 0: what nobody sees has no NaN."""

    word: ClassVar[str] = "keep"

    to: Slice
    values: Slice
    weights: Slice
    rows: Expression
    columns: Expression


@dataclass(frozen=True)
class SoftmaxGradient(Primitive):
    """Weights and gradients of scores whose softmax is known: P = e^(t - lse), dS = P ∘ (dP - delta).

    With t = scale · score (and what modifies it, as in `Softmax`). Under a softcap dS is also multiplied by
    1 - tanh²(t / softcap). Columns that a row does not see, or whose weight is 0, have gradient 0 whatever
    dP is; so have all up to `padded`. A row whose lse is -inf has weights 0.

    Attributes
    ----------
    gradients : rows × padded, where dS goes; the memory of `products` where both are of one type.
    weights : the same of P and `scores`; None where nobody needs P.
    scores, products : rows × columns of Q·Kᵀ and dO·Vᵀ.
    lse, delta : of each row; the second stride is not used.
    """

    word: ClassVar[str] = "softmax_gradient"

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


@dataclass(frozen=True)
class KeyScores(Primitive):
    """scores[r, j] = Σ_p q[r, p] · k[j, p], keys read where they stand: products of few queries.

    Attributes
    ----------
    scores : rows × keys, adjacent along the keys; with room for 15 more in each row, which may be written.
    q : rows × depth of an operand type, adjacent along the depth, zeros behind it up to whole vectors.
    k : keys × depth, adjacent along the depth.
    fetched : rows of another matrix, one for each key, that are on their way to the first cache afterwards.
    """

    word: ClassVar[str] = "key_scores"

    scores: Slice
    q: Slice
    k: Slice
    fetched: Slice
    rows: Expression
    keys: Expression
    depth: Expression


@dataclass(frozen=True)
class SumValues(Primitive):
    """out[r, :] += Σ_j weights[r, j] · values[j, :], values read where they stand.

    A value whose weight is 0 does not count, even if it is NaN or infinite.

    Attributes
    ----------
    out : rows × columns, whole vectors.
    weights : rows × keys of an operand type, adjacent along the keys.
    values : keys × columns, adjacent along the columns.
    fetched : as `KeyScores` has it.
    """

    word: ClassVar[str] = "sum_values"

    out: Slice
    weights: Slice
    values: Slice
    fetched: Slice
    rows: Expression
    keys: Expression
    columns: Expression


@dataclass(frozen=True)
class Merge(Primitive):
    """The state of rows becomes that of their keys and of others: m' = max(m, other m), and both rescaled.

    Where both maxima are -inf, no key has been seen and all stays 0.

    Attributes
    ----------
    out, other : rows × columns, whole vectors; unfinished results.
    """

    word: ClassVar[str] = "merge"

    row_max: Slice
    row_sum: Slice
    out: Slice
    other_max: Slice
    other_sum: Slice
    other: Slice
    rows: Expression
    columns: Expression


@dataclass(frozen=True)
class Finite(Primitive):
    """NaN and infinities among adjacent elements become 0: a weight of 0 times one of them is to be 0.

    Where the weight is not 0, it is NaN itself, for it comes from a product with the same element.
    """

    word: ClassVar[str] = "finite"

    values: Slice
    elements: Expression


#: The step of a panel that has none.
NO_STEP = -(1 << 62)


@dataclass(frozen=True)
class PackTable(Primitive):
    """Packs lanes and depths that stand wherever tables say; see `Pack` for what panels look like.

    Element (i, p) is at source + lanes_at[i] + depths_at[p]. Panels are whole: lanes beyond `counts` repeat
    the last. Of each panel `steps` has the distance between its lanes, if that is one, `shifts` how many
    panels from it on have as many lanes, each one element behind that of the panel before; of each depth
    `runs` how many from it on keep their distance, `turns` how many runs are as long and begin one element
    after the other.
    """

    word: ClassVar[str] = "pack_table"

    to: Slice
    source: Slice
    lanes_at: Slice
    steps: Slice
    counts: Slice
    shifts: Slice
    depths_at: Slice
    runs: Slice
    turns: Slice
    lanes: Expression
    depth: Expression
    panel: Expression


@dataclass(frozen=True)
class ScatterTile(Primitive):
    """to[rows_at[i] + columns_at[j]] = tile[i, j] + beta · the same; beta = 0 does not read it.

    `step` is the distance between columns, if that is one.
    """

    word: ClassVar[str] = "scatter_tile"

    to: Slice
    tile: Slice
    rows_at: Slice
    columns_at: Slice
    rows: Expression
    columns: Expression
    step: Expression
    beta: ScalarValue


#: Bytes of adjacent rows of floats, of 16 bits counted as 32, that a `SumProducts` takes at most.
SIDE_BYTES = 4096


@dataclass(frozen=True)
class SumProducts(Primitive):
    """to[i] = Σ left[t, i, j] · right[t, i, j] over all turns t and columns j, of every row i; or += that.

    Elements of rows are adjacent in left and right; or those of columns are, there and in `to`, of which
    `right` may also have one for all rows; or neither, and there is one element after the other. Of floats
    there are at most `SIDE_BYTES` of adjacent rows.

    Attributes
    ----------
    to : the second stride is not used.
    left_turn, right_turn : from one turn to the next.
    added : whether sums are added to what is there: not where it is 0.
    right : without it the elements of `left` are summed.
    """

    word: ClassVar[str] = "sum_products"
    long: ClassVar[bool] = True

    to: Slice
    left: Slice
    rows: Expression
    columns: Expression
    turns: Expression
    left_turn: Expression
    added: Expression
    right: Slice | None = None
    right_turn: Expression | None = None


@dataclass(frozen=True)
class MultiplyRows(Primitive):
    """to[i, j] = left[i, j] · right[i, j].

    Elements of rows are adjacent, in `left` also one for each row; or in none, and it is one after the other.
    """

    word: ClassVar[str] = "multiply_rows"

    to: Slice
    left: Slice
    right: Slice
    rows: Expression
    columns: Expression


#: Those of this file and of rows.
_KINDS: tuple[type[Primitive], ...] = (
    Begin,
    Softmax,
    Normalise,
    Keep,
    SoftmaxGradient,
    KeyScores,
    SumValues,
    Merge,
    Finite,
    PackTable,
    ScatterTile,
    SumProducts,
    MultiplyRows,
    Spend,
    *ROW_PRIMITIVES,
)
#: Every primitive by the word that begins its text.
PRIMITIVES: dict[str, type[Primitive]] = {kind.word: kind for kind in _KINDS}


def rules(node: Primitive, dtypes: Mapping[str, DType]) -> Iterator[tuple[bool, str]]:
    """What a primitive asks of its windows: whether it holds, and what to say where it does not."""

    def type_of(name: str) -> DType | None:
        window = getattr(node, name, None)
        return None if window is None else dtypes[window.buffer]

    one = Constant(1)
    yield from row_rules(node, dtypes)
    match node:
        case Softmax():
            for name in ("scores", "weights"):
                yield getattr(node, name).strides[1] == one, f"columns of {name} must be adjacent"
            states = {type_of(name) for name in ("scores", "row_max", "row_sum", "out")}
            yield len(states) == 1, "scores, state and out have one type"
            yield (node.low is None) is (node.high is None), "low and high come together"
            yield (node.slope is None) is (node.distance is None), "slope and distance come together"
        case SoftmaxGradient():
            for window in (node.gradients, node.scores, node.products, node.weights):
                adjacent = window is None or window.strides[1] == one
                yield adjacent, "columns of scores, products and what becomes of them must be adjacent"
            states = {type_of(name) for name in ("scores", "products", "lse", "delta")}
            yield len(states) == 1, "scores, products, lse and delta have one type"
            yield (node.low is None) is (node.high is None), "low and high come together"
            yield (node.slope is None) is (node.distance is None), "slope and distance come together"
        case Begin() | Normalise():
            names = [
                field.name for field in fields(node) if field.name in ("row_max", "row_sum", "out", "sums")
            ]
            yield len({type_of(name) for name in names}) == 1, "state and sums have one type"
            yield type_of("flag") in (None, I64), "a flag is i64"
        case Finite():
            yield node.values.strides[1] == one, "elements must be adjacent"
        case PackTable() | ScatterTile():
            of_lanes = ("lanes_at", "steps", "counts", "shifts")
            for name in (*of_lanes, "depths_at", "runs", "turns", "rows_at", "columns_at"):
                yield type_of(name) in (None, I64), f"{name} is a table of i64"
        case SumProducts():
            factors = [factor for factor in (node.left, node.right) if factor is not None]
            for axis in (0, 1):
                alike = len({factor.strides[axis] == one for factor in factors}) == 1
                alike |= axis == 0 and factors[-1].strides[0] == Constant(0)
                yield alike, "both factors have adjacent elements along the same axis"
            types = {dtypes[factor.buffer] for factor in (node.to, *factors)}
            yield len(types) == 1, "factors and sums have one type"
            yield (node.right is None) is (node.right_turn is None), "right and right_turn come together"
        case MultiplyRows():
            vectors = node.to.strides[1] == one
            alike = vectors is (node.right.strides[1] == one)
            yield alike, "elements of rows are adjacent in to and right, or in neither"
            known = node.left.strides[1] in (Constant(0), one)
            yield known or not vectors, "left has adjacent elements too, or one for each row"
            alike = type_of("to") == type_of("left") == type_of("right")
            yield alike, "factors and products have one type"
        case Keep():
            yield type_of("to") == type_of("values"), "values keep their type"
        case KeyScores():
            for name in ("scores", "q", "k"):
                yield getattr(node, name).strides[1] == one, f"elements of a row of {name} must be adjacent"
            yield isinstance(node.depth, Constant), "the depth is a constant"
        case SumValues():
            for name in ("out", "weights", "values"):
                yield getattr(node, name).strides[1] == one, f"elements of a row of {name} must be adjacent"
            yield isinstance(node.columns, Constant), "the number of columns is a constant"
        case Merge():
            names = ["row_max", "row_sum", "out", "other_max", "other_sum", "other"]
            yield len({type_of(name) for name in names}) == 1, "states have one type"
