"""Pairs of operands whose axes do not fuse, contracted in place by tables of offsets."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.kernels import kernel_for
from tilewright.calls.operands import Array
from tilewright.calls.recording import new_array
from tilewright.compiler.kernel import Kernel
from tilewright.ops.contraction.problem import table_contraction
from tilewright.ops.contraction.tables.roles import is_swapped, ordered
from tilewright.ops.contraction.tables.tables import Tables, run_tables, tables_of
from tilewright.spec.axes import StridedAxis
from tilewright.spec.dtype import DTYPES

#: NumPy's types whose sums are kept in the same type, and the kernel's name of each.
TABLE_TYPES: dict[np.dtype[Any], str] = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}

#: Multiply-adds from which tables are worth it: of fewer, operands are copied within the caches.
LEAST_WORK = 1 << 22

#: Elements from which a dimension may be the adjacent one of a result: a vector.
LEAST_NEAR = 16

#: Calls whose tables are kept: of 8 bytes for each row, column and depth.
_CALLS = 128


class _TableCall(NamedTuple):
    """One contraction of arrays of some type, shapes and strides."""

    kernel: Kernel
    swapped: bool
    tables: Tables


@lru_cache(maxsize=_CALLS)
def _call(
    dtype: np.dtype[Any],
    labels: tuple[str, str, str],
    sizes: tuple[int, ...],
    strides: tuple[tuple[int, ...], ...],
) -> _TableCall:
    """Kernel and tables; `sizes` are those of the labels in their first order, strides in bytes."""
    kernel: Kernel = kernel_for(table_contraction(DTYPES[TABLE_TYPES[dtype]]))
    steps = [
        {label: step // dtype.itemsize for label, step in zip(own, given, strict=True)}
        for own, given in zip(labels, strides, strict=True)
    ]
    order = dict.fromkeys("".join(labels[:2]))
    axes = [
        StridedAxis(size, *(found.get(label) for found in steps))
        for label, size in zip(order, sizes, strict=True)
    ]
    swapped = is_swapped(axes)
    placed = ordered(axes, swapped=swapped)
    tables = tables_of(kernel.problem.types.acc, kernel.machine, kernel.blocking, placed)
    return _TableCall(kernel, swapped, tables)


def _memory_order(
    labels: tuple[str, str, str], sizes: Mapping[str, int], strides: tuple[tuple[int, ...], ...]
) -> tuple[int, ...]:
    """The axes of a new result, outermost in memory first.

    They stand in their order, unless the operand with the last one has its adjacent elements along another
    axis of the result. Then its axes are the inner ones in its own order, so that both are walked alike, as
    in results of NumPy and PyTorch, which also are views. The axes of a batch are the outer ones if one of
    them is the last: each product then writes elements that are adjacent.

    >>> _memory_order(("dbea", "ec", "abcd"), dict.fromkeys("abcde", 99), ((2916, 324, 36, 4), (36, 4)))
    (2, 3, 1, 0)
    >>> _memory_order(("ij", "jki", "ki"), dict.fromkeys("ijk", 99), ((400, 4), (40_000, 400, 4)))
    (1, 0)
    """
    *inputs, out = labels
    both = set.intersection(*map(set, inputs))
    order = list(out)
    if out[-1:] and out[-1] in both:
        order.sort(key=lambda label: label not in both)
    for own, steps in zip(inputs, strides, strict=True):
        if not order or order[-1] not in own or order[-1] in both:
            continue
        nearest_last = sorted(zip(steps, own, strict=True), key=lambda pair: -abs(pair[0]))
        inner = [label for _, label in nearest_last if label in out and label not in both]
        near = next((label for _, label in reversed(nearest_last) if sizes[label] > 1), order[-1])
        if near == inner[-1] != order[-1] and sizes[near] >= LEAST_NEAR:
            order = [*(label for label in order if label not in inner), *inner]
            break
    return tuple(out.index(label) for label in order)


class TablePair(NamedTuple):
    """A pair of operands that would have to be copied for `matmul`.

    Attributes
    ----------
    labels : of both operands and the result.
    sizes : of the labels of both operands, each once.
    shape : of the result.
    """

    labels: tuple[str, str, str]
    sizes: tuple[int, ...]
    shape: tuple[int, ...]

    def compute(self, a: Array, b: Array, out: Array | None = None) -> Array:
        """The result in `out`, or in memory of its own."""
        kind, strides = a.dtype, (a.strides, b.strides)
        found = self._new(kind, strides) if out is None else out
        call = _call(kind, self.labels, self.sizes, (*strides, found.strides))
        first, second = (b, a) if call.swapped else (a, b)
        run_tables(call.kernel, (first, second, found), call.tables, call.tables.lengths)
        return found

    def _new(self, dtype: np.dtype[Any], strides: tuple[tuple[int, ...], ...]) -> Array:
        """Memory for the result."""
        sizes = dict(zip(dict.fromkeys("".join(self.labels[:2])), self.sizes, strict=True))
        order = _memory_order(self.labels, sizes, strides)
        found = new_array(tuple(self.shape[axis] for axis in order), dtype)
        return found.transpose(np.argsort(order))
