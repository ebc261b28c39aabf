"""Kernels of fused attention."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.operands import Array, data_address
from tilewright.compiler.kernel import Kernel
from tilewright.ops.attention.decode import DecodeCut
from tilewright.ops.attention.nest import (
    ITEM_FIELDS,
    ITEM_SIZE,
    attention_scalars,
)
from tilewright.ops.attention.problem import Attention
from tilewright.threads.pool import call_team, wanted_threads


class AttentionCall(NamedTuple):
    """One kernel call on validated arrays.

    Attributes
    ----------
    q, k, v, out : views of four axes (batch, heads, rows, columns); the first axis of any of them may be
        replaced by the offsets in `items`. Paged keys and values: (pages, heads, rows of a page, columns).
    items : the table of `ITEM_FIELDS`, int64 of shape (batch, `ITEM_SIZE`): see `make_items`.
    row_max, row_sum : (batch, heads, queries), contiguous, of the type of sums.
    queries : the largest number of queries of a sequence.
    scale : factor of the scores.
    mask : four axes, with stride 0 along broadcast axes.
    slopes, sinks : one number per head.
    key_scales, value_scales : (batch, kv_heads, keys), contiguous along the keys.
    pages : page numbers; each sequence's begin at an offset in `items`.
    """

    q: Array
    k: Array
    v: Array
    out: Array
    items: Array
    row_max: Array
    row_sum: Array
    queries: int
    scale: float
    softcap: float = 0.0
    mask: Array | None = None
    slopes: Array | None = None
    sinks: Array | None = None
    key_scales: Array | None = None
    value_scales: Array | None = None
    pages: Array | None = None


class Launch(NamedTuple):
    """A kernel call without the addresses of its arrays.

    Attributes
    ----------
    numbers : sizes, strides and scalars in the order of the C signature.
    work : multiply-adds, at most.
    partials : size of the states of all runs, after the other arrays; None: there are no runs.
    """

    numbers: tuple[float, ...]
    work: int
    partials: int | None = None


def make_items(batch: int, **fields: Any) -> Array:
    """The table of a call: numbers, or one for each sequence, by the names of `ITEM_FIELDS`.

    >>> make_items(2, queries=5, keys=[7, 8])[:, 8:10]
    array([[5, 7],
           [5, 8]])
    """
    items = np.zeros((batch, ITEM_SIZE), np.int64)
    for name, value in fields.items():
        items[:, ITEM_FIELDS.index(name)] = value
    return items


def element_steps(array: Array, axes: Sequence[int]) -> list[int]:
    """Strides in elements."""
    return [array.strides[axis] // array.itemsize for axis in axes]


class AttentionKernel(Kernel):
    """A kernel of an `Attention`."""

    problem: Attention

    def launch(self, call: AttentionCall) -> Launch:
        """Every argument of a call except array addresses: the same for all arrays of these shapes."""
        problem = self.problem
        heads, kv_heads = call.q.shape[1], call.k.shape[1]
        sizes = [len(call.items), kv_heads, heads // kv_heads, call.queries]
        for array in (call.q, call.k, call.v, call.out):
            sizes += element_steps(array, (1, 2, 3))
        sizes.append(call.row_max.shape[-1])
        if call.mask is not None:
            sizes += element_steps(call.mask, (1, 2, 3))
        scales = call.value_scales if call.key_scales is None else call.key_scales
        if scales is not None:
            sizes.append(scales.shape[-1])
        if problem.paged:
            sizes += [call.k.shape[2], *element_steps(call.k, (0,)), *element_steps(call.v, (0,))]
        scalars = (call.scale, call.softcap)[: len(attention_scalars(problem))]
        keys = int(call.items[:, ITEM_FIELDS.index("keys")].max(initial=0))
        work = len(call.items) * heads * call.queries * keys * (problem.head_dim + problem.value_dim)
        if not isinstance(self.blocking, DecodeCut):
            return Launch((*sizes, *scalars), work)
        splits = self.blocking.splits(keys)
        partials = self.blocking.partials(len(call.items), heads, call.queries, splits)
        together = 1
        if abs(call.k.strides[1]) < abs(call.k.strides[2]):  # heads of one key are adjacent: as many as leave
            tasks = len(call.items) * splits * kv_heads  # a task for each thread
            together = min(kv_heads, max(1, tasks // wanted_threads()))
        return Launch((*sizes, splits, together, *scalars), work, partials)

    def start(self, launch: Launch, addresses: Iterable[int]) -> None:
        """Runs on the arrays at some addresses, in the order of `AttentionCall`'s fields."""
        states: list[Array] = []
        if launch.partials is not None:
            states.append(np.empty(launch.partials, self.problem.acc.numpy))
        with self.pool.block() as scratch, call_team(launch.work) as team:
            self.function(*addresses, *map(data_address, states), *launch.numbers, scratch, team)

    def run(self, call: AttentionCall) -> None:
        """Attention of arrays that are known to fit; `out`, `row_max` and `row_sum` are written."""
        needed = (call.q, call.k, call.v, call.out, call.items, call.row_max, call.row_sum)
        optional = (call.mask, call.slopes, call.sinks, call.key_scales, call.value_scales, call.pages)
        arrays = (*needed, *optional)
        self.start(self.launch(call), [data_address(array) for array in arrays if array is not None])
