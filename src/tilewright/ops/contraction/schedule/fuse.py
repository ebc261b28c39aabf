"""Fusion of dimensions that form one in every operand."""

from __future__ import annotations

from dataclasses import replace

from tilewright.machine.machine import Machine
from tilewright.ops.contraction.dimension import STRIDES, Dimension
from tilewright.ops.contraction.problem import Contraction


def fuse(contraction: Contraction, machine: Machine) -> Contraction:  # noqa: ARG001 - as every pass
    """Fuses dimensions of a role that have one stride in every operand; removes those of length 1.

    Before::

        m sequential 64 in0=25 in1=0 out=25
        m sequential 25 in0=1  in1=0 out=1

    After::

        m sequential 1600 in0=1 in1=0 out=1
    """
    left = [dimension for dimension in contraction.dimensions if dimension.size != 1]
    while (pair := _adjacent(left)) is not None:
        outer, inner = pair
        place = left.index(outer)
        left[place] = fused(outer, inner)
        del left[next(number for number, dimension in enumerate(left) if dimension is inner)]
    return contraction.with_dimensions(left or contraction.dimensions[:1])


def fused(outer: Dimension, inner: Dimension) -> Dimension:
    """One dimension in place of two.

    >>> print(fused(Dimension("m", size=2, in0=3, out=3), Dimension("m", size=3, in0=1, out=1)))
    m sequential 6 in0=1 in1=0 out=1
    """
    assert outer.size is not None
    assert inner.size is not None
    return replace(inner, size=outer.size * inner.size)


def _adjacent(dimensions: list[Dimension]) -> tuple[Dimension, Dimension] | None:
    """Two dimensions that are one, the outer one first."""
    for outer in dimensions:
        for inner in dimensions:
            alike = (outer.type, outer.execution) == (inner.type, inner.execution)
            if outer is not inner and alike and _even(outer, inner):
                return outer, inner
    return None


def _even(outer: Dimension, inner: Dimension) -> bool:
    """Whether a step of one is as long as all steps of the other, in every operand."""
    size = inner.size
    if size is None or outer.size is None:
        return False
    return all(getattr(outer, name) == size * getattr(inner, name) for name in STRIDES)
