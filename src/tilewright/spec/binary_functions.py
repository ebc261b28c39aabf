"""Functions of pairs of elements: their names, and their meaning in NumPy."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from tilewright.spec.functions import UnaryOp, meaning
from tilewright.typing import BinaryName

if TYPE_CHECKING:
    from numpy.typing import NDArray


class BinaryOp(Enum):
    """What is computed of each pair of elements.

    MAXIMUM and MINIMUM are NaN where either element is, as in NumPy; of two zeros, either.
    """

    ADD, SUBTRACT, MULTIPLY, DIVIDE, MAXIMUM, MINIMUM = get_args(BinaryName)


_MEANINGS = {
    BinaryOp.ADD: np.add,
    BinaryOp.SUBTRACT: np.subtract,
    BinaryOp.MULTIPLY: np.multiply,
    BinaryOp.DIVIDE: np.divide,
    BinaryOp.MAXIMUM: np.maximum,
    BinaryOp.MINIMUM: np.minimum,
}


def binary_meaning(
    op: BinaryOp, left: NDArray[Any], right: NDArray[Any], activation: UnaryOp | None = None
) -> NDArray[np.float64]:
    """op(left, activation(right)), element by element, in float64.

    >>> binary_meaning(BinaryOp.MULTIPLY, np.array([2.0, 3.0]), np.array([-1.0, 4.0]), UnaryOp.RELU)
    array([ 0., 12.])
    """
    wide = right.astype(np.float64) if activation is None else meaning(activation, right)
    with np.errstate(all="ignore"):
        found: NDArray[np.float64] = _MEANINGS[op](left.astype(np.float64), wide)
    return found
