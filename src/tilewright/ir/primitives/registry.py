"""The primitives by their words; this imports all of them."""

from __future__ import annotations

from tilewright.ir.nodes import Primitive
from tilewright.ir.primitives.attention import (
    Begin,
    Finite,
    Keep,
    KeyScores,
    Merge,
    Normalise,
    Softmax,
    SoftmaxGradient,
    SumValues,
)
from tilewright.ir.primitives.budget import Spend
from tilewright.ir.primitives.gather import GatherRows
from tilewright.ir.primitives.pairs import CombineRows
from tilewright.ir.primitives.prefetch import PrefetchRows
from tilewright.ir.primitives.products import MultiplyRows, SumProducts
from tilewright.ir.primitives.rotary import RotateRows
from tilewright.ir.primitives.rows import (
    InverseDeviationRows,
    InverseRootRows,
    LayerNormRows,
    LogSoftmaxRows,
    MaxRows,
    MeanRows,
    MinRows,
    RmsNormRows,
    SoftmaxRows,
    SumRows,
)
from tilewright.ir.primitives.tables import PackTable, ScatterTile

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
    PrefetchRows,
    SoftmaxRows,
    LogSoftmaxRows,
    LayerNormRows,
    RmsNormRows,
    SumRows,
    MeanRows,
    MaxRows,
    MinRows,
    InverseDeviationRows,
    InverseRootRows,
    CombineRows,
    RotateRows,
    GatherRows,
)
#: Every primitive by the word that begins its text.
PRIMITIVES: dict[str, type[Primitive]] = {kind.word: kind for kind in _KINDS}
