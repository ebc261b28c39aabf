"""Pictures of graphs: well-formed, a box for each node, no box over another one."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import tilewright as tw
from tilewright import errors
from tilewright.graph.nodes.sources import ConstantNode

SVG = "{http://www.w3.org/2000/svg}"


def graph() -> tw.Graph:
    g = tw.Graph()
    x, y = g.input("x", shape=("n", 4)), g.input("y <&>", shape=("n", 4))
    both = [g.relu(x + float(number)) for number in range(5)]
    g.output(g.linear(g.concatenate([*both, y], -1), np.ones((3, 24), np.float32)), "z")
    return g


def test_boxes() -> None:
    g = graph()
    root = ET.fromstring(g.draw())
    boxes = [one for one in root.iter(f"{SVG}rect") if "rx" in one.attrib]
    shown = [node for node in g.network.nodes if not isinstance(node, ConstantNode)]
    assert len(boxes) == len(shown)
    rows: dict[str, list[tuple[float, float]]] = {}
    for box in boxes:
        x, width = float(box.attrib["x"]), float(box.attrib["width"])
        rows.setdefault(box.attrib["y"], []).append((x, x + width))
    for row in rows.values():
        assert all(end < first for (_, end), (first, _) in pairwise(sorted(row)))
    words = [one.text or "" for one in root.iter(f"{SVG}text")]
    assert "input y <&>" in words
    assert "linear" in words
    assert "float32[3, 24] -> float32[n, 3]" in words
    edges = sum(len({*node.operands} - constants_of(g)) for node in shown)
    assert len(list(root.iter(f"{SVG}path"))) == edges


def constants_of(g: tw.Graph) -> set[int]:
    return {at for at, node in enumerate(g.network.nodes) if isinstance(node, ConstantNode)}


def test_files(tmp_path: Path) -> None:
    run = graph().compile()
    text = run.draw(tmp_path / "graph.svg")
    assert (tmp_path / "graph.svg").read_text(encoding="utf-8") == text
    with pytest.raises(errors.GraphNotWritable):
        run.draw(tmp_path / "nowhere" / "graph.svg")
    with pytest.raises(errors.GraphWithoutOutput):
        tw.Graph().draw()
