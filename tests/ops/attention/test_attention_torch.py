"""`tilewright.attention` beside PyTorch: the same keywords mean the same, where both have them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from attention_cases import normal
from support import Array

import tilewright as tw

torch = pytest.importorskip("torch")

SHAPES = [(2, 4, 4, 20, 20), (1, 6, 2, 7, 50), (1, 6, 1, 50, 7), (2, 2, 2, 1, 300), (1, 4, 2, 130, 260)]

each_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


def operands(shape: tuple[int, ...], d: int = 16, value_dim: int = 24) -> tuple[Array, Array, Array]:
    batch, heads, kv_heads, queries, keys = shape
    rng = np.random.default_rng(3)
    return (
        normal(rng, batch, heads, queries, d),
        normal(rng, batch, kv_heads, keys, d),
        normal(rng, batch, kv_heads, keys, value_dim),
    )


def reference(q: Array, k: Array, v: Array, **keywords: Any) -> Array:
    """torch's attention in float64."""
    wide = [torch.from_numpy(array.astype(np.float64)) for array in (q, k, v)]
    mask = keywords.pop("attn_mask", None)
    if mask is not None:
        mask = torch.from_numpy(mask if mask.dtype == np.bool_ else mask.astype(np.float64))
    found: Array = torch.nn.functional.scaled_dot_product_attention(
        *wide, attn_mask=mask, enable_gqa=True, **keywords
    ).numpy()
    return found


def assert_near(found: Array, expected: Array) -> None:
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=0, atol=2e-6)


@each_shape
def test_no_keywords(shape: tuple[int, ...]) -> None:
    q, k, v = operands(shape)
    assert_near(tw.attention(q, k, v), reference(q, k, v))
    assert_near(tw.attention(q, k, v, scale=0.7), reference(q, k, v, scale=0.7))


@each_shape
def test_is_causal_is_upper_left(shape: tuple[int, ...]) -> None:
    q, k, v = operands(shape)
    assert_near(tw.attention(q, k, v, causal="upper_left"), reference(q, k, v, is_causal=True))


@each_shape
def test_causal_is_torchs_lower_right(shape: tuple[int, ...]) -> None:
    """Where a query sees no key this package has 0, torch by its version 0 or NaN."""
    q, k, v = operands(shape)
    queries, keys = shape[3:]
    mask = np.tril(np.ones((queries, keys), np.bool_), keys - queries)
    expected = np.nan_to_num(reference(q, k, v, attn_mask=mask))
    for causal in (True, "lower_right"):
        assert_near(tw.attention(q, k, v, causal=causal), expected)
    if queries <= keys:
        from torch.nn.attention.bias import causal_lower_right

        wide = [np.repeat(array, shape[1] // array.shape[1], 1).astype(np.float64) for array in (q, k, v)]
        bias = causal_lower_right(queries, keys)
        same = torch.nn.functional.scaled_dot_product_attention(*map(torch.from_numpy, wide), attn_mask=bias)
        np.testing.assert_allclose(same.numpy(), expected, rtol=0, atol=1e-12)


@each_shape
@pytest.mark.parametrize("logical", [True, False])
def test_masks(shape: tuple[int, ...], logical: bool) -> None:
    q, k, v = operands(shape)
    batch, heads, _, queries, keys = shape
    rng = np.random.default_rng(4)
    for size in [(queries, keys), (batch, 1, queries, keys), (batch, heads, 1, keys), (1, 1, 1, keys)]:
        mask = rng.random(size) < 0.7 if logical else normal(rng, *size)
        if logical:
            mask[..., 0] = True  # where nothing is seen torch has NaN in some versions
        assert_near(tw.attention(q, k, v, mask=mask), reference(q, k, v, attn_mask=mask))


def test_a_mask_of_the_least_number() -> None:
    """As models pad: the number is added where a key is not seen."""
    q, k, v = operands((2, 4, 4, 9, 30))
    mask = np.zeros((2, 1, 1, 30), np.float32)
    mask[0, ..., 20:] = np.finfo(np.float32).min
    assert_near(tw.attention(q, k, v, mask=mask), reference(q, k, v, attn_mask=mask))


def test_varlen_is_attention_of_each_sequence() -> None:
    q, k, v = (array[0] for array in operands((1, 4, 2, 40, 60)))
    rows, columns = [0, 5, 5, 30, 40], [0, 12, 20, 45, 60]
    for causal in (False, True):
        found = tw.attention(q, k, v, cu_seqlens_q=rows, cu_seqlens_k=columns, causal=causal)
        for item in range(4):
            here, there = slice(rows[item], rows[item + 1]), slice(columns[item], columns[item + 1])
            part = q[None, :, here], k[None, :, there], v[None, :, there]
            queries, keys = part[0].shape[2], part[1].shape[2]
            mask = np.tril(np.ones((queries, keys), np.bool_), keys - queries if causal else keys)
            if queries:
                assert_near(found[:, here], np.nan_to_num(reference(*part, attn_mask=mask))[0])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_types_are_no_less_accurate(dtype: str) -> None:
    import ml_dtypes

    kind: Any = np.float16 if dtype == "float16" else ml_dtypes.bfloat16
    q, k, v = (array.astype(kind) for array in operands((1, 4, 4, 100, 300), 64, 64))
    expected = reference(*(array.astype(np.float32) for array in (q, k, v)))
    narrow = [torch.from_numpy(array.astype(np.float32)).to(getattr(torch, dtype)) for array in (q, k, v)]
    theirs = torch.nn.functional.scaled_dot_product_attention(*narrow).to(torch.float64).numpy()
    error = abs(tw.attention(q, k, v).astype(np.float64) - expected)
    assert error.max() <= 1.5 * abs(theirs - expected).max()


@each_shape
def test_lse_and_softcap_as_flex_attention_defines_them(shape: tuple[int, ...]) -> None:
    q, k, v = operands(shape)
    group = shape[1] // shape[2]
    wide = (array.astype(np.float64) for array in (q, np.repeat(k, group, 1), np.repeat(v, group, 1)))
    a, b, c = map(torch.from_numpy, wide)
    scores = a @ b.mT / math.sqrt(16)
    for cap in (None, 1.5):
        capped = scores if cap is None else cap * torch.tanh(scores / cap)
        out, lse = tw.attention(q, k, v, softcap=cap, return_lse=True)
        assert_near(out, (torch.softmax(capped, -1) @ c).numpy())
        np.testing.assert_allclose(lse, torch.logsumexp(capped, -1).numpy(), rtol=1e-5, atol=1e-5)


def test_sinks_are_a_column_that_is_dropped() -> None:
    """As in gpt-oss: softmax over the scores and the sink, whose weight is left out."""
    q, k, v = operands((2, 4, 4, 9, 30))
    sinks = np.array([-1.0, 0.0, 1.0, 3.0], np.float32)
    a, b, c = (torch.from_numpy(array.astype(np.float64)) for array in (q, k, v))
    column = torch.from_numpy(sinks).to(torch.float64).reshape(1, 4, 1, 1).expand(2, 4, 9, 1)
    weights = torch.softmax(torch.cat([a @ b.mT / 4, column], -1), -1)[..., :-1]
    assert_near(tw.attention(q, k, v, sinks=sinks), (weights @ c).numpy())


def test_alibi_of_causal_attention() -> None:
    """As in BLOOM and MPT: the slope times the key's place; softmax does not see a shift of each row."""
    q, k, v = operands((1, 4, 4, 12, 30))
    slopes = np.array([2.0 ** -(2 * head + 2) for head in range(4)], np.float32)
    queries, keys = 12, 30
    mask = np.tril(np.ones((queries, keys), np.bool_), keys - queries)
    bias = np.where(mask, slopes[:, None, None] * np.arange(keys), -np.inf)[None]
    found = tw.attention(q, k, v, causal=True, alibi_slopes=slopes)
    assert_near(found, reference(q, k, v, attn_mask=bias))
