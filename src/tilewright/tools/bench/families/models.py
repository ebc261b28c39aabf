"""Rows of models: graphs of some layers with random weights, each as one call."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import tilewright as tw
from tilewright.spec.functions import UnaryOp, meaning
from tilewright.tools.bench.families.frameworks import jax_way, onnx_way, torch_ways
from tilewright.tools.bench.operation import Array, Arrays, Call, Operation, OperationShape, Way

#: Elements of one head, and added to variances.
HEAD, EPS = 64, 1e-5


def _weight(shape: OperationShape, generator: np.random.Generator, rows: int, columns: int) -> Array:
    """A weight (out, in) whose products are around 1."""
    drawn: Array = shape.normal(generator, rows, columns) / np.float32(math.sqrt(columns))
    return drawn


# --- two linear layers with GELU between them ----------------------------------------------------------


def _mlp_operands(shape: OperationShape, generator: np.random.Generator) -> Arrays:
    rows, inner, width = shape["rows"], shape["inner"], shape["width"]
    return (
        shape.normal(generator, rows, width),
        _weight(shape, generator, inner, width),
        shape.normal(generator, inner),
        _weight(shape, generator, width, inner),
        shape.normal(generator, width),
    )


def _mlp_exact(shape: OperationShape, x: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:  # noqa: ARG001
    return np.asarray(np.asarray(meaning(UnaryOp.GELU, x @ w1.T + b1)) @ w2.T + b2)


def _mlp_work(shape: OperationShape) -> int:
    return 4 * shape["rows"] * shape["inner"] * shape["width"]


def _mlp_moved(shape: OperationShape) -> int:
    rows, inner, width = shape["rows"], shape["inner"], shape["width"]
    return shape.item_bytes * (2 * inner * width + 2 * rows * width + inner + width)


def _mlp(shape: OperationShape, arrays: Arrays, threads: int) -> Call:
    x, w1, b1, w2, b2 = arrays
    graph = tw.Graph()
    value = graph.input("x", shape=("rows", shape["width"]))
    graph.output(graph.linear(graph.linear(value, w1, b1, "gelu"), w2, b2), "y")
    run = graph.compile()
    return lambda: run(x, threads=threads)


def _mlp_torch(torch: Any, shape: OperationShape) -> Any:  # noqa: ARG001
    functional = torch.nn.functional
    return lambda x, w1, b1, w2, b2: functional.linear(functional.gelu(functional.linear(x, w1, b1)), w2, b2)


def _mlp_jax(jax: Any, shape: OperationShape) -> Any:  # noqa: ARG001
    return lambda x, w1, b1, w2, b2: jax.nn.gelu(x @ w1.T + b1, approximate=False) @ w2.T + b2


def _mlp_onnx(onnx: Any, shape: OperationShape) -> list[Any]:  # noqa: ARG001
    node = onnx.helper.make_node
    return [
        node("Gemm", ["a", "b", "c"], ["h"], transB=1),
        node("Gelu", ["h"], ["g"], domain="com.microsoft"),
        node("Gemm", ["g", "d", "e"], ["y"], transB=1),
    ]


# --- one layer of a transformer's encoder, norms first --------------------------------------------------


def _encoder_operands(shape: OperationShape, generator: np.random.Generator) -> Arrays:
    """x, then weight of Q, K and V, of the projection, and of the two layers; no biases, plain norms."""
    length, width = shape["length"], shape["width"]
    sizes = ((3 * width, width), (width, width), (4 * width, width), (width, 4 * width))
    return (shape.normal(generator, length, width), *(_weight(shape, generator, *size) for size in sizes))


def _norm(x: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    return np.asarray(centred / np.sqrt((centred**2).mean(-1, keepdims=True) + EPS))


def _encoder_exact(shape: OperationShape, x: Array, qkv: Array, out: Array, up: Array, down: Array) -> Array:
    length, width = shape["length"], shape["width"]
    heads = (_norm(x) @ qkv.T).reshape(length, 3, width // HEAD, HEAD).transpose(1, 2, 0, 3)
    scores = heads[0] @ heads[1].swapaxes(-1, -2) / math.sqrt(HEAD)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    x = x + (weights @ heads[2]).transpose(1, 0, 2).reshape(length, width) @ out.T
    return np.asarray(x + np.asarray(meaning(UnaryOp.GELU, _norm(x) @ up.T)) @ down.T)


def _encoder_work(shape: OperationShape) -> int:
    length, width = shape["length"], shape["width"]
    return 24 * length * width * width + 4 * length * length * width


def _encoder_moved(shape: OperationShape) -> int:
    length, width = shape["length"], shape["width"]
    return shape.item_bytes * (12 * width * width + 2 * length * width)


def _encoder(shape: OperationShape, arrays: Arrays, threads: int) -> Call:
    x, qkv, out, up, down = arrays
    length, width = shape["length"], shape["width"]
    g = tw.Graph()
    value = g.input("x", shape=(length, width))
    heads = g.linear(g.layer_norm(value), qkv)
    split = g.transpose(g.reshape(heads, (1, length, 3, width // HEAD, HEAD)), (2, 0, 3, 1, 4))
    found = g.attention(split[0], split[1], split[2])
    found = g.reshape(g.transpose(found, (0, 2, 1, 3)), (length, width))
    value = value + g.linear(found, out)
    g.output(value + g.linear(g.linear(g.layer_norm(value), up, None, "gelu"), down), "y")
    run = g.compile()
    return lambda: run(x, threads=threads)


def _encoder_torch(torch: Any, shape: OperationShape) -> Any:
    functional, length, width = torch.nn.functional, shape["length"], shape["width"]

    def layer(x: Any, qkv: Any, out: Any, up: Any, down: Any) -> Any:
        heads = functional.linear(functional.layer_norm(x, (width,)), qkv)
        heads = heads.view(1, length, 3, width // HEAD, HEAD).permute(2, 0, 3, 1, 4)
        found = functional.scaled_dot_product_attention(heads[0], heads[1], heads[2])
        x = x + functional.linear(found.transpose(1, 2).reshape(length, width), out)
        inner = functional.gelu(functional.linear(functional.layer_norm(x, (width,)), up))
        return x + functional.linear(inner, down)

    return layer


def _encoder_jax(jax: Any, shape: OperationShape) -> Any:
    jnp, length, width = jax.numpy, shape["length"], shape["width"]

    def norm(x: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + EPS)

    def layer(x: Any, qkv: Any, out: Any, up: Any, down: Any) -> Any:
        heads = (norm(x) @ qkv.T).reshape(1, length, 3, width // HEAD, HEAD)
        found = jax.nn.dot_product_attention(heads[:, :, 0], heads[:, :, 1], heads[:, :, 2])
        x = x + found.reshape(length, width) @ out.T
        return x + jax.nn.gelu(norm(x) @ up.T, approximate=False) @ down.T

    return layer


def _encoder_onnx(onnx: Any, shape: OperationShape) -> list[Any]:
    """The nodes of an exported encoder; transposes of weights are folded when a session starts."""
    node, width = onnx.helper.make_node, shape["width"]
    one = onnx.numpy_helper.from_array(np.ones(width, np.float32), "one")
    batch = onnx.numpy_helper.from_array(np.array([1, *_sizes(shape)], np.int64), "batch")
    flat = onnx.numpy_helper.from_array(np.array(_sizes(shape), np.int64), "flat")
    shapes = {"one": one, "batch": batch, "flat": flat}
    transposes = [node("Transpose", [name], [f"{name}t"], perm=(1, 0)) for name in "bcde"]
    heads = {"num_heads": width // HEAD, "domain": "com.microsoft"}
    return [
        *(node("Constant", [], [name], value=value) for name, value in shapes.items()),
        *transposes,
        node("LayerNormalization", ["a", "one"], ["n1"], axis=-1, epsilon=EPS),
        node("MatMul", ["n1", "bt"], ["qkv"]),
        node("Split", ["qkv"], ["q2", "k2", "v2"], axis=1, num_outputs=3),
        *(node("Reshape", [f"{name}2", "batch"], [name]) for name in "qkv"),
        node("MultiHeadAttention", ["q", "k", "v"], ["o"], **heads),
        node("Reshape", ["o", "flat"], ["o2"]),
        node("MatMul", ["o2", "ct"], ["p"]),
        node("Add", ["a", "p"], ["r"]),
        node("LayerNormalization", ["r", "one"], ["n2"], axis=-1, epsilon=EPS),
        node("MatMul", ["n2", "dt"], ["u"]),
        node("Gelu", ["u"], ["g"], domain="com.microsoft"),
        node("MatMul", ["g", "et"], ["w"]),
        node("Add", ["r", "w"], ["y"]),
    ]


def _sizes(shape: OperationShape) -> tuple[int, int]:
    return shape["length"], shape["width"]


OPERATIONS = (
    Operation(
        "two layers",
        "models",
        _mlp_operands,
        _mlp_exact,
        {
            "tilewright": Way("tilewright.Graph", _mlp),
            **torch_ways("linear, gelu, linear", _mlp_torch),
            "jax": jax_way("x @ w1.T, gelu, @ w2.T", _mlp_jax),
            "onnxruntime": onnx_way("Gemm, Gelu, Gemm", _mlp_onnx),
        },
        _mlp_work,
        _mlp_moved,
    ),
    Operation(
        "encoder layer",
        "models",
        _encoder_operands,
        _encoder_exact,
        {
            "tilewright": Way("tilewright.Graph", _encoder),
            **torch_ways("norms, scaled_dot_product_attention, linear", _encoder_torch),
            "jax": jax_way("dot_product_attention, products", _encoder_jax),
            "onnxruntime": onnx_way("MultiHeadAttention, MatMul, Gelu", _encoder_onnx),
        },
        _encoder_work,
        _encoder_moved,
        tolerance=1e-3,
    ),
)
