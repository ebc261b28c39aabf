"""Elementwise functions: their names, and their meaning in NumPy."""

from __future__ import annotations

import math
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

import numpy as np

from tilewright.typing import UnaryName

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Wide: TypeAlias = NDArray[np.float64]


class UnaryOp(Enum):
    """What a unary primitive does to each element.

    GELU is x·Φ(x) with the error function, GELU_TANH its usual approximation by tanh; SILU is
    x·sigmoid(x).
    """

    ZERO, IDENTITY, RELU, SQUARE, EXP, TANH, GELU, GELU_TANH, SILU, SIGMOID, RECIPROCAL, NEGATE, ERF = (
        get_args(UnaryName)
    )

    @property
    def computes(self) -> bool:
        """Whether the result is arithmetic on the element, which only float types have here."""
        return self not in (UnaryOp.ZERO, UnaryOp.IDENTITY)

    @property
    def single(self) -> bool:
        """Whether it is one operation of the hardware at most, and so correctly rounded."""
        return self in _SINGLE


_SINGLE = frozenset(
    (
        UnaryOp.ZERO,
        UnaryOp.IDENTITY,
        UnaryOp.RELU,
        UnaryOp.SQUARE,
        UnaryOp.RECIPROCAL,
        UnaryOp.NEGATE,
    )
)


def meaning(op: UnaryOp, a: NDArray[Any]) -> NDArray[Any]:
    """An operation on every element: in float64, or exactly for zero and identity."""
    if op is UnaryOp.ZERO:
        return np.zeros_like(a)
    if op is UnaryOp.IDENTITY:
        return np.array(a)
    with np.errstate(all="ignore"):
        return _MEANINGS[op](a.astype(np.float64))


def _sigmoid(x: Wide) -> Wide:
    return 1.0 / (1.0 + np.exp(-x))


def _weighted(x: Wide, weight: Wide) -> Wide:
    """x · weight, with the limit 0 where x is -inf and the weight 0."""
    return np.where(np.isneginf(x), -0.0, x * weight)


_ERF = np.vectorize(math.erf, otypes=[np.float64])
_ERFC = np.vectorize(math.erfc, otypes=[np.float64])

#: √(2/π) and the cubic coefficient of the tanh form: Hendrycks and Gimpel, arXiv:1606.08415, §2.
_GELU_SCALE = math.sqrt(2 / math.pi)
_GELU_CUBIC = 0.044715


def _gelu(x: Wide) -> Wide:
    """x·Φ(x) = x·erfc(-x/√2)/2, which does not cancel where x is negative."""
    return _weighted(x, _ERFC(-x / math.sqrt(2)) / 2)


def _gelu_tanh(x: Wide) -> Wide:
    """x·(1 + tanh(u))/2 = x·sigmoid(2u)."""
    return _weighted(x, _sigmoid(2 * _GELU_SCALE * (x + _GELU_CUBIC * x**3)))


#: Each operation on float64; NaN stays NaN in all of them.
_MEANINGS: dict[UnaryOp, Callable[[Wide], Wide]] = {
    UnaryOp.RELU: lambda x: np.where(x < 0, 0.0, x),
    UnaryOp.SQUARE: np.square,
    UnaryOp.EXP: np.exp,
    UnaryOp.TANH: np.tanh,
    UnaryOp.GELU: _gelu,
    UnaryOp.GELU_TANH: _gelu_tanh,
    UnaryOp.SILU: lambda x: _weighted(x, _sigmoid(x)),
    UnaryOp.SIGMOID: _sigmoid,
    UnaryOp.RECIPROCAL: np.reciprocal,
    UnaryOp.NEGATE: np.negative,
    UnaryOp.ERF: _ERF,
}
