"""Primitives on operands in place are cut to what the caches hold."""

from __future__ import annotations

from math import prod

from tilewright.machine.machine import Machine
from tilewright.macro.cost import in_place_limits
from tilewright.ops.contraction.dimension import Dimension
from tilewright.ops.contraction.main import Main
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.contraction.schedule.split import cut_at, divisors
from tilewright.ops.contraction.schedule.units import ContractionTiles, units_of
from tilewright.spec.roles import DimensionRole

#: A cut into parts of less than this share of what is allowed costs more than it saves: primes stay whole.
LEAST_SHARE = 0.25


def block(contraction: Contraction, machine: Machine) -> Contraction:
    """Depths become a loop around as many as panels have, rows and columns around those that stay in L2.

    The five loops of packed operands have their blocks inside; this is for gemm and brgemm, which read
    operands in place: a slice of kc depths of the vectors stays in L2, one of the broadcast rows in one and a
    half (the bounds below which `Gemm` leaves them there, decision 007).

    Before, where kc is 1024::

        k primitive 4096 in0=64 in1=1 out=0

    After::

        k sequential 4    in0=65536 in1=1024 out=0
        k primitive  1024 in0=64    in1=1    out=0
    """
    if contraction.main not in (Main.GEMM, Main.BRGEMM):
        return contraction
    units = units_of(contraction, machine)
    types = contraction.types
    # Sums that out cannot hold are not split.
    whole = types.narrows or types.c.real != types.acc
    found = contraction if whole else _cut(contraction, DimensionRole.K, units.blocking.kc, 1)
    depth = prod(d.size or 1 for d in found.primitive if d.type is DimensionRole.K)
    cut = units.blocking
    limits = in_place_limits(machine, units.instruction, cut.mr, cut.nr, types)
    kinds = ((units.rows, limits.in_place_a), (units.columns, limits.far_b))
    for kind, elements in kinds:
        found = _cut(found, kind, elements // depth, _unit(units, kind))
    return found


def _unit(units: ContractionTiles, kind: DimensionRole) -> int:
    return units.blocking.nr if kind is units.columns else units.blocking.mr


def _cut(contraction: Contraction, kind: DimensionRole, most: int, unit: int) -> Contraction:
    """The innermost primitive dimension of a type cut to the largest good part of at most so many."""
    inside = [dimension for dimension in contraction.primitive if dimension.type is kind]
    if not inside or (inside[-1].size or 0) <= most:
        return contraction
    old = inside[-1]
    inner = _part(old, most, unit)
    if inner is None:
        return contraction
    outer, part = cut_at(old, inner)
    rest = [part if dimension is old else dimension for dimension in contraction.dimensions]
    return contraction.with_dimensions([outer, *rest])


def _part(dimension: Dimension, most: int, unit: int) -> int | None:
    """The largest divisor up to a bound, of whole register tiles if there is one."""
    assert dimension.size is not None
    fitting = [value for value in divisors(dimension.size, most) if LEAST_SHARE * most <= value]
    whole = [value for value in fitting if value % unit == 0]
    return max(whole or fitting, default=None)
