"""The public functions of attention."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

from numpy.typing import NDArray

from tilewright.calls.exchange import exchanging
from tilewright.calls.repeated import repeated
from tilewright.errors.callers import check_keywords, named_in_errors
from tilewright.ops.attention import call
from tilewright.ops.attention.operands import Keywords
from tilewright.preparing import Late
from tilewright.threads.pool import limited
from tilewright.typing import (
    ArrayLike,
    AttentionLayoutName,
    AttentionStrategyName,
    CausalName,
    OutArray,
    ScoreStageName,
)

if TYPE_CHECKING:
    from tilewright.ops.attention.backward_call import attention_backward as _attention_backward
    from tilewright.ops.attention.state import AttentionState
    from tilewright.ops.attention.state import attention_partial as _attention_partial
    from tilewright.ops.attention.state import merge_attention as _merge_attention
else:  # calls of `attention` do not need them
    _attention_partial = Late("tilewright.ops.attention.state:attention_partial")
    _merge_attention = Late("tilewright.ops.attention.state:merge_attention")
    _attention_backward = Late("tilewright.ops.attention.backward_call:attention_backward")


class ScoreKeywords(TypedDict, total=False):
    """The keywords that every function of attention takes, for type checkers; `attention` documents them."""

    mask: ArrayLike | None
    causal: bool | CausalName
    scale: float | None
    window: tuple[int | None, int | None] | None
    q_offset: ArrayLike | None
    softcap: float | None
    alibi_slopes: ArrayLike | None
    sinks: ArrayLike | None
    layout: AttentionLayoutName


class GradientKeywords(ScoreKeywords, total=False):
    """The same, and how long each sequence is."""

    q_lengths: ArrayLike | None
    kv_lengths: ArrayLike | None
    cu_seqlens_q: ArrayLike | None
    cu_seqlens_k: ArrayLike | None


class AttentionKeywords(GradientKeywords, total=False):
    """All that say what attention computes: the same, and how keys and values are stored."""

    block_table: ArrayLike | None
    key_scales: ArrayLike | None
    value_scales: ArrayLike | None


class _AttentionCall(AttentionKeywords, total=False):
    """The same, and how the result is computed."""

    out: OutArray | None
    strategy: AttentionStrategyName
    threads: int | None


@overload
def attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    return_lse: Literal[False] = False,
    return_scores: None = None,
    **keywords: Unpack[_AttentionCall],
) -> NDArray[Any]: ...
@overload
def attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    return_lse: Literal[True],
    return_scores: None = None,
    **keywords: Unpack[_AttentionCall],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    return_lse: Literal[False] = False,
    return_scores: ScoreStageName,
    **keywords: Unpack[_AttentionCall],
) -> tuple[NDArray[Any], NDArray[Any]]: ...
@overload
def attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    return_lse: Literal[True],
    return_scores: ScoreStageName,
    **keywords: Unpack[_AttentionCall],
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]: ...
@overload
def attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    return_lse: bool,
    return_scores: ScoreStageName | None = None,
    **keywords: Unpack[_AttentionCall],
) -> NDArray[Any] | tuple[NDArray[Any], ...]: ...
@repeated
def attention(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    mask: ArrayLike | None = None,
    causal: bool | CausalName = False,
    scale: float | None = None,
    window: tuple[int | None, int | None] | None = None,
    q_offset: ArrayLike | None = None,
    softcap: float | None = None,
    alibi_slopes: ArrayLike | None = None,
    sinks: ArrayLike | None = None,
    q_lengths: ArrayLike | None = None,
    kv_lengths: ArrayLike | None = None,
    cu_seqlens_q: ArrayLike | None = None,
    cu_seqlens_k: ArrayLike | None = None,
    block_table: ArrayLike | None = None,
    key_scales: ArrayLike | None = None,
    value_scales: ArrayLike | None = None,
    layout: AttentionLayoutName = "bhsd",
    out: OutArray | None = None,
    return_lse: bool = False,
    return_scores: ScoreStageName | None = None,
    strategy: AttentionStrategyName = "auto",
    threads: int | None = None,
) -> Any:
    """softmax(scale · q·kᵀ + ...) · v, fused: the full score matrix is never materialised.

    A score is computed in this order: scale · q·k, the key's scale, softcap, the slope of the head times the
    distance, the mask added; then keys that the mask, `causal`, `window` or a length excludes have no effect,
    even if they or their values hold NaN. Softmax is computed in float32, for float64 in
    float64.

    Parameters
    ----------
    q : array_like, shape (batch, heads, queries, d)
    k, v : array_like, shapes (batch, kv_heads, keys, d) and (batch, kv_heads, keys, value_dim)
        float32, float64, bfloat16 or float16, of any strides; different floats are converted to the widest,
        bfloat16 and float16 to float32. k and v may both be int8. kv_heads divides heads: query head h reads
        head h // (heads / kv_heads) of k and v. A batch of 1 serves every sequence of the other operands.
        Without the batch axis 3-D, of one head 2-D; axes in front of the last four are batches too.
    mask : array_like, optional
        Broadcasts to (batch, heads, queries, keys) in every layout, and is not copied for that. bool: True
        where a key is seen, as in torch and ONNX. A float is added to the scores; values of at most half the
        least number of its type exclude, as -inf does. Keys are counted from the first key of each sequence
        on: for paged keys the last axis covers the longest of `kv_lengths`, or more, up to the pages of the
        table; for packed ones the longest sequence. A last axis of fewer keys (but not 1, which broadcasts)
        excludes those it does not cover, as in ONNX.
    causal : bool, "lower_right" or "upper_left"
        True and "lower_right": the last query is at the last key, as with a cache of earlier keys
        (flash-attention; ``torch.nn.attention.bias.causal_lower_right``). "upper_left": the first query is at
        the first key, as in torch's ``is_causal=True`` and in ONNX's ``is_causal`` without a cache. For equal
        numbers of queries and keys both are the same. With `q_offset` pass True.
    scale : float, optional
        1 / sqrt(d) by default.
    window : (left, right), optional
        Each query sees the keys from `left` before its own to `right` behind, both included; None: all of
        that side. Positions of queries are as with `causal`.
    q_offset : int or array_like of integers, shape (batch,), optional
        Position of the first query of each sequence among its keys, for `causal`, `window` and
        `alibi_slopes`: query i is at key q_offset + i. By default the last query is at the last key. Pass the
        number of earlier keys (the length of ONNX's ``past_key``) when a step adds a different number of keys
        than queries. May be negative or beyond the last key.
    softcap : float, optional
        Scores become softcap · tanh(score / softcap); 0: no softcap.
    alibi_slopes : array_like, shape (heads,), optional
        slope · abs(key - position of the query) is subtracted; without `q_offset` the last query is
        at the last key.
    sinks : array_like, shape (heads,), optional
        A score of each head that takes part in the sum and has no value; lse counts it.
    q_lengths, kv_lengths : array_like of integers, shape (batch,), optional
        How many queries and keys of each sequence count, from the first on; the others are not read. Results
        of queries that don't count are 0, their lse is -inf.
    cu_seqlens_q, cu_seqlens_k : array_like of integers, shape (sequences + 1,), optional
        Sequences packed one after the other: q is (heads, rows, d), with layout "bshd" (rows, heads, d), and
        sequence i are the rows cu_seqlens_q[i] to cu_seqlens_q[i + 1]. Without cu_seqlens_k that of the
        queries serves keys that are packed too.
    block_table : array_like of integers, shape (batch, pages), optional
        Keys and values are stored in pages: k is (pages, kv_heads, page, d), with layout "bshd" (pages, page,
        kv_heads, d); key j of sequence i is in page block_table[i, j // page]. Needs `kv_lengths`.
    key_scales, value_scales : array_like, optional
        What a quantised key or value is multiplied by: a number, (kv_heads,), (batch, kv_heads), or one for
        each token in the shape of k without its last axis.
    layout : "bhsd" or "bshd"
        "bshd": (batch, sequence, heads, d), in all operands and the result.
    out : numpy.ndarray, optional
        Receives the result; exactly of its shape. May share memory with the operands.
    return_lse : bool
        Whether the logarithm of each row's sum of exponentials is returned too.
    return_scores : "product", "softcap", "mask" or "softmax", optional
        Returns the scores too, as they are after this step: scale · q·k and the key's scale; then softcap;
        then slopes, mask, `causal` and `window`, with -inf for what is excluded; then softmax, with 0 for it.
        Takes a second pass and memory for every query and key; the first result is the same.
    strategy : "auto", "blocks", "decode" or "unfused"
        By default each sequence takes the fastest strategy for its number of queries, see `explain`.
        "decode", for few queries, reads keys and values in place (blocks if their elements are not
        contiguous); "unfused" materialises all scores of some heads, for comparison.
    threads : int, optional
        As in `matmul`; the result has the same bits with any number.

    Returns
    -------
    numpy.ndarray of q's shape, the last axis value_dim long, of the (converted) dtype of q; or `out`
    lse : numpy.ndarray (batch, heads, queries) in every layout, float32 or float64; if `return_lse`
        -inf for a query that sees no key and has no sink, whose result is 0.
    scores : numpy.ndarray (batch, heads, queries, keys) in every layout, of lse's type; if `return_scores`
        For packed sequences (sequences, heads, longest queries, longest keys), for paged keys as many keys as
        the longest of `kv_lengths`. Outside of lengths -inf, after softmax 0.

    Raises
    ------
    AttentionAxes, AttentionDtype, AttentionBatch, HeadsMismatch, HeadSizeMismatch, KeysMismatch, MaskShape,
    MaskDtype, InvalidWindow, InvalidQueryOffset, InvalidLengths, InvalidOffsets, OffsetsNotIncreasing,
    OffsetsPastEnd, BlockTableShape, BlockOutsideCache, HeadVectorShape, AttentionScales, AttentionArguments,
    InvalidOperand, InvalidScalar, InvalidChoice, InvalidThreads, OutShape, OutDtype, OutReadOnly, OutNotArray
        Each before `out` changes.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> q, k = np.ones((1, 2, 3, 4), np.float32), np.ones((1, 1, 5, 4), np.float32)
    >>> v = np.arange(5, dtype=np.float32).reshape(1, 1, 5, 1)
    >>> tw.attention(q, k, v, causal=True)[0, 0, :, 0]
    array([1. , 1.5, 2. ], dtype=float32)

    Source: MEATTEN (ICS 2024), §4 and §5.
    """
    keywords = Keywords(
        *(mask, causal, scale, window, softcap, alibi_slopes, sinks),
        *(q_lengths, kv_lengths, cu_seqlens_q, cu_seqlens_k, block_table),
        *(key_scales, value_scales, layout, q_offset),
    )
    if return_scores is not None:
        options: dict[str, Any] = {"return_lse": return_lse, "strategy": strategy, "stage": return_scores}
        with limited(threads):
            return call.attention_with_scores(q, k, v, out, keywords, **options)
    if threads is None:
        return call.attention(q, k, v, out, keywords, return_lse=return_lse, strategy=strategy)
    with limited(threads):
        return call.attention(q, k, v, out, keywords, return_lse=return_lse, strategy=strategy)


@named_in_errors
@exchanging
def attention_partial(
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    *,
    threads: int | None = None,
    **keywords: Unpack[AttentionKeywords],
) -> AttentionState:
    """Attention to a part of the keys, in a form that `merge_attention` combines with other parts.

    For distributed attention, where each machine holds a part of the keys: merged, the states are
    those of all keys, up to rounding, in any order and grouping.

    Parameters
    ----------
    q, k, v : as in `attention`; k and v are those of the part.
    threads : as in `attention`.
    keywords : mask, causal, scale, window, q_offset, softcap, alibi_slopes, sinks, the lengths, block_table,
        the scales and layout, as in `attention`. Positions (causal, window, slopes) are those in the part:
        for a part that begins at key j, causal attention takes ``causal=True, q_offset=p - j`` with p the
        position of the first query among all keys. Pass sinks with one part only.

    Returns
    -------
    AttentionState : (out, row_max, row_sum), and the properties `lse` and `layout`
        The result of these keys alone, in `layout`, in float32 (float64 for float64 queries); then for each
        row its largest score and the sum of e^(score - row_max), (batch, heads, queries) in every layout, as
        the lse of `attention` is. A row that sees no key has 0, -inf and 0.

    Raises
    ------
    As `attention`.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> q, k, v = np.random.rand(1, 8, 1, 64), np.random.rand(1, 2, 100, 64), np.random.rand(1, 2, 100, 64)
    >>> halves = slice(0, 60), slice(60, 100)
    >>> parts = [tw.attention_partial(q, k[:, :, keys], v[:, :, keys]) for keys in halves]
    >>> np.allclose(tw.merge_attention(parts).out, tw.attention(q, k, v))
    True

    Source: MEATTEN (ICS 2024), §5.1 (the state of an online softmax).
    """
    check_keywords("attention_partial", keywords, (*Keywords._fields, "threads"))
    given = Keywords(**keywords)
    if threads is None:
        return _attention_partial(q, k, v, given)
    with limited(threads):
        return _attention_partial(q, k, v, given)


@named_in_errors
@exchanging
def merge_attention(
    states: Iterable[AttentionState | tuple[ArrayLike, ArrayLike, ArrayLike]],
    *,
    layout: AttentionLayoutName | None = None,
) -> AttentionState:
    """The state of all keys from those of their parts: sums weighted by e^row_max, in the order given.

    Associative and commutative up to rounding: states of merged states may be merged again. The same states
    in the same order give the same bits.

    Parameters
    ----------
    states : iterable of AttentionState, or of (out, row_max, row_sum)
        One for each part, all of the same queries: out in `layout`, row_max and row_sum (batch, heads,
        queries) in every layout.
    layout : "bhsd" or "bshd", optional
        The layout of the results. By default that of the first `AttentionState`; "bhsd" for plain tuples.

    Returns
    -------
    AttentionState : `out` is the result (``.astype(q.dtype)`` rounds it as `attention` does), `lse` the
        logarithm of each row's sum of exponentials.

    Raises
    ------
    NoStates : of nothing.
    StateShape : if they are of different queries.
    StateLayouts : if their results are in different layouts.
    InvalidChoice : for an invalid `layout`.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> one = (np.full((1, 4), 2.0), np.zeros(1), np.ones(1))
    >>> other = (np.full((1, 4), 5.0), np.zeros(1), np.full(1, 2.0))
    >>> tw.merge_attention([one, other]).out
    array([[4., 4., 4., 4.]])
    """
    return _merge_attention(states, layout)


@repeated
def attention_backward(
    dout: ArrayLike,
    q: ArrayLike,
    k: ArrayLike,
    v: ArrayLike,
    out: ArrayLike,
    lse: ArrayLike,
    *,
    threads: int | None = None,
    **keywords: Unpack[GradientKeywords],
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The gradients of `attention` with respect to q, k and v, fused as it is.

    Weights are computed again, block by block, from lse: extra memory grows with the operands, not with the
    square of the length. Sums are float32.

    Parameters
    ----------
    dout : array_like
        The gradient of the result, of its shape.
    q, k, v : array_like
        As `attention` had them, float32 or bfloat16.
    out, lse : array_like
        What ``attention(..., return_lse=True)`` returned for them: lse is (batch, heads, queries) in every
        layout.
    threads : int, optional
        As in `matmul`; the gradients have the same bits with any number.
    keywords : mask, causal, scale, window, q_offset, softcap, alibi_slopes, sinks, q_lengths, kv_lengths,
        cu_seqlens_q, cu_seqlens_k and layout, as `attention` had them. Sinks take part by way of lse; they,
        slopes and masks get no gradients. The layout is that of every operand but lse, and of the gradients.

    Returns
    -------
    dq, dk, dv : numpy.ndarray
        Of the shapes of q, k and v, of the type to which these are converted. Heads of keys that serve
        several heads of queries get the sum over these, as operands with a batch of 1 do over the sequences.
        Rows that belong to no sequence, and queries that see no key, have gradient 0.

    Raises
    ------
    AttentionGradientShape : if dout, out or lse is of another shape.
    UnsupportedDtype : for operands of another type.
    InvalidSize : for heads of no or of more than 1024 elements.
    The errors of `attention` for what it takes too.

    Examples
    --------
    >>> import numpy as np, tilewright as tw
    >>> q, k = np.ones((1, 1, 1, 2), np.float32), np.eye(2, dtype=np.float32).reshape(1, 1, 2, 2)
    >>> v = np.array([[[[0.0], [1.0]]]], np.float32)
    >>> out, lse = tw.attention(q, k, v, scale=1.0, return_lse=True)
    >>> dq, dk, dv = tw.attention_backward(np.ones_like(out), q, k, v, out, lse, scale=1.0)
    >>> dq.ravel(), dv.ravel()
    (array([-0.25,  0.25], dtype=float32), array([0.5, 0.5], dtype=float32))

    Source: Dao et al., FlashAttention, NeurIPS 2022, appendix B.2, with the blocks of MEATTEN (ICS 2024).
    """
    known = [name for name in Keywords._fields if name in GradientKeywords.__optional_keys__]
    check_keywords("attention_backward", keywords, (*known, "threads"))
    with limited(threads):
        return _attention_backward(dout, (q, k, v), out, lse, Keywords(**keywords))
