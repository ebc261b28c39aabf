"""`tilewright.attention_backward` against finite differences of the oracle, and against torch."""

from __future__ import annotations

import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from attention_reference import attention_reference
from support import Array

import tilewright as tw
from tilewright.calls.repeated import replay
from tilewright.errors import (
    AttentionDtype,
    AttentionGradientShape,
    HeadsMismatch,
    InvalidSize,
    UnsupportedDtype,
)
from tilewright.ops.attention import backward_call as backward_front

HEADS, KV_HEADS, QUERIES, KEYS, HEAD, VALUE = 4, 2, 7, 9, 5, 3


def operands(
    seed: int = 0, batch: int = 2, dtype: Any = np.float64, sizes: tuple[int, int] = (QUERIES, KEYS)
) -> list[Array]:
    """q, k and v, standard normal."""
    random = np.random.default_rng(seed)
    shapes = ((HEADS, sizes[0], HEAD), (KV_HEADS, sizes[1], HEAD), (KV_HEADS, sizes[1], VALUE))
    return [random.standard_normal((batch, *shape)).astype(dtype) for shape in shapes]


def gradients(arrays: list[Array], dout: Array, **keywords: Any) -> tuple[Array, Array, Array]:
    """Forward and backward."""
    q, k, v = arrays
    out, lse = tw.attention(q, k, v, return_lse=True, **keywords)
    return tw.attention_backward(dout, q, k, v, out, lse, **keywords)


RANDOM = np.random.default_rng(7)
SEEN = RANDOM.random((2, 1, QUERIES, KEYS)) > 0.3
SEEN[:, :, 2] = False
FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "scale": {"scale": 0.9},
    "lower right": {"causal": True},
    "upper left": {"causal": "upper_left"},
    "window": {"window": (2, 1)},
    "causal window": {"causal": True, "window": (3, None)},
    "truths": {"mask": SEEN},
    "numbers": {"mask": np.where(SEEN[0, 0], RANDOM.standard_normal((QUERIES, KEYS)), -np.inf)},
    "softcap": {"softcap": 1.5, "scale": 1.0},
    "slopes": {"alibi_slopes": 2.0 ** -np.arange(1, HEADS + 1)},
    "sinks": {"sinks": RANDOM.standard_normal(HEADS)},
    "lengths": {"q_lengths": [QUERIES, 3], "kv_lengths": [4, KEYS], "causal": True},
    "everything": {
        "mask": SEEN,
        "causal": True,
        "softcap": 2.0,
        "alibi_slopes": 2.0 ** -np.arange(1, HEADS + 1),
        "kv_lengths": [KEYS, 6],
    },
}


@pytest.mark.parametrize("keywords", FORMS.values(), ids=FORMS)
def test_gradients_are_the_slopes_of_the_result(keywords: dict[str, Any]) -> None:
    """Central differences in float64 along random directions of each operand."""
    arrays = operands()
    random = np.random.default_rng(1)
    dout = random.standard_normal((2, HEADS, QUERIES, VALUE))
    mask = keywords.get("mask")
    whole = {} if mask is None else {"mask": np.broadcast_to(mask, (2, HEADS, QUERIES, KEYS))}

    def total(given: list[Array]) -> float:
        return float((dout * attention_reference(*given, **{**keywords, **whole})[0]).sum())

    found = gradients([array.astype(np.float32) for array in arrays], dout.astype(np.float32), **keywords)
    for place, gradient in enumerate(found):
        assert gradient.shape == arrays[place].shape
        for _ in range(2):
            step = 1e-5 * random.standard_normal(gradient.shape)
            ends = []
            for sign in (1, -1):
                moved = list(arrays)
                moved[place] = moved[place] + sign * step
                ends.append(total(moved))
            slope = (ends[0] - ends[1]) / 2e-5
            assert float((gradient * step).sum()) / 1e-5 == pytest.approx(slope, rel=2e-5, abs=2e-5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("form", ["full", "causal", "mask", "grouped"])
def test_gradients_of_torch(form: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    kind = np.float32 if dtype == "float32" else ml_dtypes.bfloat16
    random = np.random.default_rng(2)
    shapes = [(2, 4, 150, 64), (2, 4, 170, 64), (2, 4, 170, 48), (2, 4, 150, 48)]
    if form == "grouped":
        shapes[1:3] = (2, 2, 170, 64), (2, 2, 170, 48)
    q, k, v, dout = (random.standard_normal(shape).astype(kind) for shape in shapes)
    seen = np.ones((150, 170), np.bool_)
    keywords: dict[str, Any] = {}
    if form == "causal":
        seen, keywords = np.tri(150, 170, 0, np.bool_), {"causal": "upper_left"}
    elif form == "mask":
        seen = random.random((150, 170)) > 0.4
        keywords = {"mask": seen}
    tensors = [torch.from_numpy(array.astype(np.float64)).requires_grad_() for array in (q, k, v)]
    keys, values = (tensor.repeat_interleave(4 // tensor.shape[1], 1) for tensor in tensors[1:])
    result = torch.nn.functional.scaled_dot_product_attention(
        tensors[0], keys, values, attn_mask=torch.from_numpy(seen)
    )
    result.backward(torch.from_numpy(dout.astype(np.float64)))
    for gradient, tensor in zip(gradients([q, k, v], dout, **keywords), tensors, strict=True):
        expected = tensor.grad.numpy()
        assert gradient.dtype == kind
        error = np.abs(gradient.astype(np.float64) - expected).max() / np.abs(expected).max()
        assert error < (2e-6 if dtype == "float32" else 0.01)


# --- other arrangements of the same ---------------------------------------------------------------------


def test_packed_sequences_are_those_alone() -> None:
    lengths, keys = (7, 0, 12, 5), (6, 4, 12, 0)
    parts = [
        operands(seed, 1, np.float32, sizes) for seed, sizes in enumerate(zip(lengths, keys, strict=True))
    ]
    random = np.random.default_rng(3)
    douts = [random.standard_normal((1, HEADS, n, VALUE)).astype(np.float32) for n in lengths]
    states = [tw.attention(*part, causal=True, return_lse=True) for part in parts]
    given = [(dout, *part, *state) for dout, part, state in zip(douts, parts, states, strict=True)]
    alone = [tw.attention_backward(*arrays, causal=True) for arrays in given]
    packed = [np.concatenate(arrays, axis=2)[0] for arrays in zip(*given, strict=True)]
    offsets: dict[str, Any] = {
        f"cu_seqlens_{name}": np.cumsum([0, *counts]) for name, counts in (("q", lengths), ("k", keys))
    }
    found = tw.attention_backward(*packed, causal=True, **offsets)
    for gradient, single in zip(found, zip(*alone, strict=True), strict=True):
        assert np.array_equal(gradient, np.concatenate(single, axis=2)[0])


def test_the_other_layout() -> None:
    arrays = operands(dtype=np.float32)
    dout = np.random.default_rng(3).standard_normal((2, HEADS, QUERIES, VALUE)).astype(np.float32)
    q, k, v = arrays
    out, lse = tw.attention(q, k, v, causal=True, return_lse=True)
    expected = tw.attention_backward(dout, q, k, v, out, lse, causal=True)
    q, k, v, out, dout = (np.ascontiguousarray(array.swapaxes(1, 2)) for array in (q, k, v, out, dout))
    found = tw.attention_backward(dout, q, k, v, out, lse, causal=True, layout="bshd")
    for gradient, other in zip(found, expected, strict=True):
        assert np.array_equal(gradient, other.swapaxes(1, 2))


def test_strides_of_any_kind() -> None:
    """Reversed, spread and repeated operands; dO of the gradient of a sum repeats one element."""
    arrays = operands(dtype=np.float32)
    dout = np.broadcast_to(np.float32(1.5), (2, HEADS, QUERIES, VALUE))
    out, lse = tw.attention(*arrays, return_lse=True)
    state: dict[str, Any] = {"out": out, "lse": lse}
    expected = tw.attention_backward(np.array(dout), *arrays, **state)
    spread = []
    for array in arrays:
        wide = np.full((*array.shape[:-1], 2 * array.shape[-1]), np.nan, np.float32)
        wide[..., ::2] = array
        spread.append(wide[:, :, ::-1, ::2][:, :, ::-1])
    found = tw.attention_backward(dout, *spread, **state)
    for gradient, other in zip(found, expected, strict=True):
        assert np.array_equal(gradient, other)


def test_fewer_axes() -> None:
    arrays = operands(batch=1, dtype=np.float32)
    dout = np.random.default_rng(3).standard_normal((1, HEADS, QUERIES, VALUE)).astype(np.float32)
    given = (dout, *arrays, *tw.attention(*arrays, return_lse=True))
    expected = tw.attention_backward(*given)
    found = tw.attention_backward(*(array[0] for array in given))
    single = tw.attention_backward(*(array[0, 0] for array in given))
    for gradient, other in zip(found, expected, strict=True):
        assert np.array_equal(gradient, other[0])
    assert np.array_equal(single[0], expected[0][0, 0])


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_what_is_broadcast_gets_the_sum(dtype: Any) -> None:
    q, k, v = operands(batch=3, dtype=dtype)
    dout = np.random.default_rng(3).standard_normal((3, HEADS, QUERIES, VALUE)).astype(dtype)
    wide = [q, np.repeat(k[:1], 3, axis=0), np.repeat(v[:1], 3, axis=0)]
    expected = [array.astype(np.float64) for array in gradients(wide, dout)]
    found = gradients([q, k[:1], v[:1]], dout)
    tolerance = 1e-6 if dtype == np.float32 else 0.03
    for gradient, other in zip(found[1:], expected[1:], strict=True):
        assert np.allclose(gradient.astype(np.float64), other.sum(axis=0, keepdims=True), atol=tolerance)


@pytest.mark.parametrize("shape", [(0, 2, 3, 4), (1, 2, 0, 4), (1, 0, 3, 4)])
def test_nothing_to_do(shape: tuple[int, ...]) -> None:
    q = np.ones(shape, np.float32)
    for gradient in gradients([q, q, q], q):
        assert gradient.shape == shape


def test_no_keys() -> None:
    q, k = np.ones((1, 2, 3, 4), np.float32), np.ones((1, 2, 0, 4), np.float32)
    dq, dk, _ = gradients([q, k, k], q)
    assert (dq == 0).all()
    assert dk.shape == k.shape


# --- promises -----------------------------------------------------------------------------------------


def test_extra_memory_does_not_grow_with_the_square() -> None:
    """Scores of 3000 x 3000 take 36 MB; what Python allocates are the gradients and a few rows of states."""
    q = np.random.default_rng(0).standard_normal((1, 1, 3000, 16)).astype(np.float32)
    out, lse = tw.attention(q, q, q, return_lse=True)
    tw.attention_backward(out, q, q, q, out, lse)
    tracemalloc.start()
    tw.attention_backward(out, q, q, q, out, lse)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * q.nbytes


def test_the_same_bits_for_any_threads() -> None:
    arrays = [np.random.default_rng(0).standard_normal((1, 3, 500, 64)).astype(np.float32) for _ in range(3)]
    found = [
        [gradient.tobytes() for gradient in gradients(arrays, arrays[2], causal=True, threads=threads)]
        for threads in (1, 2, 4)
    ]
    assert found[0] == found[1] == found[2]


PLANNED: dict[str, dict[str, Any]] = {
    "plain": {},
    "window": {"causal": True, "window": (3, None), "layout": "bshd"},
    "truths": {"mask": SEEN},
}


@pytest.mark.parametrize("keywords", PLANNED.values(), ids=PLANNED)
def test_known_shapes_are_not_checked_again(
    keywords: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other arrays of the same shapes give their own gradients, without the checks of the first ones."""
    turned = keywords.get("layout") == "bshd"
    calls = []
    for seed in (0, 1):
        arrays = [array.swapaxes(1, 2) if turned else array for array in operands(seed, dtype=np.float32)]
        q, k, v = (np.ascontiguousarray(array) for array in arrays)
        out, lse = tw.attention(q, k, v, return_lse=True, **keywords)
        calls.append((out + 1, q, k, v, out, lse))
    replay().table.clear()
    expected = [tw.attention_backward(*calls[1], **keywords)]
    replay().table.clear()
    tw.attention_backward(*calls[0], **keywords)
    monkeypatch.setattr(backward_front, "prepare", None)
    expected.append(tw.attention_backward(*calls[1], **keywords))
    for checked, planned in zip(*expected, strict=True):
        assert checked.tobytes() == planned.tobytes()


def test_known_shapes_elsewhere_are_checked_again() -> None:
    """Operands that are not aligned, or of one batch for all, have no plan."""
    q, k, v = operands(dtype=np.float32)
    out, lse = tw.attention(q, k, v, return_lse=True)
    expected = tw.attention_backward(out, q, k, v, out, lse)
    memory = np.zeros(q.nbytes + 1, np.uint8)[1:]
    odd = memory.view(np.float32).reshape(q.shape)
    odd[...] = q
    for _ in range(2):
        found = tw.attention_backward(out, odd, k, v, out, lse)
        for gradient, other in zip(found, expected, strict=True):
            assert gradient.tobytes() == other.tobytes()
    for _ in range(2):
        assert tw.attention_backward(out, q, k[:1], v[:1], out, lse)[1].shape == k[:1].shape


def test_results_of_other_types_are_converted() -> None:
    q, k, v = operands(dtype=ml_dtypes.bfloat16)
    out, lse = tw.attention(q, k, v, return_lse=True)
    dout = np.random.default_rng(3).standard_normal(out.shape).astype(ml_dtypes.bfloat16)
    expected = tw.attention_backward(dout, q, k, v, out, lse)
    wide = dout.astype(np.float64), out.astype(">f4"), lse.astype(np.float64)
    found = tw.attention_backward(wide[0], q, k, v, wide[1], wide[2])
    for gradient, other in zip(found, expected, strict=True):
        assert gradient.tobytes() == other.tobytes()


# --- bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dout", "out", "lse"])
def test_shapes_that_attention_does_not_give(name: str) -> None:
    q, k, v = operands(dtype=np.float32)
    out, lse = tw.attention(q, k, v, return_lse=True)
    given = {"dout": out, "out": out, "lse": lse}
    given[name] = given[name][:, :1]
    with pytest.raises(AttentionGradientShape, match=f"{name} has shape"):
        tw.attention_backward(given["dout"], q, k, v, given["out"], given["lse"])


@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_types_without_gradients(dtype: Any) -> None:
    with pytest.raises(UnsupportedDtype):
        gradients(operands(dtype=dtype), np.ones((2, HEADS, QUERIES, VALUE)))


def test_integers_have_no_gradients() -> None:
    q, k, v = operands(dtype=np.float32)
    out = np.ones((2, HEADS, QUERIES, VALUE), np.float32)
    with pytest.raises(AttentionDtype, match="k has dtype int8"):
        tw.attention_backward(out, q, k.astype(np.int8), v.astype(np.int8), out, out[..., 0])
    with pytest.raises(AttentionDtype, match="dout has dtype int64"):
        tw.attention_backward(out.astype(int), q, k, v, out, out[..., 0])


def test_heads_are_checked_as_forward() -> None:
    q, k, v = operands(dtype=np.float32)
    with pytest.raises(HeadsMismatch):
        tw.attention_backward(q, q[:, :3], k, v, q, q)
    wide = np.ones((1, 1, 2, 1025), np.float32)
    with pytest.raises(InvalidSize):
        tw.attention_backward(wide, wide, wide, wide, wide, wide[..., 0])
