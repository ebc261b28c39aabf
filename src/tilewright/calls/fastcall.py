"""Native builtins for CPython: machine code that checks arrays itself and falls back to Python."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tilewright.calls.layout import (
    ARRAY_DATA,
    ARRAY_DTYPE,
    ARRAY_FLAGS,
    ARRAY_SHAPE,
    ARRAY_STRIDES,
    OBJECT_TYPE,
    TUPLE_ITEM,
    TUPLE_SIZE,
)
from tilewright.llvm.build import Callee, Function, Module
from tilewright.llvm.builtin import address_of
from tilewright.llvm.control import Block
from tilewright.llvm.values import INT32, INT64, POINTER, VOID, Type, Value, int32, int64, null
from tilewright.recorder import recordings
from tilewright.threads.pool import POLL_WORK, TEAM_WORK, WAKE_WORK, thread_pool
from tilewright.threads.pool_memory import APART, State, TeamMemory
from tilewright.threads.scratch import ScratchTable

#: numpy/_core/code_generators/numpy_api.py, indices in the C API table of PyArray_Empty, PyArray_Return,
#: PyArray_NewFromDescr, PyArray_SetBaseObject, PyArray_Scalar, PyArray_CopyInto and PyArray_FromAny.
API_EMPTY, API_RETURN, API_NEW_FROM_DESCR, API_SET_BASE, API_SCALAR, API_COPY_INTO = 184, 76, 94, 282, 60, 50
API_FROM_ANY = 69

#: Products of fewer multiply-adds keep the GIL: releasing and reacquiring it costs about 100 ns, and they
#: take less than 5 us.
GIL_THRESHOLD = 1 << 18


@cache
def error_state() -> dict[str, Any]:
    """The context variable in which `numpy.errstate` keeps its settings, and those that ignore every error.

    Both are None where this version of NumPy keeps them elsewhere.
    """
    module = np._core.umath  # type: ignore[attr-defined]  # noqa: SLF001
    names = ("_extobj_contextvar", "_make_extobj")
    variable, make = (getattr(module, name, None) for name in names)
    if variable is None or make is None:
        return {"error_state": None, "quiet": None}
    return {"error_state": variable, "quiet": make(all="ignore")}


#: The only keyword that machine code reads; interned, so that comparing pointers suffices.
_OUT = sys.intern("out")


def python_symbols() -> dict[str, int]:
    """Addresses that every native builtin may import from the interpreter and NumPy."""
    api = ctypes.pythonapi
    return {
        "tw_str_out": id(_OUT),
        "tw_none": id(None),
        "tw_ndarray": id(np.ndarray),
        "tw_vectorcall": address_of(api.PyObject_Vectorcall),
        "tw_incref": address_of(api.Py_IncRef),
        "tw_decref": address_of(api.Py_DecRef),
        "tw_save_thread": address_of(api.PyEval_SaveThread),
        "tw_restore_thread": address_of(api.PyEval_RestoreThread),
        "tw_restore_error": address_of(api.PyErr_Restore),
        "tw_pool": thread_pool().address,
        "tw_recordings": id(recordings) + TUPLE_SIZE,
    }


class MatrixValues(NamedTuple):
    """Values read from one array: data pointer, sizes, strides in elements."""

    data: Value
    rows: Value
    columns: Value
    row: Value
    column: Value
    step: Value  # bytes to the next matrix of a batch

    def transposed(self) -> MatrixValues:
        """The same memory with rows and columns exchanged."""
        return MatrixValues(self.data, self.columns, self.rows, self.column, self.row, self.step)


#: Elements of a column-major C up to which products that are not transposed store to it directly, according
#: to measured call times. Larger ones are computed in rows and transposed.
MOST_SCATTERED = 1 << 16


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
) -> tuple[MatrixValues, ...]:
    """The operands of the transposed product if the condition holds, else a, b and c."""

    def chosen(straight: MatrixValues, flipped: MatrixValues) -> MatrixValues:
        pairs = zip(straight, flipped, strict=True)
        return MatrixValues(*(f.select(condition, second, first) for first, second in pairs))

    return chosen(a, b.transposed()), chosen(b, a.transposed()), chosen(c, c.transposed())


class TeamRequest(NamedTuple):
    """Parameters for opening a team: the pool, whether to open one, the thread limit, whether the call is
    long.
    """

    state: Value
    wanted: Value
    threads: Value
    long: Value


class FastFunction:
    """``PyObject *f(self, args, nargs, kwnames)`` under construction; it runs `batch` products a call."""

    def __init__(self, module: Module, name: str) -> None:
        self.module = module
        arguments = [("self", POINTER), ("args", POINTER), ("nargs", INT64), ("kwnames", POINTER)]
        self.f = module.define(name, POINTER, arguments, exported=True)
        self.fallback = self.f.new_block("fallback")
        self.batch = int64(1)
        self.teams: list[tuple[Value, Value]] = []  # those closed: whether each was open, and where it is

    def require(self, condition: Value) -> None:
        """Continue if the condition holds, else fall back to Python."""
        following = self.f.new_block("ok")
        self.f.jump_if(condition, following, self.fallback)
        self.f.place(following)

    def give_up_if(self, condition: Value, unused: Value | None = None) -> None:
        """Fall back to Python if the condition holds, which drops the reference `unused`."""
        with self.f.when(condition):
            if unused is not None:
                self.f.call(self.module.declare("tw_decref", VOID, (POINTER,)), [unused])
            self.f.jump(self.fallback)

    def require_no_recording(self) -> None:
        """Continue unless a recording is in progress."""
        self.require(self.f.icmp("==", self.f.load(INT64, self.module.external("tw_recordings"), 8), 0))

    def field(self, base: Value, offset: int, kind: Type = POINTER) -> Value:
        """A field of a struct."""
        return self.f.load(kind, self.f.at(base, offset), 4 if kind == INT32 else 8)

    def count_quick_call(self) -> None:
        """Counts a call of quick code down; the last one goes through Python, which compiles it well."""
        f = self.f
        calls = self.module.external("tw_quick_calls")
        left = f.sub(f.load(INT64, calls, 8), 1)
        f.store(left, calls, 8)
        self.require(f.icmp("!=", left, 0))

    def pointer_at(self, table: str, place: int) -> Value:
        """An entry of an imported array of pointers."""
        return self.field(self.module.external(table), 8 * place)

    def argument(self, index: int) -> Value:
        """A positional argument, or the value of a keyword after the last of them."""
        return self.field(self.f.arguments["args"], 8 * index)

    def check_plain(self, array: Value, dtype: Value, flags: int) -> None:
        """Require an ndarray, not a subclass, of an element type and with the given flags."""
        f = self.f
        self.require(f.icmp("==", self.field(array, OBJECT_TYPE), self.module.external("tw_ndarray")))
        self.require(f.icmp("==", self.field(array, ARRAY_DTYPE), dtype))
        found = f.and_(self.field(array, ARRAY_FLAGS, INT32), int32(flags))
        self.require(f.icmp("==", found, int32(flags)))

    def new_array(self, axes: Value, shape: Value, dtype: Value) -> Value:
        """A new uninitialised array; if allocation fails, the call returns NumPy's error."""
        f, module = self.f, self.module
        f.call(module.declare("tw_incref", VOID, (POINTER,)), [dtype])  # PyArray_Empty takes over a reference
        empty = module.declare("tw_empty", POINTER, (INT32, POINTER, POINTER, INT32))
        made = f.call(empty, [axes, shape, dtype, int32(0)])
        with f.when(f.icmp("==", made, null())):
            f.ret(null())
        return made

    def find_out(self, operands: int, *, positional: bool) -> Value:
        """The argument after the operands, or the only keyword `out`; null if missing or None."""
        f = self.f
        nargs, kwnames = f.arguments["nargs"], f.arguments["kwnames"]
        slot = f.alloca(POINTER, 1, 8)
        f.store(null(), slot, 8)
        self.require(f.icmp(">=", nargs, operands))
        self.require(f.icmp("<=", nargs, operands + positional))
        with f.branch(f.icmp("==", kwnames, null())) as (plain, keywords):
            with plain, f.when(f.icmp("==", nargs, operands + 1)):
                f.store(self.argument(operands), slot, 8)
            with keywords:
                self.require(f.icmp("==", nargs, operands))
                self.require(f.icmp("==", self.field(kwnames, TUPLE_SIZE, INT64), 1))
                word = self.field(kwnames, TUPLE_ITEM)
                self.require(f.icmp("==", word, self.module.external("tw_str_out")))
                f.store(self.argument(operands), slot, 8)
        given = f.load(POINTER, slot, 8)
        absent = f.icmp("==", given, self.module.external("tw_none"))
        return f.select(absent, null(), given)

    def elements(self, stride: Value, shift: Value, length: Value) -> Value:
        """The stride of an axis in elements; complex arrays may be aligned to their parts only.

        The stride of an axis of length 1 may have any value.
        """
        f = self.f
        part = f.and_(stride, f.sub(f.shl(int64(1), shift), 1))
        self.require(f.or_(f.icmp("==", part, 0), f.icmp("<=", length, 1)))
        return f.ashr(stride, shift)

    def matrix(self, array: Value, shift: Value) -> MatrixValues:
        """Sizes and strides, in elements, of an array of two axes; one of length 1 counts as contiguous."""
        shape, strides = self.field(array, ARRAY_SHAPE), self.field(array, ARRAY_STRIDES)
        rows, columns = (self.field(shape, 8 * axis, INT64) for axis in (0, 1))
        row, column = (
            self.elements(self.field(strides, 8 * axis, INT64), shift, length)
            for axis, length in enumerate((rows, columns))
        )
        return self.contiguous(
            MatrixValues(self.field(array, ARRAY_DATA), rows, columns, row, column, int64(0))
        )

    def contiguous(self, matrix: MatrixValues) -> MatrixValues:
        """The matrix with the stride of an axis of length 1 replaced by one that makes it contiguous."""
        f = self.f
        single_column = f.icmp("==", matrix.columns, 1)
        single_row = f.and_(f.icmp("==", matrix.rows, 1), f.not_(single_column))
        column = f.select(single_column, int64(1), matrix.column)
        return matrix._replace(column=column, row=f.select(single_row, matrix.columns, matrix.row))

    def extent(self, matrix: MatrixValues, size: Value) -> tuple[Value, Value]:
        """Address of the first byte of a matrix, and of the byte after its last one."""
        f = self.f
        start = f.ptrtoint(matrix.data)
        low, high = start, f.add(start, size)
        reaches = [
            f.mul(f.mul(f.sub(count, 1), stride), size)
            for count, stride in ((matrix.rows, matrix.row), (matrix.columns, matrix.column))
        ]
        for reach in (*reaches, f.mul(f.sub(self.batch, 1), matrix.step)):
            low = f.add(low, f.minimum(reach, int64(0)))
            high = f.add(high, f.maximum(reach, int64(0)))
        return low, high

    # --- scratch, GIL and team ---------------------------------------------------------------

    def find_scratch(self, table: Value, unused: Value | None = None) -> Value:
        """The first slot of a scratch table that holds a block; if there is none, fall back to Python.

        The fallback increments a counter and drops the reference `unused`. The GIL must be held between this
        search and taking the block.
        """
        f = self.f
        found = f.alloca(INT64, 1, 8)
        f.store(int64(0), found, 8)
        count = self.field(table, ScratchTable.count.offset, INT64)
        slots = f.at(table, ScratchTable.slots.offset)
        with f.loop(int64(0), count, int64(1), "slot") as index:
            pointer = f.at(slots, f.mul(f.sub(f.sub(count, 1), index), 8))
            holds = f.icmp("!=", f.load(INT64, pointer, 8), 0)
            known = f.load(INT64, found, 8)
            f.store(f.select(holds, f.ptrtoint(pointer), known), found, 8)
        slot = f.load(INT64, found, 8)
        with f.when(f.icmp("==", slot, 0)):
            wanted = f.at(table, ScratchTable.wanted.offset)
            f.store(f.add(f.load(INT64, wanted, 8), 1), wanted, 8)
            if unused is not None:
                f.call(self.module.declare("tw_decref", VOID, (POINTER,)), [unused])
        self.require(f.icmp("!=", slot, 0))
        return f.inttoptr(slot)

    @contextmanager
    def taken(self, slot: Value) -> Iterator[Value]:
        """Take the block of a slot, which stays empty until the block is returned."""
        block = self.f.load(POINTER, slot, 8)
        self.f.store(null(), slot, 8)
        yield block
        self.f.store(block, slot, 8)

    @contextmanager
    def without_gil(self, condition: Value) -> Iterator[None]:
        """Release the GIL in this block if the condition holds."""
        f = self.f
        save = self.module.declare("tw_save_thread", POINTER, ())
        restore = self.module.declare("tw_restore_thread", VOID, (POINTER,))
        thread = f.alloca(POINTER, 1, 8)
        with f.when(condition):
            f.store(f.call(save, []), thread, 8)
        yield
        with f.when(condition):
            f.call(restore, [f.load(POINTER, thread, 8)])

    def find_team(self, work: Value, unused: Value | None = None) -> TeamRequest:
        """Whether a call with this many multiply-adds uses a team; if workers are missing, fall back to
        Python.

        The fallback drops the reference `unused`.
        """
        f = self.f
        state = self.module.external("tw_pool")

        def word(name: str) -> Value:
            return f.load_acquire(INT64, f.at(state, getattr(State, name).offset))

        size = word("size")
        several = f.and_(f.icmp(">", work, TEAM_WORK), f.icmp(">", size, 1))
        wanted = f.or_(several, f.icmp(">", work, POLL_WORK))
        missing = f.icmp("<", word("started"), f.sub(size, 1))
        missing = f.or_(missing, f.icmp("==", word("open"), 0))
        self.give_up_if(f.and_(wanted, missing), unused)
        return TeamRequest(state, wanted, size, f.icmp(">", work, WAKE_WORK))

    @contextmanager
    def team(self, wish: TeamRequest) -> Iterator[Value]:
        """The team of the call, opened without the GIL; null if it uses none."""
        f = self.f
        memory = f.alloca(INT64, ctypes.sizeof(TeamMemory) // 8, APART)
        chosen = f.alloca(POINTER, 1, 8)
        f.store(null(), chosen, 8)
        with f.when(wish.wanted):
            f.store(memory, chosen, 8)
            code = self.field(wish.state, State.open.offset)
            arguments = [wish.state, memory, wish.threads, f.zext(wish.long, INT64)]
            f.call(Callee(VOID, code.text), arguments)
        yield f.load(POINTER, chosen, 8)
        with f.when(wish.wanted):
            f.call(Callee(VOID, self.field(wish.state, State.close.offset).text), [memory])
        self.teams.append((wish.wanted, memory))

    def raise_cancelled(self, unused: Value | None = None, to: Block | None = None) -> None:
        """Return the exception that a signal handler raised while a team ran, and drop `unused`.

        If a block `to` is given, branch to it instead; it ends the call.
        """
        f, module = self.f, self.module
        for wanted, memory in self.teams:
            with (
                f.when(wanted),
                f.when(f.icmp("!=", self.field(memory, TeamMemory.cancelled.offset, INT64), 0)),
            ):
                restore = module.declare("tw_restore_error", VOID, (POINTER,) * 3)
                f.call(
                    restore, [self.field(memory, TeamMemory.exception.offset + 8 * part) for part in range(3)]
                )
                if unused is not None:
                    f.call(module.declare("tw_decref", VOID, (POINTER,)), [unused])
                if to is None:
                    f.ret(null())
                else:
                    f.jump(to)
        self.teams.clear()

    def finish(self, result: Value) -> None:
        """Return a new reference to the result; after that, emit the fallback, a call of `self` with the same
        arguments.
        """
        f = self.f
        f.ret(result)
        f.place(self.fallback)
        f.ret(f.call(self.python(), list(f.arguments.values())))

    def python(self) -> Callee:
        """What the entry falls back to, with its own arguments: the Python function that is `self`."""
        return self.module.declare("tw_vectorcall", POINTER, (POINTER, POINTER, INT64, POINTER))
