"""Products by tables declared: their cut, nest, kernel names and C parameters."""

from __future__ import annotations

from tilewright.compiler.kernel import Kernel
from tilewright.compiler.operation import Compilation, Op
from tilewright.ir.expressions import Scalar
from tilewright.ir.nodes import Buffer, Program, Space
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Blocking, choose_blocking
from tilewright.ops.contraction.tables.nest import TABLE_SIZES, TABLES, lay_tables, table_instruction
from tilewright.ops.contraction.tables.problem import TableProduct
from tilewright.preparing import Late
from tilewright.spec.dtype import I64


def choose_tables(problem: TableProduct, machine: Machine) -> Blocking:
    """Register tile and cache blocks: those of the usual product."""
    return choose_blocking(machine, table_instruction(problem.sums, machine))


def build_tables(problem: TableProduct, cut: Blocking, machine: Machine, name: str) -> Program:
    """The five loops; C comes first, whose type is that of the sums and so of alpha and beta.

    >>> from tilewright.machine.catalog import find_machine
    >>> problem, machine = TableProduct("f32", sums="f64"), find_machine("znver5")
    >>> program = build_tables(problem, choose_tables(problem, machine), machine, "kernel")
    >>> [f"{buffer.name}: {buffer.dtype}" for buffer in program.arguments[:3]], program.scalars
    (['out: f64', 'a: f32', 'b: f32'], ('alpha', 'beta'))
    """
    factors = Scalar("alpha"), Scalar("beta")
    body, scratch = lay_tables(("a", "b"), problem.sums, cut, machine, factors)
    operands = zip(("out", "a", "b"), (problem.sums, problem.dtype, problem.b_dtype), strict=True)
    buffers = (
        *(Buffer(operand, dtype, Space.ARGUMENT) for operand, dtype in operands),
        *(Buffer(table, I64, Space.ARGUMENT) for table in TABLES),
        *scratch,
    )
    return Program(name, TABLE_SIZES, ("alpha", "beta"), buffers, body)


def _meaning(state: Compilation, name: str) -> str:
    if name in ("alpha", "beta"):
        return "of the sums, and of what C holds; a beta of 0 does not read C"
    if name in state.program.sizes:
        return "columns that are packed at a time" if name == "nc" else "entries of its tables"
    return "the element of index 0" if name in ("out", "a", "b") else "offsets, runs or steps, in elements"


TABLE_PRODUCT = Op(
    problem=TableProduct,
    cut=choose_tables,
    nest=build_tables,
    stem=lambda problem: f"table_product_{problem.dtype}{problem.b_dtype}{problem.sums}",
    kernel=Kernel,
    meaning=_meaning,
    written=lambda _: ("out",),
    strategy=lambda _: "five loops over tables of offsets",
    example=Late("tilewright.ops.contraction.tables.example:table_example"),
)
