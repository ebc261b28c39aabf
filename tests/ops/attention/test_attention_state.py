"""Attention to parts of the keys, merged: the result of all keys, in every type, layout and grouping."""

from __future__ import annotations

import copy
import itertools
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support import Array
from tiers import each_pair

import tilewright as tw
from tilewright.errors import InvalidChoice, NoStates, StateLayouts, StateShape
from tilewright.ops.attention.state import AttentionState
from tilewright.typing import AttentionLayoutName

#: What two roundings may make of results of normal operands.
NEAR = {np.float32: 1e-6, np.float64: 1e-14, np.float16: 1e-3, ml_dtypes.bfloat16: 8e-3}

each_type = pytest.mark.parametrize("dtype", NEAR, ids=lambda kind: np.dtype(kind).name)


def operands(
    dtype: Any, keys: int = 100, queries: int = 2, layout: AttentionLayoutName = "bhsd"
) -> tuple[Array, Array, Array]:
    random = np.random.default_rng(keys)
    shapes = ((2, 6, queries, 16), (2, 3, keys, 16), (2, 3, keys, 12))
    q, k, v = (random.standard_normal(shape).astype(dtype) for shape in shapes)
    return (q, k, v) if layout == "bhsd" else (q.swapaxes(1, 2), k.swapaxes(1, 2), v.swapaxes(1, 2))


def parts(q: Array, k: Array, v: Array, cuts: tuple[int, ...], **keywords: Any) -> list[AttentionState]:
    """States of the keys between some cuts."""
    axis = -2 if keywords.get("layout", "bhsd") == "bhsd" else -3
    places = [slice(*pair) for pair in itertools.pairwise((0, *cuts, k.shape[axis]))]
    cut: list[Any] = [(Ellipsis, place, *(slice(None),) * (-axis - 1)) for place in places]
    return [tw.attention_partial(q, k[at], v[at], **keywords) for at in cut]


@each_type
@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
@pytest.mark.parametrize("queries", [2, 40])
@each_pair
def test_parts_make_the_whole(dtype: Any, layout: AttentionLayoutName, queries: int) -> None:
    """Also where a part is empty, and of as many queries as go in blocks."""
    q, k, v = operands(dtype, queries=queries, layout=layout)
    expected, lse = tw.attention(q, k, v, layout=layout, return_lse=True)
    for cuts in ((), (37,), (1, 64, 64, 99)):
        merged = tw.merge_attention(parts(q, k, v, cuts, layout=layout))
        assert merged.out.dtype == (np.float64 if dtype is np.float64 else np.float32)
        found, bound = merged.out.astype(np.float64), NEAR[dtype]
        np.testing.assert_allclose(found, expected.astype(np.float64), rtol=bound, atol=bound)
        np.testing.assert_allclose(merged.lse, lse, rtol=1e-5, atol=1e-5)
        assert merged.layout == layout


@pytest.mark.parametrize("axes", [2, 3, 4, 5])
def test_one_shape_of_rows_in_every_layout(axes: int) -> None:
    """(..., heads, queries): of states, their lse, the lse of attention, and what gradients take."""
    leading = (2, 3)[: max(axes - 3, 0)]
    shape = (*leading, 7, 4, 16) if axes > 2 else (7, 16)  # (..., queries, heads, d)
    rows = (*leading, 4, 7) if axes > 2 else (7,)
    q, k, v = (np.random.default_rng(seed).standard_normal(shape).astype(np.float32) for seed in range(3))
    out, lse = tw.attention(q, k, v, layout="bshd", return_lse=True)
    state = tw.attention_partial(q, k, v, layout="bshd")
    assert lse.shape == state.lse.shape == state.row_max.shape == state.row_sum.shape == rows
    np.testing.assert_allclose(state.lse, lse, rtol=1e-6)
    merged = tw.merge_attention(parts(q, k, v, (3,), layout="bshd") if axes > 2 else [state])
    np.testing.assert_allclose(merged.out, out, rtol=1e-5, atol=1e-6)
    gradients = tw.attention_backward(out, q, k, v, merged.out, merged.lse, layout="bshd")
    expected = tw.attention_backward(out, q, k, v, out, lse, layout="bshd")
    for found, near in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(found, near, rtol=1e-4, atol=1e-5)


def test_packed_rows_of_either_layout() -> None:
    q, k, v = (np.random.default_rng(seed).standard_normal((9, 3, 8)) for seed in range(3))
    given: dict[str, Any] = {"cu_seqlens_q": [0, 4, 9], "layout": "bshd"}
    state = tw.attention_partial(q, k, v, **given)
    assert state.lse.shape == (3, 9)
    np.testing.assert_allclose(state.lse, tw.attention(q, k, v, **given, return_lse=True)[1])


def test_states_keep_their_layout() -> None:
    """Square ones too, whose shapes do not tell it: replaced, copied, pickled, and as plain tuples."""
    q, k, v = operands(np.float64, queries=6, layout="bshd")
    states = parts(q, k, v, (30,), layout="bshd")
    expected = tw.attention(q, k, v, layout="bshd")
    for again in (
        states,
        [state._replace(row_max=state.row_max.copy()) for state in states],
        [copy.deepcopy(state) for state in states],
        [pickle.loads(pickle.dumps(state)) for state in states],
    ):
        np.testing.assert_allclose(tw.merge_attention(again).out, expected, rtol=1e-12)
    plain: list[Any] = [tuple(state) for state in states]
    np.testing.assert_allclose(tw.merge_attention(plain, layout="bshd").out, expected, rtol=1e-12)
    with pytest.raises(StateLayouts, match="state 1"):
        tw.merge_attention([states[0], plain[1]])
    with pytest.raises(StateLayouts, match="'bhsd'"):
        tw.merge_attention(states, layout="bhsd")
    with pytest.raises(InvalidChoice, match="layout"):
        tw.merge_attention(plain, layout="sbhd")  # type: ignore[arg-type]


def test_parts_are_not_rounded_to_the_type_of_queries() -> None:
    """The error of many parts of bf16 is that of its products and weights, not that of its results."""
    q, k, v = operands(ml_dtypes.bfloat16, keys=64)
    exact = tw.attention(*(array.astype(np.float64) for array in (q, k, v)))
    state = tw.attention_partial(q, k, v)
    rounded = state.out.astype(ml_dtypes.bfloat16).astype(np.float32)
    assert np.any(state.out != rounded)
    assert np.abs(state.out - exact).mean() < np.abs(rounded - exact).mean()
    assert np.array_equal(rounded, tw.attention(q, k, v).astype(np.float32))


def test_any_grouping_is_the_same_up_to_rounding() -> None:
    states, bound = parts(*operands(np.float64), (10, 20, 50)), NEAR[np.float64]
    at_once = tw.merge_attention(states)
    left = tw.merge_attention([tw.merge_attention(states[:2]), *states[2:]])
    right = tw.merge_attention([states[0], tw.merge_attention(states[1:])])
    backwards = tw.merge_attention(reversed(states))
    for other in (left, right, backwards):
        for found, expected in zip(other, at_once, strict=True):
            np.testing.assert_allclose(found, expected, rtol=bound, atol=bound)
    assert tw.merge_attention(states).out.tobytes() == at_once.out.tobytes()


def test_rows_that_see_nothing() -> None:
    """In one part, in all of them, and nothing of a NaN that no part sees."""
    q, k, v = operands(np.float32)
    k[:, :, 70], v[:, :, 70] = np.nan, np.nan
    mask = np.ones((2, 1, 2, 100), bool)
    mask[..., 70] = False
    mask[:, :, 1, :40] = False  # the second query sees nothing of the first part,
    mask[1, :, 0] = False  # and the first of the second sequence nothing at all
    states = [
        tw.attention_partial(q, k[:, :, keys], v[:, :, keys], mask=mask[..., keys])
        for keys in (slice(0, 40), slice(40, 100))
    ]
    assert np.all(states[0].row_max[:, :, 1] == -np.inf)
    assert not states[0].row_sum[:, :, 1].any()
    merged = tw.merge_attention(states)
    expected, lse = tw.attention(q, k, v, mask=mask, return_lse=True)
    np.testing.assert_allclose(merged.out, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(merged.lse, lse, rtol=1e-6)
    assert not merged.out[1, :, 0].any()
    assert np.all(merged.lse[1, :, 0] == -np.inf)


def test_a_sink_belongs_to_one_part() -> None:
    q, k, v = operands(np.float32)
    sinks = np.linspace(-1, 3, 6).astype(np.float32)
    states = [
        tw.attention_partial(q, k[:, :, :30], v[:, :, :30], sinks=sinks),
        tw.attention_partial(q, k[:, :, 30:], v[:, :, 30:]),
    ]
    expected = tw.attention(q, k, v, sinks=sinks)
    np.testing.assert_allclose(tw.merge_attention(states).out, expected, rtol=1e-6, atol=1e-6)


def test_threads_change_no_bit() -> None:
    q, k, v = operands(np.float32, keys=5000)
    found = [tw.attention_partial(q, k, v, threads=threads).out for threads in (1, 2)]
    assert found[0].tobytes() == found[1].tobytes()


def test_nothing_to_merge() -> None:
    with pytest.raises(NoStates):
        tw.merge_attention([])


def test_states_of_different_queries() -> None:
    q, k, v = operands(np.float32)
    state, other = tw.attention_partial(q, k, v), tw.attention_partial(q[:, :, :1], k, v)
    with pytest.raises(StateShape, match="out of state 1"):
        tw.merge_attention([state, other])
    with pytest.raises(StateShape, match="row_sum of state 0"):
        tw.merge_attention([state._replace(row_sum=state.row_sum[..., :1])])
