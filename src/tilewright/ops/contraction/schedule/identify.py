"""Choice of the primitive and of its dimensions: the cheapest candidate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import permutations

from tilewright.machine.machine import Machine
from tilewright.ops.contraction.dimension import Dimension, ExecutionType
from tilewright.ops.contraction.main import TABLE_DTYPES, Main
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.contraction.schedule.block import block
from tilewright.ops.contraction.schedule.estimate import estimate
from tilewright.ops.contraction.schedule.reorder import reorder
from tilewright.ops.contraction.schedule.units import ContractionTiles, units_of
from tilewright.spec.roles import DimensionRole

#: Sides of what a unary primitive moves: rows of in0, and rows of out.
_SIDES = ("in0", "out")

#: The order of the primitive dimensions of gemm.
_ORDER = (DimensionRole.M, DimensionRole.N, DimensionRole.K)


def identify(contraction: Contraction, machine: Machine) -> Contraction:
    """Primitive dimensions, behind all others.

    One dimension of rows, one of columns, one or two that are summed, if operands can be multiplied where
    they stand and that is cheapest by `cost.estimate`; else all of these, packed block by block. Of one
    operand: the dimension that is nearest in it, and the one that is nearest in the result.

    Where a size is open, dimensions stay in their order, in which calls give sizes: all are packed, or the
    last two moved.

    Before::

        m sequential 64 in0=1  in1=0  out=1
        n sequential 48 in0=0  in1=32 out=64
        k sequential 32 in0=64 in1=1  out=0

    After, with main=gemm::

        m primitive 64 in0=1  in1=0  out=1
        n primitive 48 in0=0  in1=32 out=64
        k primitive 32 in0=64 in1=1  out=0
    """
    if contraction.is_unary:
        given = contraction.dimensions
        return _inside(contraction, given[-2:] if contraction.is_open else _moved(given))
    return ways(contraction, machine)[0]


def ways(contraction: Contraction, machine: Machine) -> list[Contraction]:
    """Every way to run an unscheduled contraction of two operands, the cheapest first."""
    if contraction.is_open:
        return [_packed(contraction, contraction.dimensions)]
    types = contraction.types
    found = list(_in_place(contraction, units_of(contraction, machine)))
    if types.a == types.b and types.a in TABLE_DTYPES and types.c == types.acc:
        binary = [d for d in contraction.dimensions if d.type is not DimensionRole.BATCH]
        found.append(_packed(contraction, binary))
    return sorted(found, key=lambda way: estimate(reorder(block(way, machine), machine), machine).cycles)


def _packed(contraction: Contraction, inside: Iterable[Dimension]) -> Contraction:
    """These dimensions inside of the five loops."""
    return _inside(contraction.with_dimensions(contraction.dimensions, Main.PACKED_GEMM), inside)


def _in_place(contraction: Contraction, units: ContractionTiles) -> Iterator[Contraction]:
    """Primitives on operands in place: one dimension of rows, of columns, one or two of depths."""
    sums = contraction.of_type(DimensionRole.K)
    # As many sums as there are run inside of the primitive, which keeps them in registers.
    depths = list(permutations(sums, min(len(sums), 2)))
    columns = contraction.of_type(units.columns)
    adjacent = [column for column in columns if column.out == 1]
    for column in adjacent or columns or (None,):
        for row in contraction.of_type(units.rows) or (None,):
            for summed in depths:
                steps = [abs(getattr(dimension, units.broadcast_from)) for dimension in summed]
                if steps != sorted(steps, reverse=True):
                    continue  # the same as the other way round, whose depths are nearer
                main = Main.BRGEMM if len(summed) == 2 else Main.GEMM
                one_each = [d for d in (row, column, *summed[-1:]) if d is not None]
                one_each.sort(key=lambda dimension: _ORDER.index(dimension.type))
                way = contraction.with_dimensions(contraction.dimensions, main)
                yield _inside(way, (*summed[:-1], *one_each))


def _inside(contraction: Contraction, chosen: Iterable[Dimension]) -> Contraction:
    """The chosen dimensions as those of the primitive; rows or columns that are none stay loops."""
    inside = tuple(d for d in chosen if d.size != 0 or d.type is DimensionRole.K)
    numbers = {id(dimension) for dimension in inside}
    loops = [dimension for dimension in contraction.dimensions if id(dimension) not in numbers]
    found = [replace(dimension, execution=ExecutionType.PRIMITIVE) for dimension in inside]
    return contraction.with_dimensions([*loops, *found])


def _moved(dimensions: tuple[Dimension, ...]) -> list[Dimension]:
    """The dimensions nearest in either operand; where that is one, and the next nearest of the result."""
    left, found = list(dimensions), list[Dimension]()
    for side in _SIDES:
        nearest = min(left, key=lambda dimension: abs(getattr(dimension, side)), default=None)
        if nearest is not None:
            found.append(nearest)
            left = [dimension for dimension in left if dimension is not nearest]
    return sorted(found, key=lambda dimension: -abs(dimension.out))
