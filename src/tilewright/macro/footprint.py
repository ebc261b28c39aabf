"""How many cache lines or pages a window of a buffer touches, and the same windows in all turns of a loop.

A window is a lattice: elements at equal distances along a few axes. A loop adds an axis to each window that
it moves, so that the footprint of a nest follows from that of its innermost statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import prod
from typing import NamedTuple

from tilewright.records import dataclass


class LatticeAxis(NamedTuple):
    """Elements at equal distances: bytes from one to the next, and how many, on average."""

    stride: float
    turns: float


@dataclass(frozen=True)
class AccessLattice:
    """The part of a buffer that a statement, or a loop of it, touches.

    Attributes
    ----------
    buffer : its name.
    offset : bytes to its first element.
    size : bytes of an element.
    axes : of the lattice, those of the statement first.
    slopes : bytes by which the window moves when an axis of the loops around it goes on by one.
    transfers : how often its lines move between levels: once if read, twice if written: filled, written back.
    """

    buffer: str
    offset: int
    size: float
    axes: tuple[LatticeAxis, ...]
    slopes: Mapping[str, float]
    transfers: int = 1

    def blocks(self, grain: int) -> float:
        """Blocks of `grain` bytes that hold its elements, if the first element starts one.

        Axes whose steps are no longer than what lies between two of them, or than a block, make one run.

        Examples
        --------
        >>> rows = AccessLattice("a", 0, 4, (LatticeAxis(4096, 8), LatticeAxis(4, 32)), {})
        >>> rows.blocks(64), rows.blocks(4096), rows.extent
        (16.0, 7.03125, 28800)
        """
        run, blocks = self.size, 1.0
        for stride, count in sorted((abs(one.stride), one.turns) for one in self.axes):
            if stride == 0 or count <= 1:
                continue
            if stride <= max(run, grain):
                run = stride * (count - 1) + run
            else:
                blocks, run = blocks * count * max(run / grain, 1.0), float(grain)
        return blocks * max(run / grain, 1.0)

    @property
    def elements(self) -> float:
        """Elements of the lattice."""
        return prod(one.turns for one in self.axes)

    @property
    def extent(self) -> float:
        """Bytes from the first element to the end of the last one."""
        return self.size + sum(abs(one.stride) * max(one.turns - 1, 0.0) for one in self.axes)

    def over(self, axis: str, step: float, turns: float) -> AccessLattice:
        """The window in all turns of a loop."""
        slope = self.slopes.get(axis, 0.0)
        slopes = {name: value for name, value in self.slopes.items() if name != axis}
        if not slope:
            return replace(self, slopes=slopes)
        return replace(self, slopes=slopes, axes=(*self.axes, LatticeAxis(slope * step, turns)))


def touched(windows: Iterable[AccessLattice], grain: int, *, moved: bool = False) -> float:
    """Blocks that some windows touch together; with `moved`, each as often as it moves between levels.

    Windows of a buffer that lie in one another's extent are thought to touch different elements there, but no
    more than the extent has.

    >>> axes = LatticeAxis(4096, 8), LatticeAxis(4, 512)
    >>> left, right = (AccessLattice("c", at, 4, axes, {}) for at in (0, 2048))
    >>> touched((left, right), 64), touched((left, left), 64)
    (512.0, 256.0)
    """
    by_buffer: dict[str, list[AccessLattice]] = {}
    for window in distinct(windows):
        by_buffer.setdefault(window.buffer, []).append(window)
    return sum(_of_buffer(found, grain, moved=moved) for found in by_buffer.values())


def distinct(windows: Iterable[AccessLattice]) -> tuple[AccessLattice, ...]:
    """Windows without those that equal another one, which count as written if one of them is."""
    found: dict[tuple[str, int, tuple[LatticeAxis, ...]], AccessLattice] = {}
    for window in windows:
        place = (window.buffer, window.offset, window.axes)
        known = found.setdefault(place, window)
        if known.transfers < window.transfers:
            found[place] = window
    return tuple(found.values())


def _of_buffer(windows: list[AccessLattice], grain: int, *, moved: bool) -> float:
    """Blocks of windows of one buffer."""
    total = sum_of_group = 0.0
    start = end = 0.0
    most = 1
    for window in sorted(windows, key=lambda one: one.offset):
        first, last = window.offset, window.offset + window.extent
        if sum_of_group and first < end:
            end = max(end, last)
            most = max(most, window.transfers)
        else:
            total += _clipped(sum_of_group, (end - start) / grain, most, moved=moved)
            sum_of_group, start, end, most = 0.0, first, last, window.transfers
        sum_of_group += window.blocks(grain)
    return total + _clipped(sum_of_group, (end - start) / grain, most, moved=moved)


def _clipped(blocks: float, extent: float, transfers: int, *, moved: bool) -> float:
    """Blocks of windows that overlap: no more than their extent has."""
    return min(blocks, max(extent, 1.0)) * (transfers if moved else 1) if blocks else 0.0
