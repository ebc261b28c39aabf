"""The main primitives of contractions: straight tiles, the nests of a GEMM, of tables, of a function."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, TypeAlias

from tilewright.ir.nodes import Applied, Buffer, Constant, Expression, Name, Slice, Space, Statement
from tilewright.ir.relocate import Place, Relocation
from tilewright.machine.isa import TileFma
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Blocking, Cover, choose_blocking
from tilewright.ops.batch_reduce.nest import (
    OperandSide,
    TileProduct,
    cover_product,
    lay_product,
    product_buffers,
)
from tilewright.ops.contraction.dimension import Dimension
from tilewright.ops.contraction.problem import Contraction, Main, check_loops
from tilewright.ops.contraction.tables.nest import TABLE_SIZES, TABLES, lay_tables, table_instruction
from tilewright.ops.contraction.tables.roles import OrderedAxes, is_swapped, ordered
from tilewright.ops.gemm.nest import lay_gemm
from tilewright.ops.gemm.product_nest import SCALARS, Nest, Sizes, Steps
from tilewright.ops.unary.nest import Blocks, choose_blocks, lay_unary
from tilewright.ops.unary.problem import Unary
from tilewright.spec.axes import StridedAxis
from tilewright.spec.dtype import I64
from tilewright.spec.functions import UnaryOp
from tilewright.spec.problem import Strategy
from tilewright.spec.roles import DimensionRole

#: How a contraction is cut: into tiles that cover known sizes, by caches, into blocks of lines.
ContractionCut: TypeAlias = Cover | Blocking | Blocks

#: The length that `is_swapped` assumes for a dimension whose size is given at run time: more than one.
OPEN_SIZE = 2


class PrimitiveForm(Enum):
    """How a main primitive is lowered.

    TILES: straight register tiles, sizes hardcoded. NEST: the loops of a GEMM, for sizes given at run time or
    so large that tiles alone would not stay in the caches. TABLES: the five loops over tables of offsets.
    FUNCTION: a function of single elements.
    """

    TILES = "tiles"
    NEST = "nest"
    TABLES = "tables"
    FUNCTION = "function"

    @classmethod
    def of(cls, problem: Contraction) -> PrimitiveForm:
        """That of a contraction.

        >>> PrimitiveForm.of(Contraction([Dimension("m", "primitive", in0=1, out=1)], main="gemm"))
        <PrimitiveForm.NEST: 'nest'>
        """
        if problem.is_unary:
            return cls.FUNCTION
        if problem.main is Main.PACKED_GEMM and problem.primitive:
            return cls.TABLES
        return cls.TILES if problem.hardcoded else cls.NEST


class DimensionLoop(NamedTuple):
    """A dimension and its name in tile IR."""

    axis: str
    dimension: Dimension

    @property
    def extent(self) -> Expression:
        """Its length: a number, or a size given at run time."""
        size = self.dimension.size
        return Name(f"{self.axis}_size") if size is None else Constant(size)


def named(problem: Contraction) -> tuple[DimensionLoop, ...]:
    """The dimensions with their names: type and place.

    >>> named(Contraction([Dimension("c", "primitive", in0=1, out=1)], main="relu"))[0].axis
    'c_0'
    """
    return tuple(
        DimensionLoop(f"{dimension.type.value}_{place}", dimension)
        for place, dimension in enumerate(problem.dimensions)
    )


def split(problem: Contraction) -> tuple[tuple[DimensionLoop, ...], tuple[DimensionLoop, ...]]:
    """The dimensions that run as loops, and those of the primitive.

    The batch of a brgemm is a loop too where tiles can't sum it in registers: its C then stays in the cache.
    """
    found = named(problem)
    loops = len(problem.loops)
    inner = found[loops:]
    if PrimitiveForm.of(problem) is PrimitiveForm.NEST and problem.batch is not None:
        first = next(one for one in inner if one.dimension.type is DimensionRole.K)
        return (*found[:loops], first), tuple(one for one in inner if one is not first)
    return found[:loops], inner


class PrimitiveIR(NamedTuple):
    """A primitive as tile IR.

    Attributes
    ----------
    statements : on operands that begin with the first element of the block.
    buffers : further ones: scratch, and arguments with tables.
    sizes : further arguments beside the sizes of dimensions.
    """

    statements: tuple[Statement, ...]
    buffers: tuple[Buffer, ...] = ()
    sizes: tuple[str, ...] = ()


# --- products -------------------------------------------------------------------------------------


class _ProductAxis(NamedTuple):
    """Rows, columns or depths of a product: length, and strides in the operand and in out."""

    size: Expression
    input: int = 0
    out: int = 0

    @property
    def is_one(self) -> bool:
        return self.size == Constant(1)


def _axis(problem: Contraction, kind: DimensionRole, name: str) -> _ProductAxis:
    """The one primitive dimension of a type, or one of length 1, whose strides do not count."""
    found = [one for one in split(problem)[1] if one.dimension.type is kind]
    if not found or found[-1].dimension.size == 1:
        return _ProductAxis(Constant(1), 1, 1)
    one = found[-1]
    return _ProductAxis(one.extent, getattr(one.dimension, name), one.dimension.out)


def _vectors_along_m(m: _ProductAxis, n: _ProductAxis) -> bool:
    """Whether vectors run along m: where out is adjacent there and not along n, or only in0 is adjacent."""

    def fitness(axis: _ProductAxis) -> tuple[bool, bool, bool]:
        several = not axis.is_one
        return several and axis.out == 1, several and axis.input == 1, several

    return fitness(m) > fitness(n)


def _product(problem: Contraction, *, adds: bool, steps: bool) -> TileProduct:
    """The product of a gemm or brgemm of known sizes."""
    m, n = _axis(problem, DimensionRole.M, "in0"), _axis(problem, DimensionRole.N, "in1")
    depth, batch = _depth(problem), problem.batch
    count = 1 if batch is None else batch.size or 1

    def side(name: str, lanes: _ProductAxis) -> OperandSide:
        step = 0 if batch is None else getattr(batch, name)
        lane, down = Constant(lanes.input), Constant(getattr(depth, name))
        return OperandSide(name, lane, down, Constant(step), problem.element_of(name))

    sides = (m, side("in0", m)), (n, side("in1", n))
    (rows, broadcast), (columns, vector) = sides[::-1] if _vectors_along_m(m, n) else sides
    assert isinstance(rows.size, Constant)
    assert isinstance(columns.size, Constant)
    return TileProduct(
        rows=rows.size.value or 1,  # of a size of 0 nothing is written, but there is a cover
        columns=columns.size.value or 1,
        depth=depth.size or 1,
        count=count,
        broadcast=broadcast,
        vector=vector,
        c=Slice("out", Constant(0), (Constant(rows.out), Constant(columns.out))),
        types=problem.types,
        beta=int(adds),
        steps=_applied(problem) if steps else (),
    )


def _depth(problem: Contraction) -> Dimension:
    """The inner primitive k; of length 1 where there is none."""
    found = [one.dimension for one in split(problem)[1] if one.dimension.type is DimensionRole.K]
    return found[-1] if found else Dimension("k", "primitive", 1)


def _applied(problem: Contraction) -> tuple[Applied, ...]:
    """The steps of the last touch, none of which has an operand."""
    types = problem.types
    return tuple(Applied(one.step) for one in problem.last.typed(types.sums, types.c))


def _lay_nest(
    problem: Contraction, blocking: Blocking, machine: Machine, *, adds: bool, steps: bool
) -> PrimitiveIR:
    """The loops of a GEMM whose strides are known."""
    m, n, depth = (
        _axis(problem, DimensionRole.M, "in0"),
        _axis(problem, DimensionRole.N, "in1"),
        _depth(problem),
    )
    extents = [one.extent for one in split(problem)[1] if one.dimension is depth]
    k = extents[0] if extents else Constant(1)
    strides = (m.input, depth.in0, depth.in1, n.input, m.out, n.out)
    sizes, types, isa = Sizes(m.size, n.size, k, *map(Constant, strides)), problem.types, machine.isa
    swapped = _vectors_along_m(m, n)
    edge = isa.edge_of(*(dtype.real for dtype in (types.a, types.b, types.c)))
    nest = Nest(
        *(sizes.swapped() if swapped else sizes, blocking, edge, types, _instruction(problem, machine)),
        a="b" if swapped else "a",
        b="a" if swapped else "b",
        steps=Steps(problem.last.typed(types.sums, types.c) if steps else ()),
    )
    body, buffers = lay_gemm(nest, Strategy.AUTO, machine)
    places = {"a": Place("in0"), "b": Place("in1"), "c": Place("out")}
    factors = dict(zip(SCALARS, (1.0, float(adds)), strict=True))
    return PrimitiveIR(Relocation(places, factors, in_task=False).block(body), buffers)


def _instruction(problem: Contraction, machine: Machine) -> TileFma:
    """The multiply instruction of a gemm: that of the broadcast operand and the one that makes vectors."""
    m, n = _axis(problem, DimensionRole.M, "in0"), _axis(problem, DimensionRole.N, "in1")
    types = problem.types
    return (
        machine.isa.tile(types.b, types.a) if _vectors_along_m(m, n) else machine.isa.tile(types.a, types.b)
    )


# --- tables ---------------------------------------------------------------------------------------


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


def _lay_tables(problem: Contraction, blocking: Blocking, machine: Machine, *, adds: bool) -> PrimitiveIR:
    """The five loops over tables, which are arguments of the program."""
    operands = ("in1", "in0") if swaps(problem) else ("in0", "in1")
    body, scratch = lay_tables(operands, problem.types.acc, blocking, machine, adds=adds)
    tables = tuple(Buffer(table, I64, Space.ARGUMENT) for table in TABLES)
    return PrimitiveIR(body, (*tables, *scratch), TABLE_SIZES)


# --- functions of elements ------------------------------------------------------------------------


def _lay_function(problem: Contraction, blocks: Blocks, *, led: bool) -> PrimitiveIR:
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
    body = lay_unary(Unary(problem.main, dtype=problem.dtype), blocks, sizes, (a, b), led=led)
    places = {"a": Place("in0"), "b": Place("out")}
    return PrimitiveIR(Relocation(places, {}, in_task=False).block(body))


# --- any of them ----------------------------------------------------------------------------------


def choose_contraction(problem: Contraction, machine: Machine) -> ContractionCut:
    """The cut of the primitive: register tiles, cache blocks, or blocks of lines.

    Raises
    ------
    ContractionPrimitive : if loops would round sums.
    """
    if not problem.is_unary:
        check_loops(problem)
    match PrimitiveForm.of(problem):
        case PrimitiveForm.FUNCTION:
            assert isinstance(problem.main, UnaryOp)
            return choose_blocks(Unary(problem.main, dtype=problem.dtype), machine)
        case PrimitiveForm.TABLES:
            return choose_blocking(machine, table_instruction(problem.types.acc, machine))
        case PrimitiveForm.NEST:
            return choose_blocking(machine, _instruction(problem, machine))
        case PrimitiveForm.TILES:
            return cover_product(_product(problem, adds=False, steps=False), machine)


def takes_steps(problem: Contraction) -> bool:
    """Whether a primitive can apply the last touch before it stores."""
    return PrimitiveForm.of(problem) in (PrimitiveForm.TILES, PrimitiveForm.NEST)


def lay_primitive(
    problem: Contraction, cut: ContractionCut, machine: Machine, *, adds: bool, steps: bool, led: bool
) -> PrimitiveIR:
    """The primitive of a contraction, on operands that begin with the first element of the block.

    Parameters
    ----------
    adds : to what out holds; else it is replaced.
    steps : the last touch is applied before sums are stored.
    led : the block is all of the operands.
    """
    match PrimitiveForm.of(problem), cut:
        case PrimitiveForm.TILES, Cover() as cover:
            product = _product(problem, adds=adds, steps=steps)
            buffers = product_buffers(product, cover, machine.isa, Space.THREAD)
            return PrimitiveIR(lay_product(product, cover, machine.isa), tuple(buffers))
        case PrimitiveForm.NEST, Blocking() as blocking:
            return _lay_nest(problem, blocking, machine, adds=adds, steps=steps)
        case PrimitiveForm.TABLES, Blocking() as blocking:
            return _lay_tables(problem, blocking, machine, adds=adds)
        case PrimitiveForm.FUNCTION, Blocks() as blocks:
            return _lay_function(problem, blocks, led=led)
        case _:
            raise AssertionError(f"{problem} was cut as {cut}")
