"""A compiled einsum that also draws itself: its tree with the measured time of each node."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.errors import OutputNotWritable
from tilewright.ops.einsum.compiled import TreeCall
from tilewright.ops.einsum.tree import Leaf, Pair, Permutation, Tree, names_of, walk
from tilewright.plotting import OUR_COLOUR, check_plot_path
from tilewright.preparing import importing
from tilewright.spec.arguments import check_path

if TYPE_CHECKING:
    from os import PathLike

#: Inches for each operand, and for each level of the tree.
_LEAF_WIDTH, _LEVEL_HEIGHT = 1.5, 0.95
#: Letters of the title that an inch of the picture holds.
_LETTERS_IN_AN_INCH = 11
#: The colour of operands and lines.
_GREY = "#666666"


class CompiledEinsum(TreeCall):
    """What `tilewright.compile_einsum` and `tilewright.einsum_tree` return."""

    def picture(self, path: str | PathLike[str], *operands: Any, repeat: int = 5) -> None:
        """Measures each node and draws the tree: operands at the bottom, times at the nodes.

        Parameters
        ----------
        path : a file name that ends with .png, .svg or .pdf.
        operands : array_like; none: random ones.
        repeat : computations, of which the least time of each node counts.

        Raises
        ------
        InvalidChoice : the file name has another ending.
        PackageMissing : matplotlib is not installed.
        OutputNotWritable : the file cannot be written.
        """
        target = Path(check_path(path))
        check_plot_path(target)
        _draw(self.laid_tree, self.seconds(*operands, repeat=repeat), repr(self).strip("<>"), target)


def _places(tree: Tree) -> list[tuple[float, float]]:
    """The position of each node of `walk`: across operands, and above its children.

    >>> _places(Pair(Leaf("i", 0), Leaf("j", 1), "ij"))
    [(0.0, 0.0), (1.0, 0.0), (0.5, 1.0)]
    """
    found: list[tuple[float, float]] = []
    waiting: list[tuple[float, float]] = []
    leaves = 0
    for node in walk(tree):
        match node:
            case Leaf():
                place = (float(leaves), 0.0)
                leaves += 1
            case Permutation():
                across, level = waiting.pop()
                place = (across, level + 1)
            case Pair():
                right, left = waiting.pop(), waiting.pop()
                place = ((left[0] + right[0]) / 2, max(left[1], right[1]) + 1)
        found.append(place)
        waiting.append(place)
    return found


def _draw(tree: Tree, seconds: list[float], title: str, path: Path) -> None:
    """Writes the picture."""
    with importing:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

    places = _places(tree)
    width, height = max(x for x, _ in places) + 1, max(y for _, y in places) + 1
    figure = Figure(figsize=(max(5.0, _LEAF_WIDTH * width), 1 + _LEVEL_HEIGHT * height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_axis_off()
    text = textwrap.fill(title, int(_LETTERS_IN_AN_INCH * figure.get_figwidth()))
    axes.set_title(f"{text}\n{sum(seconds) * 1e6:,.0f} us in all nodes", loc="left", fontsize=10)
    times, total = iter(seconds), sum(seconds) or 1.0
    waiting: list[tuple[float, float]] = []
    for node, place in zip(walk(tree), places, strict=True):
        taken = {Leaf: 0, Permutation: 1, Pair: 2}[type(node)]
        for below in waiting[len(waiting) - taken :]:
            axes.plot([place[0], below[0]], [place[1], below[1]], color=_GREY, linewidth=1, zorder=1)
        del waiting[len(waiting) - taken :]
        waiting.append(place)
        text, share = names_of(node.labels) or "scalar", 0.0
        if not isinstance(node, Leaf):
            time = next(times)
            text, share = f"{text}\n{time * 1e6:,.1f} us", time / total
        axes.text(
            *place,
            text,
            ha="center",
            va="center",
            fontsize=8,
            color="white" if share > 0.5 else "black",
            bbox={
                "boxstyle": "round" if not isinstance(node, Permutation) else "rarrow",
                "facecolor": _shade(share),
                "edgecolor": OUR_COLOUR if taken else _GREY,
            },
            zorder=2,
        )
    axes.set_xlim(-0.7, width - 0.3)
    axes.set_ylim(-0.6, height - 0.4)
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise OutputNotWritable(path=str(path), reason=error.strerror or str(error)) from error


def _shade(share: float) -> tuple[float, ...]:
    """Our colour for all of the time, white for none.

    >>> _shade(0.0)
    (1.0, 1.0, 1.0)
    """
    with importing:
        from matplotlib.colors import to_rgb

    return tuple(1 - share * (1 - part) for part in to_rgb(OUR_COLOUR))
