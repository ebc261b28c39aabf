"""Products of bytes under oneMKL's name: signed times unsigned, with offsets, into integers of 32 bits."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.aot.blas.blocks import BlockCode, allocated, release
from tilewright.aot.blas.entries import WIDTHS, RoutineEntries, Width
from tilewright.aot.blas.product import KernelUse, emit_product
from tilewright.aot.blas.routines import COLUMN_MAJOR, FLAGS, ROW_MAJOR
from tilewright.aot.blas.types import JOB_WORDS, PREFIX, TYPES, Job, StridedMatrix, job_view
from tilewright.llvm.build import Function, Module
from tilewright.llvm.target import data_layout
from tilewright.llvm.values import (
    INT8,
    INT32,
    INT64,
    POINTER,
    VOID,
    Type,
    Value,
    constant,
    element_type,
    int32,
    int64,
)
from tilewright.machine.machine import Machine
from tilewright.ops.gemm.problem import Gemm
from tilewright.spec.dtype import F32, F64
from tilewright.spec.problem import Layout
from tilewright.threads.system_code import FieldAccess

#: The symbol of the operation, which is dispatched.
BYTES_OPERATION = f"{PREFIX}_gemm_bytes"
#: The function of oneMKL, and the values of its CBLAS_OFFSET.
NAME = "cblas_gemm_s8u8s32"
ROW_OFFSET, COLUMN_OFFSET, FIXED_OFFSET = 171, 172, 173
#: The arguments behind the layout; which of them are sizes of the interface's width.
ARGUMENTS = [
    "transa",
    "transb",
    "offsetc",
    "m",
    "n",
    "k",
    "alpha",
    "a",
    "lda",
    "ao",
    "b",
    "ldb",
    "bo",
    "beta",
    "c",
    "ldc",
    "cb",
]
_WIDE = frozenset(("m", "n", "k", "lda", "ldb", "ldc"))
_DOUBLE = element_type(F64)


def bytes_problem() -> Gemm:
    """Unsigned times signed bytes, in the order of the instructions for it."""
    return Gemm(
        dtype="u8", b_dtype="i8", out_dtype="i32", a=Layout.STRIDED, b=Layout.STRIDED, c=Layout.STRIDED
    )


class BytesCode(BlockCode):
    """Emits ``gemm_bytes(job)``: C = alpha (A + a)(B + b) + beta C + c, A of unsigned, B of signed bytes.

    Sums are exact up to 32 bits; all that follows is computed in doubles, rounded to even and kept in range.

    Source: Intel oneMKL reference for C, cblas_gemm_*.
    """

    def __init__(self, machine: Machine, suffix: str, kernel: KernelUse) -> None:
        module = Module(f"{PREFIX}_bytes", machine.triple, data_layout(machine))
        super().__init__(module, TYPES["s"])
        self.product = emit_product(self, kernel, INT32)
        self.emit_gemm(f"{BYTES_OPERATION}{suffix}")

    def emit_gemm(self, name: str) -> None:
        """The operation, under a name."""
        f = self.module.define(name, VOID, [("job", POINTER)], exported=True)
        w, job = FieldAccess(f), f.arguments["job"]
        m, n, k, row_offset, column_offset = (
            w.get(job, Job, one) for one in ("m", "n", "k", "offset_a", "offset_b")
        )
        a, b, c, more = (job_view(w, job, one) for one in ("a", "b", "c", "offset_c"))
        alpha, beta = (f.load(_DOUBLE, w.place(job, Job, one), 8) for one in ("alpha", "beta"))
        direct = f.and_(_is(f, alpha, 1.0), _is(f, beta, 0.0))
        memory = allocated(f, f.select(direct, int64(1), f.mul(m, n)), 4)
        sums = StridedMatrix(
            f.select(direct, c.pointer, memory),
            f.select(direct, c.row, n),
            f.select(direct, c.column, int64(1)),
            int64(0),
        )
        f.call(self.product, [m, n, k, *a.values, *b.values, *sums.values, int32(1), int32(0)])
        columns = self.column_sums(f, k, n, b, row_offset)
        both = f.mul(f.mul(row_offset, column_offset), k)
        with f.loop(int64(0), m, int64(1), "row") as i:
            total = self.row_sum(f, k, a, i, column_offset)
            base = f.add(f.mul(total, column_offset), both)
            with f.loop(int64(0), n, int64(1), "column") as j:
                place = c.part(f, i, j, 4).pointer
                column = f.load(INT64, f.at(columns, f.mul(j, 8)), 8)
                found = f.sext(f.load(INT32, sums.part(f, i, j, 4).pointer, 4), INT64)
                found = f.add(f.add(found, f.mul(column, row_offset)), base)
                result = f.times(alpha, _to_double(f, found))
                before = f.times(beta, _to_double(f, f.load(INT32, place, 4)))  # 0 of integers stays 0
                result = f.plus(result, before)
                result = f.plus(result, _to_double(f, f.load(INT32, more.part(f, i, j, 4).pointer, 4)))
                f.store(self.rounded(f, result), place, 4)
        release(f, columns)
        release(f, memory)
        f.ret()

    def column_sums(self, f: Function, k: Value, n: Value, b: StridedMatrix, wanted: Value) -> Value:
        """The sums of the columns of B, or zeros where A has no offset."""
        sums = allocated(f, n, 8)
        with f.loop(int64(0), n, int64(1), "clear") as j:
            f.store(int64(0), f.at(sums, f.mul(j, 8)), 8)
        depths = f.select(f.icmp("!=", wanted, 0), k, int64(0))
        with (
            f.loop(int64(0), depths, int64(1), "depth") as p,
            f.loop(int64(0), n, int64(1), "column") as j,
        ):
            place = f.at(sums, f.mul(j, 8))
            element = f.sext(f.load(INT8, b.part(f, p, j, 1).pointer, 1), INT64)
            f.store(f.add(f.load(INT64, place, 8), element), place, 8)
        return sums

    def row_sum(self, f: Function, k: Value, a: StridedMatrix, row: Value, wanted: Value) -> Value:
        """The sum of a row of A, or 0 where B has no offset."""
        depths = f.select(f.icmp("!=", wanted, 0), k, int64(0))
        with f.carried_loop(int64(0), depths, int64(1), [int64(0)], "depth") as (p, (total,), advance):
            element = f.zext(f.load(INT8, a.part(f, row, p, 1).pointer, 1), INT64)
            advance([f.add(total, element)])
        return advance.results[0]

    def rounded(self, f: Function, value: Value) -> Value:
        """The nearest integer of 32 bits."""
        nearest = self.module.declare("llvm.rint.f64", _DOUBLE, (_DOUBLE,))
        kind = self.module.declare("llvm.fptosi.sat.i32.f64", INT32, (_DOUBLE,))
        return f.call(kind, [f.call(nearest, [value])])


def _to_double(f: Function, value: Value) -> Value:
    return f.emit(_DOUBLE, f"sitofp {value.typed} to double")


def _is(f: Function, value: Value, wanted: float) -> Value:
    return f.emit(Type("i1", "i1"), f"fcmp oeq {value.typed}, {constant(F64, wanted).text}")


# --- entries ------------------------------------------------------------------------------------------


def bytes_symbols() -> Iterator[str]:
    """The standard names of products of bytes."""
    return (width.c(NAME) for width in WIDTHS)


def prototypes() -> Iterator[str]:
    """Their C prototypes."""
    yield "/* C = alpha (op(A) + ao)(op(B) + bo) + beta C + cb; A int8_t, B uint8_t; row-major reversed. */"
    for width in WIDTHS:
        integer = "int" if width.type is INT32 else "int64_t"
        yield (
            f"void {width.c(NAME)}(enum CBLAS_LAYOUT layout, enum CBLAS_TRANSPOSE transa, "
            f"enum CBLAS_TRANSPOSE transb, enum CBLAS_OFFSET offsetc, {integer} m, {integer} n, {integer} k, "
            f"float alpha, const void *a, {integer} lda, int8_t ao, const void *b, {integer} ldb, int8_t bo, "
            f"float beta, int32_t *c, {integer} ldc, const int32_t *cb);"
        )


def emit_bytes_entries(entries: RoutineEntries) -> None:
    """The functions of both widths."""
    for width in WIDTHS:
        _emit_entry(entries, width)


def _types(width: Width) -> dict[str, Type]:
    real, small = element_type(F32), ("ao", "bo")
    found: dict[str, Type] = {}
    for name in ARGUMENTS:
        if name in _WIDE:
            found[name] = width.type
        elif name in ("alpha", "beta"):
            found[name] = real
        elif name in small:
            found[name] = INT8
        else:
            found[name] = POINTER if name in ("a", "b", "c", "cb") else INT32
    return found


def _emit_entry(entries: RoutineEntries, width: Width) -> None:
    arguments = [("layout", INT32), *_types(width).items()]
    f = entries.module.define(width.c(NAME), VOID, arguments, exported=True)
    given = f.arguments
    row = f.icmp("==", given["layout"], ROW_MAJOR)
    size = {name: entries.widened(f, given[name], width) for name in _WIDE}
    codes = {
        name: entries.code(f, f.sext(given[name], INT64), list(FLAGS[name].numbers))
        for name in ("transa", "transb")
    }
    _check(entries, f, row, size, codes, width)
    none = f.or_(f.icmp("==", size["m"], 0), f.icmp("==", size["n"], 0))
    with f.when(none):
        f.ret()
    w, job = FieldAccess(f), f.alloca(INT64, JOB_WORDS, 16)
    # The unsigned factor comes first: row-major as it is called, column-major in the product of transposes.
    swapped = {"m": "n", "n": "m", "k": "k"}
    for name, other in swapped.items():
        w.put(f.select(row, size[name], size[other]), job, Job, name)
    for name, other in (("a", "b"), ("b", "a")):
        views = [_operated(f, given[one], size[f"ld{one}"], codes[f"trans{one}"]) for one in (name, other)]
        _put(f, w, job, name, [f.select(row, x, y) for x, y in zip(*views, strict=True)])
        offsets = [f.sext(given[f"{one}o"], INT64) for one in (name, other)]
        w.put(f.select(row, *offsets), job, Job, f"offset_{name}")
    _put(f, w, job, "c", [given["c"], size["ldc"], int64(1)])
    along_rows, along_columns = (
        f.select(f.icmp("==", given["offsetc"], kind), int64(1), int64(0))
        for kind in (COLUMN_OFFSET, ROW_OFFSET)
    )
    steps = [f.select(row, along_rows, along_columns), f.select(row, along_columns, along_rows)]
    _put(f, w, job, "offset_c", [given["cb"], *steps])
    for name in ("alpha", "beta"):
        f.store(f.emit(_DOUBLE, f"fpext {given[name].typed} to double"), w.place(job, Job, name), 8)
    f.call(entries.module.declare(BYTES_OPERATION, VOID, (POINTER,)), [job])
    f.ret()


def _operated(f: Function, pointer: Value, leading: Value, code: Value) -> list[Value]:
    """op(X) of a row-major X, which is also the transpose of op(X) of a column-major one."""
    transposed = f.icmp("!=", code, 0)
    one = int64(1)
    return [pointer, f.select(transposed, one, leading), f.select(transposed, leading, one)]


def _put(f: Function, w: FieldAccess, job: Value, name: str, view: list[Value]) -> None:
    f.store(view[0], w.place(job, Job, name), 8)
    for part, value in zip(("row", "column"), view[1:], strict=True):
        w.put(value, job, Job, f"{name}_{part}")
    w.put(0, job, Job, f"{name}_conjugated")


def _check(
    entries: RoutineEntries,
    f: Function,
    row: Value,
    size: dict[str, Value],
    codes: dict[str, Value],
    width: Width,
) -> None:
    """Reports the first invalid argument, by its place."""
    given = f.arguments

    def among(name: str, *numbers: int) -> Value:
        found = f.icmp("!=", given[name], numbers[0])
        for number in numbers[1:]:
            found = f.and_(found, f.icmp("!=", given[name], number))
        return found

    def short(leading: str, trans: str | None, rows: str, columns: str) -> Value:
        """Whether a leading dimension is less than the lines of the matrix as it is stored."""
        plain = int64(0) if trans is None else codes[trans]
        straight = f.xor(
            f.select(f.icmp("==", plain, 0), int64(1), int64(0)), f.select(row, int64(1), int64(0))
        )
        most = f.select(f.icmp("!=", straight, 0), size[rows], size[columns])
        return f.icmp("<", size[leading], f.maximum(most, int64(1)))

    wrong = {
        "layout": among("layout", ROW_MAJOR, COLUMN_MAJOR),
        "transa": f.icmp("<", codes["transa"], 0),
        "transb": f.icmp("<", codes["transb"], 0),
        "offsetc": among("offsetc", ROW_OFFSET, COLUMN_OFFSET, FIXED_OFFSET),
        **{name: f.icmp("<", size[name], 0) for name in ("m", "n", "k")},
        "lda": short("lda", "transa", "m", "k"),
        "ldb": short("ldb", "transb", "k", "n"),
        "ldc": short("ldc", None, "m", "n"),
    }
    names = list(given)
    for name, condition in wrong.items():
        with f.when(condition):
            entries.report(f, int64(names.index(name) + 1), entries.text(NAME), width)
            f.ret()
