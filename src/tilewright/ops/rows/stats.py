"""Norms with `return_stats`: the result, and the means and inverse standard deviations of the rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.operands import Array
from tilewright.calls.pieces import as_type
from tilewright.calls.recording import new_array, numpy_call
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

    In float32, for float64 in float64; the axes of a row are kept with length 1. The differences'
    own mean corrects the variance, as in the kernels of layer norm.
    """
    acc = np.dtype(np.float64 if x.dtype == F64.numpy else np.float32)
    wide = as_type(x, acc)

    def mean(values: Array) -> Array:
        return prepare_reduction(RowOp.MEAN, values, along, keepdims=True).run()

    squares = new_array(wide.shape, acc)
    if op is RowOp.RMS_NORM:
        _quiet(np.square, wide, squares)
        found = mean(squares)
        _inverse_root(found, eps)
        return (found,)
    means, around = mean(wide), new_array(wide.shape, acc)
    _quiet(np.subtract, wide, means, around)
    _quiet(np.square, around, squares)
    variance, shift = mean(squares), mean(around)
    _quiet(np.square, shift, shift)
    _quiet(np.subtract, variance, shift, variance)
    _quiet(np.maximum, variance, 0, out=variance)
    _inverse_root(variance, eps)
    return means, variance


_quiet = partial(numpy_call, quiet=True)


def _inverse_root(square: Array, eps: float) -> None:
    """1 / √(square + eps), in place."""
    _quiet(np.add, square, square.dtype.type(eps), square)
    _quiet(np.sqrt, square, square)
    _quiet(np.divide, square.dtype.type(1), square, square)
