"""Panels of the rows and columns of a contraction by tables, and the offset of each lane."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple

import numpy as np

from tilewright.calls.operands import Array
from tilewright.ir.partial_tiles import PARTIAL_HEIGHTS
from tilewright.ir.primitives.tables import NO_STEP
from tilewright.spec.axes import StridedAxis, fused_axes

#: Extra time of a register tile whose part of C has no constant steps, in depths. It is stored in a buffer
#: and copied: an estimated six cycles for a vector of C, where one depth of two vectors takes a cycle.
SCATTER_DEPTHS = 12

#: Cycles to pack an element in vectors or squares, and in vectors that are assembled from single elements:
#: estimates, of a load and half a store with its shuffles, and of two more loads.
VECTOR_CYCLES, ELEMENT_CYCLES = 0.7, 2.0

#: A register tile of fewer rows is not faster: eight accumulators, two a row, hide the latency of an FMA.
LEAST_ROWS = 4


def offsets_of(axes: Sequence[StridedAxis], operand: str) -> Array:
    """Offsets of an operand over all indices of some dimensions, the last one fastest.

    >>> offsets_of([StridedAxis(2, 10, None, 0), StridedAxis(3, 1, None, 0)], "a")
    array([ 0,  1,  2, 10, 11, 12])
    """
    found = np.zeros(1, np.int64)
    for axis in axes:
        steps = np.arange(axis.size, dtype=np.int64) * axis.step(operand)
        found = (found[:, np.newaxis] + steps).reshape(-1)
    return found


class ScatterPanels(NamedTuple):
    """The lanes of one side, panel after panel, each of the same width; missing lanes repeat the last.

    Attributes
    ----------
    at, c_at : offsets of each lane in the operand and in C.
    counts : lanes that a panel has.
    steps, c_steps : the distance between the lanes of each panel, `NO_STEP` where there are several.
    shifts : length of the run of panels that begins at each: with as many lanes, each one element further on.
    """

    at: Array
    c_at: Array
    counts: Array
    steps: Array
    c_steps: Array
    shifts: Array

    @classmethod
    def of(cls, at: Array, c_at: Array, counts: Array) -> ScatterPanels:
        """The panels of lanes whose offsets are given as (panels, width)."""
        shifted = np.zeros(len(at), np.int64)
        if len(at) > 1:
            follows = np.all(at[1:] - at[:-1] == 1, axis=1) & (counts[1:] == counts[:-1])
            ends = np.append(np.flatnonzero(~follows), len(at) - 1)
            index = np.arange(len(at))
            shifted = ends[np.searchsorted(ends, index)] - index + 1
            shifted[shifted == 1] = 0
        steps, c_steps = _steps(at, counts), _steps(c_at, counts)
        return cls(at.reshape(-1), c_at.reshape(-1), counts, steps, c_steps, shifted)


def _steps(at: Array, counts: Array) -> Array:
    """The distance between the lanes of each panel.

    >>> _steps(np.array([[0, 2, 4], [9, 10, 10]]), np.array([3, 2])).tolist()
    [2, 1]
    """
    if at.shape[1] == 1:
        return np.ones(len(at), np.int64)
    distances = np.diff(at, axis=1)
    beyond = np.arange(1, at.shape[1]) >= counts[:, np.newaxis]
    even = np.all((distances == distances[:, :1]) | beyond, axis=1)
    return np.where(counts == 1, 1, np.where(even, distances[:, 0], NO_STEP))


class PanelShape(NamedTuple):
    """The shape of panels, and of the product that uses them.

    Attributes
    ----------
    width : lanes of a panel.
    unit : lanes that are computed together.
    depth : of the product.
    lanes : of a vector, the side of the squares in which panels are packed together.
    rate : multiply-adds of a cycle.
    """

    width: int
    unit: int
    depth: int
    lanes: int
    rate: float


def _chunks(size: int, cut: PanelShape) -> Array:
    """Lengths of the parts of a dimension that become a panel each: equal for columns, full panels for rows.

    >>> _chunks(84, PanelShape(32, 16, 1, 16, 32)).tolist()
    [32, 32, 20]
    >>> _chunks(28, PanelShape(12, 1, 1, 16, 32)).tolist()
    [12, 12, 4]
    """
    if cut.unit == 1:
        full, rest = divmod(size, cut.width)
        return np.array([cut.width] * full + [rest] * bool(rest), np.int64)
    parts = -(-size // cut.width)
    each = -(-size // (parts * cut.unit)) * cut.unit
    full, rest = divmod(size, each)
    return np.array([each] * full + [rest] * bool(rest), np.int64)


def _computed(lanes: int, cut: PanelShape) -> int:
    """Lanes that a panel costs in a product: whole units, of rows those of the tiles that cover them.

    >>> rows = PanelShape(12, 1, 1, 16, 32)
    >>> _computed(25, PanelShape(32, 16, 1, 16, 32)), _computed(12, rows), _computed(9, rows)
    (32, 12, 12)
    """
    if cut.unit > 1 or lanes == cut.width:
        return -(-lanes // cut.unit) * cut.unit
    found = 0
    for height in PARTIAL_HEIGHTS:
        times, lanes = divmod(lanes, height)
        found += times * max(height, LEAST_ROWS)
    return found


def _cuts(axes: Sequence[StridedAxis], cut: PanelShape, others: int, *, near: StridedAxis | None) -> bool:
    """Whether panels end where the last dimension does, by the cost of packing and multiplying its lanes.

    Panels that end there may lack lanes, which are packed and computed all the same. Other panels may cross
    an end of the dimension: their vectors are assembled from single elements, and their tiles have no
    constant steps in C, unless the steps of C go on across the end. If adjacent elements of the operand
    belong to another dimension, `near`, this holds for all panels that are not cut, and for cut ones if
    `near` is too short for squares.
    """
    size, chunks = axes[-1].size, _chunks(axes[-1].size, cut)
    computed = sum(_computed(int(part), cut) for part in chunks)
    across = min(1.0, cut.width / size)
    multiply = others / cut.rate
    goes_on = all(outer.step("c") == inner.step("c") * inner.size for outer, inner in pairwise(axes))
    copied = 0.0 if goes_on else SCATTER_DEPTHS / max(cut.depth, 1) * across
    packed = VECTOR_CYCLES + (ELEMENT_CYCLES - VECTOR_CYCLES) * (across if near is None else 1.0)
    squares = near is None or near.size >= cut.lanes
    packed_whole = len(chunks) * cut.width / size * (VECTOR_CYCLES if squares else ELEMENT_CYCLES)
    return computed / size * multiply + packed_whole <= (1 + copied) * multiply + packed


def cut_panels(axes: Sequence[StridedAxis], operand: str, cut: PanelShape, others: int) -> ScatterPanels:
    """The panels of one side.

    Parameters
    ----------
    axes : the dimensions of one kind, the fastest last.
    operand : "a" or "b", whose panels they are.
    others : lanes of the other side.

    If the operand's adjacent elements belong to a dimension other than the last one, that one comes next:
    then consecutive panels are one element apart, and are packed in squares.

    >>> axes = [StridedAxis(2, 1, None, 9), StridedAxis(5, 2, None, 1)]
    >>> cut_panels(axes, "a", PanelShape(4, 1, 1, 16, 32), 1000).at.reshape(-1, 4).tolist()
    [[0, 2, 4, 6], [1, 3, 5, 7], [8, 8, 8, 8], [9, 9, 9, 9]]
    """
    width = cut.width
    if not all(axis.size for axis in axes):
        none = np.zeros((0, width), np.int64)
        return ScatterPanels.of(none, none, none[:, 0])
    axes = fused_axes(axes) or [StridedAxis(1, 0, 0, 0)]
    last = axes[-1]
    near = min(reversed(axes), key=lambda axis: abs(axis.step(operand)))
    rest = [axis for axis in axes[:-1] if axis is not near]
    between = [] if near is last else [near]
    other = near if between and near.step(operand) == 1 else None
    order = [*rest, *between, last]
    if len(axes) > 1 and last.size % width and not _cuts(order, cut, others, near=other):
        at, c_at = (offsets_of(order, name) for name in (operand, "c"))
        parts = -(-len(at) // width)
        index = np.minimum(np.arange(parts * width), len(at) - 1)
        counts = np.full(parts, width, np.int64)
        counts[-1] = len(at) - (parts - 1) * width
        return ScatterPanels.of(at[index].reshape(parts, width), c_at[index].reshape(parts, width), counts)
    lengths = _chunks(last.size, cut)
    begins = np.cumsum(lengths) - lengths
    index = begins[:, np.newaxis] + np.minimum(np.arange(width), lengths[:, np.newaxis] - 1)

    def lanes(name: str) -> Array:
        """(outer indices, parts, indices of the near dimension, lanes)"""
        outer, inner = offsets_of(rest, name), offsets_of(between, name)
        found: Array = outer[:, None, None, None] + inner[:, None] + (index * last.step(name))[:, None, :]
        return found.reshape(-1, width)

    counts = np.tile(
        np.repeat(lengths, prod(axis.size for axis in between)), prod(axis.size for axis in rest)
    )
    return ScatterPanels.of(lanes(operand), lanes("c"), counts)
