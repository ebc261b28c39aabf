"""Norms with `return_stats`: the result, and the means and inverse standard deviations of the rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.operands import Array
from tilewright.calls.recording import not_repeatable
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
        not_repeatable("NumPy computes the statistics")
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

    In float32, for float64 in float64; the axes of a row are kept with length 1. The differences'
    own mean corrects the variance, as in the kernels of layer norm.
    """
    acc = np.dtype(np.float64 if x.dtype == F64.numpy else np.float32)
    wide = x.astype(acc, copy=False)

    def mean(values: Array) -> Array:
        return np.asarray(prepare_reduction(RowOp.MEAN, values, along, keepdims=True).run())

    with np.errstate(all="ignore"):
        if op is RowOp.RMS_NORM:
            return (_inverse_root(mean(np.square(wide)), eps),)
        means = mean(wide)
        around = wide - means
        variance = mean(np.square(around)) - np.square(mean(around))
        return means, _inverse_root(np.maximum(variance, 0), eps)


def _inverse_root(square: Array, eps: float) -> Array:
    """1 / √(square + eps)."""
    root = np.sqrt(square + square.dtype.type(eps))
    return np.asarray(square.dtype.type(1) / root)
