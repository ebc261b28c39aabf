"""Kernel selection for products by tables: rows behind pointers, wider sums, several depths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.errors import TilewrightError
from tilewright.loops.llvm.symbols import Rows, split_rows
from tilewright.loops.nests.nest import Disjoint, MatrixOperand, MatrixProduct, ProductDimension, Refusal
from tilewright.loops.nests.polynomial import Polynomial, Symbol
from tilewright.loops.splice.plan import KernelPlan, ProductStrategy, is_plain, plan
from tilewright.machine.machine import Machine
from tilewright.ops.contraction.tables.nest import table_instruction
from tilewright.ops.contraction.tables.problem import TableProduct
from tilewright.records import dataclass
from tilewright.spec.dtype import ACCUMULATORS, F32, I64, DType, accumulator
from tilewright.spec.roles import DimensionRole

#: Multiply-adds below which loops are faster than filling tables (a Zen 5, f32: 16 x 16 x 16 loops).
LEAST_WORK = 1 << 14
#: The same for products that other kernels compute too, in loops around their calls.
LEAST_LARGE_WORK = 1 << 18


@dataclass(frozen=True)
class LocatedOperand:
    """One operand: where it begins, and what each dimension adds to that.

    Attributes
    ----------
    name : "a", "b" or "c", as the product's dimensions call it.
    operand : its memory and element type.
    """

    name: str
    operand: MatrixOperand

    @property
    def dtype(self) -> DType:
        """The element type, which is known in a plan."""
        assert self.operand.dtype is not None
        return self.operand.dtype

    @property
    def rows(self) -> Rows | None:
        """The rows behind pointers that it is in; None for a matrix."""
        base = self.operand.memory.base
        return base if isinstance(base, Rows) else None

    @property
    def base(self) -> Symbol:
        """The address that offsets begin at: of the matrix, or of the table of pointers."""
        return self.operand.memory.base if self.rows is None else self.rows.table

    def stride(self, dimension: ProductDimension) -> Polynomial:
        """Bytes from one index to the next; of rows, those in addresses and in the table."""
        found: Polynomial = getattr(dimension, self.name)
        return found

    def steps_rows(self, dimension: ProductDimension) -> bool:
        """Whether the dimension goes from one pointer to another."""
        return bool(split_rows(self.stride(dimension))[0])


@dataclass(frozen=True)
class TablePlan:
    """A product as calls of a kernel of tables.

    Attributes
    ----------
    product : the recognised product, or its transposed: adjacent elements of C are columns.
    problem : what the kernel computes.
    machine : whose cache blocks it is cut for.
    m, n, k : the dimensions in the tables, the fastest one last.
    around : the dimensions of loops around the call.
    least_work : multiply-adds below which something else runs.
    """

    product: MatrixProduct
    problem: TableProduct
    machine: Machine
    m: tuple[ProductDimension, ...]
    n: tuple[ProductDimension, ...]
    k: tuple[ProductDimension, ...]
    around: tuple[ProductDimension, ...]
    least_work: int = LEAST_WORK

    @property
    def narrows(self) -> bool:
        """Whether C is narrower than the sums, which are kept beside it until they are final."""
        return self.problem.sums != self.product.c.dtype

    @property
    def operands(self) -> tuple[LocatedOperand, LocatedOperand, LocatedOperand]:
        """A, B and C."""
        product = self.product
        return (
            LocatedOperand("a", product.a),
            LocatedOperand("b", product.b),
            LocatedOperand("c", product.c),
        )


def names_row_pointers(product: MatrixProduct) -> bool:
    """Whether an operand is rows behind pointers."""
    return any(isinstance(one.memory.base, Rows) for one in (product.a, product.b, product.c))


def plans(
    product: MatrixProduct, machine: Machine, strategy: ProductStrategy
) -> Sequence[KernelPlan | TablePlan] | Refusal:
    """Select the kernels of a product: of several plans, the first one runs whose conditions hold.

    Tables are for rows behind pointers, for sums that are wider than other kernels keep, and for products
    of several rows, columns or depths that no stride joins, as convolutions are.
    """
    if names_row_pointers(product):
        found = plan_tables(product, machine)
        return found if isinstance(found, Refusal) else [found]
    if is_stencil(product):
        return Refusal(product.where, STENCIL)
    usual = plan(product, machine, strategy)
    if strategy is not ProductStrategy.AUTO or product.triangle is not None:
        return usual if isinstance(usual, Refusal) else [usual]
    roles = {one.role for one in product.dimensions}
    matrix = roles >= {DimensionRole.M, DimensionRole.N, DimensionRole.K}
    if isinstance(usual, Refusal):
        found = plan_tables(product, machine)
        if isinstance(found, Refusal) or not _widens(found):
            return usual
        return Refusal(product.where, WIDE_INTEGERS) if _multiplies_halves(found) else [found]
    loops = not usual.intrinsic and any(one.role is not DimensionRole.BATCH for one in usual.around)
    large = plan_tables(product, machine) if loops and matrix else None
    if isinstance(large, TablePlan):
        return [replace(large, least_work=LEAST_LARGE_WORK), usual]
    return [usual]


WIDE_INTEGERS = "multiplies integers into 64 bits in adjacent elements, for which loops have an instruction"


def _multiplies_halves(plan: TablePlan) -> bool:
    """Whether loops multiply 32 bits by 32 into 64, in vectors, where kernels multiply 64 by 64.

    Measured on AVX2, n = 1000: loops over adjacent elements 177 ms, tables 281, other loops 950.
    """
    if plan.problem.sums is not I64 or I64 in (plan.problem.dtype, plan.problem.b_dtype):
        return False
    innermost = plan.product.dimensions[-1]
    return all(one.stride(innermost).constant in (0, one.dtype.size) for one in plan.operands)


def _widens(plan: TablePlan) -> bool:
    """Whether sums are wider than those of the kernels without tables."""
    return plan.problem.sums != accumulator(plan.problem.dtype, plan.problem.b_dtype)


STENCIL = "is a stencil: results that are next to each other read the same elements, and loops keep them"


def is_stencil(product: MatrixProduct) -> bool:
    """Whether one factor is a window that slides, and no dimension of the other one is in the result.

    >>> from tilewright.loops.nests.nest import Extent, Factor, MemoryObject, Where
    >>> from tilewright.loops.nests.polynomial import Index
    >>> y, x, w = (MatrixOperand(MemoryObject(Symbol(name), name), Polynomial(), None) for name in "yxw")
    >>> eight, none = Polynomial.of(8), Polynomial()
    >>> rows = ProductDimension(DimensionRole.M, Index("i"), Extent.of(90), eight, none, eight)
    >>> depths = ProductDimension(DimensionRole.K, Index("k"), Extent.of(5), eight, eight, none)
    >>> is_stencil(MatrixProduct(x, w, y, (rows, depths), Factor(), Factor(0), None, (), Where("f")))
    True
    """
    roles = {one.role for one in product.dimensions}
    if roles >= {DimensionRole.M, DimensionRole.N}:
        return False
    name = "a" if DimensionRole.M in roles else "b"
    lanes, depths = (
        {getattr(one, name) for one in product.dimensions if (one.role is DimensionRole.K) is deep}
        for deep in (False, True)
    )
    return any(lane in (depth, -depth) for lane in lanes for depth in depths)


def plan_tables(product: MatrixProduct, machine: Machine) -> TablePlan | Refusal:
    """Select the kernel of a product by tables.

    Returns
    -------
    Refusal : no such kernel supports the types, or what the product does with rows.
    """
    if product.triangle is not None:
        return Refusal(product.where, "computes one triangle of rows behind pointers")
    a, b, c = (operand.dtype for operand in (product.a, product.b, product.c))
    if a is None or b is None or c is None:
        return Refusal(product.where, "has elements of unknown type")
    try:
        sums = _sums(product, c)
        if sums is None:
            return Refusal(product.where, f"sums in {product.acc} what it stores as {c}")
        problem = TableProduct(a, b_dtype=b, sums=sums)
        table_instruction(problem.sums, machine)
    except TilewrightError as error:
        return Refusal(product.where, f"has no kernel: {error}")
    if not all(is_plain(one, problem.sums) for one in (product.alpha, product.beta)):
        return Refusal(product.where, f"scales sums of {c} by a number that {c} cannot represent")
    if _columns_adjacent(product, DimensionRole.M) and not _columns_adjacent(product, DimensionRole.N):
        product = _transposed(product)
        problem = TableProduct(b, b_dtype=a, sums=sums)
    roles = {role: [one for one in product.dimensions if one.role is role] for role in DimensionRole}
    found = TablePlan(
        product,
        problem,
        machine,
        _ordered(roles[DimensionRole.M], "a"),
        _ordered(roles[DimensionRole.N], "c"),
        _ordered(roles[DimensionRole.K], "b"),
        tuple(roles[DimensionRole.BATCH]),
    )
    reason = _check_rows(found)
    return found if reason is None else Refusal(product.where, reason)


def _sums(product: MatrixProduct, c: DType) -> DType | None:
    """The type of the kernel's sums: no narrower than the program's; None if there is none.

    Integers are right modulo a power of two in as many bits as C has.
    """
    acc = c if product.acc is None else product.acc
    if acc.is_integer != c.is_integer:
        return None
    if c.is_integer:
        return c if c in ACCUMULATORS else None
    return max((acc, c, F32), key=lambda dtype: dtype.bits)


def _columns_adjacent(product: MatrixProduct, role: DimensionRole) -> bool:
    """Whether adjacent elements of C are along a dimension of a role."""
    assert product.c.dtype is not None
    size = product.c.dtype.size
    return any(one.role is role and one.c.constant == size for one in product.dimensions)


def _transposed(product: MatrixProduct) -> MatrixProduct:
    """Cᵀ = Bᵀ·Aᵀ."""
    roles = {DimensionRole.M: DimensionRole.N, DimensionRole.N: DimensionRole.M}
    dimensions = tuple(
        replace(one, role=roles.get(one.role, one.role), a=one.b, b=one.a) for one in product.dimensions
    )
    conditions = tuple(
        Disjoint("a" if one.other == "b" else "b") if isinstance(one, Disjoint) else one
        for one in product.conditions
    )
    return replace(product, a=product.b, b=product.a, dimensions=dimensions, conditions=conditions)


def _ordered(dimensions: list[ProductDimension], name: str) -> tuple[ProductDimension, ...]:
    """Dimensions of one role, those with the smallest known stride in an operand last."""

    def distance(one: ProductDimension) -> tuple[bool, int]:
        stride: Polynomial = getattr(one, name)
        return stride.constant is not None, -abs(stride.constant or 0)

    return tuple(sorted(dimensions, key=distance))


def _check_rows(plan: TablePlan) -> str | None:
    """Why no table holds the rows of a product; None if tables do."""
    if not names_row_pointers(plan.product):
        return None
    if plan.around:
        return "has several products of rows behind pointers; the loops inside are looked at"
    for one in plan.operands:
        roles = {dimension.role for dimension in plan.product.dimensions if one.steps_rows(dimension)}
        if len(roles) > 1:
            return f"finds rows of {one.operand.memory.name} by the indices of several dimensions"
    return None
