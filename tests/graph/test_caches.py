"""Graphs that append to caches of keys and values: contiguous, paged, int8; what must not be written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Array
from tiers import each_pair

import tilewright as tw
from tilewright import errors
from tilewright.calls.layout import native_entry_possible
from tilewright.graph.builder import Graph
from tilewright.graph.execute import evaluate_network

RANDOM = np.random.default_rng(8)
BATCH, HEADS, KV_HEADS, D, CAPACITY, PAGE = 2, 4, 2, 8, 24, 4


def floats(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def step(layout: Any, *, paged: bool = False, scaled: bool = False) -> Graph:
    """A step of a decoder: new rows are appended, and queries see all of their sequence."""
    g = Graph()
    rows = (KV_HEADS, "page" if paged else "capacity")
    shape = ("pages" if paged else "batch", *(rows if layout == "bhsd" else rows[::-1]))
    new = (KV_HEADS, "n") if layout == "bhsd" else ("n", KV_HEADS)
    dtype = "i8" if scaled else "f32"
    k_cache, v_cache = (g.input(f"{one}_cache", dtype, (*shape, D)) for one in "kv")
    k, v = (g.input(one, shape=("batch", *new, D)) for one in "kv")
    q = g.input("q", shape=("batch", *((HEADS, "n") if layout == "bhsd" else ("n", HEADS)), D))
    lengths = g.input("lengths", "i64", ("batch",))
    beside: dict[str, Any] = {}
    if paged:
        beside["block_table"] = g.input("table", "i64", ("batch", CAPACITY // PAGE))
    if scaled:
        beside |= {f"{one}_scales": g.input(f"{one}_scales", shape=shape) for one in ("key", "value")}
    after = g.append_kv(k_cache, v_cache, k, v, lengths, layout=layout, **beside)
    beside["kv_lengths"] = after
    g.output(g.attention(q, k_cache, v_cache, causal=True, layout=layout, **beside), "y")
    g.output(after, "lengths")
    return g


def arrays(g: Graph, rows: int, sizes: dict[str, int]) -> dict[str, Any]:
    """Inputs of a graph, with caches of zeros and lengths of 3 and 0."""
    found = {}
    for _, node in g.network.inputs:
        shape = tuple({"n": rows, **sizes}.get(str(one), one.constant or 0) for one in node.shape)
        found[node.label] = floats(*shape) if node.dtype == np.float32 else np.zeros(shape, node.dtype)
        if "cache" in node.label or "scales" in node.label:
            found[node.label][...] = 0
    found["lengths"] = np.array([3, 0])
    if "table" in found:
        found["table"] = RANDOM.permutation(sizes["pages"])[: 2 * CAPACITY // PAGE].reshape(2, -1)
    return found


FORMS = [(layout, paged, scaled) for layout in ("bhsd", "bshd") for paged in (0, 1) for scaled in (0, 1)]


@pytest.mark.parametrize(("layout", "paged", "scaled"), FORMS)
@pytest.mark.parametrize("rows", [1, 5])
@each_pair
def test_steps(layout: str, rows: int, *, paged: bool, scaled: bool) -> None:
    g = step(layout, paged=paged, scaled=scaled)
    sizes = {"batch": BATCH, "capacity": CAPACITY, "page": PAGE, "pages": 14}
    ours = arrays(g, rows, sizes)
    theirs = {name: one.copy() for name, one in ours.items()}
    run = g.compile()
    for number in range(3):
        y, lengths = run(**ours)
        right, counted = evaluate_network(g.network, list(theirs.values()))
        np.testing.assert_array_equal(lengths, [3 + (number + 1) * rows, (number + 1) * rows])
        np.testing.assert_array_equal(counted, lengths)
        np.testing.assert_allclose(y, right, rtol=1e-5, atol=1e-5)
        for name in ours:
            np.testing.assert_array_equal(ours[name], theirs[name])
        for given in (ours, theirs):
            given["lengths"] = lengths.copy()
        for name in "qkv":
            ours[name] = floats(*ours[name].shape)
            theirs[name] = ours[name].copy()
    if native_entry_possible():
        row = next(one for one in tw.show_calls() if one.function == "__call__")
        assert row.repeated >= 2


def test_full_caches_are_refused_before_anything_is_written() -> None:
    g = step("bhsd")
    run = g.compile()
    given = arrays(g, 2, {"batch": BATCH, "capacity": CAPACITY})
    for _ in range(3):
        run(**given)
    before = given["k_cache"].copy()
    given["lengths"][1] = CAPACITY - 1
    given["k"][...] = 9
    with pytest.raises(errors.CacheFull):
        run(**given)
    np.testing.assert_array_equal(given["k_cache"], before)


def test_an_append_that_nothing_reads_stays() -> None:
    g = Graph()
    k_cache, v_cache = (g.input(name, shape=(1, 1, 4, 2)) for name in ("k_cache", "v_cache"))
    new = g.input("new", shape=(1, 1, 1, 2))
    g.append_kv(k_cache, v_cache, new, new, np.zeros(1, np.int64))
    g.output(g.relu(new))
    cache = np.zeros((1, 1, 4, 2), np.float32)
    g.compile()(cache, cache.copy(), np.ones((1, 1, 1, 2), np.float32))
    assert cache[0, 0, :, 0].tolist() == [1, 0, 0, 0]
    assert len(g.network.written) == 2


@pytest.mark.parametrize("how", ["read-only", "a list", "misaligned"])
def test_caches_that_cannot_be_written(how: str) -> None:
    g = step("bhsd")
    given: dict[str, Any] = arrays(g, 1, {"batch": BATCH, "capacity": CAPACITY})
    if how == "read-only":
        given["v_cache"].flags.writeable = False
    elif how == "a list":
        given["v_cache"] = given["v_cache"].tolist()
    else:
        raw = np.zeros(given["v_cache"].nbytes + 1, np.uint8)[1:]
        given["v_cache"] = raw.view(np.float32).reshape(given["v_cache"].shape)
    with pytest.raises(errors.GraphInput, match="v_cache: the graph writes to it"):
        g.compile()(**given)


def test_caches_are_inputs() -> None:
    g = Graph()
    x, lengths = g.input("x", shape=(1, 1, 4, 2)), g.input("lengths", "i64", (1,))
    values: tuple[Any, ...] = (g.relu(x), np.zeros((1, 1, 4, 2), np.float32))
    for first in values:
        with pytest.raises(errors.GraphShape, match="must be an input"):
            g.append_kv(first, x, x[:, :, :1], x[:, :, :1], lengths)
    with pytest.raises(errors.GraphShape, match="other columns"):
        g.append_kv(x, x, x[..., :1], x, lengths)
    with pytest.raises(errors.GraphShape, match="no operand 'pages'"):
        g.append_kv(x, x, x, x, lengths, pages=lengths)
    with pytest.raises(errors.GraphDtype, match="int8 with scales"):
        g.append_kv(g.input("c", "i8", (1, 1, 4, 2)), x, x, x, lengths)
