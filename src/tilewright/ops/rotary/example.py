"""An example call of a rotary embedding: one matrix whose rows are at positions one after the other."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.compiler.example import Example, View
from tilewright.compiler.kernel import Kernel

#: Lengths that nobody gave.
_LENGTHS = {"batch": 1, "outer": 1, "rows": 64, "pairs": 32, "rest": 0}


def rotary_example(kernel: Kernel, wanted: Mapping[str, int]) -> Example:
    """Matrices without gaps, and tables of a row for each position.

    Examples
    --------
    >>> import tilewright as tw
    >>> found = rotary_example(tw.compile(tw.Rotary("f32"), "znver4"), {"rows": 4})
    >>> found.sizes["x_line"], found.tables["positions"]
    (64, (0, 1, 2, 3))
    """
    shape = {name: wanted.get(name, length) for name, length in _LENGTHS.items()}
    batch, outer, rows, pairs, rest = shape.values()
    width = 2 * pairs + rest
    sizes = {**shape, "cos_line": pairs, "sin_line": pairs}
    for array in ("x", "y"):
        sizes |= {
            f"{array}_batch": outer * rows * width,
            f"{array}_outer": rows * width,
            f"{array}_line": width,
        }
    sizes |= {"positions_batch": outer * rows, "positions_outer": rows, "positions_line": 1}
    matrix = View(batch * outer * rows, width, width, 1)
    angles = View(rows, pairs, pairs, 1, ("positions", "pairs"))
    positions = tuple(range(rows)) * (batch * outer)
    known = {name: sizes[name] for name in kernel.nest.sizes}
    views = {"x": matrix, "y": matrix, "cos": angles, "sin": angles}
    return Example(shape, known, {"positions": positions}, views)
