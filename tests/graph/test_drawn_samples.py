"""Sample inputs that are drawn: which networks have them, and what they are good for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.calls.operands import Array
from tilewright.graph.drawn_samples import drawn_inputs, drawn_statistics
from tilewright.graph.value import Value

WIDTH, WORDS = 64, 1000
RNG = np.random.default_rng(3)


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


WEIGHTS = [floats(WIDTH, WIDTH) / 8 for _ in range(4)]
#: Two columns are large in every row.
OUTLIERS = np.where(np.isin(np.arange(WIDTH), (5, 40)), 30, 1).astype(np.float32)
TABLE = floats(WORDS, WIDTH)


def block(g: tw.Graph, x: Value, **attention: Any) -> Value:
    x = g.layer_norm(x, OUTLIERS, floats(WIDTH))
    q, k, v = (g.linear(x, one).reshape(*x.shape[:-1], 4, 16) for one in WEIGHTS[:3])
    seen = g.attention(q, k, v, layout="bshd", **attention).reshape(*x.shape)
    return x + g.linear(seen, WEIGHTS[3])


def packed_texts() -> tw.Graph:
    g = tw.Graph()
    ids, ends = g.input("ids", "i64", ("tokens",)), g.input("ends", "i32", ("ends",))
    found = block(g, g.embedding(TABLE, ids), cu_seqlens_q=ends)
    g.output(g.input("average", shape=("texts", "tokens")) @ found)
    return g


def padded_texts() -> tw.Graph:
    g = tw.Graph()
    ids, lengths = g.input("ids", "i32", ("batch", "length")), g.input("lengths", "i64", ("batch",))
    mask = g.input("mask", "bool", ("batch", 1, 1, "length"))
    words = g.take(TABLE, ids.reshape("batch", "length"))
    g.output(block(g, words, kv_lengths=lengths, mask=mask))
    return g


def test_inputs_of_packed_texts() -> None:
    ids, ends, average = drawn_inputs(packed_texts().network) or pytest.fail("none")
    assert ids.dtype == np.int64
    assert ids.min() == 0
    assert ids.max() == WORDS - 1
    assert len(np.unique(ids)) == len(ids) == 512
    assert ends.dtype == np.int32
    assert ends.tolist() == [0, 512]
    assert average.shape == (2, 512)


def test_inputs_of_padded_texts() -> None:
    ids, lengths, mask = drawn_inputs(padded_texts().network) or pytest.fail("none")
    assert ids.shape == (23, 23)
    assert lengths.tolist() == [23] * 23
    assert mask.all()


@pytest.mark.parametrize("make", [packed_texts, padded_texts])
def test_statistics_need_no_sample(make: Any) -> None:
    network = make().network
    found = drawn_statistics(network, drawn_inputs(network) or pytest.fail("none"))
    assert len(found) == 2
    (norm, *_) = found.values()
    assert set(np.argsort(norm.largest)[-2:]) == {5, 40}


def with_numbers(g: tw.Graph) -> None:
    g.output(g.linear(g.input("x", shape=("n", WIDTH)), WEIGHTS[0]))


def with_a_cache(g: tw.Graph) -> None:
    cache = g.input("cache", shape=(1, 1, 8, WIDTH))
    ids = g.input("ids", "i64", (1,))
    row = g.embedding(TABLE, ids).reshape(1, 1, 1, WIDTH)
    g.output(g.append_kv(cache, cache, row, row, g.input("filled", "i32", (1,)))[0])
    g.output(g.linear(row, WEIGHTS[0]))


def with_blocks(g: tw.Graph) -> None:
    ids, pages = g.input("ids", "i64", (1, 4)), floats(3, 4, 4, 16)
    q = g.linear(g.embedding(TABLE, ids), WEIGHTS[0]).reshape(1, 4, 4, 16)
    table, lengths = g.input("table", "i32", (1, 3)), g.input("lengths", "i64", (1,))
    found = g.attention(q, pages, pages, layout="bshd", block_table=table, kv_lengths=lengths)
    g.output(g.linear(found.reshape(1, 4, WIDTH), WEIGHTS[1]))


@pytest.mark.parametrize("build", [with_numbers, with_a_cache, with_blocks])
def test_what_cannot_be_guessed_is_not(build: Any) -> None:
    g = tw.Graph()
    build(g)
    assert drawn_inputs(g.network) is None
    assert g.compile(precision="i8-dynamic") is not None


def test_a_network_that_refuses_its_drawn_inputs_has_no_statistics() -> None:
    g = tw.Graph()
    ids = g.input("ids", "i64", ("length",))
    g.output(g.linear(g.embedding(TABLE * np.float32(np.inf), ids), WEIGHTS[0]))
    network = g.network
    assert drawn_statistics(network, drawn_inputs(network) or pytest.fail("none")) == {}


def test_columns_are_balanced_without_samples() -> None:
    ids, lengths = RNG.integers(0, WORDS, (4, 20)), np.full(4, 20)
    mask = np.ones((4, 1, 1, 20), bool)
    inputs = ids.astype(np.int32), lengths, mask
    graph = padded_texts()
    expected = graph.compile()(*inputs)
    found = graph.compile(precision="i8-dynamic")(*inputs)
    samples = graph.compile(precision="i8-dynamic", calibration=[inputs])(*inputs)
    errors = [np.linalg.norm(one - expected) / np.linalg.norm(expected) for one in (found, samples)]
    assert errors[0] < 1.3 * errors[1]
