"""The native entry of `transpose`: machine code that reads plain 2-D arrays itself.

It turns arrays whose columns are nearer together than their rows, and hands everything else, every error
included, to the Python function.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

import numpy as np

from tilewright.calls.fastcall import (
    ALIGNED,
    API_EMPTY,
    ARRAY_DATA,
    ARRAY_DTYPE,
    ARRAY_NDIM,
    ARRAY_STRIDES,
    GIL_THRESHOLD,
    OBJECT_TYPE,
    WRITEABLE,
    FastFunction,
    MatrixValues,
    numpy_api,
    python_symbols,
)
from tilewright.llvm.build import Callee, Module
from tilewright.llvm.builtin import Builtin
from tilewright.llvm.jit import Linked
from tilewright.llvm.object_cache import cached_object
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT32, INT64, POINTER, VOID, Value, int32, int64, null
from tilewright.machine.host import host_machine
from tilewright.ops.transpose.call import PIECE_BYTES

#: Element types that the entry supports, by NumPy's letters; others go through Python.
LETTERS = "fdilbBhHILqQeFD?"
#: Sizes of their elements are powers of two up to this.
MOST_BYTES_LOG2 = 4

_MODULE = _NAME = "tw_transpose"


def _dtypes() -> dict[str, np.dtype[np.generic]]:
    """The descriptors that arrays of these types share, one for each C type."""
    return {letter: np.dtype(letter) for letter in LETTERS}


class _Entry(FastFunction):
    """Emits `transpose(a, out=None)`."""

    def check(self, array: Value, dtype: Value, shift: Value, flags: int) -> None:
        """A plain ndarray of two axes and of the element type, with the flags; elements whole sizes apart."""
        f = self.f
        self.check_plain(array, dtype, flags)
        self.require(f.icmp("==", self.field(array, ARRAY_NDIM, INT32), int32(2)))
        # Complex numbers are aligned like their halves, so NumPy's flag does not say enough.
        strides = self.field(array, ARRAY_STRIDES)
        bits = f.ptrtoint(self.field(array, ARRAY_DATA))
        for axis in (0, 1):
            bits = f.or_(bits, self.field(strides, 8 * axis, INT64))
        inside = f.sub(f.shl(int64(1), shift), 1)
        self.require(f.icmp("==", f.and_(bits, inside), 0))


def _emit() -> str:
    """The module: check, find or make `out`, move."""
    machine = host_machine()
    module = Module(_MODULE, machine.triple, data_layout(machine))
    entry = _Entry(module, _NAME)
    f = entry.f
    out = entry.find_out(operands=1, positional=False)
    array = entry.argument(0)
    entry.require(f.icmp("==", entry.field(array, OBJECT_TYPE), module.external("tw_ndarray")))
    dtype = entry.field(array, ARRAY_DTYPE)
    shift = int64(-1)
    for letter, known in _dtypes().items():
        same = f.icmp("==", dtype, module.external(f"tw_dtype_{ord(letter)}"))
        shift = f.select(same, int64(known.itemsize.bit_length() - 1), shift)
    entry.require(f.icmp(">=", shift, 0))
    entry.check(array, dtype, shift, ALIGNED)
    a = entry.matrix(array, shift)
    # Empty arrays, and those whose rows are nearer together, are Python's: the latter become copies.
    for size in (a.rows, a.columns):
        entry.require(f.icmp(">", size, 0))
    magnitudes = [f.maximum(step, f.sub(int64(0), step)) for step in (a.column, a.row)]
    entry.require(f.icmp("<=", *magnitudes))
    kernel = f.load(POINTER, f.at(module.external("tw_moves"), f.mul(shift, 8)), 8)
    entry.require(f.icmp("!=", kernel, null()))
    work = f.mul(a.rows, a.columns)
    entry.require(f.icmp("<=", f.shl(work, shift), PIECE_BYTES))  # Python moves others in pieces
    result = _result(entry, out, a, dtype, shift)
    b = entry.matrix(result, shift)
    with entry.without_gil(f.icmp(">", work, int64(GIL_THRESHOLD))):
        # Elements adjacent in A are the kernel's rows.
        steps = [a.column, a.row, b.row, b.column]
        f.call(Callee(VOID, kernel.text), [a.data, b.data, *steps, a.columns, a.rows])
    entry.finish(result)
    return str(module)


def _result(entry: _Entry, out: Value, a: MatrixValues, dtype: Value, shift: Value) -> Value:
    """A new reference to `out` after its checks, or to a new array."""
    f, module = entry.f, entry.module
    size = f.shl(int64(1), shift)
    slot = f.alloca(POINTER, 1, 8)
    increment = module.declare("tw_incref", VOID, (POINTER,))
    with f.branch(f.icmp("!=", out, null())) as (reuse, create):
        with reuse:
            entry.check(out, dtype, shift, ALIGNED | WRITEABLE)
            b = entry.matrix(out, shift)
            entry.require(f.icmp("==", b.rows, a.columns))
            entry.require(f.icmp("==", b.columns, a.rows))
            (low, high), (first, behind) = entry.extent(b, size), entry.extent(a, size)
            entry.require(f.or_(f.icmp("<=", high, first), f.icmp("<=", behind, low)))
            f.call(increment, [out])
            f.store(out, slot, 8)
        with create:
            shape = f.alloca(INT64, 2, 16)
            f.store(a.columns, shape, 8)
            f.store(a.rows, f.at(shape, 8), 8)
            f.store(entry.new_array(int32(2), shape, dtype), slot, 8)
    return f.load(POINTER, slot, 8)


class NativeTranspose:
    """The machinery of one native `transpose`: kernel table, entry code, the objects it points to.

    Parameters
    ----------
    builtin : the function to give machine code.
    """

    def __init__(self, builtin: Builtin) -> None:
        self.connected = 0
        self.kernels = (ctypes.c_void_p * (MOST_BYTES_LOG2 + 1))()
        dtypes = _dtypes()
        self._referenced = list(dtypes.values())
        imports = {
            **python_symbols(),
            "tw_moves": ctypes.addressof(self.kernels),
            "tw_empty": numpy_api(API_EMPTY),
            **{f"tw_dtype_{ord(letter)}": id(dtype) for letter, dtype in dtypes.items()},
        }
        machine = host_machine()
        code = cached_object(_MODULE, machine, lambda: emit_object(_emit(), _MODULE, machine))
        self._code = Linked(code, (_NAME,), imports)
        builtin.install(self._code.address(_NAME), self)

    def connect(self, addresses: Mapping[int, int]) -> None:
        """Makes kernels reachable from the entry, by the bytes of an element."""
        for size, address in addresses.items():
            self.kernels[size.bit_length() - 1] = address
        self.connected = len(addresses)
