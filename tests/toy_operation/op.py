"""The toy operation declared: cut and nest; all else follows from its operands."""

from __future__ import annotations

from tilewright.compiler.operation import Op
from tilewright.ir.expressions import Constant, Name
from tilewright.ir.nodes import Buffer, Program, Slice, Space, UnaryMap
from tilewright.machine.machine import Machine
from tilewright.spec.functions import UnaryOp
from toy_operation.problem import Squared


def squared_nest(problem: Squared, _cut: None, _machine: Machine, name: str) -> Program:
    """B = square(A), rows of A and B adjacent elements: one statement."""
    sizes = [Name(axis) if size is None else Constant(size) for axis, size in problem.operands[0].sizes]
    a, b = (
        Slice(operand.name, Constant(0), (Name(f"ld_{operand.name}"), Constant(1)))
        for operand in problem.operands
    )
    return Program(
        name=name,
        sizes=("m", "n", "ld_a", "ld_b"),
        scalars=(),
        buffers=tuple(Buffer(one.name, one.dtype, Space.ARGUMENT) for one in problem.operands),
        body=(UnaryMap(UnaryOp.SQUARE, b, a, sizes[0], sizes[1]),),
    )


SQUARED = Op(problem=Squared, cut=lambda *_: None, nest=squared_nest)
