"""What `explain` says of attention: schedule, reasons, what is skipped."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.errors import HeadsMismatch


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def said(explanation: Any, words: str) -> bool:
    return words in str(explanation)


def test_blocks_and_what_they_skip() -> None:
    q, k = ones(2, 8, 300, 64), ones(2, 2, 300, 64)
    found = tw.explain(tw.attention, q, k, k, causal=True, threads=1)
    assert found.strategy.startswith("blocks")
    assert found.kernel.startswith("attention_f32_64x64_bounded_blocks_")
    assert said(found, "50% of the scores are out of bounds")
    assert said(found, "one thread")
    assert said(found, "cycles for a key")
    assert said(found, f"{2 * 2 * 8 * 300 * 301 // 2 * 128:,} flops")
    assert not said(tw.explain(tw.attention, q, k, k), "out of bounds")


def test_few_queries() -> None:
    found = tw.explain(tw.attention, ones(1, 8, 1, 64), ones(1, 2, 500, 64), ones(1, 2, 500, 64))
    assert found.strategy.startswith("few queries")
    assert "_decode_" in found.kernel


def test_keys_whose_elements_are_apart_are_packed() -> None:
    k = ones(1, 2, 64, 500).swapaxes(2, 3)
    found = tw.explain(tw.attention, ones(1, 8, 1, 64), k, k)
    assert found.strategy.startswith("blocks")
    assert said(found, "not contiguous")


def test_sequences_of_both_kinds() -> None:
    q, k = ones(8, 301, 64), ones(2, 301, 64)
    found = tw.explain(tw.attention, q, k, k, cu_seqlens_q=[0, 1, 301], causal=True)
    assert "_decode_" in found.kernel
    assert "_blocks_" in found.kernel
    assert said(found, "1 sequences of at most 1 queries")


def test_what_is_asked_for_and_what_has_no_kernel() -> None:
    q = ones(2, 4, 8)
    found = tw.explain(tw.attention, q, q, q, strategy="unfused")
    assert found.strategy.startswith("unfused")
    assert said(found, "was requested")
    wide = ones(4, 1025)
    assert said(tw.explain(tw.attention, wide, wide, wide), "head sizes from 1 to 1024")


def test_copies_are_named() -> None:
    q = ones(2, 4, 8)
    found = tw.explain(tw.attention, q.astype(np.float64), q, q)
    assert said(found, "k is copied: float32 to float64")


def test_nothing_is_computed_and_errors_are_those_of_the_call() -> None:
    q, out = ones(3, 4, 8), np.full((3, 4, 8), 7, np.float32)
    tw.explain(tw.attention, q, q, q, out=out, return_lse=True)
    assert (out == 7).all()
    with pytest.raises(HeadsMismatch):
        tw.explain(tw.attention, q, q[:2], q[:2])


@pytest.mark.parametrize(
    ("schedule", "words"), [("blocks", "register tiles of 6x16"), ("decode", "few queries")]
)
def test_problems(schedule: str, words: str) -> None:
    assert said(tw.explain(tw.Attention(64, schedule=schedule), "haswell"), words)
