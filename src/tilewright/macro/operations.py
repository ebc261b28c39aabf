"""Vector operations of elementwise functions and of functions of rows, counted in compiled loops.

Each is taken to start in a slot of the multiply unit, as the constants for attention in `cost.py` are. Loads
and stores are counted apart. `tests/macro/test_operations.py` counts them again.
"""

from __future__ import annotations

from typing import NamedTuple

from tilewright.spec.functions import UnaryOp
from tilewright.spec.row_functions import RowOp

#: For each vector of float32, and of float64, whose polynomials are longer.
FUNCTION_OPERATIONS: dict[UnaryOp, tuple[float, float]] = {
    UnaryOp.ZERO: (0, 0),
    UnaryOp.IDENTITY: (0, 0),
    UnaryOp.RELU: (1, 1),
    UnaryOp.SQUARE: (1, 1),
    UnaryOp.RECIPROCAL: (1, 1),
    UnaryOp.NEGATE: (1, 1),
    UnaryOp.EXP: (17, 23),
    UnaryOp.SIGMOID: (18, 23),
    UnaryOp.TANH: (23, 28),
    UnaryOp.SILU: (23, 28),
    UnaryOp.GELU_TANH: (38, 43),
    UnaryOp.GELU: (41, 71),
    UnaryOp.ERF: (47, 76),
}


#: Integers of a packed weight to floats, for each vector: shift, mask, convert, subtract the zero point.
UNPACK_OPERATIONS = 4


class RowWork(NamedTuple):
    """Work of a function of rows for each vector of a row.

    Attributes
    ----------
    operations : on vectors, without exponentials.
    exponentials : of vectors.
    loads, stores : of vectors, over all passes.
    reductions : to one number, for each row.
    """

    operations: float
    exponentials: int
    loads: int
    stores: int
    reductions: int


#: Passes of softmax: maximum, exponentials and their sum, quotient. Of layer norm: mean, squares of
#: differences, result.
ROW_WORK: dict[RowOp, RowWork] = {
    RowOp.SOFTMAX: RowWork(2, 1, 3, 2, 2),
    RowOp.LOG_SOFTMAX: RowWork(3, 1, 3, 1, 2),
    RowOp.LAYER_NORM: RowWork(6, 0, 3, 1, 2),
    RowOp.RMS_NORM: RowWork(2, 0, 2, 1, 1),
    RowOp.SUM: RowWork(1.75, 0, 1, 0, 1),
    RowOp.MEAN: RowWork(1.75, 0, 1, 0, 1),
    RowOp.MAX: RowWork(3, 0, 1, 0, 1),
    RowOp.MIN: RowWork(3, 0, 1, 0, 1),
    RowOp.INVERSE_DEVIATION: RowWork(4, 0, 2, 0, 2),
    RowOp.INVERSE_ROOT: RowWork(1, 0, 1, 0, 1),
}


def function_operations(op: UnaryOp, element_bits: int) -> float:
    """Operations on one vector.

    >>> function_operations(UnaryOp.EXP, 32), function_operations(UnaryOp.EXP, 64)
    (17, 23)
    """
    single, double = FUNCTION_OPERATIONS[op]
    return double if element_bits > 32 else single
