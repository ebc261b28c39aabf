"""The layout of packed operands: the panels of a machine's register tile."""

from __future__ import annotations

from functools import lru_cache

from tilewright.machine.machine import Machine
from tilewright.macro.blocking import machine_tile
from tilewright.records import dataclass
from tilewright.spec.dtype import F32, DType
from tilewright.spec.parts import Parts
from tilewright.spec.problem import ProductTypes, Role


@dataclass(frozen=True)
class PanelForm:
    """The layout of panels: [panels, depth groups, lanes, kr], each panel the whole depth of its lanes.

    Attributes
    ----------
    storage : element type in the panels: the multiply instruction's.
    lanes : of one panel: mr of A, nr of B (M0, N0 of mmt4d).
    kr : consecutive depths of a lane that are adjacent (K0); the last axis has `DType.held` of them in each
        item, and so is shorter where several share a byte.
    unit : the depth is padded with zeros to a multiple of this.
    parts : what becomes of complex numbers.
    """

    storage: DType
    lanes: int
    kr: int
    unit: int
    parts: Parts = Parts.WHOLE

    def shape(self, lanes: int, depth: int) -> tuple[int, int, int, int]:
        """The sizes of the panels of a matrix.

        >>> from tilewright.spec.dtype import F32
        >>> PanelForm(F32, 32, 1, 1).shape(100, 7)
        (4, 7, 32, 1)
        """
        across, deep = self.parts.spread
        padded = -(-depth * deep // self.unit) * self.unit
        return (-(-lanes * across // self.lanes), padded // self.kr, *self.tile)

    @property
    def tile(self) -> tuple[int, int]:
        """The sizes of one tile in memory: lanes, and the cells of kr depths."""
        return self.lanes, self.kr // self.storage.held


@lru_cache(maxsize=64)
def panel_form(types: ProductTypes, role: Role, machine: Machine) -> PanelForm:
    """The panels of one operand of products of some types on a machine.

    >>> from tilewright.machine.catalog import find_machine
    >>> panel_form(ProductTypes.parse("bf16"), Role.B, find_machine("znver5")).kr
    2
    """
    isa = machine.isa
    one = isa.tile(types.a, types.b)
    tile = machine_tile(machine, one)
    if role is Role.A:
        parts = Parts.SPLIT if types.is_complex else Parts.WHOLE
        return PanelForm(one.a, tile.mr, one.interleave_a, one.k, parts)
    return PanelForm(one.b, tile.nr, one.kr, one.k, Parts.ROTATED if types.is_complex else Parts.WHOLE)


def weight_lanes(machine: Machine) -> int:
    """Columns of one panel of a weight in words: those of the machine's float32 tiles, for every form.

    >>> from tilewright.machine.catalog import find_machine
    >>> weight_lanes(find_machine("znver5"))
    32
    """
    return panel_form(ProductTypes.parse(F32), Role.B, machine).lanes
