"""Integers that attention is given: what is checked is a private copy, and is what the kernel reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shares import looped
from support import filled, run_python

import tilewright as tw
from tilewright.errors import (
    InvalidChoice,
    InvalidOffsets,
    InvalidWindow,
    OffsetsNotIncreasing,
    OffsetsPastEnd,
)
from tilewright.ops.attention.operands import Keywords
from tilewright.ops.attention.prepared import prepare

PROGRAM = str(Path(__file__).with_name("hostile_attention.py"))
Q, K, V = (filled((2, 8, 8), seed=seed) for seed in range(3))
MOST = 2**63 - 1


@looped("side", ["cu_seqlens_q", "cu_seqlens_k"])
@looped(
    "offsets",
    [
        [0, MOST, -2, 5],
        [0, MOST, -(2**63) + 8],
        [0, -(2**63), MOST, 8],
        np.array([0, 2**64 - 1, 5], np.uint64),
        np.array([0, 2**63, 2**63 + 1, 8], np.uint64),
        [0, 2**64 - 2, 8],
        [0, 2**70, 8],
        np.array([0, 8.0]),
        np.array([False, True]),
    ],
)
def test_offsets_whose_differences_wrap(side: str, offsets: Any) -> None:
    """Refused by each function that takes them, before the kernel reads anything."""
    count = len(offsets) - 1
    given: dict[str, Any] = {
        "cu_seqlens_q": [0] * count + [8],
        "cu_seqlens_k": [0] * count + [8],
        side: offsets,
    }
    refused = (InvalidOffsets, OffsetsNotIncreasing, OffsetsPastEnd)
    gradient, lse = np.ones_like(Q), np.zeros(Q.shape[:-1], np.float32)
    with pytest.raises(refused):
        tw.attention(Q, K, V, **given)
    with pytest.raises(refused):
        tw.attention_partial(Q, K, V, **given)
    with pytest.raises(refused):
        tw.attention_backward(gradient, Q, K, V, gradient, lse, **given)


def test_messages_name_what_was_found() -> None:
    with pytest.raises(OffsetsPastEnd, match="18446744073709551615"):
        tw.attention(Q, K, V, cu_seqlens_q=np.array([0, 2**64 - 1], np.uint64))


@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "u4", "i8", "u8", ">i8", ">u2"])
def test_offsets_of_every_integer_type(dtype: str) -> None:
    offsets = np.array([0, 3, 3, 8]).astype(dtype)
    expected = tw.attention(Q, K, V, cu_seqlens_q=[0, 3, 3, 8], causal=True)
    assert np.array_equal(tw.attention(Q, K, V, cu_seqlens_q=offsets, causal=True), expected)


def test_calls_keep_no_view_of_integers() -> None:
    """Another thread may overwrite the caller's arrays behind their checks."""
    offsets, lengths, table = np.array([0, 3, 8]), np.array([5, 8]), np.array([[0, 1], [1, 0]])
    batch = (np.stack([Q, Q]), np.stack([K, K]), np.stack([V, V]))
    for operands, keywords in (
        ((Q, K, V), Keywords(cu_seqlens_q=offsets)),
        (batch, Keywords(q_lengths=lengths, kv_lengths=lengths)),
        (batch, Keywords(block_table=table, kv_lengths=lengths)),
    ):
        prepared = prepare(*operands, None, keywords)
        kept = [prepared.call.items, prepared.call.pages]
        kept += [array for side in prepared.sides for array in (side.rows, side.first, side.pages)]
        for array in kept:
            for given in (offsets, lengths, table):
                assert array is None or not np.shares_memory(array, given)


def test_hostile_integers_in_a_process_of_their_own() -> None:
    assert "800 calls" in run_python(PROGRAM, "values")


def test_integers_that_another_thread_overwrites() -> None:
    assert "6 races" in run_python(PROGRAM, "threads")


def test_repeated_calls_are_checked_as_the_first() -> None:
    """A plan serves the arguments it was made for, not those that compare equal to them."""
    operands = tuple(array[np.newaxis] for array in (Q, K, V))
    tw.attention(*operands, causal=True, window=(1, 0))
    tw.attention(*operands, causal=True)
    for refused, given in (
        (InvalidWindow, {"causal": True, "window": (True, 0)}),
        (InvalidWindow, {"causal": True, "window": (1.0, 0)}),
        (InvalidChoice, {"causal": 1.0}),
    ):
        with pytest.raises(refused):
            tw.attention(*operands, **given)


def test_objects_that_convert_themselves_are_converted_by_each_call() -> None:
    class Changing:
        value = 1

        def __index__(self) -> int:
            return self.value

        def __float__(self) -> float:
            return float(self.value)

    changing: Any = Changing()
    operands = tuple(array[np.newaxis] for array in (Q, K, V))
    for value in (1, 4):
        changing.value = value
        found = tw.attention(*operands, window=(changing, 0), scale=changing)
        assert np.array_equal(found, tw.attention(*operands, window=(value, 0), scale=float(value)))


@pytest.mark.parametrize("far", [2**60, MOST - 1, MOST, 2**64, 2**70])
def test_windows_that_reach_past_int64(far: int) -> None:
    batch = tuple(np.stack([array, array]) for array in (Q, K, V))
    for lengths in (None, [5, 8]):
        expected = tw.attention(*batch, kv_lengths=lengths)
        for window in ((far, far), (None, far), (far, None)):
            assert np.array_equal(tw.attention(*batch, kv_lengths=lengths, window=window), expected)
