"""Affine quantisation: scales and zero points of ranges, elements to nearest, groups of a matrix."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tilewright.calls.operands import Array
from tilewright.spec.weights import Weights

#: Elements of one block of groups, which NumPy quantises at once; a group that has more is a block by itself.
_BLOCK_ELEMENTS = 1 << 16


def scale_and_zero(low: Array, high: Array, form: Weights) -> tuple[Array, Array]:
    """Scale and zero point of groups whose elements are between `low` and `high`, in float32.

    symmetric: s = max(-low, high) / (2^(bits-1) - 1), z is the middle of the range, 2^(bits-1)
    with zero points: s = (max(high, 0) - min(low, 0)) / (2^bits - 1), z = rint(-min(low, 0) / s)

    `rint` to nearest, ties to even; a group of zeros has s = 1.
    """
    elements = form.elements
    most = (1 << elements.bits) - 1
    if form.zeros:
        low, high = np.minimum(low, 0), np.maximum(high, 0)
        scale = (high / np.float32(most)) - (low / np.float32(most))
    else:
        scale = np.maximum(-low, high) / np.float32(elements.middle - 1)
    scale[scale == 0] = 1
    if form.zeros:
        return scale, np.clip(np.rint(-low / scale), 0, most)
    return scale, np.full_like(scale, elements.middle)


def to_nearest(values: Array, scale: Array, zero: Array, form: Weights) -> Array:
    """Unsigned elements, as floats: rint(w / s) + z, held between 0 and 2^bits - 1."""
    found: Array = np.clip(np.rint(values / scale) + zero, 0, (1 << form.elements.bits) - 1)
    return found


def grouped(w: Array, form: Weights) -> Iterator[tuple[int, Array]]:
    """Blocks of groups (groups, depths, n), each with the number of its first group; short ones last.

    Narrow groups are many to a block, so that NumPy's work outweighs Python's; wide ones few, so that
    temporaries stay in the caches. A matrix without elements has no blocks, however many rows it has.
    """
    depth, columns = w.shape
    if not w.size:
        return
    group = form.group or depth
    whole = depth // group
    together = max(1, _BLOCK_ELEMENTS // (group * columns))
    for number in range(0, whole, together):
        groups = min(together, whole - number)
        yield number, w[number * group : (number + groups) * group].reshape(groups, group, columns)
    if depth % group:
        yield whole, w[np.newaxis, whole * group :]
