"""An example call of an embedding: rows of a table in an order without a pattern."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.compiler.example import Example, View
from tilewright.compiler.kernel import Kernel

#: Lengths that nobody gave: tokens, elements of each, rows of the table.
_LENGTHS = {"rows": 64, "columns": 1000, "table": 1000}
#: A prime beyond any table: multiples of it visit rows in an order that has no short steps.
_STEP = 7_919


def embedding_example(kernel: Kernel, wanted: Mapping[str, int]) -> Example:
    """Rows of a table that are adjacent, each index another row.

    Examples
    --------
    >>> import tilewright as tw
    >>> found = embedding_example(tw.compile(tw.Embedding("f32"), "znver4"), {"rows": 3, "table": 10})
    >>> found.tables["indices"], found.views["table"].rows
    ((0, 9, 8), 10)
    """
    shape = {name: wanted.get(name, length) for name, length in _LENGTHS.items()}
    rows, columns, table = shape.values()
    sizes = {"rows": rows, "columns": columns, "y_line": columns, "table_line": columns}
    views = {
        "y": View(rows, columns, columns, 1),
        "table": View(table, columns, columns, 1, ("table", "columns")),
    }
    indices = tuple(at * _STEP % table for at in range(rows))
    known = {name: sizes[name] for name in kernel.nest.sizes}
    moved = sum(
        buffer.dtype.bytes(rows * columns) for buffer in kernel.nest.arguments if buffer.name in views
    )
    return Example(shape, known, {"indices": indices}, views, moved)
