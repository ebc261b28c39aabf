"""The loops around functions of rows: matrices of lines, in tasks of some rows each."""

from __future__ import annotations

from tilewright.errors import InvalidSize
from tilewright.ir.expressions import (
    AllOf,
    AnyOf,
    Compare,
    Constant,
    Expression,
    Name,
    Relation,
    Scalar,
    ceildiv,
    maximum,
    minimum,
)
from tilewright.ir.nodes import Buffer, If, Loop, Program, Slice, Space, Statement
from tilewright.ir.primitives.rows import (
    PAIR,
    STATES,
    InverseDeviationRows,
    InverseRootRows,
    LayerNormRows,
    LogSoftmaxRows,
    MaxRows,
    MeanRows,
    MinRows,
    RmsNormRows,
    SoftmaxRows,
    SumRows,
)
from tilewright.machine.machine import Machine
from tilewright.macro.partition import TASK_ELEMENTS, THREAD_TASKS, bounded, parallel, share, tasks
from tilewright.ops.rows.problem import RowFunction
from tilewright.records import dataclass
from tilewright.spec.problem import Layout
from tilewright.spec.row_functions import RowOp

#: Bytes of adjacent rows that are computed side by side: a page, which is as much as memory reads at once in
#: its order; what is known of the rows takes three times as much, and stays in L1.
SIDE_BYTES = 4096

#: Vectors of rows that a task takes at least where rows are adjacent: whole lines of any type.
VECTORS = 4

#: What is fetched ahead, and what is kept between two passes, may take one part in so many of L2: beyond
#: 8192 columns on Zen 5 to compute exponentials twice took less time than to keep them.
FETCHED_PART = 4


@dataclass(frozen=True)
class RowCut:
    """Blocking of row functions.

    Attributes
    ----------
    together : rows of a task are multiples of this: for column-major layout, whole vectors of rows.
    side : maximum number of adjacent rows computed together.
    kept : rows of up to this many columns have a buffer that keeps values between two passes, and the next
        ones are fetched meanwhile.
    stream_from : results of at least this many elements are written with non-temporal stores.
    """

    together: int
    side: int
    kept: int
    stream_from: int

    def __post_init__(self) -> None:
        for name, size in self.__dict__.items():
            if size <= 0:
                raise InvalidSize(name=f"rows: {name}", found=size, required="positive")

    @property
    def room(self) -> int:
        """Size of the per-row state of adjacent rows: whole vectors, at any start row."""
        return self.side + self.together


def choose_rows(problem: RowFunction, machine: Machine) -> RowCut:
    """Choose the blocking of a row function on a machine.

    A pair of rows, their buffers and the prefetched pair take a quarter of L2. Results bypass the
    caches if they alone fill half of the last level: they would be evicted before anything reads
    them.

    >>> from tilewright.machine.catalog import find_machine
    >>> choose_rows(RowFunction("softmax", layout="col"), find_machine("znver5")).together
    64
    """
    lanes = machine.isa.lanes(problem.acc)
    last = machine.l3 or machine.l2
    return RowCut(
        together=VECTORS * lanes if problem.layout is Layout.COL else 1,
        side=SIDE_BYTES // problem.acc.size,
        kept=max(machine.l2.size // (FETCHED_PART * 3 * PAIR * problem.acc.size) // lanes, 1) * lanes,
        stream_from=last.size // (2 * problem.dtype.size),
    )


def row_sizes() -> tuple[str, ...]:
    """Run-time sizes in the order of the C signature; strides are in elements, `line` is from row to row, or
    from column to column where rows are adjacent; numbers of adjacent rows are adjacent themselves.
    """
    counts = ("batch", "outer", "rows", "columns")
    return (*counts, *(f"{array}_{axis}" for array in ("x", "y") for axis in ("batch", "outer", "line")))


def row_arguments(problem: RowFunction) -> tuple[Buffer, ...]:
    """Argument buffers in the order of the C signature."""
    found = [("x", problem.dtype), ("y", problem.dtype), ("weight", problem.weight), ("bias", problem.bias)]
    return tuple(Buffer(name, dtype, Space.ARGUMENT) for name, dtype in found if dtype is not None)


def _statements(
    problem: RowFunction, cut: RowCut, first: Expression, rows: Expression
) -> tuple[Statement, ...]:
    """The function of some rows of one matrix."""
    zero, one, columns = Constant(0), Constant(1), Name("columns")
    by_rows = problem.layout is Layout.ROW

    def lines(array: str) -> Slice:
        line = Name(f"{array}_line")
        strides: tuple[Expression, Expression] = (line, one) if by_rows else (one, line)
        if problem.op.reduces and array == "y":
            strides = (strides[0], zero)
        matrix = Name("b") * Name(f"{array}_batch") + Name("o") * Name(f"{array}_outer")
        return Slice(array, matrix + first * strides[0], strides)

    x, y = lines("x"), lines("y")
    weight, bias = (
        Slice(name, zero, (zero, one)) if getattr(problem, name) else None for name in ("weight", "bias")
    )
    elements = Name("batch") * Name("outer") * Name("rows") * columns
    stream = minimum(maximum(elements - (cut.stream_from - 1), 0), 1)
    near = minimum(maximum(Constant(cut.kept + 1) - columns, 0), 1)
    ahead = near * (PAIR * Name("x_line")) if by_rows else zero
    state = None if by_rows else Slice("state", zero, (Constant(cut.room), one))
    match problem.op:
        case RowOp.SOFTMAX if by_rows:
            # Long rows wait in y, or are computed again.
            short = AnyOf((AllOf((Compare(Relation.LE, columns, Constant(cut.kept)),)),))
            kept = Slice("kept", zero, (Constant(cut.kept), one))
            shorter = SoftmaxRows(y, x, rows, columns, stream, ahead, kept)
            return (If(short, (shorter,), (SoftmaxRows(y, x, rows, columns, zero, ahead),)),)
        case RowOp.SOFTMAX:
            return (SoftmaxRows(y, x, rows, columns, stream, ahead, None, state),)
        case RowOp.LOG_SOFTMAX:
            return (LogSoftmaxRows(y, x, rows, columns, stream, ahead, state),)
        case RowOp.LAYER_NORM:
            return (LayerNormRows(y, x, rows, columns, stream, ahead, Scalar("eps"), weight, bias, state),)
        case RowOp.RMS_NORM:
            return (RmsNormRows(y, x, rows, columns, stream, ahead, Scalar("eps"), weight, state),)
        case RowOp.INVERSE_DEVIATION:
            return (InverseDeviationRows(y, x, rows, columns, ahead, Scalar("eps"), state),)
        case RowOp.INVERSE_ROOT:
            return (InverseRootRows(y, x, rows, columns, ahead, Scalar("eps"), state),)
        case op:
            return (_REDUCTIONS[op](y, x, rows, columns, ahead, state),)


#: What makes one number of each row.
_REDUCTIONS = {RowOp.SUM: SumRows, RowOp.MEAN: MeanRows, RowOp.MAX: MaxRows, RowOp.MIN: MinRows}


def _scratch(problem: RowFunction, cut: RowCut) -> tuple[Buffer, ...]:
    """Scratch buffers: per-row state for column-major layout, otherwise softmax's exponentials."""
    if problem.layout is Layout.COL:
        return (Buffer("state", problem.acc, Space.THREAD, STATES * cut.room),)
    if problem.op is not RowOp.SOFTMAX:
        return ()
    return (Buffer("kept", problem.acc, Space.THREAD, PAIR * cut.kept),)


def build_row_function(problem: RowFunction, cut: RowCut, name: str) -> Program:
    """The tile IR of a function of rows.

    Matrices × rows are one space of tasks; one thread takes the rows of a matrix at once.

    Examples
    --------
    >>> from tilewright.machine.catalog import find_machine
    >>> problem = RowFunction("softmax")
    >>> cut = choose_rows(problem, find_machine("znver5"))
    >>> build_row_function(problem, cut, "kernel").arguments[1].name
    'y'
    """
    rows, zero, one, i = Name("rows"), Constant(0), Constant(1), Name("i")
    # Matrices are tasks already; rows are cut so that all together are enough for every thread.
    matrices = Name("batch") * Name("outer")
    elements = matrices * rows * Name("columns")
    parts = tasks(THREAD_TASKS)
    if problem.layout is Layout.ROW:  # adjacent rows spend from the budget, column by column
        parts = bounded(parts, elements, TASK_ELEMENTS)
    step = share(rows, cut.together, ceildiv(parts, matrices))
    inside = _statements(problem, cut, i, minimum(step, rows - i))
    if problem.layout is Layout.COL:
        end, side = minimum(i + step, rows), Constant(cut.side)
        beside = _statements(problem, cut, Name("s"), minimum(side, end - Name("s")))
        inside = (Loop("s", i, end, side, beside),)
    over_rows = parallel("i", zero, rows, step, *inside)
    over_outer = parallel("o", zero, Name("outer"), one, over_rows)
    return Program(
        name=name,
        sizes=row_sizes(),
        scalars=("eps",) if problem.op.takes_eps else (),
        buffers=(*row_arguments(problem), *_scratch(problem, cut)),
        body=(parallel("b", zero, Name("batch"), one, over_outer),),
    )
