"""Register tiles of a contraction: which rows are broadcast, which columns make vectors."""

from __future__ import annotations

from tilewright.machine.isa import TileFma
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Blocking, choose_blocking
from tilewright.ops.contraction.dimension import Dimension
from tilewright.ops.contraction.problem import Contraction
from tilewright.records import dataclass
from tilewright.spec.roles import DimensionRole


@dataclass(frozen=True)
class ContractionTiles:
    """The register tile of a contraction, and which dimensions it covers.

    Attributes
    ----------
    columns : the type of the dimensions whose elements make vectors, m or n: the one that is adjacent in out.
    instruction : the multiply instruction.
    blocking : register tile and cache blocks.
    """

    columns: DimensionRole
    instruction: TileFma
    blocking: Blocking

    @property
    def rows(self) -> DimensionRole:
        """The type of the dimensions whose elements are broadcast."""
        return DimensionRole.N if self.columns is DimensionRole.M else DimensionRole.M

    @property
    def vectors_from(self) -> str:
        """The operand whose elements make vectors."""
        return "in0" if self.columns is DimensionRole.M else "in1"

    @property
    def broadcast_from(self) -> str:
        """The other operand."""
        return "in1" if self.columns is DimensionRole.M else "in0"

    def of(self, dimension: Dimension) -> int:
        """Elements of a register tile along a dimension; 1 along dimensions that none has."""
        return {self.columns: self.blocking.nr, self.rows: self.blocking.mr}.get(dimension.type, 1)


def units_of(contraction: Contraction, machine: Machine) -> ContractionTiles:
    """The register tile of a contraction, transposed so that vectors are contiguous in out.

    >>> from tilewright.machine.catalog import find_machine
    >>> m, n = Dimension("m", size=9, in0=1, out=1), Dimension("n", size=9, in1=1, out=9)
    >>> units = units_of(Contraction([m, n]), find_machine("znver5"))
    >>> units.columns.value, units.of(m), units.of(n)
    ('m', 32, 12)
    """
    sides = [
        d for d in contraction.dimensions if d.type in (DimensionRole.M, DimensionRole.N) and d.size != 1
    ]
    nearest = min(sides, key=lambda dimension: abs(dimension.out), default=None)
    transposed = nearest is not None and nearest.type is DimensionRole.M
    types = (contraction.dtype, contraction.in1_dtype)
    instruction = machine.isa.tile(*(reversed(types) if transposed else types))
    return ContractionTiles(
        DimensionRole.M if transposed else DimensionRole.N,
        instruction,
        choose_blocking(machine, instruction),
    )
