"""The loops around products of elements and their sums: axes that are kept, then one primitive."""

from __future__ import annotations

from tilewright.errors import InvalidSize
from tilewright.ir.expressions import Constant, Expression, Name, ceildiv, maximum, minimum
from tilewright.ir.nodes import Buffer, Loop, Program, Slice, Space, Statement
from tilewright.ir.primitives.products import SIDE_BYTES, MultiplyRows, SumProducts
from tilewright.machine.machine import Machine
from tilewright.macro.partition import TASK_ELEMENTS, TASK_UNIT, THREAD_TASKS, bounded, parallel, share, tasks
from tilewright.ops.sum_of_products.problem import SumOfProducts, Walk
from tilewright.records import dataclass
from tilewright.spec.dtype import F32

#: Vectors of rows in a task of sums across rows.
ROW_VECTORS = 16

#: The axes of x, y and z, outermost first; z has no turns and no columns where they are summed.
AXES = ("batch", "outer", "turn", "row", "column")


#: Columns of a block across rows: as many places in as many pages as the table of pages holds at once.
BLOCK_COLUMNS = 64

#: Vectors of a row from which on it pays to read turns in the order of memory: joining lanes costs as much.
LONG_ROW_VECTORS = 4


@dataclass(frozen=True)
class ProductCut:
    """How products of elements are cut.

    Attributes
    ----------
    together : rows of a task are a multiple of so many.
    long_row : sums of rows of so many columns are made turn by turn, if turns are further apart than rows.
    block : columns of integers whose sums are made of all rows, before those of others are added.
    side : adjacent rows of floats whose sums are made at once at most.
    """

    together: int
    long_row: int
    block: int
    side: int = SIDE_BYTES // F32.size

    def __post_init__(self) -> None:
        for name, size in self.__dict__.items():
            if size <= 0:
                raise InvalidSize(name=f"products: {name}", found=size, required="positive")


def choose_products(problem: SumOfProducts, machine: Machine) -> ProductCut:
    """The cut of products of elements on a machine: across rows, whole vectors of them.

    >>> from tilewright.machine.catalog import find_machine
    >>> choose_products(SumOfProducts("across"), find_machine("znver5"))
    ProductCut(together=256, long_row=64, block=64, side=1024)
    """
    lanes = machine.isa.lanes(problem.acc)
    together = ROW_VECTORS * lanes if problem.walk in (Walk.ACROSS, Walk.WEIGHTED) else 1
    side = SIDE_BYTES // max(problem.dtype.size, problem.acc.size)
    return ProductCut(together, LONG_ROW_VECTORS * lanes, BLOCK_COLUMNS, side)


def product_sizes() -> tuple[str, ...]:
    """Run-time sizes in the order of the C signature: lengths of the axes, strides in elements of x, y, z."""
    return (
        *("batch", "outer", "turns", "rows", "columns"),
        *(f"{array}_{axis}" for array in "xyz" for axis in AXES),
    )


def _window(
    array: str, walk: Walk, row: Expression, column: Expression | None, turn: Expression | None
) -> Slice:
    """The window of an array that begins at a row, and where they count, a column and a turn."""
    step: dict[str, Expression] = {axis: Name(f"{array}_{axis}") for axis in AXES}
    if walk in (Walk.ACROSS, Walk.WEIGHTED):
        step["row"] = Constant(0) if array == "y" and walk is Walk.WEIGHTED else Constant(1)
    elif walk not in (Walk.APART, Walk.SINGLE):
        step["column"] = Constant(0) if array == "x" and walk is Walk.SPREAD else Constant(1)
    if array == "z" and walk.sums:
        step["column"] = Constant(0)
    start = Name("b") * step["batch"] + Name("o") * step["outer"] + row * step["row"]
    if turn is not None:
        start = start + turn * step["turn"]
    if column is not None and step["column"] != Constant(0):
        start = start + column * step["column"]
    return Slice(array, start, (step["row"], step["column"]))


def _holds(low: Expression, high: Expression) -> Expression:
    """1 where low < high, else 0."""
    return minimum(maximum(high - low, 0), 1)


def _sums_across(problem: SumOfProducts, cut: ProductCut, end: Expression) -> Statement:
    """The sums of rows of floats from `i` on that are adjacent, some at a time."""
    side, zero, s = Constant(cut.side), Constant(0), Name("s")
    x, y = (_window(array, problem.walk, s, None, None) for array in "xy")
    second = problem.factors == 2
    part = SumProducts(
        *(_window("z", problem.walk, s, None, None), x, minimum(side, end - s)),
        *(Name("columns"), Name("turns"), Name("x_turn"), zero),
        y if second else None,
        Name("y_turn") if second else None,
    )
    return Loop("s", Name("i"), end, side, (part,))


def _sums(problem: SumOfProducts, cut: ProductCut, rows: Expression) -> Statement:
    """The sums of some rows from `i` on: of everything at once, or of parts in the order of memory.

    Parts wait in z, which is as exact as the sums are kept: not in 16 bits.
    """
    walk, columns, turns = problem.walk, Name("columns"), Name("turns")
    zero, one, i, t, j = Constant(0), Constant(1), Name("i"), Name("t"), Name("j")
    by_turns: Expression = zero
    width: Expression = maximum(columns, 1)  # sums of nothing are 0
    if problem.acc == problem.dtype.real:
        if walk is Walk.ALONG:
            by_turns = _holds(Constant(cut.long_row - 1), columns) * _holds(Name("x_row"), Name("x_turn"))
        elif walk in (Walk.ACROSS, Walk.WEIGHTED):
            by_turns, width = one, Constant(cut.block)
    step = maximum(turns * (one - by_turns), 1)
    x, y = (_window(array, walk, i, j, t) for array in "xy")
    second = problem.factors == 2
    part = SumProducts(
        *(_window("z", walk, i, None, None), x, rows),
        *(minimum(width, columns - j), minimum(step, turns - t), Name("x_turn"), minimum(t + j, 1)),
        y if second else None,
        Name("y_turn") if second else None,
    )
    over_columns = Loop("j", zero, maximum(columns, 1), width, (part,))
    return Loop("t", zero, maximum(turns, 1), step, (over_columns,))


def build_products(problem: SumOfProducts, cut: ProductCut, name: str) -> Program:
    """The tile IR of products of elements.

    Kept axes × rows are one space of tasks, without a sum parts of rows too; what is summed is one task.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> problem = SumOfProducts("along", 2)
    >>> build_products(problem, choose_products(problem, find_machine("znver5")), "kernel").sizes[:5]
    ('batch', 'outer', 'turns', 'rows', 'columns')
    """
    rows, columns, turns, zero, one = Name("rows"), Name("columns"), Name("turns"), Constant(0), Constant(1)
    i, j, t = Name("i"), Name("j"), Name("t")
    kept = Name("batch") * Name("outer")
    if problem.walk.sums:
        step = share(rows, cut.together, ceildiv(tasks(THREAD_TASKS), kept))
        if problem.walk in (Walk.ACROSS, Walk.WEIGHTED) and not problem.acc.is_integer:
            sums = _sums_across(problem, cut, minimum(i + step, rows))
        else:
            sums = _sums(problem, cut, minimum(step, rows - i))
        body = parallel("i", zero, rows, step, sums)
    else:
        elements = kept * turns * rows * columns
        parts = ceildiv(bounded(tasks(THREAD_TASKS), elements, TASK_ELEMENTS), kept * turns)
        step, column_step = share(rows, 1, parts), share(columns, TASK_UNIT, ceildiv(parts, rows))
        sizes = (minimum(step, rows - i), minimum(column_step, columns - j))
        z, x, y = (_window(array, problem.walk, i, j, t) for array in "zxy")
        over_columns = parallel("j", zero, columns, column_step, MultiplyRows(z, x, y, *sizes))
        body = parallel("t", zero, turns, one, parallel("i", zero, rows, step, over_columns))
    over_outer = parallel("o", zero, Name("outer"), one, body)
    arrays = "xyz" if problem.factors == 2 else "xz"
    return Program(
        name=name,
        sizes=product_sizes(),
        scalars=(),
        buffers=tuple(Buffer(array, problem.dtype, Space.ARGUMENT) for array in arrays),
        body=(parallel("b", zero, Name("batch"), one, over_outer),),
    )
