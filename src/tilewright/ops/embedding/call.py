"""Embeddings of any arrays: tables, indices, overlap; ends in kernels."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.foreign import as_array
from tilewright.calls.indices import checked_indices
from tilewright.calls.kernels import kernel_for
from tilewright.calls.operands import Array, merges
from tilewright.calls.pieces import contiguous, copied, copy_to
from tilewright.calls.recording import new_array
from tilewright.compiler.kernel import Kernel
from tilewright.errors import EmbeddingTable, UnsupportedDtype
from tilewright.ops.embedding.problem import TABLE_DTYPES, Embedding
from tilewright.ops.linear.activations import QuantizedRows
from tilewright.ops.rows.call import check_result
from tilewright.ops.rows.kernel import Prepared, RowCall
from tilewright.spec.arguments import real_number
from tilewright.spec.dtype import F32, FUNCTION_DTYPES, find_numpy_dtype


class _Table(NamedTuple):
    """A table as a kernel reads it, and the scales of its rows if it is quantised."""

    rows: Array
    scales: Array | None

    @property
    def result(self) -> np.dtype[Any]:
        """The element type of its embeddings."""
        return self.rows.dtype if self.scales is None else F32.numpy

    def overlaps(self, array: Array) -> bool:
        """Whether an array shares memory with it."""
        return any(part is not None and np.may_share_memory(array, part) for part in (self.rows, self.scales))


def prepare_embedding(table: Any, indices: Any, out: Any, scale: Any) -> Prepared:
    """Prepare a gathering of rows; see `tilewright.embedding`."""
    source = _table(table)
    factor = [] if scale is None else [real_number(scale, "scale")]
    places = checked_indices(indices, "indices", len(source.rows))
    shape, dtype = (*places.shape, source.rows.shape[1]), source.result
    given = None if out is None else check_result(out, shape, dtype)
    direct = given is not None and given.dtype == dtype and given.flags.aligned
    target = given if given is not None and direct and not source.overlaps(given) else new_array(shape, dtype)
    if not target.size:
        return Prepared(source.rows, target, given, None)
    kernel = _kernel(source.rows.dtype, bool(factor))
    call = partial(_call, kernel, source, places, factor)
    if _in_lines(target):
        return Prepared(source.rows, target, given, call(target))
    return Prepared(source.rows, target, given, None, partial(_moved, call, target))


def _table(value: Any) -> _Table:
    """The table of a call.

    Raises
    ------
    EmbeddingTable, UnsupportedDtype
    """
    quantised = isinstance(value, QuantizedRows)
    rows = value.q if quantised else as_array(value, "table")
    if rows.ndim != 2:
        raise EmbeddingTable(found=rows.shape)
    if quantised:
        return _Table(rows, value.scales)
    found = find_numpy_dtype(rows.dtype.newbyteorder("="))
    if found not in FUNCTION_DTYPES:
        supported = ", ".join([*map(str, FUNCTION_DTYPES), "i8 with scales, as QuantizedRows"])
        raise UnsupportedDtype(dtype=f"table of {rows.dtype}", supported=supported)
    if rows.dtype != found.numpy or not rows.flags.aligned:
        rows = copied(rows, found.numpy)
    adjacent = rows.shape[1] == 1 or rows.strides[1] == rows.itemsize
    return _Table(rows if adjacent else contiguous(rows), None)


def _in_lines(target: Array) -> bool:
    """Whether the rows of a result are one axis, and elements of each are adjacent."""
    adjacent = target.shape[-1] == 1 or target.strides[-1] == target.itemsize
    return adjacent and merges(target, (target.size // target.shape[-1], target.shape[-1]))


@lru_cache(maxsize=64)
def _kernel(dtype: np.dtype[Any], scaled: bool) -> Kernel:
    """The kernel of an element type."""
    found = find_numpy_dtype(dtype)
    assert found in TABLE_DTYPES
    kernel: Kernel = kernel_for(Embedding(found, scaled))
    return kernel


def _call(kernel: Kernel, table: _Table, places: Array, factor: list[float], y: Array) -> RowCall:
    """The kernel on a result whose rows are one axis."""
    lines = y.reshape(-1, y.shape[-1])
    size, rows = lines.itemsize, table.rows
    sizes = (*lines.shape, lines.strides[0] // size, rows.strides[0] // rows.itemsize)
    scales = [] if table.scales is None else [table.scales]
    return RowCall(kernel, [y, *scales, rows, places], sizes, y.size, factor)


def _moved(call: Any, y: Array) -> None:
    """The kernel on a row-major result, which is copied."""
    rows = new_array(y.shape, y.dtype)
    call(rows).run()
    copy_to(y, rows)
