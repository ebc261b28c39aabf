"""Unary kernels on every row of this host: values, sizes, padding, overlap, the C function, errors."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import ctypes
import pickle
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shares import EVERY_TEST_RUNS, share
from support import FENV, Array, host_rows, no_flags, rough, unaligned
from tiers import crossed, draws, named, pairwise
from unary_cuts import Function, compile_cut

import tilewright as tw
from tilewright.errors import ForeignKernel, LeadingDimension, OperandMismatch
from tilewright.ir.parse import parse_program
from tilewright.ir.verify import verify
from tilewright.ops.unary.kernel import UnaryKernel
from tilewright.ops.unary.problem import Unary
from tilewright.spec.functions import UnaryOp

ROWS = [isa.name for isa in host_rows()]
each_row = pytest.mark.parametrize("row", ROWS)
each_layout = pytest.mark.parametrize("b", ["col", "row"])

OUTSIDE = 99
#: The functions are within a few ulps (tests/micro/test_math.py); in f64 the reference has an error of its
#: own, since it rounds the argument of the exponential: x²·u at x = -13.
TOLERANCE = {"f32": 1e-6, "f64": 5e-14}


@cache
def compiled(row: str, problem: Unary) -> Any:
    return tw.compile(problem, tw.machine(row))


@cache
def with_small_caches(problem: Unary) -> Any:
    """A kernel that writes past the caches from 8 MiB on: the L3 of some hosts has hundreds."""
    machine = tw.machine(ROWS[0])
    last = machine.l3 or machine.l2
    return tw.compile(problem, replace(machine, l3=replace(last, size=min(last.size, 1 << 24))))


def laid_out(dense: Array, layout: str, gap: int) -> tuple[Array, Array]:
    """A matrix in a larger array, `gap` elements between its lines: (view, all of it)."""
    by_rows = dense if layout == "row" else dense.T
    lines, length = by_rows.shape
    base = np.full((lines + (gap > 0), length + gap), OUTSIDE).astype(dense.dtype)
    view = base[:lines, :length]
    view[...] = by_rows
    return (view if layout == "row" else view.T), base


def check(kernel: Any, a: Array, gap: int = 0) -> None:
    """One call against the reference; nothing but B changes."""
    problem = kernel.problem
    given, base_a = laid_out(a, "col", gap)
    b, base_b = laid_out(np.full(a.shape, OUTSIDE).astype(a.dtype), problem.b.value, 2 * gap)
    before = base_a.copy()
    assert kernel(None if problem.op is UnaryOp.ZERO else given, b) is b
    expected = problem.reference(a)
    if problem.op.single:
        np.testing.assert_array_equal(b, expected.astype(a.dtype), str(problem))
    else:
        np.testing.assert_allclose(b, expected, rtol=TOLERANCE[problem.dtype.name], atol=1e-37)
    np.testing.assert_array_equal(base_a, before, "A changed")
    b[...] = OUTSIDE
    assert (base_b == np.array(OUTSIDE).astype(a.dtype)).all(), f"{problem}: wrote outside B"


#: Around the widths of vectors and squares, and thin ones.
SIZES = [(1, 1), (2, 3), (7, 9), (16, 16), (15, 17), (33, 31), (1, 40), (40, 1), (3, 100), (100, 3), (65, 64)]


#: The kernels that tests of run-time sizes and of values share.
each_function = pytest.mark.parametrize(
    ("op", "row", "dtype"), crossed(UnaryOp, product(ROWS, ["f32", "f64"]), 4), ids=named
)


@each_function
def test_sizes_given_at_run_time(row: str, op: UnaryOp, dtype: str) -> None:
    """In `make test` layouts take turns."""
    for b in share(("col", "row"), 2, ROWS.index(row) + list(UnaryOp).index(op)):
        kernel = compiled(row, Unary(op, dtype=dtype, b=b))
        for number, (m, n) in enumerate([*SIZES, (200, 130)]):
            check(kernel, 3 * rough((m, n), kernel.problem.dtype.numpy, number), gap=number % 3)


@each_row
@each_layout
def test_hardcoded_sizes(row: str, b: str) -> None:
    """Every size, and every operation: in `make test` they take turns."""
    operations, first = list(UnaryOp), 2 * ROWS.index(row) + (b == "row")
    for number, (m, n) in enumerate([*SIZES, (2, 3), (2, 2)]):
        for op in share(operations, len(operations), number + 2 * first):
            kernel = compiled(row, Unary(op, m, n, ("f32", "f64")[(number + first) % 2], b=b))
            check(kernel, 3 * rough((m, n), kernel.problem.dtype.numpy, number), gap=number % 3)


@pytest.mark.parametrize(
    ("dtype", "row", "op"),
    crossed(["i8", "u8", "i16", "i32", "i64", "c64", "c128"], product(ROWS, ["zero", "identity"]), 4),
)
def test_elements_of_every_size(row: str, dtype: str, op: str) -> None:
    for b, (number, (m, n)) in product(("col", "row"), enumerate(SIZES)):
        hardcoded = (False, True) if EVERY_TEST_RUNS or number == (3, 9)[b == "row"] else (False,)
        for known in hardcoded:
            given = (m, n) if known and number % 3 == 0 else (None, None)
            kernel = compiled(row, Unary(op, given[0], given[1], dtype, b=b))
            kind = kernel.problem.dtype.numpy
            bits = np.random.default_rng(number).integers(0, 256, (m, n * kind.itemsize), np.uint8)
            if kind.kind == "c":
                bits = bits & 0x3F  # no NaN, which is not equal to itself
            check(kernel, bits.view(kind), gap=number % 2)


@draws(80)
@given(
    st.integers(1, 300),
    st.integers(1, 300),
    st.sampled_from(["identity", "square", "silu"]),
    st.sampled_from(["f32", "f64"]),
    st.sampled_from(["col", "row"]),
    st.integers(0, 3),
)
def test_any_size(m: int, n: int, op: str, dtype: str, b: str, gap: int) -> None:
    kernel = compiled(ROWS[0], Unary(op, dtype=dtype, b=b))
    check(kernel, rough((m, n), kernel.problem.dtype.numpy, m), gap)


@pytest.mark.parametrize(("b", "op"), crossed(["col", "row"], ["identity", "zero", "exp", "relu"], 2))
def test_beyond_the_caches(op: str, b: str) -> None:
    """So large that the kernel writes past the caches, at leading dimensions that are whole lines or not."""
    kernel = with_small_caches(Unary(op, b=b))
    n = 1202
    a = rough((kernel.blocking.stream_from // n + 5, n))
    for gap in (0, 7):  # B by rows is 1202 elements apart, or 1216: 76 lines
        check(kernel, a, gap)


@each_layout
@pytest.mark.parametrize("shape", [(2, 1), (3, 5), (16, 16), (20, 70), (70, 20), (200, 1)])
def test_streams_begin_anywhere_in_a_line(b: str, shape: tuple[int, int]) -> None:
    """Small matrices on the path of large ones, at every offset: nothing beside B changes."""
    m, n = shape
    function = compile_cut(Unary("negate", b=b), near=1, stream_from=1)
    a = np.asfortranarray(rough(shape))
    for offset in range(17):
        base = np.full(m * n + 40, OUTSIDE, np.float32)
        inside = base[offset : offset + m * n]
        function(a.ctypes.data, inside.ctypes.data, m, n if b == "row" else m, m, n)
        np.testing.assert_array_equal(inside, -a.ravel(order="C" if b == "row" else "F"))
        inside[...] = OUTSIDE
        assert (base == OUTSIDE).all()


def test_leads_in_machine_code() -> None:
    """Elements in front of the next line, as the interpreter counts them."""
    text = """\
program first
sizes
scalars
argument a f32
argument b f32
unary identity b[lead(a, 64); 1, 1] = a[lead(a, 64); 1, 1] rows 1 columns 1 near
"""
    function = Function(verify(parse_program(text)))
    raw = np.arange(1, 65, dtype=np.float32)
    for offset in range(20):
        a, b = raw[offset:], np.zeros(16, np.float32)
        function(a.ctypes.data, b.ctypes.data)
        (place,) = np.flatnonzero(b)
        assert (a.ctypes.data + 4 * place) % 64 == 0
        assert b[place] == a[place]


@each_row
def test_offsets_of_every_kind(row: str) -> None:
    """Arrays whose first element stands anywhere in a line."""
    kernel = compiled(row, Unary("negate", b="row"))
    raw, target = rough((200 * 90 + 40,)), np.zeros(200 * 90 + 40, np.float32)
    for offset_a, offset_b in product((0, 1, 4, 15), repeat=2):
        a = raw[offset_a : offset_a + 200 * 90].reshape(90, 200).T
        b = target[offset_b : offset_b + 200 * 90].reshape(200, 90)
        kernel(a, b)
        np.testing.assert_array_equal(b, -a)


# --- special values -------------------------------------------------------------------------------------

SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, -1e-310, 1e-45, 3e38, -3e38, 88.0, -104.0]


@each_function
def test_special_values(row: str, op: UnaryOp, dtype: str) -> None:
    """NaN, infinities, zeros and subnormal numbers, wherever they stand; the same in every place."""
    problem = Unary(op, dtype=dtype)
    with np.errstate(over="ignore"):
        values = np.array(SPECIAL).astype(problem.dtype.numpy)
    a = np.asfortranarray(np.resize(values, (3 * len(SPECIAL) + 1, 5)))
    b = np.full_like(a, OUTSIDE)
    compiled(row, problem)(None if op is UnaryOp.ZERO else a, b)
    with np.errstate(over="ignore"):
        expected = problem.reference(a).astype(a.dtype)
    tiny = float(np.finfo(a.dtype).smallest_subnormal)
    np.testing.assert_allclose(b, expected, rtol=TOLERANCE[dtype], atol=2 * tiny)
    turned = np.full(a.shape, OUTSIDE, a.dtype)
    compiled(row, Unary(op, dtype=dtype, b="row"))(None if op is UnaryOp.ZERO else a, turned)
    np.testing.assert_array_equal(
        turned.view(f"u{a.itemsize}"), np.ascontiguousarray(b).view(f"u{a.itemsize}")
    )


@each_row
@pytest.mark.parametrize("op", ["identity", "negate", "relu"])
def test_signs_and_payloads(row: str, op: str) -> None:
    """Bits, not values: a NaN keeps its payload, a zero its sign."""
    bits = np.array([[0x7FC12345, 0xFFC54321, 0x80000000, 0x00000000, 0x7F812345]] * 9, np.uint32).T
    a = (
        np.asfortranarray(bits).view(np.float32)
        if op != "relu"
        else np.asfortranarray(bits[:4]).view(np.float32)
    )
    b = np.zeros(a.shape, np.float32)
    compiled(row, Unary(op, b="row"))(a, b)
    expected = a.view(np.uint32) ^ (np.uint32(0x80000000) if op == "negate" else np.uint32(0))
    np.testing.assert_array_equal(b.view(np.uint32), expected)


@pytest.mark.skipif(not FENV, reason="the C library's fenv.h is not known here")
@pytest.mark.parametrize(
    ("row", "op", "dtype", "b"),
    pairwise(
        ROWS, ["reciprocal", "square", "exp", "tanh", "gelu", "sigmoid"], ["f32", "f64"], ["col", "row"]
    ),
)
def test_no_flags_from_lanes_that_are_not_there(row: str, op: str, dtype: str, b: str) -> None:
    """A padding lane of zero would divide by zero; there are none, also in the rest of a register."""
    for m, n in SIZES:
        given = (m, n) if m < 4 else (None, None)
        kernel = compiled(row, Unary(op, given[0], given[1], dtype, b=b))
        a = np.asfortranarray(np.full((m, n), 1.5, kernel.problem.dtype.numpy))
        target = np.empty_like(a, order="F" if b == "col" else "C")
        kernel(a, target)
        with no_flags():
            kernel(a, target)


# --- in place and overlap -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "op", "dtype"), pairwise(ROWS, ["square", "negate", "exp", "identity"], ["f32", "f64"])
)
def test_in_place(row: str, op: str, dtype: str) -> None:
    """Every element is read before it is written, and once, also where vectors overlap."""
    problem = Unary(op, dtype=dtype)
    kernel = compiled(row, problem)
    for number, (m, n) in enumerate([*SIZES, (500, 3)]):
        for gap in (0, 3):
            dense = rough((m, n), problem.dtype.numpy, number)
            a, base = laid_out(dense, "col", gap)
            separate = np.empty_like(dense, order="F")
            kernel(np.asfortranarray(dense), separate)
            assert kernel(a, a) is a
            np.testing.assert_array_equal(a, separate)
            a[...] = OUTSIDE
            assert (base == OUTSIDE).all()


def test_in_place_beyond_the_caches() -> None:
    kernel = with_small_caches(Unary("square"))
    a = np.asfortranarray(rough((kernel.blocking.stream_from // 1000 + 3, 1001)))
    expected = a * a
    kernel(a, a)
    np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize("b", ["col", "row"])
def test_overlap_is_refused(b: str) -> None:
    raw = np.arange(100, dtype=np.float32)
    kernel = compiled(ROWS[0], Unary("negate", b=b))
    first, second = raw[:64].reshape(8, 8), raw[5:69].reshape(8, 8)
    before = raw.copy()
    with pytest.raises(OperandMismatch, match="shared with b"):
        kernel(first.T, second if b == "row" else second.T)
    np.testing.assert_array_equal(raw, before)


def test_a_transpose_in_place_is_refused() -> None:
    a = np.arange(9, dtype=np.float32).reshape(3, 3)
    with pytest.raises(OperandMismatch, match="shared with b"):
        compiled(ROWS[0], Unary("identity", b="row"))(a.T, a)


def test_a_line_is_its_own_transpose() -> None:
    a = np.arange(5, dtype=np.float32).reshape(1, 5)
    compiled(ROWS[0], Unary("negate", b="row"))(a, a)
    np.testing.assert_array_equal(a, [[0, -1, -2, -3, -4]])


# --- any strides ----------------------------------------------------------------------------------------


@each_row
@pytest.mark.parametrize("dtype", ["i8", "i32", "c128"])
def test_strided_kernels(row: str, dtype: str) -> None:
    kernel = compiled(row, Unary("identity", dtype=dtype, a="strided", b="strided"))
    base = np.arange(200 * 200).reshape(200, 200).astype(kernel.problem.dtype.numpy)
    views = [base, base.T, base[::2, ::3], base[::-1], base[:, ::-1].T, base[:1, :50], base[:50, :1]]
    for view, layout in product(views, ("C", "F", "strided")):
        b = np.zeros_like(view, order="F" if layout == "F" else "C")
        if layout == "strided":
            b = np.zeros(tuple(2 * size for size in view.shape), view.dtype)[::2, ::2]
        kernel(view, b)
        np.testing.assert_array_equal(b, view)


# --- the C function -------------------------------------------------------------------------------------


@each_row
@each_layout
def test_the_c_function_of_listing_7_3_1(row: str, b: str) -> None:
    """a, b, ld_a, ld_b: leading dimensions in elements."""
    kernel = compiled(row, Unary("relu", 11, 20, "f64", b=b))
    dense = rough((11, 20), np.float64)
    _, base_a = laid_out(dense, "col", 3)
    view_b, base_b = laid_out(np.zeros_like(dense), b, 5)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    function(kernel.address)(base_a.ctypes.data, base_b.ctypes.data, base_a.shape[1], base_b.shape[1])
    np.testing.assert_array_equal(view_b, np.maximum(dense, 0))


@each_row
def test_the_zero_kernel_takes_no_a(row: str) -> None:
    """Listing 7.3.1: nullptr and 0."""
    kernel = compiled(row, Unary("zero", 5, 7))
    b = np.ones((7, 5), np.float32)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    function(kernel.address)(None, b.ctypes.data, 0, 5)
    assert not b.any()


def test_sizes_follow_the_leading_dimensions() -> None:
    kernel = compiled(ROWS[0], Unary("negate", None, 7, b="row"))
    a, b = np.arange(21, dtype=np.float32).reshape(7, 3), np.zeros((3, 7), np.float32)
    kinds = [ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int64] * 4]
    ctypes.CFUNCTYPE(None, *kinds)(kernel.address)(a.ctypes.data, b.ctypes.data, 3, 7, 3, 7)
    np.testing.assert_array_equal(b, -a.T)


# --- the kernel object ----------------------------------------------------------------------------------


def test_description() -> None:
    problem = Unary("relu", 64, 48, b="row")
    kernel = compiled(ROWS[0], problem)
    assert isinstance(kernel, tw.Kernel)
    assert kernel.problem is problem
    assert kernel.name == kernel.symbol == f"unary_relu_f32_64x48_cr_{ROWS[0]}"
    assert kernel.name in repr(kernel)
    assert (kernel.flops, kernel.bytes) == (64 * 48, 2 * 64 * 48 * 4)
    assert f"define void @{kernel.name}(" in kernel.llvm_ir
    assert f"program {kernel.name}" in kernel.tile_ir
    assert f"{kernel.name}:" in kernel.assembly
    assert kernel.name.encode() in kernel.object_code
    assert kernel.scratch_bytes == 0


def test_pickles_as_its_problem() -> None:
    kernel = compiled(ROWS[0], Unary("gelu", 5, None, "f64"))
    after = pickle.loads(pickle.dumps(kernel))
    assert (type(after), after.problem, after.machine) == (UnaryKernel, kernel.problem, kernel.machine)
    a = np.asfortranarray(rough((5, 9), np.float64))
    np.testing.assert_array_equal(after(a, np.empty_like(a)), kernel(a, np.empty_like(a)))


def test_a_kernel_of_another_machine_is_not_run() -> None:
    kernel = tw.compile(Unary("identity", 4, 4, b="row"), "neoverse-v2")
    if kernel.machine.arch == tw.machine().arch:
        pytest.skip("it runs here")
    a = np.zeros((4, 4), np.float32, order="F")
    with pytest.raises(ForeignKernel, match="neoverse-v2"):
        kernel(a, np.zeros((4, 4), np.float32))


# --- errors ---------------------------------------------------------------------------------------------

A = np.asfortranarray(np.ones((4, 6), np.float32))
FIXED = Unary("relu", 4, 6, b="row")


def target() -> Array:
    return np.full((4, 6), OUTSIDE, np.float32)


BAD_A: list[tuple[Any, type[Exception], str]] = [
    (None, OperandMismatch, "operand a has type NoneType"),
    ([[1.0]], OperandMismatch, "operand a has type list"),
    (A.astype(np.float64), OperandMismatch, "operand a has dtype float64"),
    (A.astype(">f4"), OperandMismatch, "operand a has dtype >f4"),
    (A[0], OperandMismatch, "operand a has dimensions 1"),
    (A[:, :5], OperandMismatch, r"operand a has shape \(4, 5\), must be \(4, 6\)"),
    (np.ascontiguousarray(A), OperandMismatch, "operand a has stride of axis 0 24"),
    (unaligned(A), OperandMismatch, "operand a has alignment"),
    (A[:, ::-1], LeadingDimension, "operand a has leading dimension -4, must be at least 4"),
    (np.broadcast_to(A[:, :1], (4, 6)), LeadingDimension, "operand a has leading dimension 0"),
]


@pytest.mark.parametrize(("a", "kind", "words"), BAD_A, ids=[words for _, _, words in BAD_A])
def test_a_that_does_not_fit(a: Any, kind: type[Exception], words: str) -> None:
    b = target()
    with pytest.raises(kind, match=words):
        compiled(ROWS[0], FIXED)(a, b)
    assert (b == OUTSIDE).all(), "nothing is written before an error"


def read_only() -> Array:
    b = target()
    b.flags.writeable = False
    return b


BAD_B: list[tuple[Any, type[Exception], str]] = [
    (None, OperandMismatch, "operand b has type NoneType"),
    (target().astype(np.int32), OperandMismatch, "operand b has dtype int32"),
    (np.asfortranarray(target()), OperandMismatch, "operand b has stride of axis 1"),
    (target()[:3], OperandMismatch, r"operand b has shape \(3, 6\), must be \(4, 6\)"),
    (read_only(), OperandMismatch, "operand b has writeable = False"),
    (target()[::-1], LeadingDimension, "operand b has leading dimension -6, must be at least 6"),
]


@pytest.mark.parametrize(("b", "kind", "words"), BAD_B, ids=[words for _, _, words in BAD_B])
def test_b_that_does_not_fit(b: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        compiled(ROWS[0], FIXED)(A, b)


def test_shapes_that_differ() -> None:
    kernel = compiled(ROWS[0], Unary("relu", b="row"))
    with pytest.raises(OperandMismatch, match=r"operand a has shape \(4, 6\), must be \(4, 5\)"):
        kernel(A, target()[:, :5])


def test_the_zero_kernel_refuses_an_a() -> None:
    with pytest.raises(OperandMismatch, match="operand a has type ndarray, must be None"):
        compiled(ROWS[0], Unary("zero", 4, 6, b="row"))(A, target())


def test_a_strided_b_that_overlaps_itself() -> None:
    kernel = compiled(ROWS[0], Unary("identity", a="strided", b="strided"))
    b = np.lib.stride_tricks.as_strided(np.zeros(9, np.float32), (4, 6), (4, 4))
    with pytest.raises(LeadingDimension, match="operand b has leading dimension 1, must be at least 4"):
        kernel(A, b)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_empty_matrices(shape: tuple[int, int]) -> None:
    for op, b in product(("relu", "identity"), ("col", "row")):
        empty = np.zeros(shape, np.float32)
        assert compiled(ROWS[0], Unary(op, b=b))(empty, empty.copy()).shape == shape
