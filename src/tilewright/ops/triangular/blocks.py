"""Loops that the nests of triangles share: blocks of columns, rows whose sums are kept, columns of tasks."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.ir.expressions import Constant, Expression, Name, maximum, minimum
from tilewright.ir.nodes import Let, Loop, Statement
from tilewright.macro.blocking import SUMS_ROWS
from tilewright.macro.partition import LEAST_TILES, ROW_TASKS, share, tasks
from tilewright.ops.gemm.cache_blocks import balanced
from tilewright.ops.gemm.product_nest import Nest


def column_blocks(
    nest: Nest, kc: Expression, most_columns: int, inside: tuple[Statement, ...]
) -> tuple[Statement, ...]:
    """The sizes of all blocks, and the loop jc over blocks of at most so many columns."""
    m, n, mr, jc = nest.sizes.m, nest.sizes.n, nest.tile.mr, Name("jc")
    rows_a_task = maximum(share(m, mr, tasks(ROW_TASKS)), LEAST_TILES * mr)
    return (
        Let("kc", kc),
        Let("mc", minimum(balanced(m, nest.blocking.mc, mr), rows_a_task)),
        Let("nc", balanced(n, most_columns, nest.columns_step)),
        Loop("jc", Constant(0), n, Name("nc"), (Let("jend", minimum(jc + Name("nc"), n)), *inside)),
    )


def kept_rows(
    nest: Nest,
    first: Expression,
    end: Expression,
    block: Callable[[Expression, Expression], tuple[Statement, ...]],
) -> tuple[Statement, ...]:
    """The loops over rows first .. end: all of them, or as many at a time as unfinished sums are kept of."""
    if nest.sums is None:
        return block(first, end)
    rows, ib = SUMS_ROWS // nest.tile.mr * nest.tile.mr, Name("ib")
    return (Loop("ib", first, end, Constant(rows), block(ib, minimum(ib + rows, end))),)
