"""The choice of one token from a row of logits: which tokens remain, and which of them a draw selects."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tilewright.calls.operands import Array
from tilewright.errors import InvalidLogits

#: Most likely tokens that are ranked first to find a nucleus, and how many times as many are ranked next.
FIRST_RANKED, MORE_RANKED = 64, 8


class Limits(NamedTuple):
    """How a token is chosen; see `tilewright.sample`. None of a limit keeps all tokens."""

    temperature: float
    top_k: int | None
    top_p: float | None
    min_p: float | None


def check_row(logits: Array, row: int) -> None:
    """Refuse logits that are no distribution.

    Raises
    ------
    InvalidLogits
    """
    most = logits.max(initial=-np.inf)
    if np.isfinite(most):
        return
    reason = "has no token above -inf" if most == -np.inf else "has NaN or inf"
    raise InvalidLogits(row=row, reason=reason)


def choose(logits: Array, limits: Limits, draw: float) -> int:
    """The token of a row of finite logits and -inf, float64.

    Parameters
    ----------
    draw : from 0 to less than 1; where it falls among the weights of the tokens that remain, in their order
        in the row, is the token.

    Examples
    --------
    >>> choose(np.log([0.5, 0.1, 0.4]), Limits(1.0, 2, None, None), 0.6)
    2
    """
    tokens = largest(logits, logits.size if limits.top_k is None else limits.top_k)
    kept = logits[tokens]
    with np.errstate(over="ignore", under="ignore"):
        weights = np.exp((kept - kept.max()) / limits.temperature)
    if limits.top_p is not None and limits.top_p < 1:
        places = np.sort(_nucleus(kept, weights, limits.top_p))
        tokens, weights = tokens[places], weights[places]
    if limits.min_p is not None:
        likely = weights >= limits.min_p  # the largest weight is 1
        tokens, weights = tokens[likely], weights[likely]
    reached = np.cumsum(weights)
    at = np.searchsorted(reached, draw * reached[-1], side="right")
    last = np.searchsorted(reached, reached[-1])  # the last token of a weight, should the product round up
    return int(tokens[min(at, last)])


def largest(logits: Array, count: int) -> Array:
    """The places of so many largest numbers, ascending; of equal ones the first.

    >>> largest(np.array([1.0, 3.0, 2.0, 1.0, 3.0, 1.0]), 4)
    array([0, 1, 2, 4])
    """
    size = logits.size
    if count >= size:
        return np.arange(size)
    least = np.partition(logits, size - count)[size - count]
    above = np.flatnonzero(logits > least)
    equal = np.flatnonzero(logits == least)[: count - above.size]
    return np.sort(np.concatenate((above, equal)))


def _nucleus(logits: Array, weights: Array, share: float) -> Array:
    """The places of the fewest tokens, most likely ones first, whose weights are a share of all.

    More and more of them are ranked until they suffice. Their sums are those of a full ranking.
    """
    enough, count = share * weights.sum(), FIRST_RANKED
    while True:
        places = largest(logits, count)
        ranked = places[np.argsort(-logits[places], kind="stable")]
        reached = np.cumsum(weights[ranked])
        if reached[-1] >= enough or count >= logits.size:
            return ranked[: int(np.searchsorted(reached, enough)) + 1]
        count *= MORE_RANKED
