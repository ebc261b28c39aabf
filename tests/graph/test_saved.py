"""Saved graphs: the same bits after loading, and a clear error for every altered file."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shares import EVERY_TEST_RUNS
from support import Array

import tilewright as tw
from tilewright import errors
from tilewright.graph.builder import Graph
from tilewright.graph.compiled import CompiledGraph, load_graph
from tilewright.graph.nodes.generated import IotaNode, SizesNode
from tilewright.graph.nodes.indexing import FlipNode, GatherNDNode, PadNode, ScatterNode, TakeAlongNode
from tilewright.graph.nodes.integers import MatmulIntegerNode
from tilewright.graph.nodes.kinds import NODE_KINDS
from tilewright.graph.nodes.scans import ArgReduceNode, CumulativeNode, SortedNode
from tilewright.graph.nodes.sources import ConstantNode
from tilewright.graph.saved import load_network
from tilewright.graph.sizes import shape_of, size_of
from tilewright.graph.value import Value

RANDOM = np.random.default_rng(11)


def floats(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def of_every_kind() -> CompiledGraph:
    """A graph with a node of every kind, options of every type, and constants of every form."""
    g = Graph()
    x, indices = g.input("x", shape=("n", "m", 8)), g.input("indices", "i64", ("k",))
    h = g.linear(x, floats(16, 8), floats(16), "gelu") @ g.constant(floats(16, 8))
    h = g.linear(h, tw.quantize_weights(floats(8, 8), bits=8)) + floats(8)
    heads = g.reshape(g.softmax(g.layer_norm(h, eps=1e-6)), ("n", "m", 2, 4))
    heads = g.rotary(g.gated(heads, heads, "gelu"), *tw.rotary_tables(9, 4), layout="bshd")
    heads = g.attention(heads, heads, heads, layout="bshd", window=(2, None), scale=float(np.float32(0.3)))
    h = g.einsum("nmhd,nmhd->nmd", heads, heads)
    h = g.where(g.binary("less", h, float("inf")), g.cast(g.cast(h, "bf16"), "f32"), 0.0)
    h = g.concatenate([h, g.expand(floats(1, 1, 4), ("n", "m", 4))], -1)
    y = g.matmul(g.transpose(h, (0, 2, 1))[:, 1:7, :-1], x[:, 1:], alpha=0.25)
    g.output(g.take(g.reduce("mean", y, 1), indices, 1), "taken")
    k_cache, v_cache = (g.input(name, shape=(1, 1, 4, 8)) for name in ("k_cache", "v_cache"))
    new = x[:1, :1][:, None]
    g.output(g.append_kv(k_cache, v_cache, new, new, np.zeros(1, np.int64)), "lengths")
    g.output(g.exp(y), "y")
    g.output(g.embedding(floats(9, 4), g.binary("maximum", indices, 0)), "rows")
    for_models(g, x, indices)
    return g.compile()


def for_models(g: Graph, x: Value, indices: Value) -> None:
    """Results of the nodes that model files need."""
    size = size_of("n") * 2 + 1
    added = g._node(
        PadNode, [x, g.constant(np.float32(2))], before=shape_of((0, 1, 0)), after=shape_of((0, 0, 2))
    )
    g.output(g._node(FlipNode, [added], axis_=1), "flipped")
    g.output(g._node(SizesNode, (), elements=(size, size_of(3)), lengths=(2,)), "sizes")
    g.output(g._node(IotaNode, (), length=size, start=size_of("m"), step=-2, dtype=np.dtype("i4")), "iota")
    row = g.slice(g.cast(x, "f64"), (0, 0))
    places = g.slice(indices, slice(0, 1))
    g.output(g._node(TakeAlongNode, [row, places], axis_=0), "along")
    g.output(g._node(GatherNDNode, [row, g.reshape(places, (1, 1))]), "nd")
    g.output(
        g._node(ScatterNode, [row, places, g.slice(row, slice(0, 1))], function="add", axis_=0), "scattered"
    )
    bytes_ = g.cast(x, "u8")
    zero = g.constant(np.uint8(3))
    eight = RANDOM.integers(-100, 100, (8, 4)).astype(np.int8)
    g.output(g._node(MatmulIntegerNode, [bytes_, g.constant(eight), zero], a_zero=True), "integers")
    g.output(g._node(ArgReduceNode, [x], function="min", axis_=-1, last=True), "least")
    g.output(g._node(CumulativeNode, [x], axis_=2, reverse=True, exclusive=True), "sums")
    g.output(g._node(SortedNode, [x], count=3, largest=False, positions=True), "sorted")


@pytest.fixture(scope="module")
def graph() -> CompiledGraph:
    return of_every_kind()


@pytest.fixture(scope="module")
def file(graph: CompiledGraph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("graphs") / "model.twgraph"
    graph.save(path)
    return path


def results(graph: CompiledGraph) -> list[bytes]:
    x = np.linspace(-1, 1, 2 * 5 * 8, dtype=np.float32).reshape(2, 5, 8)
    caches = [np.zeros((1, 1, 4, 8), np.float32) for _ in range(2)]
    found = graph(x, np.array([0, -1, 3]), *caches)
    return [one.tobytes() for one in (*found, *caches)]


@pytest.mark.parametrize("mapped", [True, False])
def test_loaded_graphs_have_the_same_bits(graph: CompiledGraph, file: Path, *, mapped: bool) -> None:
    loaded = load_graph(file, mmap=mapped, verify=True)
    assert str(loaded.network) == str(graph.network)
    assert results(loaded) == results(graph)
    assert {type(node) for node in loaded.network.nodes} == set(NODE_KINDS.values())
    for node in loaded.network.nodes:
        if isinstance(node, ConstantNode) and not node.packed:
            assert not node.value.flags.writeable


def test_every_prefix_is_refused(file: Path, tmp_path: Path) -> None:
    whole, cut = file.read_bytes(), tmp_path / "cut.twgraph"
    for length in [*range(64), *range(64, len(whole), max(1, len(whole) // 400)), len(whole) - 1]:
        cut.write_bytes(whole[:length])
        with pytest.raises(errors.GraphFileDamaged):
            load_graph(cut)


def test_altered_bytes_are_refused_or_of_no_account(file: Path, graph: CompiledGraph, tmp_path: Path) -> None:
    """With `verify` no altered byte of the header, of a weight or of the description goes unseen."""
    whole, changed, expected = file.read_bytes(), tmp_path / "changed.twgraph", results(graph)
    refused = 0
    for at in [*range(40), *RANDOM.integers(0, len(whole), 300 if EVERY_TEST_RUNS else 75)]:
        altered = bytearray(whole)
        altered[at] ^= 1 << int(RANDOM.integers(8))
        changed.write_bytes(altered)
        try:
            found = load_graph(changed, verify=True)
        except (
            errors.GraphFileDamaged,
            errors.GraphFileVersion,
            errors.PackedFileDamaged,
            errors.PackedVersion,
        ):
            refused += 1
        else:
            assert results(found) == expected  # zeros between sections
    assert refused > 40


def rewritten(file: Path, target: Path, change: Any) -> None:
    """The file with another description and the right checksums."""
    whole = file.read_bytes()
    _, at, size = struct.unpack_from("<QQQ", whole, 16)
    said = json.loads(whole[at : at + size])
    change(said)
    text = json.dumps(said).encode()
    places = struct.pack("<QQQ", at + len(text), at, len(text))
    crc = zlib.crc32(text, zlib.crc32(places))
    target.write_bytes(struct.pack("<8sII", b"TWGRAPH\0", 1, crc) + places + whole[40:at] + text)


def nothing(_: Any) -> None:
    """No change."""


LIES: tuple[Any, ...] = (
    lambda said: said["nodes"][3].update(kind="system"),
    lambda said: said["nodes"][-1].update(operands=[999]),
    lambda said: said["nodes"][-1].update(operands=[-1]),
    lambda said: said["nodes"][-1].update(operands=[]),
    lambda said: said["nodes"][-1]["options"].update(unknown=1),
    lambda said: said["nodes"][0]["options"].update(shape=[{"size": [[1.5, ["n"]]]}]),
    lambda said: said["nodes"][0]["options"].update(dtype={"dtype": "object"}),
    lambda said: said["sections"][0].update(offset=1),
    lambda said: said["sections"][0].update(offset=1 << 40),
    lambda said: said["sections"][0].update(size=1 << 62),
    lambda said: said.update(sections=[]),
    lambda said: said.update(outputs=[]),
    lambda said: said.update(outputs=[["y", 1000]]),
    lambda said: said.update(nodes=5),
    lambda said: said.pop("nodes"),
)


@pytest.mark.parametrize("number", range(len(LIES)))
def test_lies_with_valid_checksums_are_refused(file: Path, tmp_path: Path, number: int) -> None:
    path = tmp_path / "lie.twgraph"
    rewritten(file, path, nothing)
    load_network(path)
    rewritten(file, path, LIES[number])
    with pytest.raises(errors.GraphFileDamaged):
        load_network(path)


def test_files_that_are_none(file: Path, graph: CompiledGraph, tmp_path: Path) -> None:
    with pytest.raises(errors.GraphFileNotFound):
        load_graph(tmp_path / "missing")
    with pytest.raises(errors.GraphFileNotFound):
        load_graph(tmp_path)
    with pytest.raises(errors.GraphNotWritable):
        graph.save(tmp_path / "no" / "folder")
    with pytest.raises(errors.GraphNotWritable):
        graph.save(tmp_path)
    later = tmp_path / "later.twgraph"
    later.write_bytes(file.read_bytes()[:8] + struct.pack("<I", 99) + file.read_bytes()[12:])
    with pytest.raises(errors.GraphFileVersion):
        load_graph(later)
