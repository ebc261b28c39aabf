"""What each primitive of `ir/primitives.py` is in machine code: one row a primitive."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tilewright.ir.nodes import Primitive
from tilewright.ir.primitives import (
    Begin,
    Finite,
    Keep,
    KeyScores,
    Merge,
    MultiplyRows,
    Normalise,
    PackTable,
    ScatterTile,
    Softmax,
    SoftmaxGradient,
    Spend,
    SumProducts,
    SumValues,
)
from tilewright.ir.row_primitives import (
    LayerNormRows,
    LogSoftmaxRows,
    MaxRows,
    MeanRows,
    MinRows,
    RmsNormRows,
    SoftmaxRows,
    SumRows,
)
from tilewright.llvm.build import Function
from tilewright.machine.isa import Isa
from tilewright.micro.calls import Operands, UnaryCall
from tilewright.micro.emission import emitter

#: Writes a call of a primitive's function into a function.
Emission: TypeAlias = Callable[[Function, Isa, Operands], None]

#: The module of `micro` and its emission, by names: all of them together take 40 ms to import, and a kernel
#: has primitives of one or two.
LOWERED: dict[type[Primitive], tuple[str, str]] = {
    Begin: ("attention.softmax", "emit_begin"),
    Finite: ("attention.softmax_gradient", "emit_finite"),
    Keep: ("attention.softmax", "emit_keep"),
    Normalise: ("attention.softmax", "emit_normalise"),
    PackTable: ("packing.pack_table", "emit_pack_table"),
    ScatterTile: ("packing.scatter", "emit_scatter_tile"),
    Softmax: ("attention.softmax", "emit_softmax"),
    SoftmaxGradient: ("attention.softmax_gradient", "emit_softmax_gradient"),
    KeyScores: ("attention.keys", "emit_key_scores"),
    SumValues: ("attention.values", "emit_sum_values"),
    Merge: ("attention.merge", "emit_merge"),
    SoftmaxRows: ("rows.functions", "emit_softmax_rows"),
    LogSoftmaxRows: ("rows.functions", "emit_log_softmax"),
    LayerNormRows: ("rows.functions", "emit_layer_norm"),
    RmsNormRows: ("rows.functions", "emit_rms_norm"),
    SumRows: ("rows.sums", "emit_sum_rows"),
    MeanRows: ("rows.sums", "emit_mean_rows"),
    MaxRows: ("rows.sums", "emit_max_rows"),
    MinRows: ("rows.sums", "emit_min_rows"),
    SumProducts: ("rows.sum_of_products", "emit_sum_products"),
    MultiplyRows: ("rows.sum_of_products", "emit_multiply_rows"),
    Spend: ("budget", "emit_spend"),
}


def emission(kind: type[Primitive]) -> Emission:
    """The function that writes calls of a primitive.

    >>> emission(PackTable).__name__
    'emit_pack_table'
    """
    module, name = LOWERED[kind]
    return emitter(f"{module}:{name}")


def unary_emission() -> Callable[[Function, Isa, int, UnaryCall], None]:
    """The function that writes a unary operation."""
    return emitter("elements.unary:emit_unary")
