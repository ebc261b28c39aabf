"""Inner loops of NumPy's universal functions that this package replaces, against NumPy without it."""

from __future__ import annotations

import threading
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from installed_loops import assert_close, laid_out, numbers, taken, taking_everything
from shares import EVERY_TEST_RUNS
from tiers import each_value

import tilewright as tw
from tilewright.installation import thresholds
from tilewright.installation.rows import LETTERS, PRODUCTS
from tilewright.installation.state import state
from tilewright.ops.gemm.exact_sizes import key_of, slot_number
from tilewright.ops.gemm.operands import product_types
from tilewright.ops.gemm.small_products import PRODUCTS_TO_REPAY, ExactSizeKey

#: Random calls of each function and type.
DRAWS = 200 if EVERY_TEST_RUNS else 12

FUNCTIONS = [product.name for product in PRODUCTS if hasattr(np, product.name)]


def drawn(rng: np.random.Generator, name: str, letter: str) -> tuple[Any, Any]:
    """Operands of one call: sizes around those of tiles, batches that broadcast."""
    m, n, k = (int(size) for size in rng.choice([1, 2, 3, 5, 8, 15, 16, 17, 31, 40], 3))
    batch = [int(size) for size in rng.choice([1, 2, 3], rng.integers(0, 3))]
    shapes = {
        "matmul": ((m, k), (k, n)),
        "vecdot": ((k,), (k,)),
        "matvec": ((m, k), (k,)),
        "vecmat": ((k,), (k, n)),
    }[name]
    found = []
    for shape in shapes:
        own = batch[rng.integers(0, len(batch) + 1) :] if batch else []
        own = [1 if rng.random() < 0.2 else size for size in own]
        found.append(laid_out(rng, numbers(rng, (*own, *shape), letter)))
    return found[0], found[1]


def magnitude(function: Any, a: Any, b: Any) -> Any:
    """What was added up, in magnitude."""
    return function(np.abs(a).astype(np.float64), np.abs(b).astype(np.float64))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("letter", LETTERS)
@each_value
def test_results_are_those_of_numpy(name: str, letter: str) -> None:
    function = getattr(np, name)
    rng = np.random.default_rng(LETTERS.index(letter) * 10 + FUNCTIONS.index(name))
    calls = [drawn(rng, name, letter) for _ in range(DRAWS)]
    expected = [function(a, b) for a, b in calls]
    magnitudes = [magnitude(function, a, b) for a, b in calls]
    with taking_everything() as loops:
        before = taken(loops, letter)
        found = [function(a, b) for a, b in calls]
        computed = taken(loops, letter) - before
    conjugated = letter in "FD" and name in ("vecdot", "vecmat")
    assert (computed > 0) is not conjugated
    for (a, _), one, right, size in zip(calls, found, expected, magnitudes, strict=True):
        assert_close(np.asarray(one), np.asarray(right), size, a.shape[-1])


@pytest.mark.parametrize("letter", "lfdFDe")
def test_out_may_have_any_layout_and_overlap(letter: str) -> None:
    rng = np.random.default_rng(5)
    a, b = numbers(rng, (3, 20, 20), letter), numbers(rng, (3, 20, 20), letter)
    expected, sizes = a @ b, magnitude(np.matmul, a, b)
    outs = [np.zeros((3, 20, 20), letter).transpose(order) for order in ((0, 1, 2), (0, 2, 1))]
    outs.append(np.zeros((20, 20, 3), letter).transpose(2, 1, 0))
    outs += [
        np.zeros((6, 40, 60), letter)[::-2, ::2, ::-3],
        np.zeros((3, 20, 20), np.dtype(letter).newbyteorder()),
    ]
    with taking_everything():
        for out in outs:
            found = np.matmul(a, b, out=out)
            assert found is out
            assert_close(out.astype(letter), expected, sizes, 20)
        same = a.copy()
        np.matmul(same, b, out=same)
        assert_close(same, expected, sizes, 20)
        shifted = np.concatenate([a, np.zeros((1, 20, 20), letter)])
        np.matmul(shifted[:-1], b, out=shifted[1:])
        assert_close(shifted[1:], expected, sizes, 20)


def test_keywords_are_those_of_numpy() -> None:
    rng = np.random.default_rng(6)
    a, b = rng.standard_normal((40, 30, 5)), rng.standard_normal((30, 50, 5))
    axes: Any = [(0, 1), (0, 1), (1, 2)]
    vecdot: Any = np.vecdot
    expected = np.matmul(a, b, axes=axes), vecdot(a, a, axis=1, keepdims=True)
    cast = np.matmul(a[..., 0], b[..., 0], dtype=np.float32, casting="same_kind", order="F")
    with taking_everything():
        np.testing.assert_allclose(np.matmul(a, b, axes=axes), expected[0], rtol=1e-12)
        np.testing.assert_allclose(vecdot(a, a, axis=1, keepdims=True), expected[1], rtol=1e-12)
        found = np.matmul(a[..., 0], b[..., 0], dtype=np.float32, casting="same_kind", order="F")
        with pytest.raises(TypeError, match="same_kind"):
            np.matmul(a, a, dtype=np.int64)
        with pytest.raises(ValueError, match="mismatch in its core dimension"):
            np.matmul(a[..., 0], a[..., 0])
    assert found.flags.f_contiguous
    np.testing.assert_allclose(found, cast, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [((0, 3), (3, 4)), ((3, 0), (0, 4)), ((0, 5, 5), (5, 5)), ((4, 5), (5, 0))])
def test_empty_products_stay_with_numpy(shape: Any) -> None:
    a, b = np.ones(shape[0], np.float32), np.ones(shape[1], np.float32)
    expected = a @ b
    with taking_everything():
        np.testing.assert_array_equal(a @ b, expected)


def test_a_matrix_times_its_transpose_stays_with_blas() -> None:
    """It computes one triangle, and its result is symmetric."""
    a = np.random.default_rng(7).standard_normal((60, 50)).astype(np.float32)
    with taking_everything() as loops:
        before = taken(loops, "f")
        found = a @ a.T
        assert taken(loops, "f") == before
    np.testing.assert_array_equal(found, found.T)


def test_small_products_stay_with_numpy() -> None:
    a = np.ones((3, 3), np.float32)
    with tw.installed():
        loops = state().loops
        before = taken(loops, "f")
        a @ a
        assert taken(loops, "f") == before


def test_parts_of_elements_as_strides_stay_with_numpy() -> None:
    """A complex field of a record need not be at a multiple of its size."""
    records = np.zeros((30, 30), np.dtype([("x", np.complex64), ("pad", np.float32)]))
    field = records["x"]
    field[...] = np.arange(900).reshape(30, 30) * (1 + 2j)
    expected = field @ field
    with taking_everything():
        np.testing.assert_array_equal(field @ field, expected)


def test_counts_and_explanations() -> None:
    a = np.ones((96, 96), np.float32)
    assert "install() was not called" in tw.explain(np.matmul, a, a).strategy
    with tw.installed():
        rows = {one.function: one for one in tw.show_calls()}
        before = rows.get("numpy.matmul float32")
        a @ a
        a[:2, :2] @ a[:2, :2]
        after = {one.function: one for one in tw.show_calls()}["numpy.matmul float32"]
        assert after.repeated == (before.repeated if before else 0) + 1
        assert sum(after.python.values()) == (sum(before.python.values()) if before else 0) + 1
        assert tw.explain(np.matmul, a, a).kernel.startswith("gemm_f32")
        assert "small" in tw.explain(np.matmul, a[:2, :2], a[:2, :2]).strategy
        assert "transposed" in tw.explain(np.matmul, a, a.T).strategy
        assert "object" in tw.explain(np.matmul, a.astype(object), a).strategy
        assert "faster for this shape" in tw.explain(np.matmul, a, a[0]).strategy


@pytest.mark.parametrize("letter", "fdFilHe")
def test_batches_of_one_shape_get_a_kernel_of_its_sizes(letter: str) -> None:
    """First they are NumPy's, or the general kernel's; the counts of other shapes do not matter.

    Batches are small beside every L2: larger ones may have kernels that prefetch, which shorter ones do not.
    """
    rng, count = np.random.default_rng(8), 20
    for m, n, k in ((5, 6, 7), (2, 40, 3), (33, 9, 20)):
        a, b = numbers(rng, (count, m, k), letter), numbers(rng, (count, k, n), letter)
        expected, sizes = a @ b, magnitude(np.matmul, a, b)
        with tw.installed():
            loops = state().loops
            assert loops is not None
            np.ones((20, 20), letter) @ np.ones((20, 20), letter)  # other types are known from here on
            exact = loops.supplier.exact_kernels
            name = product_types(*[np.dtype(letter)] * 3).a.name
            assert not any((key.m, key.n, key.k, key.dtype) == (m, n, k, name) for key in exact)
            general = letter not in "fdF" or k >= 16
            assert general or "of this shape on" in tw.explain(np.matmul, a, b).strategy
            for _ in range(-(-PRODUCTS_TO_REPAY // count)):
                a @ b
            found = a @ b
            assert_close(found, expected, sizes, k)
            explained = tw.explain(np.matmul, a, b)
            assert explained.strategy.startswith("a kernel of exact sizes")
            assert f"{m}x{n}x{k}" in explained.kernel
            counted = taken(loops, letter)
            for one, other in ((a[::2], b[::-2]), (a[..., ::-1], b[:, ::-1]), (a[:1], b), (a[:, 1:], b)):
                assert_close(one @ other, one @ other, magnitude(np.matmul, one, other), k)
            assert taken(loops, letter) > counted


def test_single_products_that_recur_get_one_too() -> None:
    a, b = numbers(np.random.default_rng(4), (19, 16), "F"), numbers(np.random.default_rng(5), (16, 21), "F")
    with tw.installed():
        assert tw.explain(np.matmul, a, b).kernel.startswith("gemm_c64")
        first = a @ b
        for _ in range(PRODUCTS_TO_REPAY):
            a @ b
        assert "19x21x16" in tw.explain(np.matmul, a, b).kernel
        assert (a @ b).tobytes() == first.tobytes()
        assert tw.explain(np.matmul, a[:0], b).strategy.startswith("NumPy's own")


def test_shapes_that_share_a_slot() -> None:
    """The second one has the slot beside it: tables only grow, so a slot is taken for good."""
    with tw.installed():
        loops = state().loops
        assert loops is not None
        taken_slots = {slot_number(key_of(shape)) // 2 for shape in loops.supplier.exact_kernels}
        places: dict[int, ExactSizeKey] = {}
        for n, k in product(range(9, 30), range(9, 30)):
            shape = ExactSizeKey(17, n, k, "f32", "row", "row")
            slot = slot_number(key_of(shape))
            if slot // 2 not in taken_slots and places.setdefault(slot, shape) is not shape:
                break
        pair = places[slot], shape
        assert slot_number(key_of(pair[0])) == slot_number(key_of(pair[1]))
        for one in pair:
            rng = np.random.default_rng(one.n)
            a, b = numbers(rng, (4, one.m, one.k), "f"), numbers(rng, (4, one.k, one.n), "f")
            first = a @ b
            for _ in range(-(-PRODUCTS_TO_REPAY // 4)):
                a @ b
            assert f"{one.m}x{one.n}x{one.k}" in tw.explain(np.matmul, a, b).kernel
            assert_close(a @ b, first, magnitude(np.matmul, a, b), one.k)


def test_threads_share_kernels_of_exact_sizes() -> None:
    """Loops count, ask and look without the GIL; NaN in one product stays there, with its warning."""
    rng = np.random.default_rng(9)
    a, b = (rng.standard_normal((900, *shape)) for shape in ((11, 13), (13, 12)))
    a[77, 3, 5] = np.inf
    b[77, 5, 2] = 0
    with np.errstate(invalid="ignore"):
        expected = a @ b
    wrong: list[Any] = []

    def work() -> None:
        for _ in range(30):
            with np.errstate(invalid="raise"):
                try:
                    a @ b
                    wrong.append("no error")
                except FloatingPointError:
                    pass
            with np.errstate(invalid="ignore"):
                if not np.allclose(a @ b, expected, equal_nan=True):
                    wrong.append("another result")

    with tw.installed():
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert tw.explain(np.matmul, a, b).strategy.startswith("a kernel of exact sizes")
    assert not wrong


@pytest.mark.parametrize(("letter", "bits"), [("f", 512), ("d", 512), ("F", 512), ("l", 512), ("f", 256)])
def test_small_products_stay_with_a_blas_that_has_kernels_for_them(
    letter: str, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenBLAS has such with AVX-512, for two types; batches go on to kernels of their sizes."""
    machine = SimpleNamespace(isa=SimpleNamespace(vector_bits=bits))
    monkeypatch.setattr(thresholds, "host_machine", lambda: machine)
    stays = letter in "fd" and bits == 512
    with tw.installed():
        loops = state().loops
        assert loops is not None
        row = loops.table.rows[LETTERS.index(letter)]
        try:
            loops.limit(row, letter)
            for size, kept in ((64, stays), (80, False)):
                a = np.ones((size, size), letter)
                before = taken(loops, letter)
                a @ a
                assert (taken(loops, letter) == before) is kept
                assert (tw.explain(np.matmul, a, a).kernel == "NumPy's own") is kept
            several = np.ones((3, 64, 64), letter)
            before = taken(loops, letter)
            several @ several
            assert taken(loops, letter) > before
        finally:
            monkeypatch.undo()
            loops.limit(row, letter)


#: Shapes of operands, and whether kernels take the product.
SHAPES = [
    ("matmul", (96, 96), (96, 96), True),
    ("matmul", (64, 4), (4, 64), False),
    ("matmul", (16, 20000), (20000, 3), True),
    ("matmul", (200, 400), (400, 3), False),
    ("matmul", (400, 400), (400,), False),
    ("matmul", (500, 5, 5), (500, 5, 5), False),
    ("matmul", (50, 20, 20), (20, 20), True),
    ("matmul", (50, 20, 20), (50, 20, 20), True),
    ("vecdot", (500, 20), (20,), True),
    ("vecdot", (20,), (500, 20), True),
    ("vecdot", (500, 20), (500, 20), False),
    ("vecdot", (10, 4000), (4000,), False),
    ("matvec", (4, 4), (900, 4), True),
    ("matvec", (900, 4, 4), (900, 4), False),
    ("vecmat", (900, 4), (4, 4), True),
    ("vecmat", (900, 1, 400), (400, 400), True),
]


@pytest.mark.parametrize(("name", "a", "b", "expected"), SHAPES)
def test_explanations_say_what_loops_do(name: str, a: Any, b: Any, expected: bool) -> None:
    function = getattr(np, name, None)
    if function is None:
        pytest.skip("not in this version of NumPy")
    left, right = np.ones(a, np.float32), np.ones(b, np.float32)
    with tw.installed():
        loops = state().loops
        before = taken(loops, "f")
        function(left, right)
        assert (taken(loops, "f") > before) is expected
        assert ("NumPy's own" not in tw.explain(function, left, right).kernel) is expected
