"""The primitive of a contraction by tables: its dimensions in the order of the tables, and its loops."""

from __future__ import annotations

from tilewright.ir.expressions import Scalar
from tilewright.ir.nodes import Buffer, Space
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Blocking, choose_blocking
from tilewright.ops.contraction.primitive import PrimitiveContext, PrimitiveIR, PrimitiveLowering
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.contraction.tables.nest import TABLE_SIZES, TABLES, lay_tables, table_instruction
from tilewright.ops.contraction.tables.roles import OrderedAxes, is_swapped, ordered
from tilewright.spec.axes import StridedAxis
from tilewright.spec.dtype import I64

#: The length that `is_swapped` assumes for a dimension whose size is given at run time: more than one.
OPEN_SIZE = 2


def swaps(problem: Contraction) -> bool:
    """Whether in1 is the A of a packed_gemm: a decision for all sizes that are given at run time."""
    return is_swapped(_axes(problem))


def table_axes(problem: Contraction, *, swapped: bool) -> OrderedAxes:
    """The primitive dimensions of a packed_gemm in the order of its tables: batch, rows, columns, depths."""
    return ordered(_axes(problem), swapped=swapped)


def _axes(problem: Contraction) -> list[StridedAxis]:
    axes = []
    for one in problem.primitive:
        given = {
            letter: getattr(one, name) if name in one.type.operands else None
            for letter, name in zip("abc", ("in0", "in1", "out"), strict=True)
        }
        axes.append(StridedAxis(OPEN_SIZE if one.size is None else one.size, **given))
    return axes


def _lay(
    problem: Contraction, blocking: Blocking, machine: Machine, context: PrimitiveContext
) -> PrimitiveIR:
    """The five loops over tables, which are arguments of the program."""
    operands = ("in1", "in0") if swaps(problem) else ("in0", "in1")
    factors = Scalar(1.0), Scalar(float(context.adds))
    body, scratch = lay_tables(operands, problem.types.acc, blocking, machine, factors)
    tables = tuple(Buffer(table, I64, Space.ARGUMENT) for table in TABLES)
    return PrimitiveIR(body, (*tables, *scratch), TABLE_SIZES)


def _choose(problem: Contraction, machine: Machine) -> Blocking:
    """Register tile and cache blocks: those of the usual product."""
    return choose_blocking(machine, table_instruction(problem.types.acc, machine))


TABLES_PRIMITIVE = PrimitiveLowering(_choose, _lay)
