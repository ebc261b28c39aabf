"""Bounds on the keys visible to a query: causal attention and sliding windows as a moving range."""

from __future__ import annotations

from enum import Enum
from typing import Any, get_args

import numpy as np

from tilewright.errors import InvalidWindow, shown
from tilewright.preparing import importing
from tilewright.records import dataclass
from tilewright.spec.arguments import as_flag, as_integer, as_items, parse_choice
from tilewright.typing import CausalName

#: Farthest that a window reaches and that queries are from the first key. No sequence is as long, and sums of
#: a few such numbers fit in int64.
FARTHEST = 1 << 60


class Causal(Enum):
    """Alignment of queries with keys: the last query at the last key, or the first at the first."""

    LOWER_RIGHT, UPPER_LEFT = get_args(CausalName)


@dataclass(frozen=True)
class Bounds:
    """The range of keys that a query sees, to the left and right of its own position.

    Query i of `queries` is at key i + keys - queries, so that the last query is at the last key; with
    ``causal="upper_left"`` at key i. A call may also give the key of query 0. A query sees the keys from
    `left` before its own to `right` behind it, both included; None: no bound. Causal attention has no keys to
    the right.

    Attributes
    ----------
    left, right : keys to each side, or None.
    upper_left : whether queries are aligned with the first keys.

    Examples
    --------
    >>> [int(limit) for limit in Bounds.parse(causal=True, window=(2, 0)).limits(queries=4, keys=6)]
    [0, 3]
    >>> [int(limit) for limit in Bounds.parse(causal="upper_left").limits(queries=4, keys=6)]
    [-4, 1]
    """

    left: int | None = None
    right: int | None = None
    upper_left: bool = False

    @classmethod
    def parse(cls, causal: object = False, window: object = None) -> Bounds:
        """Parse the arguments of `tilewright.attention`.

        Raises
        ------
        InvalidChoice : for an invalid `causal`.
        InvalidWindow : for a `window` whose bounds are not non-negative integers or None.
        """
        left, right = (None, None) if window is None else _window(window)
        kind = parse_causal(causal)
        if kind is not None:
            right = 0
        return cls(left, right, kind is Causal.UPPER_LEFT)

    def __bool__(self) -> bool:
        """Return whether any bound is set."""
        return self.left is not None or self.right is not None

    def diagonal(self, queries: Any, keys: Any) -> Any:
        """The key position of query 0."""
        return 0 if self.upper_left else keys - queries

    def limits(self, queries: Any, keys: Any, first: Any = None) -> tuple[Any, Any]:
        """low and high: query i sees the keys j of 0 <= j < keys with low + i <= j < high + i.

        Both are from -queries to keys. Where there is no bound, the limit is one that excludes nothing.

        Parameters
        ----------
        queries, keys : numbers, or arrays of them, as the limits then are.
        first : position of query 0 among the keys, by default `diagonal`.

        >>> [int(limit) for limit in Bounds.parse(causal=True).limits(queries=4, keys=6, first=1)]
        [-4, 2]
        """
        if first is None:
            first = self.diagonal(queries, keys)
        low, high = 0 - queries, keys
        numbers = type(queries) is type(keys) is type(first) is int
        least, most = (min, max) if numbers else (np.minimum, np.maximum)
        if self.left is not None:
            low = least(most(first - self.left, low), keys)
        if self.right is not None:
            high = most(least(first + self.right + 1, high), 0 - queries)
        return low, high

    def bind(self, queries: Any, keys: Any, first: Any = None) -> bool:
        """Return whether the bounds exclude any key from any query.

        >>> Bounds.parse(causal=True).bind(queries=1, keys=100)
        False
        """
        return bool(self) and limits_bind(*self.limits(queries, keys, first), queries, keys)


def limits_bind(low: Any, high: Any, queries: Any, keys: Any) -> bool:
    """Return whether such limits exclude any key from any query."""
    excluded = (low + queries - 1 > 0) | (high < keys)
    return excluded if type(excluded) is bool else bool(np.any(excluded))


def parse_causal(value: object) -> Causal | None:
    """The alignment that a `causal` argument means; None: none.

    Raises
    ------
    InvalidChoice
    """
    if value is None:
        return None
    flag = as_flag(value)
    if flag is not None:
        return Causal.LOWER_RIGHT if flag else None
    return parse_choice(Causal, value, "causal")


def _window(window: Any) -> tuple[int | None, int | None]:
    """(left, right) of a window."""
    sides = as_items(window)
    if sides is None or len(sides) != 2:
        raise InvalidWindow(found=shown(window))
    return _side(sides[0], window), _side(sides[1], window)


def _side(value: Any, window: Any) -> int | None:
    if value is None:
        return None
    count = as_integer(value)
    if count is None or count < 0:
        raise InvalidWindow(found=shown(window))
    return min(count, FARTHEST)


def exclusion_limit(dtype: np.dtype[Any]) -> float:
    """Numbers of a mask that are not above this exclude a key: half the least number of its type.

    >>> exclusion_limit(np.dtype(np.float16))
    -32752.0
    """
    with importing:
        import ml_dtypes  # its finfo supports bfloat16

    return float(ml_dtypes.finfo(dtype).min) / 2  # type: ignore[no-untyped-call]
