"""Products in machine code: the record of a kernel filled in, and the loop over the matrices of a batch."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.calls.batch import loop_place
from tilewright.calls.object_code import ObjectCode
from tilewright.calls.promotion import promoted_dtype
from tilewright.llvm.build import Callee, Function
from tilewright.llvm.values import VOID, Value, constant, int64
from tilewright.ops.gemm.entry_row import EntryRow
from tilewright.ops.gemm.matrix_values import MatrixValues
from tilewright.spec.dtype import ACCUMULATORS, GEMM_DTYPES

if TYPE_CHECKING:
    from tilewright.ops.gemm.kernel import GemmKernel

#: Sizes above this go through Python, which checks products of sizes for overflow.
MAX_DIRECT_SIZE = 1 << 31


def row_of(kernel: GemmKernel, dtypes: tuple[np.dtype[Any], ...]) -> EntryRow:
    """The record of a kernel for NumPy's types of a, b and the result, whose bits it computes with."""
    types = kernel.types
    return EntryRow(
        (ctypes.c_void_p * 3)(*map(id, dtypes)),
        tuple(dtype.itemsize.bit_length() - 1 for dtype in dtypes),
        int(promoted_dtype(dtypes[0], dtypes[1]) == dtypes[2]),
        kernel.address,
        ACCUMULATORS.index(types.acc),
        GEMM_DTYPES.index(types.a),
        kernel.largest_exact,
        kernel.ahead_from,
        kernel.turns,
        kernel.scratch_step,
        kernel.scratch_parts,
    )


def merged(
    f: Function, in_a: tuple[MatrixValues, Value], b: MatrixValues, in_c: tuple[MatrixValues, Value]
) -> tuple[MatrixValues, MatrixValues]:
    """Batches of A over one B as one tall product, where rows of A and of C go on evenly.

    A and C come with the shifts that are the sizes of their elements; the batch is that of C.
    """
    a, c = in_a[0], in_c[0]
    tall = f.mul(a.rows, c.batch)
    evenly = f.and_(f.icmp("==", b.step, 0), f.icmp("<", tall, MAX_DIRECT_SIZE))
    for matrix, shift in (in_a, in_c):
        span = f.shl(f.mul(matrix.rows, matrix.row), shift)
        evenly = f.and_(evenly, f.icmp("==", matrix.step, span))
    rows, batch = f.select(evenly, tall, a.rows), f.select(evenly, int64(1), c.batch)
    return a._replace(rows=rows, batch=batch), c._replace(rows=rows, batch=batch)


def multiply(
    f: ObjectCode, row: Value, matrices: tuple[MatrixValues, ...], scratch: Value, team: Value
) -> None:
    """Every product of the batch through the kernel of its element types."""
    a, b, c = matrices
    sizes = [a.rows, b.columns, a.columns]
    strides = [value for matrix in matrices for value in (matrix.row, matrix.column)]
    pointers, steps = [matrix.data for matrix in matrices], [matrix.step for matrix in matrices]
    kernel = f.pointer(row, EntryRow.code)
    for index, acc in enumerate(ACCUMULATORS):
        with f.when(f.icmp("==", f.word(row, EntryRow.acc), index)):
            rest = [*pointers, *sizes, *strides, constant(acc, 1), constant(acc, 0), scratch]
            with f.branch(f.icmp("==", c.batch, 1)) as (one, several):
                with one:
                    f.call(Callee(VOID, kernel.text), [*rest, team])
                with several:
                    loop = f.pointer(f.symbol("loops"), 8 * loop_place(acc))
                    parts = [f.word(row, field) for field in (EntryRow.scratch_step, EntryRow.scratch_parts)]
                    f.call(Callee(VOID, loop.text), [kernel, c.batch, *steps, *rest, *parts, team])
