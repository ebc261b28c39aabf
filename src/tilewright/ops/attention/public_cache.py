"""The public function that appends to caches of keys and values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.calls.recording import not_repeatable, repeatable
from tilewright.calls.repeated import repeated
from tilewright.ops.attention.kv_cache import AppendRequest, prepare_append
from tilewright.typing import ArrayLike, AttentionLayoutName


@repeated
def append_kv(
    k_cache: NDArray[Any],
    v_cache: NDArray[Any],
    k: ArrayLike,
    v: ArrayLike,
    kv_lengths: ArrayLike,
    *,
    new_lengths: ArrayLike | None = None,
    block_table: ArrayLike | None = None,
    key_scales: NDArray[np.float32] | None = None,
    value_scales: NDArray[np.float32] | None = None,
    layout: AttentionLayoutName = "bhsd",
) -> NDArray[Any]:
    """Write new keys and values behind those that caches hold, in place, and return the new lengths.

    The step before `attention` over a cache that is allocated once. With as many queries as new keys the
    default position of the queries is right: the last query is at the last key.

    Parameters
    ----------
    k_cache, v_cache : numpy.ndarray, shapes (batch, kv_heads, capacity, d) and (batch, kv_heads, capacity, ·)
        Written in place, of any strides and type. Without the batch axis 3-D, of one head 2-D. With
        `block_table` (pages, kv_heads, page, ·).
    k, v : array_like, shapes (batch, kv_heads, new, d) and (batch, kv_heads, new, ·)
        As many axes as the caches; converted to their types under "same_kind" casting.
    kv_lengths : array_like of integers, shape () or (batch,)
        Keys that each sequence has so far. Calls with an array are repeated in machine code.
    new_lengths : array_like of integers, shape () or (batch,), optional
        How many of the new keys of each sequence count, from the first on; by default all.
    block_table : array_like of integers, shape (batch, pages), optional
        The pages of each sequence, as in `attention`. Places that two sequences share are written twice, in
        no order.
    key_scales, value_scales : numpy.ndarray of float32, optional
        Written in place: the scale of each row, in the shape of an int8 cache without its last axis, as
        `attention` takes them. New rows are floats then, and quantised as by `quantize_rows`.
    layout : "bhsd" or "bshd"
        "bshd": (batch, sequence, heads, d), in the caches and the new keys and values.

    Returns
    -------
    numpy.ndarray of int64, shape (batch,)
        The new lengths, for ``attention(..., kv_lengths=)`` and the next step.

    Raises
    ------
    CacheNotArray, CacheReadOnly, AttentionAxes, AppendShape, AppendDtype, AppendScales, UnsupportedDtype,
    KeysMismatch, InvalidLengths, CacheFull, BlockTableShape, BlockOutsideCache, InvalidOperand, InvalidChoice
        Each before a cache changes.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> k_cache, v_cache = np.zeros((1, 2, 8, 4), np.float32), np.zeros((1, 2, 8, 4), np.float32)
    >>> new = np.ones((1, 2, 3, 4), np.float32)
    >>> lengths = tw.append_kv(k_cache, v_cache, new, new, 0)
    >>> lengths = tw.append_kv(k_cache, v_cache, new, 2 * new, lengths)
    >>> lengths, v_cache[0, 0, :, 0]
    (array([6]), array([1., 1., 1., 2., 2., 2., 0., 0.], dtype=float32))
    >>> tw.attention(new, k_cache, v_cache, kv_lengths=lengths, causal=True)[0, 0, :, 0]
    array([1.25, 1.4 , 1.5 ], dtype=float32)
    """
    if not isinstance(kv_lengths, np.ndarray):
        # It grows from call to call, and each number would be a recipe of its own.
        not_repeatable("kv_lengths that are a number and not an array")
    caches, scales = (k_cache, v_cache), (key_scales, value_scales)
    request = AppendRequest(caches, (k, v), kv_lengths, new_lengths, block_table, scales, layout)
    found = prepare_append(request).run()
    repeatable()
    return found
