"""Primitives: statements of tile IR whose fields are windows, integers and scalars.

A primitive is one record: its fields, the rules they keep, its meaning in NumPy, and the name of its emission
in `micro`. Text, parser, verifier, interpreter and lowering follow from it; a new one is a class in this
package and an entry of `PRIMITIVES`.
"""

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
from tilewright.ir.primitives.products import SIDE_BYTES, MultiplyRows, SumProducts
from tilewright.ir.primitives.rows import (
    PAIR,
    STATES,
    InverseDeviationRows,
    InverseRootRows,
    LayerNormRows,
    LogSoftmaxRows,
    MaxRows,
    MeanRows,
    MinRows,
    RmsNormRows,
    RowPrimitive,
    SoftmaxRows,
    SumRows,
)
from tilewright.ir.primitives.tables import NO_STEP, PackTable, ScatterTile

__all__ = [
    "NO_STEP",
    "PAIR",
    "PRIMITIVES",
    "SIDE_BYTES",
    "STATES",
    "Begin",
    "Finite",
    "InverseDeviationRows",
    "InverseRootRows",
    "Keep",
    "KeyScores",
    "LayerNormRows",
    "LogSoftmaxRows",
    "MaxRows",
    "MeanRows",
    "Merge",
    "MinRows",
    "MultiplyRows",
    "Normalise",
    "PackTable",
    "RmsNormRows",
    "RowPrimitive",
    "ScatterTile",
    "Softmax",
    "SoftmaxGradient",
    "SoftmaxRows",
    "Spend",
    "SumProducts",
    "SumRows",
    "SumValues",
]

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
)
#: Every primitive by the word that begins its text.
PRIMITIVES: dict[str, type[Primitive]] = {kind.word: kind for kind in _KINDS}
