"""Products of elements, summed or not: their meaning in NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spec.dtype import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray


def product_meaning(x: NDArray[Any], y: NDArray[Any] | None, summed: tuple[int, ...] | None) -> NDArray[Any]:
    """Products of elements, summed over axes or not: floats in float64, complex in complex128."""
    integers = np.issubdtype(x.dtype, np.integer)
    kind = Kind.COMPLEX if np.issubdtype(x.dtype, np.complexfloating) else Kind.FLOAT
    wide = x.dtype if integers else np.dtype(np.complex128 if kind is Kind.COMPLEX else np.float64)
    with np.errstate(all="ignore"):
        found = x.astype(wide) if y is None else x.astype(wide) * y.astype(wide)
        return found if summed is None else np.asarray(found.sum(axis=summed, dtype=wide))
