"""The decoder of examples/llm.py: steps through caches give what one pass over all tokens gives."""

from __future__ import annotations

from typing import Any

import llm
import numpy as np
import pytest

SHAPE = llm.Shape(layers=2, width=64, heads=4, kv_heads=2, inner=96, vocabulary=80)


@pytest.fixture(scope="module")
def run() -> Any:
    return llm.decoder(SHAPE, llm.Weights(np.random.default_rng(3), "f32"))


def test_steps_are_one_pass(run: Any) -> None:
    tokens = np.random.default_rng(0).integers(0, SHAPE.vocabulary, (2, 70))
    whole = llm.Session(run, SHAPE, 2, 80).step(tokens)
    session = llm.Session(run, SHAPE, 2, 80)
    session.step(tokens[:, :65])
    for at in range(65, 70):
        logits = session.step(tokens[:, at : at + 1])
    np.testing.assert_array_equal(session.lengths, [70, 70])
    np.testing.assert_allclose(logits, whole, rtol=1e-4, atol=1e-4)
    assert np.ptp(whole) > 1


def test_earlier_tokens_count(run: Any) -> None:
    tokens = np.random.default_rng(1).integers(0, SHAPE.vocabulary, (1, 6))
    first = llm.Session(run, SHAPE, 1, 8).step(tokens)
    tokens[0, 0] = (tokens[0, 0] + 1) % SHAPE.vocabulary
    assert abs(llm.Session(run, SHAPE, 1, 8).step(tokens) - first).max() > 1e-3


@pytest.mark.parametrize("precision", ["bf16", "i8-weights", "i4-weights"])
def test_precisions(precision: str) -> None:
    weights = llm.Weights(np.random.default_rng(3), precision)
    other = llm.decoder(SHAPE, weights)
    exact = llm.Weights(np.random.default_rng(3), "f32")
    same = llm.decoder(SHAPE, exact)
    tokens = np.arange(9)[None]
    found, right = (llm.Session(one, SHAPE, 1, 9).step(tokens).ravel() for one in (other, same))
    cosine = found @ right / np.sqrt((found @ found) * (right @ right))
    assert cosine > {"bf16": 0.9995, "i8-weights": 0.999, "i4-weights": 0.95}[precision]
    assert (
        weights.read_bytes
        < exact.read_bytes * {"bf16": 0.51, "i8-weights": 0.27, "i4-weights": 0.17}[precision]
    )


def test_parameters() -> None:
    assert 1.05e9 < llm.SHAPES["1.1"].parameters < 1.15e9
