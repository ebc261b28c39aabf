"""Rotary embeddings of any arrays: axes, tables, positions, overlap; ends in kernels."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple, get_args

import numpy as np

from tilewright.calls.indices import checked_indices, first_places
from tilewright.calls.kernels import kernel_for
from tilewright.calls.operands import Array
from tilewright.calls.pieces import contiguous, copied, copy_to
from tilewright.calls.recording import new_array
from tilewright.compiler.kernel import Kernel
from tilewright.errors import RotaryAxes, RotaryPositions, RotaryTables
from tilewright.ops.rotary.problem import Rotary
from tilewright.ops.rows.call import as_floats, check_result, result_target
from tilewright.ops.rows.kernel import Prepared, RowCall
from tilewright.spec.arguments import check_word
from tilewright.spec.dtype import F32, DType, find_numpy_dtype
from tilewright.spec.rotary import Pairing
from tilewright.typing import AttentionLayoutName

#: Axes of an operand, at least and at most.
FEWEST_AXES, MOST_AXES = 2, 4

#: The places of sequence and heads among the axes, and all axes in words, by layout.
_LAYOUTS = dict(zip(get_args(AttentionLayoutName), ((-2, -3), (-3, -2)), strict=True))
_WORDS = {"bhsd": "(batch, heads, sequence, d)", "bshd": "(batch, sequence, heads, d)"}


class _Sequences(NamedTuple):
    """The axes of an operand by what they are, numbered from the end; 2-D operands have one head."""

    sequence: int
    heads: int

    @classmethod
    def of(cls, x: Array, layout: Any) -> _Sequences:
        """The axes of x."""
        word = check_word(layout, "layout", _LAYOUTS)
        if not FEWEST_AXES <= x.ndim <= MOST_AXES:
            axes = f"{_WORDS[word]}, without batch or with neither batch nor heads"
            raise RotaryAxes(found=x.shape, layout=word, axes=axes)
        return cls(-2, -3) if x.ndim == FEWEST_AXES else cls(*_LAYOUTS[word])


def prepare_rotary(
    x: Any, tables: tuple[Any, Any], positions: Any, out: Any, *, pairing: Pairing, layout: Any
) -> Prepared:
    """Prepare a rotary embedding; see `tilewright.rotary`.

    Parameters
    ----------
    tables : cosines and sines.
    """
    array, dtype = as_floats(x, "x")
    axes = _Sequences.of(array, layout)
    cos, sin = _tables(tables, array, dtype)
    given = None if out is None else check_result(out, array.shape, dtype.numpy)
    length = array.shape[axes.sequence]
    places = _places(positions, array, length, len(cos))
    target = result_target(array, dtype, given, [cos, sin])
    if not array.size:
        return Prepared(array, target, given, None)
    kernel = _kernel(array.dtype, cos.dtype, pairing)
    call = partial(_call, kernel, places=places, tables=(cos, sin), axes=axes)
    if all(_rows_adjacent(one) for one in (array, target)):
        return Prepared(array, target, given, call(array, target))
    return Prepared(array, target, given, None, partial(_moved, call, array, target))


def _tables(given: tuple[Any, Any], x: Array, dtype: DType) -> tuple[Array, Array]:
    """Cosines and sines as a kernel takes them: of x's type, or of the one that is computed in."""
    found = [as_floats(table, name)[0] for table, name in zip(given, ("cos", "sin"), strict=True)]
    cos, sin = found
    most = x.shape[-1] // 2
    if cos.ndim != 2 or cos.shape[1] > most:
        required = f"(positions, pairs), at most {most} pairs: those of {x.shape[-1]} elements of x"
        raise RotaryTables(name="cos", found=cos.shape, required=required)
    if sin.shape != cos.shape:
        raise RotaryTables(name="sin", found=sin.shape, required=f"{cos.shape}, the shape of cos")
    computed = dtype if dtype.bits > F32.bits else F32
    kept = all(table.dtype == cos.dtype and table.dtype in (dtype.numpy, computed.numpy) for table in found)
    wanted = cos.dtype if kept else computed.numpy
    cos, sin = (table if table.dtype == wanted else copied(table, wanted) for table in found)
    return _adjacent(cos), _adjacent(sin)


def _rows_adjacent(array: Array) -> bool:
    """Whether elements along the last axis are adjacent."""
    return array.shape[-1] == 1 or array.strides[-1] == array.itemsize


def _adjacent(table: Array) -> Array:
    """A table whose rows' elements are adjacent."""
    return table if table.shape[1] == 1 or table.strides[1] == table.itemsize else contiguous(table)


def _places(positions: Any, x: Array, length: int, limit: int) -> Array:
    """The row of the tables for each row of a sequence: (sequence,), or (batch, sequence).

    Raises
    ------
    RotaryTables : there are no positions, and fewer rows than a sequence has.
    InvalidIndices, IndexPastEnd, RotaryPositions
    """
    if positions is None:
        if length > limit:
            required = f"at least {length} rows, as a sequence has, or positions are given"
            raise RotaryTables(name="cos", found=f"{limit} rows", required=required)
        return first_places(length)
    found = checked_indices(positions, "positions", limit)
    batched = x.ndim == MOST_AXES
    shape = (x.shape[0], length) if batched else (length,)
    fits = found.ndim <= len(shape) and all(
        own in (1, wanted) for own, wanted in zip(found.shape[::-1], shape[::-1], strict=False)
    )
    if not fits:
        axes = "(batch, sequence)" if batched else "(sequence,)"
        raise RotaryPositions(found=found.shape, required=shape, axes=axes)
    return np.broadcast_to(found, shape)


@lru_cache(maxsize=64)
def _kernel(dtype: np.dtype[Any], tables: np.dtype[Any], pairing: Pairing) -> Kernel:
    """The kernel of some element types."""
    element, table = find_numpy_dtype(dtype), find_numpy_dtype(tables)
    assert element is not None
    assert table is not None
    kernel: Kernel = kernel_for(Rotary(element, table, pairing))
    return kernel


def _call(
    kernel: Kernel, x: Array, y: Array, *, places: Array, tables: tuple[Array, Array], axes: _Sequences
) -> RowCall:
    """The kernel on arrays whose rows' elements are adjacent."""
    size, cos = x.itemsize, tables[0]

    def steps(array: Array) -> list[int]:
        """Strides in elements along batch, heads and sequence."""
        found = [0, 0, array.strides[axes.sequence] // size]
        if array.ndim > FEWEST_AXES:
            found[1] = array.strides[axes.heads] // size
        if array.ndim == MOST_AXES:
            found[0] = array.strides[0] // size
        return found

    batch = x.shape[0] if x.ndim == MOST_AXES else 1
    heads = x.shape[axes.heads] if x.ndim > FEWEST_AXES else 1
    counts = [batch, heads, x.shape[axes.sequence]]
    along = [step // places.itemsize for step in places.strides]
    walked = [steps(x), steps(y), [along[0] if len(along) > 1 else 0, 0, along[-1]]]
    if heads > counts[2]:  # the longer of the two is the loop over rows
        for one in (counts, *walked):
            one[1], one[2] = one[2], one[1]
    pairs = cos.shape[1]
    lines = [table.strides[0] // table.itemsize for table in tables]
    strides = [step for one in walked for step in one]
    sizes = (*counts, pairs, x.shape[-1] - 2 * pairs, *strides, *lines)
    return RowCall(kernel, [x, y, *tables, places], sizes, x.size)


def _moved(call: Any, x: Array, y: Array) -> None:
    """The kernel on row-major copies."""
    rows = y if _rows_adjacent(y) else new_array(y.shape, y.dtype)
    call(x if _rows_adjacent(x) else contiguous(x), rows).run()
    if rows is not y:
        copy_to(y, rows)
