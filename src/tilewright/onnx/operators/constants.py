"""Constants in nodes."""

from __future__ import annotations

import numpy as np

from tilewright.onnx.call import NodeCall, NotSupported, OperatorTable, Results

OPERATORS = OperatorTable()


@OPERATORS.add("Constant")
def constant(call: NodeCall) -> Results:
    """An array, a number or several numbers."""
    if call.given("value"):
        return call.graph.constant(call.tensor_attribute(call.attribute("value")))
    for name, dtype in (("float", np.float32), ("int", np.int64)):
        for form in (f"value_{name}", f"value_{name}s"):
            if call.given(form):
                return call.graph.constant(np.asarray(call.attribute(form), dtype))
    raise NotSupported("a constant that is neither a tensor nor numbers")
