"""Operands of a product by tables: their first elements, and the fused dimensions that they have."""

from __future__ import annotations

from tilewright.llvm.build import Function
from tilewright.llvm.values import POINTER, Value
from tilewright.loops.llvm.symbols import split_rows
from tilewright.loops.nests.nest import ProductDimension
from tilewright.loops.nests.polynomial import Polynomial
from tilewright.loops.splice.arithmetic import UNKNOWN_ALIGNMENT, Invariants
from tilewright.loops.splice.table_plan import LocatedOperand, TablePlan
from tilewright.records import dataclass


@dataclass(frozen=True)
class FusedDimensions:
    """The lanes or depths of a product: dimensions that run as one, and the operands that have them.

    Attributes
    ----------
    letter : "m", "n" or "k".
    dimensions : the fastest one last.
    operands : the names of two operands.
    """

    letter: str
    dimensions: tuple[ProductDimension, ...]
    operands: tuple[str, str]


def fused_dimensions(plan: TablePlan) -> tuple[FusedDimensions, FusedDimensions, FusedDimensions]:
    """Rows, columns and depths."""
    return (
        FusedDimensions("m", plan.m, ("a", "c")),
        FusedDimensions("n", plan.n, ("b", "c")),
        FusedDimensions("k", plan.k, ("a", "b")),
    )


def row_pointer(f: Function, invariants: Invariants, one: LocatedOperand, offset: Value) -> Value:
    """The pointer that an operand's table holds at an offset."""
    return f.load(POINTER, f.at(invariants.address(one.base, Polynomial()), offset), UNKNOWN_ALIGNMENT)


def origin_of(f: Function, invariants: Invariants, one: LocatedOperand) -> Value:
    """The address of an operand's first element."""
    if one.rows is None:
        return invariants.address(one.base, one.operand.offset)
    table, row = split_rows(one.operand.offset)
    pointer = row_pointer(f, invariants, one, invariants.integer(table, f))
    return f.at(pointer, invariants.integer(row, f))
