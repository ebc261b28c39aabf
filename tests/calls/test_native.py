"""Native entries of kernels: the same results and errors as the kernel itself, without Python in between."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import gc
import inspect
import pickle
import sys
import threading
import time
import tracemalloc
import types
import weakref
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from repeated_calls import python_lines
from shares import looped
from support import LAYOUTS, Array, filled, host_rows, rough, unaligned
from tiers import crossed, pairwise

import tilewright as tw
from tilewright.calls import repeated
from tilewright.calls.layout import native_entry_possible
from tilewright.calls.repeated import repeated_method, replay
from tilewright.compiler import scratch
from tilewright.errors import ForeignKernel, LeadingDimension, OperandMismatch
from tilewright.ops.batch_reduce.kernel import BatchReduceKernel
from tilewright.ops.gemm import kernel as gemm
from tilewright.recorder import Numbered
from tilewright.threads.scratch import ScratchPool

needs_native = pytest.mark.skipif(not native_entry_possible(), reason="this interpreter has no native entry")
ROWS = [isa.name for isa in host_rows()]
TRIPLES = list(product(("row", "col"), repeat=3))
each_triple = pytest.mark.parametrize("layouts", TRIPLES, ids="-".join)


@cache
def reduce_kernel(
    *sizes: int, dtype: str = "f32", layouts: tuple[str, ...] = ("row",) * 3, beta: int = 1, row: str = ""
) -> Any:
    m, n, k, count = sizes
    a, b, c = layouts
    problem = tw.BatchReduceGemm(m, n, k, count, dtype, a=a, b=b, c=c, beta=beta)
    return tw.compile(problem, tw.machine(row) if row else None)


@cache
def gemm_kernel(
    *sizes: int, dtype: str = "f32", layouts: tuple[str, ...] = ("row",) * 3, row: str = ""
) -> Any:
    m, n, k = sizes or (None, None, None)
    a, b, c = layouts
    return tw.compile(tw.Gemm(m, n, k, dtype, a=a, b=b, c=c), tw.machine(row) if row else None)


def laid_out(dense: Array, layout: str, gap: int) -> Array:
    """The matrices of a batch in a larger array, `gap` elements between lines and between matrices."""
    by_rows = dense if layout == "row" else dense.swapaxes(1, 2)
    count, lines, length = by_rows.shape
    base = np.full((count, lines + (gap > 0), length + gap), 99, dense.dtype)
    view: Array = base[:, :lines, :length]
    view[...] = by_rows
    return view if layout == "row" else view.swapaxes(1, 2)


def operands(problem: tw.BatchReduceGemm, gap: int = 0) -> tuple[Array, Array, Array]:
    shapes = (
        (problem.count, problem.m, problem.k),
        (problem.count, problem.k, problem.n),
        (1, problem.m, problem.n),
    )
    layouts = (problem.a, problem.b, problem.c)
    a, b, c = (
        laid_out(rough(shape, problem.dtype.numpy, seed), layout.value, gap)
        for seed, (shape, layout) in enumerate(zip(shapes, layouts, strict=True))
    )
    return a, b, c[0]


def same_as_python(called: Any, a: Any, b: Any, c: Array) -> None:
    """Bitwise, without a line of Python after the first call, and c itself is returned."""
    expected = called(a, b, c.copy(order="K") if c.flags.forc else _copy_in_place(c))
    called.native(a, b, _copy_in_place(c))
    assert python_lines(lambda: called.native(a, b, c)) == 0
    np.testing.assert_array_equal(c, expected)


def _copy_in_place(c: Array) -> Array:
    """The same values at the same strides elsewhere."""
    base = c.base if c.base is not None else c
    other = base.copy()
    offset = c.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    view: Array = np.ndarray(c.shape, c.dtype, other, offset, c.strides)
    return view


# --- what the machine code takes ------------------------------------------------------------------------


@needs_native
@pytest.mark.parametrize(("dtype", "a", "b", "c"), pairwise(("f32", "f64"), *[("row", "col")] * 3))
def test_batch_reduce(dtype: str, a: str, b: str, c: str) -> None:
    for sizes in ((5, 7, 9, 1), (5, 7, 9, 3), (1, 1, 1, 1), (1, 6, 4, 2), (6, 1, 4, 1), (4, 6, 1, 2)):
        for beta, gap in product((0, 1), (0, 3)):
            called = reduce_kernel(*sizes, dtype=dtype, layouts=(a, b, c), beta=beta)
            same_as_python(called, *operands(called.problem, gap))


@needs_native
@pytest.mark.parametrize("row", ROWS)
def test_every_row(row: str) -> None:
    for called in (reduce_kernel(9, 17, 8, 2, row=row), reduce_kernel(30, 40, 50, 1, row=row)):
        same_as_python(called, *operands(called.problem))
    a, b, c = rough((30, 20)), rough((20, 70), seed=1), rough((30, 70))
    same_as_python(gemm_kernel(row=row), a, b, c)


TAKEN: dict[str, Callable[[Array], Array]] = {
    "reversed": lambda dense: dense[::-1].copy()[::-1],
    "repeated": lambda dense: as_strided(dense, strides=(0, *dense.strides[1:])),
    "every other": lambda dense: np.repeat(dense, 2, axis=0)[::2],
    "interleaved": lambda dense: dense.swapaxes(0, 1).copy().swapaxes(0, 1),
    "read-only": lambda dense: np.frombuffer(dense.tobytes(), dense.dtype).reshape(dense.shape),
}


@needs_native
@looped("of_b", TAKEN)
@looped("of_a", TAKEN)
def test_batches_at_any_stride(of_a: str, of_b: str) -> None:
    called = reduce_kernel(5, 7, 9, 4)
    a, b, c = operands(called.problem)
    same_as_python(called, TAKEN[of_a](a), TAKEN[of_b](b), c)


@needs_native
@pytest.mark.parametrize("axes", list(product((2, 3), repeat=2)))
def test_one_product_with_or_without_a_batch_axis(axes: tuple[int, int]) -> None:
    called = reduce_kernel(5, 7, 9, 1)
    a, b, c = operands(called.problem)
    same_as_python(called, a if axes[0] == 3 else a[0], b if axes[1] == 3 else b[0], c)


@needs_native
@pytest.mark.parametrize(
    ("layouts", "sizes"),
    crossed(
        ([layouts] for layouts in TRIPLES),
        ([sizes] for sizes in ((1, 6, 4, 1), (6, 1, 4, 1), (4, 6, 1, 1), (1, 1, 1, 1))),
        2,
    ),
    ids=str,
)
def test_axes_of_length_one_have_any_stride(
    layouts: tuple[str, str, str], sizes: tuple[int, int, int, int]
) -> None:
    for called in (reduce_kernel(*sizes, layouts=layouts), gemm_kernel(layouts=layouts)):
        arrays = [
            LAYOUTS[{"row": "C", "col": "F"}[layout]](filled(shape))
            for layout, shape in zip(
                layouts, ((sizes[0], sizes[2]), (sizes[2], sizes[1]), (sizes[0], sizes[1])), strict=True
            )
        ]
        strange = [
            as_strided(
                array,
                strides=[
                    stride if length > 1 else -92
                    for length, stride in zip(array.shape, array.strides, strict=True)
                ],
            )
            for array in arrays
        ]
        expected = called(*arrays)
        arrays[2][...] = filled(arrays[2].shape)
        called.native(*strange)
        np.testing.assert_array_equal(arrays[2], expected)


@needs_native
@pytest.mark.parametrize(("a_layout", "b_layout", "c_layout"), pairwise(*[("row", "col", "strided")] * 3))
def test_gemm(a_layout: str, b_layout: str, c_layout: str) -> None:
    layouts = a_layout, b_layout, c_layout
    places = {"row": ("C", "padded"), "col": ("F", "padded columns"), "strided": tuple(LAYOUTS)}
    for m, n, k in ((5, 7, 9), (1, 7, 9), (5, 1, 9), (5, 7, 1), (1, 1, 1), (40, 33, 20)):
        kernels = [gemm_kernel(layouts=layouts)]
        if (m, n, k) == (5, 7, 9):
            kernels.append(gemm_kernel(m, n, k, layouts=layouts))
        for called in kernels:
            for number in range(2):
                a, b, c = (
                    LAYOUTS[places[layout][-number]](rough(shape, seed=number))
                    for shape, layout in zip(((m, k), (k, n), (m, n)), layouts, strict=True)
                )
                same_as_python(called, a, b, c)


@needs_native
@pytest.mark.parametrize("strategy", ["tiling", "packing", "auto"])
def test_gemm_of_other_sizes_and_types(strategy: str) -> None:
    called = tw.compile(tw.Gemm(dtype="f64", strategy=strategy))
    a, b, c = rough((130, 110), float), rough((110, 120), float, 1), rough((130, 120), float)
    same_as_python(called, a, b, c)  # long enough to release the GIL
    for m, n, k in ((0, 4, 5), (4, 0, 5), (4, 5, 0), (0, 0, 0)):  # natively or not
        c = called.native(rough((m, k), float), rough((k, n), float), np.full((m, n), np.nan))
        np.testing.assert_array_equal(c, np.zeros((m, n)))


def test_nan_in_c_is_not_read() -> None:
    for called in (reduce_kernel(5, 7, 9, 1, beta=0), gemm_kernel()):
        a, b = filled((5, 9)), filled((9, 7), seed=1)
        np.testing.assert_array_equal(called.native(a, b, np.full((5, 7), np.nan, np.float32)), a @ b)


# --- what goes through Python -----------------------------------------------------------------------------


class Subclass(np.ndarray[Any, Any]):
    """Not a plain array."""


def test_arrays_that_only_python_takes() -> None:
    called = reduce_kernel(5, 7, 9, 2)
    a, b, c = operands(called.problem)
    expected = called(a, b, c.copy())
    for arrays in (
        (a.view(Subclass), b, c.copy()),
        (a, b.view(Subclass), c.copy()),
        (a, b, c.copy().view(Subclass)),
    ):
        assert called.native(*arrays) is arrays[2]
        np.testing.assert_array_equal(arrays[2], expected)
    np.testing.assert_array_equal(called.native(a, b, c=c.copy()), expected)
    np.testing.assert_array_equal(called.native(c=c.copy(), b=b, a=a), expected)


def test_c_between_the_matrices_of_a_batch() -> None:
    """Only Python looks at each matrix of a batch for itself."""
    called = reduce_kernel(4, 4, 4, 2)
    held = filled((3, 4, 4))
    expected = called.problem.reference(held[::2], held[::2], held[1])
    called.native(held[::2], held[::2], held[1])
    np.testing.assert_array_equal(held[1], expected)


def test_scalars_of_a_gemm() -> None:
    a, b, c = filled((5, 9)), filled((9, 7), seed=1), filled((5, 7), seed=2)
    np.testing.assert_array_equal(gemm_kernel().native(a, b, c.copy(), alpha=2, beta=-1), 2 * (a @ b) - c)


def test_operands_behind_pointers_and_kernels_of_another_machine() -> None:
    sizes = 5, 7, 9, 1
    a, b, c = filled((5, 9)), filled((9, 7), seed=1), np.zeros((5, 7), np.float32)
    called = tw.compile(tw.BatchReduceGemm(*sizes, a="row", b="row", c="row", batch="address"))
    assert np.array_equal(called.native([a], [b], c), a @ b)
    foreign = "znver5" if tw.machine().arch == "aarch64" else "neoverse-v2"
    with pytest.raises(ForeignKernel):
        tw.compile(tw.BatchReduceGemm(*sizes), foreign).native(a, b, c)


@pytest.mark.parametrize("possible", [False, pytest.param(True, marks=needs_native)])
def test_methods_of_numbered_objects(possible: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class Thing(Numbered):
        @repeated_method
        def add(self, *numbers: int, **named: int) -> int:
            """The sum."""
            return sum(numbers) + sum(named.values())

    monkeypatch.setattr(repeated, "native_entry_possible", lambda: possible)
    thing = Thing()
    assert callable(thing.add)
    gc.collect()
    assert isinstance(thing.add, types.BuiltinMethodType if possible else types.MethodType)
    assert thing.add.__self__ is thing
    assert (thing.add.__doc__ or "").strip() == "The sum."
    for count in (0, 3, 62, 63, 64, 65, 500):
        assert thing.add(*range(count)) == sum(range(count))
        assert thing.add(*range(count), **{f"n{number}": number for number in range(70)}) == sum(
            (*range(count), *range(70))
        )


# --- what is refused --------------------------------------------------------------------------------------

A, B, C = filled((5, 9)), filled((9, 7), seed=1), filled((5, 7), seed=2)
LARGE = filled((64, 64), seed=3)


def frozen(array: Array) -> Array:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def short_lines(array: Array) -> Array:
    """Lines that overlap each other: a leading dimension below the length of a line."""
    return as_strided(array, strides=(array.itemsize, array.itemsize))


#: One operand in a form that does not fit; every kernel below refuses it, or takes it through Python.
FORMS: dict[str, Callable[[Array], Any]] = {
    "list": lambda array: array.tolist(),
    "none": lambda array: None,
    "scalar": lambda array: np.float32(1),
    "0-d": lambda array: np.array(1, np.float32),
    "1-D": lambda array: array.ravel(),
    "3-D": lambda array: array[None],
    "two in a batch": lambda array: np.stack([array, array]),
    "4-D": lambda array: array[None, None],
    "empty": lambda array: array[:0],
    "f64": lambda array: array.astype(np.float64),
    "i32": lambda array: array.astype(np.int32),
    "byte order": lambda array: array.astype(array.dtype.newbyteorder()),
    "one row less": lambda array: array[:-1],
    "one column less": lambda array: array[:, :-1],
    "one row more": lambda array: np.vstack([array, array[:1]]),
    "transposed": lambda array: np.ascontiguousarray(array.T),
    "column-major": np.asfortranarray,
    "every other column": lambda array: np.repeat(array, 2, axis=1)[:, ::2],
    "reversed columns": lambda array: array[:, ::-1],
    "reversed rows": lambda array: array[::-1],
    "short lines": short_lines,
    "unaligned": unaligned,
    "read-only": frozen,
    "subclass": lambda array: array.view(Subclass),
    "padded": lambda array: np.pad(array, ((0, 0), (0, 3)))[:, : array.shape[1]],
    "in one array": lambda array: LARGE[: array.shape[0], : array.shape[1]],
    "in its other half": lambda array: LARGE[30 : 30 + array.shape[0], : array.shape[1]],
    "beside in its rows": lambda array: LARGE[: array.shape[0], 30 : 30 + array.shape[1]],
    "as it is": lambda array: array.copy(),
}


def outcome(function: Callable[..., Any], forms: tuple[str, str, str]) -> tuple[Any, ...]:
    """What a call gives: an exception, or the bits of c; and what became of the operands."""
    LARGE[...] = filled((64, 64), seed=3)
    arrays = [FORMS[form](array) for form, array in zip(forms, (A, B, C.copy()), strict=True)]
    before = [np.array(array).tobytes() for array in arrays]
    try:
        result = function(*arrays)
    except Exception as error:
        assert [np.array(array).tobytes() for array in arrays] == before, forms
        return type(error), str(error)
    assert result is arrays[2]
    return "c", np.array(result).tobytes()


def outcomes(called: Any, forms: tuple[str, str, str]) -> list[tuple[Any, ...]]:
    """Those of a call that Python makes, and of the same call on other arrays."""
    replay().table.clear()
    return [outcome(called, forms), outcome(called.native, forms)]


#: Kernels by what they show, made when a test needs them.
KERNELS: dict[str, Callable[[], Any]] = {
    "batch-reduce": lambda: reduce_kernel(5, 7, 9, 1),
    "batch": lambda: reduce_kernel(5, 7, 9, 2),
    "column-major": lambda: reduce_kernel(5, 7, 9, 1, layouts=("col",) * 3),
    "gemm": gemm_kernel,
    "fixed gemm": lambda: gemm_kernel(5, 7, 9),
    "strided gemm": lambda: gemm_kernel(layouts=("strided",) * 3),
    "column-major gemm": lambda: gemm_kernel(layouts=("col",) * 3),
}


@pytest.mark.parametrize("name", KERNELS)
@looped(("position", "form"), product(range(3), FORMS))
def test_one_operand_of_another_form(name: str, position: int, form: str) -> None:
    """The same exception with the same message, or the same bits, as through Python."""
    called = KERNELS[name]()
    forms = ["as it is"] * 3
    forms[position] = form
    triple = forms[0], forms[1], forms[2]
    first, second = outcomes(called, triple)
    assert first == second


@pytest.mark.parametrize("name", KERNELS)
def test_operands_of_any_forms(name: str) -> None:
    called = KERNELS[name]()
    random = np.random.default_rng(len(name))
    ordinary = [
        "as it is",
        "column-major",
        "padded",
        "in one array",
        "in its other half",
        "beside in its rows",
    ]
    for _ in range(300):
        names = ordinary if random.random() < 0.7 else list(FORMS)
        forms = [str(form) for form in random.choice(names, 3)]
        triple = forms[0], forms[1], forms[2]
        first, second = outcomes(called, triple)
        assert first == second, triple


@pytest.mark.parametrize("sizes", [(4, 7, 9), (5, 6, 9), (5, 7, 8)])
def test_arrays_of_other_sizes_that_fit_each_other(sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    a, b, c = filled((m, k)), filled((k, n)), np.zeros((m, n), np.float32)
    for called in (gemm_kernel(5, 7, 9), reduce_kernel(5, 7, 9, 1)):
        with pytest.raises(OperandMismatch):
            called.native(a, b, c)
        assert (c == 0).all()


@pytest.mark.parametrize("name", ["a", "b"])
@pytest.mark.parametrize("step", [-1, 1])
def test_a_batch_that_reaches_into_c(name: str, step: int) -> None:
    """The first or the last matrix of a batch, whichever way it walks."""
    called = reduce_kernel(4, 4, 4, 3)
    held = filled((3, 4, 4))
    separate = filled((3, 4, 4), seed=1)
    for index in (0, 1, 2):
        arrays = [held[::step] if own == name else separate for own in "ab"]
        with pytest.raises(OperandMismatch, match=f"operand {name} has memory shared with c"):
            called.native(*arrays, held[index])
        assert np.array_equal(held, filled((3, 4, 4)))


def test_leading_dimensions_below_the_line() -> None:
    with pytest.raises(LeadingDimension, match="operand b"):
        reduce_kernel(5, 7, 9, 1).native(A, short_lines(B), C.copy())


@looped("arguments", [(), (A,), (A, B), (A, B, C, C)])
@looped("name", KERNELS)
def test_another_number_of_arguments(name: str, arguments: tuple[Array, ...]) -> None:
    called = KERNELS[name]()
    with pytest.raises(TypeError, match="argument"):
        called.native(*arguments)
    laid_out = np.asfortranarray if name.startswith("column-major") else np.array
    with pytest.raises(TypeError, match=r"keyword argument 'd'|given: d"):
        called.native(*(laid_out(array) for array in (A, B, C)), d=1)


# --- objects and memory -----------------------------------------------------------------------------------


@needs_native
def test_it_is_a_builtin() -> None:
    called = reduce_kernel(5, 7, 9, 1)
    assert called.native is called.native
    assert type(called.native) is types.BuiltinFunctionType
    owner: Any = called.native.__self__
    assert owner is called
    assert called.native.__name__ == "__call__"
    assert str(inspect.signature(called.native)) == "(a, b, c)"
    assert called.native.__doc__
    again = pickle.loads(pickle.dumps(called.native))
    assert isinstance(again, types.BuiltinFunctionType)
    assert np.array_equal(again(A, B, C.copy()), C + A @ B)


@pytest.mark.parametrize("fits", [True, False])
@pytest.mark.parametrize("name", KERNELS)
def test_references_are_kept(name: str, fits: bool) -> None:
    called = KERNELS[name]()
    count = getattr(called.problem, "count", 1)
    a, b, c = (np.stack([A] * count), np.stack([B] * count), C.copy()) if count > 1 else (A, B, C.copy())
    if "column" in name:
        a, b, c = (np.asfortranarray(array) for array in (a, b, c))
    c = c if fits else c[:-1]
    watched = (a, b, c, called, called.native, a.dtype, np.ndarray, None)
    native_call = called.native

    def calls(number: int) -> None:
        for _ in range(number):
            try:
                native_call(a, b, c)
            except OperandMismatch:
                assert not fits

    calls(10)
    before = [sys.getrefcount(item) for item in watched]
    calls(2000)
    after = [sys.getrefcount(item) for item in watched]
    assert after[:-1] == before[:-1]
    assert abs(after[-1] - before[-1]) < 100, "None is shared with everything else"


@needs_native
def test_no_memory_is_taken_by_calls() -> None:
    for called in (reduce_kernel(5, 7, 9, 1), gemm_kernel()):
        native_call, c = called.native, C.copy()
        native_call(A, B, c)
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(20_000):
                native_call(A, B, c)
            growth = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
        assert growth < 1000


@needs_native
def test_code_goes_with_its_kernel() -> None:
    called = BatchReduceKernel(reduce_kernel(5, 7, 9, 1).compilation)
    native_call = called.native
    code, whole = weakref.ref(called._code), weakref.ref(called)
    del called
    gc.collect()
    assert np.array_equal(native_call(A, B, C.copy()), C + A @ B), "the builtin keeps its kernel"
    del native_call
    gc.collect()
    assert whole() is None
    assert code() is None


# --- the GIL and scratch ----------------------------------------------------------------------------------


@needs_native
@pytest.mark.compiled_well  # products of seconds otherwise
@pytest.mark.parametrize("name", ["batch-reduce", "gemm"])
def test_long_calls_release_the_gil(name: str) -> None:
    """Another thread runs in the second half of a call; beside other load, of one of some calls."""
    if name == "gemm":
        arrays, expected = [np.ones((2200, 2200), np.float32)] * 2, 2200
        native_call, c = gemm_kernel().native, np.empty((2200, 2200), np.float32)
    else:
        a, b = np.ones((1024, 2048), np.float32), np.ones((2048, 1024), np.float32)
        arrays = [as_strided(array, (4, *array.shape), (0, *array.strides)) for array in (a, b)]
        native_call, expected = reduce_kernel(1024, 1024, 2048, 4, beta=0).native, 4 * 2048
        c = np.empty((1024, 1024), np.float32)
    ticks: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.wait(0.001):
            ticks.append(time.perf_counter())

    def runs_beside() -> bool:
        start = time.perf_counter()
        native_call(*arrays, c)
        end = time.perf_counter()
        return any((start + end) / 2 < at < end - 0.002 for at in ticks)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        assert any(runs_beside() for _ in range(20))
    finally:
        done.set()
        thread.join()
    assert (c == expected).all()


@pytest.fixture
def own_pool(monkeypatch: pytest.MonkeyPatch) -> ScratchPool:
    """A pool in the place of the process's."""
    pool = ScratchPool(scratch.scratch_pool().size)
    for module in (scratch, gemm):
        monkeypatch.setattr(module, "scratch_pool", lambda: pool)
    return pool


@needs_native
def test_a_call_without_scratch_goes_through_python(own_pool: ScratchPool) -> None:
    called = tw.compile(tw.Gemm())
    for _ in range(2):
        called.native(A, B, C.copy())
    assert own_pool.table.count == 1
    held = own_pool.table.slots[0]
    own_pool.table.slots[0] = 0  # as if another thread were computing
    assert np.array_equal(called.native(A, B, C.copy()), A @ B)
    assert (own_pool.table.count, own_pool.table.wanted) == (2, 0)
    assert np.array_equal(called.native(A, B, C.copy()), A @ B)
    own_pool.table.slots[0] = held


@needs_native
def test_threads_share_a_kernel() -> None:
    called = tw.compile(tw.Gemm())
    a, b = filled((150, 140)), filled((140, 130), seed=1)  # long enough to release the GIL
    expected = a @ b
    wrong: list[int] = []

    def work() -> None:
        c = np.empty((150, 130), np.float32)
        for _ in range(200):
            c[...] = -1
            if not np.array_equal(called.native(a, b, c), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
