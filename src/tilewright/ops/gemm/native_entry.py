"""The native entry: machine code of `matmul` that reads NumPy arrays itself.

It handles plain arrays of one to three axes, that is vectors, matrices and one batch axis that broadcasts,
and hands everything else, every error included, to the Python function.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.calls.batch import loop_table
from tilewright.calls.fastcall import GIL_THRESHOLD, CallEntry, entry_symbols
from tilewright.calls.layout import (
    ALIGNED,
    ARRAY_DTYPE,
    ARRAY_FLAGS,
    ARRAY_NDIM,
    LAYOUT,
    TUPLE_ITEM,
    TUPLE_SIZE,
    WRITEABLE,
)
from tilewright.llvm.build import Callee, Module
from tilewright.llvm.builtin import Builtin
from tilewright.llvm.quick import QUICK_COPY, EntryCode, quick_code
from tilewright.llvm.target import data_layout
from tilewright.llvm.values import INT1, INT32, INT64, POINTER, Value, int32, int64, null
from tilewright.machine.host import host_machine
from tilewright.ops.gemm.entry_row import EntryRow
from tilewright.ops.gemm.exact_sizes import exact_table, find_exact, run_exact
from tilewright.ops.gemm.matrix_values import (
    MOST_SCATTERED,
    Turns,
    better_transposed,
    column_major,
    extent,
    read_matrix,
    transposed_if,
)
from tilewright.ops.gemm.product_code import MAX_DIRECT_SIZE, merged, multiply, row_of

if TYPE_CHECKING:
    from tilewright.ops.gemm.kernel import GemmKernel
    from tilewright.threads.scratch import ScratchPool

    #: NumPy's types of a, b and the result, and the kernel that computes with their bits.
    ProductKernel = tuple[tuple[np.dtype[Any], ...], GemmKernel]

#: Axes of an operand: rows, columns and one of a batch.
MOST_AXES = 3

#: Which of batch, rows and columns an array has as axes.
_Present = tuple[Value, Value, Value]


#: Capacity of the entry in kernels: every type alone, unsigned types, and some mixtures.
MOST_ROWS = 48


class EntryTable(ctypes.Structure):
    """The table of the entry; a row is complete before it is counted."""

    _fields_ = (("count", ctypes.c_int64), ("rows", EntryRow * MOST_ROWS))


class _Product(CallEntry):
    """Emits `matmul`; see `_emit` for the order of its parts."""

    def others(self) -> Callee:
        """Whatever serves other products: recipes as soon as there are some, else Python."""
        return Callee(POINTER, self.pointer(self.symbol("others")).text)

    def argument(self, index: int) -> Value:
        """A positional argument, or the value of a keyword after the last of them."""
        return self.pointer(self.arguments["args"], 8 * index)

    def find_out(self) -> Value:
        """The argument after the operands, or the only keyword `out`; null if missing or None."""
        nargs, kwnames = self.arguments["nargs"], self.arguments["kwnames"]
        total = self.all_arguments()
        self.require(self.icmp(">=", nargs, 2))
        self.require(self.icmp("<=", total, 3))
        with self.when(self.not_(self.is_null(kwnames))), self.when(self.icmp("==", nargs, 2)):
            self.require(self.icmp("==", self.word(kwnames, TUPLE_SIZE), 1))
            self.require(self.icmp("==", self.pointer(kwnames, TUPLE_ITEM), self.symbol("str_out")))
        with self.once_if(self.icmp("==", total, 3), [null()]) as (_, third):
            given = self.argument(2)
            third([self.select(self.icmp("==", given, self.symbol("none")), null(), given)])
        return third.results[0]

    def find_row(self, arrays: Sequence[Value], given: Value) -> Value:
        """The kernel for the element types of two arrays and, if it is given, of `out`, the third."""
        for array in arrays:
            self.require(self.is_of(array, "ndarray"))
        wanted = [self.pointer(array, ARRAY_DTYPE) for array in arrays]
        table, at = self.symbol("rows"), self.alloca(POINTER, 1, 8)
        begin = self.at(table, EntryTable.rows.offset)
        end = self.at(begin, self.mul(self.word(table), ctypes.sizeof(EntryRow)))
        self.put(at, 0, begin)
        look, found = self.new_block("look"), self.new_block("found")
        self.jump(look)
        self.place(look)
        row = self.pointer(at)
        self.require(self.icmp("!=", row, end))
        same = [
            self.icmp("==", dtype, self.pointer(row, EntryRow.dtypes.offset + 8 * index))
            for index, dtype in enumerate(wanted)
        ]
        result = self.select(given, same[2], self.icmp("!=", self.word(row, EntryRow.default), 0))
        self.leave_if(self.and_(self.and_(same[0], same[1]), result), found)
        self.put(at, 0, self.at(row, ctypes.sizeof(EntryRow)))
        self.jump(look)
        self.place(found)
        return self.pointer(at)

    def axes(self, array: Value) -> Value:
        """The number of an array's axes."""
        return self.sext(self.load(INT32, self.at(array, ARRAY_NDIM), 4), INT64)

    def require_flags(self, array: Value, flags: int) -> None:
        """Gives up the call unless an array has some flags."""
        found = self.and_(self.load(INT32, self.at(array, ARRAY_FLAGS), 4), int32(flags))
        self.require(self.icmp("==", found, int32(flags)))

    def operand(self, array: Value) -> tuple[Value, Value]:
        """Whether an aligned array of one to three axes has two at least, and whether it has three."""
        self.require_flags(array, ALIGNED)
        axes = self.axes(array)
        self.require(self.and_(self.icmp(">=", axes, 1), self.icmp("<=", axes, MOST_AXES)))
        return self.icmp(">=", axes, 2), self.icmp("==", axes, MOST_AXES)

    def make_result(
        self, out: Value, given: Value, present: _Present, lengths: Sequence[Value], dtype: Value
    ) -> Value:
        """A new reference to `out`, or to a new array; the shape of `out` is not checked."""
        shape = at = self.alloca(INT64, len(present) + 1, 16)
        number = int64(0)
        for there, length in zip(present, lengths, strict=True):
            self.put(at, 0, length)  # the next one overwrites it where this axis is missing
            at = self.select(there, self.at(at, 8), at)
            number = self.add(number, self.zext(there, INT64))
        with self.once_if(given, [null()]) as (_, reused):
            self.require_flags(out, ALIGNED | WRITEABLE)
            self.require(self.and_(self.icmp("==", self.axes(out), number), self.icmp(">", number, 0)))
            self.python("incref", out)
            reused([out])
        with self.once_if(self.not_(given), reused.results) as (_, made):
            array = self.new_array(number, shape, dtype)
            self.return_if(self.is_null(array), null())
            made([array])
        return made.results[0]


def _emit() -> str:
    """The module of the entry: check, find or make `out`, look for a kernel, call it."""
    machine = host_machine()
    module = Module("tw_entry", machine.triple, data_layout(machine))
    f = _Product(module, "tw_matmul")
    f.require_no_recording()
    f.count_quick_call()
    out = f.find_out()
    given = f.not_(f.is_null(out))
    first, second = f.argument(0), f.argument(1)
    # Only arrays have an element type: `out` is looked at in place of nothing as if it were the first.
    row = f.find_row((first, second, f.select(given, out, first)), given)
    shifts = [f.word(row, EntryRow.shifts.offset + 8 * index) for index in range(3)]
    (a_rows, a_batch), (b_columns, b_batch) = f.operand(first), f.operand(second)
    always = Value(INT1, "true")
    a = read_matrix(f, first, (a_batch, a_rows, always), shifts[0])
    b = read_matrix(f, second, (b_batch, always, b_columns), shifts[1])
    f.require(f.icmp("==", a.columns, b.rows))
    f.require(f.icmp("<", f.or_(f.or_(a.rows, a.columns), b.columns), MAX_DIRECT_SIZE))
    # Batch axes broadcast; empty ones are Python's.
    batch = f.maximum(a.batch, b.batch)
    for matrix in (a, b):
        f.require(f.icmp(">", matrix.batch, 0))
        f.require(f.or_(f.icmp("==", matrix.batch, batch), f.icmp("==", matrix.batch, 1)))
    present, lengths = (f.or_(a_batch, b_batch), a_rows, b_columns), (batch, a.rows, b.columns)
    result = f.make_result(out, given, present, lengths, f.pointer(row, EntryRow.dtypes.offset + 16))
    f.hold(result)
    c = read_matrix(f, result, present, shifts[2])
    same = [f.icmp("==", *pair) for pair in zip((c.batch, c.rows, c.columns), lengths, strict=True)]
    f.require(reduce(f.and_, same))
    with f.when(given):
        low, high = extent(f, c, shifts[2])
        for operand, shift in ((a, shifts[0]), (b, shifts[1])):
            begin, end = extent(f, operand, shift)
            f.require(f.or_(f.icmp("<=", high, begin), f.icmp("<=", end, low)))
    a, c = merged(f, (a, shifts[0]), b, (c, shifts[2]))
    turns = f.word(row, EntryRow.turns)
    # A large column-major C whose product is not computed transposed goes through Python, which transposes.
    scattered = f.and_(column_major(f, c), f.icmp("==", turns, Turns.ONE_COLUMN))
    f.require(f.not_(f.and_(scattered, f.icmp(">", f.mul(c.rows, c.columns), MOST_SCATTERED))))
    matrices = transposed_if(f, better_transposed(f, a, c, turns), a, b, c)
    exact = find_exact(f, row, matrices)
    work = f.mul(f.mul(f.mul(c.rows, a.columns), c.columns), c.batch)
    long_running = f.icmp(">", work, int64(GIL_THRESHOLD))
    f.spend_quick(f.add(work, f.mul(f.mul(f.mul(b.rows, b.columns), c.batch), QUICK_COPY)))
    wish = f.find_team(work, int64(0))
    cancelled, done = f.new_block("cancelled"), f.new_block("done")
    with f.when(exact.found):
        run_exact(f, exact, matrices, long_running, wish)
        f.raise_cancelled(cancelled)
        f.jump(done)
    # Python compiles the loop over a batch when there is one of these types.
    loop = f.pointer(f.item(f.symbol("loops"), f.word(row, EntryRow.acc)))
    f.require(f.or_(f.icmp("==", c.batch, 1), f.not_(f.is_null(loop))))
    slot = f.find_scratch(f.symbol("scratch"))
    with f.taken(slot) as scratch, f.without_gil(long_running), f.team(wish) as team:
        multiply(f, row, matrices, scratch, team)
    f.raise_cancelled(cancelled)
    f.jump(done)
    f.place(done)
    with f.once_if(f.not_(reduce(f.or_, present)), [result]) as (_, returned):
        returned([f.python("as_result", result)])  # without axes, a scalar
    f.ret(returned.results[0])
    f.place(cancelled)
    f.python("decref", result)
    f.ret(null())
    f.finish()
    return str(module)


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
        self.table = EntryTable()
        self._kernels: list[GemmKernel] = []  # of the rows
        self._referenced: list[object] = [pool, others]
        imports = {
            **entry_symbols(),
            "tw_others": ctypes.addressof(others),
            "tw_rows": ctypes.addressof(self.table),
            "tw_scratch": pool.table_address,
            "tw_exact": exact_table().address,
            "tw_loops": ctypes.addressof(loop_table()),
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
            self.table.rows[self.table.count] = row_of(kernel, dtypes)
            self.table.count += 1  # last: who finds the row calls the kernel

    def _is_new(self, dtypes: tuple[np.dtype[Any], ...]) -> bool:
        """Return whether no row has these types."""
        wanted = [id(dtype) for dtype in dtypes]
        return all(list(row.dtypes) != wanted for row in self.table.rows[: self.table.count])
