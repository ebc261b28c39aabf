"""safetensors files: every element type, shards, what is packed and in which precision, damaged files."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright.errors import (
    InvalidChoice,
    PackageMissing,
    TensorTypeUnsupported,
    UnknownTensor,
    UnsupportedArgument,
    WeightFileDamaged,
    WeightFileNotFound,
)
from tilewright.weights.safetensors_file import TYPES

pytest.importorskip("safetensors")
LIBRARY = {"F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "BF16": "bfloat16"}
Tensors = Mapping[str, "np.ndarray[Any, Any]"]


def write(path: Path, tensors: Tensors, metadata: dict[str, str] | None = None) -> Path:
    """A file written by the library itself."""
    from safetensors import TensorSpec, serialize_file

    specs = {
        name: TensorSpec(
            dtype=array.dtype.name, shape=array.shape, data_ptr=array.ctypes.data, data_len=array.nbytes
        )
        for name, array in tensors.items()
    }
    serialize_file(specs, path, metadata=metadata)
    return path


def raw(path: Path, header: Any, data: bytes = b"") -> Path:
    """A file with any header at all."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def model(scale: float = 1.0) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    shapes = {
        "model.embed_tokens.weight": (50, 64),
        "model.layers.0.attn.q.weight": (48, 64),
        "model.layers.0.attn.q.bias": (48,),
        "model.layers.0.norm.weight": (64,),
        "model.layers.1.mlp.up.weight": (96, 64),
        "lm_head.weight": (50, 64),
        "model.layers.0.attn.table": (5, 64),
    }
    return {name: (rng.standard_normal(s) * scale).astype(np.float32) for name, s in shapes.items()}


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    return write(tmp_path / "model.safetensors", model())


# --- reading --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_every_type_is_read(kind: str, tmp_path: Path) -> None:
    if kind in ("F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "C64"):  # of newer versions of the library
        pytest.importorskip("safetensors", minversion="0.8")
    dtype = TYPES[kind]
    array = np.random.default_rng(1).integers(0, 2, (3, 5)).astype(dtype)
    found = tw.load_safetensors(write(tmp_path / "one.safetensors", {"a": array}))
    read = found["a"]
    assert isinstance(read, np.ndarray)
    assert (read.dtype, read.shape, read.tobytes()) == (dtype, (3, 5), array.tobytes())
    assert found.tensors["a"].type == kind


def test_the_file_is_mapped_and_nothing_is_written_to_it(stored: Path) -> None:
    found = tw.load_safetensors(stored)["lm_head.weight"]
    assert isinstance(found, np.ndarray)
    base: Any = found
    while not isinstance(base, np.memmap) and base.base is not None:
        base = base.base
    assert isinstance(base, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        found[0, 0] = 1


def test_the_mapping(stored: Path) -> None:
    found = tw.load_safetensors(stored, pack=True)
    assert set(found) == set(model())
    assert len(found) == 7
    assert "lm_head.weight" in found
    assert "lm_head" not in found
    assert found.get("lm_head") is None
    assert found.tensors["lm_head.weight"].shape == (50, 64)
    assert "7 tensors, 3 of them packed" in repr(found)
    assert found["lm_head.weight"] is found["lm_head.weight"]  # packed once
    assert np.array_equal(found.array("lm_head.weight"), model()["lm_head.weight"])
    assert {found: 1}[found] == 1
    assert found != tw.load_safetensors(stored)


def test_empty_tensors_and_numbers(tmp_path: Path) -> None:
    arrays = {"none": np.zeros((0, 4), np.float32), "one": np.full((), 7, np.float32)}
    found = tw.load_safetensors(write(tmp_path / "a.safetensors", arrays))
    assert np.asarray(found["none"]).shape == (0, 4)
    assert found["one"] == 7
    only = tw.load_safetensors(write(tmp_path / "b.safetensors", {"none": arrays["none"]}))
    assert np.asarray(only["none"]).shape == (0, 4)


def test_tensors_need_no_alignment(tmp_path: Path) -> None:
    header = {
        "a": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]},
        "b": {"dtype": "F32", "shape": [2, 2], "data_offsets": [3, 19]},
    }
    weight = np.arange(4, dtype=np.float32).reshape(2, 2)
    path = raw(tmp_path / "a.safetensors", header, b"abc" + weight.tobytes())
    found = tw.load_safetensors(path, pack="b")
    assert np.array_equal(tw.linear(np.eye(2, dtype=np.float32), found["b"]), weight.T)
    assert np.array_equal(found.array("b"), weight)


def test_metadata(tmp_path: Path) -> None:
    path = write(tmp_path / "a.safetensors", model(), {"format": "pt"})
    assert tw.load_safetensors(path).metadata == {"format": "pt"}


def test_an_unknown_name(stored: Path) -> None:
    found = tw.load_safetensors(stored)
    with pytest.raises(UnknownTensor, match=r"has no tensor 'lm_head.wieght'; .* lm_head.weight") as caught:
        found["lm_head.wieght"]
    assert isinstance(caught.value, KeyError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(UnknownTensor):
        found[3]  # type: ignore[index]


def test_types_that_no_array_has(tmp_path: Path) -> None:
    entry = {"dtype": "F4", "shape": [8], "data_offsets": [0, 4]}
    path = raw(tmp_path / "a.safetensors", {"a": entry, "b": entry | {"dtype": "U8", "shape": [0]}}, b"1234")
    path = raw(path, {"a": entry}, b"1234")
    found = tw.load_safetensors(path)
    with pytest.raises(TensorTypeUnsupported, match=r"tensor a of .* has elements of type F4"):
        found["a"]


# --- what is packed -------------------------------------------------------------------------------


def packed_names(found: Mapping[str, Any]) -> set[str]:
    return {name for name in found if isinstance(found[name], tw.PackedMatrix)}


def test_true_packs_the_weights_of_layers(stored: Path) -> None:
    found = tw.load_safetensors(stored, pack=True)
    layers = {"model.layers.0.attn.q.weight", "model.layers.1.mlp.up.weight", "lm_head.weight"}
    assert packed_names(found) == layers
    assert packed_names(tw.load_safetensors(stored)) == set()


def test_patterns_and_functions_choose(stored: Path) -> None:
    assert packed_names(tw.load_safetensors(stored, pack="*.attn.*")) == {
        "model.layers.0.attn.q.weight",
        "model.layers.0.attn.table",
    }
    found = tw.load_safetensors(stored, pack=lambda name: "embed" in name)
    assert packed_names(found) == {"model.embed_tokens.weight"}


X = np.random.default_rng(3).standard_normal((4, 64)).astype(np.float32)


@pytest.mark.parametrize(
    ("precision", "form"),
    [(None, None), ("f32", None), ("bf16", "bf16"), ("i8-weights", "i8"), ("i4-weights", "i4g128z")],
)
def test_precisions(precision: Any, form: str | None, stored: Path) -> None:
    found = tw.load_safetensors(stored, pack=True, precision=precision)["model.layers.1.mlp.up.weight"]
    assert isinstance(found, tw.PackedMatrix)
    weights = found.form.weights
    assert (weights and weights.name) == form
    weight = model()["model.layers.1.mlp.up.weight"]
    assert found.shape == weight.T.shape
    makers: dict[Any, Callable[[], tw.PackedMatrix]] = {
        None: lambda: tw.pack(weight.T),
        "f32": lambda: tw.pack(weight.T),
        "bf16": lambda: tw.pack(weight.T, form="bf16"),
        "i8-weights": lambda: tw.quantize_weights(weight.T),
        "i4-weights": lambda: tw.quantize_weights(weight.T, bits=4, group=128, symmetric=False),
    }
    expected = makers[precision]()
    assert found == expected
    assert np.array_equal(tw.linear(X, found), tw.linear(X, expected))


@pytest.mark.parametrize("form", ["bf16", "f16", "f8e4m3", "f8e5m2"])
def test_narrow_floats_stay_as_they_are_stored(form: Any, tmp_path: Path) -> None:
    dtype = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f8e4m3": ml_dtypes.float8_e4m3fn}
    weight = model()["lm_head.weight"].astype(dtype.get(form, ml_dtypes.float8_e5m2))
    path = write(tmp_path / "a.safetensors", {"a.weight": weight})
    found = tw.load_safetensors(path, pack=True)["a.weight"]
    assert found == tw.pack(weight.T, form=form)
    assert np.array_equal(tw.linear(X, found), tw.linear(X, tw.pack(weight.T.astype(np.float32), form=form)))
    wide = tw.load_safetensors(path, pack=True, precision="f32")["a.weight"]
    assert wide == tw.pack(weight.T.astype(np.float32))


def test_types_without_products_are_widened(tmp_path: Path) -> None:
    weight = np.ones((8, 64), ml_dtypes.float8_e4m3fnuz)
    found = tw.load_safetensors(write(tmp_path / "a.safetensors", {"a.weight": weight}), pack=True)
    assert np.array_equal(tw.linear(X, found["a.weight"]), tw.linear(X, weight.astype(np.float32)))


def test_precision_without_packing_is_refused(stored: Path) -> None:
    with pytest.raises(UnsupportedArgument, match=r"precision='bf16' .* pack=True"):
        tw.load_safetensors(stored, precision="bf16")


@pytest.mark.parametrize(
    "named", [{"pack": 3}, {"pack": True, "precision": "i2"}, {"names": 3}, {"names": ["a", 3]}]
)
def test_wrong_choices(named: Any, stored: Path) -> None:
    with pytest.raises(InvalidChoice):
        tw.load_safetensors(stored, **named)


# --- names and shards -----------------------------------------------------------------------------


def test_names_select(stored: Path) -> None:
    assert list(tw.load_safetensors(stored, names="lm_head.weight")) == ["lm_head.weight"]
    found = tw.load_safetensors(stored, names=["*.bias", "model.layers.1.*"])
    assert set(found) == {"model.layers.0.attn.q.bias", "model.layers.1.mlp.up.weight"}
    with pytest.raises(UnknownTensor, match=r"no tensor '\*\.gate'"):
        tw.load_safetensors(stored, names=["*.bias", "*.gate"])


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    """The index of a model in two files."""
    tensors = model()
    names = sorted(tensors)
    parts = {"model-00001-of-00002.safetensors": names[:3], "model-00002-of-00002.safetensors": names[3:]}
    for file, some in parts.items():
        write(tmp_path / file, {name: tensors[name] for name in some}, {"format": "pt"})
    placed = {name: file for file, some in parts.items() for name in some}
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": placed}))
    return index


@pytest.mark.parametrize("folder", [False, True])
def test_shards(folder: bool, sharded: Path) -> None:
    found = tw.load_safetensors(sharded.parent if folder else sharded)
    assert set(found) == set(model())
    for name, array in model().items():
        assert np.array_equal(np.asarray(found[name]), array)
    assert found.metadata == {"format": "pt"}


def test_shards_without_a_name_are_not_opened(sharded: Path) -> None:
    (sharded.parent / "model-00002-of-00002.safetensors").unlink()
    assert list(tw.load_safetensors(sharded, names="lm_head.*")) == ["lm_head.weight"]
    with pytest.raises(WeightFileNotFound, match="model-00002-of-00002"):
        tw.load_safetensors(sharded)


@pytest.mark.parametrize("shard", ["../x.safetensors", "/x", "", "a\0b", "sub/x", "..", 3, None])
def test_an_index_names_files_beside_itself(shard: Any, sharded: Path) -> None:
    sharded.write_text(json.dumps({"weight_map": {"a": shard}}))
    with pytest.raises(WeightFileDamaged, match="tensor a is in"):
        tw.load_safetensors(sharded)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"weight_map": []}', "[" * 100000, "\xff"])
def test_other_files_are_no_index(text: str, sharded: Path) -> None:
    sharded.write_text(text, encoding="latin1")
    with pytest.raises(WeightFileDamaged, match="safetensors index"):
        tw.load_safetensors(sharded)


def test_an_index_of_a_tensor_that_its_file_lacks(sharded: Path) -> None:
    said = json.loads(sharded.read_text())
    said["weight_map"]["gone"] = "model-00001-of-00002.safetensors"
    sharded.write_text(json.dumps(said))
    with pytest.raises(WeightFileDamaged, match="says that gone is in"):
        tw.load_safetensors(sharded)


def test_folders(tmp_path: Path) -> None:
    with pytest.raises(WeightFileNotFound, match="the folder has neither"):
        tw.load_safetensors(tmp_path)
    write(tmp_path / "b.safetensors", model())
    assert len(tw.load_safetensors(tmp_path)) == 7
    write(tmp_path / "c.safetensors", {"a": np.ones(1)})
    with pytest.raises(WeightFileNotFound):
        tw.load_safetensors(tmp_path)
    write(tmp_path / "model.safetensors", {"a": np.ones(1)})
    assert len(tw.load_safetensors(tmp_path)) == 1


# --- files that are not what they say -------------------------------------------------------------


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(WeightFileNotFound, match="No such file"):
        tw.load_safetensors(tmp_path / "none.safetensors")


def test_every_shorter_file_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.safetensors", {"a": np.arange(6.0), "b": np.arange(3, dtype=np.uint8)})
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(WeightFileDamaged):
            tw.load_safetensors(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(WeightFileDamaged):
        tw.load_safetensors(path)


ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"[]",
        b"{",
        b"\xff\xff",
        b"[" * 100000,
        {"a": ENTRY | {"shape": [-2]}},
        {"a": ENTRY | {"shape": [2.0]}},
        {"a": ENTRY | {"shape": [True, 2]}},
        {"a": ENTRY | {"shape": [3]}},
        {"a": ENTRY | {"shape": [2**62, 2**62]}},
        {"a": ENTRY | {"shape": None}},
        {"a": ENTRY | {"data_offsets": [8, 0]}},
        {"a": ENTRY | {"data_offsets": [0, 2**40]}},
        {"a": ENTRY | {"data_offsets": [0]}},
        {"a": ENTRY | {"data_offsets": [-8, 0]}},
        {"a": ENTRY | {"dtype": "F99"}},
        {"a": {"dtype": "F32"}},
        {"a": None},
        {"a": ENTRY, "__metadata__": [1, 2]},
    ],
)
@pytest.mark.parametrize("library", [True, False])
def test_headers_that_mean_nothing(
    header: Any, library: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether or not the library has looked: between its look and ours a file may be replaced."""
    if not library:
        monkeypatch.setattr("tilewright.weights.safetensors_file._check_by_library", lambda path: None)
    path = raw(tmp_path / "a.safetensors", header, bytes(8))
    if not library and isinstance(header, dict) and (header["a"] or {}).get("dtype") == "F99":
        with pytest.raises(TensorTypeUnsupported):
            tw.load_safetensors(path)["a"]
        return
    with pytest.raises(WeightFileDamaged):
        tw.load_safetensors(path)


def test_altered_bytes_end_in_an_error_or_in_an_array(tmp_path: Path) -> None:
    path = write(tmp_path / "a.safetensors", {"a": np.arange(6.0), "b": np.arange(3, dtype=np.uint8)})
    whole, random = path.read_bytes(), Random(5)
    refused = 0
    for _ in range(400):
        altered = bytearray(whole)
        altered[random.randrange(len(whole))] = random.randrange(256)
        path.write_bytes(altered)
        try:
            for array in tw.load_safetensors(path).values():
                np.asarray(array).tobytes()
        except (WeightFileDamaged, TensorTypeUnsupported):
            refused += 1
    assert 100 < refused < 400


def test_without_the_library(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(PackageMissing, match=r"pip install tilewright\[weights\]"):
        tw.load_safetensors(stored)
