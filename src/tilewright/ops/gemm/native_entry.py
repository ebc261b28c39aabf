"""The native entry: machine code of `matmul` that reads NumPy arrays itself.

It handles plain arrays of one to three axes, that is vectors, matrices and one batch axis that broadcasts,
and hands everything else, every error included, to the Python function.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tilewright.calls.batch import loop_place, loop_table
from tilewright.calls.fastcall import (
    API_EMPTY,
    API_RETURN,
    GIL_THRESHOLD,
    MOST_SCATTERED,
    FastFunction,
    MatrixValues,
    Turns,
    better_transposed,
    column_major,
    python_symbols,
    transposed_if,
)
from tilewright.calls.layout import (
    ALIGNED,
    ARRAY_DATA,
    ARRAY_DTYPE,
    ARRAY_NDIM,
    ARRAY_SHAPE,
    ARRAY_STRIDES,
    LAYOUT,
    OBJECT_TYPE,
    WRITEABLE,
    numpy_api,
)
from tilewright.calls.promotion import promoted_dtype
from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.builtin import Builtin
from tilewright.llvm.quick import QUICK_WORK, EntryCode, quick_code
from tilewright.llvm.target import data_layout
from tilewright.llvm.values import INT32, INT64, POINTER, VOID, Value, constant, int64, null
from tilewright.machine.host import host_machine
from tilewright.ops.gemm.exact_sizes import exact_table, find_exact, run_exact
from tilewright.spec.dtype import ACCUMULATORS, GEMM_DTYPES

if TYPE_CHECKING:
    from tilewright.ops.gemm.kernel import GemmKernel
    from tilewright.threads.scratch import ScratchPool

    #: NumPy's types of a, b and the result, and the kernel that computes with their bits.
    ProductKernel = tuple[tuple[np.dtype[Any], ...], GemmKernel]

#: Axes of an operand: rows, columns and one of a batch.
MOST_AXES = 3

#: Sizes above this go through Python, which checks products of sizes for overflow.
MAX_DIRECT_SIZE = 1 << 31


class _Entry(FastFunction):
    """Emits `matmul`; see `_emit` for the order of its steps."""

    def python(self) -> Callee:
        """Whatever serves other products, found in memory: recipes as soon as there are some, else Python."""
        return Callee(POINTER, self.f.load(POINTER, self.module.external("tw_others"), 8).text)

    def operand(self, array: Value, dtype: Value, shift: Value) -> _Operand:
        """An aligned ndarray of one to three axes and of the element type, whose size `shift` gives."""
        f = self.f
        self.check_plain(array, dtype, ALIGNED)
        axes = f.sext(self.field(array, ARRAY_NDIM, INT32), INT64)
        self.require(f.and_(f.icmp(">=", axes, 1), f.icmp("<=", axes, MOST_AXES)))
        shape, strides = self.field(array, ARRAY_SHAPE), self.field(array, ARRAY_STRIDES)
        vector, batched = f.icmp("==", axes, 1), f.icmp("==", axes, MOST_AXES)
        outer = f.mul(f.maximum(f.sub(axes, 2), int64(0)), 8)
        inner = f.mul(f.sub(axes, 1), 8)
        rows, columns = (f.load(INT64, f.at(shape, at), 8) for at in (outer, inner))
        row, column = (
            self.elements(f.load(INT64, f.at(strides, at), 8), shift, length)
            for at, length in ((outer, rows), (inner, columns))
        )
        length = f.select(batched, f.load(INT64, shape, 8), int64(1))
        alone = f.or_(f.not_(batched), f.icmp("==", length, 1))
        step = f.select(alone, int64(0), f.load(INT64, strides, 8))
        data = self.field(array, ARRAY_DATA)
        return _Operand(data, vector, batched, length, step, (rows, columns), (row, column))

    def matrix_of(self, operand: _Operand, rows: Value, columns: Value) -> MatrixValues:
        """The matrix of an operand, with the length of a vector's missing axis."""
        row, column = operand.apart
        return self.contiguous(MatrixValues(operand.data, rows, columns, row, column, operand.step))


class _Operand(NamedTuple):
    """The fields read from an array; for a vector, both last axes are its one axis."""

    data: Value
    vector: Value
    batched: Value
    length: Value  # of the batch axis; 1 without one
    step: Value  # bytes to the next matrix, 0 where it is the same one
    lengths: tuple[Value, Value]  # of the last two axes
    apart: tuple[Value, Value]  # elements from one entry of them to the next


class Row(ctypes.Structure):
    """One kernel as the entry knows it: its element types and its calling convention."""

    _fields_ = (
        ("dtypes", ctypes.c_void_p * 3),  # NumPy's descriptors of a, b and the result
        ("shifts", ctypes.c_int64 * 3),  # the sizes of their elements are powers of two
        ("default", ctypes.c_int64),  # without `out`, the result has this type
        ("code", ctypes.c_void_p),
        ("acc", ctypes.c_int64),  # of alpha and beta, in the order of ACCUMULATORS
        ("number", ctypes.c_int64),  # of the one element type in GEMM_DTYPES, or -1
        ("turns", ctypes.c_int64),  # one of `Turns`
        ("scratch_step", ctypes.c_int64),  # see `GemmKernel`
        ("scratch_parts", ctypes.c_int64),
    )


#: Capacity of the entry in kernels: every type alone, unsigned types, and some mixtures.
MOST_ROWS = 48


class Rows(ctypes.Structure):
    """The table of the entry; a row is complete before it is counted."""

    _fields_ = (("count", ctypes.c_int64), ("rows", Row * MOST_ROWS))


class _FoundRow(NamedTuple):
    """A row, while the entry is written."""

    entry: _Entry
    place: Value

    def word(self, name: str, index: int = 0) -> Value:
        """An integer of the row."""
        return self.entry.field(self.place, getattr(Row, name).offset + 8 * index, INT64)

    def pointer(self, name: str, index: int = 0) -> Value:
        """A pointer of the row."""
        return self.entry.field(self.place, getattr(Row, name).offset + 8 * index)


def _find_row(entry: _Entry, first: Value, second: Value, out: Value) -> _FoundRow:
    """The kernel for the element types of two arrays and of `out`, if it is given."""
    f, module = entry.f, entry.module
    ndarray, given = module.external("tw_ndarray"), f.icmp("!=", out, null())
    # Only arrays have an element type: `out` is looked at in place of nothing as if it were the first.
    last = f.select(given, out, first)
    for array in (first, second, last):
        entry.require(f.icmp("==", entry.field(array, OBJECT_TYPE), ndarray))
    wanted = [entry.field(array, ARRAY_DTYPE) for array in (first, second, last)]
    table = module.external("tw_rows")
    count = f.load(INT64, f.at(table, Rows.count.offset), 8)
    begin = f.at(table, Rows.rows.offset)
    end = f.at(begin, f.mul(count, ctypes.sizeof(Row)))
    slot = f.alloca(POINTER, 1, 8)
    f.store(begin, slot, 8)
    look, found, another = f.new_block("look"), f.new_block("found"), f.new_block("another")
    entry.require(f.icmp("!=", begin, end))
    f.jump(look)
    f.place(look)
    row = _FoundRow(entry, f.load(POINTER, slot, 8))
    same = [f.icmp("==", dtype, row.pointer("dtypes", index)) for index, dtype in enumerate(wanted)]
    result = f.select(given, same[2], f.icmp("!=", row.word("default"), 0))
    f.jump_if(f.and_(f.and_(same[0], same[1]), result), found, another)
    f.place(another)
    following = f.at(row.place, ctypes.sizeof(Row))
    f.store(following, slot, 8)
    f.jump_if(f.icmp("==", following, end), entry.fallback, look)
    f.place(found)
    return _FoundRow(entry, f.load(POINTER, slot, 8))


def _emit(*, quick: bool) -> str:
    """The module of the entry: check, find or make `out`, look for a kernel, call it."""
    machine = host_machine()
    module = Module("tw_entry", machine.triple, data_layout(machine))
    entry = _Entry(module, "tw_matmul")
    f = entry.f
    entry.require_no_recording()
    if quick:
        entry.count_quick_call()
    out = entry.find_out(operands=2, positional=True)
    first, second = entry.argument(0), entry.argument(1)
    row = _find_row(entry, first, second, out)
    number = row.word("number")
    shift_a, shift_b, shift_c = (row.word("shifts", index) for index in range(3))
    a = entry.operand(first, row.pointer("dtypes", 0), shift_a)
    b = entry.operand(second, row.pointer("dtypes", 1), shift_b)
    one = int64(1)
    left = entry.matrix_of(a, f.select(a.vector, one, a.lengths[0]), a.lengths[1])
    right = entry.matrix_of(b, b.lengths[0], f.select(b.vector, one, b.lengths[1]))
    entry.require(f.icmp("==", left.columns, right.rows))
    largest = f.or_(f.or_(left.rows, left.columns), right.columns)
    entry.require(f.icmp("<", largest, MAX_DIRECT_SIZE))
    # Batch axes broadcast; empty ones are Python's.
    entry.batch = f.maximum(a.length, b.length)
    for length in (a.length, b.length):
        entry.require(f.icmp(">", length, 0))
        entry.require(f.or_(f.icmp("==", length, entry.batch), f.icmp("==", length, 1)))
    axes = _Axes.of(entry, (a, b), (left, right))
    result = _result(entry, out, axes, (left, right), row)
    target = axes.matrix(entry, result, shift_c)
    a_tall, target, entry.batch = _merged(f, (left, shift_a), (target, shift_c), b, entry.batch)
    turns = row.word("turns")
    # A large column-major C whose product is not computed transposed goes through Python, which transposes.
    scattered = f.and_(column_major(f, target), f.icmp("==", turns, Turns.ONE_COLUMN))
    large = f.icmp(">", f.mul(target.rows, target.columns), MOST_SCATTERED)
    entry.require(f.not_(f.and_(scattered, large)))
    turned = better_transposed(f, a_tall, target, turns)
    matrices = transposed_if(f, turned, a_tall, right, target)
    exact = find_exact(entry, number, matrices, unused=result)
    work = f.mul(f.mul(f.mul(a_tall.rows, a_tall.columns), right.columns), entry.batch)
    long_running = f.icmp(">", work, int64(GIL_THRESHOLD))
    if quick:
        entry.give_up_if(f.icmp(">", work, QUICK_WORK), unused=result)
    wish = entry.find_team(work, unused=result)
    with f.when(exact.found):
        run_exact(entry, exact, matrices, long_running, wish)
        entry.raise_cancelled(unused=result)
        f.ret(_returned(entry, result, axes))
    # Python compiles the loop over a batch when there is one of these types.
    loop = f.load(INT64, f.at(module.external("tw_loops"), f.mul(row.word("acc"), 8)), 8)
    missing = f.and_(f.icmp("!=", entry.batch, 1), f.icmp("==", loop, 0))
    entry.give_up_if(missing, unused=result)
    slot = entry.find_scratch(module.external("tw_scratch"), unused=result)
    with entry.taken(slot) as scratch, entry.without_gil(long_running), entry.team(wish) as team:
        _multiply(entry, row, matrices, scratch, team)
    entry.raise_cancelled(unused=result)
    entry.finish(_returned(entry, result, axes))
    return str(module)


class _Axes(NamedTuple):
    """The axes of the result: whether each of batch, rows and columns is there, their lengths in order."""

    present: tuple[Value, Value, Value]
    lengths: tuple[Value, Value, Value]
    number: Value
    shape: Value  # that many lengths, on the stack

    @classmethod
    def of(
        cls, entry: _Entry, operands: tuple[_Operand, _Operand], matrices: tuple[MatrixValues, MatrixValues]
    ) -> _Axes:
        """A vector's missing axis is missing in the result; a batch axis of either operand is there."""
        f = entry.f
        a, b = operands
        present = (f.or_(a.batched, b.batched), f.not_(a.vector), f.not_(b.vector))
        lengths = (entry.batch, matrices[0].rows, matrices[1].columns)
        shape = f.alloca(INT64, len(present) + 1, 16)
        at, count = shape, int64(0)
        for there, length in zip(present, lengths, strict=True):
            f.store(length, at, 8)  # the next one overwrites it where this axis is missing
            at = f.select(there, f.at(at, 8), at)
            count = f.add(count, f.select(there, int64(1), int64(0)))
        return cls(present, lengths, count, shape)

    def matrix(self, entry: _Entry, array: Value, shift: Value) -> MatrixValues:
        """The matrices of an array with these axes."""
        f = entry.f
        at, strides = entry.field(array, ARRAY_STRIDES), []
        # A missing axis reads the next one's stride or, at the end, one of the lengths before it; not used.
        at = f.select(f.icmp("==", self.number, 0), self.shape, at)
        for number, there in enumerate(self.present):
            rest = self.present[number:]
            last = rest[0]
            for other in rest[1:]:
                last = f.or_(last, other)
            place = f.select(last, at, self.shape)
            strides.append(f.load(INT64, place, 8))
            at = f.select(there, f.at(at, 8), at)
        batched, has_rows, has_columns = self.present
        _, rows, columns = self.lengths
        step = f.select(batched, strides[0], int64(0))
        apart = entry.elements(f.select(has_rows, strides[1], int64(0)), shift, rows)
        row = f.select(has_rows, apart, columns)
        apart = entry.elements(f.select(has_columns, strides[2], int64(0)), shift, columns)
        column = f.select(has_columns, apart, int64(1))
        data = entry.field(array, ARRAY_DATA)
        return entry.contiguous(MatrixValues(data, rows, columns, row, column, step))


def _result(
    entry: _Entry, out: Value, axes: _Axes, operands: tuple[MatrixValues, MatrixValues], row: _FoundRow
) -> Value:
    """A new reference to `out` after its checks, or to a new array."""
    f, module = entry.f, entry.module
    dtype, shift = row.pointer("dtypes", 2), row.word("shifts", 2)
    sizes = [f.shl(int64(1), row.word("shifts", index)) for index in range(3)]
    given = f.icmp("!=", out, null())
    slot = f.alloca(POINTER, 1, 8)
    increment = module.declare("tw_incref", VOID, (POINTER,))
    with f.branch(given) as (reuse, create):
        with reuse:
            entry.check_plain(out, dtype, ALIGNED | WRITEABLE)
            count = f.sext(entry.field(out, ARRAY_NDIM, INT32), INT64)
            entry.require(f.and_(f.icmp("==", count, axes.number), f.icmp(">", count, 0)))
            shape = entry.field(out, ARRAY_SHAPE)
            same = f.alloca(INT64, 1, 8)
            f.store(int64(0), same, 8)
            with f.loop(int64(0), count, int64(1), "axis") as axis:
                at = f.mul(axis, 8)
                lengths = [f.load(INT64, f.at(base, at), 8) for base in (shape, axes.shape)]
                equal = f.select(f.icmp("==", *lengths), int64(1), int64(0))
                f.store(f.add(f.load(INT64, same, 8), equal), same, 8)
            entry.require(f.icmp("==", f.load(INT64, same, 8), count))
            low, high = entry.extent(axes.matrix(entry, out, shift), sizes[2])
            for operand, size in zip(operands, sizes, strict=False):
                first, behind = entry.extent(operand, size)
                apart = f.or_(f.icmp("<=", high, first), f.icmp("<=", behind, low))
                entry.require(apart)
            f.call(increment, [out])
            f.store(out, slot, 8)
        with create:
            f.store(entry.new_array(f.trunc(axes.number, INT32), axes.shape, dtype), slot, 8)
    return f.load(POINTER, slot, 8)


def _merged(
    f: Function, in_a: tuple[MatrixValues, Value], in_c: tuple[MatrixValues, Value], b: _Operand, batch: Value
) -> tuple[MatrixValues, MatrixValues, Value]:
    """Batches of A over one B as one tall product, where rows of A and of C go on evenly.

    A and C come with the shifts that are the sizes of their elements.
    """
    evenly = f.icmp("==", b.step, 0)
    a, c = in_a[0], in_c[0]
    for matrix, shift in (in_a, in_c):
        span = f.shl(f.mul(matrix.rows, matrix.row), shift)
        evenly = f.and_(evenly, f.icmp("==", matrix.step, span))
    rows = f.mul(a.rows, batch)
    evenly = f.and_(evenly, f.icmp("<", rows, MAX_DIRECT_SIZE))
    rows = f.select(evenly, rows, a.rows)
    return a._replace(rows=rows), c._replace(rows=rows), f.select(evenly, int64(1), batch)


def _returned(entry: _Entry, result: Value, axes: _Axes) -> Value:
    """The result, as a scalar where it has no axes."""
    f = entry.f
    slot = f.alloca(POINTER, 1, 8)
    f.store(result, slot, 8)
    with f.when(f.icmp("==", axes.number, 0)):
        scalar = entry.module.declare("tw_return", POINTER, (POINTER,))
        f.store(f.call(scalar, [result]), slot, 8)
    return f.load(POINTER, slot, 8)


def _multiply(
    entry: _Entry, row: _FoundRow, matrices: tuple[MatrixValues, ...], scratch: Value, team: Value
) -> None:
    """Every product of the batch through the kernel of its element types."""
    f = entry.f
    a, other, _ = matrices
    sizes = [a.rows, other.columns, a.columns]
    strides = [value for matrix in matrices for value in (matrix.row, matrix.column)]
    pointers = [matrix.data for matrix in matrices]
    steps = [matrix.step for matrix in matrices]
    kernel = row.pointer("code")
    single = f.icmp("==", entry.batch, 1)
    for index, acc in enumerate(ACCUMULATORS):
        with f.when(f.icmp("==", row.word("acc"), index)):
            rest = [*pointers, *sizes, *strides, constant(acc, 1), constant(acc, 0), scratch]
            with f.branch(single) as (one, several):
                with one:
                    f.call(Callee(VOID, kernel.text), [*rest, team])
                with several:
                    loop = entry.pointer_at("tw_loops", loop_place(acc))
                    parts = [row.word(name) for name in ("scratch_step", "scratch_parts")]
                    f.call(Callee(VOID, loop.text), [kernel, entry.batch, *steps, *rest, *parts, team])


class NativeMatmul:
    """The machinery of one native `matmul`: kernel table, entry code, the objects it points to.

    Parameters
    ----------
    builtin : the function to give machine code.
    pool : the scratch of products; its table is read by the code, so it lives as long.
    others : the address of what serves other calls; see `repeated.others`.
    """

    def __init__(self, builtin: Builtin, pool: ScratchPool, others: ctypes.c_void_p) -> None:
        self.connected = 0
        self.table = Rows()
        self._kernels: list[GemmKernel] = []  # of the rows
        self._referenced: list[object] = [pool, others]
        imports = {
            **python_symbols(),
            "tw_others": ctypes.addressof(others),
            "tw_rows": ctypes.addressof(self.table),
            "tw_scratch": pool.table_address,
            "tw_exact": exact_table().address,
            "tw_loops": ctypes.addressof(loop_table()),
            "tw_empty": numpy_api(API_EMPTY),
            "tw_return": numpy_api(API_RETURN),
        }
        machine = host_machine()
        self._builtin = builtin
        self._code = EntryCode(
            f"tw_entry {LAYOUT}", machine, _emit, ("tw_matmul",), imports, installed=self._install
        )
        self._install()
        quick_code.then(self._refresh)

    def _install(self) -> None:
        self._builtin.install(self._code.address("tw_matmul"), self)

    def _refresh(self) -> None:
        """Puts the addresses of kernels that were compiled again into the table."""
        for row, kernel in zip(self.table.rows, self._kernels, strict=False):
            row.code = kernel.address

    def connect(self, kernels: Sequence[ProductKernel]) -> None:
        """Makes kernels reachable from the entry; products of other types go through Python."""
        for dtypes, kernel in kernels:
            if self.table.count == MOST_ROWS or not self._is_new(dtypes):
                continue
            self._referenced += dtypes
            self._kernels.append(kernel)
            types = kernel.types
            uniform = types.a == types.b == types.c
            self.table.rows[self.table.count] = Row(
                (ctypes.c_void_p * 3)(*map(id, dtypes)),
                tuple(dtype.itemsize.bit_length() - 1 for dtype in dtypes),
                int(promoted_dtype(dtypes[0], dtypes[1]) == dtypes[2]),
                kernel.address,
                ACCUMULATORS.index(types.acc),
                GEMM_DTYPES.index(types.a) if uniform else -1,
                kernel.turns,
                kernel.scratch_step,
                kernel.scratch_parts,
            )
            self.table.count += 1  # last: who finds the row calls the kernel

    def _is_new(self, dtypes: tuple[np.dtype[Any], ...]) -> bool:
        """Return whether no row has these types."""
        wanted = [id(dtype) for dtype in dtypes]
        return all(list(row.dtypes) != wanted for row in self.table.rows[: self.table.count])
