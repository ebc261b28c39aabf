"""Calls of the kernels of fused attention on validated arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.operands import Array, data_address
from tilewright.calls.recording import new_array
from tilewright.compiler.kernel import Kernel
from tilewright.ops.attention.cut import DecodeCut
from tilewright.ops.attention.problem import ITEM_FIELDS, ITEM_SIZE, attention_scalars
from tilewright.threads.pool import wanted_threads


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

    def start(self, kernel: Kernel, addresses: Iterable[int]) -> None:
        """Run a kernel on the arrays at some addresses, in the order of the call's fields."""
        states: list[Array] = []
        if self.partials is not None:
            states.append(new_array((self.partials,), kernel.problem.acc.numpy))
        kernel.launch((*addresses, *map(data_address, states), *self.numbers), self.work)


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


#: Columns of the table that hold sizes.
LENGTHS = ("queries", "keys")

#: Up to so many keys, calls are alike.
_FEW_KEYS = 64


def similar_keys(keys: int, kernel: Kernel) -> tuple[int, int]:
    """The range of numbers of keys of which a call is made as of this one: as much work, up to a factor."""
    most = max(_FEW_KEYS, 1 << (keys - 1).bit_length() if keys else 0)
    least = 0 if most == _FEW_KEYS else most // 4
    cut = kernel.blocking
    if isinstance(cut, DecodeCut):
        runs = cut.splits(keys)
        most = min(most, runs * cut.split)
        least = max(least, (runs - 1) * cut.split + 1 if runs > 1 else 0)
    return least, most


def element_steps(array: Array, axes: Sequence[int]) -> list[int]:
    """Strides in elements."""
    size, strides = array.itemsize, array.strides
    return [strides[axis] // size for axis in axes]


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
    keys : the largest number of keys of a sequence; None: as `items` say.
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
    keys: int | None = None

    def launch(self, kernel: Kernel) -> Launch:
        """Every argument except array addresses: the same for all arrays of these shapes."""
        problem, cut = kernel.problem, kernel.blocking
        heads, kv_heads = self.q.shape[1], self.k.shape[1]
        sizes = [len(self.items), kv_heads, heads // kv_heads, self.queries]
        for array in (self.q, self.k, self.v, self.out):
            sizes += element_steps(array, (1, 2, 3))
        sizes.append(self.row_max.shape[-1])
        if self.mask is not None:
            sizes += element_steps(self.mask, (1, 2, 3))
        scales = self.value_scales if self.key_scales is None else self.key_scales
        if scales is not None:
            sizes.append(scales.shape[-1])
        if problem.paged:
            sizes += [self.k.shape[2], *element_steps(self.k, (0,)), *element_steps(self.v, (0,))]
        scalars = (self.scale, self.softcap)[: len(attention_scalars(problem))]
        keys = self.keys
        if keys is None:
            keys = int(self.items[:, ITEM_FIELDS.index("keys")].max(initial=0))
        work = len(self.items) * heads * self.queries * keys * (problem.head_dim + problem.value_dim)
        if not isinstance(cut, DecodeCut):
            return Launch((*sizes, *scalars), work)
        splits = cut.splits(keys)
        partials = cut.partials(len(self.items), heads, self.queries, splits)
        together = 1
        if abs(self.k.strides[1]) < abs(self.k.strides[2]):  # heads of one key are adjacent: as many as leave
            tasks = len(self.items) * splits * kv_heads  # a task for each thread
            together = min(kv_heads, max(1, tasks // wanted_threads()))
        return Launch((*sizes, splits, together, *scalars), work, partials)

    def run(self, kernel: Kernel) -> None:
        """Attention of arrays that are known to fit; `out`, `row_max` and `row_sum` are written."""
        needed = (self.q, self.k, self.v, self.out, self.items, self.row_max, self.row_sum)
        optional = (self.mask, self.slopes, self.sinks, self.key_scales, self.value_scales, self.pages)
        arrays = (*needed, *optional)
        self.launch(kernel).start(kernel, [data_address(array) for array in arrays if array is not None])
