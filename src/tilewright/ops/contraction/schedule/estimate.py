"""Predicted cycles of a contraction whose primitive and dimensions are chosen."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from tilewright.machine.machine import Machine
from tilewright.macro.blocking import register_candidates
from tilewright.macro.cost import KEPT_SHARE, RegisterTile, rows_held, tile_cycles
from tilewright.ops.contraction.dimension import Dimension
from tilewright.ops.contraction.main import Main
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.contraction.schedule.units import ContractionTiles, units_of
from tilewright.records import dataclass
from tilewright.spec.dtype import DType, Kind
from tilewright.spec.roles import DimensionRole


@dataclass(frozen=True)
class ScheduleEstimate:
    """Predicted cost of a scheduled contraction on one core.

    Attributes
    ----------
    cycles : of all loops together.
    moved : elements that are copied into panels.
    far_bytes : bytes that come from beyond the second cache.
    """

    cycles: float
    moved: int
    far_bytes: int


def estimate(contraction: Contraction, machine: Machine) -> ScheduleEstimate:
    """Cycles of a contraction of two operands and known sizes: its primitive, as often as loops run it."""
    units = units_of(contraction, machine)
    cost = _PrimitiveCost(contraction, machine, units, register_candidates(machine.isa, units.instruction))
    once = cost.packed() if contraction.main is Main.PACKED_GEMM else cost.in_place()
    calls, far = _elements(contraction.loops), cost.far_bytes()
    cycles = calls * once.cycles + far / machine.core.exposed_l3_bytes_per_cycle
    return ScheduleEstimate(cycles, calls * once.moved, calls * once.far_bytes + far)


@dataclass(frozen=True)
class _PrimitiveCost:
    """The primitive of a contraction on a machine, and its candidate register tiles."""

    contraction: Contraction
    machine: Machine
    units: ContractionTiles
    tiles: tuple[RegisterTile, ...]

    def _of(self, kind: DimensionRole) -> tuple[Dimension, ...]:
        """The primitive dimensions of a type."""
        return tuple(dimension for dimension in self.contraction.primitive if dimension.type is kind)

    def packed(self) -> ScheduleEstimate:
        """The five loops around all rows, columns and depths.

        Panels either end where the innermost dimension of their type does, or extend over several of its
        indices: then lanes are packed one by one, and C goes through a buffer. The cheaper of the two.
        """
        units, cut, core = self.units, self.units.blocking, self.machine.core
        rows, columns, depth = (_elements(self._of(kind)) for kind in (units.rows, units.columns, _K))
        (tile,) = (tile for tile in self.tiles if (tile.mr, tile.nr) == (cut.mr, cut.nr))
        blocks = max(1, -(-depth // cut.kc))
        each = tile_cycles(self.machine, units.instruction, tile, -(-depth // blocks), masked=False)
        copied = depth * (columns + rows * -(-columns // cut.nc))
        ended = self._panels(units.rows) * self._panels(units.columns)
        across = -(-rows // cut.mr) * -(-columns // cut.nr)
        multiply = blocks * ended * each + core.pack_cycles * copied
        if across < ended:
            through = core.gather_cycles * copied + core.strided_store_cycles * blocks * rows * columns
            multiply = min(multiply, blocks * across * each + through)
        batch = _elements(self._of(_C))
        return ScheduleEstimate(batch * (multiply + core.nest_cycles), batch * copied, 0)

    def _panels(self, kind: DimensionRole) -> int:
        """Panels of rows or columns where none extends over the end of the innermost dimension."""
        found = self._of(kind)
        nearest = min(found, key=lambda dimension: abs(dimension.out), default=None)
        if nearest is None:
            return 1
        size = nearest.size or 1
        return _elements(found) // max(size, 1) * -(-size // self.units.of(nearest))

    def in_place(self) -> ScheduleEstimate:
        """One dimension of rows, of columns, one or two of depths, operands in place.

        Columns whose elements are not adjacent in the operand of the vectors are packed into panels first.
        """
        units, types, core = self.units, self.contraction, self.machine.core
        row, column = (next(iter(self._of(kind)), None) for kind in (units.rows, units.columns))
        rows, columns = (d.size or 1 if d else 1 for d in (row, column))
        depth = _elements(self._of(_K))
        whole = types.dtype.kind is Kind.COMPLEX or not units.instruction.in_place
        reread = self._reread_bytes(rows)
        if column is not None and getattr(column, units.vectors_from) == 1 and not whole:
            copied, multiply = 0, self._tiles(rows, columns, depth)
        else:
            # Each product of the batch has panels, and register tiles, of its own.
            count = self._of(_K)[0].size or 1 if len(self._of(_K)) > 1 else 1
            copied = depth * (columns + rows * whole)
            multiply = count * self._tiles(rows, columns, depth // count)
        if row is not None:
            name = units.broadcast_from
            if abs(getattr(row, name)) * self._dtype(name).size >= self.machine.page_bytes:
                multiply *= core.page_slowdown
        scattered = 0 if column is None or column.out == 1 else rows * columns
        cycles = multiply + core.pack_cycles * copied + core.scatter_cycles * scattered
        return ScheduleEstimate(cycles + reread / core.l3_bytes_per_cycle, copied, reread)

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
        """Bytes of all calls from operands that do not fit in the second cache.

        What one call reads is still there for the next one if it is small and the loops in between run over
        dimensions that the operand lacks.
        """
        found, near = 0, KEPT_SHARE * self.machine.l2.size
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

    def _reread_bytes(self, rows: int) -> int:
        """Bytes of vectors that are read again for every row of tiles, evicted from the second cache."""
        name, l2 = self.units.vectors_from, self.machine.l2
        size = self._dtype(name).size
        inside = [d for d in self.contraction.primitive if name in d.type.operands]
        slice_bytes = size * _elements(inside)
        steps = [(abs(getattr(d, name)) * size, d.size or 1) for d in inside if d.type is _K]
        lost = any(count > KEPT_SHARE * rows_held(stride, l2) for stride, count in steps)
        if slice_bytes <= l2.size and not lost:
            return 0
        return slice_bytes * (-(-rows // self.units.blocking.mr) - 1)


_C, _K = DimensionRole.BATCH, DimensionRole.K


def _elements(dimensions: Iterable[Dimension]) -> int:
    return prod(dimension.size or 1 for dimension in dimensions)
