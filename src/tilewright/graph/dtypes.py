"""Element types of graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.spec.dtype import parse_dtype


def graph_dtype(dtype: Any) -> np.dtype[Any]:
    """The NumPy dtype of an element type as users write them; also bool and the integers without a kernel.

    >>> graph_dtype("bf16"), graph_dtype("bool"), graph_dtype("i64")
    (dtype(bfloat16), dtype('bool'), dtype('int64'))
    """
    try:
        return np.dtype(parse_dtype(dtype).numpy)
    except TypeError:
        found: np.dtype[Any] = np.dtype(dtype)
        if found.kind not in "biufc":
            raise
        return found
