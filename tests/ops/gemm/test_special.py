"""Kernels of exact sizes: which products fit one, when one is made, how few are kept, and its bits."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from support import LAYOUTS, Array, rough

import tilewright as tw
from tilewright.machine.catalog import find_machine, targets
from tilewright.machine.isa import Isa
from tilewright.machine.isa_rows import AVX512
from tilewright.macro.blocking import choose_blocking
from tilewright.ops.batch_reduce.kernel import BatchReduceKernel
from tilewright.ops.batch_reduce.problem import BatchMode, BatchReduceGemm
from tilewright.ops.gemm import call as arrays
from tilewright.ops.gemm import kernel as gemm
from tilewright.ops.gemm import small_products as special
from tilewright.ops.gemm.small_products import (
    LARGEST_SIDE,
    MOST_COUNTED,
    MOST_KERNELS,
    NEVER,
    PRODUCTS_TO_REPAY,
    BatchSteps,
    ExactSizeKey,
    Fit,
    Specials,
    ahead_from,
    fit,
    largest_exact,
)
from tilewright.preparing import preparing
from tilewright.spec.dtype import BF16, C64, C128, F16, F32, F64, DType
from tilewright.spec.problem import Layout

# --- which products fit -------------------------------------------------------------------------------

M, N, K = 5, 6, 7


def operands(m: int = M, n: int = N, k: int = K) -> list[Array]:
    return [np.zeros(shape, np.float32) for shape in ((m, k), (k, n), (m, n))]


def cut(array: Array) -> Array:
    """The same shape inside rows that are three elements longer."""
    return np.zeros((array.shape[0], array.shape[1] + 3), array.dtype)[:, : array.shape[1]]


#: How each operand lies; the word of its layout and its leading dimension follow.
FITS: dict[str, tuple[tuple[Callable[[Array], Array], ...], Fit]] = {
    "row row": ((np.array,) * 3, Fit(ExactSizeKey(M, N, K, "f32", "row", "row"), (K, N, N))),
    "col row": (
        (np.asfortranarray, np.array, np.array),
        Fit(ExactSizeKey(M, N, K, "f32", "col", "row"), (M, N, N)),
    ),
    "row col": (
        (np.array, np.asfortranarray, np.array),
        Fit(ExactSizeKey(M, N, K, "f32", "row", "col"), (K, K, N)),
    ),
    "col col": (
        (np.asfortranarray, np.asfortranarray, np.array),
        Fit(ExactSizeKey(M, N, K, "f32", "col", "col"), (M, K, N)),
    ),
    "padded rows": ((cut,) * 3, Fit(ExactSizeKey(M, N, K, "f32", "row", "row"), (K + 3, N + 3, N + 3))),
    "padded columns": (
        (lambda a: cut(a.T).T, lambda b: cut(b.T).T, np.array),
        Fit(ExactSizeKey(M, N, K, "f32", "col", "col"), (M + 3, K + 3, N)),
    ),
}


@pytest.mark.parametrize("name", FITS)
def test_what_fits(name: str) -> None:
    ways, expected = FITS[name]
    a, b, c = (way(array) for way, array in zip(ways, operands(), strict=True))
    assert fit(a, b, c, F32) == expected


@pytest.mark.parametrize("layout", ["strided", "reversed", "reversed rows", "reversed columns"])
@pytest.mark.parametrize("which", range(3))
def test_strides_that_do_not_fit(layout: str, which: int) -> None:
    arrays = operands()
    arrays[which] = LAYOUTS[layout](arrays[which])
    assert fit(arrays[0], arrays[1], arrays[2], F32) is None


@pytest.mark.parametrize("layout", ["F", "padded columns"])
def test_a_column_major_c_does_not_fit(layout: str) -> None:
    a, b, c = operands()
    assert fit(a, b, LAYOUTS[layout](c), F32) is None


@pytest.mark.parametrize("which", range(2))
def test_rows_that_share_memory_do_not_fit(which: int) -> None:
    arrays = operands()
    arrays[which] = np.broadcast_to(arrays[which][:1], arrays[which].shape)
    assert fit(arrays[0], arrays[1], arrays[2], F32) is None
    arrays[which] = np.lib.stride_tricks.as_strided(np.zeros(99, np.float32), arrays[which].shape, (8, 4))
    assert fit(arrays[0], arrays[1], arrays[2], F32) is None


@pytest.mark.parametrize(
    ("sizes", "fits"),
    [
        ((1, 2, 1), True),
        ((64, 64, 64), True),
        ((65, 64, 64), False),
        ((LARGEST_SIDE, 4, LARGEST_SIDE), True),
        ((LARGEST_SIDE, 5, LARGEST_SIDE), False),
        ((1, LARGEST_SIDE, LARGEST_SIDE), True),
        ((LARGEST_SIDE + 1, 2, 2), False),
        ((2, LARGEST_SIDE + 1, 2), False),
        ((2, 2, LARGEST_SIDE + 1), False),
        ((0, 2, 2), False),
        ((2, 0, 2), False),
        ((2, 2, 0), False),
        ((1, 1, 1), False),  # one column has an order of its own
        ((5, 1, 7), False),
    ],
)
def test_sizes_that_fit(sizes: tuple[int, int, int], fits: bool) -> None:
    a, b, c = operands(*sizes)
    assert (fit(a, b, c, F32) is not None) is fits


@pytest.mark.parametrize(("isa", "dtype", "largest"), [(AVX512, F32, 64**3), (AVX512, BF16, 48**3)])
def test_how_large_they_get(isa: Isa, dtype: DType, largest: int) -> None:
    assert largest_exact(isa.tile(dtype)) == largest
    most = largest // 2500
    for rows in (most, most + 1):
        a, b, c = operands(rows, 50, 50)
        assert (fit(a, b, c, F32, largest) is not None) is (rows == most)


def test_which_prefetch_the_next_product() -> None:
    """Dense matrices, whatever the work; others as if nobody had asked."""
    a, b, c = operands(100, 90, 80)
    assert fit(a, b, c, F32) is None
    found = fit(a, b, c, F32, ahead=True)
    assert found == Fit(ExactSizeKey(100, 90, 80, "f32", "row", "row", ahead=True), (80, 90, 90))
    assert found.shape.problem().batch is BatchMode.AHEAD
    for pair in ((np.asfortranarray(a), b), (a, np.asfortranarray(b))):
        assert fit(*pair, c, F32, ahead=True) is not None
    for number in range(3):
        gaps = [cut(one) if index == number else one for index, one in enumerate((a, b, c))]
        assert fit(gaps[0], gaps[1], gaps[2], F32, ahead=True) is None
        small = [cut(one) if index == number else one for index, one in enumerate(operands())]
        assert fit(small[0], small[1], small[2], F32, ahead=True) == fit(small[0], small[1], small[2], F32)


def test_batches_that_are_far() -> None:
    """More than an eighth of L2, of products that take a quarter of it at most."""
    least = 1 << 18
    assert BatchSteps(5, (least // 8, 0, least // 8)).is_far(least)
    assert not BatchSteps(4, (least // 8, 0, least // 8)).is_far(least), "few"
    assert BatchSteps(2, (least, 0, least)).is_far(least)
    assert not BatchSteps(2, (least, 1, least)).is_far(least), "large products"
    assert not BatchSteps(10**6, (-64, -64, -64)).is_far(least), "backwards"
    assert not BatchSteps(10**6, (64, 64, 64)).is_far(NEVER)


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("name", targets())
def test_cores_that_prefetch_products(name: str, dtype: DType) -> None:
    """Those that were measured, and their successors."""
    machine = find_machine(name)
    found = ahead_from(machine, machine.isa.tile(dtype))
    assert found == (machine.l2.size // 8 if name in ("sapphirerapids", "graniterapids") else NEVER)


@pytest.mark.parametrize("name", targets())
def test_their_depths_are_in_one_block(name: str) -> None:
    """So they give the bits of the general kernel."""
    machine = find_machine(name)
    for dtype in (F16, BF16, F32, F64, C64, C128):
        assert choose_blocking(machine, machine.isa.tile(dtype)).kc >= LARGEST_SIDE, str(dtype)


def test_the_problem_of_a_shape_replaces_a_row_major_c() -> None:
    problem = ExactSizeKey(3, 4, 5, "f64", "col", "row").problem()
    assert problem == BatchReduceGemm(3, 4, 5, 1, "f64", a="col", b="row", c="row", beta=0)
    a, b, c = (np.zeros(shape) for shape in ((3, 5), (5, 4), (3, 4)))
    found = fit(np.asfortranarray(a), b, c, F64)
    assert found is not None
    assert found.shape.problem() == problem
    assert Layout(found.shape.a) is Layout.COL


# --- when a kernel is made --------------------------------------------------------------------------


class Compiler:
    """Stands for the compiler: remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int, int]] = []

    def __call__(self, problem: BatchReduceGemm) -> str:
        self.asked.append((problem.m, problem.n, problem.k))
        return f"kernel {problem.m} {problem.n} {problem.k}"


def shape(number: int) -> ExactSizeKey:
    return ExactSizeKey(1 + number % 40, 2 + number // 40 % 40, 1 + number // 1600, "f32", "row", "row")


def test_a_kernel_is_made_at_the_product_that_repays_it() -> None:
    compiler = Compiler()
    specials = Specials(compiler)
    assert specials.find(shape(0), PRODUCTS_TO_REPAY - 1) is None
    assert specials.find(shape(1), PRODUCTS_TO_REPAY - 1) is None
    assert compiler.asked == []
    assert specials.find(shape(0), 1) == "kernel 1 2 1"
    assert specials.find(shape(0), 1) == "kernel 1 2 1"
    assert compiler.asked == [(1, 2, 1)]
    assert specials.find(shape(1), 1) == "kernel 2 2 1"
    assert compiler.asked == [(1, 2, 1), (2, 2, 1)]


def test_one_long_batch_is_enough() -> None:
    compiler = Compiler()
    assert Specials(compiler).find(shape(0), PRODUCTS_TO_REPAY) == "kernel 1 2 1"


def test_layouts_and_dtypes_are_counted_apart() -> None:
    compiler = Compiler()
    specials, each = Specials(compiler), PRODUCTS_TO_REPAY - 1
    shapes = [ExactSizeKey(3, 4, 5, *words) for words in (("f32", "row", "row"), ("f64", "row", "row"))]
    shapes += [ExactSizeKey(3, 4, 5, "f32", *words) for words in (("col", "row"), ("row", "col"))]
    assert [specials.find(one, each) for one in shapes] == [None] * 4
    assert compiler.asked == []


def test_ten_thousand_shapes_make_no_kernel() -> None:
    compiler = Compiler()
    specials = Specials(compiler)
    for _ in range(2):
        for number in range(10_000):
            assert specials.find(shape(number), PRODUCTS_TO_REPAY // 2) is None
    assert len({shape(number) for number in range(10_000)}) == 10_000
    assert compiler.asked == []
    assert len(specials._counts) == MOST_COUNTED


def test_the_least_recently_seen_count_is_forgotten() -> None:
    compiler = Compiler()
    specials = Specials(compiler)
    for number in range(MOST_COUNTED):
        specials.find(shape(number), PRODUCTS_TO_REPAY - 1)
    specials.find(shape(0), 0)  # seen again: shape 1 is the oldest now
    specials.find(shape(MOST_COUNTED), 1)
    assert specials.find(shape(0), 1) is not None
    assert specials.find(shape(1), 1) is None
    assert specials.find(shape(3), 1) is not None


def test_the_least_recently_used_kernel_is_given_up() -> None:
    compiler = Compiler()
    specials = Specials(compiler)
    for number in range(MOST_KERNELS):
        assert specials.find(shape(number), PRODUCTS_TO_REPAY) is not None
    assert specials.find(shape(0), 1) is not None  # used again: shape 1 is the oldest now
    assert specials.find(shape(MOST_KERNELS), PRODUCTS_TO_REPAY) is not None
    assert len(specials._kernels) == MOST_KERNELS
    asked = len(compiler.asked)
    assert specials.find(shape(0), 1) is not None
    assert specials.find(shape(1), 1) is None, "its count begins again"
    assert len(compiler.asked) == asked


def test_a_compiler_that_fails_leaves_the_table_usable() -> None:
    answers: Iterator[Any] = iter((MemoryError(), "kernel"))

    def compile_it(problem: BatchReduceGemm) -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    specials = Specials(compile_it)
    with pytest.raises(MemoryError):
        specials.find(shape(0), PRODUCTS_TO_REPAY)
    assert specials.find(shape(1), 1) is None
    assert specials.find(shape(0), PRODUCTS_TO_REPAY) == "kernel"


@pytest.fixture
def impatient() -> Iterator[None]:
    """Threads change places as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(work: Callable[[], Any], threads: int = 12) -> list[Any]:
    """What each of several threads returns that begin together."""
    barrier = threading.Barrier(threads)

    def begin(_: int) -> Any:
        barrier.wait()
        return work()

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(begin, range(threads)))


def test_threads_make_one_kernel_of_each_shape() -> None:
    asked: list[int] = []

    def compile_it(problem: BatchReduceGemm) -> str:
        threading.Event().wait(0.01)
        asked.append(problem.m)
        return f"kernel {problem.m}"

    specials = Specials(compile_it)
    kernels = ["kernel 1", "kernel 2", "kernel 3", "kernel 4"]

    def find() -> list[Any]:
        return [specials.find(shape(number), PRODUCTS_TO_REPAY) for number in range(4)]

    for found in in_threads(find):  # None where another thread was compiling
        assert all(one in (None, kernel) for one, kernel in zip(found, kernels, strict=True))
    assert find() == kernels
    assert sorted(asked) == [1, 2, 3, 4]


@pytest.mark.usefixtures("impatient")
def test_threads_lose_no_count() -> None:
    turns = 1000
    specials = Specials(Compiler())
    each = (PRODUCTS_TO_REPAY - 1) // (12 * turns)
    in_threads(lambda: [specials.find(shape(0), each) for _ in range(turns)])
    assert specials._counts == {shape(0): each * 12 * turns}


# --- behind the Python half of matmul (the native one: test_exact.py) -----------------------------------

BATCH = 500
SIZES = [(13, 17, 9), (1, 13, 40), (5, 2, 1), (16, 16, 16), (7, 33, 3), (13, 1, 40), (1, 1, 40), (40, 1, 3)]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, int]]:
    """Sizes of the kernels made from here on; the table is empty, and the first product repays its kernel."""
    made: list[tuple[int, int, int]] = []
    compile_it = BatchReduceKernel.compiled

    def spy(problem: BatchReduceGemm) -> Any:
        made.append((problem.m, problem.n, problem.k))
        return compile_it(problem)

    specials = Specials(spy)
    monkeypatch.setattr(gemm, "_specials", lambda: specials)
    monkeypatch.setattr(special, "PRODUCTS_TO_REPAY", 1)
    return made


def same_bits(left: Array, right: Array) -> bool:
    word = {4: np.uint32, 8: np.uint64}[left.itemsize]
    return np.array_equal(np.ascontiguousarray(left).view(word), np.ascontiguousarray(right).view(word))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_bits_do_not_change_when_a_shape_recurs(
    dtype: type, size: tuple[int, int, int], compiled: list[tuple[int, int, int]]
) -> None:
    m, n, k = size
    a, b = rough((BATCH, m, k), dtype, 1), rough((BATCH, k, n), dtype, 2)
    together = arrays.matmul(a, b)
    assert compiled == ([size] if n > 1 else [])
    for index in (0, 1, BATCH // 2, BATCH - 1):
        assert same_bits(together[index], tw.matmul(a[index], b[index]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layouts", ["CC", "CF", "FC", "FF"])
@pytest.mark.parametrize("turned", [False, True], ids=["rows of C", "columns of C"])
def test_every_layout_keeps_its_bits(
    dtype: type, layouts: str, turned: bool, compiled: list[tuple[int, int, int]]
) -> None:
    m, n, k = 9, 14, 11
    a, b = rough((BATCH, m, k), dtype, 1), rough((BATCH, k, n), dtype, 2)
    a, b = (
        np.array(array.swapaxes(1, 2)).swapaxes(1, 2) if order == "F" else array
        for array, order in zip((a, b), layouts, strict=True)
    )
    out: Array = np.full((BATCH, n, m) if turned else (BATCH, m, n), np.nan, dtype)
    out = out.swapaxes(1, 2) if turned else out
    arrays.matmul(a, b, out)
    assert compiled == ([(n, m, k)] if turned else [(m, n, k)])
    for index in (0, 1, BATCH - 1):
        assert same_bits(out[index], tw.matmul(a[index], b[index]))


def test_coefficients_keep_to_the_general_kernel(compiled: list[tuple[int, int, int]]) -> None:
    a, b = rough((BATCH, 9, 7), seed=1), rough((BATCH, 7, 5), seed=2)
    arrays.matmul(a, b, alpha=2)
    arrays.matmul(a, b, np.zeros((BATCH, 9, 5), np.float32), beta=1)
    assert compiled == []


@pytest.mark.parametrize(
    ("shape_a", "shape_b"),
    [
        ((1, 600, 5, 6), (3, 1, 6, 7)),  # both repeat, along different axes
        ((2, 300, 5, 6), (300, 6, 7)),  # B repeats along the outer axis
        ((600, 5, 6), (2, 1, 6, 7)),
        ((2, 2, 300, 5, 6), (2, 1, 300, 6, 7)),
    ],
    ids=str,
)
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reversed"])
@pytest.mark.parametrize("turned", [False, True], ids=["rows of C", "columns of C"])
def test_repeated_and_reversed_batches(
    shape_a: tuple[int, ...],
    shape_b: tuple[int, ...],
    reverse: bool,
    turned: bool,
    compiled: list[tuple[int, int, int]],
) -> None:
    a, b = rough(shape_a, seed=1), rough(shape_b, seed=2)
    if reverse:
        a, b = a[::-1], b[..., ::-1, :, :] if b.ndim == 3 else b[:, ::-1]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    together: Array = np.full((*batch, 7, 5) if turned else (*batch, 5, 7), np.nan, np.float32)
    together = together.swapaxes(-1, -2) if turned else together
    arrays.matmul(a, b, together)
    assert compiled == ([(7, 5, 6)] if turned else [(5, 7, 6)])
    wide_a, wide_b = np.broadcast_to(a, (*batch, 5, 6)), np.broadcast_to(b, (*batch, 6, 7))
    places = [
        tuple(0 for _ in batch),
        tuple(length - 1 for length in batch),
        tuple(length // 2 for length in batch),
    ]
    for place in places:
        assert same_bits(together[place], tw.matmul(wide_a[place].copy(), wide_b[place].copy()))


def test_nobody_waits_for_a_thread_that_compiles() -> None:
    specials = Specials(lambda problem: problem)
    shape = ExactSizeKey(4, 4, 4, "f32", "row", "row")
    assert specials.find(shape, PRODUCTS_TO_REPAY) is not None
    held, let_go = threading.Event(), threading.Event()

    def compiles() -> None:
        with preparing:
            held.set()
            let_go.wait(300)

    thread = threading.Thread(target=compiles)
    thread.start()
    held.wait(300)
    assert specials.find(shape, 1) is None
    let_go.set()
    thread.join()
    assert specials.find(shape, 1) is not None
