"""Tables of offsets of binary contractions, and products whose operands are located by them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from tilewright.calls.operands import Array, data_address
from tilewright.calls.recording import constant, not_repeatable
from tilewright.compiler.kernel import Kernel
from tilewright.machine.machine import Machine
from tilewright.macro.blocking import Blocking
from tilewright.ops.contraction.tables.nest import TABLE_SIZES, TABLES
from tilewright.ops.contraction.tables.panels import PanelShape, cut_panels, offsets_of
from tilewright.ops.contraction.tables.roles import OrderedAxes
from tilewright.spec.dtype import DType

#: The part of the L2 cache for packed rows and columns where all rows are one block; the rest is for what
#: they are packed from, and for C.
L2_SHARE = 0.5

#: Bytes of tables that a repeated call keeps; contractions with larger ones take milliseconds.
MOST_CONSTANT = 1 << 16


class Tables(NamedTuple):
    """The tables of offsets of a contraction, for its sizes and strides.

    Attributes
    ----------
    sizes : `TABLE_SIZES` by name; rows and columns in whole panels.
    arrays, addresses : of `TABLES`.
    """

    sizes: dict[str, int]
    arrays: tuple[Array, ...]
    addresses: tuple[int, ...]

    @property
    def work(self) -> int:
        """Multiply-adds; none where there is nothing to write."""
        batch, m, n, k, _ = self.sizes.values()
        return batch * m * n * max(k, 1)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The sizes of a `table_contraction`: batch, rows, columns, depths."""
        return tuple(self.sizes.values())[:-1]

    def declare(self) -> None:
        """Tells a recording that the tables follow from sizes and strides."""
        if sum(array.nbytes for array in self.arrays) > MOST_CONSTANT:
            not_repeatable("large tables of offsets")
        for array in self.arrays:
            constant(array)


def _runs(offsets: Array) -> Array:
    """How many entries from each one on keep one distance, itself among them.

    >>> _runs(np.array([0, 1, 2, 10, 11, 12]))
    array([3, 2, 2, 3, 2, 1])
    """
    count = len(offsets)
    if count < 2:
        return np.ones(count, np.int64)
    steps = np.diff(offsets)
    ends = np.flatnonzero(steps[1:] != steps[:-1]) + 1  # the first step of another kind
    ends = np.append(ends, count - 1)
    index = np.arange(count - 1)
    end = ends[np.searchsorted(ends, index, side="right")]
    return np.append(end - index + 1, 1)


def _turns(offsets: Array, runs: Array) -> Array:
    """How many runs from each one on begin one element after the other; 0 but where a run begins.

    Known where all runs are as long, and longer than the element that all would have.

    >>> offsets = np.array([0, 10, 20, 1, 11, 21, 2, 12, 22, 50, 60, 70])
    >>> _turns(offsets, _runs(offsets))
    array([3, 0, 0, 2, 0, 0, 1, 0, 0, 1, 0, 0])
    """
    found = np.zeros(len(offsets), np.int64)
    length = int(runs[0]) if len(runs) else 0
    if length < 2 or len(offsets) % length or np.any(runs[::length] != length):
        return found
    starts = offsets[::length]
    ends = np.append(np.flatnonzero(np.diff(starts) != 1), len(starts) - 1)
    index = np.arange(len(starts))
    found[::length] = ends[np.searchsorted(ends, index)] - index + 1
    return found


def tables_of(acc: DType, machine: Machine, cut: Blocking, axes: OrderedAxes) -> Tables:
    """The tables of a contraction with sums of a type, for one blocking."""
    batch, m, n, k = axes
    depth = prod(axis.size for axis in k)
    found = {f"{operand}b": offsets_of(batch, operand) for operand in "abc"}
    rows, columns = (prod(axis.size for axis in part) for part in (m, n))
    lanes = machine.isa.lanes(acc)
    vectors = (depth, lanes, lanes * machine.isa.fma_per_cycle)
    sides = (
        ("m", "a", m, PanelShape(cut.mr, 1, *vectors), columns),
        ("n", "b", n, PanelShape(cut.nr, lanes, *vectors), rows),
    )
    for side, operand, part, form, others in sides:
        panels = cut_panels(part, operand, form, others)
        found |= {f"{operand}{side}": panels.at, f"c{side}": panels.c_at, f"{side}_count": panels.counts}
        found |= {f"{operand}{side}_step": panels.steps, f"c{side}_step": panels.c_steps}
        found |= {f"{operand}{side}_shift": panels.shifts}
    for operand in "ab":
        offsets = offsets_of(k, operand)
        runs = _runs(offsets)
        found |= {f"{operand}k": offsets, f"{operand}k_run": runs}
        found |= {f"{operand}k_turn": _turns(offsets, runs)}
    arrays = tuple(np.ascontiguousarray(found[name]) for name in TABLES)
    items, m_size, n_size, k_size = (len(found[name]) for name in ("ab", "am", "bn", "ak"))
    nc = _columns(acc, machine, cut, (m_size, k_size))
    sizes = dict(zip(TABLE_SIZES, (items, m_size, n_size, k_size, nc), strict=True))
    return Tables(sizes, arrays, tuple(map(data_address, arrays)))


def _columns(acc: DType, machine: Machine, cut: Blocking, sizes: tuple[int, int]) -> int:
    """Columns that are packed at a time: where all rows are one block, no more than it leaves room for.

    Packed columns are then read once, soon after they are written, and need not leave the L2 cache.
    """
    rows, depth = sizes[0], max(1, min(sizes[1], cut.kc))
    if rows > cut.mc:
        return cut.nc
    bytes_of_lane = depth * acc.size
    room = int(machine.l2.size * L2_SHARE) - rows * bytes_of_lane
    return min(cut.nc, max(1, room // (bytes_of_lane * cut.nr)) * cut.nr)


def run_tables(kernel: Kernel, arrays: Sequence[Array], tables: Tables, sizes: Sequence[int] = ()) -> None:
    """A contraction of arrays whose strides the tables were made of.

    `out` has the type of the sums, and shares no memory with the others.

    Parameters
    ----------
    sizes : those given at run time, of which the machine code needs the lengths of tables only.
    """
    if tables.work:
        tables.declare()
        arguments = (*map(data_address, arrays), *tables.addresses, *sizes, *tables.sizes.values())
        kernel.launch(arguments, tables.work)
