"""Attention and norms of arrays in chunks, and packed states, against whole arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tiers import each_pair, each_value

pytest.importorskip("dask.array")
pytest.importorskip("distributed")

import dask
import dask.array as da
import ml_dtypes

import tilewright as tw
import tilewright.dask as twd
from tilewright import errors
from tilewright.ops.attention.state import AttentionState


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    """Tasks run one after the other in this thread."""
    with dask.config.set(scheduler="sync"):
        yield


def draw(*shape: int, seed: int = 0) -> Any:
    """Numbers of float32."""
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"causal": True},
    "upper left": {"causal": "upper_left"},
    "window": {"window": (5, 2)},
    "causal window": {"causal": True, "window": (7, None)},
    "softcap": {"softcap": 2.0, "scale": 0.3},
    "sinks": {"sinks": draw(4)},
    "slopes": {"alibi_slopes": np.abs(draw(4)), "causal": True},
    "mask of truths": {"mask": np.random.default_rng(1).random((2, 1, 9, 37)) < 0.5},
    "mask of floats": {"mask": draw(9, 37)},
    "mask of keys": {"mask": draw(1, 37), "causal": True, "q_offset": 3},
    "before all keys": {"causal": True, "q_offset": -20},
    "behind all keys": {"window": (2, 2), "q_offset": 500},
    "sinks behind all keys": {"sinks": draw(4), "window": (2, 2), "q_offset": 500},
}


@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
@pytest.mark.parametrize("name", OPTIONS)
@each_value
def test_attention(name: str, layout: Any) -> None:
    q, k, v = draw(2, 4, 9, 8), draw(2, 2, 37, 8, seed=1), draw(2, 2, 37, 6, seed=2)
    chunks: list[Any] = [(1, 3, 4, 5), (1, 1, 5, 8), (2, 2, 9, 3)]
    if layout == "bshd":
        q, k, v = (array.swapaxes(1, 2) for array in (q, k, v))
        chunks = [(one[0], one[2], one[1], one[3]) for one in chunks]
    expected, expected_lse = tw.attention(q, k, v, layout=layout, return_lse=True, **OPTIONS[name])
    parts = [da.from_array(array, chunks=own) for array, own in zip((q, k, v), chunks, strict=True)]
    found, lse = twd.attention(*parts, layout=layout, return_lse=True, **OPTIONS[name])
    alone = twd.attention(*parts, layout=layout, **OPTIONS[name])
    assert (found.shape, lse.shape) == (expected.shape, expected_lse.shape)
    computed, computed_lse = dask.compute(found, lse)
    assert np.array_equal(computed, alone.compute())
    np.testing.assert_allclose(computed, expected, atol=2e-6)
    np.testing.assert_allclose(computed_lse, expected_lse, atol=1e-5)


@pytest.mark.parametrize("dtype", ["f8", "f2", ml_dtypes.bfloat16], ids=str)
def test_types_of_attention(dtype: Any) -> None:
    q, k, v = (draw(1, 2, rows, 8, seed=rows).astype(dtype) for rows in (5, 23, 23))
    found = twd.attention(*(da.from_array(array, chunks=(1, 1, 4, 8)) for array in (q, k, v)))
    expected = tw.attention(q, k, v)
    assert found.dtype == expected.dtype
    computed = found.compute()
    assert computed.dtype == expected.dtype
    unit = 1e-14 if dtype == "f8" else 1e-2
    np.testing.assert_allclose(computed.astype("f8"), expected.astype("f8"), atol=unit)


def test_chunks_that_nobody_sees_are_not_computed() -> None:
    q = da.zeros((1, 1, 64, 8), chunks=(1, 1, 8, 8), dtype="f4")
    counts = []
    for causal in (False, True):
        keys = twd.attention(q, q, q, causal=causal).dask.to_dict()
        counts.append(sum("partial" in str(key) for key in keys))
    assert counts == [64, 36]


def test_packed_states() -> None:
    q, k, v = draw(1, 2, 3, 8), draw(1, 2, 20, 8, seed=1), draw(1, 2, 20, 6, seed=2)
    for layout in ("bhsd", "bshd"):
        own = [array if layout == "bhsd" else array.swapaxes(1, 2) for array in (q, k, v)]
        state = tw.attention_partial(*own, layout=layout)
        packed = state.packed()
        assert packed.shape == (*state.out.shape[:-1], state.out.shape[-1] + 2)
        again = AttentionState.from_packed(packed, layout=layout)
        assert again.layout == layout
        for one, other in zip(state, again, strict=True):
            assert np.array_equal(one, other)
    parts = [tw.attention_partial(q, k[:, :, at : at + 5], v[:, :, at : at + 5]) for at in range(0, 20, 5)]
    stacked = np.stack([part.packed() for part in parts])
    merged = tw.merge_attention(parts)
    assert np.array_equal(AttentionState.merge_packed(stacked), merged.packed())
    nothing = AttentionState(
        np.zeros_like(merged.out), np.full_like(merged.row_max, -np.inf), merged.row_sum * 0
    )
    both = np.stack([nothing.packed(), merged.packed()], axis=2)
    assert np.array_equal(
        AttentionState.merge_packed(both, axis=(2,), keepdims=True)[:, :, 0], merged.packed()
    )


def test_a_reduction_of_dask_merges_packed_states() -> None:
    q, k = draw(1, 2, 3, 8), draw(1, 2, 24, 8, seed=1)
    parts = [tw.attention_partial(q, k[:, :, at : at + 4], k[:, :, at : at + 4]) for at in range(0, 24, 4)]
    states = da.from_array(np.stack([part.packed() for part in parts]), chunks=(1, -1, -1, -1, -1))
    merged = da.reduction(
        states, chunk=lambda x, axis, keepdims: x, combine=AttentionState.merge_packed,
        aggregate=AttentionState.merge_packed, axis=0, split_every=2, dtype="f4",
    )  # fmt: skip
    np.testing.assert_allclose(merged.compute()[..., :-2], tw.attention(q, k, k), atol=2e-6)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda: AttentionState.from_packed(np.ones(3)), errors.PackedState),
        (lambda: AttentionState.merge_packed(np.ones((2, 1))), errors.PackedState),
        (lambda: AttentionState.merge_packed(np.ones((2, 3)), axis=1), errors.AxisOutOfRange),
        (lambda: AttentionState.merge_packed(np.ones((0, 2, 3))), errors.NoStates),
    ],
)
def test_wrong_states(wrong: Callable[[], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        wrong()


# --- softmax and norms ----------------------------------------------------------------------------

NORMS: dict[str, Callable[..., Any]] = {
    "softmax": lambda module, x, axis: module.softmax(x, axis),
    "layer_norm": lambda module, x, axis: module.layer_norm(x, axis=axis),
    "rms_norm": lambda module, x, axis: module.rms_norm(x, axis=axis),
}


@pytest.mark.parametrize("axis", [-1, 0, (1, 2), (0, 2)], ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", ml_dtypes.bfloat16], ids=str)
@pytest.mark.parametrize("name", NORMS)
@each_pair
def test_norms(name: str, dtype: Any, axis: Any) -> None:
    x = (draw(6, 7, 10) * 3 + 5).astype(dtype)
    expected = NORMS[name](tw, x, axis)
    unit = {"f4": 2e-6, "f8": 1e-14}.get(dtype, 1e-2) * 4
    for chunks in ((4, 3, 4), (6, 7, 10), ((4, 0, 2), (7,), (3, 0, 7))):
        found = NORMS[name](twd, da.from_array(x, chunks=chunks), axis)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        computed = found.compute()
        assert computed.dtype == expected.dtype
        np.testing.assert_allclose(computed.astype("f8"), expected.astype("f8"), atol=unit, rtol=unit)


def test_weights_of_norms() -> None:
    x = draw(5, 6, 8) + 100
    weight, bias = draw(6, 8, seed=1), draw(6, 8, seed=2)
    chunked = da.from_array(x, chunks=(2, 4, 3))
    found = twd.layer_norm(chunked, weight, bias, axis=(1, 2)).compute()
    np.testing.assert_allclose(found, tw.layer_norm(x, weight, bias, axis=(1, 2)), atol=1e-4)
    found = twd.rms_norm(chunked, weight, axis=(1, 2), eps=0.5).compute()
    np.testing.assert_allclose(found, tw.rms_norm(x, weight, axis=(1, 2), eps=0.5), rtol=1e-5)


def test_softmax_of_infinite_numbers() -> None:
    x = draw(5, 12)
    x[0], x[1, 3], x[2, :5], x[3, 3] = -np.inf, np.nan, -np.inf, np.inf
    found = twd.softmax(da.from_array(x, chunks=(2, 4))).compute()
    np.testing.assert_allclose(found, tw.softmax(x), atol=1e-6)


WRONG: dict[str, tuple[Callable[[Any], Any], type[Exception]]] = {
    "axes": (lambda x: twd.attention(x[0], x, x), errors.AttentionAxes),
    "heads": (lambda x: twd.attention(x[:, :1], x, x), errors.HeadsMismatch),
    "sizes": (lambda x: twd.attention(x[..., :4], x, x), errors.HeadSizeMismatch),
    "values": (lambda x: twd.attention(x, x, x[:, :, :3]), errors.KeysMismatch),
    "batches": (
        lambda x: twd.attention(x, da.concatenate([x, x, x]), da.concatenate([x, x, x])),
        errors.AttentionBatch,
    ),
    "mask": (lambda x: twd.attention(x, x, x, mask=np.ones((5, 7), bool)), errors.MaskShape),
    "type of a mask": (lambda x: twd.attention(x, x, x, mask=np.ones((6, 6), int)), errors.MaskDtype),
    "window": (lambda x: twd.attention(x, x, x, window=3), errors.InvalidWindow),  # type: ignore[arg-type]
    "sinks": (lambda x: twd.attention(x, x, x, sinks=np.ones(3, "f4")), errors.HeadVectorShape),
    "offset": (lambda x: twd.attention(x, x, x, q_offset=1.5), errors.InvalidQueryOffset),
    "layout": (lambda x: twd.attention(x, x, x, layout="b"), errors.InvalidChoice),  # type: ignore[arg-type]
    "axis": (lambda x: twd.softmax(x, 4), errors.AxisOutOfRange),
    "weight": (lambda x: twd.layer_norm(x, np.ones(3, "f4")), errors.NormOperandShape),
    "eps": (lambda x: twd.rms_norm(x, axis=2, eps=-1), errors.NegativeEps),
    "text": (lambda x: twd.softmax(x.astype("S1")), errors.UnsupportedDtype),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_operands(case: str) -> None:
    call, error = WRONG[case]
    with pytest.raises(error):
        call(da.zeros((2, 2, 6, 8), chunks=(1, 2, 2, 4), dtype="f4"))
