"""The encoder of examples/minilm.py, with random weights and one layer: packed, padded, in PyTorch."""

from __future__ import annotations

from typing import Any

import minilm
import numpy as np
import pytest

TOKENS = [[101, 7, 102], [101, 5, 6, 8, 9, 102], [101, 102]]


@pytest.fixture(scope="module")
def weights() -> dict[str, Any]:
    rng = np.random.default_rng(2)
    width, inner, at = minilm.WIDTH, 4 * minilm.WIDTH, "encoder.layer.0"
    layers = {f"{at}.attention.self.{one}": (width, width) for one in ("query", "key", "value")}
    layers |= {f"{at}.attention.output.dense": (width, width)}
    layers |= {f"{at}.intermediate.dense": (inner, width), f"{at}.output.dense": (width, inner)}
    found = {f"{name}.weight": rng.standard_normal(shape) / 20 for name, shape in layers.items()}
    found |= {f"{name}.bias": rng.standard_normal(shape[0]) / 20 for name, shape in layers.items()}
    for name in ("embeddings", f"{at}.attention.output", f"{at}.output"):
        found[f"{name}.LayerNorm.weight"] = 1 + rng.standard_normal(width) / 10
        found[f"{name}.LayerNorm.bias"] = rng.standard_normal(width) / 10
    for name, rows in (("word", 120), ("token_type", 2), ("position", 16)):
        found[f"embeddings.{name}_embeddings.weight"] = rng.standard_normal((rows, width))
    return {name: value.astype(np.float32) for name, value in found.items()}


@pytest.fixture(autouse=True)
def one_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "LAYERS", 1)


def test_packed_sentences_are_padded_ones_alone(weights: dict[str, Any]) -> None:
    packed, padded = minilm.packed_model(weights), minilm.padded_model(weights)
    found = packed(*minilm.packed_inputs(TOKENS))
    for row, one in zip(found, TOKENS, strict=True):
        hidden = padded(np.array([one]), np.arange(len(one)))
        pooled = hidden[0].mean(0)
        np.testing.assert_allclose(row, pooled / np.linalg.norm(pooled), rtol=1e-4, atol=1e-6)


def test_packed_sentences_are_those_of_pytorch(weights: dict[str, Any]) -> None:
    pytest.importorskip("torch")
    right = minilm.in_pytorch(weights, TOKENS)
    assert right is not None
    found = minilm.packed_model(weights)(*minilm.packed_inputs(TOKENS))
    np.testing.assert_allclose(found, right(), rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize(
    ("precision", "least"),
    [("bf16", 0.9999), ("i8-weights", 0.9999), ("i8-dynamic", 0.999), ("i4-weights", 0.98)],
)
def test_precisions(weights: dict[str, Any], precision: str, least: float) -> None:
    inputs = minilm.packed_inputs(TOKENS)
    found, right = minilm.packed_model(weights, precision)(*inputs), minilm.packed_model(weights)(*inputs)
    assert (found * right).sum(-1).min() > least
