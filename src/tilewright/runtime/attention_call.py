"""What a kernel of attention is given: arrays as views, where each sequence stands and what it sees."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.spec.attention import Attention

Array = NDArray[Any]

#: What `AttentionCall.items` says of each sequence: element offsets from the beginning of each array, sizes,
#: and bounds: query i of `queries` sees the keys j of 0 <= j < `keys` with `low` + i <= j < `high` + i.
ITEM_FIELDS = ("q", "k", "v", "out", "mask", "state", "scales", "pages", "queries", "keys", "low", "high")
#: Integers of one sequence in the table.
ITEM_SIZE = 16


class AttentionCall(NamedTuple):
    """The arguments of one call, checked: their types are those of the problem.

    Attributes
    ----------
    q, out : (batch, heads, rows, columns) views of any strides; of packed sequences, batch is 1.
    k, v : the same of kv_heads; of paged ones, the first axis are pages and the third the keys of one.
    items : int64 (sequences, `ITEM_SIZE`), see `ITEM_FIELDS`.
    row_max, row_sum : contiguous (batch, heads, rows) of the type of sums: the largest score of each row and
        the sum of exp(score - largest).
    queries : the most of one sequence.
    scale, softcap : numbers; a softcap of 0 is none.
    mask : (batch, heads, queries, keys), strides of 0 where it broadcasts; bytes where it is logical.
    slopes, sinks : (heads,) of the type of sums.
    key_scales, value_scales : contiguous (batch, kv_heads, keys) of the type of sums.
    pages : contiguous int64 (sequences, most pages).
    """

    q: Array
    k: Array
    v: Array
    out: Array
    items: Array
    row_max: Array
    row_sum: Array
    queries: int
    scale: float
    softcap: float = 0.0
    mask: Array | None = None
    slopes: Array | None = None
    sinks: Array | None = None
    key_scales: Array | None = None
    value_scales: Array | None = None
    pages: Array | None = None


def log_sum_exp(row_max: Array, row_sum: Array) -> Array:
    """The logarithm of each row's sum of exponentials: -inf where no key is seen.

    >>> log_sum_exp(np.array([3.0, -np.inf]), np.array([1.0, 0.0]))
    array([  3., -inf])
    """
    with np.errstate(divide="ignore"):
        found: Array = np.log(row_sum)
    found += row_max
    return found


class PreparedAttention(NamedTuple):
    """One call of `attention`, checked and converted; `given` has not changed.

    Attributes
    ----------
    problem : which kernel it takes; None where no kernel is made for the sizes of its heads.
    call : the kernel's arguments; `call.out` is a view of `target`.
    target : what the kernel writes, in the shape and layout of the result.
    given : the caller's `out`, or None.
    state_shape : of lse.
    partial : whether some rows belong to no sequence: these are zero.
    copies : each copy, in words.
    """

    problem: Attention | None
    call: AttentionCall
    target: Array
    given: Array | None
    state_shape: tuple[int, ...]
    partial: bool
    copies: tuple[str, ...]
