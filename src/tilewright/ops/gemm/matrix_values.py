"""Matrices in machine code: what is read of an array of one to three axes, transposes, extents in memory."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from tilewright.calls.fastcall import CallEntry, Entry
from tilewright.calls.layout import ARRAY_DATA, ARRAY_SHAPE, ARRAY_STRIDES
from tilewright.llvm.build import Function
from tilewright.llvm.values import INT64, Value, int64

#: Elements of a column-major C up to which products that are not transposed store to it directly, according
#: to measured call times. Larger ones are computed in rows and transposed.
MOST_SCATTERED = 1 << 16


class MatrixValues(NamedTuple):
    """Matrices of one array: the data pointer, lengths and strides of the axes.

    Attributes
    ----------
    batch, step : the number of matrices, and bytes from one to the next; 0 where there is one.
    row, column : strides in elements; contiguous where an axis has length 1.
    """

    data: Value
    batch: Value
    step: Value
    rows: Value
    columns: Value
    row: Value
    column: Value

    def transposed(self) -> MatrixValues:
        """The same memory with rows and columns exchanged."""
        return self._replace(rows=self.columns, columns=self.rows, row=self.column, column=self.row)


def read_matrix(
    f: CallEntry, array: Value, present: tuple[Value, Value, Value], shift: Value
) -> MatrixValues:
    """Emits the reading of an array; a call with a stride of parts of an element is given up.

    Parameters
    ----------
    present : which of batch, rows and columns the array has as axes; others have length 1.
    shift : the size of an element is this power of two.
    """
    missing = f.alloca(INT64, 2, 8)
    f.put(missing, 0, int64(1))
    f.put(missing, 8, int64(0))
    lengths, strides, offset = [], [], int64(0)
    shape, steps = f.pointer(array, ARRAY_SHAPE), f.pointer(array, ARRAY_STRIDES)
    for there in present:
        lengths.append(f.word(f.select(there, f.at(shape, offset), missing)))
        strides.append(f.word(f.select(there, f.at(steps, offset), f.at(missing, 8))))
        offset = f.add(offset, f.select(there, int64(8), int64(0)))
    return matrix_of(f, f.pointer(array, ARRAY_DATA), lengths, strides, shift)


def matrix_of(
    f: Entry, data: Value, lengths: Sequence[Value], strides: Sequence[Value], shift: Value
) -> MatrixValues:
    """Matrices by the lengths and byte strides of batch, rows and columns.

    A call with a stride of parts of an element is given up.
    """
    batch, rows, columns = lengths
    # Complex arrays may be aligned to their parts only; the stride of an axis of length 1 has no meaning.
    parts = f.sub(f.shl(int64(1), shift), 1)
    for length, stride in zip(lengths[1:], strides[1:], strict=True):
        whole = f.icmp("==", f.and_(stride, parts), 0)
        f.require(f.or_(whole, f.icmp("<=", length, 1)))
    step = f.select(f.icmp("==", batch, 1), int64(0), strides[0])
    row, column = (f.ashr(stride, shift) for stride in strides[1:])
    single = f.icmp("==", columns, 1)
    row = f.select(f.and_(f.icmp("==", rows, 1), f.not_(single)), columns, row)
    column = f.select(single, int64(1), column)
    return MatrixValues(data, batch, step, rows, columns, row, column)


def extent(f: Function, matrix: MatrixValues, shift: Value) -> tuple[Value, Value]:
    """The address of the first byte of the matrices, and of the byte after their last one."""
    low = f.ptrtoint(matrix.data)
    high = f.add(low, f.shl(int64(1), shift))
    axes = ((matrix.rows, f.shl(matrix.row, shift)), (matrix.columns, f.shl(matrix.column, shift)))
    for count, stride in (*axes, (matrix.batch, matrix.step)):
        reach = f.mul(f.sub(count, 1), stride)
        low = f.add(low, f.minimum(reach, int64(0)))
        high = f.add(high, f.maximum(reach, int64(0)))
    return low, high


# --- transposed products ---------------------------------------------------------------------------


class Turns(IntEnum):
    """Limits within which a kernel may compute Cᵀ = Bᵀ·Aᵀ instead."""

    NONE = 0
    ALL = 1
    ONE_COLUMN = 2  # complex ones: see `macro.nest.computed_transposed`


def column_major(f: Function, c: MatrixValues) -> Value:
    """Emit whether the columns of C are contiguous and its rows are not."""
    return f.and_(f.icmp("!=", c.column, 1), f.icmp("==", c.row, 1))


def better_transposed(f: Function, a: MatrixValues, c: MatrixValues, turns: Value) -> Value:
    """Whether Cᵀ = Bᵀ·Aᵀ is faster: for a column-major C, or a column-major A times one column."""
    flip = f.and_(column_major(f, c), f.icmp("==", turns, Turns.ALL))
    vector = f.and_(f.icmp("==", c.columns, 1), f.and_(f.icmp("==", c.row, 1), f.icmp("==", a.row, 1)))
    return f.or_(flip, f.and_(vector, f.icmp("!=", turns, Turns.NONE)))


def transposed_if(
    f: Function, condition: Value, a: MatrixValues, b: MatrixValues, c: MatrixValues
) -> tuple[MatrixValues, MatrixValues, MatrixValues]:
    """The operands of the transposed product if the condition holds, else a, b and c."""

    def chosen(straight: MatrixValues, flipped: MatrixValues) -> MatrixValues:
        pairs = zip(straight, flipped, strict=True)
        return MatrixValues(*(f.select(condition, second, first) for first, second in pairs))

    return chosen(a, b.transposed()), chosen(b, a.transposed()), chosen(c, c.transposed())
