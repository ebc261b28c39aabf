"""The loops around embeddings: tasks of some rows, or of parts of few rows."""

from __future__ import annotations

from tilewright.ir.expressions import ADJACENT, Constant, Name, Scalar, ceildiv, minimum
from tilewright.ir.nodes import Buffer, Program, Slice, Space
from tilewright.ir.primitives.gather import GatherRows
from tilewright.macro.partition import TASK_UNIT, THREAD_TASKS, bounded, parallel, share, tasks
from tilewright.ops.embedding.cut import EmbeddingCut
from tilewright.ops.embedding.problem import Embedding
from tilewright.spec.dtype import F32, I64


def embedding_sizes() -> tuple[str, ...]:
    """Run-time sizes in the order of the C signature; strides are in elements, from row to row."""
    return ("rows", "columns", "y_line", "table_line")


def build_embedding(problem: Embedding, cut: EmbeddingCut, name: str) -> Program:
    """The tile IR of an embedding; rows × parts of rows are one space of tasks.

    Examples
    --------
    >>> build_embedding(Embedding("i8"), EmbeddingCut(1024), "kernel").arguments[1].name
    'scales'
    """
    rows, columns, zero, one = Name("rows"), Name("columns"), Constant(0), Constant(1)
    i, j = Name("i"), Name("j")
    parts = bounded(tasks(THREAD_TASKS), rows * columns, cut.task_elements)
    row_step, column_step = share(rows, 1, parts), share(columns, TASK_UNIT, ceildiv(parts, rows))
    gather = GatherRows(
        Slice("y", i * Name("y_line") + j, (Name("y_line"), ADJACENT)),
        Slice("table", j, (Name("table_line"), ADJACENT)),
        Slice("indices", i, (one, ADJACENT)),
        minimum(row_step, rows - i),
        minimum(column_step, columns - j),
        Scalar("scale") if problem.scaled else None,
        Slice("scales", zero, (one, ADJACENT)) if problem.quantised else None,
    )
    types = {"y": problem.result, "scales": F32, "table": problem.dtype, "indices": I64}
    if not problem.quantised:
        del types["scales"]
    over_columns = parallel("j", zero, columns, column_step, gather)
    return Program(
        name=name,
        sizes=embedding_sizes(),
        scalars=("scale",) if problem.scaled else (),
        buffers=tuple(Buffer(array, dtype, Space.ARGUMENT) for array, dtype in types.items()),
        body=(parallel("i", zero, rows, row_step, over_columns),),
    )
