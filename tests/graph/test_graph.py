"""Compiled graphs: every node against NumPy, repeated in machine code, for all sizes; every refusal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
from support import Array

import tilewright as tw
from tilewright import errors
from tilewright.calls.layout import native_entry_possible
from tilewright.calls.repeated import replay
from tilewright.graph.builder import Graph
from tilewright.graph.execute import evaluate_network
from tilewright.graph.nodes.elementwise import BINARY, UNARY
from tilewright.graph.value import Value
from tilewright.llvm.quick import quick_code

RANDOM = np.random.default_rng(5)


def floats(*shape: int, dtype: Any = np.float32) -> Array:
    return RANDOM.standard_normal(shape).astype(dtype)


def repeats_of_graphs() -> tuple[int, int]:
    """Calls of compiled graphs that machine code made, and that Python will make again."""
    rows = [row for row in tw.show_calls() if row.function == "__call__"]
    return sum(row.repeated for row in rows), sum(sum(row.python.values()) for row in rows)


def check(g: Graph, *inputs: Array, tolerance: float = 2e-6, native: bool = True) -> list[Array]:
    """Runs a graph three times on different data and compares with its meaning in float64."""
    run = g.compile()
    if native and native_entry_possible():
        quick_code.finish()  # else one of these calls may end it, and recordings with it
        replay().table.clear()  # so that it does not fill up, and is cleared, between these calls
    before = repeats_of_graphs()
    found: list[Array] = []
    for _ in range(3):
        wide = [one.astype(np.float64) if one.dtype == np.float32 else one for one in inputs]
        expected = evaluate_network(g.network, wide)
        result = run(*inputs)
        found = list(result) if isinstance(result, tuple) else [result]
        assert [one.shape for one in found] == [one.shape for one in expected]
        for one, right in zip(found, expected, strict=True):
            if one.dtype.kind == "f":
                scale = max(1.0, float(np.nanmax(abs(right), initial=0)))
                np.testing.assert_allclose(one, right, rtol=tolerance, atol=tolerance * scale)
            else:
                np.testing.assert_array_equal(one, right)
        for one in inputs:
            if one.dtype.kind == "f" and one.flags.writeable:
                one[...] = floats(*one.shape)
    if native and native_entry_possible():
        repeated, python = (now - then for now, then in zip(repeats_of_graphs(), before, strict=True))
        assert (repeated, python) == (2, 0)
    return found


Build = Callable[[Graph, Value], Value]

#: One graph for each kind of node and option, on an x of shape (batch, length, 24).
NODES: dict[str, Build] = {
    "linear": lambda g, x: g.linear(x, floats(16, 24), floats(16), "gelu"),
    "linear, packed": lambda g, x: g.linear(x, tw.pack(floats(24, 16))),
    "linear, residual": lambda g, x: g.linear(x, floats(24, 24), residual=x),
    "linear, bias and residual": lambda g, x: g.linear(g.relu(x), floats(24, 24), floats(24), residual=x),
    "matmul": lambda g, x: g.matmul(x, g.transpose(x, (0, 2, 1)), alpha=0.5),
    "matmul of vectors": lambda g, x: x @ floats(24),
    "einsum": lambda g, x: g.einsum("bik,bjk->bji", x, x),
    "einsum, implicit": lambda g, x: g.einsum("bik, bjk", x, x),
    "attention": lambda g, x: g.attention(*(heads(g, x) for _ in range(3))),
    "attention, causal": lambda g, x: g.attention(*(heads(g, x) for _ in range(3)), causal=True, scale=0.3),
    "attention, window": lambda g, x: g.attention(
        *(heads(g, x) for _ in range(3)), window=(2, 1), softcap=3.0
    ),
    "gated": lambda g, x: g.gated(x, g.linear(x, floats(24, 24)), "gelu_tanh"),
    "gated, halves": lambda g, x: g.gated(x[..., 12:], x[..., :12]),
    "gated, broadcast": lambda g, x: g.gated(x, x[:, :1]),
    "rotary": lambda g, x: g.rotary(heads(g, x), *tw.rotary_tables(64, 6)),
    "rotary, interleaved": lambda g, x: g.rotary(x, *tw.rotary_tables(64, 16), interleaved=True),
    "rotary, tokens first": lambda g, x: g.rotary(
        g.reshape(x, (*x.shape[:2], 3, 8)), *tw.rotary_tables(64, 8), layout="bshd"
    ),
    "softmax": lambda g, x: g.softmax(x),
    "softmax of a middle axis": lambda g, x: g.softmax(x, 1),
    "log_softmax": lambda g, x: g.log_softmax(x, (-2, -1)),
    "layer_norm": lambda g, x: g.layer_norm(x, floats(24), floats(24)),
    "rms_norm": lambda g, x: g.rms_norm(x, floats(24), eps=1e-6),
    "sum": lambda g, x: g.reduce("sum", x, 1),
    "mean": lambda g, x: g.reduce("mean", x, (1, 2), keepdims=True),
    "max of all": lambda g, x: g.reduce("max", x),
    "prod": lambda g, x: g.reduce("prod", x * 0.5, -1),
    "where": lambda g, x: g.where(g.binary("less", x, 0.0), x * 2.0, 1.0),
    "cast": lambda g, x: g.cast(g.cast(x * 10.0, "i32"), "f32"),
    "reshape": lambda g, x: x.reshape("batch", -1, 3, 8),
    "reshape that copies": lambda g, x: g.transpose(x, (0, 2, 1)).reshape(-1, 4),
    "transpose": lambda g, x: x.transpose(2, 0, 1),
    "slices": lambda g, x: x[:, :2, 3:-4:1] + x[:, -2:, 4:21],
    "an index and a new axis": lambda g, x: x[0, :, None, ::3],
    "an empty slice": lambda g, x: x[:, 3:1, 2:],
    "expand": lambda g, x: g.expand(x[:, :1], ("batch", 5, 24)),
    "concatenate": lambda g, x: g.concatenate([x, x * 2.0, x[:, :1]], 1),
    "take": lambda g, x: g.take(x, np.array([[3, 0], [-1, 5]]), 2),
    "operators": lambda g, x: (1.0 - x) * x / 2.0 + (-x) - 3.0 * x,
}


def heads(g: Graph, x: Value) -> Value:
    """x as four heads of a batch, of other values each time."""
    return g.transpose(g.reshape(x * float(RANDOM.uniform(1, 2)), ("batch", "length", 4, 6)), (0, 2, 1, 3))


@pytest.mark.parametrize("name", NODES)
def test_nodes(name: str) -> None:
    g = Graph()
    x = g.input("x", shape=("batch", "length", 24))
    g.output(NODES[name](g, x))
    check(g, floats(2, 5, 24), tolerance=1e-5)


@pytest.mark.parametrize("name", ["gelu", "linear", "softmax"])
def test_one_plan_serves_all_sizes(name: str) -> None:
    g = Graph()
    x = g.input("x", shape=("batch", "length", 24))
    g.output(NODES[name](g, x) if name in NODES else g.unary(name, x))
    run = g.compile()
    for batch, length in ((1, 1), (3, 7), (2, 40), (0, 3), (1, 0)):
        given = floats(batch, length, 24)
        (expected,) = evaluate_network(g.network, [given.astype(np.float64)])
        np.testing.assert_allclose(run(given), expected, rtol=1e-5, atol=1e-5)


def test_functions_of_one_operand() -> None:
    """All in one graph: floats in (0.1, 0.9), where every function is defined."""
    g = Graph()
    x = g.input("x", shape=("n",))
    for name in UNARY:
        if name not in ("invert", "arccosh"):
            g.output(g.unary(name, x), name)
    given = RANDOM.uniform(0.1, 0.9, 37).astype(np.float32)
    expected = evaluate_network(g.network, [given.astype(np.float64)])
    found = g.compile()(given)
    for (name, _), one, right in zip(g.network.outputs, found, expected, strict=True):
        np.testing.assert_allclose(one, right, rtol=2e-6, err_msg=name)


def test_functions_of_two_operands() -> None:
    g = Graph()
    a, b = g.input("a", "i32", ("n",)), g.input("b", "i32", ("n",))
    for name in BINARY:
        g.output(g.binary(name, a, b), name)
    given = [RANDOM.integers(1, 9, 20).astype(np.int32) for _ in range(2)]
    for (name, _), one, right in zip(
        g.network.outputs, g.compile()(*given), evaluate_network(g.network, given), strict=True
    ):
        assert one.dtype == right.dtype
        np.testing.assert_array_equal(one, right, err_msg=name)


@pytest.mark.parametrize("dtype", ["f64", "bf16", "f16"])
def test_other_floats(dtype: str) -> None:
    g = Graph()
    x = g.input("x", dtype, ("n", 16))
    kind = x.dtype
    w = floats(16, 16).astype(kind)
    h = g.layer_norm(g.linear(x, w, activation="relu", bias=w[0]), w[1], w[2])
    g.output(g.softmax(h + x))
    given = floats(6, 16).astype(kind)
    run = g.compile()
    results = [run(given) for _ in range(3)]
    expected = evaluate_network(g.network, [given])[0].astype(np.float64)
    assert results[0].dtype == kind
    step = float(ml_dtypes.finfo(kind).eps)  # type: ignore[no-untyped-call]
    np.testing.assert_allclose(results[0].astype(np.float64), expected, rtol=40 * step, atol=8 * step)
    for one in results[1:]:
        assert one.tobytes() == results[0].tobytes()


@pytest.mark.parametrize("causal", [False, True, "upper_left"])
def test_attention_of_packed_sequences(causal: Any) -> None:
    """Offsets in an input: other lengths take the same recipe where the same decisions hold."""
    g = Graph()
    x, ends = g.input("x", shape=("tokens", 2, 8)), g.input("ends", "i32", shape=("ends",))
    y = g.attention(g.relu(x), x * 2.0, x, cu_seqlens_q=ends, layout="bshd", causal=causal)
    g.output(g.attention(y, y, x, cu_seqlens_q=ends, layout="bshd"))
    run = g.compile()
    for lengths in ([3, 5, 2], [5, 3, 2], [4, 4, 2], [10, 0, 0], [2, 3, 5]):
        given, at = floats(10, 2, 8), np.cumsum([0, *lengths]).astype(np.int32)
        (expected,) = evaluate_network(g.network, [given.astype(np.float64), at])
        np.testing.assert_allclose(run(given, at), expected, rtol=1e-5, atol=1e-5)


def test_attention_with_lengths_and_vectors_of_heads() -> None:
    g = Graph()
    x, lengths = g.input("x", shape=("batch", 2, "length", 8)), g.input("lengths", "i64", shape=("batch",))
    sinks, slopes = floats(2), np.array([0.5, 0.25], np.float32)
    y = g.attention(x, x, g.relu(x), kv_lengths=lengths, causal=True, sinks=sinks, alibi_slopes=slopes)
    mask = g.constant(RANDOM.random((6, 6)) > 0.3)
    y = g.attention(y, x, x, q_lengths=lengths, kv_lengths=lengths, window=(3, 0), mask=mask)
    g.output(g.attention(y, x, x, q_offset=lengths, causal=True))
    run = g.compile()
    for given in ([3, 5], [5, 3], [4, 6], [1, 2]):
        values, counts = floats(2, 2, 6, 8), np.array(given)
        (expected,) = evaluate_network(g.network, [values.astype(np.float64), counts])
        np.testing.assert_allclose(run(values, counts), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
@pytest.mark.parametrize("shape", [(5,), (2, 5)])
def test_rotary_with_positions(layout: Any, shape: tuple[int, ...]) -> None:
    g = Graph()
    x = g.input("x", shape=("batch", 3, "n", 8) if layout == "bhsd" else ("batch", "n", 3, 8))
    positions = g.input("positions", "i64", ("n",) if len(shape) == 1 else ("batch", "n"))
    g.output(g.rotary(x, *tw.rotary_tables(40, 8), positions, layout=layout))
    check(g, floats(2, *((3, 5) if layout == "bhsd" else (5, 3)), 8), RANDOM.integers(0, 40, shape))
    with pytest.raises(errors.IndexPastEnd):
        g.compile()(floats(2, *((3, 5) if layout == "bhsd" else (5, 3)), 8), np.full(shape, 40))


def test_embeddings_are_checked_in_every_run() -> None:
    g = Graph()
    g.output(g.embedding(floats(30, 8), g.input("places", "i64", ("n", "m"))))
    check(g, RANDOM.integers(0, 30, (2, 5)))
    run = g.compile()
    for places in ([[29]], [[30]], [[0]], [[-1]], [[3]]):
        wrong = not 0 <= places[0][0] < 30
        with pytest.raises(errors.IndexPastEnd) if wrong else contextlib.nullcontext():
            run(np.array(places))


def test_inputs_by_name_and_in_order() -> None:
    g = Graph()
    a, b = g.input("a", shape=("n",)), g.input("b", shape=("n",))
    g.output(a - b)
    run, x, y = g.compile(), floats(4), floats(4)
    for _ in range(3):
        assert (run(x, y) == run(b=y, a=x)).all()
        assert (run(x, b=y) == x - y).all()


def test_results_are_arrays_of_their_own() -> None:
    """Outputs that are inputs, views, constants, or two views of one value."""
    g = Graph()
    x = g.input("x", shape=("n", 6))
    y = g.relu(x)
    for value in (x, y, y[:, :3], g.transpose(y), g.constant(np.arange(3.0)), y):
        g.output(value)
    run, given = g.compile(), floats(5, 6)
    for _ in range(3):
        found = run(given)
        right = np.maximum(given, 0)
        for one, expected in zip(
            found, (given, right, right[:, :3], right.T, np.arange(3.0), right), strict=True
        ):
            np.testing.assert_array_equal(one, expected)
        for number, one in enumerate(found):
            one[...] = number  # none shares memory with another one, or with an input
        assert [float(one.flat[0]) for one in found] == [0, 1, 2, 3, 4, 5]
        assert (given != 0).any()


def test_strided_inputs() -> None:
    g = Graph()
    x = g.input("x", shape=("n", 8))
    g.output(g.linear(x, floats(8, 8)) + x)
    whole = floats(20, 16)
    check(g, whole[::2, ::2], tolerance=1e-5)
    check(g, whole[:8, :8].T, tolerance=1e-5)


def test_bits_do_not_depend_on_threads() -> None:
    g = Graph()
    x = g.input("x", shape=("n", 256))
    g.output(
        g.softmax(g.linear(g.linear(x, floats(512, 256), activation="gelu"), floats(256, 512), residual=x))
    )
    run, given = g.compile(), floats(300, 256)
    one = run(given, threads=1)
    for _ in range(3):
        assert (run(given, threads=2) == one).all()
        assert (run(given) == one).all()


def test_memory_is_planned_once_per_shape() -> None:
    """A chain of many layers needs the memory of two values, whatever its length."""
    arenas = []
    for layers in (3, 12):
        g = Graph()
        x = g.input("x", shape=("n", 32))
        for _ in range(layers):
            x = g.linear(x, floats(32, 32))
        g.output(x)
        arenas.append(g.compile().plan(floats(10, 32)).arena_bytes)
    assert arenas == [2 * 10 * 32 * 4, 2 * 10 * 32 * 4]


def refused(kind: type[Exception], build: Callable[[Graph, Value], Any]) -> str:
    g = Graph()
    x = g.input("x", shape=("n", 4))
    with pytest.raises(kind) as caught:
        build(g, x)
    return str(caught.value)


def made(g: Graph, value: Value) -> Graph:
    """The graph with an output."""
    g.output(value)
    return g


REFUSALS: tuple[tuple[type[Exception], Callable[[Graph, Value], Any], str], ...] = (
    (errors.GraphShape, lambda g, x: g.linear(x, floats(3, 5)), "x has 4 columns, the weight 5"),
    (errors.GraphShape, lambda g, x: g.linear(x, floats(3, 4), floats(4)), "the bias must have 3 elements"),
    (errors.GraphShape, lambda g, x: x @ floats(3, 3), "must be equal"),
    (errors.GraphShape, lambda g, x: x + floats(3), "do not broadcast"),
    (errors.GraphShape, lambda g, x: x + g.input("y", shape=("m", 4)), "sizes n and m"),
    (errors.GraphShape, lambda g, x: g.reshape(x, (3, 3)), "as many elements"),
    (errors.GraphShape, lambda g, x: g.reshape(x, (-1, 3)), "no multiple"),
    (errors.GraphShape, lambda g, x: g.softmax(x, 2), "axis 2"),
    (errors.GraphShape, lambda g, x: g.transpose(x, (0, 0)), "no order"),
    (errors.GraphShape, lambda g, x: x[:, 7], "bounds 7:8 leave"),
    (errors.GraphShape, lambda g, x: x[0, 0, 0], "more indices"),
    (errors.GraphShape, lambda g, x: x[:, ::-1], "a positive integer"),
    (errors.GraphShape, lambda g, x: x[:, [0]], "use take"),
    (errors.InvalidChoice, lambda g, x: g.unary("cbrt", x), "gelu_tanh"),
    (errors.GraphShape, lambda g, x: g.einsum("ij,jk->ik", x), "of 2 operands"),
    (errors.GraphShape, lambda g, x: g.concatenate([x, x[:, :2]], 0), "sizes of other axes"),
    (errors.GraphShape, lambda g, x: g.attention(x, x, x, bias=x), "no operand 'bias'"),
    (errors.GraphDtype, lambda g, x: g.attention(x, x, x, kv_lengths=x), "an integer type"),
    (errors.GraphDtype, lambda g, x: g.take(x, x), "an integer type"),
    (errors.GraphDtype, lambda g, x: g.embedding(x, x), "an integer type"),
    (errors.GraphDtype, lambda g, x: g.gated(x, floats(4, dtype=np.float64)), "must be float32"),
    (errors.GraphShape, lambda g, x: g.gated(x, floats(3)), "do not broadcast"),
    (errors.GraphShape, lambda g, x: g.rotary(x, *tw.rotary_tables(8, 6)), "3 pairs are rotated"),
    (errors.GraphShape, lambda g, x: g.rotary(x, floats(3, 2), floats(2, 2)), "one type and shape"),
    (errors.InvalidChoice, lambda g, x: g.gated(x, x, cast("Any", "relu6")), "gelu_tanh"),
    (errors.GraphDtype, lambda g, x: g.where(x, x, x), "bool"),
    (errors.GraphOperand, lambda g, x: g.relu("y"), "'y'"),
    (errors.GraphOperand, lambda g, x: g.relu(Graph().input("x", shape=(1,))), "another graph"),
    (errors.GraphInput, lambda g, x: g.input("x", shape=(1,)), "has an input of this name"),
    (errors.GraphInput, lambda g, x: g.input("y", shape=(-1,)), "size -1 is negative"),
    (errors.GraphShape, lambda g, x: g.input("y", shape=cast("Any", (0.5,))), "neither an integer"),
    (errors.GraphShape, lambda g, x: g.reduce("sum", x, (0, 0)), "name an axis twice"),
    (errors.GraphShape, lambda g, x: x[..., 0, ...], "one ellipsis"),
    (errors.GraphDtype, lambda g, x: x + np.array("text"), "a type of numbers"),
    (errors.GraphWithoutOutput, lambda g, x: g.compile(), "g.output"),
    (errors.InvalidChoice, lambda g, x: made(g, x).compile(precision="i3"), "i8-weights"),
    (
        errors.UnknownSize,
        lambda g, x: made(g, g.expand(x[:1], ("m", 4))).compile()(floats(2, 4)),
        "'m'",
    ),
)


@pytest.mark.parametrize("number", range(len(REFUSALS)))
def test_refusals(number: int) -> None:
    kind, build, words = REFUSALS[number]
    assert words in refused(kind, build)


def test_refused_calls() -> None:
    g = Graph()
    x, y = g.input("x", shape=("n", 4)), g.input("y", "i64", shape=("n",))
    g.output(g.take(x, y))
    run = g.compile()
    good = floats(3, 4), np.array([0, 2, 1])
    calls: tuple[tuple[type[Exception], tuple[Any, ...], dict[str, Any], str], ...] = (
        (errors.GraphInputs, (good[0],), {}, "y is missing"),
        (errors.GraphInputs, (*good, good[0]), {}, "found 3"),
        (errors.GraphInputs, good, {"x": good[0]}, "x is given twice"),
        (errors.GraphInputs, good, {"z": good[0]}, "z is none of them"),
        (errors.GraphInput, (good[0], good[1].astype(np.int32)), {}, "dtype int32, must be int64"),
        (errors.GraphInput, (good[0][0], good[1]), {}, "1 dimensions, must have 2"),
        (errors.GraphInput, (floats(3, 5), good[1]), {}, "axis 1 has 5 elements, must have 4"),
        (errors.GraphInput, (floats(2, 4), good[1]), {}, "axis 0 has 3 elements, must have 2 (n)"),
    )
    for kind, arguments, named, words in calls:
        for _ in range(2):
            with pytest.raises(kind) as caught:
                run(*arguments, **named)
            assert words in str(caught.value)
    for _ in range(3):
        with pytest.raises(IndexError):
            run(good[0], np.array([0, 3, 1]))
        np.testing.assert_array_equal(run(*good), good[0][good[1]])


def test_nothing_keeps_a_graph() -> None:
    """A graph that was called many times is given back with its weights."""
    import gc
    import weakref

    weight = floats(16, 16)
    alive = weakref.ref(weight)
    g = Graph()
    g.output(g.linear(g.input("x", shape=("n", 16)), weight))
    run = g.compile()
    del weight, g
    for rows in (3, 4, 3, 4):
        run(floats(rows, 16))
    gone = weakref.ref(run.network.nodes[0])
    del run
    gc.collect()
    assert (alive(), gone()) == (None, None)


def test_numbers_are_converted() -> None:
    """An array without axes, of which an index without an ellipsis would be a number."""
    g = tw.Graph()
    g.output(g.cast(g.input("x", "f64", ()), "f32"))
    run = g.compile()
    for value in (1.5, -2.25):
        found = run(np.array(value))
        assert found.dtype == np.float32
        assert found == value
