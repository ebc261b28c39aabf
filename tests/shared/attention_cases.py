"""Random attention calls: operands in several layouts with any keywords, and what the oracle says of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from attention_reference import attention_reference
from support import Array


@dataclass
class Call:
    """Operands in layout "bhsd" with the oracle's keywords.

    Attributes
    ----------
    keywords : as `attention_reference` takes them, every mask and scale of full rank.
    """

    q: Array
    k: Array
    v: Array
    keywords: dict[str, Any] = field(default_factory=dict)

    def expected(self) -> tuple[Array, Array]:
        """The oracle's results and lse."""
        return attention_reference(self.q, self.k, self.v, **self.keywords)


def bshd(array: Array) -> Array:
    """The same values with heads behind the sequence."""
    return np.ascontiguousarray(array.swapaxes(1, 2))


def normal(rng: np.random.Generator, *shape: int, dtype: Any = np.float32) -> Array:
    return rng.standard_normal(shape).astype(dtype)


#: Lengths of heads, of keys and of values: few, so that calls share kernels.
HEADS = ((16, 24), (7, 33), (20, 1))


def random_call(rng: np.random.Generator, dtype: Any = np.float32) -> Call:
    """Sequences of one array each, any of the keywords."""
    batch, kv_heads, group = (int(rng.integers(1, most)) for most in (4, 3, 4))
    queries, keys = (int(rng.integers(1, most)) for most in (40, 70))
    d, value_dim = HEADS[rng.integers(len(HEADS))]
    heads = kv_heads * group
    call = Call(
        normal(rng, batch, heads, queries, d, dtype=dtype),
        normal(rng, batch, kv_heads, keys, d, dtype=dtype),
        normal(rng, batch, kv_heads, keys, value_dim, dtype=dtype),
    )
    lengths = {
        "q_lengths": lambda: rng.integers(0, queries + 1, batch),
        "kv_lengths": lambda: rng.integers(0, keys + 1, batch),
    }
    call.keywords = any_of(rng, {**score_keywords(rng, (batch, heads, queries, keys)), **lengths})
    return call


def any_of(rng: np.random.Generator, choices: dict[str, Any]) -> dict[str, Any]:
    """Each keyword with a probability of a third."""
    found = {name: make() for name, make in choices.items() if rng.random() < 1 / 3}
    if "q_offset" in found and "causal" in found:
        found["causal"] = True  # the other choices say where queries stand
    return found


def score_keywords(rng: np.random.Generator, shape: tuple[int, ...]) -> dict[str, Any]:
    """Makers of the keywords that change scores, for scores (batch, heads, queries, keys)."""

    def mask() -> Array:
        if rng.random() < 0.5:
            return rng.random(shape) < 0.7
        found = rng.standard_normal(shape).astype(np.float32)
        found[rng.random(shape) < 0.3] = -np.inf if rng.random() < 0.5 else np.finfo(np.float32).min
        return found

    def short() -> Array:
        """A mask of fewer keys: the others are excluded."""
        found = mask()
        return found[..., : max(shape[3] * 2 // 3, 2)] if rng.random() < 0.3 else found

    def side() -> int | None:
        return None if rng.random() < 0.3 else int(rng.integers(0, 20))

    return {
        "mask": short,
        "causal": lambda: ("lower_right", "upper_left", True)[rng.integers(3)],
        "scale": lambda: float(rng.uniform(0.1, 1)),
        "window": lambda: (side(), side()),
        "q_offset": lambda: (
            int(rng.integers(-10, 60)) if rng.random() < 0.5 else rng.integers(-10, 60, shape[0])
        ),
        "softcap": lambda: float(rng.uniform(0.5, 5)),
        "alibi_slopes": lambda: normal(rng, shape[1]),
        "sinks": lambda: normal(rng, shape[1]),
    }


def packed_call(rng: np.random.Generator, dtype: Any = np.float32) -> Call:
    """Sequences behind one another, with rows behind the last one that belong to none."""
    kv_heads, group, (d, value_dim) = 2, int(rng.integers(1, 4)), HEADS[rng.integers(len(HEADS))]
    offsets = [np.concatenate([[0], np.cumsum(rng.integers(0, 25, 4))]) for _ in "qk"]
    rows = [int(offset[-1]) + 3 for offset in offsets]
    shape = (4, kv_heads * group, *(int(np.diff(offset).max()) for offset in offsets))
    return Call(
        normal(rng, 1, kv_heads * group, rows[0], d, dtype=dtype),
        normal(rng, 1, kv_heads, rows[1], d, dtype=dtype),
        normal(rng, 1, kv_heads, rows[1], value_dim, dtype=dtype),
        {
            **any_of(rng, score_keywords(rng, shape)),
            "cu_seqlens_q": offsets[0],
            "cu_seqlens_k": offsets[1],
        },
    )


def paged_call(rng: np.random.Generator, dtype: Any = np.float32) -> Call:
    """Sequences whose keys stand in pages; those that no sequence has hold NaN."""
    batch, kv_heads, group, d, value_dim = 3, 2, int(rng.integers(1, 4)), 16, 24
    page, most, queries = int(rng.integers(1, 20)), int(rng.integers(1, 6)), int(rng.integers(1, 9))
    pages = batch * most + 2
    lengths = rng.integers(0, page * most + 1, batch)
    table = rng.permutation(pages)[: batch * most].reshape(batch, most)
    used = [table[item, : -(-int(length) // page)] for item, length in enumerate(lengths)]
    k, v = (np.full((pages, kv_heads, page, size), np.nan, dtype) for size in (d, value_dim))
    for cache in (k, v):
        for number in np.concatenate(used):
            cache[number] = normal(rng, kv_heads, page, cache.shape[3], dtype=dtype)
    shape = (batch, kv_heads * group, queries, max(int(lengths.max()), 0))
    return Call(
        normal(rng, batch, kv_heads * group, queries, d, dtype=dtype),
        *(k, v),
        {**any_of(rng, score_keywords(rng, shape)), "block_table": table, "kv_lengths": lengths},
    )


def quantised_call(rng: np.random.Generator, dtype: Any = np.float32) -> Call:
    """Keys and values of 8 bits, each token with a scale."""
    call = random_call(rng, dtype)
    places = call.k.shape[:-1]
    for name in "kv":
        setattr(call, name, rng.integers(-127, 128, getattr(call, name).shape).astype(np.int8))
    call.keywords["key_scales"] = rng.uniform(0.005, 0.02, places).astype(np.float32)
    call.keywords["value_scales"] = rng.uniform(0.005, 0.02, places).astype(np.float32)
    return call
