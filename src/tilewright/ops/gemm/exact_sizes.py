"""Native lookup table of kernels for exact sizes, with call counts of shapes that have no kernel yet.

The entry looks up every small product by its sizes and layouts. A shape with a kernel uses it; one
without is counted, and when it has recurred often enough, the entry marks it as wanted and goes
through Python, which compiles it (`special.Specials`).
"""

from __future__ import annotations

import ctypes
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from tilewright.calls.batch import loop_place, make_loop
from tilewright.calls.fastcall import CallEntry
from tilewright.calls.object_code import ObjectCode
from tilewright.calls.recipes.recipe import HASH
from tilewright.calls.recipes.step_code import TeamRequest
from tilewright.llvm.build import Callee
from tilewright.llvm.values import INT1, INT64, VOID, Value, int64, null
from tilewright.ops.gemm.entry_row import EntryRow
from tilewright.ops.gemm.matrix_values import MatrixValues
from tilewright.ops.gemm.small_products import (
    AHEAD_PRODUCTS,
    BYTES_OF_A_COUNT,
    LARGEST_SIDE,
    PRODUCTS_TO_REPAY,
    ExactSizeKey,
)
from tilewright.preparing import once
from tilewright.spec.dtype import GEMM_DTYPES
from tilewright.spec.problem import Layout

if TYPE_CHECKING:
    from tilewright.compiler.kernel import Kernel

#: Bits of a size in a key; LARGEST_SIDE must fit.
SIZE_BITS = 8
#: Bit positions in a key: the element type's number, both layouts, whether the next product is prefetched.
DTYPE_AT, A_AT, B_AT, AHEAD_AT = (3 * SIZE_BITS + place for place in (0, 4, 5, 6))
#: Slots of the table, a power of two: more than kernels are kept, so that few share one.
SLOT_BITS = 10

assert LARGEST_SIDE < 1 << SIZE_BITS


class Slot(ctypes.Structure):
    """One shape: its key, its machine code and kernel object if it has one, and how often it was seen."""

    _fields_ = (
        ("key", ctypes.c_int64),
        ("code", ctypes.c_void_p),
        ("kernel", ctypes.c_void_p),
        ("seen", ctypes.c_int64),
    )


class Table(ctypes.Structure):
    """The key of the shape that wants a kernel (0: none), and the slots."""

    _fields_ = (("wanted", ctypes.c_int64), ("slots", Slot * (1 << SLOT_BITS)))


def key_of(shape: ExactSizeKey) -> int:
    """A shape as one number, never 0.

    >>> shape_of(key_of(ExactSizeKey(3, 4, 5, "f64", "col", "row")))
    ExactSizeKey(m=3, n=4, k=5, dtype='f64', a='col', b='row')
    """
    number = [dtype.name for dtype in GEMM_DTYPES].index(shape.dtype)
    sizes = shape.m | shape.n << SIZE_BITS | shape.k << 2 * SIZE_BITS
    column_a, column_b = (int(layout == Layout.COL.value) for layout in (shape.a, shape.b))
    return sizes | number << DTYPE_AT | column_a << A_AT | column_b << B_AT | int(shape.ahead) << AHEAD_AT


def shape_of(key: int) -> ExactSizeKey:
    """The shape of a key."""
    m, n, k = (key >> SIZE_BITS * place & (1 << SIZE_BITS) - 1 for place in range(3))
    dtype = GEMM_DTYPES[key >> DTYPE_AT & (1 << A_AT - DTYPE_AT) - 1]
    a, b = ((Layout.COL if key >> at & 1 else Layout.ROW).value for at in (A_AT, B_AT))
    return ExactSizeKey(m, n, k, dtype.name, a, b, ahead=bool(key >> AHEAD_AT & 1))


def slot_number(key: int) -> int:
    """The slot of a key: the highest bits of its product with `HASH`."""
    return (key * HASH & (1 << 64) - 1) >> 64 - SLOT_BITS


#: A table that only grows keeps a shape whose slot another one has in the slot whose number is that XOR this.
SECOND_SLOT = 1


class ExactTable:
    """The table of this process, from Python; machine code reads it while it holds the GIL."""

    def __init__(self) -> None:
        self.table = Table()

    @property
    def address(self) -> int:
        """Address of the table, which machine code reads."""
        return ctypes.addressof(self.table)

    def put(self, shape: ExactSizeKey, kernel: Kernel) -> None:
        """Publish a kernel, which must live until it is dropped; it replaces the slot's previous shape."""
        slot = self.table.slots[slot_number(key_of(shape))]
        if slot.code and (slot.key, slot.kernel) == (key_of(shape), id(kernel)):
            return
        make_loop(None)  # for batches
        slot.code = None  # whoever looks from here to the last line finds no kernel
        slot.key, slot.kernel = key_of(shape), id(kernel)
        slot.code = kernel.address

    def drop(self, shape: ExactSizeKey) -> None:
        """Makes the kernel of a shape unreachable."""
        slot = self.table.slots[slot_number(key_of(shape))]
        if slot.key == key_of(shape):
            slot.code, slot.seen = None, 0

    def take_wanted(self) -> ExactSizeKey | None:
        """The shape that has recurred often enough, once."""
        key, self.table.wanted = self.table.wanted, 0
        return shape_of(key) if key else None


@once
def exact_table() -> ExactTable:
    """The one table of this process."""
    return ExactTable()


# --- the look-up in machine code -------------------------------------------------------------------


class ExactShape(NamedTuple):
    """The shape of a product: whether a kernel of exact sizes may compute it, its key, and its slot's number.

    Attributes
    ----------
    strides : what the kernel takes besides pointers (`FIXED_STRIDES`).
    ahead : whether the kernel prefetches the next product.
    bytes : of the matrices of a product.
    """

    fits: Value
    key: Value
    slot: Value
    strides: tuple[Value, ...]
    ahead: Value
    bytes: Value


class ExactCall(NamedTuple):
    """A product that may have a kernel: whether it has, its slot, what the kernel takes besides pointers."""

    found: Value
    slot: Value
    strides: tuple[Value, ...]


def exact_shape(f: ObjectCode, row: Value, matrices: tuple[MatrixValues, ...]) -> ExactShape:
    """The shape of a product of the types of an `EntryRow`; see `small_products.fit`."""
    a, b, c = matrices
    number, shift = f.word(row, EntryRow.number), f.word(row, EntryRow.shifts)
    work = f.mul(f.mul(a.rows, a.columns), c.columns)
    fits, by_column, leading = Value(INT1, "true"), [], []
    for matrix in matrices:
        in_rows = f.and_(f.icmp("==", matrix.column, 1), f.icmp(">=", matrix.row, matrix.columns))
        in_columns = f.and_(f.icmp("==", matrix.row, 1), f.icmp(">=", matrix.column, matrix.rows))
        fits = f.and_(fits, in_rows if matrix is c else f.or_(in_rows, in_columns))
        by_column.append(f.not_(in_rows))
        leading.append(f.select(in_rows, matrix.row, matrix.column))
    ahead = _is_ahead(f, row, matrices, by_column, leading)
    fits = f.and_(fits, f.or_(ahead, f.icmp("<=", work, f.word(row, EntryRow.exact))))
    key = f.or_(f.shl(number, int64(DTYPE_AT)), f.shl(f.zext(ahead, INT64), int64(AHEAD_AT)))
    # One column has an order of its own.
    for place, (size, least) in enumerate(((a.rows, 1), (c.columns, 2), (a.columns, 1))):
        fits = f.and_(fits, f.and_(f.icmp(">=", size, least), f.icmp("<=", size, LARGEST_SIDE)))
        key = f.or_(key, f.shl(size, int64(place * SIZE_BITS)))
    for column, place in zip(by_column, (A_AT, B_AT), strict=False):
        key = f.or_(key, f.shl(f.zext(column, INT64), int64(place)))
    mixed = f.ashr(f.mul(key, int64(HASH)), int64(64 - SLOT_BITS))
    slot = f.and_(mixed, int64((1 << SLOT_BITS) - 1))
    strides = (*leading, f.ashr(a.step, shift), f.ashr(b.step, shift))
    elements = reduce(f.add, (f.mul(matrix.rows, matrix.columns) for matrix in matrices))
    return ExactShape(fits, key, slot, strides, ahead, f.shl(elements, shift))


def _is_ahead(
    f: ObjectCode,
    row: Value,
    matrices: tuple[MatrixValues, ...],
    by_column: list[Value],
    leading: list[Value],
) -> Value:
    """Whether the next product of a batch is prefetched: see `BatchSteps.is_far` and `fit`."""
    batch, never = matrices[2].batch, Value(INT1, "false")
    with f.once_if(f.icmp(">", batch, 1), [never]) as (_, found):
        least = f.word(row, EntryRow.ahead)
        each = reduce(f.add, (matrix.step for matrix in matrices))
        ahead = f.icmp(">", f.mul(each, batch), least)
        small = f.icmp("<=", each, f.mul(least, AHEAD_PRODUCTS))
        for matrix, of_columns, stride in zip(matrices, by_column, leading, strict=True):
            dense = f.select(of_columns, matrix.rows, matrix.columns)
            small = f.and_(small, f.icmp("==", stride, dense))
        found([f.and_(ahead, small)])
    return found.results[0]


def find_exact(f: CallEntry, row: Value, matrices: tuple[MatrixValues, ...]) -> ExactCall:
    """Emit the lookup of a product of the types of a row, which counts it if there is no kernel.

    The product that makes its shape wanted is given up, and goes through Python.
    """
    shape = exact_shape(f, row, matrices)
    table = f.symbol("exact")
    slot = f.at(f.at(table, Table.slots.offset), f.mul(shape.slot, ctypes.sizeof(Slot)))
    same = f.and_(shape.fits, f.icmp("==", f.word(slot, Slot.key), shape.key))
    empty = f.icmp("==", f.word(slot, Slot.code), 0)
    with (
        f.when(f.and_(shape.fits, empty)),
        f.when(count_products(f, slot, Slot, shape, matrices[2].batch)),
    ):
        f.put(table, Table.wanted, shape.key)
        f.jump(f.fallback)
    return ExactCall(f.and_(same, f.not_(empty)), slot, shape.strides)


def count_products(
    f: ObjectCode, place: Value, kind: type[ctypes.Structure], shape: ExactShape, products: Value
) -> Value:
    """Counts products of a shape without a kernel; whether there have been enough, which starts anew.

    `kind` is the record at the place: of its fields, `key` is the shape counted last, `seen` its products,
    each as often as it counts (`ExactSizeKey.counts`).
    """
    key = shape.key
    same = f.icmp("==", f.word(place, kind.key), key)
    before = f.select(same, f.word(place, kind.seen), int64(0))
    times = f.maximum(f.ashr(shape.bytes, int64(BYTES_OF_A_COUNT.bit_length() - 1)), int64(1))
    seen = f.add(before, f.mul(products, f.select(shape.ahead, times, int64(1))))
    enough = f.icmp(">=", seen, PRODUCTS_TO_REPAY)
    f.put(place, kind.key, key)
    f.put(place, kind.seen, f.select(enough, int64(0), seen))
    return enough


def run_exact(
    f: CallEntry,
    call: ExactCall,
    matrices: tuple[MatrixValues, ...],
    long_running: Value,
    wish: TeamRequest,
) -> None:
    """Every product of the batch through the kernel of the slot, which stays alive without the GIL."""
    code, kernel = f.pointer(call.slot, Slot.code), f.pointer(call.slot, Slot.kernel)
    with f.when(long_running):
        f.python("incref", kernel)
    with f.without_gil(long_running), f.team(wish) as team:
        run_products(f, code, matrices, call.strides, team)
    with f.when(long_running):
        f.python("decref", kernel)


def run_products(
    f: ObjectCode,
    code: Value,
    matrices: tuple[MatrixValues, ...],
    strides: tuple[Value, ...],
    team: Value,
) -> None:
    """Every product of a batch by the machine code of a kernel, by a team if there is one."""
    batch = matrices[2].batch
    pointers, steps = [matrix.data for matrix in matrices], [matrix.step for matrix in matrices]
    with f.branch(f.icmp("==", team, null())) as (alone, several):
        with alone, f.carried_loop(int64(0), batch, int64(1), pointers, "exact") as (_, places, advance):
            f.call(Callee(VOID, code.text), [*places, *strides])
            advance([f.at(at, step) for at, step in zip(places, steps, strict=True)])
        with several:
            loop = f.pointer(f.symbol("loops"), 8 * loop_place(None))
            f.call(Callee(VOID, loop.text), [code, batch, *steps, *pointers, *strides, team])
