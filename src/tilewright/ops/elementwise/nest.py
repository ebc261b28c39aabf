"""The loops around functions of single elements: tasks of some rows, or of parts of few rows."""

from __future__ import annotations

from tilewright.errors import InvalidSize
from tilewright.ir.expressions import AllOf, AnyOf, Compare, Constant, Name, Relation, ceildiv, minimum
from tilewright.ir.nodes import Buffer, If, Program, Slice, Space, Traffic, UnaryMap
from tilewright.machine.machine import Machine
from tilewright.macro.partition import TASK_ELEMENTS, TASK_UNIT, THREAD_TASKS, bounded, parallel, share, tasks
from tilewright.ops.elementwise.problem import Elementwise
from tilewright.ops.rows.nest import row_sizes
from tilewright.ops.unary.nest import STREAMED_COLUMN_LINES
from tilewright.records import dataclass


@dataclass(frozen=True)
class ElementCut:
    """How functions of single elements are cut.

    Attributes
    ----------
    stream_from : results from this many elements on are written past the caches, in lines of at least
        `long_row` elements.
    """

    stream_from: int
    long_row: int

    def __post_init__(self) -> None:
        for name, size in self.__dict__.items():
            if size <= 0:
                raise InvalidSize(name=f"elementwise {name}", found=size, required="positive")


def choose_elements(problem: Elementwise, machine: Machine) -> ElementCut:
    """The cut of an elementwise function on a machine: past the caches what fills half of the last one.

    >>> from tilewright.machine.catalog import find_machine
    >>> choose_elements(Elementwise("relu"), find_machine("znver5")).long_row
    1024
    """
    last, size = machine.l3 or machine.l2, problem.y_dtype.size
    return ElementCut(last.size // (2 * size), STREAMED_COLUMN_LINES * machine.l1.line // size)


def build_elementwise(problem: Elementwise, cut: ElementCut, name: str) -> Program:
    """The tile IR of a function of single elements.

    Matrices × rows × parts of rows are one space of tasks; one thread takes the rows of a matrix at once.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> problem = Elementwise("gelu")
    >>> build_elementwise(problem, choose_elements(problem, find_machine("znver5")), "kernel").scratch
    ()
    """
    rows, columns, zero, one = Name("rows"), Name("columns"), Constant(0), Constant(1)
    i, j = Name("i"), Name("j")
    elements = Name("batch") * Name("outer") * rows * columns
    parts = ceildiv(bounded(tasks(THREAD_TASKS), elements, TASK_ELEMENTS), Name("batch") * Name("outer"))
    row_step, column_step = share(rows, 1, parts), share(columns, TASK_UNIT, ceildiv(parts, rows))

    def lines(array: str) -> Slice:
        line = Name(f"{array}_line")
        matrix = Name("b") * Name(f"{array}_batch") + Name("o") * Name(f"{array}_outer")
        return Slice(array, matrix + i * line + j, (one, line))

    def statement(traffic: Traffic) -> UnaryMap:
        sizes = (minimum(column_step, columns - j), minimum(row_step, rows - i))
        return UnaryMap(problem.op, lines("y"), lines("x"), *sizes, traffic)

    many = Compare(Relation.LE, Constant(cut.stream_from), elements)
    long = Compare(Relation.LE, Constant(cut.long_row), columns)
    past = AnyOf((AllOf((many, long)),))
    body = If(past, (statement(Traffic.STREAM),), (statement(Traffic.NEAR),))
    over_columns = parallel("j", zero, columns, column_step, body)
    over_rows = parallel("i", zero, rows, row_step, over_columns)
    over_outer = parallel("o", zero, Name("outer"), one, over_rows)
    return Program(
        name=name,
        sizes=row_sizes(),
        scalars=(),
        buffers=(
            Buffer("x", problem.dtype, Space.ARGUMENT),
            Buffer("y", problem.y_dtype, Space.ARGUMENT),
        ),
        body=(parallel("b", zero, Name("batch"), one, over_outer),),
    )
