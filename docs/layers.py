"""Draws docs/images/layers.svg: the layers of `src/tilewright`, top to bottom, with the rooms inside them.

    python docs/layers.py

The order is that of `LAYERS` and `ORDERS` in tests/test_architecture.py, which checks the imports; the words
are the first lines of the packages' docstrings.
"""

from __future__ import annotations

import ast
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "tilewright"
PICTURE = ROOT / "docs" / "images" / "layers.svg"

#: Which side of a call a layer is on, by the colour of its box.
COLOURS = {
    "people and programs outside": (
        "#e8eef7",
        (
            *("tools", "torch", "jax", "dask", "__init__", "onnx", "array_api", "einops", "graph", "loops"),
            *("aot", "weights", "configuration", "installation"),
        ),
    ),
    "one call": ("#e5f2e5", ("ops", "calls", "compiler", "threads")),
    "machine code": ("#fdf1dc", ("micro", "macro", "llvm", "ir")),
    "tables and records": ("#f3e8f3", ("machine", "spec")),
    "floor": (
        "#eeeeee",
        (
            "store",
            "progress",
            "settings",
            "atomic",
            "reading",
            "registered",
            "preparing",
            "cached",
            "records",
            "plotting",
            "notebook",
            "deprecated",
            "logs",
            "recorder",
            "errors",
            "typing",
        ),
    ),
}
WIDTH, LEFT, LINE, GAP, ROOM_LETTERS = 960, 20, 17, 8, 116


def constant(name: str) -> object:
    """A table of tests/test_architecture.py."""
    tree = ast.parse((ROOT / "tests" / "test_architecture.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.literal_eval(node.value)
    raise LookupError(name)


def duty(path: Path) -> str:
    """The first line of a module's docstring."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def lines_of(words: list[str], letters: int) -> list[str]:
    """Words in lines of at most so many letters, separated by dots."""
    lines = [""]
    for word in words:
        longer = f"{lines[-1]} · {word}" if lines[-1] else word
        if len(longer) > letters:
            lines.append(word)
        else:
            lines[-1] = longer
    return [line for line in lines if line]


def boxes() -> list[tuple[str, str, list[str]]]:
    """Title, duty and inner rooms of each box; the floor is one box."""
    layers, orders = constant("LAYERS"), constant("ORDERS")
    assert isinstance(layers, tuple)
    assert isinstance(orders, dict)
    floor = COLOURS["floor"][1]
    found = []
    for layer in layers:
        if layer in floor or layer == "__main__":
            continue
        module = SOURCE / f"{layer}.py"
        path = module if module.exists() else SOURCE / layer / "__init__.py"
        title = "tilewright" if layer == "__init__" else layer if module.exists() else f"{layer}/"
        found.append((title, duty(path), lines_of(list(orders.get(layer, ())), ROOM_LETTERS)))
    found.append(("floor", "Imported by every layer: " + ", ".join(floor) + ".", []))
    return found


def colour(title: str) -> str:
    """The fill of a box."""
    name = "__init__" if title == "tilewright" else title.rstrip("/")
    return next((fill for fill, layers in COLOURS.values() if name in layers), COLOURS["floor"][0])


def draw() -> str:
    """The picture as SVG text."""
    parts, top = [], 44
    for title, words, rooms in boxes():
        height = LINE * (1 + len(rooms)) + 12
        parts.append(
            f'<rect x="{LEFT}" y="{top}" width="{WIDTH - 2 * LEFT}" height="{height}" rx="5" '
            f'fill="{colour(title)}" stroke="#777777"/>'
        )
        parts.append(f'<text x="{LEFT + 12}" y="{top + 20}" font-weight="bold">{escape(title)}</text>')
        parts.append(f'<text x="{LEFT + 115}" y="{top + 20}">{escape(words)}</text>')
        for number, line in enumerate(rooms, 1):
            parts.append(
                f'<text x="{LEFT + 115}" y="{top + 20 + number * LINE}" fill="#555555">{escape(line)}</text>'
            )
        top += height + GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top + 8}" '
        f'viewBox="0 0 {WIDTH} {top + 8}" font-family="Helvetica, Arial, sans-serif" font-size="13">'
    )
    title = f'<text x="{LEFT}" y="28" font-size="15">Imports go downward only, also inside a box.</text>'
    ground = f'<rect width="{WIDTH}" height="{top + 8}" fill="#ffffff"/>'
    return "\n".join([head, ground, title, *parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
