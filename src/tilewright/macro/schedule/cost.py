"""Estimated cycles of a contraction whose primitive and dimensions are chosen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd, prod

from tilewright.machine.machine import Cache, Machine
from tilewright.macro.blocking import L2_BYTES_PER_CYCLE, RegisterTile, register_candidates, tile_cycles
from tilewright.macro.schedule.units import Units, units_of
from tilewright.spec.contraction import Contraction, Dimension, DimensionType, Main
from tilewright.spec.dtype import DType, Kind

#: Cycles to copy one element into a panel: measured 0.6 to 1 from 128x128 to 800x800 of float32.
PACK_CYCLES = 0.8

#: Cycles for one element of a tile of C that has no distances of its own and goes through a buffer.
SCATTER_CYCLES = 1.0

#: Bytes a cycle that the third cache gives one core: half of what the second does.
FAR_BYTES_PER_CYCLE = L2_BYTES_PER_CYCLE / 2

#: Cycles in which the five loops begin and end: bounds, tables, a first panel that nobody prefetched.
LOOPS_CYCLES = 2000

#: Share of a cache that one of several operands finds again.
NEAR_SHARE = 0.5


@dataclass(frozen=True)
class Estimate:
    """What a contraction takes on one core.

    Attributes
    ----------
    cycles : of all loops together.
    moved : elements that are copied into panels.
    far_bytes : bytes that come from behind the second cache.
    """

    cycles: float
    moved: int
    far_bytes: int


def estimate(contraction: Contraction, machine: Machine) -> Estimate:
    """Cycles of a contraction of two operands and known sizes: its primitive, as often as loops run it."""
    units = units_of(contraction, machine)
    model = _Model(contraction, machine, units, register_candidates(machine.isa, units.instruction))
    once = model.packed() if contraction.main is Main.PACKED_GEMM else model.in_place()
    calls = _elements(contraction.loops)
    return Estimate(calls * once.cycles, calls * once.moved, calls * once.far_bytes)


@dataclass(frozen=True)
class _Model:
    """What the estimates of one call of a primitive share."""

    contraction: Contraction
    machine: Machine
    units: Units
    tiles: tuple[RegisterTile, ...]

    def _of(self, kind: DimensionType) -> tuple[Dimension, ...]:
        """The primitive dimensions of a type."""
        return tuple(dimension for dimension in self.contraction.primitive if dimension.type is kind)

    def packed(self) -> Estimate:
        """The five loops around all rows, columns and depths."""
        units, cut = self.units, self.units.blocking
        rows, columns, depth = (_elements(self._of(kind)) for kind in (units.rows, units.columns, _K))
        (tile,) = (tile for tile in self.tiles if (tile.mr, tile.nr) == (cut.mr, cut.nr))
        blocks = max(1, -(-depth // cut.kc))
        each = tile_cycles(self.machine, units.instruction, tile, -(-depth // blocks), masked=False)
        multiply = blocks * -(-rows // cut.mr) * -(-columns // cut.nr) * each
        copied = depth * (columns + rows * -(-columns // cut.nc))
        scattered = 0 if self._whole_tiles() else blocks * rows * columns
        far = self._cold_bytes()
        once = multiply + PACK_CYCLES * copied + SCATTER_CYCLES * scattered + LOOPS_CYCLES
        return self._once(_elements(self._of(_C)) * once, _elements(self._of(_C)) * copied, far)

    def _once(self, cycles: float, moved: int, far_bytes: int) -> Estimate:
        """One call, which waits for what comes from far."""
        return Estimate(cycles + far_bytes / FAR_BYTES_PER_CYCLE, moved, far_bytes)

    def _whole_tiles(self) -> bool:
        """Whether register tiles of C keep their distances: no tile ends a dimension among others."""
        for kind in (self.units.rows, self.units.columns):
            found = self._of(kind)
            nearest = min(found, key=lambda dimension: abs(dimension.out), default=None)
            if len(found) > 1 and nearest is not None and (nearest.size or 1) % self.units.of(nearest):
                return False
        return True

    def in_place(self) -> Estimate:
        """One dimension of rows, of columns, one or two of depths, operands where they stand.

        A column that is not adjacent where its vectors come from is turned into panels first.
        """
        units, types = self.units, self.contraction
        row, column = (next(iter(self._of(kind)), None) for kind in (units.rows, units.columns))
        rows, columns = (d.size or 1 if d else 1 for d in (row, column))
        depth = _elements(self._of(_K))
        whole = types.dtype.kind is Kind.COMPLEX or not units.instruction.in_place
        far = self._cold_bytes() + self._again_bytes(rows)
        if column is not None and getattr(column, units.vectors_from) == 1 and not whole:
            copied, multiply = 0, self._tiles(rows, columns, depth)
        else:
            # Each of the products that are summed has panels, and tiles, of its own.
            count = self._of(_K)[0].size or 1 if len(self._of(_K)) > 1 else 1
            copied = depth * (columns + rows * whole)
            multiply = count * self._tiles(rows, columns, depth // count)
        scattered = 0 if column is None or column.out == 1 else rows * columns
        return self._once(multiply + PACK_CYCLES * copied + SCATTER_CYCLES * scattered, copied, far)

    def _tiles(self, rows: int, columns: int, depth: int) -> float:
        """The cheapest cover by equal register tiles."""
        instruction = self.units.instruction
        masked = columns % self.machine.isa.lanes(instruction.acc) != 0
        return min(
            -(-rows // tile.mr)
            * -(-columns // tile.nr)
            * tile_cycles(self.machine, instruction, tile, depth, masked=masked)
            for tile in self.tiles
        )

    def _dtype(self, operand: str) -> DType:
        types = self.contraction
        return {"in0": types.dtype, "in1": types.in1_dtype, "out": types.out_dtype}[operand]

    def _cold_bytes(self) -> int:
        """Bytes of one call from operands that the second cache does not hold whole."""
        found = 0
        for name in ("in0", "in1", "out"):
            size = self._dtype(name).size
            whole = _elements(d for d in self.contraction.dimensions if name in d.type.operands)
            if whole * size > NEAR_SHARE * self.machine.l2.size:
                found += size * _elements(d for d in self.contraction.primitive if name in d.type.operands)
        return found

    def _again_bytes(self, rows: int) -> int:
        """Bytes of vectors that come again for every row of tiles, as the second cache has evicted them."""
        name, l2 = self.units.vectors_from, self.machine.l2
        size = self._dtype(name).size
        inside = [d for d in self.contraction.primitive if name in d.type.operands]
        slice_bytes = size * _elements(inside)
        steps = [(abs(getattr(d, name)) * size, d.size or 1) for d in inside if d.type is _K]
        lost = any(count > NEAR_SHARE * rows_held(stride, l2) for stride, count in steps)
        if slice_bytes <= l2.size and not lost:
            return 0
        return slice_bytes * (-(-rows // self.units.blocking.mr) - 1)


def rows_held(stride_bytes: int, cache: Cache) -> int:
    """Lines that stand a stride apart and that a cache can hold: strides of powers of two fall into few sets.

    >>> l2 = Cache(size=1 << 20, ways=16, line=64)
    >>> rows_held(6400, l2), rows_held(8192, l2)
    (4096, 128)
    """
    lines = max(1, stride_bytes // cache.line)
    return cache.ways * cache.sets // gcd(lines, cache.sets)


_C, _K = DimensionType.BATCH, DimensionType.K


def _elements(dimensions: Iterable[Dimension]) -> int:
    return prod(dimension.size or 1 for dimension in dimensions)
