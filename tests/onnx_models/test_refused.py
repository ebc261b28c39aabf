"""Models that are refused: what cannot be imported, damaged files, data in other files, wrong arguments."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shares import EVERY_TEST_RUNS

import tilewright as tw
from tilewright import errors

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnx.parser")

RANDOM = np.random.default_rng(4)
TEXT = """<ir_version: 8, opset_import: ["" : 18]>
g (float[n, 3] x) => (float[n, 4] y, int64[k] s)
<float[3, 4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}, float[4] b = {1, 2, 3, 4}, int64[2] shape = {-1, 4}>
{
    h = MatMul(x, w)  a = Add(h, b)  t = Softmax<axis = -1>(a)
    u = Reshape(t, shape)  y = Relu(u)  s = Shape(y)
}"""


def parsed(text: str, opset: int = 18) -> Any:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}, "own" : 1]>\n{text}')


def test_every_unsupported_node_is_listed_at_once() -> None:
    model = parsed("""m (float[1, 2, 4, 4] x, float[2, 2, 1, 1] w) => (y, z)
    { a = Conv(x, w)  b = Conv(a, w)  c = own.Twist(b)  d = Relu(c)  e = Softmax<axis = 9>(x)
      y = Add(d, e)  z = Dropout<seed = 1>(x) }""")
    with pytest.raises(errors.UnsupportedModel) as caught:
        tw.onnx.load(model)
    text = str(caught.value)
    assert "Conv (ai.onnx), 2 nodes: there is no such operator" in text
    assert "Twist (own): there is no such operator" in text
    assert "Softmax (ai.onnx): axis 9" in text
    nodes: Any = caught.value.fields["nodes"]
    assert [node.op_type for node in nodes] == ["Conv", "Conv", "Twist", "Softmax"]


def test_what_an_operator_does_not_know_is_refused() -> None:
    """Attributes and inputs that nothing reads are never ignored."""
    model = parsed(
        "m (float[2] x) => (float[2] y) { y = com.microsoft.QuickGelu<alpha = 2.0, beta = 1.0>(x) }"
    )
    model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(errors.UnsupportedModel, match="attribute beta is not supported"):
        tw.onnx.load(model)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("m (float[2] x) => (float[2] y) { y = Relu(z) }", "uses 'z' before it is computed"),
        ("m (float[2] x) => (float[2] z) { y = Relu(x) }", "no node computes output 'z'"),
        ("m (float[2] x) => (float[2] y) { y = Relu(x)  y = Abs(x) }", "two values have the name 'y'"),
        ("m (float[2] x) => (float[2] y) { y = Relu<slope = 2>(x) }", "Unrecognized attribute"),
        ("m (float[2] x) => (float[2] y) { y = Add(x) }", "Node"),
        ("m (float[2] x, float[3] x) => (float[2] y) { y = Relu(x) }", "two values|input of this name"),
    ],
)
def test_invalid_models(text: str, reason: str) -> None:
    with pytest.raises(errors.InvalidModel, match=reason):
        tw.onnx.load(parsed(text))


@pytest.mark.parametrize("opset", [12, 1000])
def test_operator_sets(opset: int) -> None:
    with pytest.raises(errors.UnsupportedModel, match=f"operator set {opset} is not between 13 and"):
        tw.onnx.load(parsed("m (float[2] x) => (float[2] y) { y = Relu(x) }", opset))


def test_sequences_and_strings_are_no_inputs() -> None:
    model = parsed("m (string[2] x, seq(float[2]) s) => (float[2] y) { y = Relu(x) }")
    with pytest.raises(errors.UnsupportedModel, match="it is no tensor of numbers"):
        tw.onnx.load(model)


def test_wrong_arguments() -> None:
    model = onnx.parser.parse_model(TEXT)
    shapes: Any
    for shapes in ({"z": (1, 3)}, {"x": (1, 4)}, {"x": 3}, {"x": (1, 2.5)}, 3, {4: 3}):
        with pytest.raises(errors.LoadArgument, match=r"^load: (shapes?|value)"):
            tw.onnx.load(model, shapes=shapes)
    for constant in (np.ones((1, 4), "f4"), np.ones((1, 3))):
        with pytest.raises(errors.LoadArgument, match="constant of input x: it has"):
            tw.onnx.load(model, constants={"x": constant})
    for source in (3, None, object()):
        with pytest.raises(errors.LoadArgument, match=r"must be a path, bytes or an onnx\.ModelProto"):
            tw.onnx.load(source)  # type: ignore[arg-type]
    with pytest.raises(errors.InvalidChoice, match="precision"):
        tw.onnx.load(model, precision="f64")


# --- files --------------------------------------------------------------------------------------------


def test_unreadable_files(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.onnx", tmp_path):
        with pytest.raises(errors.ModelNotReadable):
            tw.onnx.load(path)
    path = tmp_path / "text.onnx"
    for content in (b"", b"not a model", b"\xff" * 100, b"GIF89a"):
        path.write_bytes(content)
        with pytest.raises(errors.InvalidModel):
            tw.onnx.load(path)


def attempt(raw: bytes) -> bool:
    """Whether a damaged model still is one; anything but an error of this package fails the test."""
    try:
        run = tw.onnx.load(raw)
        shapes = [([size.constant or 2 for size in node.shape], node.dtype) for _, node in run.network.inputs]
        run(*(np.ones(shape, dtype) for shape, dtype in shapes))
    except errors.TilewrightError:
        return False
    return True


def test_every_prefix_of_a_model_is_refused() -> None:
    raw = onnx.parser.parse_model(TEXT).SerializeToString()
    assert attempt(raw)
    assert not any(attempt(raw[:length]) for length in range(len(raw)))


def test_altered_bytes_never_crash() -> None:
    raw, choose, refused = onnx.parser.parse_model(TEXT).SerializeToString(), random.Random(5), 0
    count = 3000 if EVERY_TEST_RUNS else 300
    for _ in range(count):
        altered = bytearray(raw)
        for _ in range(choose.randint(1, 3)):
            altered[choose.randrange(len(raw))] ^= 1 << choose.randrange(8)
        refused += not attempt(bytes(altered))
    assert count / 2 < refused < count


def test_names_are_text() -> None:
    raw = onnx.parser.parse_model(TEXT).SerializeToString().replace(b"\x01w", b"\x01\xf7")
    with pytest.raises(errors.InvalidModel, match="a name in it is no text"):
        tw.onnx.load(raw)


# --- data in other files ------------------------------------------------------------------------------


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A model whose weight is in a file of its own."""
    weight = RANDOM.standard_normal((3, 4)).astype(np.float32)
    model = parsed("m (float[n, 3] x) => (float[n, 4] y) { y = MatMul(x, w) }")
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    return path


def changed(path: Path, **entries: str) -> None:
    """The model, with other words about where its data is."""
    model = onnx.load(path, load_external_data=False)
    for entry in model.graph.initializer[0].external_data:
        entry.value = entries.get(entry.key, entry.value)
    path.write_bytes(model.SerializeToString())


def test_external_data(beside: Path) -> None:
    x = RANDOM.standard_normal((2, 3)).astype(np.float32)
    weight = np.frombuffer((beside.parent / "w.bin").read_bytes()[:48], np.float32).reshape(3, 4)
    np.testing.assert_allclose(tw.onnx.load(beside)(x), x @ weight, rtol=1e-6)
    with pytest.raises(errors.ExternalData, match="load it by its path"):
        tw.onnx.load(beside.read_bytes())


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ({"location": "../w.bin"}, "no file in the model's folder"),
        ({"location": "sub/../w.bin"}, "no file in the model's folder"),
        ({"location": "/etc/passwd"}, "no file in the model's folder"),
        ({"location": "gone.bin"}, "no file in the model's folder"),
        ({"location": "a\0b"}, "no file in the model's folder"),
        ({"length": "44"}, "44 bytes, must be 48"),
        ({"length": "many"}, "must be integers"),
        ({"offset": "-8"}, "bytes -8 to 40"),
        ({"offset": "99999999999999999999"}, "of a file of"),
    ],
)
def test_wrong_places_of_external_data(beside: Path, entries: dict[str, str], reason: str) -> None:
    changed(beside, **entries)
    with pytest.raises(errors.ExternalData, match=reason):
        tw.onnx.load(beside)


def test_links_out_of_the_folder_are_refused(beside: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    data = beside.parent / "w.bin"
    moved = data.rename(tmp_path_factory.mktemp("elsewhere") / "w.bin")
    data.symlink_to(moved)
    with pytest.raises(errors.ExternalData, match="no file in the model's folder"):
        tw.onnx.load(beside)


def test_a_truncated_file_of_data(beside: Path) -> None:
    data = beside.parent / "w.bin"
    data.write_bytes(data.read_bytes()[:40])
    with pytest.raises(errors.ExternalData, match="bytes 0 to 48 of a file of 40"):
        tw.onnx.load(beside)
