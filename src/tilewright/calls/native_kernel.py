"""Native entries of kernel objects: machine code that checks arrays against a kernel's record and calls it.

One function serves all kernels of a kind. Its `self` is the kernel, which holds a record of the required
arrays; so nothing is compiled for `kernel.native`, and code is freed with its kernel. Anything that does not
match the record goes to the kernel's ``__call__``, which raises or computes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tilewright.calls.fastcall import (
    ALIGNED,
    ARRAY_DATA,
    ARRAY_NDIM,
    ARRAY_SHAPE,
    ARRAY_STRIDES,
    GIL_THRESHOLD,
    WRITEABLE,
    FastFunction,
    Turns,
    better_transposed,
    native_entry_possible,
    python_symbols,
    transposed_if,
)
from tilewright.llvm.build import Callee, Module
from tilewright.llvm.builtin import define_method, make_builtin
from tilewright.llvm.jit import Linked
from tilewright.llvm.object_cache import cached_object
from tilewright.llvm.target import data_layout, emit_object
from tilewright.llvm.values import INT32, INT64, POINTER, VOID, Value, constant, int64, null
from tilewright.machine.host import host_machine
from tilewright.preparing import once
from tilewright.spec.dtype import ACCUMULATORS, DType
from tilewright.spec.problem import Layout, Operand

if TYPE_CHECKING:
    from tilewright.compiler.kernel import Kernel

#: Offset of the record in a kernel object: its first slot after the number of `Numbered`.
RECORD_SLOT = 24
#: cpython/bytesobject.h, PyBytesObject.ob_sval.
BYTES_DATA = bytes.__basicsize__ - 1

#: A size that is given at run time, in a record.
ANY_SIZE = -1

_DOC = """\
native(a, b, c)
--

The kernel called from machine code, without Python in between: c, after the call.

Takes what the kernel takes, and raises what it raises.
"""


# --- records: requirements of a kernel that the machine code reads ----------------------------------


class FixedMatrix(ctypes.Structure):
    """A matrix of known sizes and layout; its contiguous axis is the inner one."""

    _fields_ = (
        ("least_axes", ctypes.c_int64),
        ("most_axes", ctypes.c_int64),
        ("outer_at", ctypes.c_int64),  # bytes of that axis' entry in shape and strides
        ("inner_at", ctypes.c_int64),
        ("outer", ctypes.c_int64),
        ("inner", ctypes.c_int64),
        ("dtype", ctypes.c_void_p),
        ("size_log2", ctypes.c_int64),
    )

    @classmethod
    def of(cls, operand: Operand, least_axes: int, most_axes: int) -> FixedMatrix:
        """The record of an operand that may have a leading batch axis."""
        assert operand.rows is not None
        assert operand.columns is not None
        kind = (id(operand.dtype.numpy), operand.dtype.size.bit_length() - 1)
        if operand.layout is Layout.ROW:
            return cls(least_axes, most_axes, 0, 8, operand.rows, operand.columns, *kind)
        return cls(least_axes, most_axes, 8, 0, operand.columns, operand.rows, *kind)


class BatchReduceRecord(ctypes.Structure):
    """Requirements of a batch-reduce kernel with batch="stride"."""

    _fields_ = (
        ("code", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("long_running", ctypes.c_int64),
        ("matrices", FixedMatrix * 3),
    )

    entry = "tw_native_batch_reduce"

    @classmethod
    def of(cls, operands: Sequence[Operand], count: int, work: int, code: int) -> BatchReduceRecord:
        """The record of a kernel of a, b and c, of `count` products and some multiply-adds, at an address."""
        least = 2 if count == 1 else 3
        a, b, c = operands
        matrices = FixedMatrix.of(a, least, 3), FixedMatrix.of(b, least, 3), FixedMatrix.of(c, 2, 2)
        return cls(code, count, int(work > GIL_THRESHOLD), matrices)


class GemmRecord(ctypes.Structure):
    """Requirements of a GEMM kernel; sizes and strides may be given at run time."""

    _fields_ = (
        ("code", ctypes.c_void_p),
        ("dtypes", ctypes.c_void_p * 3),
        ("sizes_log2", ctypes.c_int64 * 3),  # bytes of an element of a, b, c
        ("scratch", ctypes.c_void_p),
        ("turns", ctypes.c_int64),  # one of `Turns`
        ("sizes", ctypes.c_int64 * 3),  # m, n, k
        ("open_rows", ctypes.c_int64 * 3),  # of a, b, c: whether rows may be any number of elements apart
        ("open_columns", ctypes.c_int64 * 3),
    )

    entry = ""

    @classmethod
    def of(
        cls, operands: Sequence[Operand], acc: DType, code: int, scratch_table: int, turns: Turns
    ) -> GemmRecord:
        """The record of a kernel of a, b and c with sums of some type, located at an address."""
        a, b, _ = operands
        sizes = tuple(ANY_SIZE if size is None else size for size in (a.rows, b.columns, a.columns))
        layouts = [operand.layout for operand in operands]
        dtypes = [operand.dtype for operand in operands]
        record = cls(
            code,
            (ctypes.c_void_p * 3)(*(id(dtype.numpy) for dtype in dtypes)),
            tuple(dtype.size.bit_length() - 1 for dtype in dtypes),
            scratch_table,
            turns,
            sizes,
            tuple(int(layout is not Layout.COL) for layout in layouts),
            tuple(int(layout is not Layout.ROW) for layout in layouts),
        )
        record.entry = _gemm_entry(acc)
        return record


def _gemm_entry(acc: DType) -> str:
    return f"tw_native_gemm_{acc}"


# --- the machine code -------------------------------------------------------------------------------


class _Operand(NamedTuple):
    """A checked matrix or batch: address, leading dimension, batch stride, byte range."""

    data: Value
    leading: Value
    step: Value
    low: Value
    high: Value


class _Entry(FastFunction):
    """A native function that reads a kernel's record."""

    def __init__(self, module: Module, name: str, kind: type[ctypes.Structure]) -> None:
        super().__init__(module, name)
        f, self.kind = self.f, kind
        self.require(f.icmp("==", f.arguments["nargs"], 3))
        self.require(f.icmp("==", f.arguments["kwnames"], null()))
        self.record = f.at(self.field(f.arguments["self"], RECORD_SLOT), BYTES_DATA)
        self.arrays = tuple(self.argument(index) for index in range(3))

    def word(self, name: str, index: int = 0) -> Value:
        """An integer of the record."""
        return self.field(self.record, getattr(self.kind, name).offset + 8 * index, INT64)

    def pointer(self, name: str, index: int = 0) -> Value:
        """A pointer of the record."""
        return self.field(self.record, getattr(self.kind, name).offset + 8 * index)

    def require_disjoint(self, c: tuple[Value, Value], other: tuple[Value, Value]) -> None:
        """Require that the byte ranges of c and another operand are disjoint."""
        f = self.f
        (low, high), (first, behind) = c, other
        self.require(f.or_(f.icmp("<=", high, first), f.icmp("<=", behind, low)))

    def fixed_matrix(self, index: int, flags: int) -> _Operand:
        """Read an operand of known sizes and layout, after checking it."""
        f, array = self.f, self.arrays[index]
        start = self.kind.matrices.offset + index * ctypes.sizeof(FixedMatrix)

        def required(name: str) -> Value:
            return self.field(self.record, start + getattr(FixedMatrix, name).offset, INT64)

        self.check_plain(array, self.field(self.record, start + FixedMatrix.dtype.offset), flags)
        axes = f.sext(self.field(array, ARRAY_NDIM, INT32), INT64)
        self.require(f.icmp(">=", axes, required("least_axes")))
        self.require(f.icmp("<=", axes, required("most_axes")))
        shape, strides = self.field(array, ARRAY_SHAPE), self.field(array, ARRAY_STRIDES)
        batched, count = f.icmp("==", axes, 3), self.word("count")
        self.require(f.icmp("==", f.select(batched, self.field(shape, 0, INT64), count), count))
        step = f.select(batched, self.field(strides, 0, INT64), int64(0))
        lead = f.mul(f.sub(axes, 2), 8)
        outer, inner = (f.add(lead, required(name)) for name in ("outer_at", "inner_at"))
        lines, length = required("outer"), required("inner")
        for at, size in ((outer, lines), (inner, length)):
            self.require(f.icmp("==", f.load(INT64, f.at(shape, at), 8), size))
        size_log2 = required("size_log2")
        adjacent = f.icmp("==", f.load(INT64, f.at(strides, inner), 8), f.shl(int64(1), size_log2))
        self.require(f.or_(adjacent, f.icmp("==", length, 1)))
        apart = self.elements(f.load(INT64, f.at(strides, outer), 8), size_log2, lines)
        leading = f.select(f.icmp(">", lines, 1), apart, length)
        self.require(f.icmp(">=", leading, length))
        data = self.field(array, ARRAY_DATA)
        reach = f.mul(step, f.sub(count, 1))
        elements = f.add(f.mul(f.sub(lines, 1), leading), length)
        low = f.add(f.ptrtoint(data), f.minimum(reach, int64(0)))
        last = f.add(f.ptrtoint(data), f.maximum(reach, int64(0)))
        high = f.add(last, f.shl(elements, size_log2))
        return _Operand(data, leading, self.elements(step, size_log2, count), low, high)

    def finish_with_c(self) -> None:
        """Return c."""
        c = self.arrays[2]
        self.f.call(self.module.declare("tw_incref", VOID, (POINTER,)), [c])
        self.finish(c)


def _emit_batch_reduce(module: Module) -> None:
    """Known sizes: check shape, layout and leading dimension of each operand, and that C does not overlap the
    others.
    """
    entry = _Entry(module, BatchReduceRecord.entry, BatchReduceRecord)
    f = entry.f
    a, b, c = (
        entry.fixed_matrix(index, flags)
        for index, flags in enumerate((ALIGNED, ALIGNED, ALIGNED | WRITEABLE))
    )
    for operand in (a, b):
        entry.require_disjoint((c.low, c.high), (operand.low, operand.high))
    steps = [operand.step for operand in (a, b)]
    code = Callee(VOID, entry.pointer("code").text)
    with entry.without_gil(f.icmp("!=", entry.word("long_running"), 0)):
        f.call(code, [a.data, b.data, c.data, a.leading, b.leading, c.leading, *steps])
    entry.finish_with_c()


def _emit_gemm(module: Module, acc: DType) -> None:
    """Sizes and strides from the arrays where the record leaves them open; c = a @ b."""
    entry = _Entry(module, _gemm_entry(acc), GemmRecord)
    f = entry.f
    for index, flags in enumerate((ALIGNED, ALIGNED, ALIGNED | WRITEABLE)):
        entry.check_plain(entry.arrays[index], entry.pointer("dtypes", index), flags)
        entry.require(f.icmp("==", entry.field(entry.arrays[index], ARRAY_NDIM, INT32), 2))
    shifts = [entry.word("sizes_log2", index) for index in range(3)]
    a, b, c = (entry.matrix(array, shift) for array, shift in zip(entry.arrays, shifts, strict=True))
    for found, same in ((a.columns, b.rows), (c.rows, a.rows), (c.columns, b.columns)):
        entry.require(f.icmp("==", found, same))
    for index, found in enumerate((c.rows, c.columns, a.columns)):
        required = entry.word("sizes", index)
        entry.require(f.or_(f.icmp("==", required, ANY_SIZE), f.icmp("==", required, found)))
    for index, matrix in enumerate((a, b, c)):
        for name, length, stride in (
            ("open_rows", matrix.rows, matrix.row),
            ("open_columns", matrix.columns, matrix.column),
        ):
            fits = f.or_(f.icmp("==", stride, 1), f.icmp("==", length, 1))
            entry.require(f.or_(fits, f.icmp("!=", entry.word(name, index), 0)))
    sizes_in_bytes = [f.shl(int64(1), shift) for shift in shifts]
    for operand, size in zip((a, b), sizes_in_bytes, strict=False):
        entry.require_disjoint(entry.extent(c, sizes_in_bytes[2]), entry.extent(operand, size))
    work = f.mul(f.mul(c.rows, c.columns), a.columns)
    wish = entry.find_team(work)
    slot = entry.find_scratch(entry.pointer("scratch"))
    a, b, c = transposed_if(f, better_transposed(f, a, c, entry.word("turns")), a, b, c)
    sizes = [c.rows, c.columns, a.columns]
    strides = [value for matrix in (a, b, c) for value in (matrix.row, matrix.column)]
    scalars = [constant(acc, 1), constant(acc, 0)]
    code = Callee(VOID, entry.pointer("code").text)
    long_running = f.icmp(">", work, int64(GIL_THRESHOLD))
    with entry.taken(slot) as scratch, entry.without_gil(long_running), entry.team(wish) as team:
        f.call(code, [a.data, b.data, c.data, *sizes, *strides, *scalars, scratch, team])
    entry.raise_cancelled()
    entry.finish_with_c()


def _emit(name: str) -> str:
    """The module of one entry."""
    machine = host_machine()
    module = Module(name, machine.triple, data_layout(machine))
    _EMITTERS[name](module)
    return str(module)


_EMITTERS: dict[str, Callable[[Module], None]] = {
    BatchReduceRecord.entry: _emit_batch_reduce,
    **{_gemm_entry(acc): partial(_emit_gemm, acc=acc) for acc in ACCUMULATORS},
}


# --- builtins ---------------------------------------------------------------------------------------


class _LinkedEntry:
    """The code of one entry in this process, with its method definition."""

    def __init__(self, name: str) -> None:
        machine = host_machine()
        code = cached_object(name, machine, lambda: emit_object(_emit(name), name, machine))
        self._code = Linked(code, (name,), python_symbols())
        self.definition = define_method("native", self._code.address(name), _DOC)


@once
def _linked(name: str) -> _LinkedEntry:
    return _LinkedEntry(name)


def bind_native(kernel: Kernel, record: BatchReduceRecord | GemmRecord) -> Callable[..., Any]:
    """A builtin that checks arrays against the record and calls the kernel's code.

    If this interpreter's object layout differs, it is the kernel's ``__call__``.
    """
    kernel._record = bytes(record)  # noqa: SLF001  (the slot is there for this module)
    if not (native_entry_possible() and _readable(kernel)):
        return kernel.__call__
    return make_builtin(_linked(record.entry).definition, kernel, "tilewright")


def _readable(kernel: Kernel) -> bool:
    """Whether a kernel's record is at the offset that the machine code expects."""
    record = kernel._record  # noqa: SLF001
    held = ctypes.c_void_p.from_address(id(kernel) + RECORD_SLOT).value
    return held == id(record) and ctypes.string_at(id(record) + BYTES_DATA, len(record)) == record
