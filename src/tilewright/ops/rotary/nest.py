"""The loops around rotary embeddings: tasks of some rows each."""

from __future__ import annotations

from tilewright.ir.expressions import ADJACENT, Constant, Expression, Name, ceildiv, minimum
from tilewright.ir.nodes import Buffer, Program, Slice, Space
from tilewright.ir.primitives.rotary import RotateRows
from tilewright.macro.partition import THREAD_TASKS, bounded, parallel, share, tasks
from tilewright.ops.rotary.cut import RotaryCut
from tilewright.ops.rotary.problem import Rotary
from tilewright.spec.dtype import I64

#: Axes around the elements of a row, and the arrays that have strides along all of them.
AXES, WALKED = ("batch", "outer", "line"), ("x", "y", "positions")


def rotary_sizes() -> tuple[str, ...]:
    """Run-time sizes in the order of the C signature; strides are in elements, `line` is from row to row.

    A row has `pairs` pairs that are rotated, then `rest` elements that are copied.
    """
    counts = ("batch", "outer", "rows", "pairs", "rest")
    strides = [f"{array}_{axis}" for array in WALKED for axis in AXES]
    return (*counts, *strides, "cos_line", "sin_line")


def build_rotary(problem: Rotary, cut: RotaryCut, name: str) -> Program:
    """The tile IR of a rotary embedding.

    Matrices × rows are one space of tasks; one thread takes the rows of a matrix at once.

    Examples
    --------
    >>> build_rotary(Rotary(), RotaryCut(1024), "kernel").arguments[0].name
    'x'
    """
    rows, pairs, rest = Name("rows"), Name("pairs"), Name("rest")
    zero, one, i = Constant(0), Constant(1), Name("i")
    matrices = Name("batch") * Name("outer")
    elements = matrices * rows * (2 * pairs + rest)
    parts = bounded(tasks(THREAD_TASKS), elements, cut.task_elements)
    step = share(rows, 1, ceildiv(parts, matrices))

    def lines(array: str) -> Slice:
        strides: tuple[Expression, ...] = tuple(Name(f"{array}_{axis}") for axis in AXES)
        batch, outer, line = strides
        return Slice(array, Name("b") * batch + Name("o") * outer + i * line, (line, ADJACENT))

    def angles(table: str) -> Slice:
        return Slice(table, zero, (Name(f"{table}_line"), ADJACENT))

    rotation = RotateRows(
        problem.pairing,
        lines("y"),
        lines("x"),
        angles("cos"),
        angles("sin"),
        positions=lines("positions"),
        rows=minimum(step, rows - i),
        pairs=pairs,
        rest=rest,
    )
    over_rows = parallel("i", zero, rows, step, rotation)
    over_outer = parallel("o", zero, Name("outer"), one, over_rows)
    types = {"x": problem.dtype, "y": problem.dtype, "cos": problem.tables, "sin": problem.tables}
    return Program(
        name=name,
        sizes=rotary_sizes(),
        scalars=(),
        buffers=tuple(
            Buffer(array, dtype, Space.ARGUMENT) for array, dtype in {**types, "positions": I64}.items()
        ),
        body=(parallel("b", zero, Name("batch"), one, over_outer),),
    )
