"""Run a Llama-shaped decoder as one `tw.Graph`: int4 weights, a paged cache of keys and values, sampling.

    python examples/llm.py --billions 0.1 --prompt 512 --tokens 64

Weights are random numbers, so the text means nothing; sizes, operations and speed are those of a model of
this shape: grouped heads, rotary positions, RMS norms, SwiGLU (Touvron et al., arXiv:2302.13971).
Decoding reads every weight once for a token, so memory bounds it: the last lines say by how much.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import tilewright as tw

Array = NDArray[Any]

#: Tokens of a page of the cache.
PAGE = 64
#: Tokens of a step that are no prompt.
FEW_TOKENS = 8
#: Depths of a weight that share a scale.
GROUP = 64


@dataclass(frozen=True)
class Shape:
    """The sizes of a model.

    Attributes
    ----------
    inner : columns of the gate and of what it gates.
    """

    layers: int
    width: int
    heads: int
    kv_heads: int
    inner: int
    vocabulary: int = 32000

    @property
    def head(self) -> int:
        """Elements of a head."""
        return self.width // self.heads

    @property
    def parameters(self) -> int:
        """Numbers in all weights."""
        attention = self.width * (2 * self.heads + 2 * self.kv_heads) * self.head
        layer = attention + 3 * self.width * self.inner + 2 * self.width
        return self.layers * layer + 2 * self.vocabulary * self.width + self.width


#: By billions of parameters; the largest is TinyLlama's (Zhang et al., arXiv:2401.02385).
SHAPES = {
    "0.1": Shape(12, 640, 10, 2, 1792),
    "0.3": Shape(16, 1024, 16, 4, 2816),
    "1.1": Shape(22, 2048, 32, 4, 5632),
}


@dataclass
class Weights:
    """Packs weights as they are drawn, and counts what a token reads of them."""

    rng: np.random.Generator
    precision: str
    read_bytes: int = 0

    def matrix(self, columns: int, rows: int) -> Any:
        """The weight of a linear layer from `rows` to `columns`: packed, or in bfloat16 as it is."""
        scale = np.float32(1 / math.sqrt(rows))
        drawn = self.rng.standard_normal((rows, columns), np.float32) * scale
        if self.precision == "bf16":
            narrow = drawn.T.astype(ml_dtypes.bfloat16)
            self.read_bytes += narrow.nbytes
            return narrow
        if self.precision == "i4-weights":
            packed = tw.quantize_weights(drawn, bits=4, group=GROUP)
        elif self.precision == "i8-weights":
            packed = tw.quantize_weights(drawn, bits=8)
        else:
            packed = tw.pack(drawn)
        self.read_bytes += packed.nbytes
        return packed

    def norm(self, width: int) -> Array:
        """The weight of a norm."""
        return 1 + self.rng.standard_normal(width, np.float32) / 10


@dataclass
class Decoder:
    """Two compiled forms of a step, with the same weights: one for prompts, one for a few tokens.

    Rows of a prompt may be rounded to bfloat16, which some units multiply many times as fast as float32. A
    few tokens wait for their weights with either, so they stay in float32.
    """

    prompt: tw.CompiledGraph
    tokens: tw.CompiledGraph

    def __call__(self, tokens: Array, *inputs: Array, threads: int | None = None) -> Any:
        """The step of so many tokens."""
        run = self.tokens if tokens.size <= FEW_TOKENS else self.prompt
        return run(tokens, *inputs, threads=threads)


def decoder(shape: Shape, weights: Weights) -> Decoder:
    """A step: new tokens in, the logits behind the last one of each sequence out.

    Inputs: tokens and positions (batch, new), the lengths of sequences so far, their pages, then for each
    layer a cache of keys and one of values, which the step appends to. The second result are new lengths.
    """
    g = tw.Graph()
    tokens, positions = (g.input(name, "i64", ("batch", "new")) for name in ("tokens", "positions"))
    lengths, table = g.input("lengths", "i64", ("batch",)), g.input("table", "i64", ("batch", "own_pages"))
    rows = ("pages", shape.kv_heads, PAGE, shape.head)
    caches = [[g.input(f"{kind}{layer}", shape=rows) for kind in "kv"] for layer in range(shape.layers)]
    cos, sin = tw.rotary_tables(4096, shape.head)
    x = g.embedding(weights.rng.standard_normal((shape.vocabulary, shape.width), np.float32), tokens)
    lead = tokens.shape
    after = lengths
    for k_cache, v_cache in caches:
        counts = (shape.heads, shape.kv_heads, shape.kv_heads)
        normed = g.rms_norm(x, weights.norm(shape.width))
        merged = g.linear(normed, weights.matrix(sum(counts) * shape.head, shape.width))
        heads = g.transpose(g.reshape(merged, (*lead, sum(counts), shape.head)), (0, 2, 1, 3))
        ends = np.cumsum((0, *counts)).tolist()
        q, k, v = (heads[:, first:end] for first, end in pairwise(ends))
        q, k = (g.rotary(one, cos, sin, positions) for one in (q, k))
        after = g.append_kv(k_cache, v_cache, k, v, lengths, block_table=table)
        seen = g.attention(q, k_cache, v_cache, causal=True, kv_lengths=after, block_table=table)
        flat = g.reshape(g.transpose(seen, (0, 2, 1, 3)), (*lead, shape.width))
        x = g.linear(flat, weights.matrix(shape.width, shape.width), residual=x)
        normed = g.rms_norm(x, weights.norm(shape.width))
        both = g.linear(normed, weights.matrix(2 * shape.inner, shape.width))
        gated = g.gated(both[..., shape.inner :], both[..., : shape.inner], "silu")
        x = g.linear(gated, weights.matrix(shape.width, shape.inner), residual=x)
    last = g.rms_norm(x[:, -1], weights.norm(shape.width))
    g.output(g.linear(last, weights.matrix(shape.vocabulary, shape.width)), "logits")
    g.output(after, "lengths")
    prompt = g.compile(precision=weights.precision)
    packed = weights.precision in ("i4-weights", "i8-weights")  # before the graph, which shares them
    return Decoder(prompt, g.compile() if packed else prompt)


class Session:
    """Sequences that grow by the tokens chosen for them, and their pages."""

    def __init__(self, run: Callable[..., Any], shape: Shape, batch: int, most: int) -> None:
        self.run, self.lengths = run, np.zeros(batch, np.int64)
        own = -(-most // PAGE)
        # Pages of a sequence lie anywhere, as a server that hands them out would have it.
        self.table = np.random.default_rng(1).permutation(batch * own).reshape(batch, own)
        rows = (batch * own, shape.kv_heads, PAGE, shape.head)
        self.caches = [np.zeros(rows, np.float32) for _ in range(2 * shape.layers)]

    def step(self, tokens: Array, threads: int | None = None) -> Array:
        """The logits behind tokens (batch, new), which are appended."""
        positions = self.lengths[:, None] + np.arange(tokens.shape[1])
        inputs = (tokens, positions, self.lengths, self.table, *self.caches)
        logits, self.lengths = self.run(*inputs, threads=threads)
        return np.asarray(logits)


def read_seconds(nbytes: int, threads: int | None) -> float:
    """What it takes to read so many bytes from memory: the shortest of some sums of an array."""
    data = np.ones((max(nbytes // 4096, 1), 1024), np.float32)
    times = []
    for _ in range(7):
        started = time.perf_counter()
        tw.sum(data, axis=-1, threads=threads)
        times.append(time.perf_counter() - started)
    return min(times)


def main() -> None:
    """Read a prompt and go on with it; print tokens per second beside the bound of memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--billions", choices=SHAPES, default="0.1")
    parser.add_argument(
        "--precision", choices=("f32", "bf16", "i8-weights", "i4-weights"), default="i4-weights"
    )
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--prompt", type=int, default=512, help="tokens of the prompt")
    parser.add_argument("--tokens", type=int, default=64, help="tokens that follow")
    parser.add_argument("--temperature", type=float, default=0.0, help="0 for the most likely token")
    parser.add_argument("--top-k", type=int)
    parser.add_argument("--top-p", type=float)
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    shape = SHAPES[options.billions]
    weights = Weights(np.random.default_rng(0), options.precision)
    started = time.perf_counter()
    run = decoder(shape, weights)
    read = weights.read_bytes
    print(
        f"{shape.parameters / 1e6:.0f} million parameters, {read / 1e6:.0f} MB of {options.precision} read "
        f"for each token; built in {time.perf_counter() - started:.1f} s"
    )
    prompt = weights.rng.integers(0, shape.vocabulary, (options.batch, options.prompt))
    most = options.prompt + options.tokens + 1
    Session(run, shape, options.batch, most).step(prompt, options.threads)  # compiles
    session = Session(run, shape, options.batch, most)
    started = time.perf_counter()
    logits = session.step(prompt, options.threads)
    seconds = time.perf_counter() - started
    count = prompt.size
    products = 2 * count * (shape.parameters - 2 * shape.vocabulary * shape.width)
    print(
        f"prefill: {count / seconds:.0f} tokens per second, {products / seconds / 1e9:.1f} GFLOPS in products"
    )
    chosen, times = [], []
    for _ in range(options.tokens):
        started = time.perf_counter()
        token = tw.sample(
            logits,
            temperature=options.temperature,
            top_k=options.top_k,
            top_p=options.top_p,
            generator=weights.rng,
        )
        logits = session.step(token[:, None], options.threads)
        times.append(time.perf_counter() - started)
        chosen.append(int(token[0]))
    seconds = statistics.median(times)
    bound = read_seconds(read, options.threads)
    print(f"decode: {options.batch / seconds:.1f} tokens per second, {1e3 * seconds:.2f} ms a step")
    print(f"bound: reading the weights takes {1e3 * bound:.2f} ms, so {bound / seconds:.0%} of it is reached")
    print("tokens:", *chosen[:12])


if __name__ == "__main__":
    main()
