"""Pairs of operands whose axes do not fuse, multiplied where they stand by a `ScatteredGemm`."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewright.macro.roles import Axis, arrange
from tilewright.runtime.operands import Array
from tilewright.runtime.scattered import ScatteredKernel, Tables
from tilewright.spec.scattered import ScatteredGemm

if TYPE_CHECKING:
    from tilewright.runtime.contract import Pairing

#: NumPy's types whose sums are kept in the same type, and the kernel's name of each.
TABLE_TYPES = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}

#: Multiply-adds from which tables are worth it: of fewer, operands are copied within the caches.
LEAST_WORK = 1 << 22

#: Calls whose tables are kept: of 8 bytes for each row, column and depth.
_CALLS = 128

_kernels: dict[str, ScatteredKernel] = {}


class _Call(NamedTuple):
    """One contraction of arrays of some type, shapes and strides."""

    kernel: ScatteredKernel
    swapped: bool
    tables: Tables


@lru_cache(maxsize=_CALLS)
def _call(
    dtype: np.dtype[Any],
    labels: tuple[str, str, str],
    sizes: tuple[int, ...],
    strides: tuple[tuple[int, ...], ...],
) -> _Call:
    """Kernel and tables; `sizes` are those of the labels in their first order, strides in bytes."""
    name = TABLE_TYPES[dtype]
    kernel = _kernels.get(name)
    if kernel is None:
        kernel = _kernels[name] = ScatteredKernel.compiled(ScatteredGemm(name))
    steps = [
        {label: step // dtype.itemsize for label, step in zip(own, given, strict=True)}
        for own, given in zip(labels, strides, strict=True)
    ]
    order = dict.fromkeys("".join(labels[:2]))
    axes = [
        Axis(size, *(found.get(label) for found in steps)) for label, size in zip(order, sizes, strict=True)
    ]
    swapped, batch, m, n, k = arrange(axes)
    return _Call(kernel, swapped, kernel.tables(batch, m, n, k))


class ByTables(NamedTuple):
    """A pair of operands that would have to be copied for `matmul`.

    Attributes
    ----------
    labels : of both operands and the result.
    sizes : of the labels of both operands, each once.
    shape : of the result.
    copying : how types and places are multiplied that have no such kernel.
    """

    labels: tuple[str, str, str]
    sizes: tuple[int, ...]
    shape: tuple[int, ...]
    copying: Pairing

    def multiply(self, a: Array, b: Array) -> Array:
        """The result in memory of its own."""
        return self.compute(a, b, None, None)

    def recipe(self, a: Array, b: Array) -> None:  # noqa: ARG002
        """None: machine code does not repeat such calls, which take much longer than Python."""
        return

    def compute(self, a: Array, b: Array, out: Array | None, dtype: np.dtype[Any] | None) -> Array:
        """The result in `out`, or in memory of its own."""
        kind = a.dtype
        if kind not in TABLE_TYPES or b.dtype != kind or dtype not in (None, kind):
            return self.copying.compute(a, b, out, dtype)
        found = np.empty(self.shape, kind) if out is None else out
        arrays = (a, b, found)
        if found.dtype != kind or not all(_whole(array) for array in arrays):
            return self.copying.compute(a, b, out, dtype)
        call = _call(kind, self.labels, self.sizes, (a.strides, b.strides, found.strides))
        first, second = (b, a) if call.swapped else (a, b)
        call.kernel.run(first, second, found, call.tables)
        return found


def _whole(array: Array) -> bool:
    """Whether elements stand where their type wants them, and steps are whole elements."""
    size = array.itemsize
    return bool(array.flags.aligned) and not any(step % size for step in array.strides)
