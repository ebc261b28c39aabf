"""Estimated cycles of a contraction whose primitive and dimensions are chosen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd, prod

from tilewright.machine.machine import Cache, Machine
from tilewright.macro.blocking import L2_BYTES_PER_CYCLE, RegisterTile, register_candidates, tile_cycles
from tilewright.ops.contraction.problem import Contraction, Dimension, DimensionType, Main
from tilewright.ops.contraction.schedule.units import Units, units_of
from tilewright.spec.dtype import DType, Kind

#: Cycles to copy one element into a panel: measured 0.6 to 1 from 128x128 to 800x800 of float32.
PACK_CYCLES = 0.8

#: The same where lanes of a panel have no common distance, in squares and vectors of those that are adjacent:
#: measured on dimensions of 25.
PACK_APART_CYCLES = 2.5

#: Cycles for one element of a tile of C that has no distances of its own and goes through a buffer, some
#: columns at a time: measured on the same.
ACROSS_CYCLES = 1.5

#: Cycles for one element of C that goes through a buffer because its columns are not adjacent.
SCATTER_CYCLES = 4.0

#: Bytes from beyond the second cache for each cycle that is waited for them: most of that time multiplies go
#: on (measured on blocks of matrices of 600 to 1600).
FAR_BYTES_PER_CYCLE = 2 * L2_BYTES_PER_CYCLE

#: The same of what was there before, and is read in the order of registers, not of memory.
AGAIN_BYTES_PER_CYCLE = L2_BYTES_PER_CYCLE / 2

#: How much longer multiplies take whose broadcast rows stand on a page each: a tile walks along all of them,
#: and translations miss (measured: 64 rows 160 KB apart beside 25 of 100 bytes; decision 007 from 1024 on).
PAGES_SLOWDOWN = 1.1

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
    calls, far = _elements(contraction.loops), model.far_bytes()
    cycles = calls * once.cycles + far / FAR_BYTES_PER_CYCLE
    return Estimate(cycles, calls * once.moved, calls * once.far_bytes + far)


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
        """The five loops around all rows, columns and depths.

        Panels end with the nearest dimension of their type, or tiles reach over several of its indices: then
        lanes are packed one by one, and C goes through a buffer. Whatever is less.
        """
        units, cut = self.units, self.units.blocking
        rows, columns, depth = (_elements(self._of(kind)) for kind in (units.rows, units.columns, _K))
        (tile,) = (tile for tile in self.tiles if (tile.mr, tile.nr) == (cut.mr, cut.nr))
        blocks = max(1, -(-depth // cut.kc))
        each = tile_cycles(self.machine, units.instruction, tile, -(-depth // blocks), masked=False)
        copied = depth * (columns + rows * -(-columns // cut.nc))
        ended = self._panels(units.rows) * self._panels(units.columns)
        across = -(-rows // cut.mr) * -(-columns // cut.nr)
        multiply = blocks * ended * each + PACK_CYCLES * copied
        if across < ended:
            through = PACK_APART_CYCLES * copied + ACROSS_CYCLES * blocks * rows * columns
            multiply = min(multiply, blocks * across * each + through)
        batch = _elements(self._of(_C))
        return Estimate(batch * (multiply + LOOPS_CYCLES), batch * copied, 0)

    def _panels(self, kind: DimensionType) -> int:
        """Panels of rows or columns that end with the nearest dimension."""
        found = self._of(kind)
        nearest = min(found, key=lambda dimension: abs(dimension.out), default=None)
        if nearest is None:
            return 1
        size = nearest.size or 1
        return _elements(found) // max(size, 1) * -(-size // self.units.of(nearest))

    def in_place(self) -> Estimate:
        """One dimension of rows, of columns, one or two of depths, operands where they stand.

        A column that is not adjacent where its vectors come from is turned into panels first.
        """
        units, types = self.units, self.contraction
        row, column = (next(iter(self._of(kind)), None) for kind in (units.rows, units.columns))
        rows, columns = (d.size or 1 if d else 1 for d in (row, column))
        depth = _elements(self._of(_K))
        whole = types.dtype.kind is Kind.COMPLEX or not units.instruction.in_place
        again = self._again_bytes(rows)
        if column is not None and getattr(column, units.vectors_from) == 1 and not whole:
            copied, multiply = 0, self._tiles(rows, columns, depth)
        else:
            # Each of the products that are summed has panels, and tiles, of its own.
            count = self._of(_K)[0].size or 1 if len(self._of(_K)) > 1 else 1
            copied = depth * (columns + rows * whole)
            multiply = count * self._tiles(rows, columns, depth // count)
        if row is not None:
            name = units.broadcast_from
            if abs(getattr(row, name)) * self._dtype(name).size >= self.machine.page_bytes:
                multiply *= PAGES_SLOWDOWN
        scattered = 0 if column is None or column.out == 1 else rows * columns
        cycles = multiply + PACK_CYCLES * copied + SCATTER_CYCLES * scattered
        return Estimate(cycles + again / AGAIN_BYTES_PER_CYCLE, copied, again)

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

    def far_bytes(self) -> int:
        """Bytes of all calls from operands that the second cache does not hold whole.

        What a call reads stays there for the next one, if it is not too much and the loops in between walk
        along dimensions that the operand lacks.
        """
        found, near = 0, NEAR_SHARE * self.machine.l2.size
        loops = self.contraction.loops
        for name in ("in0", "in1", "out"):
            size = self._dtype(name).size
            whole = size * _elements(d for d in self.contraction.dimensions if name in d.type.operands)
            once = size * _elements(d for d in self.contraction.primitive if name in d.type.operands)
            if whole <= near:
                continue
            changing = [number for number, d in enumerate(loops) if name in d.type.operands or once > near]
            found += once * _elements(loops[: changing[-1] + 1] if changing else ())
        return found

    def _again_bytes(self, rows: int) -> int:
        """Bytes of a call's vectors that come again for every row of tiles, evicted from the second cache."""
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
