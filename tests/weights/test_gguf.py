"""GGUF files: metadata, every type of tensor, packed matrices, and files that end early or lie."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from gguf_writer import (
    ARRAY,
    STRING,
    TYPES,
    Tensor,
    Value,
    dequantised,
    gguf_bytes,
    random_blocks,
    write_gguf,
)

import tilewright as tw
from tilewright.errors import (
    TensorTypeUnsupported,
    UnknownTensor,
    WeightFileDamaged,
    WeightFileNotFound,
    WeightFileTruncated,
)
from tilewright.weights.ggml_types import BLOCKS, PLAIN

REFUSED = (WeightFileDamaged, WeightFileTruncated)
SHAPE = (24, 512)
X = np.random.default_rng(2).standard_normal((3, 512)).astype(np.float32)


def one(name: str, shape: tuple[int, int] = SHAPE, seed: int = 0) -> Tensor:
    return Tensor(shape, TYPES[name][0], random_blocks(name, shape, seed))


def numbers(kind: int, array: Any) -> Tensor:
    return Tensor(array.shape, kind, array.tobytes())


# --- reading --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(PLAIN))
def test_plain_types(kind: int, tmp_path: Path) -> None:
    name, dtype = PLAIN[kind]
    array = np.arange(-6, 6).reshape(3, 4).astype(dtype)
    found = tw.load_gguf(write_gguf(tmp_path / "a.gguf", {"a": numbers(kind, array)}))
    read = found.array("a")
    assert (read.dtype, read.tobytes(), found.tensors["a"].type) == (dtype, array.tobytes(), name)
    assert read.shape == (3, 4)  # which the file has in the other order
    with pytest.raises(ValueError, match="read-only"):
        read[0] = 1


@pytest.mark.parametrize("name", sorted(TYPES))
def test_quantised_types(name: str, tmp_path: Path) -> None:
    tensor = one(name)
    found = tw.load_gguf(write_gguf(tmp_path / "a.gguf", {"a": tensor}))
    expected = dequantised(name, tensor.data, SHAPE)
    read = found.array("a")
    assert found.tensors["a"].type == name
    assert np.array_equal(read, expected)
    assert not read.flags.writeable
    assert np.unique(expected).size > 100


def test_the_tables_agree() -> None:
    for name, (kind, elements, size, _, _) in TYPES.items():
        assert (BLOCKS[kind].name, BLOCKS[kind].elements, BLOCKS[kind].bytes) == (name, elements, size)


@pytest.mark.parametrize("name", sorted(TYPES))
def test_as_the_package_gguf_reads_them(name: str, tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    metadata = [
        ("general.architecture", Value(STRING, "llama")),
        ("x.n", Value(4, 7)),
        ("x.list", Value(ARRAY, [1.5, 2.5], 6)),
    ]
    path = write_gguf(tmp_path / "a.gguf", {"a": one(name)}, metadata)
    found, reader = tw.load_gguf(path), gguf.GGUFReader(path)
    (theirs,) = reader.tensors
    kind = gguf.GGMLQuantizationType(TYPES[name][0])
    assert (theirs.name, theirs.tensor_type) == ("a", kind)
    expected = gguf.quants.dequantize(theirs.data, kind)
    assert np.array_equal(found.array("a"), expected.reshape(SHAPE))
    assert reader.get_field("x.n").contents() == found.metadata["x.n"] == 7
    assert reader.get_field("x.list").contents() == found.metadata["x.list"].tolist()


def test_files_that_the_package_gguf_writes(tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(tmp_path / "a.gguf", "llama")
    writer.add_uint32("llama.block_count", 3)
    writer.add_array("tokenizer.ggml.tokens", ["<s>", "ä", ""])
    w = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    writer.add_tensor("f32.weight", w)
    writer.add_tensor("f16.weight", w.astype(np.float16))
    kinds = [gguf.GGMLQuantizationType[name] for name in ("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1")]
    packed = {kind: gguf.quants.quantize(w, kind) for kind in kinds}
    for kind, data in packed.items():
        writer.add_tensor(f"{kind.name}.weight", data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = tw.load_gguf(tmp_path / "a.gguf")
    assert found.metadata["llama.block_count"] == 3
    assert found.metadata["tokenizer.ggml.tokens"] == ["<s>", "ä", ""]
    assert np.array_equal(found.array("f32.weight"), w)
    assert np.array_equal(found.array("f16.weight"), w.astype(np.float16))
    for kind, data in packed.items():
        expected = gguf.quants.dequantize(data, kind)
        assert np.array_equal(found.array(f"{kind.name}.weight"), expected)


def test_metadata(tmp_path: Path) -> None:
    said: list[tuple[str, Value, Any]] = [
        ("a.u8", Value(0, 200), 200),
        ("a.i8", Value(1, -3), -3),
        ("a.u16", Value(2, 60000), 60000),
        ("a.i16", Value(3, -300), -300),
        ("a.u32", Value(4, 2**32 - 1), 2**32 - 1),
        ("a.i32", Value(5, -7), -7),
        ("a.f32", Value(6, 0.5), 0.5),
        ("a.truth", Value(7, True), True),
        ("a.text", Value(STRING, "größer"), "größer"),
        ("a.u64", Value(10, 2**64 - 1), 2**64 - 1),
        ("a.i64", Value(11, -(2**63)), -(2**63)),
        ("a.f64", Value(12, 0.1), 0.1),
        ("a.texts", Value(ARRAY, ["a", "", "c"], STRING), ["a", "", "c"]),
        ("a.nested", Value(ARRAY, [Value(ARRAY, ["a"], STRING)], ARRAY), [["a"]]),
    ]
    arrays = [
        ("a.f32s", Value(ARRAY, [0.5, 1.5], 6)),
        ("a.truths", Value(ARRAY, [True, False], 7)),
        ("a.none", Value(ARRAY, [], 4)),
    ]
    path = write_gguf(tmp_path / "a.gguf", {}, [*((key, value) for key, value, _ in said), *arrays])
    found = tw.load_gguf(path)
    assert len(found) == 0
    for key, _, value in said:
        assert found.metadata[key] == value
        assert type(found.metadata[key]) is type(value)
    for key, stored in arrays:
        assert found.metadata[key].tolist() == stored.value
    assert len(found.metadata) == len(said) + len(arrays)


@pytest.mark.parametrize("alignment", [8, 64, 4096])
@pytest.mark.parametrize("version", [2, 3])
def test_alignment_and_versions(alignment: int, version: int, tmp_path: Path) -> None:
    tensors = {"a": numbers(24, np.arange(5, dtype=np.int8)), "b": numbers(0, np.arange(3, dtype=np.float32))}
    metadata = [("general.alignment", Value(4, alignment))]
    path = write_gguf(tmp_path / "a.gguf", tensors, metadata, alignment=alignment, version=version)
    found = tw.load_gguf(path)
    assert found.array("a").tolist() == [0, 1, 2, 3, 4]
    assert found.array("b").tolist() == [0, 1, 2]


def test_names_select(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "a.gguf", {"blk.0.a": one("Q8_0"), "blk.1.a": one("Q8_0")})
    assert list(tw.load_gguf(path, names="blk.1.*")) == ["blk.1.a"]
    with pytest.raises(UnknownTensor, match=r"no tensor 'blk\.2"):
        tw.load_gguf(path, names="blk.2.*")


def test_types_that_are_not_read(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "a.gguf", {"a": Tensor(SHAPE, 16, b""), "b": one("Q8_0")})
    found = tw.load_gguf(path)
    assert found.array("b").shape == SHAPE
    with pytest.raises(TensorTypeUnsupported, match=r"tensor a of .* number 16, .* Q4_0, "):
        found["a"]


# --- packed matrices ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "form"), [("Q4_0", "i4g32z"), ("Q5_0", "i8g32z"), ("Q8_0", "i8g32z"), ("Q6_K", None)]
)
def test_types_that_pack_exactly(name: str, form: str | None, tmp_path: Path) -> None:
    tensor = one(name)
    found = tw.load_gguf(write_gguf(tmp_path / "a.gguf", {"a.weight": tensor}), pack=True)["a.weight"]
    assert isinstance(found, tw.PackedMatrix)
    assert (found.form.weights and found.form.weights.name) == form
    expected = dequantised(name, tensor.data, SHAPE)
    assert np.array_equal(tw.unpack(found), expected.T)
    np.testing.assert_allclose(tw.linear(X, found), X.astype(np.float64) @ expected.T, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize(("name", "steps"), [("Q4_1", 32), ("Q5_1", 16), ("Q4_K", 32), ("Q5_K", 16)])
def test_types_with_offsets_pack_in_eight_bits(name: str, steps: int, tmp_path: Path) -> None:
    tensor = one(name)
    path = write_gguf(tmp_path / "a.gguf", {"a.weight": tensor})
    found = tw.load_gguf(path, pack=True)["a.weight"]
    assert isinstance(found, tw.PackedMatrix)
    if found.form.weights is None:  # a K block of random bits has groups of scale 0 and large minima
        assert np.array_equal(tw.unpack(found), dequantised(name, tensor.data, SHAPE).T)
        assert name in ("Q4_K", "Q5_K")
        return
    weight = BLOCKS[tensor.kind].integers(
        np.frombuffer(tensor.data, np.uint8).reshape(-1, TYPES[name][2]), SHAPE
    )
    steps_of = np.repeat(weight.scales, 32, axis=0)
    error = np.abs(tw.unpack(found) - dequantised(name, tensor.data, SHAPE).T) / steps_of
    assert found.form.weights.name == "i8g32z"
    assert error.max() <= 1.001 / steps


@pytest.mark.parametrize("name", ["Q4_K", "Q5_K"])
def test_usual_blocks_of_k_types_pack_as_integers(name: str, tmp_path: Path) -> None:
    """Scales and minima of all groups are the same, as they about are in models."""
    _, _, size, _, _ = TYPES[name]
    blocks = np.frombuffer(random_blocks(name, SHAPE), np.uint8).reshape(-1, size).copy()
    blocks[:, 4:12], blocks[:, 12:16] = 20, 0x44  # of groups 0 to 3: 20; of the others 4
    tensor = Tensor(SHAPE, TYPES[name][0], blocks.tobytes())
    found = tw.load_gguf(write_gguf(tmp_path / "a.gguf", {"a.weight": tensor}), pack=True)["a.weight"]
    assert isinstance(found, tw.PackedMatrix)
    assert found.form.weights is not None
    expected = dequantised(name, tensor.data, SHAPE).T
    error = np.linalg.norm(tw.unpack(found) - expected) / np.linalg.norm(expected)
    assert 0 < error < 0.005


def test_constant_blocks(tmp_path: Path) -> None:
    """A scale of 0: every element is the offset."""
    block = np.zeros((16, 20), np.uint8)
    block[:, 2:4] = np.array([1.5], "<f2").view(np.uint8)
    block[:, 4:] = 0xA7
    tensor = Tensor((1, 512), 3, block.tobytes())
    found = tw.load_gguf(write_gguf(tmp_path / "a.gguf", {"a.weight": tensor}), pack=True)["a.weight"]
    assert isinstance(found, tw.PackedMatrix)
    assert found.form.weights is not None
    assert np.array_equal(tw.unpack(found), np.full((512, 1), 1.5))


def test_offsets_far_from_the_elements(tmp_path: Path) -> None:
    block = np.zeros((16, 20), np.uint8)
    block[:, 0:4] = np.array([0.001, 1.5], "<f2").view(np.uint8)
    block[:, 4:] = 0xA7
    tensor = Tensor((1, 512), 3, block.tobytes())
    found = tw.load_gguf(write_gguf(tmp_path / "a.gguf", {"a.weight": tensor}), pack=True)["a.weight"]
    assert isinstance(found, tw.PackedMatrix)
    assert found.form.weights is None
    assert np.array_equal(tw.unpack(found), dequantised("Q4_1", tensor.data, (1, 512)).T)


@pytest.mark.parametrize(("precision", "form"), [("f32", None), ("bf16", "bf16"), ("i4-weights", "i4g128z")])
def test_precisions(precision: Any, form: str | None, tmp_path: Path) -> None:
    tensors = {
        "a.weight": one("Q8_0"),
        "token_embd.weight": one("Q8_0"),
        "norm.weight": numbers(0, np.ones(4)),
    }
    path = write_gguf(tmp_path / "a.gguf", tensors)
    found = tw.load_gguf(path, pack=True, precision=precision)
    weight = found["a.weight"]
    assert isinstance(weight, tw.PackedMatrix)
    assert (weight.form.weights and weight.form.weights.name) == form
    assert isinstance(found["token_embd.weight"], np.ndarray)
    assert isinstance(tw.load_gguf(path, pack="token_embd.*")["token_embd.weight"], tw.PackedMatrix)


def test_narrow_floats_stay_narrow(tmp_path: Path) -> None:
    w = np.random.default_rng(0).standard_normal(SHAPE).astype(ml_dtypes.bfloat16)
    found = tw.load_gguf(write_gguf(tmp_path / "a.gguf", {"a.weight": numbers(30, w)}), pack=True)["a.weight"]
    assert found == tw.pack(w.T, form="bf16")


# --- files that end early, or lie -----------------------------------------------------------------


def small() -> bytes:
    """A file with something of every kind in it; its last byte is the last one of a tensor."""
    metadata = [
        ("general.architecture", Value(STRING, "llama")),
        ("a.list", Value(ARRAY, ["x", "yz"], STRING)),
        ("a.numbers", Value(ARRAY, [1, 2, 3], 5)),
        ("a.n", Value(4, 7)),
    ]
    tensors = {"a": numbers(0, np.arange(6, dtype=np.float32).reshape(2, 3)), "q": one("Q4_0", (1, 32))}
    return gguf_bytes(tensors, metadata)


def test_every_shorter_file_is_refused(tmp_path: Path) -> None:
    path, whole = tmp_path / "a.gguf", small()
    path.write_bytes(whole)
    assert len(tw.load_gguf(path)) == 2
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(WeightFileTruncated, match=f"truncated: it has {length} bytes, "):
            tw.load_gguf(path)
    path.write_bytes(whole + b"\0" * 7)
    assert len(tw.load_gguf(path)) == 2  # padding


def test_altered_bytes_end_in_an_error_or_in_arrays(tmp_path: Path) -> None:
    path, whole, random = tmp_path / "a.gguf", small(), Random(3)
    refused = 0
    for _ in range(1500):
        altered = bytearray(whole)
        at = random.randrange(len(whole))
        altered[at] = random.choice((0, 1, 127, 128, 255, random.randrange(256)))
        path.write_bytes(altered)
        try:
            for name in (found := tw.load_gguf(path, pack=True)):
                np.asarray(found[name]).tobytes()
        except (*REFUSED, TensorTypeUnsupported):
            refused += 1
    assert 400 < refused < 1400


def head(pairs: Sequence[tuple[str, Value]] = (), tensors: int = 0, rest: bytes = b"") -> bytes:
    """A header that promises tensors, and what follows it."""
    found = bytearray(gguf_bytes({}, pairs))
    found[8:16] = struct.pack("<Q", tensors)
    end = len(gguf_bytes({}, pairs, alignment=1))
    return bytes(found[:end]) + rest


def info(name: str = "a", sizes: Sequence[int] = (4,), kind: int = 0, offset: int = 0) -> bytes:
    raw = name.encode()
    return struct.pack(f"<Q{len(raw)}sI{len(sizes)}QIQ", len(raw), raw, len(sizes), *sizes, kind, offset)


ROOM = bytes(256)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"GGML" + ROOM, "begins with"),
        (b"PK\3\4" + ROOM, "begins with"),
        (b"GGUF" + struct.pack("<I", 1) + ROOM, "version is 1"),
        (b"GGUF" + struct.pack(">I", 3) + ROOM, "big-endian"),
        (gguf_bytes({}, [("a", Value(4, 1)), ("a", Value(4, 1))]), "twice"),
        (gguf_bytes({}, [("general.alignment", Value(4, 0))]), "alignment is 0"),
        (gguf_bytes({}, [("general.alignment", Value(4, 12))]), "alignment is 12"),
        (gguf_bytes({}, [("general.alignment", Value(4, 2**31))]), "alignment is 2147483648"),
        (gguf_bytes({}, [("general.alignment", Value(STRING, "x"))]), "alignment is 'x'"),
        (gguf_bytes({}, [("general.alignment", Value(7, True))]), "alignment is True"),
        (gguf_bytes({}, [("a", Value(ARRAY, [], 13))]), "the items of a are of type 13"),
        (head(tensors=2, rest=info() + info() + ROOM), "a tensor is there twice"),
        (head(tensors=1, rest=info(sizes=(1,) * 9) + ROOM), "has 9 axes"),
        (head(tensors=1, rest=info(offset=3) + ROOM), "at 3, not a multiple of 32"),
        (head(tensors=1, rest=info(sizes=(33,), kind=2) + ROOM), "no rows of Q4_0"),
        (head(tensors=1, rest=info(sizes=(), kind=2) + ROOM), "no rows of Q4_0"),
        (head(tensors=1, rest=info(sizes=(8, 32), kind=12) + ROOM), "no rows of Q4_K"),
    ],
)
def test_headers_that_mean_nothing(data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(data)
    with pytest.raises(WeightFileDamaged, match=words):
        tw.load_gguf(path)


def test_values_of_no_type(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    at = len(b"GGUF") + 4 + 8 + 8 + 8 + len("a.key")
    for kind in (13, 255, 2**31):
        data = bytearray(gguf_bytes({}, [("a.key", Value(4, 1))]) + ROOM)
        data[at : at + 4] = struct.pack("<I", kind)
        path.write_bytes(data)
        with pytest.raises(
            WeightFileDamaged, match=f"the value of a.key is of type {kind}, which does not exist"
        ):
            tw.load_gguf(path)


def test_truths_and_text_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    data = gguf_bytes({}, [("a", Value(0, 2))]).replace(b"a\0\0\0\0\2", b"a\7\0\0\0\2")
    path.write_bytes(data)
    with pytest.raises(WeightFileDamaged, match="neither 0 nor 1"):
        tw.load_gguf(path)
    path.write_bytes(gguf_bytes({}, [("ab", Value(4, 2))]).replace(b"ab", b"\xff\xfe"))
    with pytest.raises(WeightFileDamaged, match="not UTF-8"):
        tw.load_gguf(path)


@pytest.mark.parametrize("count", [10**6, 2**40, 2**63, 2**64 - 1])
@pytest.mark.parametrize("at", ["tensors", "pairs", "text", "numbers", "texts", "size", "offset"])
def test_huge_counts_allocate_nothing(count: int, at: str, tmp_path: Path) -> None:
    """Of each count in turn; a file of 400 bytes cannot have as many."""
    rounded = count // 32 * 32
    data = {
        "tensors": head(tensors=count),
        "pairs": b"GGUF" + struct.pack("<IQQ", 3, 0, count),
        "text": b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, count),
        "numbers": b"GGUF" + struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"a", ARRAY, 4, count),
        "texts": b"GGUF" + struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"a", ARRAY, STRING, count),
        "size": head(tensors=1, rest=info(sizes=(rounded, rounded), kind=2)),
        "offset": head(tensors=1, rest=info(kind=99, offset=rounded)),
    }[at]
    path = tmp_path / "a.gguf"
    path.write_bytes(data + ROOM)
    with pytest.raises(WeightFileTruncated):
        tw.load_gguf(path)


def test_arrays_in_arrays_without_end(tmp_path: Path) -> None:
    data = b"GGUF" + struct.pack("<IQQQ1sI", 3, 0, 1, 1, b"a", ARRAY) + struct.pack("<IQ", ARRAY, 1) * 5000
    path = tmp_path / "a.gguf"
    path.write_bytes(data + ROOM)
    with pytest.raises(WeightFileDamaged, match="more than 8 arrays inside one another"):
        tw.load_gguf(path)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(WeightFileNotFound, match=r"load_gguf: .*No such file"):
        tw.load_gguf(tmp_path / "none.gguf")
    with pytest.raises(WeightFileNotFound, match="a directory"):
        tw.load_gguf(tmp_path)
