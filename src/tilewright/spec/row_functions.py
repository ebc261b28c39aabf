"""Functions of whole rows: their names, and their meaning in NumPy."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, get_args

import numpy as np

from tilewright.typing import RowOpName

if TYPE_CHECKING:
    from numpy.typing import NDArray


class RowOp(Enum):
    """What is computed of each row x of n elements.

    SOFTMAX: e^(x - max x) / Σ e^(x - max x); LOG_SOFTMAX: its logarithm; LAYER_NORM: (x - mean) /
    √(variance + eps), the variance that of n elements, then times weight and plus bias; RMS_NORM: x /
    √(mean of x² + eps), then times weight. SUM, MEAN, MAX and MIN make one number of the row, NaN
    where it has NaN. INVERSE_DEVIATION makes 1 / √(variance + eps) of it, and INVERSE_ROOT makes
    1 / √(mean of x² + eps).
    """

    SOFTMAX, LOG_SOFTMAX, LAYER_NORM, RMS_NORM = get_args(RowOpName)[:4]
    SUM, MEAN, MAX, MIN, INVERSE_DEVIATION, INVERSE_ROOT = get_args(RowOpName)[4:]

    @property
    def takes_eps(self) -> bool:
        """Whether it has a root with eps under it."""
        return self.is_norm or self in (RowOp.INVERSE_DEVIATION, RowOp.INVERSE_ROOT)

    @property
    def is_norm(self) -> bool:
        """Whether it is a norm, which takes a weight."""
        return self in (RowOp.LAYER_NORM, RowOp.RMS_NORM)

    @property
    def reduces(self) -> bool:
        """Whether a row becomes one number."""
        return not self.is_norm and self not in (RowOp.SOFTMAX, RowOp.LOG_SOFTMAX)


def row_meaning(op: RowOp, x: NDArray[np.float64], eps: float) -> NDArray[np.float64]:
    """An operation along the last axis, in float64; where a row is empty, so is a result like it."""
    if x.shape[-1] == 0 and not op.reduces:
        return x
    match op:
        case RowOp.SOFTMAX:
            weights = np.exp(x - x.max(axis=-1, keepdims=True))
            return np.asarray(weights / weights.sum(axis=-1, keepdims=True))
        case RowOp.LOG_SOFTMAX:
            below = x - x.max(axis=-1, keepdims=True)
            return np.asarray(below - np.log(np.exp(below).sum(axis=-1, keepdims=True)))
        case RowOp.LAYER_NORM:
            around = x - x.mean(axis=-1, keepdims=True)
            return np.asarray(around / np.sqrt(np.square(around).mean(axis=-1, keepdims=True) + eps))
        case RowOp.RMS_NORM:
            return np.asarray(x / np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + eps))
        case RowOp.SUM:
            return np.asarray(x.sum(axis=-1))
        case RowOp.MEAN:
            return np.asarray(x.mean(axis=-1))
        case RowOp.MAX:
            return np.asarray(x.max(axis=-1))
        case RowOp.MIN:
            return np.asarray(x.min(axis=-1))
        case RowOp.INVERSE_DEVIATION:
            return np.asarray(1 / np.sqrt(x.var(axis=-1) + eps))
        case RowOp.INVERSE_ROOT:
            return np.asarray(1 / np.sqrt(np.square(x).mean(axis=-1) + eps))
