"""`return_scores`: the scores after each stage against float64, and beside the other results of the call."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from attention_cases import bshd, packed_call, paged_call, quantised_call, random_call
from support import Array
from tiers import crossed

import tilewright as tw
from tilewright.errors import InvalidChoice, MaskDtype
from tilewright.typing import ScoreStageName

STAGES: tuple[ScoreStageName, ...] = ("product", "softcap", "mask", "softmax")
each_stage = pytest.mark.parametrize("stage", STAGES)


def normal(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def operands(dtype: Any = np.float32) -> tuple[Array, Array, Array]:
    return (
        normal(2, 4, 9, 16, dtype=dtype),
        normal(2, 2, 21, 16, dtype=dtype, seed=1),
        normal(2, 2, 21, 8, dtype=dtype, seed=2),
    )


def stages(q: Array, k: Array, softcap: float, bias: Array) -> dict[str, Array]:
    """The scores after each stage, in float64."""
    keys = np.repeat(k.astype(np.float64), 2, axis=1)
    product = q.astype(np.float64) @ keys.swapaxes(2, 3) * 0.25
    capped = softcap * np.tanh(product / softcap)
    masked = capped + bias
    largest = masked.max(axis=3, keepdims=True)
    weights = np.exp(masked - np.where(largest == -np.inf, 0, largest))
    total = weights.sum(axis=3, keepdims=True)
    softmax = weights / np.where(total == 0, 1, total)
    return dict(zip(STAGES, (product, capped, masked, softmax), strict=True))


@pytest.mark.parametrize(
    ("stage", "dtype"), crossed(STAGES, [np.float32, np.float64, np.float16, ml_dtypes.bfloat16], 2)
)
def test_stages(stage: ScoreStageName, dtype: Any) -> None:
    """Of every type; results beside scores keep their bits."""
    q, k, v = operands(dtype)
    mask = np.where(np.random.default_rng(3).random((2, 1, 9, 21)) < 0.7, 0.5, -np.inf)
    mask[0, :, 4] = -np.inf
    slopes = np.linspace(0, 0.3, 4)
    distance = np.arange(21) - np.arange(9)[:, np.newaxis] - 3
    bias = mask - slopes.reshape(4, 1, 1) * np.abs(distance) + np.where(distance <= 0, 0, -np.inf)
    given: dict[str, Any] = {
        "softcap": 1.5,
        "mask": mask.astype(np.float32),
        "alibi_slopes": slopes,
        "causal": True,
        "q_offset": 3,
    }
    out, lse, scores = tw.attention(q, k, v, **given, return_lse=True, return_scores=stage)
    alone, alone_lse = tw.attention(q, k, v, **given, return_lse=True)
    assert out.tobytes() == alone.tobytes()
    assert lse.tobytes() == alone_lse.tobytes()
    assert scores.dtype == lse.dtype
    near = 1e-12 if dtype is np.float64 else 1e-5
    np.testing.assert_allclose(scores, stages(q, k, 1.5, bias)[stage], rtol=near, atol=near)


def test_scores_make_the_results_of_random_calls() -> None:
    """The sum of exponentials after the masks is lse; weights times values are the result."""
    for maker in (random_call, quantised_call):
        for seed in range(5):
            call = maker(np.random.default_rng(seed), np.float32)
            given = {**call.keywords, "strategy": "unfused"}  # which compiles nothing
            out, lse, masked = tw.attention(
                call.q, call.k, call.v, **given, return_lse=True, return_scores="mask"
            )
            with np.errstate(divide="ignore"):
                sums = np.exp(masked.astype(np.float64)).sum(axis=3)
                if "sinks" in given:
                    sums += np.exp(np.asarray(given["sinks"], np.float64))[:, np.newaxis]
                rows = np.arange(call.q.shape[2]) < np.reshape(given.get("q_lengths", 1 << 30), (-1, 1, 1))
                expected = np.where(rows, np.log(sums), -np.inf)
            np.testing.assert_allclose(lse, expected, rtol=1e-4, atol=1e-5)
            same, weights = tw.attention(call.q, call.k, call.v, **given, return_scores="softmax")
            values = call.v.astype(np.float64)
            if "value_scales" in given:
                values = values * given["value_scales"][..., np.newaxis]
            group = call.q.shape[1] // call.k.shape[1]
            expected = weights @ np.repeat(values, group, axis=1)
            assert np.array_equal(same, out)
            np.testing.assert_allclose(out, expected, rtol=1e-3, atol=1e-4 * max(1, np.abs(values).max()))


@each_stage
def test_layouts_axes_and_copies(stage: ScoreStageName) -> None:
    q, k, v = operands()
    out, scores = tw.attention(q, k, v, causal=True, return_scores=stage)
    turned = tw.attention(bshd(q), bshd(k), bshd(v), causal=True, return_scores=stage, layout="bshd")
    assert np.array_equal(turned[0], bshd(out))
    assert np.array_equal(turned[1], scores)
    assert np.array_equal(tw.attention(q[0], k[0], v[0], causal=True, return_scores=stage)[1], scores[0])
    one = tw.attention(q[0, 1], k[0, 0], v[0, 0], causal=True, return_scores=stage)[1]
    assert np.array_equal(one, scores[0, 1])
    same = np.concatenate([q, q], axis=3)[..., :16]  # out shares memory with q
    tw.attention(same, k, np.concatenate([v, v], axis=3), causal=True, out=same)
    again = q.copy()
    written, found = tw.attention(
        again, k, np.concatenate([v, v], axis=3), causal=True, out=again, return_scores=stage
    )
    assert written is again
    assert np.array_equal(again, same)
    assert np.array_equal(found, scores)


@each_stage
def test_packed_and_paged_sequences(stage: ScoreStageName) -> None:
    """The shape is that of a mask: of the longest sequence, -inf or 0 where there is no query or key."""
    nothing = 0 if stage == "softmax" else -np.inf
    q, k, v = operands()
    offsets, offsets_k = [0, 4, 4, 9], [0, 10, 15, 21]
    _, scores = tw.attention(
        q[0], k[0], v[0], cu_seqlens_q=offsets, cu_seqlens_k=offsets_k, causal=True, return_scores=stage
    )
    assert scores.shape == (3, 4, 5, 10)
    for item in range(3):
        rows, keys = slice(*offsets[item : item + 2]), slice(*offsets_k[item : item + 2])
        _, part = tw.attention(q[0, :, rows], k[0, :, keys], v[0, :, keys], causal=True, return_scores=stage)
        np.testing.assert_allclose(scores[item, :, : part.shape[1], : part.shape[2]], part, rtol=1e-6)
        assert (scores[item, :, part.shape[1] :] == nothing).all()
        assert (scores[item, :, :, part.shape[2] :] == nothing).all()
    for seed in range(4):
        for call in (packed_call(np.random.default_rng(seed)), paged_call(np.random.default_rng(seed))):
            given = {**call.keywords, "strategy": "unfused"}
            out, found = tw.attention(call.q, call.k, call.v, **given, return_scores=stage)
            assert np.array_equal(out, tw.attention(call.q, call.k, call.v, **given))
            assert not np.isnan(found).any()


def test_masks_of_fewer_keys() -> None:
    """Scores of the keys that they do not cover are there until the mask is applied."""
    q, k, v = operands()
    for mask in (np.ones((9, 12), bool), np.zeros((9, 12), np.float32)):
        for stage in STAGES:
            _, scores = tw.attention(q, k, v, mask=mask, return_scores=stage)
            _, expected = tw.attention(q, k, v, mask=np.arange(21) < 12, return_scores=stage)
            assert np.array_equal(scores, expected)
            assert (scores[..., 12:] == {"mask": -np.inf, "softmax": 0}.get(stage, scores[..., 12:])).all()
    with pytest.raises(MaskDtype):
        tw.attention(q, k, v, mask=np.ones((9, 12), int), return_scores="mask")


@pytest.mark.parametrize("stage", ["none", 0, True], ids=str)
def test_stages_that_there_are_not(stage: Any) -> None:
    with pytest.raises(InvalidChoice, match="return_scores"):
        tw.attention(*operands(), return_scores=stage)


def test_explained() -> None:
    assert "all scores" in str(tw.explain(tw.attention, *operands(), return_scores="mask"))
