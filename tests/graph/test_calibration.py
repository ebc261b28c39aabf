"""Weights of few bits in graphs: which layers keep 8, and what sample inputs make better."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from support import Array

import tilewright as tw
from tilewright.errors import GraphInput, GraphInputs, InvalidOperand, UnsupportedArgument
from tilewright.graph.builder import Graph
from tilewright.graph.calibration import input_statistics
from tilewright.graph.execute import evaluate_network
from tilewright.graph.network import Network
from tilewright.graph.nodes.elementwise import BinaryNode
from tilewright.graph.nodes.products import LinearNode
from tilewright.graph.passes.attention_projections import attention_projections
from tilewright.graph.passes.balance_columns import column_balances
from tilewright.graph.passes.fuse_epilogues import fuse_epilogues
from tilewright.graph.passes.pack_weights import pack_weights
from tilewright.graph.passes.pipeline import run_passes
from tilewright.graph.value import Value

RANDOM = np.random.default_rng(11)
WIDTH = 64


def floats(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def block(g: Graph, x: Value) -> Value:
    """A layer of a transformer, with a norm before each of its halves."""
    h = g.rms_norm(x, floats(WIDTH))
    q, k, v = (g.reshape(g.linear(h, floats(WIDTH, WIDTH)), ("n", 4, 16)) for _ in range(3))
    seen = g.reshape(g.attention(q, k, v, layout="bshd"), ("n", WIDTH))
    x = x + g.linear(seen, floats(WIDTH, WIDTH))
    inner = g.linear(g.layer_norm(x, floats(WIDTH), floats(WIDTH)), floats(128, WIDTH), activation="gelu")
    return x + g.linear(inner, floats(WIDTH, 128))


def graph_of(build: Callable[[Graph, Value], Value]) -> Graph:
    g = Graph()
    g.output(build(g, g.input("x", shape=("n", WIDTH))), "y")
    return g


def forms(network: Network) -> list[str]:
    """The forms of the weights of linear layers, in their order."""
    weights = [network.nodes[node.operands[1]] for node in network.nodes if isinstance(node, LinearNode)]
    return [w.value.form.weights.name for w in weights]  # type: ignore[attr-defined]


def relative_error(found: Array, expected: Array) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


# --- which layers have 8 bits ---------------------------------------------------------------------


def test_projections_of_attention_keep_eight_bits() -> None:
    g = graph_of(lambda g, x: block(g, block(g, x)))
    before = run_passes(g.network, "f32")
    layers = [at for at, node in enumerate(before.nodes) if isinstance(node, LinearNode)]
    assert attention_projections(before) == {layers[0], layers[4]}
    assert forms(run_passes(g.network, "i4-weights")) == ["i8", "i4g32z", "i4g32z", "i4g32z"] * 2
    samples = [floats(50, WIDTH)]
    calibrated = g.compile(precision="i4-weights", calibration=samples).network
    assert forms(calibrated) == ["i8", "i4g32z", "i4g32z", "i4g32z"] * 2


def test_projections_are_found_through_norms_and_sums_not_through_products() -> None:
    def build(g: Graph, x: Value) -> Value:
        far = g.linear(x, floats(WIDTH, WIDTH))
        q = g.rms_norm(g.linear(far, floats(WIDTH, WIDTH)) * 2.0 + x, floats(WIDTH))
        k = g.matmul(g.linear(x, floats(WIDTH, WIDTH)), floats(WIDTH, WIDTH))
        return g.attention(q, k, x, causal=True)

    network = graph_of(build).network
    layers = [at for at, node in enumerate(network.nodes) if isinstance(node, LinearNode)]
    assert attention_projections(network) == {layers[1]}


def test_keys_and_values_of_another_input_are_projections() -> None:
    def build(g: Graph, x: Value) -> Value:
        other = g.input("other", shape=("n", WIDTH))
        q, k, v = (g.linear(one, floats(WIDTH, WIDTH)) for one in (x, other, g.relu(other)))
        return g.attention(q, k, v)

    network = graph_of(build).network
    assert len(attention_projections(network)) == 3


@pytest.mark.parametrize("calibrated", [False, True])
def test_deep_weights_of_eight_bits_have_groups(calibrated: bool) -> None:
    for depth, form in ((512, "i8"), (576, "i8g512")):
        g = Graph()
        g.output(g.linear(g.input("x", shape=("n", depth)), floats(8, depth)))
        samples = [floats(5, depth)] if calibrated else None
        assert forms(g.compile(precision="i8-weights", calibration=samples).network) == [form]
    assert forms(g.compile(precision="i8-dynamic", calibration=samples).network) == ["i8"]


def test_weights_of_four_bits_are_fitted() -> None:
    g = graph_of(lambda g, x: g.linear(x, WEIGHT))
    found = g.compile(precision="i4-weights")(np.eye(WIDTH, dtype=np.float32))
    fitted = tw.quantize_weights(WEIGHT.T, bits=4, group=32, symmetric=False, rounding="hqq")
    assert np.array_equal(found, tw.unpack(fitted))


WEIGHT = floats(48, WIDTH)


# --- statistics -----------------------------------------------------------------------------------


def test_statistics_are_of_all_calls() -> None:
    def build(g: Graph, x: Value) -> Value:
        y = g.linear(x.reshape(1, "n", WIDTH), WEIGHT, activation="relu")
        return g.linear(y, floats(5, 48)) + g.linear(y, floats(5, 48))

    network, calls = graph_of(build).network, [floats(7, WIDTH), floats(30, WIDTH)]
    found = input_statistics(network, [[x] for x in calls], moments=True)
    x = np.concatenate(calls)
    y = np.maximum(x @ WEIGHT.T, 0)
    assert len(found) == 2
    for one, expected in zip(found.values(), (x, y), strict=True):
        assert one.rows == 37
        np.testing.assert_allclose(one.largest, np.abs(expected).max(0), rtol=1e-4)
        assert one.moments is not None
        np.testing.assert_allclose(one.moments, expected.T @ expected, rtol=1e-4, atol=1e-3)
    found = input_statistics(network, [[x] for x in calls], moments=False)
    assert all(one.moments is None for one in found.values())


# --- balanced columns -----------------------------------------------------------------------------


def uneven(rows: int) -> Array:
    """Rows of which some columns are a hundred times larger, after a norm too."""
    found = floats(rows, WIDTH)
    found[:, [3, 40]] *= 100
    return found


def balanced(network: Network) -> Network:
    """The network with weights packed for uneven inputs."""
    calls = [[uneven(40)], [uneven(3)]]
    return pack_weights(network, "i8-dynamic", lambda one: input_statistics(one, calls, moments=False))


def two_layers(g: Graph, x: Value) -> Value:
    norm = g.layer_norm(x, G, B)
    return g.linear(norm, WEIGHT) * g.linear(norm, OTHER)


def with_residual(g: Graph, x: Value) -> Value:
    norm = g.layer_norm(x, G, B)
    return g.linear(norm, SQUARE) + norm


def without_weight(g: Graph, x: Value) -> Value:
    return g.linear(g.layer_norm(x), SQUARE)


G, B, OTHER, SQUARE = floats(WIDTH), floats(WIDTH), floats(48, WIDTH), floats(WIDTH, WIDTH)
SQUARE[:, [3, 40]] /= 50  # as trained models have it: large columns do not outweigh the others


@pytest.mark.parametrize(
    ("build", "folded"), [(two_layers, True), (with_residual, False), (without_weight, False)]
)
def test_balanced_columns_keep_the_meaning(build: Callable[[Graph, Value], Value], folded: bool) -> None:
    """Factors go into a norm that only linear layers read; otherwise a product has them."""
    before = fuse_epilogues(graph_of(build).network)
    after = balanced(before)
    x = [uneven(20).astype(np.float64)]
    (expected,), (found,) = evaluate_network(before, x), evaluate_network(after, x)
    assert relative_error(found, expected) < 0.02  # that of weights of 8 bits
    (balance,) = column_balances(before, input_statistics(before, [[uneven(40)]], moments=False)).values()
    assert balance.folded == folded
    assert balance.factors[[3, 40]].min() > 2 * np.median(balance.factors)
    counts = [sum(isinstance(node, BinaryNode) for node in one.nodes) for one in (before, after)]
    assert counts[1] - counts[0] == (not folded)


def test_balanced_columns_take_errors_off_rows_of_eight_bits() -> None:
    g = graph_of(with_residual)
    x = uneven(200)
    expected = g.compile()(x)
    errors = [
        relative_error(g.compile(precision="i8-dynamic", calibration=calls)(x), expected)
        for calls in (None, [uneven(100)])
    ]
    assert errors[1] < 0.5 * errors[0]


def test_a_weight_of_two_layers_is_rounded_for_each() -> None:
    """For the inputs of each; without samples the layers share it."""
    g = graph_of(lambda g, x: g.linear(g.relu(g.linear(x, SQUARE)), SQUARE))
    for calls, count in ((None, 1), ([floats(50, WIDTH)], 2)):
        network = g.compile(precision="i4-weights", calibration=calls).network
        layers = [node for node in network.nodes if isinstance(node, LinearNode)]
        assert len({node.operands[1] for node in layers}) == count


@pytest.mark.parametrize("precision", ["i4-weights", "i8-weights"])
def test_rounding_for_sample_inputs(precision: str) -> None:
    mix = floats(8, WIDTH)

    def correlated(rows: int) -> Array:
        return floats(rows, 8) @ mix + 0.2 * floats(rows, WIDTH)

    g = graph_of(lambda g, x: g.linear(x, WEIGHT))
    x = correlated(50)
    expected = x @ WEIGHT.T
    errors = [
        relative_error(g.compile(precision=precision, calibration=calls)(x), expected)
        for calls in (None, [correlated(200), correlated(100)])
    ]
    assert errors[1] < 0.6 * errors[0]


# --- arguments ------------------------------------------------------------------------------------


def test_calls_are_given_by_position_by_name_or_as_one_array() -> None:
    g, x = graph_of(lambda g, x: g.linear(x, WEIGHT)), floats(40, WIDTH)
    calls: tuple[Any, ...] = ([(x,)], [[x]], [{"x": x}], [x], iter([x]), [x[:10], {"x": x[10:]}])
    found = [g.compile(precision="i4-weights", calibration=one)(x) for one in calls]
    for other in found[1:5]:
        assert np.array_equal(found[0], other)
    np.testing.assert_allclose(found[0], found[5], atol=1)


X = floats(3, WIDTH)


@pytest.mark.parametrize(
    ("named", "error", "words"),
    [
        ({"precision": "f32", "calibration": [X]}, UnsupportedArgument, "'i4-weights' or 'i8-dynamic'"),
        ({"calibration": []}, InvalidOperand, "it is empty, must be a list of calls"),
        ({"calibration": X}, InvalidOperand, "must be a list of calls"),
        ({"calibration": 3}, InvalidOperand, "it is 3, must be a list of calls"),
        ({"calibration": {"x": X}}, InvalidOperand, "must be a list of calls"),
        ({"calibration": [()]}, GraphInputs, "x is missing"),
        ({"calibration": [{"z": X}]}, GraphInputs, "z is none of them"),
        ({"calibration": [X[:, :5]]}, GraphInput, "axis 1 has 5 elements"),
        ({"calibration": [X * np.float32(np.nan)]}, InvalidOperand, "NaN or infinities"),
    ],
)
def test_wrong_arguments(named: Mapping[str, Any], error: type[Exception], words: str) -> None:
    g = graph_of(lambda g, x: g.linear(x, WEIGHT))
    with pytest.raises(error, match=words):
        g.compile(**{"precision": "i4-weights", **named})
