"""Batch-reduce kernels on every row of this host: exact results, every kind of array, the C function."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import ctypes
import pickle
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from shares import covering, looped
from support import FENV, Array, filled, host_rows, no_flags, unaligned
from tiers import crossed, pairwise

import tilewright as tw
from tilewright.errors import ForeignKernel, LeadingDimension, OperandMismatch
from tilewright.ir.nodes import Space
from tilewright.ops.batch_reduce.kernel import BatchReduceKernel
from tilewright.ops.batch_reduce.problem import BatchReduceGemm

ROWS = [isa.name for isa in host_rows()]
LAYOUTS = list(product(("row", "col"), repeat=3))
each_row = pytest.mark.parametrize("row", ROWS)
each_layout = pytest.mark.parametrize("layouts", LAYOUTS, ids="-".join)
each_dtype = pytest.mark.parametrize("dtype", ["f32", "f64"])
each_mode = pytest.mark.parametrize("mode", ["stride", "address"])

OUTSIDE = 99.0


@cache
def compiled(row: str, problem: BatchReduceGemm) -> Any:
    return tw.compile(problem, tw.machine(row))


def laid_out(dense: Array, layout: str, gap: int) -> tuple[Array, Array]:
    """A batch in a larger array, `gap` elements between lines and matrices: (view, all of it)."""
    by_rows = dense if layout == "row" else dense.swapaxes(1, 2)
    count, lines, length = by_rows.shape
    base = np.full((count, lines + (gap > 0), length + gap), OUTSIDE, dense.dtype)
    view = base[:, :lines, :length]
    view[...] = by_rows
    return (view if layout == "row" else view.swapaxes(1, 2)), base


def inputs(problem: BatchReduceGemm, seed: int = 0) -> tuple[Array, Array, Array]:
    kind = problem.dtype.numpy
    shapes = [(problem.count, problem.m, problem.k), (problem.count, problem.k, problem.n)]
    a, b = (filled(shape, kind, seed + number) for number, shape in enumerate(shapes))
    return a, b, filled((problem.m, problem.n), kind, seed + 2)


def check(kernel: Any, gap: int, seed: int = 0) -> None:
    """One product, exactly; nothing but C changes, and C is not read where it is replaced."""
    problem = kernel.problem
    dense_a, dense_b, dense_c = inputs(problem, seed)
    expected = problem.reference(dense_a, dense_b, dense_c)
    if problem.beta == 0:
        dense_c[...] = np.nan
    a, base_a = laid_out(dense_a, problem.a.value, gap)
    b, base_b = laid_out(dense_b, problem.b.value, 2 * gap)
    c, base_c = laid_out(dense_c[None], problem.c.value, gap)
    before = [base.copy() for base in (base_a, base_b)]
    assert kernel(a, b, c[0]) is not None
    np.testing.assert_array_equal(c[0], expected, str(problem))
    for base, old in zip((base_a, base_b), before, strict=True):
        np.testing.assert_array_equal(base, old, "an input changed")
    c[...] = OUTSIDE
    assert (base_c == OUTSIDE).all(), f"{problem}: wrote outside C"


@pytest.mark.parametrize(
    ("row", "dtype", "layouts", "beta", "mode"),
    pairwise(ROWS, ["f32", "f64"], LAYOUTS, [0, 1], ["stride", "address"]),
)
def test_random_sizes(row: str, dtype: str, layouts: tuple[str, str, str], beta: int, mode: str) -> None:
    random = np.random.default_rng([len(row), LAYOUTS.index(layouts), int(dtype[1:]), beta, len(mode)])
    a, b, c = layouts
    for largest in (12, 70):
        m, n, k = (int(size) for size in random.integers(1, largest + 1, 3))
        count = int(random.integers(1, 5))
        problem = BatchReduceGemm(m, n, k, count, dtype, a=a, b=b, c=c, beta=beta, batch=mode)
        for gap in (0, 3):
            check(compiled(row, problem), gap, seed=m)


EACH_LAYOUT = [[one] for one in LAYOUTS]
SQUARES = (1, 5, 13, 23, 64, 100)


@pytest.mark.parametrize(("row", "n", "layouts"), crossed(product(ROWS, SQUARES), EACH_LAYOUT, 5))
def test_squares(row: str, n: int, layouts: tuple[str, str, str]) -> None:
    a, b, c = layouts
    check(compiled(row, BatchReduceGemm(n, n, n, 1, a=a, b=b, c=c, beta=n % 2)), gap=0)


DEPTHS = (1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 64, 65, 500, 2048)


@each_row
def test_every_depth_of_an_unrolled_loop(row: str) -> None:
    found = covering(ROWS, DEPTHS, ((3, 5), (16, 6), (33, 17)), (("col", 1), ("row", 0)))
    for _, k, (m, n), (a, beta) in (case for case in found if case[0] == row):
        check(compiled(row, BatchReduceGemm(m, n, k, 2, a=a, beta=beta)), gap=1)


@each_row
@each_mode
def test_a_panel_that_fills_the_frame(row: str, mode: str) -> None:
    check(compiled(row, BatchReduceGemm(70, 7, 2048, 2, "f64", a="row", batch=mode)), gap=1)


# --- kinds of arrays ------------------------------------------------------------------------------------

#: One batch of (5, m, n) matrices in several places of memory; every axis but the innermost at any stride.
BATCHES: dict[str, Callable[[Array], Array]] = {
    "adjacent": lambda dense: dense.copy(),
    "reversed": lambda dense: dense[::-1].copy()[::-1],
    "every other": lambda dense: np.repeat(dense, 2, axis=0)[::2],
    "interleaved": lambda dense: dense.swapaxes(0, 1).copy().swapaxes(0, 1),
    "read-only": lambda dense: np.frombuffer(dense.tobytes(), dense.dtype).reshape(dense.shape),
}


@each_row
@looped("of_b", BATCHES)
@looped("of_a", BATCHES)
def test_batch_strides(row: str, of_a: str, of_b: str) -> None:
    problem = BatchReduceGemm(9, 21, 6, 5, a="row", b="row", c="row")
    a, b, c = inputs(problem)
    expected = problem.reference(a, b, c)
    compiled(row, problem)(BATCHES[of_a](a), BATCHES[of_b](b), c)
    np.testing.assert_array_equal(c, expected)


#: One kernel of each for every test that asks nothing else of its sizes.
each_kernel = pytest.mark.parametrize(("row", "layouts", "dtype"), pairwise(ROWS, LAYOUTS, ["f32", "f64"]))


def problem_of(layouts: tuple[str, str, str], dtype: str, mode: str = "stride") -> BatchReduceGemm:
    a, b, c = layouts
    return BatchReduceGemm(19, 10, 7, 6, dtype, a=a, b=b, c=c, batch=mode)


@each_kernel
def test_one_matrix_for_the_whole_batch(row: str, layouts: tuple[str, str, str], dtype: str) -> None:
    """A batch stride of zero is a stride like another."""
    (a, b, c), problem = layouts, problem_of(layouts, dtype)
    dense_a, dense_b, content = inputs(problem)
    dense_a[...] = dense_a[0]
    expected = problem.reference(dense_a, dense_b, content)
    view_a, view_b = laid_out(dense_a[:1], a, 2)[0], laid_out(dense_b, b, 0)[0]
    found = laid_out(content[None], c, 0)[0][0]
    repeated = as_strided(view_a, dense_a.shape, (0, *view_a.strides[1:]))
    np.testing.assert_array_equal(compiled(row, problem)(repeated, view_b, found), expected)


@each_row
@each_mode
def test_a_batch_of_one(row: str, mode: str) -> None:
    """2-D arrays, 3-D arrays and lists of one matrix."""
    problem = BatchReduceGemm(6, 5, 4, 1, a="row", b="row", c="row", beta=0, batch=mode)
    a, b, _ = inputs(problem)
    for left, right in product((a, a[0], [a[0]]), (b, b[0], [b[0]])):
        c = np.full((6, 5), np.nan, np.float32)
        assert compiled(row, problem)(left, right, c) is c
        np.testing.assert_array_equal(c, a[0] @ b[0])


@each_kernel
def test_matrices_anywhere(row: str, layouts: tuple[str, str, str], dtype: str) -> None:
    """Address mode: matrices in no order, one of them several times, in a list, a tuple or an array."""
    (a, b, c), problem = layouts, problem_of(layouts, dtype, "address")
    dense_a, dense_b, content = inputs(problem)
    dense_a[3] = dense_a[1]
    expected = problem.reference(dense_a, dense_b, content)
    kernel, order = compiled(row, problem), (4, 0, 5, 2, 1)
    scattered: list[Any] = [None] * 6
    for number in order:
        scattered[number] = laid_out(dense_a[number : number + 1], a, 5)[0][0]
    scattered[3] = scattered[1]
    view_b = laid_out(dense_b, b, 1)[0]
    for left, right in product((scattered, tuple(scattered)), (view_b, list(view_b))):
        found = laid_out(content[None], c, 2)[0][0]
        np.testing.assert_array_equal(kernel(left, right, found), expected)


@each_row
def test_shapes_whose_layout_is_ambiguous(row: str) -> None:
    """One row, one column or one depth: either order of axes fits, whatever NumPy says of strides."""
    found = covering(ROWS, ("stride", "address"), product((1, 3), repeat=3), LAYOUTS)
    for _, mode, (m, n, k), (a, b, c) in (case for case in found if case[0] == row):
        problem = BatchReduceGemm(m, n, k, 2, a=a, b=b, c=c, batch=mode)
        dense_a, dense_b, content = inputs(problem)
        expected = problem.reference(dense_a, dense_b, content)
        arrays = [
            dense if 1 in dense.shape[-2:] else laid_out(np.atleast_3d(dense), layout, 0)[0]
            for dense, layout in ((dense_a, a), (dense_b, b))
        ]
        out = np.array(content, order="C" if c == "row" else "F")
        np.testing.assert_array_equal(compiled(row, problem)(arrays[0], arrays[1], out), expected)


# --- values ---------------------------------------------------------------------------------------------


@each_kernel
def test_nan_and_infinity_stay_in_their_row_and_column(
    row: str, layouts: tuple[str, str, str], dtype: str
) -> None:
    a, b, c = layouts
    problem = BatchReduceGemm(13, 21, 5, 2, dtype, a=a, b=b, c=c, beta=0)
    dense_a, dense_b, _ = inputs(problem)
    dense_a, dense_b = abs(dense_a) + 1, abs(dense_b) + 1
    dense_a[1, 12, 4] = np.nan
    dense_b[0, 2, 20] = np.inf
    expected = problem.reference(dense_a, dense_b)
    arrays = [laid_out(*each, 0)[0] for each in ((dense_a, a), (dense_b, b))]
    found = laid_out(np.zeros((1, 13, 21), problem.dtype.numpy), c, 0)[0][0]
    np.testing.assert_array_equal(compiled(row, problem)(arrays[0], arrays[1], found), expected)
    assert np.isnan(found).sum() == 21
    assert np.isinf(found).sum() == 12


@pytest.mark.skipif(not FENV, reason="the C library's fenv.h is not known here")
@pytest.mark.parametrize(
    ("layouts", "row", "sizes"),
    crossed(([layouts] for layouts in LAYOUTS), product(ROWS, [(5, 3, 7), (13, 37, 9), (37, 13, 33)]), 6),
)
def test_no_flags_from_lanes_that_are_not_there(
    row: str, layouts: tuple[str, str, str], sizes: tuple[int, int, int]
) -> None:
    """Inf times a positive number is no exception; Inf times the zero of a padding lane would be one."""
    (a, b, c), (m, n, k) = layouts, sizes
    for where in "abc":
        problem = BatchReduceGemm(m, n, k, 2, a=a, b=b, c=c)
        dense = dict(zip("abc", (np.ones_like(each) for each in inputs(problem)), strict=True))
        dense[where][...] = np.inf
        left, right = (laid_out(dense[name], layout, 0)[0] for name, layout in (("a", a), ("b", b)))
        found = laid_out(dense["c"][None], c, 0)[0][0]
        kernel = compiled(row, problem)
        assert kernel.address
        with no_flags():
            kernel(left, right, found)
        assert np.isposinf(found).all()


# --- the C function -------------------------------------------------------------------------------------

BRGEMM = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 5)


@each_kernel
def test_the_c_function_of_listing_7_2_1(row: str, layouts: tuple[str, str, str], dtype: str) -> None:
    """a, b, c, ld_a, ld_b, ld_c, br_stride_a, br_stride_b: the last five in elements."""
    (a, b, c), problem = layouts, problem_of(layouts, dtype)
    dense_a, dense_b, content = inputs(problem)
    expected = problem.reference(dense_a, dense_b, content)
    views = [laid_out(*each) for each in ((dense_a, a, 2), (dense_b, b, 5), (content[None], c, 1))]
    pointers = [base.ctypes.data for _, base in views]
    leading = [base.shape[2] for _, base in views]
    steps = [base.shape[1] * base.shape[2] for _, base in views[:2]]
    kernel = compiled(row, problem)
    BRGEMM(kernel.address)(*pointers, *leading, *steps)
    np.testing.assert_array_equal(views[2][0][0], expected)


@each_kernel
def test_the_c_function_with_arrays_of_pointers(row: str, layouts: tuple[str, str, str], dtype: str) -> None:
    """The batch strides are not read."""
    (a, b, c), problem = layouts, problem_of(layouts, dtype, "address")
    dense_a, dense_b, content = inputs(problem)
    expected = problem.reference(dense_a, dense_b, content)
    (view_a, base_a), (view_b, base_b), (view_c, base_c) = (
        laid_out(*each) for each in ((dense_a, a, 2), (dense_b, b, 5), (content[None], c, 1))
    )
    arrays = [(ctypes.c_void_p * 6)(*(matrix.ctypes.data for matrix in view)) for view in (view_a, view_b)]
    leading = [base.shape[2] for base in (base_a, base_b, base_c)]
    kernel = compiled(row, problem)
    BRGEMM(kernel.address)(*arrays, base_c.ctypes.data, *leading, 2**62, -(2**62))
    np.testing.assert_array_equal(view_c[0], expected)


# --- the kernel object ----------------------------------------------------------------------------------


def test_description() -> None:
    problem = BatchReduceGemm(64, 48, 64, 16)
    kernel = compiled(ROWS[0], problem)
    assert isinstance(kernel, BatchReduceKernel)
    assert isinstance(kernel, tw.Kernel)
    assert kernel.problem is problem
    assert kernel.name == kernel.symbol == f"brgemm_f32_64x48x64x16_ccc_{ROWS[0]}"
    assert kernel.name in repr(kernel)
    assert kernel.flops == 2 * 64 * 48 * 64 * 16
    assert f"define void @{kernel.name}(" in kernel.llvm_ir
    assert f"program {kernel.name}" in kernel.tile_ir
    assert f"{kernel.name}:" in kernel.assembly
    assert kernel.name.encode() in kernel.object_code
    assert kernel.scratch_bytes == 0
    assert sum(rows * count for rows, count in kernel.blocking.heights) == 48


@pytest.mark.parametrize("mode", ["stride", "address"])
@pytest.mark.parametrize("row", [None, *ROWS])
def test_pickle(row: str | None, mode: str) -> None:
    problem = BatchReduceGemm(6, 5, 4, 2, "f64", a="row", b="row", c="row", batch=mode)
    kernel = tw.compile(problem, None if row is None else tw.machine(row))
    copy = pickle.loads(pickle.dumps(kernel))
    assert type(copy) is BatchReduceKernel
    assert (copy.problem, copy.machine, copy.name) == (kernel.problem, kernel.machine, kernel.name)
    a, b, c = inputs(problem)
    expected = problem.reference(a, b, c)
    np.testing.assert_array_equal(copy(a, b, c), expected)


def test_kernels_of_other_machines_do_not_run() -> None:
    foreign = "znver5" if tw.machine().arch == "aarch64" else "neoverse-v2"
    problem = BatchReduceGemm(6, 5, 4, 1, a="row", b="row", c="row")
    kernel = pickle.loads(pickle.dumps(tw.compile(problem, foreign)))
    assert kernel.machine.name == foreign
    a, b, c = inputs(problem)
    before = c.copy()
    with pytest.raises(ForeignKernel, match=f"{kernel.name} was compiled for {foreign}"):
        kernel(a, b, c)
    np.testing.assert_array_equal(c, before)


@pytest.mark.compiled_well
@each_row
@pytest.mark.parametrize(
    ("layouts", "dtype", "packed"),
    [("ccc", "f32", False), ("rrr", "f64", False), ("ccr", "f32", True), ("rcc", "f64", True)],
)
def test_the_largest_kernels_compile(row: str, dtype: str, layouts: str, *, packed: bool) -> None:
    """Loops over equal tiles, not copies: the code stays small, and the panel fits any thread's stack."""
    a, b, c = ({"r": "row", "c": "col"}[letter] for letter in layouts)
    kernel = tw.compile(BatchReduceGemm(1024, 1024, 2048, 1024, dtype, a=a, b=b, c=c), tw.machine(row))
    nest = kernel.compilation.nest
    assert nest is not None
    local = [(buffer.size or 0) * buffer.dtype.size for buffer in nest.buffers if buffer.space is Space.LOCAL]
    assert len(local) == packed
    assert sum(local) <= 128 << 10
    assert kernel.address
    assert len(kernel.object_code) <= 32 << 10


# --- arrays that do not fit -----------------------------------------------------------------------------

PROBLEM = {
    mode: BatchReduceGemm(4, 6, 5, 2, a="row", b="row", c="row", batch=mode) for mode in ("stride", "address")
}
A, B, _ = inputs(PROBLEM["stride"])
C = np.full((4, 6), 7, np.float32)


def frozen() -> Array:
    array = C.copy()
    array.flags.writeable = False
    return array


def overlapping(array: Array, leading: int) -> Array:
    """The same shape with rows `leading` elements apart."""
    strides = (*array.strides[:-2], 4 * leading, 4)
    room = np.zeros(2 * array.size, np.float32)
    return as_strided(room[array.size :], array.shape, strides)


WRONG: dict[str, tuple[dict[str, Any], type[Exception], tuple[str, ...]]] = {
    "dtype of a": ({"a": A.astype(float)}, OperandMismatch, ("operand a", "float64", "float32")),
    "dtype of c": ({"c": C.astype(float)}, OperandMismatch, ("operand c", "float64")),
    "byte order": ({"b": B.astype(">f4")}, OperandMismatch, ("operand b", ">f4")),
    "none for a": ({"a": None}, OperandMismatch, ("operand a", "NoneType")),
    "number for b": ({"b": 3.0}, OperandMismatch, ("operand b", "float")),
    "none for c": ({"c": None}, OperandMismatch, ("operand c", "NoneType")),
    "nested lists": ({"a": A.tolist()}, OperandMismatch, ("operand a", "list")),
    "none inside": ({"a": [A[0], None]}, OperandMismatch, ("operand a",)),
    "one matrix": ({"a": A[0]}, OperandMismatch, ("operand a",)),
    "one matrix of as many rows as the batch": (
        {"b": B[0, :2]},
        OperandMismatch,
        ("operand b", "dimensions"),
    ),
    "four axes": ({"a": A[:, None]}, OperandMismatch, ("operand a", "dimensions", "3", "2")),
    "no axes": ({"a": np.float32(1)}, OperandMismatch, ("operand a",)),
    "array without axes": ({"b": np.zeros((), np.float32)}, OperandMismatch, ("operand b",)),
    "batch of c": ({"c": C[None]}, OperandMismatch, ("operand c", "dimensions", "3", "2")),
    "short batch": ({"a": A[:1]}, OperandMismatch, ("operand a", "count 1", "2")),
    "long batch": ({"b": np.concatenate([B, B])}, OperandMismatch, ("operand b", "count 4", "2")),
    "empty batch": ({"b": B[:0]}, OperandMismatch, ("operand b", "count 0", "2")),
    "rows of a": ({"a": A[:, :3]}, OperandMismatch, ("operand a", "shape (3, 5)", "(4, 5)")),
    "depth of a": ({"a": A[..., :4]}, OperandMismatch, ("operand a", "shape (4, 4)", "(4, 5)")),
    "depth of b": ({"b": B[:, :4]}, OperandMismatch, ("operand b", "shape (4, 6)", "(5, 6)")),
    "columns of c": ({"c": C[:, :5].copy()}, OperandMismatch, ("operand c", "shape (4, 5)", "(4, 6)")),
    "column-major a": (
        {"a": A.swapaxes(1, 2).copy().swapaxes(1, 2)},
        OperandMismatch,
        ("operand a", "stride of axis 1", "row layout"),
    ),
    "column-major c": ({"c": np.array(C, order="F")}, OperandMismatch, ("operand c", "stride of axis 1")),
    "reversed columns": ({"b": B[..., ::-1]}, OperandMismatch, ("operand b", "stride of axis 1", "-4")),
    "unaligned": ({"a": unaligned(A)}, OperandMismatch, ("operand a", "alignment")),
    "unaligned c": ({"c": unaligned(C)}, OperandMismatch, ("operand c", "alignment")),
    "read-only c": ({"c": frozen()}, OperandMismatch, ("operand c", "writeable")),
    "repeated rows of a": (
        {"a": np.broadcast_to(A[:, :1], A.shape)},
        LeadingDimension,
        ("operand a", "leading dimension 0", "at least 5"),
    ),
    "overlapping rows of b": (
        {"b": overlapping(B, 5)},
        LeadingDimension,
        ("operand b", "leading dimension 5", "at least 6"),
    ),
    "overlapping rows of c": (
        {"c": overlapping(C, 5)},
        LeadingDimension,
        ("operand c", "leading dimension 5", "at least 6"),
    ),
    "reversed rows": (
        {"a": A[:, ::-1]},
        LeadingDimension,
        ("operand a", "leading dimension -5", "at least 5"),
    ),
}


@looped("wrong", WRONG)
@each_mode
def test_operands_that_do_not_fit(wrong: str, mode: str) -> None:
    changed, kind, words = WRONG[wrong]
    kernel = compiled(ROWS[0], PROBLEM[mode])
    arrays = {"a": A, "b": B, "c": C.copy()} | changed
    if isinstance(arrays["c"], np.ndarray) and arrays["c"].flags.writeable:
        arrays["c"][...] = 7
    with pytest.raises(kind) as caught:
        kernel(*arrays.values())
    assert isinstance(caught.value, ValueError)
    for word in (kernel.name, *words):
        assert word in str(caught.value)
    if isinstance(arrays["c"], np.ndarray):
        assert (arrays["c"] == 7).all(), "nothing is written"


def test_a_list_has_no_stride() -> None:
    """Stride mode: several matrices must be one array."""
    with pytest.raises(OperandMismatch, match=r"operand a has type list, must be a 3-D numpy\.ndarray"):
        compiled(ROWS[0], PROBLEM["stride"])(list(A), B, C.copy())


def test_leading_dimensions_that_differ() -> None:
    """Address mode: there is one leading dimension for the whole batch."""
    wider = laid_out(A, "row", 3)[0]
    with pytest.raises(OperandMismatch, match=r"operand a has leading dimensions \[5, 8\]"):
        compiled(ROWS[0], PROBLEM["address"])([A[0], wider[1]], B, C.copy())


@each_mode
@pytest.mark.parametrize("name", ["a", "b"])
def test_operands_that_share_memory_with_c(name: str, mode: str) -> None:
    problem = BatchReduceGemm(5, 5, 5, 2, a="row", b="row", c="row", batch=mode)
    base = filled((2, 5, 5))
    a, b = (base if own == name else base.copy() for own in "ab")
    with pytest.raises(OperandMismatch, match=f"operand {name} has memory shared with c"):
        compiled(ROWS[0], problem)(a, b, base[1])
    np.testing.assert_array_equal(base, filled((2, 5, 5)))


@pytest.mark.parametrize("call", [(), (A,), (A, B), (A, B, C, 1)], ids=len)
def test_calls_without_three_arrays(call: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        compiled(ROWS[0], PROBLEM["stride"])(*call)
