"""Rotary embeddings: which elements are a pair, and the meaning in NumPy."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from tilewright.typing import PairingName

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Pairing(Enum):
    """The elements of a head that are rotated together.

    HALVES: element j and the one half of the rotated elements further on, as in GPT-NeoX and Llama.
    INTERLEAVED: elements 2j and 2j + 1, as in GPT-J and the paper.
    """

    HALVES, INTERLEAVED = get_args(PairingName)


def rotary_meaning(
    x: NDArray[Any], cos: NDArray[Any], sin: NDArray[Any], pairing: Pairing
) -> NDArray[np.float64]:
    """Rows x with each pair (a, b) replaced by (a·cos - b·sin, b·cos + a·sin), in float64.

    Parameters
    ----------
    x : (..., d); elements behind the pairs stay.
    cos, sin : (..., pairs), one row for each of x.

    >>> rotary_meaning(np.array([1.0, 2.0, 3.0]), np.array([0.0]), np.array([1.0]), Pairing.HALVES)
    array([-2.,  1.,  3.])
    """
    found = x.astype(np.float64)
    pairs = cos.shape[-1]
    if pairing is Pairing.HALVES:
        first, second = slice(0, pairs), slice(pairs, 2 * pairs)
    else:
        first, second = slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)
    a, b = found[..., first].copy(), found[..., second].copy()
    c, s = cos.astype(np.float64), sin.astype(np.float64)
    with np.errstate(all="ignore"):
        found[..., first], found[..., second] = a * c - b * s, b * c + a * s
    return found
