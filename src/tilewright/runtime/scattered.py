"""Products of operands that stand wherever tables say, and the tables of binary contractions."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tilewright.cached import cached_property
from tilewright.macro.blocking import Blocking
from tilewright.macro.roles import Axis
from tilewright.macro.scattered import NO_STEP, TABLES
from tilewright.runtime.batch import C_TYPES
from tilewright.runtime.gemm import scratch_of
from tilewright.runtime.kernel import Kernel
from tilewright.runtime.operands import Array, data_address
from tilewright.runtime.scratch import ScratchPool
from tilewright.runtime.threads import call_team
from tilewright.spec.scattered import ScatteredGemm


class Tables(NamedTuple):
    """What a contraction of some sizes and strides needs beside its memory."""

    batch: int
    m: int
    n: int
    k: int
    arrays: tuple[Array, ...]
    addresses: tuple[int, ...]


def _offsets(axes: Sequence[Axis], operand: str) -> Array:
    """Offsets of an operand over all indices of some dimensions, the last one fastest.

    >>> _offsets([Axis(2, 10, None, 0), Axis(3, 1, None, 0)], "a")
    array([ 0,  1,  2, 10, 11, 12])
    """
    found = np.zeros(1, np.int64)
    for axis in axes:
        steps = np.arange(axis.size, dtype=np.int64) * (getattr(axis, operand) or 0)
        found = (found[:, np.newaxis] + steps).reshape(-1)
    return found


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


def _tile_steps(offsets: Array, tile: int) -> Array:
    """The distance between the entries of each tile; `NO_STEP` where there are several.

    >>> _tile_steps(np.array([0, 2, 4, 9, 10]), 2)
    array([2, 5, 1])
    """
    tiles = max(1, -(-len(offsets) // tile))
    found = np.ones(tiles, np.int64)
    for number in range(tiles):
        steps = np.diff(offsets[number * tile : (number + 1) * tile])
        if len(steps):
            found[number] = steps[0] if np.all(steps == steps[0]) else NO_STEP
    return found


def tables_of(
    cut: Blocking, batch: Sequence[Axis], m: Sequence[Axis], n: Sequence[Axis], k: Sequence[Axis]
) -> Tables:
    """The tables of a contraction that is cut so; the last of each kind of dimension is the fastest."""
    offsets = {f"{operand}b": _offsets(batch, operand) for operand in "abc"}
    offsets |= {"am": _offsets(m, "a"), "ak": _offsets(k, "a"), "bn": _offsets(n, "b")}
    offsets |= {"bk": _offsets(k, "b"), "cm": _offsets(m, "c"), "cn": _offsets(n, "c")}
    for name in ("ak", "bk"):
        runs = _runs(offsets[name])
        offsets |= {f"{name}_run": runs, f"{name}_turn": _turns(offsets[name], runs)}
    offsets["cm_step"] = _tile_steps(offsets["cm"], cut.mr)
    offsets["cn_step"] = _tile_steps(offsets["cn"], cut.nr)
    arrays = tuple(np.ascontiguousarray(offsets[name]) for name in TABLES)
    batch_size, m_size, n_size, k_size = (len(offsets[name]) for name in ("ab", "am", "bn", "ak"))
    return Tables(batch_size, m_size, n_size, k_size, arrays, tuple(map(data_address, arrays)))


class ScatteredKernel(Kernel):
    """A kernel of a `ScatteredGemm`."""

    problem: ScatteredGemm

    @property
    def blocking(self) -> Blocking:
        """Register tile and cache blocks."""
        assert isinstance(self._compilation.blocking, Blocking)
        return self._compilation.blocking

    @cached_property
    def function(self) -> Any:
        """The ctypes function: pointers, sizes, alpha, beta, scratch, team."""
        kinds: list[Any] = [ctypes.c_void_p] * (3 + len(TABLES)) + [ctypes.c_int64] * 4
        kinds += [C_TYPES[self.problem.acc.name]] * 2 + [ctypes.c_void_p] * 2
        return ctypes.CFUNCTYPE(None, *kinds)(self.address)

    @cached_property
    def pool(self) -> ScratchPool:
        """The common scratch, or this kernel's own where its blocks are larger."""
        return scratch_of(self)

    def tables(
        self, batch: Sequence[Axis], m: Sequence[Axis], n: Sequence[Axis], k: Sequence[Axis]
    ) -> Tables:
        """The tables of a contraction; the last of each kind of dimension is the fastest."""
        return tables_of(self.blocking, batch, m, n, k)

    def run(
        self, a: Array, b: Array, c: Array, tables: Tables, alpha: float = 1.0, beta: float = 0.0
    ) -> None:
        """The product of arrays whose strides the tables were made of.

        c has the type of the sums, and shares no memory with a or b.
        """
        if 0 in (tables.batch, tables.m, tables.n):
            return
        work = tables.batch * tables.m * tables.n * max(tables.k, 1)
        sizes = (tables.batch, tables.m, tables.n, tables.k)
        pointers = (data_address(a), data_address(b), data_address(c))
        with self.pool.block() as scratch, call_team(work) as team:
            self.function(*pointers, *tables.addresses, *sizes, alpha, beta, scratch, team)
