"""Passes: what each makes of a small network, as text, and that the meaning stays."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from support import Array

import tilewright as tw
from tilewright.graph.builder import Graph
from tilewright.graph.compiled import CompiledGraph
from tilewright.graph.execute import evaluate_network
from tilewright.graph.network import Network
from tilewright.graph.passes.common import merge_common
from tilewright.graph.passes.fold_constants import fold_constants
from tilewright.graph.passes.fuse_epilogues import fuse_epilogues, linear_products
from tilewright.graph.passes.merge_linears import merge_linears
from tilewright.graph.passes.pack_weights import pack_weights
from tilewright.graph.passes.pipeline import run_passes
from tilewright.graph.passes.recognise_attention import recognise_attention, tokens_first
from tilewright.graph.passes.recognise_functions import fuse_norm_weights, recognise_functions
from tilewright.graph.passes.recognise_gates import recognise_gates
from tilewright.graph.passes.simplify import simplify
from tilewright.graph.value import Value
from tilewright.spec.dtype import BF16

RANDOM = np.random.default_rng(3)


def floats(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def network(build: Callable[[Graph, Value], Value], *shape: int | str) -> Network:
    g = Graph()
    g.output(build(g, g.input("x", shape=shape or ("n", 4))), "y")
    return g.network


def kinds(found: Network) -> list[str]:
    """The nodes in short, without inputs and constants and the names of constants' operands."""
    lines = [line for line in str(found).splitlines() if " constant" not in line and " input " not in line]
    return [re.sub(r"%\d+( = )?|[()]|, | : .*", " ", line).strip() for line in lines[:-1]]


def words(found: Network) -> list[str]:
    return [re.sub(r"\s+", " ", line) for line in kinds(found)]


def same_meaning(before: Network, after: Network) -> None:
    shapes = [
        tuple(3 if size.constant is None else size.constant for size in node.shape)
        for _, node in before.inputs
    ]
    arrays = [floats(*shape).astype(np.float64) for shape in shapes]
    for one, other in zip(evaluate_network(before, arrays), evaluate_network(after, arrays), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def layer_norm(g: Graph, x: Value, *, inverse: bool = False, square: bool = False) -> Value:
    moved = x - g.reduce("mean", x, -1, keepdims=True)
    power = moved * moved if square else g.binary("power", moved, 2.0)
    deviation = g.unary("sqrt", g.reduce("mean", power, -1, keepdims=True) + 1e-5)
    return moved * g.unary("reciprocal", deviation) if inverse else moved / deviation


def gelu(g: Graph, x: Value) -> Value:
    return x * 0.5 * (1.0 + g.unary("erf", x / float(np.sqrt(2))))


def gelu_tanh(g: Graph, x: Value) -> Value:
    inner = (x + g.binary("power", x, 3.0) * 0.044715) * float(np.sqrt(2 / np.pi))
    return 0.5 * x * (g.tanh(inner) + 1.0)


def attention(g: Graph, x: Value, *, mask: bool = False) -> Value:
    q, k, v = (g.transpose(g.reshape(x * f, ("n", 5, 2, 4)), (0, 2, 1, 3)) for f in (1.0, 2.0, 3.0))
    scores = q @ g.transpose(k, (0, 1, 3, 2)) / 2.0
    if mask:
        scores = scores + g.constant(np.where(floats(5, 5) > 0, 0, -1e9).astype(np.float32))
    return g.transpose(g.softmax(scores) @ v, (0, 2, 1, 3))


def attention_of_torch(g: Graph, x: Value) -> Value:
    """As PyTorch exports its fused attention: half of the scale on either side, no NaN, a mask of -inf."""
    q, k, v = (g.transpose(g.reshape(x * f, ("n", 5, 2, 4)), (0, 2, 1, 3)) for f in (1.0, 2.0, 3.0))
    mask = g.where(g.constant(floats(5, 5) > -1), g.constant(np.float32(0)), g.constant(np.float32(-np.inf)))
    weights = g.softmax((q * 0.5) @ (g.transpose(k, (0, 1, 3, 2)) * 0.5) + mask)
    return g.where(g.unary("isnan", weights), g.constant(np.float32(0)), weights) @ v


def attention_of_groups(g: Graph, x: Value, *, tiled: bool = False) -> Value:
    """Two heads of keys for four of queries, repeated side by side, or as a whole, which are other heads."""
    q = g.transpose(g.reshape(x, ("n", 5, 4, 2)), (0, 2, 1, 3))
    part = x[..., :4]
    k, v = (g.transpose(g.reshape(part * f, ("n", 5, 2, 2)), (0, 2, 1, 3)) for f in (2.0, 3.0))
    for_group = ("n", 1, 2, 5, 2) if tiled else ("n", 2, 1, 5, 2)
    k, v = (
        g.reshape(g.expand(g.reshape(one, for_group), ("n", 2, 2, 5, 2)), ("n", 4, 5, 2)) for one in (k, v)
    )
    return g.softmax(q @ g.transpose(k, (0, 1, 3, 2))) @ v


def read_twice(g: Graph, x: Value) -> Value:
    y = g.linear(x, floats(4, 4))
    return g.gelu(y) + y


def gate_read_twice(g: Graph, x: Value) -> Value:
    gate = g.gelu(x)
    return gate * x + gate


Case = tuple[Callable[[Network], Network], Callable[[Graph, Value], Value], tuple[int | str, ...], list[str]]

CASES: dict[str, Case] = {
    "constants": (fold_constants, lambda g, x: x + g.constant(floats(4)) * 2.0, (), ["binary add"]),
    "a broadcast stays": (
        fold_constants,
        lambda g, x: x + g.expand(floats(1, 1), (4, 4)),
        (4, 4),
        ["expand shape= 4 4", "binary add"],
    ),
    "common": (merge_common, lambda g, x: g.exp(x) + g.exp(x), (), ["unary exp", "binary add"]),
    "equal constants": (
        merge_common,
        lambda g, x: (x * np.float32(3)) + (x * np.float32(3)),
        (),
        ["binary multiply", "binary add"],
    ),
    "transposes": (simplify, lambda g, x: g.relu(x.transpose(1, 0).transpose(1, 0)), (), ["unary relu"]),
    "reshapes": (
        simplify,
        lambda g, x: x.reshape(-1).reshape("n", 2, 2),
        (),
        ["reshape shape= n 2 2"],
    ),
    "neutral numbers": (simplify, lambda g, x: g.relu((x * 1.0 + 0.0) / 1.0 - 0.0), (), ["unary relu"]),
    "zero minus x stays": (simplify, lambda g, x: 0.0 - x, (), ["binary subtract"]),
    "gelu": (recognise_functions, gelu, (), ["unary gelu"]),
    "gelu_tanh": (recognise_functions, gelu_tanh, (), ["unary gelu_tanh"]),
    "silu": (recognise_functions, lambda g, x: g.sigmoid(x) * x, (), ["unary silu"]),
    "no gelu": (
        recognise_functions,
        lambda g, x: x * 0.5 * (1.0 + g.unary("erf", x / 1.4)),
        (),
        ["binary multiply", "binary divide", "unary erf", "binary add", "binary multiply"],
    ),
    "layer norm": (recognise_functions, layer_norm, (), ["norm eps=1e-05"]),
    "layer norm, reciprocal": (
        recognise_functions,
        lambda g, x: layer_norm(g, x, inverse=True, square=True),
        (),
        ["norm eps=1e-05"],
    ),
    "rms norm": (
        recognise_functions,
        lambda g, x: x / g.unary("sqrt", g.reduce("mean", x * x, -1, keepdims=True) + 1e-5),
        (),
        ["norm kind=rms eps=1e-05"],
    ),
    "norm weights": (
        fuse_norm_weights,
        lambda g, x: g.layer_norm(x) * floats(4) + floats(4),
        (),
        ["norm weight=True bias=True"],
    ),
    "attention": (
        recognise_attention,
        attention,
        ("n", 5, 8),
        [
            *["binary multiply", "reshape shape= n 5 2 4", "transpose axes= 0 2 1 3"] * 3,
            *["transpose axes= 0 1 3 2"] * 2,
            "attention scale=0.5",
            "transpose axes= 0 2 1 3",
        ],
    ),
    "attention with a mask": (
        lambda found: simplify(tokens_first(recognise_attention(simplify(found)))),
        lambda g, x: attention(g, x, mask=True),
        ("n", 5, 8),
        [
            "reshape shape= n 5 2 4",
            *["binary multiply", "reshape shape= n 5 2 4"] * 2,
            "attention beside= mask scale=0.5 layout=bshd",
        ],
    ),
    "attention as PyTorch exports it": (
        recognise_attention,
        attention_of_torch,
        ("n", 5, 8),
        [
            *["binary multiply", "reshape shape= n 5 2 4", "transpose axes= 0 2 1 3"] * 3,
            *["transpose axes= 0 1 3 2"] * 2,
            "attention beside= mask scale=0.25",
        ],
    ),
    "attention of groups": (
        recognise_attention,
        attention_of_groups,
        ("n", 5, 8),
        [
            *["reshape shape= n 5 4 2", "transpose axes= 0 2 1 3", "slice axis_=2 stop=4"],
            *["binary multiply", "reshape shape= n 5 2 2", "transpose axes= 0 2 1 3"] * 2,
            "attention scale=1",
        ],
    ),
    "heads that are repeated as a whole": (
        recognise_attention,
        lambda g, x: attention_of_groups(g, x, tiled=True),
        ("n", 5, 8),
        [
            *["reshape shape= n 5 4 2", "transpose axes= 0 2 1 3", "slice axis_=2 stop=4"],
            *["binary multiply", "reshape shape= n 5 2 2", "transpose axes= 0 2 1 3"] * 2,
            *["reshape shape= n 1 2 5 2", "expand shape= n 2 2 5 2", "reshape shape= n 4 5 2"] * 2,
            *["transpose axes= 0 1 3 2"] * 2,
            "attention scale=1",
        ],
    ),
    "a gate": (recognise_gates, lambda g, x: g.silu(x + 1.0) * x, (), ["binary add", "gated"]),
    "a gate that is read twice stays": (
        recognise_gates,
        gate_read_twice,
        (),
        ["unary gelu", "binary multiply", "binary add"],
    ),
    "a gate that is broadcast": (
        recognise_gates,
        lambda g, x: x * g.sigmoid(x[:1]),
        (),
        ["slice", "gated activation=sigmoid"],
    ),
    "gate and value are one product": (
        lambda found: run_passes(found, "f32"),
        lambda g, x: g.silu(g.linear(x, floats(6, 4))) * g.linear(x, floats(6, 4)),
        (),
        ["linear by_columns=True", "slice axis_=1 stop=6", "slice axis_=1 start=6 stop=12", "gated"],
    ),
    "linear products": (linear_products, lambda g, x: x @ floats(4, 3), (), ["linear by_columns=True"]),
    "epilogues": (
        fuse_epilogues,
        lambda g, x: g.gelu(g.linear(x, floats(5, 4)) + floats(5)),
        (),
        ["linear activation=gelu bias=True"],
    ),
    "a residual": (
        fuse_epilogues,
        lambda g, x: x + (g.linear(x, floats(4, 4)) + floats(4)),
        (),
        ["linear bias=True residual=True"],
    ),
    "a factor": (
        fuse_epilogues,
        lambda g, x: (x @ x.transpose(1, 0)) / 2.0,
        (),
        ["transpose axes= 1 0", "matmul alpha=0.5"],
    ),
    "what is read twice stays": (
        fuse_epilogues,
        read_twice,
        (),
        ["linear", "unary gelu", "binary add"],
    ),
    "merged": (
        merge_linears,
        lambda g, x: g.linear(x, floats(6, 4)) * g.linear(x, floats(6, 4)),
        (),
        ["linear", "slice axis_=1 stop=6", "slice axis_=1 start=6 stop=12", "binary multiply"],
    ),
    "packed": (
        lambda found: pack_weights(found, "f32"),
        lambda g, x: g.linear(x, floats(6, 4)),
        (),
        ["linear by_columns=True"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_pass(name: str) -> None:
    run, build, shape, expected = CASES[name]
    before = network(build, *shape)
    after = run(before)
    assert words(after) == expected
    same_meaning(before, after)


def test_all_passes_keep_the_meaning() -> None:
    """A model of every pattern at once; what is left is one line for each kernel."""

    def model(g: Graph, x: Value) -> Value:
        h = layer_norm(g, x) * floats(8) + floats(8)
        h = attention(g, h).reshape("n", 5, 8) @ floats(8, 8) + floats(8) + h
        inner: Value = gelu(g, h @ floats(8, 16) + floats(16))
        return inner @ floats(16, 8) + h

    before = network(model, "n", 5, 8)
    after = run_passes(before, "f32")
    same_meaning(before, after)
    assert words(after) == [
        "norm eps=1e-05 weight=True bias=True",
        "reshape shape= n 5 2 4",
        *["binary multiply", "reshape shape= n 5 2 4"] * 2,
        "attention scale=0.5 layout=bshd",
        "reshape shape= n 5 8",
        "linear bias=True residual=True by_columns=True",
        "linear activation=gelu bias=True by_columns=True",
        "linear residual=True by_columns=True",
    ]


def mlp(g: Graph, x: Value) -> Value:
    h = g.layer_norm(x, floats(8), floats(8))
    inner = g.linear(h, floats(16, 8), floats(16), activation="gelu")
    return g.linear(inner, floats(8, 16)) + h


def test_bf16_rounds_rows_where_a_unit_multiplies_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A layer that is read as rounded rows alone rounds its own result; others are rounded by a cast."""
    for rounds in (True, False):
        monkeypatch.setattr(
            "tilewright.graph.passes.pack_weights.rounds_rows", lambda _, rounds=rounds: rounds
        )
        found = words(run_passes(network(mlp, "n", 8), "bf16"))
        first = "linear activation=gelu bias=True by_columns=True"
        second = "linear residual=True by_columns=True"
        if rounds:
            first, second = f"{first} dtype=bfloat16", f"{second} dtype=float32"
            assert found.pop(1) == "cast dtype=bfloat16"
        assert found[1:] == [first, second]


@pytest.mark.parametrize("precision", ["f32", "bf16", "i8-weights", "i4-weights", "i8-dynamic"])
@pytest.mark.parametrize("form", ["i4", "i8", "bf16", "f32"])
def test_rows_are_rounded_beside_packed_words(
    form: str, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A weight that the caller has packed as integers or in bfloat16 stays; rows are rounded once."""
    monkeypatch.setattr("tilewright.graph.passes.pack_weights.rounds_rows", lambda _: True)
    weight, bias, values = floats(64, 40), floats(40), floats(5, 64)
    packings = {
        "i4": lambda: tw.quantize_weights(weight, bits=4),
        "i8": lambda: tw.quantize_weights(weight, bits=8),
        "bf16": lambda: tw.pack(weight, form="bf16"),
        "f32": lambda: tw.pack(weight),
    }
    packed, g = packings[form](), Graph()
    x = g.input("x", shape=("n", 64))
    g.output(g.linear(x, packed) + g.linear(x, packed, bias), "y")
    found = words(run_passes(g.network, precision))
    rounds = form != "f32" and precision in ("bf16", "i8-weights", "i4-weights")
    assert found.count("cast dtype=bfloat16") == rounds
    assert sum("dtype=float32" in word for word in found) == 2 * rounds
    given, exact = (np.asarray(g.compile(precision=one)(values)) for one in (precision, "f32"))
    assert given.dtype == np.float32
    assert 1e-5 * rounds <= np.abs(given - exact).max() / np.abs(exact).max() <= 1e-2 * rounds


def heads(g: Graph, h: Value) -> Value:
    """Attention of two heads of four, from one layer of q, k and v."""
    joined = g.linear(h, floats(24, 8))
    parts = [joined[:, 8 * part : 8 * part + 8].reshape(1, "n", 2, 4) for part in range(3)]
    return g.attention(*parts, layout="bshd")


def attending(g: Graph, x: Value) -> Value:
    return g.linear(heads(g, x).reshape("n", 8), floats(8, 8))


def showing(g: Graph, x: Value) -> Value:
    """A result that is attention's own."""
    return heads(g, x)


def adding(g: Graph, x: Value) -> Value:
    """Attention whose result is added to something too."""
    found = heads(g, x).reshape("n", 8)
    return g.linear(found, floats(8, 8)) + found


def keys_apart(g: Graph, x: Value) -> Value:
    """Keys that no layer gives."""
    q, v = (g.linear(x, floats(8, 8)).reshape(1, "n", 2, 4) for _ in range(2))
    found = g.attention(q, g.relu(x).reshape(1, "n", 2, 4), v, layout="bshd")
    return g.linear(found.reshape("n", 8), floats(8, 8))


@pytest.mark.parametrize(
    ("model", "narrow"), [(attending, True), (showing, False), (adding, False), (keys_apart, False)]
)
def test_bf16_attention_between_layers_that_round(
    model: Callable[[Graph, Value], Value], narrow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in bfloat16 if all of q, k, v are given so, and only rounded rows are read of its result."""
    monkeypatch.setattr("tilewright.graph.passes.pack_weights.rounds_rows", lambda _: True)
    before = network(model, "n", 8)
    after = run_passes(before, "bf16")
    (line,) = (line for line in str(after).splitlines() if "attention" in line)
    assert ("bfloat16[" in line) is narrow
    x = floats(6, 8)
    (exact,) = evaluate_network(before, [x.astype(np.float64)])
    found = np.asarray(CompiledGraph(after)(x))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, exact, rtol=0.05, atol=0.05 * np.abs(exact).max())


@pytest.mark.parametrize("rounds", [True, False])
def test_bf16_is_as_accurate_as_its_operands(rounds: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.graph.passes.pack_weights.rounds_rows", lambda _: rounds)
    g, weights = Graph(), (floats(24, 8), floats(8, 24))
    g.output(g.linear(g.linear(g.input("x", shape=("n", 8)), weights[0]), weights[1]), "y")
    x = floats(50, 8)
    exact = x.astype(np.float64) @ weights[0].T @ weights[1].T
    error = np.abs(np.asarray(g.compile(precision="bf16")(x)) - exact).max() / np.abs(exact).max()
    assert 1e-4 < error < 1e-2


@pytest.mark.parametrize("rounds", [True, False])
def test_bf16_packs_weights_that_are_stored_so(rounds: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints have weights of bfloat16, and rows are float32."""
    monkeypatch.setattr("tilewright.graph.passes.pack_weights.rounds_rows", lambda _: rounds)
    weight, x, found = floats(24, 8).astype(BF16.numpy), floats(50, 8), []
    for stored in (weight, weight.astype(np.float32)):
        g = Graph()
        g.output(g.linear(g.input("x", shape=("n", 8)), stored), "y")
        found.append(np.asarray(g.compile(precision="bf16")(x)))
        assert "packed" in str(run_passes(g.network, "bf16"))
    np.testing.assert_array_equal(found[0], found[1])
    assert found[0].dtype == np.float32
