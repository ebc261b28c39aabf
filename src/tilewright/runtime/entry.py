"""The native entry: machine code of `matmul` that reads NumPy arrays itself.

It handles plain 2-D arrays, and 3-D arrays with one batch axis, and hands everything else, every error
included, to the Python function.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tilewright.llvm.build import Callee, Module
from tilewright.llvm.jit import Linked
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT32, INT64, POINTER, VOID, Value, constant, int32, int64, null
from tilewright.machine.host import host_machine
from tilewright.runtime.builtin import Builtin, address_of
from tilewright.runtime.cache import cached_object
from tilewright.runtime.scratch import Table
from tilewright.runtime.special import LARGEST_SIDE
from tilewright.spec.dtype import GEMM_DTYPES

#: numpy/ndarraytypes.h, PyArrayObject_fields behind the 16-byte object head of 64-bit GIL builds.
ARRAY_DATA, ARRAY_NDIM, ARRAY_SHAPE, ARRAY_STRIDES, ARRAY_DTYPE, ARRAY_FLAGS = 16, 24, 32, 40, 56, 64
#: cpython/object.h, PyObject.ob_type; cpython/tupleobject.h, PyTupleObject.ob_size and ob_item.
OBJECT_TYPE, TUPLE_SIZE, TUPLE_ITEM = 8, 16, 24
#: numpy/ndarraytypes.h, NPY_ARRAY_ALIGNED and NPY_ARRAY_WRITEABLE.
ALIGNED, WRITEABLE = 0x0100, 0x0400
#: numpy/_core/code_generators/numpy_api.py, index of PyArray_Empty in the C API table.
API_EMPTY = 184

#: Products of fewer multiply-adds keep the GIL: releasing and taking it costs about 100 ns, and these
#: take less than 5 us.
GIL_THRESHOLD = 1 << 18

#: Batches up to this length run natively whatever their sizes; longer ones of small matrices are worth
#: the 30 us of Python that lead to kernels of exact sizes.
MOST_DIRECT_BATCH = 400

#: Sizes above this go through Python, which checks products of sizes for overflow.
MAX_DIRECT_SIZE = 1 << 31


def native_entry_possible() -> bool:
    """Whether this interpreter lays out objects the way the entry reads them."""
    gil_build = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")
    if not gil_build or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    probe = np.zeros((3, 5), np.float32)[:, 1:3]
    base = id(probe)

    def word(offset: int, kind: Any = ctypes.c_uint64) -> int:
        return int(kind.from_address(base + offset).value)

    read = (
        word(OBJECT_TYPE),
        word(ARRAY_DATA),
        word(ARRAY_NDIM, ctypes.c_int32),
        ctypes.c_int64.from_address(word(ARRAY_SHAPE) + 8).value,
        ctypes.c_int64.from_address(word(ARRAY_STRIDES)).value,
        word(ARRAY_DTYPE),
        word(ARRAY_FLAGS, ctypes.c_int32) & (ALIGNED | WRITEABLE),
    )
    data = probe.__array_interface__["data"][0]
    expected = (id(np.ndarray), data, 2, 2, 20, id(probe.dtype), ALIGNED | WRITEABLE)
    return read == expected


def _numpy_api(index: int) -> int:
    capsule = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]  # noqa: SLF001
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = get(capsule, None)
    found = ctypes.c_void_p.from_address(table + 8 * index).value
    assert found is not None
    return found


class _Matrix(NamedTuple):
    """What the entry reads of one array."""

    data: Value
    rows: Value
    columns: Value
    row: Value
    column: Value
    step: Value  # bytes to the next matrix of a batch

    def transposed(self) -> _Matrix:
        return _Matrix(self.data, self.columns, self.rows, self.column, self.row, self.step)


class _Entry:
    """Emits `matmul(self, args, nargs, kwnames)`; see `_emit` for the order of its steps."""

    def __init__(self, module: Module) -> None:
        self.module = module
        arguments = [("self", POINTER), ("args", POINTER), ("nargs", INT64), ("kwnames", POINTER)]
        self.f = module.define("tw_matmul", POINTER, arguments, exported=True)
        self.fallback = self.f.new_block("fallback")
        self.ndim = int32(2)
        self.lead = self.batch = int64(0)
        self.batched = self.f.compare("==", self.ndim, 3)

    def require(self, condition: Value) -> None:
        """Goes on if the condition holds, else to the Python function."""
        following = self.f.new_block("ok")
        self.f.jump_if(condition, following, self.fallback)
        self.f.place(following)

    def field(self, base: Value, offset: int, kind: Any = POINTER) -> Value:
        return self.f.load(kind, self.f.at(base, offset), 4 if kind == INT32 else 8)

    def argument(self, index: int) -> Value:
        return self.field(self.f.arguments["args"], 8 * index)

    def find_out(self) -> Value:
        """The third positional or the one keyword `out`; null where there is none."""
        f = self.f
        nargs, kwnames = f.arguments["nargs"], f.arguments["kwnames"]
        slot = f.stack(POINTER, 1, 8)
        f.store(null(), slot, 8)
        self.require(f.compare(">=", nargs, 2))
        self.require(f.compare("<=", nargs, 3))
        with f.branch(f.compare("==", kwnames, null())) as (plain, keywords):
            with plain, f.when(f.compare("==", nargs, 3)):
                f.store(self.argument(2), slot, 8)
            with keywords:
                self.require(f.compare("==", nargs, 2))
                self.require(f.compare("==", self.field(kwnames, TUPLE_SIZE, INT64), 1))
                word = self.field(kwnames, TUPLE_ITEM)
                self.require(f.compare("==", word, self.module.external("tw_str_out")))
                f.store(self.argument(2), slot, 8)
        given = f.load(POINTER, slot, 8)
        absent = f.compare("==", given, self.module.external("tw_none"))
        return f.select(absent, null(), given)

    def read_rank(self, array: Value) -> None:
        """Takes the rank that all operands must have, 2 or 3, and the batch size from the first one."""
        f = self.f
        self.require(f.compare("==", self.field(array, OBJECT_TYPE), self.module.external("tw_ndarray")))
        self.ndim = self.field(array, ARRAY_NDIM, INT32)
        self.require(f.compare(">=", self.ndim, 2))
        self.require(f.compare("<=", self.ndim, 3))
        self.lead = f.mul(f.sub(f.extend(self.ndim, INT64), 2), 8)
        self.batched = f.compare("==", self.ndim, 3)
        self.batch = self.batch_of(array)

    def batch_of(self, array: Value) -> Value:
        """The length of the batch axis, 1 where there is none."""
        length = self.field(self.field(array, ARRAY_SHAPE), 0, INT64)
        return self.f.select(self.batched, length, int64(1))

    def check_array(self, array: Value, flags: int) -> None:
        """A plain ndarray of the common rank and batch size, with the flags."""
        f = self.f
        self.require(f.compare("==", self.field(array, OBJECT_TYPE), self.module.external("tw_ndarray")))
        self.require(f.compare("==", self.field(array, ARRAY_NDIM, INT32), self.ndim))
        self.require(f.compare("==", self.batch_of(array), self.batch))
        found = f.both(self.field(array, ARRAY_FLAGS, INT32), int32(flags))
        self.require(f.compare("==", found, int32(flags)))

    def matrix(self, array: Value, shift: Value) -> _Matrix:
        """Sizes, and strides in elements; an axis of length 1 counts as contiguous."""
        f = self.f
        all_strides = self.field(array, ARRAY_STRIDES)
        shape, strides = f.at(self.field(array, ARRAY_SHAPE), self.lead), f.at(all_strides, self.lead)
        step = f.select(self.batched, self.field(all_strides, 0, INT64), int64(0))
        rows, columns = (self.field(shape, 8 * axis, INT64) for axis in (0, 1))
        row, column = (f.shift_right(self.field(strides, 8 * axis, INT64), shift) for axis in (0, 1))
        single_column = f.compare("==", columns, 1)
        single_row = f.both(f.compare("==", rows, 1), f.negate(single_column))
        column = f.select(single_column, int64(1), column)
        row = f.select(single_row, columns, row)
        return _Matrix(self.field(array, ARRAY_DATA), rows, columns, row, column, step)

    def extent(self, matrix: _Matrix, size: Value) -> tuple[Value, Value]:
        """First byte and the byte behind the last one that a matrix can touch."""
        f = self.f
        start = f.as_integer(matrix.data)
        low, high = start, f.add(start, size)
        reaches = [
            f.mul(f.mul(f.sub(count, 1), stride), size)
            for count, stride in ((matrix.rows, matrix.row), (matrix.columns, matrix.column))
        ]
        for reach in (*reaches, f.mul(f.sub(self.batch, 1), matrix.step)):
            low = f.add(low, f.minimum(reach, int64(0)))
            high = f.add(high, f.maximum(reach, int64(0)))
        return low, high


def _emit() -> str:
    """The module of the entry: check, find or make `out`, take scratch, call the kernel, give back."""
    machine = host_machine()
    module = Module("tw_entry", machine.triple, data_layout(machine))
    entry = _Entry(module)
    f = entry.f
    out = entry.find_out()
    a, other = entry.argument(0), entry.argument(1)
    entry.read_rank(a)
    entry.check_array(a, ALIGNED)
    entry.check_array(other, ALIGNED)
    dtype = entry.field(a, ARRAY_DTYPE)
    entry.require(f.compare("==", entry.field(other, ARRAY_DTYPE), dtype))
    # Which kernel: 0, 1, ... in the order of GEMM_DTYPES.
    number = f.select(
        f.compare("==", dtype, module.external(_descriptor(GEMM_DTYPES[0].name))), int64(0), int64(-1)
    )
    for index, row in enumerate(GEMM_DTYPES[1:], 1):
        same = f.compare("==", dtype, module.external(_descriptor(row.name)))
        number = f.select(same, int64(index), number)
    entry.require(f.compare(">=", number, 0))
    shift = int64(0)
    for index, row in enumerate(GEMM_DTYPES):
        shift = f.select(f.compare("==", number, index), int64(row.size.bit_length() - 1), shift)
    size = f.shift_left(int64(1), shift)
    left, right = entry.matrix(a, shift), entry.matrix(other, shift)
    entry.require(f.compare("==", left.columns, right.rows))
    largest = f.either(f.either(left.rows, left.columns), right.columns)
    entry.require(f.compare("<", largest, MAX_DIRECT_SIZE))
    # Long batches of small matrices are counted, and get kernels of exact sizes, in Python.
    many = f.compare(">", entry.batch, MOST_DIRECT_BATCH)
    entry.require(f.negate(f.both(many, f.compare("<=", largest, LARGEST_SIDE))))
    kernel = f.load(POINTER, f.at(module.external("tw_kernels"), f.mul(number, 8)), 8)
    entry.require(f.compare("!=", kernel, null()))
    result = _result(entry, out, (left, right), (dtype, size, shift))
    slot = _find_scratch(entry, result)
    target = entry.matrix(result, shift)
    _multiply(entry, kernel, number, (left, right, target), slot)
    f.ret(result)
    f.place(entry.fallback)
    vectorcall = module.declare("tw_vectorcall", POINTER, (POINTER, POINTER, INT64, POINTER))
    f.ret(f.call(vectorcall, [f.arguments[name] for name in ("self", "args", "nargs", "kwnames")]))
    return str(module)


def _find_scratch(entry: _Entry, result: Value) -> Value:
    """The first slot that holds a block; without one the call counts itself and goes through Python.

    Between this look and the taking in `_multiply` nothing can release the GIL.
    """
    f = entry.f
    table = entry.module.external("tw_scratch")
    found = f.stack(INT64, 1, 8)
    f.store(int64(0), found, 8)
    count = entry.field(table, Table.count.offset, INT64)
    slots = f.at(table, Table.slots.offset)
    with f.loop(int64(0), count, int64(1), "slot") as index:
        pointer = f.at(slots, f.mul(f.sub(f.sub(count, 1), index), 8))
        holds = f.compare("!=", f.load(INT64, pointer, 8), 0)
        known = f.load(INT64, found, 8)
        f.store(f.select(holds, f.as_integer(pointer), known), found, 8)
    slot = f.load(INT64, found, 8)
    with f.when(f.compare("==", slot, 0)):
        wanted = f.at(table, Table.wanted.offset)
        f.store(f.add(f.load(INT64, wanted, 8), 1), wanted, 8)
        f.call(entry.module.declare("tw_decref", VOID, (POINTER,)), [result])
    entry.require(f.compare("!=", slot, 0))
    return f.as_pointer(slot)


def _result(
    entry: _Entry, out: Value, operands: tuple[_Matrix, _Matrix], kind: tuple[Value, Value, Value]
) -> Value:
    """A new reference to `out` after its checks, or to a new array."""
    f, module = entry.f, entry.module
    (left, right), (dtype, size, shift) = operands, kind
    given = f.compare("!=", out, null())
    slot = f.stack(POINTER, 1, 8)
    increment = module.declare("tw_incref", VOID, (POINTER,))
    with f.branch(given) as (reuse, create):
        with reuse:
            entry.check_array(out, ALIGNED | WRITEABLE)
            entry.require(f.compare("==", entry.field(out, ARRAY_DTYPE), dtype))
            target = entry.matrix(out, shift)
            entry.require(f.compare("==", target.rows, left.rows))
            entry.require(f.compare("==", target.columns, right.columns))
            low, high = entry.extent(target, size)
            for operand in operands:
                first, behind = entry.extent(operand, size)
                apart = f.either(f.compare("<=", high, first), f.compare("<=", behind, low))
                entry.require(apart)
            f.call(increment, [out])
            f.store(out, slot, 8)
        with create:
            shape = f.stack(INT64, 3, 16)
            for index, length in enumerate((entry.batch, left.rows, right.columns)):
                f.store(length, f.at(shape, 8 * index), 8)
            shape = f.select(entry.batched, shape, f.at(shape, 8))
            f.call(increment, [dtype])  # PyArray_Empty takes over a reference
            empty = module.declare("tw_empty", POINTER, (INT32, POINTER, POINTER, INT32))
            made = f.call(empty, [entry.ndim, shape, dtype, int32(0)])
            with f.when(f.compare("==", made, null())):
                f.ret(null())
            f.store(made, slot, 8)
    return f.load(POINTER, slot, 8)


def _multiply(
    entry: _Entry, kernel: Value, number: Value, matrices: tuple[_Matrix, _Matrix, _Matrix], slot: Value
) -> None:
    """Takes the scratch, calls the kernel (without the GIL where it takes long), gives the scratch back.

    A column-major result is computed as the transposed product, and so is a column-major matrix times
    a vector.
    """
    f, module = entry.f, entry.module
    a, other, c = matrices
    flip = f.both(f.compare("!=", c.column, 1), f.compare("==", c.row, 1))
    vector = f.both(
        f.compare("==", c.columns, 1), f.both(f.compare("==", c.row, 1), f.compare("==", a.row, 1))
    )
    flip = f.either(flip, vector)

    def chosen(straight: _Matrix, flipped: _Matrix) -> _Matrix:
        pairs = zip(straight, flipped, strict=True)
        return _Matrix(*(f.select(flip, second, first) for first, second in pairs))

    a, other, c = (
        chosen(a, other.transposed()),
        chosen(other, a.transposed()),
        chosen(c, c.transposed()),
    )
    save = module.declare("tw_save_thread", POINTER, ())
    restore = module.declare("tw_restore_thread", VOID, (POINTER,))
    scratch = f.load(POINTER, slot, 8)
    f.store(null(), slot, 8)
    work = f.mul(f.mul(f.mul(a.rows, a.columns), other.columns), entry.batch)
    long_running = f.compare(">", work, int64(GIL_THRESHOLD))
    thread = f.stack(POINTER, 1, 8)
    with f.when(long_running):
        f.store(f.call(save, []), thread, 8)
    sizes = [a.rows, other.columns, a.columns]
    strides = [value for matrix in (a, other, c) for value in (matrix.row, matrix.column)]
    pointers = [matrix.data for matrix in (a, other, c)]
    for index, row in enumerate(GEMM_DTYPES):
        with f.when(f.compare("==", number, index)):
            scalars = [constant(row, 1.0), constant(row, 0.0)]
            with f.carried_loop(int64(0), entry.batch, int64(1), pointers, "batch") as (_, places, advance):
                f.call(Callee(VOID, kernel.text), [*places, *sizes, *strides, *scalars, scratch])
                advance([f.at(at, matrix.step) for at, matrix in zip(places, (a, other, c), strict=True)])
    with f.when(long_running):
        f.call(restore, [f.load(POINTER, thread, 8)])
    f.store(scratch, slot, 8)


def _descriptor(name: str) -> str:
    return f"tw_dtype_{name}"


class NativeMatmul:
    """The machinery of one native `matmul`: kernel table, entry code, the objects it points to.

    Parameters
    ----------
    builtin : the function to give machine code.
    scratch_table : address of the scratch table.
    """

    def __init__(self, builtin: Builtin, scratch_table: int) -> None:
        self.connected = 0
        self.kernels = (ctypes.c_void_p * len(GEMM_DTYPES))()
        out_word = sys.intern("out")
        self._referenced = [out_word, np.ndarray, *(dtype.numpy for dtype in GEMM_DTYPES)]
        api = ctypes.pythonapi
        imports = {
            "tw_kernels": ctypes.addressof(self.kernels),
            "tw_scratch": scratch_table,
            "tw_str_out": id(out_word),
            "tw_none": id(None),
            "tw_ndarray": id(np.ndarray),
            "tw_vectorcall": address_of(api.PyObject_Vectorcall),
            "tw_incref": address_of(api.Py_IncRef),
            "tw_decref": address_of(api.Py_DecRef),
            "tw_save_thread": address_of(api.PyEval_SaveThread),
            "tw_restore_thread": address_of(api.PyEval_RestoreThread),
            "tw_empty": _numpy_api(API_EMPTY),
            **{_descriptor(dtype.name): id(dtype.numpy) for dtype in GEMM_DTYPES},
        }
        machine = host_machine()
        code = cached_object("tw_entry", machine, lambda: emit_object(_emit(), "tw_entry", machine))
        self._code = Linked(code, ("tw_matmul",), imports)
        builtin.install(self._code.address("tw_matmul"))

    def connect(self, addresses: Mapping[str, int]) -> None:
        """Makes kernels reachable from the entry, by name of the element type; others go through Python."""
        for index, dtype in enumerate(GEMM_DTYPES):
            if dtype.name in addresses:
                self.kernels[index] = addresses[dtype.name]
        self.connected = len(addresses)
