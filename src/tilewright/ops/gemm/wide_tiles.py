"""Tiles wider than the usual one: for strips of A, and for operands in place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from tilewright.ir.expressions import (
    AllOf,
    AnyOf,
    Compare,
    Constant,
    Expression,
    Name,
    Relation,
    ceildiv,
    minimum,
)
from tilewright.ir.nodes import Statement
from tilewright.machine.isa import Edge
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import wide_tile, wide_tiles_in_place
from tilewright.macro.cost import InPlaceLimits, RegisterTile, in_place_limits
from tilewright.ops.gemm.cache_blocks import packing
from tilewright.ops.gemm.product_nest import Nest, decide, ones

#: Columns of wide tiles from which on strips have them: of fewer, a narrow last one is too large a part. Of
#: the speed with usual tiles: 1000x64x1000 0.85, 1000x96x1000 1.10, 1000x160x1000 0.97, 1000x200x1000 1.05
#: (Emerald Rapids).
WIDE_PANELS = 4

#: Whole tiles of rows from which on operands in place have wide tiles: of fewer rows, partial tiles are too
#: large a part. Times with 12x32 over those with 8x48 or 6x64: 15x200x200 0.81, 17x100x100 1.0, 18x128x100
#: 1.16, 21x100x100 1.0, 28x200x200 1.12 (Emerald Rapids).
TILES_OF_ROWS = 2


class TilesInPlace(NamedTuple):
    """The nest of a tile for operands in place, and the condition under which it is taken."""

    nest: Nest
    condition: AnyOf


class WideTiles(NamedTuple):
    """Wider tiles than the usual one.

    Attributes
    ----------
    nest : that of the tile for strips of A where columns are many.
    limits : those of that tile.
    in_place : the tiles for operands in place, in the order in which they are tried.
    """

    nest: Nest
    limits: InPlaceLimits
    in_place: tuple[TilesInPlace, ...] = ()

    @classmethod
    def of(cls, nest: Nest, machine: Machine) -> WideTiles | None:
        """Those of a product, if its register tile has them; see `wide_tile`."""
        blocking, instruction = nest.blocking, nest.instruction
        if nest.packed:
            return None
        wide = wide_tile(machine, instruction, blocking.mr, blocking.nr)
        if wide is None:
            return None
        limits = in_place_limits(machine, instruction, wide.mr, wide.nr, nest.types)
        near = wide_tiles_in_place(machine, instruction, blocking.mr, blocking.nr)
        return cls(_with_tile(nest, wide), limits, tuple(_in_place(nest, near, machine)))

    @property
    def columns(self) -> int:
        """The fewest columns."""
        return WIDE_PANELS * self.nest.columns_step

    def strips(self, others: tuple[Statement, ...]) -> tuple[Statement, ...]:
        """Strips of an A in place where columns are many enough, else other statements.

        Elements that tiles convert are in place for few columns only.
        """
        if not (self.nest.uniform or self.nest.parts > 1):
            return others
        many = Compare(Relation.LE, Constant(self.columns), self.nest.sizes.n)
        wide = packing(self.nest, self.limits.strip, self.limits.strip_slice)
        return decide(AnyOf((AllOf((many,)),)), wide, others)


def _with_tile(nest: Nest, tile: RegisterTile) -> Nest:
    """A nest with another register tile, whose sums have the same order."""
    blocking = nest.blocking
    mc, nc = (block // unit * unit for block, unit in ((blocking.mc, tile.mr), (blocking.nc, tile.nr)))
    blocking = replace(blocking, mr=tile.mr, nr=tile.nr, mc=max(mc, tile.mr), nc=max(nc, tile.nr))
    return replace(nest, blocking=blocking)


def _in_place(nest: Nest, tiles: tuple[RegisterTile, ...], machine: Machine) -> Iterator[TilesInPlace]:
    """Wide tiles for operands in place, widest first.

    The tile is taken that loads least in all, where L1 holds a column of B for it. Of rows that are two whole
    tiles B may be anywhere: 8 and 8 rows read it as often as 12 and 4.
    """
    if not (nest.uniform and nest.edge is Edge.MASK):
        return
    sizes, lanes = nest.sizes, machine.isa.lanes(nest.types.acc)
    vectors = ceildiv(sizes.n, lanes)

    def loads(of: Nest) -> Expression:
        """Loads a depth: of each element of A for each column of tiles, of each vector of B for each row."""
        tile = of.tile
        return sizes.m * ceildiv(sizes.n, tile.nr) + vectors * ceildiv(sizes.m, tile.mr)

    least = loads(nest)
    found: list[TilesInPlace] = []
    for tile in tiles:
        wide = _with_tile(nest, tile)
        fewer = Compare(Relation.LT, loads(wide), least)
        rows = Compare(Relation.LE, Constant(TILES_OF_ROWS * tiles[0].mr), sizes.m)
        near = Compare(
            Relation.LE, Name("kc"), Constant(machine.l1.size // nest.instruction.b.bytes(tile.nr))
        )
        choices = [AllOf((rows, near, fewer, *ones(sizes.cs_b)))]
        if tile is tiles[0]:
            whole = Compare(Relation.EQ, sizes.m, Constant(TILES_OF_ROWS * tile.mr))
            choices.append(AllOf((whole, fewer, *ones(sizes.cs_b))))
        found.append(TilesInPlace(wide, AnyOf(tuple(choices))))
        least = minimum(least, loads(wide))
    yield from reversed(found)
