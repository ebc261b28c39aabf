"""The loop nest of functions of pairs of elements: a task is several rows, or a part of a few rows."""

from __future__ import annotations

from tilewright.ir.expressions import (
    ADJACENT,
    AllOf,
    AnyOf,
    Compare,
    Constant,
    Expression,
    Name,
    Relation,
    ceildiv,
    maximum,
    minimum,
)
from tilewright.ir.nodes import Buffer, If, Program, Slice, Space, Statement
from tilewright.ir.primitives.pairs import CombineRows
from tilewright.machine.machine import Machine
from tilewright.macro.partition import TASK_ELEMENTS, TASK_UNIT, THREAD_TASKS, bounded, parallel, share, tasks
from tilewright.ops.binary.problem import BinaryFunction
from tilewright.ops.elementwise.nest import ElementCut
from tilewright.ops.unary.nest import STREAMED_COLUMN_LINES

#: The arrays of a call, in the order of its arguments.
ARRAYS = ("left", "right", "y")


def choose_pairs(problem: BinaryFunction, machine: Machine) -> ElementCut:
    """The cut of a function of pairs: results that fill half of the last cache are stored past the caches.

    >>> from tilewright.machine.catalog import find_machine
    >>> choose_pairs(BinaryFunction("add"), find_machine("znver5")).long_row
    1024
    """
    last, size = machine.l3 or machine.l2, problem.dtype.size
    return ElementCut(last.size // (2 * size), STREAMED_COLUMN_LINES * machine.l1.line // size)


def pair_sizes() -> tuple[str, ...]:
    """Run-time sizes in the order of the C signature; strides are in elements, `line` is from row to row.

    `left_column` and `right_column` are column strides: 1, or 0 for an operand with one element per row.
    """
    counts = ("batch", "outer", "rows", "columns")
    strides = [f"{array}_{axis}" for array in ARRAYS for axis in ("batch", "outer", "line")]
    return (*counts, *strides, "left_column", "right_column")


def _flag(threshold: int, size: Expression) -> Expression:
    """1 if a size is at least the threshold, else 0."""
    return minimum(maximum(size - (threshold - 1), 0), 1)


def build_pairs(problem: BinaryFunction, cut: ElementCut, name: str) -> Program:
    """The tile IR of a function of pairs of elements.

    Matrices × rows × parts of rows are one space of tasks; for a single thread, a task is a whole matrix.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> problem = BinaryFunction("add")
    >>> build_pairs(problem, choose_pairs(problem, find_machine("znver5")), "kernel").scratch
    ()
    """
    rows, columns, zero, one = Name("rows"), Name("columns"), Constant(0), Constant(1)
    i, j = Name("i"), Name("j")
    elements = Name("batch") * Name("outer") * rows * columns
    parts = ceildiv(bounded(tasks(THREAD_TASKS), elements, TASK_ELEMENTS), Name("batch") * Name("outer"))
    row_step, column_step = share(rows, 1, parts), share(columns, TASK_UNIT, ceildiv(parts, rows))
    stream = _flag(cut.stream_from, elements) * _flag(cut.long_row, columns)

    def lines(array: str, step: Expression) -> Slice:
        line = Name(f"{array}_line")
        matrix = Name("b") * Name(f"{array}_batch") + Name("o") * Name(f"{array}_outer")
        return Slice(array, matrix + i * line + j * step, (line, step))

    def statement(left: Expression, right: Expression) -> Statement:
        windows = (lines("y", ADJACENT), lines("left", left), lines("right", right))
        sizes = (minimum(row_step, rows - i), minimum(column_step, columns - j))
        return CombineRows(problem.op, *windows, *sizes, stream, problem.activation)

    def repeats(array: str) -> AnyOf:
        return AnyOf((AllOf((Compare(Relation.EQ, Name(f"{array}_column"), zero),)),))

    plain, of_left, of_right = statement(one, one), statement(zero, one), statement(one, zero)
    body = If(repeats("left"), (of_left,), (If(repeats("right"), (of_right,), (plain,)),))
    over_columns = parallel("j", zero, columns, column_step, body)
    over_rows = parallel("i", zero, rows, row_step, over_columns)
    over_outer = parallel("o", zero, Name("outer"), one, over_rows)
    return Program(
        name=name,
        sizes=pair_sizes(),
        scalars=(),
        buffers=tuple(Buffer(array, problem.dtype, Space.ARGUMENT) for array in ARRAYS),
        body=(parallel("b", zero, Name("batch"), one, over_outer),),
    )
