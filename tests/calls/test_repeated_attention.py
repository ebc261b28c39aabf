"""Attention in machine code: every form with plain arrays, and the forms that stay with Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from repeated_calls import check
from support import Array

import tilewright as tw
from tilewright.calls.layout import native_entry_possible

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
    "lse": {"return_lse": True},
    "lse of masked rows": {"return_lse": True, "causal": True, "q_offset": -3},
}


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
