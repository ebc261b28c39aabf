"""The native entry: machine code of `matmul` that reads NumPy arrays itself.

It handles plain 2-D arrays, and 3-D arrays with one batch axis, and hands everything else, every error
included, to the Python function.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping

import numpy as np

from tilewright.llvm.build import Callee, Module
from tilewright.llvm.jit import Linked
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT32, INT64, POINTER, VOID, Value, constant, int32, int64, null
from tilewright.machine.host import host_machine
from tilewright.runtime.builtin import Builtin
from tilewright.runtime.cache import cached_object
from tilewright.runtime.exact import exact_table, find_exact, run_exact
from tilewright.runtime.fastcall import (
    ALIGNED,
    ARRAY_DTYPE,
    GIL_THRESHOLD,
    TUPLE_ITEM,
    TUPLE_SIZE,
    WRITEABLE,
    FastFunction,
    Matrix,
    better_turned,
    python_symbols,
    turned_if,
)
from tilewright.spec.dtype import GEMM_DTYPES

#: numpy/_core/code_generators/numpy_api.py, index of PyArray_Empty in the C API table.
API_EMPTY = 184

#: Sizes above this go through Python, which checks products of sizes for overflow.
MAX_DIRECT_SIZE = 1 << 31


def _numpy_api(index: int) -> int:
    capsule = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]  # noqa: SLF001
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = get(capsule, None)
    found = ctypes.c_void_p.from_address(table + 8 * index).value
    assert found is not None
    return found


class _Entry(FastFunction):
    """Emits `matmul`; see `_emit` for the order of its steps."""

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


def _emit() -> str:
    """The module of the entry: check, find or make `out`, take scratch, call the kernel, give back."""
    machine = host_machine()
    module = Module("tw_entry", machine.triple, data_layout(machine))
    entry = _Entry(module, "tw_matmul")
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
    kernel = f.load(POINTER, f.at(module.external("tw_kernels"), f.mul(number, 8)), 8)
    entry.require(f.compare("!=", kernel, null()))
    result = _result(entry, out, (left, right), (dtype, size, shift))
    target = entry.matrix(result, shift)
    matrices = turned_if(f, better_turned(f, left, target), left, right, target)
    exact = find_exact(entry, number, matrices, unused=result)
    work = f.mul(f.mul(f.mul(left.rows, left.columns), right.columns), entry.batch)
    long_running = f.compare(">", work, int64(GIL_THRESHOLD))
    with f.when(exact.found):
        run_exact(entry, exact, matrices, long_running)
        f.ret(result)
    slot = entry.find_scratch(module.external("tw_scratch"), unused=result)
    with entry.taken(slot) as scratch, entry.without_gil(long_running):
        _multiply(entry, kernel, number, matrices, scratch)
    entry.finish(result)
    return str(module)


def _result(
    entry: _Entry, out: Value, operands: tuple[Matrix, Matrix], kind: tuple[Value, Value, Value]
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
            assert entry.batched is not None
            shape = f.select(entry.batched, shape, f.at(shape, 8))
            f.call(increment, [dtype])  # PyArray_Empty takes over a reference
            empty = module.declare("tw_empty", POINTER, (INT32, POINTER, POINTER, INT32))
            made = f.call(empty, [entry.ndim, shape, dtype, int32(0)])
            with f.when(f.compare("==", made, null())):
                f.ret(null())
            f.store(made, slot, 8)
    return f.load(POINTER, slot, 8)


def _multiply(
    entry: _Entry, kernel: Value, number: Value, matrices: tuple[Matrix, ...], scratch: Value
) -> None:
    """Every product of the batch through the kernel of its element type."""
    f = entry.f
    a, other, c = matrices
    sizes = [a.rows, other.columns, a.columns]
    strides = [value for matrix in matrices for value in (matrix.row, matrix.column)]
    pointers = [matrix.data for matrix in matrices]
    for index, row in enumerate(GEMM_DTYPES):
        with f.when(f.compare("==", number, index)):
            scalars = [constant(row, 1.0), constant(row, 0.0)]
            with f.carried_loop(int64(0), entry.batch, int64(1), pointers, "batch") as (_, places, advance):
                f.call(Callee(VOID, kernel.text), [*places, *sizes, *strides, *scalars, scratch])
                steps = (matrix.step for matrix in (a, other, c))
                advance([f.at(at, step) for at, step in zip(places, steps, strict=True)])


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
        imports = {
            **python_symbols(),
            "tw_kernels": ctypes.addressof(self.kernels),
            "tw_scratch": scratch_table,
            "tw_exact": exact_table().address,
            "tw_str_out": id(out_word),
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
