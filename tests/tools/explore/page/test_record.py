"""What pages say: links between texts, counts, predictions, and JSON that holds it all."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from explored import PROBLEMS
from tiers import exhaustive

import tilewright as tw
from tilewright.compiler.matrix_example import example_of
from tilewright.errors import InvalidChoice, OutputNotWritable, ToolMissing
from tilewright.macro.prediction import Product
from tilewright.ops.gemm.paths import GemmPaths
from tilewright.tools.explore.page import inner
from tilewright.tools.explore.page.build import Exploration
from tilewright.tools.explore.page.costs import predicted_paths
from tilewright.tools.explore.page.graphs import explore_graph
from tilewright.tools.explore.page.kernels import explore_problem, parse_sizes
from tilewright.tools.explore.page.listing import listing_of
from tilewright.tools.explore.page.record import kernel_record

QUICK = ("brgemm", "contraction", "unary")
CASES = [
    pytest.param(one, id=name, marks=() if name in QUICK else exhaustive) for name, one in PROBLEMS.items()
]


@pytest.fixture(autouse=True)
def no_model_of_a_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    """llvm-mca, which takes half of the time, has tests of its own."""

    def missing() -> None:
        raise ToolMissing(purpose="--mca", tool="llvm-mca", package="llvm-19")

    monkeypatch.setattr(inner, "find_tool", missing)


@pytest.mark.parametrize("problem", CASES)
def test_every_operation_has_a_record_that_json_holds(problem: tw.Gemm) -> None:
    found = json.loads(json.dumps(kernel_record(tw.compile(problem, "znver4"), {})))
    assert found["walk"]["steps"], found["walk"]["reason"]
    listing = found["listing"]
    lines = {name: listing[name].split("\n") for name in ("tile", "llvm", "assembly")}
    assert len(lines["tile"]) == len(listing["tileStatements"])
    assert len(lines["llvm"]) == len(listing["llvmStatements"]) == len(listing["llvmShared"])
    assert len(lines["assembly"]) == len(listing["assemblyLlvm"])
    buffers = {one["name"]: one for one in found["buffers"]}
    for _, _, touches in found["walk"]["steps"]:
        for buffer, _, *parts in touches:
            assert found["walk"]["buffers"][buffer] in buffers
            assert len(parts) % 4 == 0


def test_every_tile_is_linked_to_instructions_that_multiply() -> None:
    listing = listing_of(tw.compile(tw.BatchReduceGemm(16, 6, 64), "znver4"))
    (number,) = {
        number
        for line, number in zip(listing.tile, listing.tile_statements, strict=True)
        if line.strip().startswith("matmul")
    }
    pairs = zip(listing.assembly, listing.assembly_llvm, strict=True)
    linked = [line for line, at in pairs if at is not None and number in listing.llvm_statements[at]]
    assert any("vfmadd" in line for line in linked)


def test_functions_that_statements_call_are_linked_to_them() -> None:
    listing = listing_of(tw.compile(tw.Gemm(100, 100, 100), "znver4"))
    matmuls = {
        number
        for line, number in zip(listing.tile, listing.tile_statements, strict=True)
        if line.strip().startswith("matmul")
    }
    inside = [
        set(owners)
        for line, owners, shared in zip(listing.llvm, listing.llvm_statements, listing.shared, strict=True)
        if shared and "llvm.fma" in line and " = call" in line
    ]
    assert inside
    assert all(owners and owners <= matmuls for owners in inside)


def test_predictions_are_those_of_the_model() -> None:
    kernel = tw.compile(tw.Gemm(100, 100, 100), "znver4")
    found = predicted_paths(kernel, example_of(kernel, {}))
    paths, product = GemmPaths.of(kernel.problem, kernel.machine), Product.contiguous(100, 100, 100)
    (taken,) = [path for path in found if path.taken]
    assert taken.name == paths.chosen(product).name
    assert taken.cycles == pytest.approx(paths.predict(paths.chosen(product), product).total)
    assert [path.possible for path in found] == sorted((path.possible for path in found), reverse=True)


def test_open_axes_have_the_lengths_that_are_wanted() -> None:
    page = explore_problem(tw.Elementwise("relu"), ["znver4"], {"rows": 3, "columns": 7})
    assert page.record["targets"][0]["example"]["shape"] == {"batch": 1, "outer": 1, "rows": 3, "columns": 7}


def test_a_page_holds_its_record_and_loads_nothing() -> None:
    page = tw.compile(tw.BatchReduceGemm(16, 6, 64), "znver4").explore("neoverse-v2", "pwr10")
    assert [one["target"]["name"] for one in page.record["targets"]] == ["znver4", "neoverse-v2", "pwr10"]
    text = page.html
    assert len(text.encode()) < 2_000_000
    assert "{{" not in text.split("<script")[0]
    own = re.sub(r"<script>// https://d3js.org.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r'(src|href)="(https?:)?//|fetch\(|import\(|XMLHttpRequest', own)
    assert "srcdoc" in page._repr_html_()


def test_titles_are_escaped() -> None:
    text = Exploration("<b>", {"title": "<b>", "targets": []}).html
    assert "<title>&lt;b&gt;</title>" in text


def test_a_page_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    page = Exploration("x", {"title": "x", "targets": []})
    with pytest.raises(OutputNotWritable):
        page.save(tmp_path / "missing" / "x.html")
    assert page.save(tmp_path / "x.html").read_text(encoding="utf-8") == page.html


@pytest.mark.parametrize("kernels", [0, pytest.param(2, marks=exhaustive)])
def test_a_graph_has_nodes_memory_times_and_the_kernels_of_its_products(kernels: int) -> None:
    random = np.random.default_rng(0)
    g = tw.Graph()
    x = g.input("x", shape=("n", 32))
    h = g.linear(x, random.random((64, 32), np.float32), activation="relu")
    g.output(g.linear(g.softmax(h), random.random((16, 64), np.float32)), "y")
    page = explore_graph(g.compile(), ["znver4"], {"n": 8}, kernels=kernels)
    graph, (target,) = page.record["graph"], page.record["targets"]
    assert [node["title"] for node in graph["nodes"]] == ["input x", "linear", "softmax", "linear"]
    assert [node["reads"][0] for node in graph["nodes"][2:]] == [node["at"] for node in graph["nodes"][1:3]]
    assert len(target["times"]) == len(graph["nodes"])
    assert target["times"][0]["cycles"] == 0
    assert target["times"][1]["cycles"] >= 2 * 8 * 32 * 64 / 32
    assert len(target["nodes"]) == kernels
    assert {node["problem"] for node in target["nodes"]} <= {"Gemm"}
    shapes = [node["example"]["shape"] for node in target["nodes"]]
    assert shapes == [{"m": 8, "k": 32, "n": 64}, {"m": 8, "k": 64, "n": 16}][:kernels]
    assert graph["memory"]
    assert all(one["offset"] + one["nbytes"] <= graph["arena"] for one in graph["memory"])


@pytest.mark.parametrize("text", ["m", "m=x", "m=0", "=3x"])
def test_lengths_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InvalidChoice):
        parse_sizes(text)
