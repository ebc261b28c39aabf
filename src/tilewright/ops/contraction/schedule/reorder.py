"""The order of loops, and of the dimensions inside of the primitive."""

from __future__ import annotations

from tilewright.machine.machine import Machine
from tilewright.ops.contraction.dimension import Dimension
from tilewright.ops.contraction.main import Main
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.contraction.schedule.units import ContractionTiles, units_of
from tilewright.spec.roles import DimensionRole


def reorder(contraction: Contraction, machine: Machine) -> Contraction:
    """Loops over the result in the order of its memory, then sums; packed dimensions from far to near.

    Sums stand inside, so that a block of the result is finished before the next one begins. The last of the
    packed dimensions of a type is the fastest: columns are the nearest in out, rows and depths in the
    operands they are packed from; of two depths adjacent somewhere, the one whose other stride is smaller.

    Before::

        k sequential 4  in0=4096 in1=64 out=0
        m sequential 8  in0=32   in1=0  out=32
        n sequential 16 in0=0    in1=4  out=256

    After::

        n sequential 16 in0=0    in1=4  out=256
        m sequential 8  in0=32   in1=0  out=32
        k sequential 4  in0=4096 in1=64 out=0
    """
    if contraction.is_open:
        return contraction  # calls give sizes in this order
    loops = sorted(contraction.loops, key=_loop_order)
    inside = list(contraction.primitive)
    if contraction.main is Main.PACKED_GEMM:
        units = units_of(contraction, machine)
        inside.sort(key=lambda dimension: _packed_order(dimension, units))
    return contraction.with_dimensions([*loops, *inside])


def _loop_order(dimension: Dimension) -> tuple[bool, int]:
    """Sums behind all others, each from far to near."""
    summed = dimension.type is DimensionRole.K
    far = max(abs(dimension.in0), abs(dimension.in1)) if summed else abs(dimension.out)
    return summed, -far


def _packed_order(dimension: Dimension, units: ContractionTiles) -> tuple[int, int, int]:
    """By type, then from far to near in what the type is packed from, or written to."""
    kind = "cmnk".index(dimension.type.value)
    if dimension.type is DimensionRole.K:
        steps = sorted((abs(dimension.in0), abs(dimension.in1)))
        return kind, -steps[0], -steps[1]
    name = units.broadcast_from if dimension.type is units.rows else "out"
    return kind, -abs(getattr(dimension, name)), 0
