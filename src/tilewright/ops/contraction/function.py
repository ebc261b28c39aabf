"""A function of single elements as the primitive of a contraction of one operand."""

from __future__ import annotations

from tilewright.ir.expressions import Constant, Expression
from tilewright.ir.relocate import Place, Relocation
from tilewright.machine.machine import Machine
from tilewright.ops.contraction.primitive import PrimitiveContext, PrimitiveIR, PrimitiveLowering, split
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.unary.nest import Blocks, choose_blocks, lay_unary
from tilewright.ops.unary.problem import Unary
from tilewright.spec.functions import UnaryOp


def _lay(problem: Contraction, blocks: Blocks, _: Machine, context: PrimitiveContext) -> PrimitiveIR:
    """One function over up to two dimensions, in the order that suits their strides."""
    assert isinstance(problem.main, UnaryOp)
    one = Constant(1)
    inner = split(problem)[1]
    axes = [(each.extent, each.dimension.in0, each.dimension.out) for each in inner]
    if len(axes) < 2:  # all of it is one column
        size, source, to = axes[0] if axes else (one, 1, 1)
        sizes: tuple[Expression, Expression] = (size, one)
        a: tuple[Expression, Expression] = (Constant(source), size)
        b: tuple[Expression, Expression] = (Constant(to), size)
    else:

        def fitness(pair: list[tuple[Expression, int, int]]) -> tuple[bool, bool, int]:
            rows, columns = pair
            return rows[1:] == (1, 1), rows[1] == columns[2] == 1, abs(rows[2])

        (m, m_in, m_out), (n, n_in, n_out) = max((axes, axes[::-1]), key=fitness)
        sizes, a, b = (m, n), (Constant(m_in), Constant(n_in)), (Constant(m_out), Constant(n_out))
    body = lay_unary(Unary(problem.main, dtype=problem.dtype), blocks, sizes, (a, b), led=context.led)
    places = {"a": Place("in0"), "b": Place("out")}
    return PrimitiveIR(Relocation(places, {}, in_task=False).block(body))


def _choose(problem: Contraction, machine: Machine) -> Blocks:
    assert isinstance(problem.main, UnaryOp)
    return choose_blocks(Unary(problem.main, dtype=problem.dtype), machine)


FUNCTION = PrimitiveLowering(_choose, _lay)
