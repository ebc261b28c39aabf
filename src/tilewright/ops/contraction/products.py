"""Products of operands in place: straight tiles of known sizes, and the loops of a GEMM."""

from __future__ import annotations

from typing import NamedTuple

from tilewright.ir.expressions import Constant, Expression
from tilewright.ir.nodes import Applied, Slice, Space
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
from tilewright.ops.contraction.primitive import PrimitiveContext, PrimitiveIR, PrimitiveLowering, split
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.gemm.nest import lay_gemm
from tilewright.ops.gemm.product_nest import SCALARS, Nest, NestEpilogue
from tilewright.ops.gemm.sizes import Sizes
from tilewright.spec.problem import Strategy
from tilewright.spec.roles import DimensionRole


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
    problem: Contraction, blocking: Blocking, machine: Machine, context: PrimitiveContext
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
        steps=NestEpilogue(problem.last.typed(types.sums, types.c) if context.steps else ()),
    )
    body, buffers = lay_gemm(nest, Strategy.AUTO, machine)
    places = {"a": Place("in0"), "b": Place("in1"), "c": Place("out")}
    factors = dict(zip(SCALARS, (1.0, float(context.adds)), strict=True))
    return PrimitiveIR(Relocation(places, factors, in_task=False).block(body), buffers)


def _instruction(problem: Contraction, machine: Machine) -> TileFma:
    """The multiply instruction of a gemm: that of the broadcast operand and the one that makes vectors."""
    m, n = _axis(problem, DimensionRole.M, "in0"), _axis(problem, DimensionRole.N, "in1")
    types = problem.types
    return (
        machine.isa.tile(types.b, types.a) if _vectors_along_m(m, n) else machine.isa.tile(types.a, types.b)
    )


def _choose_tiles(problem: Contraction, machine: Machine) -> Cover:
    return cover_product(_product(problem, adds=False, steps=False), machine)


def _lay_tiles(
    problem: Contraction, cover: Cover, machine: Machine, context: PrimitiveContext
) -> PrimitiveIR:
    """Straight register tiles, sizes hardcoded."""
    product = _product(problem, adds=context.adds, steps=context.steps)
    buffers = product_buffers(product, cover, machine.isa, Space.THREAD)
    return PrimitiveIR(lay_product(product, cover, machine.isa), tuple(buffers))


def _choose_nest(problem: Contraction, machine: Machine) -> Blocking:
    return choose_blocking(machine, _instruction(problem, machine))


TILES = PrimitiveLowering(_choose_tiles, _lay_tiles)
NEST = PrimitiveLowering(_choose_nest, _lay_nest)
