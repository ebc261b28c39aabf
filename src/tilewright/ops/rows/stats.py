"""Norms with `return_stats`: the result, and the means and inverse standard deviations of the rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.operands import Array
from tilewright.calls.pieces import as_type
from tilewright.ops.rows.call import check_axes, check_eps, prepare
from tilewright.ops.rows.kernel import Prepared
from tilewright.ops.rows.reduce import prepare_reduction
from tilewright.spec.dtype import F64, find_numpy_dtype
from tilewright.spec.row_functions import RowOp


class PreparedStats(NamedTuple):
    """A call of a norm after its checks, and what computes the statistics of its rows.

    Attributes
    ----------
    norm : the norm alone.
    stats : computes the statistics; called first, since the norm may overwrite x.
    """

    norm: Prepared
    stats: Callable[[], tuple[Array, ...]]

    def run(self) -> tuple[Array, ...]:
        """The result, then the statistics."""
        stats = self.stats()
        return (self.norm.run(), *stats)


def prepare_with_stats(op: RowOp, x: Any, axis: Any, out: Any = None, **given: Any) -> PreparedStats:
    """Prepare a call of `layer_norm` or `rms_norm` with `return_stats`; arguments as for `prepare`."""
    norm = prepare(op, x, axis, out, **given)
    array = norm.x
    dtype = find_numpy_dtype(array.dtype)
    assert dtype is not None
    along, eps = check_axes(op.value, axis, array.ndim), check_eps(op.value, given["eps"], dtype)
    return PreparedStats(norm, partial(_stats, op, array, along, eps))


def _stats(op: RowOp, x: Array, along: tuple[int, ...], eps: float) -> tuple[Array, ...]:
    """The mean of layer norm's rows, and 1 / √(variance + eps) of them, or 1 / √(mean of x² + eps).

    In float32, for float64 in float64; the axes of a row are kept with length 1.
    """
    wide = as_type(x, np.dtype(np.float64 if x.dtype == F64.numpy else np.float32))
    if op is RowOp.RMS_NORM:
        return (prepare_reduction(RowOp.INVERSE_ROOT, wide, along, keepdims=True, scalars=[eps]).run(),)
    means = prepare_reduction(RowOp.MEAN, wide, along, keepdims=True).run()
    factors = prepare_reduction(RowOp.INVERSE_DEVIATION, wide, along, keepdims=True, scalars=[eps]).run()
    return means, factors
