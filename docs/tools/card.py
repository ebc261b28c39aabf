"""Draws the social card: the picture of 1200 x 630 pixels that other sites show beside a link to this one."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import tilewright as tw

INK, TILE, BLOCK, PAPER = "#16324f", "#d1495b", "#8fb8de", "#f7f5f0"


def draw(path: Path) -> None:
    """A matrix cut into register tiles, one of them marked, beside the name."""
    figure = Figure(figsize=(12, 6.3), dpi=100, facecolor=PAPER)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, 1200)
    axes.set_ylim(630, 0)
    axes.axis("off")
    rows, columns, side = 8, 6, 46
    left, top = 850, 120
    for row in range(rows):
        for column in range(columns):
            in_block = row < 4 and column < 6
            colour = TILE if (row, column) == (2, 1) else BLOCK if in_block else "#dfe7ee"
            place = (left + column * side, top + row * side)
            axes.add_patch(Rectangle(place, side - 5, side - 5, facecolor=colour, edgecolor="none"))
    axes.text(80, 215, "Tilewright", fontsize=62, weight="bold", color=INK, va="center")
    words = "Matrix products, attention, models and loops,\nclose to your CPU's peak. In Python, over LLVM."
    axes.text(84, 350, words, fontsize=25, color=INK, va="center", linespacing=1.5)
    axes.text(84, 505, "pip install tilewright", fontsize=22, family="monospace", color=TILE, va="center")
    axes.text(left, 540, f"version {tw.__version__}", fontsize=15, color="#5c6b78", va="center")
    figure.savefig(path)
