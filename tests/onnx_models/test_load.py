"""Models that are loaded: results, sizes, shapes that are computed, data in other files, functions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import graphs_by_python

import tilewright as tw
from tilewright.calls.layout import native_entry_possible
from tilewright.graph.nodes.attention import AttentionNode
from tilewright.graph.nodes.products import LinearNode

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnx.parser")

RANDOM = np.random.default_rng(3)
HEAD = '<ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]>\n'


def floats(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


def model(text: str, **weights: Any) -> Any:
    """A model of the textual form, with arrays as initializers."""
    found = onnx.parser.parse_model(HEAD + text)
    found.graph.initializer.extend(onnx.numpy_helper.from_array(one, name) for name, one in weights.items())
    return found


W, B, V = floats(24, 16), floats(16), floats(16, 5)
LAYERS = model(
    """mlp (float[batch, 24] x) => (float[batch, 5] y)
    { a = MatMul(x, W)  b = Add(a, B)  c = Relu(b)  y = Gemm<alpha = 2.0>(c, V) }""".replace("Gelu_", "Relu"),
    W=W,
    B=B,
    V=V,
)


def layers(x: Any) -> Any:
    return 2 * np.maximum(x @ W + B, 0) @ V


def test_importing_tilewright_does_not_import_onnx() -> None:
    question = "import sys, tilewright; dir(tilewright); sys.exit('onnx' in sys.modules)"
    subprocess.run([sys.executable, "-c", question], check=True)


def test_without_the_package() -> None:
    """The error says what to install, for the package and for a command."""
    question = (
        "import sys; sys.modules['onnx'] = None\n"
        "import tilewright as tw\n"
        "try: tw.onnx\n"
        "except ImportError as error: print(type(error).__name__, error)\n"
        "from tilewright.tools.cli import app\n"
        "app(['infer', 'model.onnx'])"
    )
    done = subprocess.run([sys.executable, "-c", question], capture_output=True, text=True, check=False)
    for text in (done.stdout, done.stderr):
        assert "needs the package onnx, which is not installed" in text
        assert "pip install 'tilewright[onnx]'" in text
    assert done.returncode == 2


def test_layers_of_all_batches_run_as_machine_code() -> None:
    run, before = tw.onnx.load(LAYERS), graphs_by_python()
    assert {type(node) for node in run.network.nodes if node.operands} == {LinearNode}
    for batch in (1, 7, 1, 7):
        x = floats(batch, 24)
        np.testing.assert_allclose(run(x), layers(x), rtol=1e-5, atol=1e-5)
    if native_entry_possible():
        assert graphs_by_python() == before


def test_paths_bytes_and_messages_are_one_model(tmp_path: Path) -> None:
    path, x = tmp_path / "model.onnx", floats(3, 24)
    onnx.save(LAYERS, path)
    sources: tuple[Any, ...] = (LAYERS, str(path), path, path.read_bytes(), bytearray(path.read_bytes()))
    found = [tw.onnx.load(source)(x=x).tobytes() for source in sources]
    assert len(set(found)) == 1
    assert tw.onnx.read(path).compile()(x).tobytes() == found[0]


@pytest.mark.parametrize(("precision", "bound"), [("bf16", 0.02), ("i8-weights", 0.02), ("i8-dynamic", 0.03)])
def test_precision_of_weights(precision: str, bound: float) -> None:
    x = floats(3, 24)
    found, expected = tw.onnx.load(LAYERS, precision=precision)(x), layers(x)
    assert 1e-6 < abs(found - expected).max() / abs(expected).max() < bound


def test_formulas_become_attention_for_all_lengths() -> None:
    """The graph that exporters write: shapes are computed by nodes."""
    text = """attention (float[batch, length, 32] x) => (float[batch, length, 32] y)
    <int64[1] heads = {4}, int64[1] depth = {8}, int64 zero = {0}, int64 one = {1}, int64[1] at = {0},
     float scale = {0.35355339}>
    {
        sizes = Shape(x)
        batch = Gather<axis = 0>(sizes, zero)
        length = Gather<axis = 0>(sizes, one)
        b = Unsqueeze(batch, at)
        l = Unsqueeze(length, at)
        split = Concat<axis = 0>(b, l, heads, depth)
        q0 = MatMul(x, Q)
        q1 = Reshape(q0, split)
        q = Transpose<perm = [0, 2, 1, 3]>(q1)
        k0 = MatMul(x, K)
        k1 = Reshape(k0, split)
        k = Transpose<perm = [0, 2, 3, 1]>(k1)
        v0 = MatMul(x, V)
        v1 = Reshape(v0, split)
        v = Transpose<perm = [0, 2, 1, 3]>(v1)
        s0 = MatMul(q, k)
        s = Mul(s0, scale)
        p = Softmax<axis = -1>(s)
        o = MatMul(p, v)
        o1 = Transpose<perm = [0, 2, 1, 3]>(o)
        y = Reshape<allowzero = 0>(o1, shape)
    }"""
    weights = {name: floats(32, 32) for name in "QKV"}
    run = tw.onnx.load(model(text, **weights, shape=np.array([0, 0, 32])))
    assert any(isinstance(node, AttentionNode) for node in run.network.nodes)
    for batch, length in ((1, 3), (2, 9)):
        x = floats(batch, length, 32)
        q, k, v = ((x @ weights[name]).reshape(batch, length, 4, 8).swapaxes(1, 2) for name in "QKV")
        scores = q @ k.swapaxes(2, 3) * 0.35355339
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        expected = (scores / scores.sum(-1, keepdims=True) @ v).swapaxes(1, 2).reshape(batch, length, 32)
        np.testing.assert_allclose(run(x), expected, rtol=1e-4, atol=1e-4)


def test_weights_of_four_bits() -> None:
    """com.microsoft.MatMulNBits, as quantisers write it: bytes of two elements, zero points by blocks."""
    n, k, group = 6, 64, 32
    q = RANDOM.integers(0, 16, (n, k // group, group), np.uint8)
    zero = RANDOM.integers(0, 16, (n, k // group), np.uint8)
    scales = np.abs(floats(n, k // group)) + 0.1
    weights = {
        "Q": q[..., 0::2] | q[..., 1::2] << 4,
        "S": scales.reshape(-1),
        "Z": (zero[:, 0::2] | zero[:, 1::2] << 4).reshape(-1),
    }
    text = """m (float[rows, 64] x) => (float[rows, 6] y)
    { y = com.microsoft.MatMulNBits<K = 64, N = 6, bits = 4, block_size = 32>(x, Q, S, Z) }"""
    x = floats(3, k)
    dense = ((q.astype(np.float32) - zero[..., None]) * scales[..., None]).reshape(n, k)
    np.testing.assert_allclose(tw.onnx.load(model(text, **weights))(x), x @ dense.T, rtol=1e-4, atol=1e-4)


def test_quantised_products() -> None:
    """Dynamic quantisation: exact sums, scaled."""
    text = """m (float[rows, 24] x) => (float[rows, 16] y)
    {
        q, scale, zero = DynamicQuantizeLinear(x)
        sums = MatMulInteger(q, W8, zero)
        wide = Cast<to = 1>(sums)
        y = Mul(wide, scale)
    }"""
    weight = RANDOM.integers(-128, 128, (24, 16)).astype(np.int8)
    run = tw.onnx.load(model(text, W8=weight))
    for rows in (1, 5):
        x = floats(rows, 24)
        expected = x @ weight
        assert abs(run(x) - expected).max() < 0.01 * abs(expected).max()


def test_inputs_that_decide_about_shapes_are_constants() -> None:
    text = """m (float[2, 6] x, int64[2] shape) => (float[a, b] y) { y = Reshape(x, shape) }"""
    with pytest.raises(tw.errors.UnsupportedModel, match="depends on shape") as caught:
        tw.onnx.load(model(text))
    nodes: Any = caught.value.fields["nodes"]
    (node,) = nodes
    assert (node.op_type, node.domain, node.needs) == ("Reshape", "ai.onnx", ("shape",))
    run = tw.onnx.load(model(text), constants={"shape": np.array([-1, 3])})
    assert run(floats(2, 6)).shape == (4, 3)
    prepared = tw.onnx.prepare(model(text))
    for shape in ((3, 4), (12, 1), (3, 4)):
        assert prepared.run([floats(2, 6), np.array(shape)])[0].shape == shape


def test_prepared_models_are_compiled_for_sizes_where_they_must_be() -> None:
    """A number of elements that an exporter wrote down fits some sizes only."""
    text = """m (float[n, 6] x, float[k] z) => (float[a, b] y)
    <int64[2] shape = {3, 4}> { r = Reshape(x, shape)  y = Add(r, z) }"""
    with pytest.raises(tw.errors.UnsupportedModel, match="Reshape"):
        tw.onnx.load(model(text))
    prepared = tw.onnx.prepare(model(text))
    for count in (4, 1, 4):
        x, z = floats(2, 6), floats(count)
        assert (prepared.run([x, z])[0] == x.reshape(3, 4) + z).all()
    with pytest.raises(tw.errors.UnsupportedModel, match="as many elements as"):
        prepared.run([floats(3, 6), z])
    with pytest.raises(tw.errors.UnsupportedModel, match="Reshape"):
        tw.onnx.prepare(model(text.replace("n, 6", "5, 6").replace("[k]", "[1]")))


def test_shapes_of_inputs() -> None:
    text = """m (float[n, n2] x) => (float[a, b] y) <int64[2] shape = {2, -1}> { y = Reshape(x, shape) }"""
    with pytest.raises(tw.errors.UnsupportedModel, match="Reshape"):
        tw.onnx.load(model(text))
    run = tw.onnx.load(model(text), shapes={"x": ("n", 4)})
    assert run(floats(3, 4)).shape == (2, 6)


def test_integers_are_divided_towards_zero() -> None:
    a, b = np.array([7, -7, 7, -7, 0, 6]), np.array([2, 2, -2, -2, 3, -3])
    run = tw.onnx.load(model("m (int64[n] a, int64[n] b) => (int64[n] c) { c = Div(a, b) }"))
    assert run(a, b).tolist() == [3, -3, -3, 3, 0, -2]


def test_functions_of_models_are_inlined() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
    m (float[n] x) => (float[n] y) { y = own.twice(x) }
    <opset_import: ["" : 18], domain: "own"> twice (a) => (b) { b = Add(a, a) }"""
    x = floats(5)
    assert (tw.onnx.load(onnx.parser.parse_model(text))(x) == x + x).all()


def test_nan_weights_give_nan() -> None:
    weight = W.copy()
    weight[3, 2] = np.nan
    text = "m (float[n, 24] x) => (float[n, 16] y) { y = MatMul(x, W) }"
    found = tw.onnx.load(model(text, W=weight))(floats(4, 24))
    assert np.isnan(found[:, 2]).all()
    assert np.isfinite(np.delete(found, 2, axis=1)).all()
    for precision in ("i8-weights", "i4-weights", "i8-dynamic"):
        with pytest.raises(tw.errors.InvalidOperand, match="NaN or infinities, which integers cannot"):
            tw.onnx.load(model(text, W=weight), precision=precision)


def test_saved_models(tmp_path: Path) -> None:
    x = floats(3, 24)
    run = tw.onnx.load(LAYERS)
    run.save(tmp_path / "model.twgraph")
    assert tw.load_graph(tmp_path / "model.twgraph")(x).tobytes() == run(x).tobytes()


# --- the backend --------------------------------------------------------------------------------------


def test_the_backend() -> None:
    x = floats(3, 24)
    (found,) = tw.onnx.run_model(LAYERS, [x])
    np.testing.assert_allclose(found, layers(x), rtol=1e-5, atol=1e-5)
    assert tw.onnx.prepare(LAYERS).run({"x": x})[0].tobytes() == found.tobytes()
    assert tw.onnx.supports_device("CPU")
    assert tw.onnx.supports_device("cpu:0")
    assert not tw.onnx.supports_device("CUDA")
    assert tw.onnx.is_compatible(LAYERS)
    assert not tw.onnx.is_compatible(model("m (float[n, 3, 4, 4] x) => (y) { y = Conv(x, W) }", W=W))
    with pytest.raises(tw.errors.ModelDevice, match="CUDA"):
        tw.onnx.prepare(LAYERS, "CUDA")


def test_one_node() -> None:
    node = onnx.helper.make_node("Reshape", ["x", "shape"], ["y"])
    (found,) = tw.onnx.run_node(node, [floats(4, 3), np.array([2, -1])])
    assert found.shape == (2, 6)
    node = onnx.helper.make_node("FastGelu", ["x"], ["y"], domain="com.microsoft")
    assert tw.onnx.run_node(node, {"x": floats(3)}, opset_version=18)[0].shape == (3,)


@pytest.mark.parametrize("inputs", [[], [W, B], {"y": W}, {"x": W, "y": B}, [W[:, :3]], [W.astype("f8")]])
def test_wrong_inputs_of_prepared_models(inputs: Any) -> None:
    with pytest.raises((tw.errors.GraphInputs, tw.errors.GraphInput)):
        tw.onnx.prepare(LAYERS).run(inputs)
