"""What each primitive of `ir/primitives.py` is in machine code: one row a primitive."""

from __future__ import annotations

from collections.abc import Callable

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
from tilewright.micro.calls import Operands
from tilewright.micro.keys import emit_key_scores
from tilewright.micro.merge import emit_merge
from tilewright.micro.row_functions import emit_layer_norm, emit_log_softmax, emit_rms_norm, emit_softmax_rows
from tilewright.micro.row_sums import emit_max_rows, emit_mean_rows, emit_min_rows, emit_sum_rows
from tilewright.micro.scattered import emit_pack_table, emit_scatter_tile
from tilewright.micro.softmax import emit_begin, emit_keep, emit_normalise, emit_softmax
from tilewright.micro.softmax_gradient import emit_finite, emit_softmax_gradient
from tilewright.micro.sum_of_products import emit_multiply_rows, emit_sum_products
from tilewright.micro.values import emit_sum_values

#: Writes a call of a primitive's function into a function.
LOWERED: dict[type[Primitive], Callable[[Function, Isa, Operands], None]] = {
    Begin: emit_begin,
    Finite: emit_finite,
    Keep: emit_keep,
    Normalise: emit_normalise,
    PackTable: emit_pack_table,
    ScatterTile: emit_scatter_tile,
    Softmax: emit_softmax,
    SoftmaxGradient: emit_softmax_gradient,
    KeyScores: emit_key_scores,
    SumValues: emit_sum_values,
    Merge: emit_merge,
    SoftmaxRows: emit_softmax_rows,
    LogSoftmaxRows: emit_log_softmax,
    LayerNormRows: emit_layer_norm,
    RmsNormRows: emit_rms_norm,
    SumRows: emit_sum_rows,
    MeanRows: emit_mean_rows,
    MaxRows: emit_max_rows,
    MinRows: emit_min_rows,
    SumProducts: emit_sum_products,
    MultiplyRows: emit_multiply_rows,
}
