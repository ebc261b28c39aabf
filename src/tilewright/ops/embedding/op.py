"""Embeddings declared: their cut, nest, kernel names and C parameters."""

from __future__ import annotations

from tilewright.compiler.kernel import Kernel
from tilewright.compiler.operation import Compilation, Op
from tilewright.ops.embedding.cut import choose_embedding
from tilewright.ops.embedding.nest import build_embedding
from tilewright.ops.embedding.problem import Embedding
from tilewright.preparing import Late

_MEANINGS = {
    "y": "rows x columns of {0}, elements of a row adjacent",
    "scales": "a {0} for each row of the table",
    "table": "rows of columns of {0}, elements of a row adjacent",
    "indices": "rows of {0}: a row of the table for each of y; not checked",
    "rows": "of y",
    "columns": "elements of a row",
    "y_line": "of y, from one row to the next",
    "table_line": "of the table, from one row to the next",
    "scale": "what every element is multiplied by",
}


def _meaning(state: Compilation, name: str) -> str:
    """What a parameter of the C function is."""
    buffers = {buffer.name: buffer.dtype for buffer in state.program.arguments}
    return _MEANINGS[name].format(buffers.get(name))


EMBEDDING = Op(
    problem=Embedding,
    cut=choose_embedding,
    nest=lambda problem, cut, _, name: build_embedding(problem, cut, name),
    stem=lambda problem: f"embedding_{problem.dtype}{'_scaled' * problem.scaled}",
    kernel=Kernel,
    formula=lambda problem: (
        f"y[i] = table[indices[i]]{' * scales[indices[i]]' * problem.quantised}"
        f"{' * scale' * problem.scaled}; a team's tasks are some rows each, or parts of rows."
    ),
    overlap=lambda _: "y overlaps nothing; strides are in elements.",
    meaning=_meaning,
    written=lambda _: ("y",),
    strategy=lambda _: "row by row, in whole vectors; the next row is fetched meanwhile",
    example=Late("tilewright.ops.embedding.example:embedding_example"),
)
