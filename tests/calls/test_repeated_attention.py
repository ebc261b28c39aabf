"""Attention in machine code: every form with plain arrays, and the forms that stay with Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from repeated_calls import check, python_lines
from support import Array

import tilewright as tw
from tilewright.calls.layout import native_entry_possible
from tilewright.calls.repeated import replay

pytestmark = pytest.mark.skipif(not native_entry_possible(), reason="no native entries in this interpreter")

RNG = np.random.default_rng(5)


def values(*shape: int, dtype: Any = "f4") -> Array:
    return RNG.standard_normal(shape).astype(dtype)


MASK = RNG.random((8, 8)) > 0.3
FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"causal": True},
    "upper left": {"causal": "upper_left"},
    "window": {"causal": True, "window": (2, 0)},
    "truths": {"mask": MASK},
    "added": {"mask": values(2, 1, 8)},
    "capped": {"softcap": 3.0, "scale": 0.5},
    "slopes": {"alibi_slopes": values(2)},
    "sinks": {"sinks": values(2)},
    "offset": {"causal": True, "q_offset": 1},
    "threads": {"threads": 1},
    "blocks": {"strategy": "blocks"},
    "a number of keys": {"kv_lengths": 5, "causal": True},
    "lse": {"return_lse": True},
    "lse of masked rows": {"return_lse": True, "causal": True, "q_offset": -3},
}


attention: Any = tw.attention  # called with options from tables

LENGTHS = np.array([5, 8])
OFFSETS = np.array([0, 3, 8])
PAGES = np.array([[0, 1], [3, 2]])
#: Shapes of q and of k and v, and options with arrays of lengths.
BY_LENGTHS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "keys": ((2, 2, 8, 8), (2, 2, 8, 8), {"kv_lengths": LENGTHS}),
    "keys, one query": ((2, 2, 1, 8), (2, 2, 8, 8), {"kv_lengths": LENGTHS.astype("u4"), "causal": True}),
    "queries": ((2, 2, 8, 8), (2, 2, 8, 8), {"q_lengths": LENGTHS}),
    "both": ((2, 2, 8, 8), (2, 2, 8, 8), {"q_lengths": LENGTHS, "kv_lengths": LENGTHS[::-1], "causal": True}),
    "masked": ((2, 2, 8, 8), (2, 2, 8, 8), {"kv_lengths": LENGTHS, "mask": MASK[:, :6]}),
    "window": (
        *((2, 2, 8, 8), (2, 2, 8, 8)),
        {"kv_lengths": LENGTHS, "q_offset": np.array([0, 1]), "window": (3, 0)},
    ),
    "positions": ((2, 2, 8, 8), (2, 2, 8, 8), {"causal": True, "q_offset": np.array([-2, 3])}),
    "one position": ((2, 2, 8, 8), (2, 2, 8, 8), {"causal": True, "q_offset": np.array(2)}),
    "packed": ((2, 8, 8), (2, 8, 8), {"cu_seqlens_q": OFFSETS, "causal": True, "return_lse": True}),
    "packed rows": ((8, 2, 8), (8, 2, 8), {"cu_seqlens_q": OFFSETS.astype("i4"), "layout": "bshd"}),
    "packed queries": ((2, 8, 8), (2, 2, 8, 8), {"cu_seqlens_q": OFFSETS, "kv_lengths": LENGTHS}),
    "packed keys": ((2, 8, 8), (2, 8, 8), {"cu_seqlens_q": OFFSETS, "cu_seqlens_k": np.array([0, 6, 8])}),
    "paged": ((2, 2, 1, 8), (6, 2, 4, 8), {"block_table": PAGES, "kv_lengths": LENGTHS}),
    "paged, causal": (
        (2, 2, 8, 8),
        (6, 2, 4, 8),
        {"block_table": PAGES, "kv_lengths": LENGTHS, "causal": True},
    ),
}
#: Other contents of these arrays that are valid, with the same shape.
OTHERS = {
    "kv_lengths": np.array([8, 3]),
    "q_lengths": np.array([7, 2]),
    "q_offset": np.array([1, 2]),
    "cu_seqlens_q": np.array([0, 5, 7]),
    "cu_seqlens_k": np.array([0, 2, 8]),
    "block_table": np.array([[5, 2], [4, 0]]),
}
#: Contents that are not.
WRONG = {
    "kv_lengths": [5, 9],
    "q_lengths": [-1, 8],
    "q_offset": [1 << 61, 0],
    "cu_seqlens_q": [0, 9, 8],
    "cu_seqlens_k": [0, 2, 9],
    "block_table": [[0, 6], [3, 2]],
}


@pytest.mark.parametrize("name", BY_LENGTHS)
def test_lengths(name: str) -> None:
    q, k, given = BY_LENGTHS[name]
    operands = values(*q), values(*k), values(*k)
    options = {
        word: value.copy() if isinstance(value, np.ndarray) else value for word, value in given.items()
    }
    check(attention, *operands, **options)
    replay().table.clear()
    for _ in range(3):
        attention(*operands, **options)
    for word, value in given.items():
        if word not in OTHERS:
            continue
        options[word][...] = OTHERS[word] if value.ndim else 1
        found, kept = attention(*operands, **options), options[word].copy()
        replay().table.clear()
        expected = attention(*operands, **options)
        for one, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, expected)), strict=True):
            assert one.tobytes() == other.tobytes()
        assert np.array_equal(options[word], kept)
        attention(*operands, **options)
        if not value.ndim or value.dtype.kind == "u":
            continue
        options[word][...] = WRONG[word]
        with pytest.raises(tw.TilewrightError) as repeated:
            attention(*operands, **options)
        replay().table.clear()
        with pytest.raises(tw.TilewrightError) as first:
            attention(*operands, **options)
        assert str(repeated.value) == str(first.value)
        options[word][...] = kept


def test_other_lengths_run_no_python() -> None:
    q, k, v = values(2, 2, 8, 8), values(2, 2, 8, 8), values(2, 2, 8, 8)
    lengths = LENGTHS.copy()
    for _ in range(2):
        attention(q, k, v, kv_lengths=lengths)
    lengths[:] = 1, 7
    assert python_lines(lambda: attention(q, k, v, kv_lengths=lengths)) == 0


def test_lengths_that_grow() -> None:
    q, k, v = values(2, 2, 1, 8), values(2, 2, 300, 8), values(2, 2, 300, 8)
    lengths = np.array([1, 2])
    found: list[Any] = []
    lines = 0
    for length in range(1, 300):
        lengths[:] = length, length // 2
        found.clear()
        lines += python_lines(lambda: found.append(attention(q, k, v, kv_lengths=lengths))) > 0
        if length % 50 == 7:
            expected = attention(q, k, v, kv_lengths=lengths.tolist())
            assert found[0].tobytes() == expected.tobytes()
    assert lines < 40  # where the lengths leave a range, and some of the calls after that


@pytest.mark.parametrize("options", FORMS.values(), ids=FORMS)
def test_forms(options: dict[str, Any]) -> None:
    check(tw.attention, *(values(1, 2, 8, 8) for _ in range(3)), **options)


@pytest.mark.parametrize("kind", ["f8", "f2"])
def test_types(kind: str) -> None:
    check(tw.attention, *(values(1, 2, 8, 8, dtype=kind) for _ in range(3)), causal=True)


def test_shapes() -> None:
    check(tw.attention, values(1, 2, 1, 8), values(1, 2, 9, 8), values(1, 2, 9, 8))
    check(tw.attention, values(1, 4, 8, 8), values(1, 2, 8, 8), values(1, 2, 8, 8))
    check(tw.attention, values(8, 8), values(8, 8), values(8, 8))
    check(tw.attention, *(values(1, 8, 2, 8) for _ in range(3)), layout="bshd")
    check(tw.attention, *(values(1, 8, 2, 24)[..., :8] for _ in range(3)), layout="bshd")
    check(tw.attention, values(1, 2, 8, 8, dtype="f2"), values(1, 2, 8, 8), values(1, 2, 8, 8))


def test_out() -> None:
    q, k, v = (values(1, 2, 8, 8) for _ in range(3))
    for turn in range(3):
        out = np.full((1, 2, 8, 8), np.nan, np.float32)
        assert tw.attention(q, k, v, out=out) is out, turn
        assert out.tobytes() == tw.attention(q, k, v).tobytes()
        shared = q.copy()
        assert tw.attention(shared, k, v, out=shared) is shared
        assert shared.tobytes() == out.tobytes()


@pytest.mark.parametrize("options", [{}, {"causal": True}, {"mask": MASK}, {"mask": MASK[:, :5]}], ids=str)
def test_gradients(options: dict[str, Any]) -> None:
    q, k, v = (values(1, 2, 8, 8) for _ in range(3))
    out, lse = tw.attention(q, k, v, return_lse=True, **options)
    check(tw.attention_backward, values(1, 2, 8, 8), q, k, v, out, lse, **options)


@pytest.mark.parametrize("name", ["kv_lengths", "q_lengths", "q_offset"])
def test_lengths_are_read_at_every_call(name: str) -> None:
    q, k, v = (values(2, 2, 8, 8) for _ in range(3))
    given = np.array([8, 8])
    options: dict[str, Any] = {name: given, "causal": True}
    for count in (8, 5, 3):
        given[...] = count
        same: dict[str, Any] = {name: [count, count], "causal": True}
        expected = tw.attention(q, k, v, **same)
        np.testing.assert_array_equal(tw.attention(q, k, v, **options), expected)
