"""Machine code of NumPy's inner loops: products by kernels, everything else by the loops that were replaced.

``void loop(char **args, npy_intp const *dimensions, npy_intp const *steps, void *data)`` gets arrays that
NumPy has checked, converted and separated from `out`; the GIL may be held or not. Each element type has a
stub for each function, which adds the address of its row. No Python is on the path of a product whose kernel,
scratch and workers exist; what is missing is made by one call of Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any, NamedTuple

from tilewright.calls.fastcall import Entry
from tilewright.calls.object_code import ObjectCode
from tilewright.installation.error_code import DOUBTFUL, Error, emit_raise, emit_rules, genuine
from tilewright.installation.requests import SupplyRequest
from tilewright.installation.rows import (
    LETTERS,
    PRODUCTS,
    ExactKernel,
    LoopRow,
    LoopTable,
    ProductUfunc,
    ShapeCount,
)
from tilewright.installation.team_code import emit_observed, observed, take_errors
from tilewright.installation.thresholds import MOST_JOINED
from tilewright.llvm.build import Callee, Module
from tilewright.llvm.target import data_layout
from tilewright.llvm.values import INT32, INT64, POINTER, VOID, Value, int64, null
from tilewright.machine.machine import Machine
from tilewright.ops.gemm.exact_sizes import SECOND_SLOT, count_products, exact_shape, run_products
from tilewright.ops.gemm.matrix_values import (
    MOST_SCATTERED,
    MatrixValues,
    Turns,
    better_transposed,
    column_major,
    extent,
    matrix_of,
    transposed_if,
)
from tilewright.ops.gemm.product_code import MAX_DIRECT_SIZE, merged, multiply
from tilewright.threads.pool import WAKE_WORK
from tilewright.threads.pool_memory import APART, PoolState, TeamMemory
from tilewright.threads.scratch import ScratchTable

#: The parameters of a loop.
_LOOP = (("args", POINTER), ("dimensions", POINTER), ("steps", POINTER), ("data", POINTER))


def stub_name(product: ProductUfunc, letter: str) -> str:
    """The exported loop of a function for one element type."""
    return f"tw_{product.name}_{letter}"


def stub_names() -> list[str]:
    """All of them."""
    return [stub_name(product, letter) for product in PRODUCTS for letter in LETTERS]


def emit_loops(machine: Machine) -> str:
    """The module of all loops."""
    module = Module("tw_loops", machine.triple, data_layout(machine))
    emit_rules(module)
    emit_raise(module)
    run = emit_observed(module)
    for number, product in enumerate(PRODUCTS):
        loop = _Loop(module, product, number)
        loop.write(run)
        for place, letter in enumerate(LETTERS):
            _emit_stub(module, product, number, letter, loop.callee, place)
    return str(module)


def _emit_stub(
    module: Module, product: ProductUfunc, number: int, letter: str, loop: Callee, place: int
) -> None:
    """The loop of one type: small products go on at once, before registers are saved for large ones.

    Those are counted without a lock, which takes as long as the rest of the stub.
    """
    f = ObjectCode(module, stub_name(product, letter), VOID, _LOOP, exported=True)
    given, table = list(f.arguments.values()), f.symbol("table")
    row = f.at(table, LoopTable.rows.offset + place * ctypes.sizeof(LoopRow))
    sizes = [f.word(f.arguments["dimensions"], 8 * index) for index in range(len(product.dims) + 1)]
    least = f.word(row, LoopRow.least.offset + 8 * number)
    alone = f.maximum(least, f.word(row, LoopRow.least_alone))
    least = f.select(f.icmp("==", sizes[0], 1), alone, least)
    enabled = f.icmp("!=", f.word(table, LoopTable.enabled), 0)
    large = f.and_(enabled, f.icmp(">=", reduce(f.mul, sizes), least))
    with f.when(large):
        f.call(loop, [*given, row])
        f.ret()
    count = LoopRow.passed_on.offset + 8 * number
    f.put(row, count, f.add(f.word(row, count), 1))
    f.call(Callee(VOID, f.pointer(row, LoopRow.old.offset + 8 * number).text), given)
    f.ret()


class _Loop(Entry):
    """The loop of one function for all element types; a call that is given up goes to the old loop."""

    def __init__(self, module: Module, product: ProductUfunc, number: int) -> None:
        super().__init__(module, f"loop_{product.name}", VOID, [*_LOOP, ("row", POINTER)])
        self.product, self.number = product, number
        self.row, self.table = self.arguments["row"], self.symbol("table")

    def write(self, run: Callee) -> None:
        """Writes the whole function."""
        self.require(self.icmp("==", self.word(self.row, LoopRow.refused), 0))
        shift = self.word(self.row, LoopRow.shifts)
        a, b, c = self.operands(shift)
        self.require_apart((a, b), c, shift)
        if self.product.name == "matmul":
            self.require_two(a, b)
        self.supply_kernel()
        before = Products.of(self, a, c)
        a, b, c = _vectors_merged(self, a, b, c, shift)
        a, c = merged(self, (a, shift), b, (c, shift))
        turns = self.word(self.row, LoopRow.turns)
        scattered = self.and_(column_major(self, c), self.icmp("==", turns, Turns.ONE_COLUMN))
        self.require(
            self.not_(self.and_(scattered, self.icmp(">", self.mul(c.rows, c.columns), MOST_SCATTERED)))
        )
        matrices = transposed_if(self, better_transposed(self, a, c, turns), a, b, c)
        several = self.icmp(">", matrices[2].batch, 1)
        taken = self.is_taken(before, matrices)
        code, strides = self.find_exact(matrices, self.or_(taken, several))
        self.require(self.or_(taken, self.and_(several, self.not_(self.is_null(code)))))
        self.compute(matrices, run, code, strides)
        self.count(LoopRow.taken)
        self.ret()
        self.place(self.fallback)
        self.count(LoopRow.passed_on)
        old = self.pointer(self.row, LoopRow.old.offset + 8 * self.number)
        self.call(Callee(VOID, old.text), [self.arguments[name] for name, _ in _LOOP])
        self.ret()

    def count(self, field: Any) -> None:
        """Counts this call."""
        self.atomic_add(self.at(self.row, field.offset + 8 * self.number), 1)

    def operands(self, shift: Value) -> tuple[MatrixValues, MatrixValues, MatrixValues]:
        """The matrices of a, b and c; a call without elements is given up."""
        sizes = {
            axis: self.word(self.arguments["dimensions"], 8 * (place + 1))
            for place, axis in enumerate(self.product.dims)
        }
        count = self.word(self.arguments["dimensions"])
        self.require(self.icmp(">", reduce(self.minimum, sizes.values(), count), 0))
        self.require(self.icmp("<", reduce(self.or_, sizes.values()), MAX_DIRECT_SIZE))
        place, found = 3, []
        for number, (given, axes) in enumerate(
            zip((self.product.a, self.product.b, self.product.c), ("mk", "kn", "mn"), strict=True)
        ):
            lengths, strides = [count], [self.word(self.arguments["steps"], 8 * number)]
            for axis in axes:
                there = axis in given
                lengths.append(sizes[axis] if there else int64(1))
                strides.append(self.word(self.arguments["steps"], 8 * place) if there else int64(0))
                place += there
            data = self.pointer(self.arguments["args"], 8 * number)
            found.append(matrix_of(self, data, lengths, strides, shift))
        a, b, c = found
        return a, b, c

    def is_taken(self, before: Products, matrices: tuple[MatrixValues, ...]) -> Value:
        """Whether kernels of any size are faster than what NumPy does: see `ShapeThresholds`."""
        a, c = matrices[0], matrices[2]
        work = self.mul(self.mul(c.rows, c.columns), a.columns)
        enough = self.icmp(">=", work, self.word(self.row, LoopRow.least_product))
        deep = self.icmp(">=", a.columns, self.word(self.row, LoopRow.least_depth))
        side = self.minimum(c.rows, c.columns)
        matrix = self.icmp(">=", side, self.word(self.row, LoopRow.least_side))
        wide = self.icmp(">=", c.columns, self.word(self.row, LoopRow.least_columns))
        few = self.icmp("<=", c.rows, self.word(self.row, LoopRow.few_rows))
        alone = self.and_(self.and_(deep, matrix), self.or_(wide, few))
        # NumPy calls BLAS for each of the products that have become one.
        joined = self.and_(self.icmp(">", before.number, 1), self.icmp("==", c.batch, 1))
        of_vectors = self.and_(self.icmp("==", before.side, 1), self.icmp(">", side, 1))
        small = self.icmp("<=", before.work, MOST_JOINED)
        large = self.icmp(">=", work, self.word(self.row, LoopRow.least_alone))
        alone = self.and_(alone, self.or_(large, self.icmp(">", before.number, 1)))
        return self.and_(enough, self.or_(alone, self.and_(joined, self.or_(of_vectors, small))))

    def require_apart(self, given: tuple[MatrixValues, ...], c: MatrixValues, shift: Value) -> None:
        """Goes on if no element of C is stored twice, or where an operand is; NumPy copies most of those."""
        for length, stride in ((c.rows, c.row), (c.columns, c.column), (c.batch, c.step)):
            self.require(self.or_(self.icmp("==", length, 1), self.icmp("!=", stride, 0)))
        low, high = extent(self, c, shift)
        for operand in given:
            begin, end = extent(self, operand, shift)
            self.require(self.or_(self.icmp("<=", high, begin), self.icmp("<=", end, low)))

    def require_two(self, a: MatrixValues, b: MatrixValues) -> None:
        """Goes on unless B is the transpose of A: NumPy then has BLAS compute one triangle."""
        same = self.icmp("==", self.ptrtoint(a.data), self.ptrtoint(b.data))
        for left, right in ((a.rows, b.columns), (a.row, b.column), (a.column, b.row)):
            same = self.and_(same, self.icmp("==", left, right))
        by_blas = self.icmp("!=", self.word(self.row, LoopRow.blas), 0)
        several = self.icmp(">", a.rows, 1)
        self.require(self.not_(self.and_(by_blas, self.and_(several, same))))

    # --- what a product needs ---------------------------------------------------------------------

    def ask(self, request: SupplyRequest) -> None:
        """Has Python make something for the row; afterwards it is there, or it is not."""
        function = self.module.declare("tw_ask", VOID, (INT64, POINTER))
        self.call(function, [int64(request), self.row])
        raised = self.xchg(self.at(self.table, LoopTable.raised.offset), int64(0))
        with self.when(self.icmp("!=", raised, 0)):
            pending = self.module.declare("tw_add_pending_call", INT32, (POINTER, POINTER))
            self.call(pending, [self.symbol("raise_later"), self.inttoptr(raised)])

    def supply_kernel(self) -> None:
        """Goes on with a kernel in the row, and the loop over a batch in its place."""
        code = self.at(self.row, LoopRow.code.offset)
        with self.when(self.icmp("==", self.load_acquire(INT64, code), 0)):
            self.ask(SupplyRequest.KERNEL)
        self.require(self.icmp("!=", self.load_acquire(INT64, code), 0))

    def take_scratch(self) -> tuple[Value, Value]:
        """The slot and the block of scratch that this call has taken from the table; null without one."""
        table, taken = self.symbol("scratch"), self.alloca(INT64, 2, 8)
        self.put(taken, 0, int64(0))
        self.put(taken, 8, int64(0))
        found = self.new_block("found")
        for attempt in range(2):
            with self.loop(int64(0), self.word(table, ScratchTable.count), int64(1), "slot") as index:
                slot = self.item(table, index, ScratchTable.slots)
                block = self.load_acquire(INT64, slot)
                with self.when(self.icmp("!=", block, 0)), self.when(self.cmpxchg(slot, block, int64(0))):
                    self.put(taken, 0, self.ptrtoint(slot))
                    self.put(taken, 8, block)
                    self.jump(found)
            if not attempt:
                self.put(table, ScratchTable.wanted, int64(1))
                self.ask(SupplyRequest.SCRATCH)
        self.jump(found)
        self.place(found)
        return self.pointer(taken), self.pointer(taken, 8)

    @contextmanager
    def scratch(self) -> Iterator[Value]:
        """A block of scratch; without one the call is given up."""
        slot, block = self.take_scratch()
        self.require(self.not_(self.is_null(slot)))
        yield block
        self.store_release(self.ptrtoint(block), slot)

    @contextmanager
    def workers(self, work: Value) -> Iterator[Value]:
        """The team of a product with this many multiply-adds, which does not look for signals; null: none."""
        state = self.symbol("pool")
        size = self.word(state, PoolState.size)
        several = self.icmp(">", size, 1)
        wanted = self.and_(several, self.takes_team(work, size))
        memory = self.alloca(INT64, ctypes.sizeof(TeamMemory) // 8, APART)
        with self.when(self.and_(wanted, self.not_(self.workers_there(state, size)))):
            self.ask(SupplyRequest.WORKERS)
        wanted = self.and_(wanted, self.workers_there(state, size))
        with self.once_if(wanted, [null()]) as (_, opened):
            code = self.pointer(state, PoolState.open)
            long = self.zext(self.icmp(">", work, WAKE_WORK), INT64)
            self.call(Callee(VOID, code.text), [state, memory, size, long])
            # An exception cannot leave a loop: handlers run after the call, as NumPy has it.
            self.put(memory, TeamMemory.polls, int64(0))
            opened([memory])
        yield opened.results[0]
        with self.when(wanted):
            self.call(Callee(VOID, self.pointer(state, PoolState.close).text), [memory])

    def workers_there(self, state: Value, size: Value) -> Value:
        """Whether the pool has been opened and has its workers."""
        started = self.load_acquire(INT64, self.at(state, PoolState.started.offset))
        opened = self.load_acquire(INT64, self.at(state, PoolState.open.offset))
        return self.and_(self.icmp("!=", opened, 0), self.icmp(">=", self.add(started, 1), size))

    # --- the product --------------------------------------------------------------------------------

    def compute(
        self,
        matrices: tuple[MatrixValues, MatrixValues, MatrixValues],
        run: Callee,
        code: Value,
        strides: tuple[Value, ...],
    ) -> None:
        """Computes a batch, by the kernel of exact sizes if there is one.

        Afterwards the floating-point errors of this thread are what they should be.
        """
        a, _, c = matrices
        work = self.mul(self.mul(self.mul(c.rows, a.columns), c.columns), c.batch)
        with self.scratch() as scratch:
            before = take_errors(self)
            with self.workers(work) as team, observed(self, run, team) as (given, of_tasks):
                with self.branch(self.is_null(code)) as (of_any_size, exact):
                    with of_any_size:
                        multiply(self, self.row, matrices, scratch, given)
                    with exact:
                        run_products(self, code, matrices, strides, given)
                found = self.or_(take_errors(self), self.word(of_tasks))
            self.restore_errors(before, found, matrices, scratch)

    def find_exact(
        self, matrices: tuple[MatrixValues, MatrixValues, MatrixValues], counted: Value
    ) -> tuple[Value, tuple[Value, ...]]:
        """The kernel of exact sizes for a shape, else null; and what it takes besides pointers.

        Products without one are counted on a condition; the one that makes its shape wanted waits for the
        kernel.
        """
        row, table = self.row, self.table
        shape = exact_shape(self, row, matrices)

        def place(field: Any, kind: type[ctypes.Structure], slot: Value) -> Value:
            return self.at(self.at(table, field.offset), self.mul(slot, ctypes.sizeof(kind)))

        def key_at(entry: Value) -> Value:
            return self.load_acquire(INT64, self.at(entry, ExactKernel.key.offset))

        first = place(LoopTable.exact, ExactKernel, shape.slot)
        second = place(LoopTable.exact, ExactKernel, self.xor(shape.slot, SECOND_SLOT))
        there = key_at(first)
        of_another = self.and_(self.icmp("!=", there, 0), self.icmp("!=", there, shape.key))
        entry = self.select(of_another, second, first)
        count = place(LoopTable.counts, ShapeCount, shape.slot)
        missing = self.and_(shape.fits, self.icmp("==", key_at(entry), 0))
        with (
            self.when(self.and_(counted, missing)),
            self.when(count_products(self, count, ShapeCount, shape, matrices[2].batch)),
        ):
            self.put(table, LoopTable.wanted, shape.key)
            self.ask(SupplyRequest.EXACT_SIZES)
        found = self.and_(shape.fits, self.icmp("==", key_at(entry), shape.key))
        return self.select(found, self.pointer(entry, ExactKernel.code), null()), shape.strides

    def restore_errors(
        self, before: Value, found: Value, matrices: tuple[MatrixValues, ...], scratch: Value
    ) -> None:
        """Raises the errors from before the product, and those of the product that are genuine."""
        has_some = self.icmp("!=", self.word(self.row, LoopRow.rule), 0)
        found = self.select(has_some, found, int64(0))
        kept = self.and_(found, int64(Error.UNDERFLOW))
        doubtful = self.icmp("!=", self.and_(found, int64(DOUBTFUL)), 0)
        columns = matrices[2].columns
        room = self.icmp("<=", self.mul(columns, 8), self.word(self.table, LoopTable.scratch_bytes))
        with self.once_if(self.and_(doubtful, room), [kept]) as (_, looked):
            shift, parts = self.word(self.row, LoopRow.shifts), self.word(self.row, LoopRow.parts)
            rule = self.pointer(self.row, LoopRow.errors)
            looked([self.or_(kept, genuine(self, rule, matrices, shift, parts, scratch))])
        errors = self.or_(before, self.select(room, looked.results[0], found))
        with self.when(self.icmp("!=", errors, 0)):
            code = self.pointer(self.table, LoopTable.raise_errors)
            numbers = self.at(self.table, LoopTable.numbers.offset)
            self.call(Callee(VOID, code.text), [errors, numbers])


class Products(NamedTuple):
    """The products of a call as NumPy has them: how many, the work of one, the smaller side of its result."""

    number: Value
    work: Value
    side: Value

    @classmethod
    def of(cls, f: Entry, a: MatrixValues, c: MatrixValues) -> Products:
        """Those of a batch."""
        work = f.mul(f.mul(c.rows, c.columns), a.columns)
        return cls(c.batch, work, f.minimum(c.rows, c.columns))


def _vectors_merged(
    f: Entry, a: MatrixValues, b: MatrixValues, c: MatrixValues, shift: Value
) -> tuple[MatrixValues, MatrixValues, MatrixValues]:
    """A batch of single rows with one B as one matrix A; of single columns with one A as one matrix B."""

    def whole(*steps: Value) -> Value:
        parts = f.sub(f.shl(int64(1), shift), 1)
        return f.icmp("==", f.and_(reduce(f.or_, steps), parts), 0)

    even = f.and_(whole(a.step, b.step, c.step), f.icmp("<", c.batch, MAX_DIRECT_SIZE))
    several = f.and_(even, f.icmp(">", c.batch, 1))
    rows = f.and_(several, f.and_(f.icmp("==", a.rows, 1), f.icmp("==", b.step, 0)))
    columns = f.and_(several, f.and_(f.icmp("==", b.columns, 1), f.icmp("==", a.step, 0)))
    columns = f.and_(columns, f.not_(rows))

    def tall(one: MatrixValues) -> MatrixValues:
        length = f.select(rows, one.batch, one.rows)
        return one._replace(rows=length, row=f.select(rows, f.ashr(one.step, shift), one.row))

    def wide(one: MatrixValues) -> MatrixValues:
        length = f.select(columns, one.batch, one.columns)
        return one._replace(columns=length, column=f.select(columns, f.ashr(one.step, shift), one.column))

    single = f.or_(rows, columns)
    a, b, c = tall(a), wide(b), wide(tall(c))
    steps = ((one, f.select(single, int64(0), one.step)) for one in (a, b, c))
    a, b, c = (one._replace(batch=f.select(single, int64(1), one.batch), step=step) for one, step in steps)
    return a, b, c
