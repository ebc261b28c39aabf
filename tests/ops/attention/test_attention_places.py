"""Where queries stand among the keys: q_offset in every function and schedule, and masks of fewer keys."""

from __future__ import annotations

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support import Array
from tiers import crossed

import tilewright as tw
from tilewright.ops.attention.backward_problem import reference
from tilewright.typing import AttentionStrategyName

STRATEGIES = ("blocks", "decode", "unfused")
OFFSETS: tuple[Any, ...] = (0, 3, 23, 60, -4, -50, 2**60, -(2**60), [0, 9], np.array([40, -7], np.int32))

each_strategy = pytest.mark.parametrize("strategy", STRATEGIES)
each_offset = pytest.mark.parametrize("offset", OFFSETS, ids=str)


def normal(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def operands(queries: int = 9, keys: int = 37, dtype: Any = np.float32) -> tuple[Array, Array, Array]:
    return (
        normal(2, 4, queries, 16, dtype=dtype),
        normal(2, 2, keys, 16, dtype=dtype, seed=1),
        normal(2, 2, keys, 8, dtype=dtype, seed=2),
    )


def distances(offset: Any, queries: int, keys: int) -> Array:
    """key - place of the query, (batch, 1, queries, keys)."""
    first = np.broadcast_to(np.asarray(offset, np.int64), 2).reshape(2, 1, 1, 1)
    return np.arange(keys) - (np.arange(queries)[:, np.newaxis] + first)


@pytest.mark.parametrize(
    ("strategy", "offset"), crossed(STRATEGIES, ([offset] for offset in OFFSETS), 2), ids=str
)
def test_causal_and_windows(strategy: AttentionStrategyName, offset: Any) -> None:
    """The same as a mask of what is seen, in every schedule and type."""
    for dtype, near in ((np.float32, 1e-6), (ml_dtypes.bfloat16, 2e-2)):
        q, k, v = operands(dtype=dtype)
        distance = distances(offset, 9, 37)
        for given, seen in (
            ({"causal": True}, distance <= 0),
            ({"window": (5, 2)}, (distance >= -5) & (distance <= 2)),
            ({"causal": True, "window": (7, None)}, (distance >= -7) & (distance <= 0)),
        ):
            keywords: dict[str, Any] = {**given, "q_offset": offset, "strategy": strategy}
            out, lse = tw.attention(q, k, v, **keywords, return_lse=True)
            expected, expected_lse = tw.attention(q, k, v, mask=seen, return_lse=True)
            found = (out.astype(np.float64), expected.astype(np.float64))
            np.testing.assert_allclose(*found, rtol=near, atol=near)
            np.testing.assert_allclose(lse, expected_lse, rtol=near, atol=near)


@each_strategy
@pytest.mark.parametrize("offset", [0, 3, -4, 60, [0, 9]], ids=str)
def test_slopes(strategy: AttentionStrategyName, offset: Any) -> None:
    q, k, v = operands()
    slopes = np.array([0.5, 0.25, 0.1, 0.0], np.float32)
    bias = -slopes.reshape(4, 1, 1) * np.abs(distances(offset, 9, 37)).astype(np.float32)
    out = tw.attention(q, k, v, alibi_slopes=slopes, q_offset=offset, strategy=strategy)
    np.testing.assert_allclose(out, tw.attention(q, k, v, mask=bias), rtol=1e-5, atol=1e-5)


def test_defaults_are_the_last_query_at_the_last_key() -> None:
    q, k, v = operands()
    slopes = np.linspace(0, 1, 4)
    for given in ({"causal": True}, {"window": (3, 3)}, {"alibi_slopes": slopes}):
        keywords: dict[str, Any] = given
        expected = tw.attention(q, k, v, **keywords)
        assert np.array_equal(tw.attention(q, k, v, **keywords, q_offset=37 - 9), expected)
    first = tw.attention(q, k, v, causal="upper_left")
    assert np.array_equal(tw.attention(q, k, v, causal=True, q_offset=0), first)


def test_a_cache_with_fewer_new_keys_than_queries() -> None:
    """ONNX: 12 earlier keys, 5 new ones and 9 queries, the first at key 12."""
    q, k, v = operands(9, 17)
    seen = np.arange(17) <= 12 + np.arange(9)[:, np.newaxis]
    out = tw.attention(q, k, v, causal=True, q_offset=12)
    np.testing.assert_allclose(out, tw.attention(q, k, v, mask=seen), rtol=1e-6, atol=1e-6)


def test_repeated_calls_of_growing_offsets() -> None:
    """Offsets are a part of what a prepared call is found by."""
    q, k, v = operands(1, 64)
    for _ in range(2):
        for offset in range(0, 64, 7):
            out = tw.attention(q, k, v, causal=True, q_offset=offset)
            expected = tw.attention(q, k[:, :, : offset + 1], v[:, :, : offset + 1])
            np.testing.assert_allclose(out, expected, rtol=1e-6, atol=1e-6)


def test_lengths_and_packed_sequences() -> None:
    q, k, v = operands()
    out = tw.attention(q, k, v, causal=True, q_offset=[4, 11], q_lengths=[9, 5], kv_lengths=[30, 12])
    for item, (offset, queries, keys) in enumerate(((4, 9, 30), (11, 5, 12))):
        part = (slice(item, item + 1), slice(None))
        expected = tw.attention(
            q[(*part, slice(queries))],
            k[(*part, slice(keys))],
            v[(*part, slice(keys))],
            causal=True,
            q_offset=offset,
        )
        np.testing.assert_allclose(out[(*part, slice(queries))], expected, rtol=1e-6, atol=1e-6)
        assert not out[item, :, queries:].any()
    packed = tw.attention(
        q[0], k[0], v[0], causal=True, q_offset=[3, 0], cu_seqlens_q=[0, 4, 9], cu_seqlens_k=[0, 20, 37]
    )
    for rows, keys_of, offset in ((slice(4), slice(20), 3), (slice(4, 9), slice(20, 37), 0)):
        expected = tw.attention(
            q[0, :, rows], k[0, :, keys_of], v[0, :, keys_of], causal=True, q_offset=offset
        )
        np.testing.assert_allclose(packed[:, rows], expected, rtol=1e-6, atol=1e-6)


def test_parts_of_causal_attention() -> None:
    """Each part numbers its keys from 0 on: places are counted from its first key."""
    q, k, v = operands()
    slopes = np.linspace(0, 0.3, 4)
    states = [
        tw.attention_partial(
            *(q, k[:, :, first:last], v[:, :, first:last]),
            causal=True,
            alibi_slopes=slopes,
            q_offset=28 - first,
        )
        for first, last in ((0, 10), (10, 30), (30, 37))
    ]
    expected = tw.attention(q, k, v, causal=True, alibi_slopes=slopes)
    np.testing.assert_allclose(tw.merge_attention(states).out, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("offset", "dtype"),
    crossed(([offset] for offset in OFFSETS), [np.float32, ml_dtypes.bfloat16], 2),
    ids=str,
)
def test_gradients(offset: Any, dtype: Any) -> None:
    q, k, v = operands(dtype=dtype)
    dout = normal(2, 4, 9, 8, dtype=dtype, seed=3)
    distance = distances(offset, 9, 37)
    slopes = np.array([0.0, 0.1, 0.2, 0.3]) if np.abs(distance).max() < 1000 else np.zeros(4)
    bias = np.where(distance <= 0, -slopes.reshape(4, 1, 1) * np.abs(distance), -np.inf)
    expected = reference(q, k, v, dout, 0.25, bias=bias)
    given = {"causal": True, "q_offset": offset, "alibi_slopes": slopes.astype(np.float32)}
    out, lse = tw.attention(q, k, v, **given, return_lse=True)
    for _ in range(2):  # checked, then prepared
        found = tw.attention_backward(dout, q, k, v, out, lse, **given)
        near = 1e-5 if dtype is np.float32 else 5e-2
        for gradient, exact in zip(found, expected[2:], strict=True):
            np.testing.assert_allclose(gradient.astype(np.float64), exact, rtol=near, atol=near)


# --- masks of fewer keys ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "columns", "keywords"),
    crossed(
        STRATEGIES,
        product(
            [0, 2, 20, 36], [{}, {"causal": True}, {"window": (30, 2)}, {"alibi_slopes": 0.2, "causal": True}]
        ),
        2,
    ),
    ids=str,
)
def test_masks_of_fewer_keys(strategy: AttentionStrategyName, columns: int, keywords: dict[str, Any]) -> None:
    """The keys behind them are excluded and not read; places are those among all keys."""
    q, k, v = operands()
    mask = np.random.default_rng(5).random((2, 1, 9, columns)) < 0.7
    whole = np.zeros((2, 1, 9, 37), bool)
    whole[..., :columns] = mask
    bias = np.where(whole, 0.5, -np.inf).astype(np.float32)
    expected, expected_lse = tw.attention(q, k, v, mask=whole, **keywords, return_lse=True)
    k[:, :, columns:], v[:, :, columns:] = np.nan, np.nan
    masks = ((mask, 0.0), (bias[..., :columns], 0.5))
    for short, shift in masks[:1] if keywords else masks:
        out, lse = tw.attention(q, k, v, mask=short, **keywords, strategy=strategy, return_lse=True)
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(lse - shift, expected_lse, rtol=1e-5, atol=1e-5)


def test_a_mask_of_one_column_broadcasts() -> None:
    q, k, v = operands()
    assert np.array_equal(tw.attention(q, k, v, mask=np.ones((9, 1), bool)), tw.attention(q, k, v))


def test_masks_of_fewer_keys_than_lengths() -> None:
    q, k, v = operands()
    mask = np.ones((9, 20), bool)
    expected = tw.attention(q, k, v, kv_lengths=[11, 20])
    assert np.array_equal(tw.attention(q, k, v, mask=mask, kv_lengths=[11, 33]), expected)


def test_gradients_of_keys_that_a_mask_leaves_out_are_zero() -> None:
    q, k, v = operands()
    mask = np.ones((9, 20), bool)
    out, lse = tw.attention(q, k, v, mask=mask, causal=True, return_lse=True)
    expected = tw.attention_backward(out, q, k, v, out, lse, mask=np.arange(37) < 20, causal=True)
    for _ in range(3):
        found = tw.attention_backward(out, q, k, v, out, lse, mask=mask, causal=True)
        for gradient, near in zip(found, expected, strict=True):
            np.testing.assert_allclose(gradient, near, rtol=1e-5, atol=1e-6)
        assert not found[1][:, :, 20:].any()
        assert not found[2][:, :, 20:].any()


@each_strategy
@pytest.mark.parametrize("columns", [9, 17, 18, 24])
def test_masks_of_paged_keys(strategy: AttentionStrategyName, columns: int) -> None:
    """The last axis counts keys of a sequence: the longest, up to all of the table, or fewer."""
    q, _, _ = operands(3)
    table, lengths = np.array([[2, 0, 1], [0, 1, 2]]), [17, 5]
    mask = np.random.default_rng(1).random((2, 1, 3, columns)) < 0.7
    caches = [normal(3, 2, 8, size, seed=7) for size in (16, 8)]
    out = tw.attention(q, *caches, mask=mask, block_table=table, kv_lengths=lengths, strategy=strategy)
    rows = [cache[table].swapaxes(1, 2).reshape(2, 2, 24, -1) for cache in caches]
    whole = np.zeros((2, 1, 3, 24), bool)
    whole[..., :columns] = mask
    expected = tw.attention(q, *rows, mask=whole, kv_lengths=lengths)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)
