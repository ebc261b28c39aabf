"""All operators, by domain and name."""

from __future__ import annotations

from tilewright.onnx.call import Operator
from tilewright.onnx.operators import (
    attention,
    constants,
    elementwise,
    movement,
    norms,
    products,
    quantisation,
    reductions,
    shapes,
)

OPERATORS: dict[tuple[str, str], Operator] = {
    **constants.OPERATORS,
    **elementwise.OPERATORS,
    **shapes.OPERATORS,
    **movement.OPERATORS,
    **products.OPERATORS,
    **reductions.OPERATORS,
    **norms.OPERATORS,
    **quantisation.OPERATORS,
    **attention.OPERATORS,
}
