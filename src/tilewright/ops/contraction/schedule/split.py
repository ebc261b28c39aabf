"""A primitive dimension gives threads what its loops lack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import isqrt, prod

from tilewright.machine.machine import Machine
from tilewright.macro.partition import LEAST_TILES
from tilewright.ops.contraction.dimension import STRIDES, Dimension, ExecutionType
from tilewright.ops.contraction.main import Main
from tilewright.ops.contraction.problem import Contraction
from tilewright.ops.contraction.schedule.units import ContractionTiles, units_of
from tilewright.spec.roles import DimensionRole
from tilewright.threads.pool import TEAM_WORK

#: Threads that work at the same time, of all, from which a loop is shared well enough.
BALANCED = 0.9

#: Parts that a dimension is cut into at most: more tasks than any machine has threads to share them.
MOST_PARTS = 1 << 16

#: Elements that one task moves at least: as many take as long, at 4 bytes a cycle read and written.
LEAST_TASK_ELEMENTS = 1 << 15


def split(contraction: Contraction, machine: Machine) -> Contraction:
    """Where loops are too few for the machine's threads, primitive rows or columns become a loop of tasks.

    Of all cuts that keep every thread at work, the one into fewest parts is taken. The five loops of packed
    operands are not cut: they are tasks themselves, which share their panels.

    Before, for two threads::

        m primitive 512 in0=1 in1=0 out=1

    After::

        m sequential 2   in0=256 in1=0 out=256
        m primitive  256 in0=1   in1=0 out=1
    """
    found, threads = contraction, machine.cores
    if contraction.main is Main.PACKED_GEMM or contraction.is_open:
        return contraction
    while balance(tasks_of(found), threads) < BALANCED:
        cuts = list(_cuts(found, units_of(found, machine), threads))
        if not cuts:
            break
        outer, inner, old = min(cuts, key=lambda cut: _worth(cut[0], cut[1], tasks_of(found), threads))
        others = [inner if dimension is old else dimension for dimension in found.dimensions]
        found = found.with_dimensions([outer, *others])
    return found


def tasks_of(contraction: Contraction) -> int:
    """Iterations of all loops that may be tasks."""
    return prod(
        dimension.size or 1 for dimension in contraction.loops if dimension.type is not DimensionRole.K
    )


def work_of(contraction: Contraction) -> int:
    """Multiply-adds, or elements of an operation of one operand; sizes given at run time count as 1."""
    return prod(1 if dimension.size is None else dimension.size for dimension in contraction.dimensions)


def least_work(contraction: Contraction) -> int:
    """The least work of one task; multiply-adds as many as make a team worth it, 8 us."""
    return LEAST_TASK_ELEMENTS if contraction.is_unary else TEAM_WORK


def balance(tasks: int, threads: int) -> float:
    """Threads that work at the same time, of all, while equal tasks last.

    >>> balance(6, 4), balance(8, 4)
    (0.75, 1.0)
    """
    rounds = -(-tasks // threads)
    return tasks / (rounds * threads)


def cut_at(dimension: Dimension, inner: int) -> tuple[Dimension, Dimension]:
    """A dimension as a loop around a part of it, which divides it.

    >>> for part in cut_at(Dimension("m", "primitive", 6, in0=1, out=2), 3):
    ...     print(part)
    m sequential 2 in0=3 in1=0 out=6
    m primitive 3 in0=1 in1=0 out=2
    """
    assert dimension.size is not None
    assert dimension.size % inner == 0
    strides = {name: inner * getattr(dimension, name) for name in STRIDES}
    outer = replace(dimension, size=dimension.size // inner, execution=ExecutionType.SEQUENTIAL, **strides)
    return outer, replace(dimension, size=inner)


def divisors(number: int, most: int) -> Iterator[int]:
    """Divisors of a number from 1 up to a bound, ascending; takes at most `most` steps.

    >>> list(divisors(12, 12)), list(divisors(12, 5))
    ([1, 2, 3, 4, 6, 12], [1, 2, 3, 4])
    """
    small = [value for value in range(1, min(isqrt(number), most) + 1) if number % value == 0]
    yield from small
    large = (number // value for value in reversed(small) if value * value != number)
    yield from (value for value in large if value <= most)


def _cuts(
    contraction: Contraction, units: ContractionTiles, threads: int
) -> Iterator[tuple[Dimension, Dimension, Dimension]]:
    """Ways to make a loop of a part of a primitive dimension: the loop, what stays, what it was before."""
    work, least = work_of(contraction) // tasks_of(contraction), least_work(contraction)
    for dimension in contraction.primitive:
        if dimension.type is DimensionRole.K or dimension.size is None:
            continue
        unit = units.of(dimension)
        # From the largest part down, as the divisors of a size ascend.
        for parts in reversed(list(divisors(dimension.size, min(threads * threads, MOST_PARTS)))):
            inner = dimension.size // parts
            if parts > 1 and inner >= LEAST_TILES * unit and work // parts >= least:
                yield *cut_at(dimension, inner), dimension


def _worth(outer: Dimension, inner: Dimension, tasks: int, threads: int) -> tuple[bool, int, int]:
    """Cuts that keep all threads at work come first, then few parts of long dimensions."""
    parts, size = outer.size or 1, inner.size or 1
    even = balance(tasks * parts, threads) >= BALANCED
    return not even, parts if even else -parts, -parts * size
