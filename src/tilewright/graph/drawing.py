"""Graphs as pictures: every node a box below those that it reads, in SVG."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from tilewright.errors import GraphNotWritable, GraphWithoutOutput
from tilewright.graph.network import Network
from tilewright.graph.nodes.base import Node, ValueType
from tilewright.graph.nodes.sources import ConstantNode, InputNode
from tilewright.notebook import entry
from tilewright.records import dataclass
from tilewright.spec.arguments import check_path

#: Points: heights and distances of boxes, the width of a character, the margin.
_HEIGHT, _DOWN, _ACROSS, _CHARACTER, _MARGIN = 40, 34, 24, 6.4, 16
#: Rounds in which boxes move below the mean of what they read.
_ROUNDS = 4
#: Colours of boxes by the kind of node; all others are white.
_COLOURS = {
    "input": "#e8eef7",
    "linear": "#fdf1dc",
    "matmul": "#fdf1dc",
    "einsum": "#fdf1dc",
    "attention": "#fbe0d8",
    "norm": "#e5f2e5",
    "softmax": "#e5f2e5",
    "append": "#f3e8f3",
}


@dataclass
class _Box:
    """A node in the picture."""

    at: int
    lines: tuple[str, str]
    colour: str
    level: int
    x: float = 0.0

    @property
    def width(self) -> float:
        return _CHARACTER * max(map(len, self.lines)) + 2 * _CHARACTER

    @property
    def y(self) -> float:
        return _MARGIN + self.level * (_HEIGHT + _DOWN)

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


def svg_of(network: Network) -> str:
    """The picture of a network; constants are part of the boxes that read them."""
    boxes = _boxes(network)
    rows: dict[int, list[_Box]] = {}
    for box in boxes.values():
        rows.setdefault(box.level, []).append(box)
    for row in rows.values():
        _spread(row)
    for _ in range(_ROUNDS):
        for level in sorted(rows):
            _align(rows[level], boxes, network)
    left = min(box.x for box in boxes.values()) - _MARGIN
    width = max(box.x + box.width for box in boxes.values()) - left + _MARGIN
    height = max(box.y for box in boxes.values()) + _HEIGHT + _MARGIN
    view = f'viewBox="{left:.0f} 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {view} font-family="monospace" font-size="10.5">'
    parts = [head, f'<rect x="{left:.0f}" width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>']
    for one in boxes.values():
        above = [at for at in dict.fromkeys(network.nodes[one.at].operands) if at in boxes]
        parts += [_line(boxes[at], one) for at in above]
    parts += [line for box in boxes.values() for line in _drawn(box, network)]
    return "\n".join([*parts, "</svg>", ""])


def draw(network: Network, path: str | os.PathLike[str] | None) -> str:
    """The picture of a network, which is also written to a file if one is named.

    Raises
    ------
    InvalidFileName, GraphNotWritable
    """
    text = svg_of(network)
    if path is not None:
        target = check_path(path)
        try:
            Path(target).write_text(text, encoding="utf-8")
        except OSError as error:
            raise GraphNotWritable(path=target, reason=error.strerror or str(error)) from error
    return text


def _boxes(network: Network) -> dict[int, _Box]:
    """A box for each node that is no constant, one level below the lowest one that it reads."""
    found: dict[int, _Box] = {}
    for at, (node, kind) in enumerate(zip(network.nodes, network.types, strict=True)):
        if isinstance(node, ConstantNode):
            continue
        constants = [network.types[one] for one in node.operands if one not in found]
        name = getattr(node, "label", "") or getattr(node, "function", "")
        words = [] if isinstance(node, InputNode) else node.options().split(" ")
        options = [word for word in words if not word.startswith("function=")]
        weights = ", ".join(map(str, constants))
        above = [found[one].level for one in node.operands if one in found]
        level = 0 if isinstance(node, InputNode) else max(above, default=-1) + 1
        lines = (
            " ".join(filter(None, [node.name, name, *options])),
            f"{weights} -> {kind}" if weights else str(kind),
        )
        found[at] = _Box(at, lines, _COLOURS.get(node.name, "#ffffff"), level)
    return found


def _spread(row: Sequence[_Box]) -> None:
    """Places boxes side by side, in their order, around the middle."""
    x = -(sum(box.width for box in row) + _ACROSS * (len(row) - 1)) / 2
    for box in row:
        box.x = x
        x += box.width + _ACROSS


def _align(row: list[_Box], boxes: dict[int, _Box], network: Network) -> None:
    """Moves boxes below the mean of what they read, as far as their neighbours allow."""

    def wanted(box: _Box) -> float:
        above = [boxes[one].middle for one in network.nodes[box.at].operands if one in boxes]
        return sum(above) / len(above) if above else box.middle

    row.sort(key=wanted)
    aims = [wanted(box) - box.width / 2 for box in row]
    end = float("-inf")
    for box, aim in zip(row, aims, strict=True):
        box.x = max(aim, end)
        end = box.x + box.width + _ACROSS
    # Half of what a crowded row was pushed to the right goes back to the left.
    shift = sum(box.x - aim for box, aim in zip(row, aims, strict=True)) / (2 * len(row))
    for box in row:
        box.x -= shift


def _line(source: _Box, target: _Box) -> str:
    """The connection of two boxes."""
    first, last = source.y + _HEIGHT, target.y
    half = (first + last) / 2
    return (
        f'<path d="M{source.middle:.0f} {first:.0f}C{source.middle:.0f} {half:.0f} {target.middle:.0f} '
        f'{half:.0f} {target.middle:.0f} {last:.0f}" fill="none" stroke="#999999"/>'
    )


def _drawn(box: _Box, network: Network) -> list[str]:
    """A box and its text; those of results have a thick frame."""
    frame = 2.5 if box.at in network.results else 1
    place = f'x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{_HEIGHT}" rx="5"'
    found = [f'<rect {place} fill="{box.colour}" stroke="#555555" stroke-width="{frame}"/>']
    for line, y, weight in zip(box.lines, (16, 31), ("bold", "normal"), strict=True):
        style = f'text-anchor="middle" font-weight="{weight}"'
        found.append(f'<text x="{box.middle:.0f}" y="{box.y + y:.0f}" {style}>{escape(line)}</text>')
    return found


#: Nodes of the largest graph that a notebook shows as a picture, and so keeps in its file.
MOST_SHOWN_NODES = 400
#: Letters of the longest text of a graph: ten lines of a terminal.
_MOST_LETTERS = 800


def shortened(text: str) -> str:
    """A text that fits a screen: the middle of a long one is left out.

    >>> len(shortened("a" * 10_000)) <= 800
    True
    """
    if len(text) <= _MOST_LETTERS:
        return text
    half = _MOST_LETTERS // 2 - 5
    return f"{text[:half]} ... {text[-half:]}"


def graph_text(
    kind: str, nodes: Sequence[Node], types: Sequence[ValueType], outputs: Sequence[tuple[str, int]]
) -> str:
    """A graph in a line: its inputs with their types, its outputs, how many nodes it has."""
    inputs = [(node.label, types[at]) for at, node in enumerate(nodes) if isinstance(node, InputNode)]
    declared = ", ".join(f"{label}: {shape}" for label, shape in inputs)
    named = ", ".join(name for name, _ in outputs) or "no output yet"
    return shortened(f"<{kind} ({declared}) -> {named}, {len(nodes)} nodes>")


class Shown:
    """A graph that notebooks show as its picture."""

    __slots__ = ()

    network: Any

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002
        """Text, a picture in a frame, and the picture by itself for programs that print pages."""
        found = {"text/plain": repr(self)}
        try:
            network: Network = self.network
        except GraphWithoutOutput:
            return found
        if len(network.nodes) > MOST_SHOWN_NODES:
            return found
        picture = svg_of(network)
        frame = f'<div style="max-height: 40em; overflow: auto">{picture}</div>'
        return found | {"text/html": entry(repr(self), frame), "image/svg+xml": picture}
