"""Element types of graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.errors import UnsupportedDtype
from tilewright.spec.arguments import as_dtype
from tilewright.spec.dtype import parse_dtype


def graph_dtype(dtype: Any) -> np.dtype[Any]:
    """The NumPy dtype of an element type as users write them; also those without a kernel, as bool and int2.

    >>> graph_dtype("bf16"), graph_dtype("bool"), graph_dtype("i64")
    (dtype(bfloat16), dtype('bool'), dtype('int64'))

    Raises
    ------
    UnsupportedDtype
    """
    try:
        return np.dtype(parse_dtype(dtype).numpy)
    except UnsupportedDtype:
        found = as_dtype(dtype)
        if found is None or not _is_number(found) or not found.isnative:
            raise
        return found


def _is_number(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype is bool, a number, or a type of ml_dtypes."""
    return dtype.kind in "biufc" or dtype.type.__module__ == "ml_dtypes"
