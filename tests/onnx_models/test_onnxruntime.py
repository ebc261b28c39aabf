"""Operators without node tests, and older forms of operators, beside ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnx.parser")
runtime = pytest.importorskip("onnxruntime")

RANDOM = np.random.default_rng(6)
HEAD = '<ir_version: 8, opset_import: ["" : {opset}, "com.microsoft" : 1]>\n'


def floats(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


X = {"x": floats(2, 5, 32)}
QKV = {"q": floats(2, 5, 32), "k": floats(2, 7, 32), "v": floats(2, 7, 32)}
SEEN = np.array([[1, 1, 1, 0, 1, 0, 1], [1, 0, 1, 1, 1, 1, 1]], np.int32)
VECTOR, MATRIX = floats(32), floats(32, 32)

#: Nodes on their inputs.
NODES: dict[str, tuple[str, dict[str, Any]]] = {
    "FastGelu": ("y = com.microsoft.FastGelu(x, b)", {**X, "b": VECTOR}),
    "FastGelu, no bias": ("y = com.microsoft.FastGelu(x)", X),
    "BiasGelu": ("y = com.microsoft.BiasGelu(x, b)", {**X, "b": VECTOR}),
    "Gelu": ("y = com.microsoft.Gelu(x)", X),
    "QuickGelu": ("y = com.microsoft.QuickGelu<alpha = 1.5>(x)", X),
    "FusedMatMul": (
        "y = com.microsoft.FusedMatMul<alpha = 0.5, transA = 1, transB = 1>(a, b)",
        {"a": floats(2, 6, 4), "b": floats(2, 3, 6)},
    ),
    "SimplifiedLayerNormalization": (
        "y = SimplifiedLayerNormalization<epsilon = 0.01>(x, w)",
        {**X, "w": VECTOR},
    ),
    "SkipLayerNormalization": (
        "y, , , s = com.microsoft.SkipLayerNormalization(x, skip, w, b, bias)",
        {**X, "skip": floats(2, 5, 32), "w": VECTOR, "b": floats(32), "bias": floats(32)},
    ),
    "SkipSimplifiedLayerNormalization": (
        "y = com.microsoft.SkipSimplifiedLayerNormalization(x, skip, w)",
        {**X, "skip": floats(2, 5, 32), "w": VECTOR},
    ),
    "MultiHeadAttention": ("y = com.microsoft.MultiHeadAttention<num_heads = 4>(q, k, v)", QKV),
    "MultiHeadAttention, bias, mask": (
        "y = com.microsoft.MultiHeadAttention<num_heads = 4, scale = 0.3>(q, k, v, b, m)",
        {**QKV, "b": floats(96), "m": SEEN},
    ),
    "MultiHeadAttention, added": (
        "y = com.microsoft.MultiHeadAttention<num_heads = 4>(q, k, v, , , s)",
        {**QKV, "s": floats(2, 4, 5, 7)},
    ),
    "MultiHeadAttention, causal": (
        "y = com.microsoft.MultiHeadAttention<num_heads = 4, unidirectional = 1>(q, q, q)",
        {"q": QKV["q"]},
    ),
    "Attention": (
        "y = com.microsoft.Attention<num_heads = 4>(x, w, b)",
        {**X, "w": floats(32, 96) / 4, "b": floats(96)},
    ),
    "Attention, mask": (
        "y = com.microsoft.Attention<num_heads = 4, unidirectional = 1>(x, w, b, m)",
        {**X, "w": floats(32, 96) / 4, "b": floats(96), "m": SEEN[:, :5]},
    ),
    "Attention, other sizes": (
        "y = com.microsoft.Attention<num_heads = 4, qkv_hidden_sizes = [16, 16, 8]>(x, w, b)",
        {**X, "w": floats(32, 40) / 4, "b": floats(40)},
    ),
    "GroupNormalization": (
        "y = GroupNormalization<num_groups = 4>(x, w, b)",
        {"x": floats(2, 8, 5), "w": floats(4), "b": floats(4)},
    ),
    "Gemm": (
        "y = Gemm<alpha = 0.5, beta = 2.0, transA = 1>(a, b, c)",
        {"a": floats(6, 4), "b": floats(6, 5), "c": floats(5)},
    ),
    # Weights of seven bits: without VNNI, ONNX Runtime's sums of two products saturate at 16 bits.
    "QLinearMatMul": (
        "y = QLinearMatMul(a, sa, za, b, sb, zb, s, z)",
        {
            "a": RANDOM.integers(0, 256, (4, 6)).astype(np.uint8),
            "sa": np.float32(0.02),
            "za": np.uint8(120),
            "b": RANDOM.integers(-64, 64, (6, 5)).astype(np.int8),
            "sb": floats(5) ** 2 / 10,
            "zb": np.zeros(5, np.int8),
            "s": np.float32(0.3),
            "z": np.uint8(9),
        },
    ),
}


def built(node: str, arrays: dict[str, Any], opset: int) -> Any:
    """A model of one node whose inputs are inputs; its results have no declared type."""
    helper = onnx.helper
    results = [name.strip() for name in node.partition("=")[0].split(",")]
    parsed = onnx.parser.parse_node(node)
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
        for name, one in ((name, np.asarray(one)) for name, one in arrays.items())
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in results if name]
    graph = helper.make_graph([parsed], "g", inputs, outputs)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("name", NODES)
def test_a_node(name: str) -> None:
    node, arrays = NODES[name]
    model = built(node, arrays, 18)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(None, {name: np.asarray(one) for name, one in arrays.items()})
    for _ in range(2):
        found = tw.onnx.prepare(model).run(arrays)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert one.dtype == other.dtype
            if one.dtype.kind == "f":
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=2e-5)
            else:  # halves of a step may be rounded either way
                assert abs(one.astype(int) - other.astype(int)).max() <= 1
