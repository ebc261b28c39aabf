"""Kernels of exact sizes behind the native entry: keys, slots, counting, bits, kernels that give way."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shares import EVERY_TEST_RUNS
from support import LAYOUTS, Array, rough
from tiers import each_value

import tilewright as tw
from tilewright.calls.layout import native_entry_possible
from tilewright.llvm.quick import quick_code
from tilewright.ops.batch_reduce.kernel import BatchReduceKernel
from tilewright.ops.gemm import kernel as gemm
from tilewright.ops.gemm.exact_sizes import SLOT_BITS, ExactTable, exact_table, key_of, shape_of, slot_number
from tilewright.ops.gemm.small_products import LARGEST_SIDE, NEVER, PRODUCTS_TO_REPAY, ExactSizeKey, Specials
from tilewright.preparing import preparing
from tilewright.spec.dtype import F32, F64

needs_native = pytest.mark.skipif(not native_entry_possible(), reason="the entry is not native here")

sides = st.integers(1, LARGEST_SIDE)
layouts = st.sampled_from(["row", "col"])
types = st.sampled_from(["f32", "f64"])
shapes = st.builds(ExactSizeKey, sides, sides, sides, types, layouts, layouts, st.booleans())


@given(shapes, shapes)
def test_a_key_is_a_shape(one: ExactSizeKey, other: ExactSizeKey) -> None:
    assert shape_of(key_of(one)) == one
    assert key_of(one) > 0
    assert (key_of(one) == key_of(other)) is (one == other)
    assert 0 <= slot_number(key_of(one)) < 1 << SLOT_BITS


def test_squares_have_slots_of_their_own() -> None:
    """The shapes that recur most do not give way to each other."""
    keys = [key_of(ExactSizeKey(n, n, n, "f32", "row", "row")) for n in range(1, 65)]
    assert len({slot_number(key) for key in keys}) > 0.9 * len(keys)


class Code:
    """Stands for a kernel."""

    address = 4096


def test_put_and_drop() -> None:
    table, shape = ExactTable(), ExactSizeKey(3, 4, 5, "f32", "row", "col")
    slot = table.table.slots[slot_number(key_of(shape))]
    kernel: Any = Code()
    table.put(shape, kernel)
    assert (slot.key, slot.code, slot.kernel) == (key_of(shape), 4096, id(kernel))
    other = next(
        found
        for n in range(2, LARGEST_SIDE)
        for k in range(1, LARGEST_SIDE)
        if (found := ExactSizeKey(7, n, k, "f64", "row", "row"))
        and slot_number(key_of(found)) == slot_number(key_of(shape))
    )
    table.drop(other)
    assert slot.code == 4096, "another shape of the same slot"
    table.put(other, kernel)
    table.drop(shape)
    assert (slot.key, slot.code) == (key_of(other), 4096)
    table.drop(other)
    assert slot.code is None
    assert table.take_wanted() is None
    table.table.wanted = key_of(shape)
    assert table.take_wanted() == shape
    assert table.take_wanted() is None


def test_a_kernel_that_gave_way_returns_to_its_place() -> None:
    """Asked for again, it is published again, though it was never compiled again."""
    table, shape, made = ExactTable(), ExactSizeKey(3, 4, 5, "f32", "row", "col"), []

    def compile_it(problem: tw.BatchReduceGemm) -> Any:
        made.append(problem)
        return Code()

    specials = Specials(compile_it, table)
    kernel = specials.find(shape, PRODUCTS_TO_REPAY)
    slot = table.table.slots[slot_number(key_of(shape))]
    slot.key, slot.kernel, slot.code = 1, 0, None
    assert specials.find(shape, PRODUCTS_TO_REPAY) is kernel
    assert (slot.key, slot.kernel, slot.code) == (key_of(shape), id(kernel), 4096)
    assert len(made) == 1


# --- in the entry -------------------------------------------------------------------------------------


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, int, int]]]:
    """Sizes of the kernels made from here on; nothing is known or counted before or after."""
    made: list[tuple[int, int, int]] = []

    def spy(problem: tw.BatchReduceGemm) -> Any:
        made.append((problem.m, problem.n, problem.k))
        return BatchReduceKernel.compiled(problem)

    for dtype in (np.float32, np.float64):
        tw.matmul(np.ones((2, 2), dtype), np.ones((2, 2), dtype))
    quick_code.finish()  # the call that ends its use goes through Python, which does not count it here
    clear()
    specials = Specials(spy, exact_table())
    monkeypatch.setattr(gemm, "_specials", lambda: specials)
    yield made
    clear()


def clear() -> None:
    for slot in exact_table().table.slots:
        slot.code, slot.key, slot.seen = None, 0, 0
    exact_table().table.wanted = 0


def same_bits(left: Array, right: Array) -> bool:
    return left.tobytes() == right.tobytes()


SIZES = [(1, 13, 40), (5, 2, 1), (13, 17, 9), (16, 16, 16), (48, 48, 48), (7, 33, 3)]


@needs_native
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("batch", [1, 3, 500])
@each_value
def test_bits_before_and_after(
    dtype: type, size: tuple[int, int, int], batch: int, compiled: list[tuple[int, int, int]]
) -> None:
    m, n, k = size
    a, b = rough((batch, m, k), dtype, 1), rough((batch, k, n), dtype, 2)
    before = tw.matmul(a, b)
    calls = -(-PRODUCTS_TO_REPAY // batch)
    out = np.full_like(before, np.nan)
    for _ in range(calls - 2):
        tw.matmul(a, b, out=out)
    assert compiled == []
    tw.matmul(a, b, out=out)
    assert same_bits(out, before)
    assert compiled == [size]
    for _ in range(3):
        out[...] = np.nan
        tw.matmul(a, b, out=out)
        assert same_bits(out, before)
    assert compiled == [size]
    assert exact_table().table.slots[slot_number(key_of(shape_found(a, b, out)))].code


@needs_native
@pytest.mark.parametrize("orders", ["CC", "FC", "CF"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_batches_that_prefetch(dtype: type, orders: str, compiled: list[tuple[int, int, int]]) -> None:
    """They have kernels of their own on some cores; machine code and Python look for the same."""
    kernel, (m, n, k) = gemm.matmul_kernel(F32 if dtype is np.float32 else F64), (60, 52, 44)
    least = kernel.ahead_from
    each = (m * k + k * n + m * n) * np.dtype(dtype).itemsize
    count = 2 + min(least, kernel.machine.l2.size) // each
    a, b = (
        rough((count, *shape), dtype, seed) if order == "C" else rough((count, *shape[::-1]), dtype, seed).mT
        for seed, (shape, order) in enumerate(zip(((m, k), (k, n)), orders, strict=True))
    )
    out: Array = np.empty((count, m, n), dtype)
    ahead = least < NEVER
    found = shape_found(a, b, out)
    assert found.ahead is ahead
    expected = np.array([tw.matmul(x, y) for x, y in zip(a, b, strict=True)])
    calls = -(-found.products_to_repay // count)
    assert (found.products_to_repay < PRODUCTS_TO_REPAY) is ahead
    for _ in range(calls - 2):
        tw.matmul(a, b, out=out)
    assert compiled == []
    for _ in range(2):
        tw.matmul(a, b, out=out)
    assert compiled == [(m, n, k)]
    assert same_bits(out, expected)
    assert exact_table().table.slots[slot_number(key_of(found))].code
    notes = tw.explain(tw.matmul, a, b).notes
    assert any("prefetches the next product" in note for note in notes) is ahead
    few = a[: count // 4], b[: count // 4]
    assert same_bits(tw.matmul(*few), expected[: count // 4]), "a batch that fits"


def shape_found(a: Array, b: Array, out: Array) -> ExactSizeKey:
    """The shape that a batch is looked up by."""
    kernel = gemm.matmul_kernel(F32 if out.dtype == np.float32 else F64)
    found = gemm.exact_fit(a, b, out, kernel.types.a, kernel.largest_exact, kernel.ahead_from)
    assert found is not None
    return found.shape


@needs_native
@pytest.mark.parametrize("orders", ["CC", "CF", "FC", "FF"])
@pytest.mark.parametrize("turned", [False, True], ids=["rows of C", "columns of C"])
def test_layouts(orders: str, turned: bool, compiled: list[tuple[int, int, int]]) -> None:
    m, n, k = 9, 14, 11
    a, b = LAYOUTS[orders[0]](rough((m, k), seed=3)), LAYOUTS[orders[1]](rough((k, n), seed=4))
    out = np.empty((n, m), np.float32).T if turned else np.empty((m, n), np.float32)
    expected = tw.matmul(a, b)
    for _ in range(PRODUCTS_TO_REPAY + 2):
        tw.matmul(a, b, out=out)
    assert same_bits(np.ascontiguousarray(out), expected)
    assert ((n, m, k) if turned else (m, n, k)) in compiled


@needs_native
def test_what_is_not_counted(compiled: list[tuple[int, int, int]]) -> None:
    """One column has an order of its own; larger sides and gaps between columns stay general."""
    a, b = rough((40, 30), seed=1), rough((30, 8), seed=2)
    large = rough((LARGEST_SIDE + 1, 30), seed=3)
    for _ in range(PRODUCTS_TO_REPAY + 10):
        tw.matmul(a, b[:, :1])
        tw.matmul(large, b)
        tw.matmul(a[:, ::2], b[::2])
    assert compiled == []


@needs_native
def test_ten_thousand_shapes_make_no_kernel(compiled: list[tuple[int, int, int]]) -> None:
    b = rough((LARGEST_SIDE, LARGEST_SIDE), seed=1)
    for m in range(1, 22):
        for n in range(2, 24):
            for k in range(1, 23):
                tw.matmul(b[:m, :k], b[:k, :n])
    assert compiled == []


@needs_native
def test_a_kernel_in_use_outlives_its_place(compiled: list[tuple[int, int, int]]) -> None:
    """Long batches run without the GIL; meanwhile the table forgets the kernel, and Python its object."""
    a, b = rough((8_000, 16, 16), seed=1), rough((8_000, 16, 16), seed=2)
    expected = tw.matmul(a[:1], b[:1])
    tw.matmul(a, b)
    tw.matmul(a, b)
    assert compiled == [(16, 16, 16)]
    stop, shape = threading.Event(), shape_found(a, b, np.empty((8_000, 16, 16), np.float32))
    found: list[bool] = []

    def multiply() -> None:
        while not stop.is_set():
            found.append(same_bits(tw.matmul(a, b)[:1], expected))

    threads = [threading.Thread(target=multiply) for _ in range(2)]
    for thread in threads:
        thread.start()
    specials: Any = gemm._specials()
    for _ in range(30 if EVERY_TEST_RUNS else 6):
        with preparing:  # and in this order, as `Specials` does it
            specials._published.drop(shape)
            specials._kernels.clear()
        gc.collect()
        specials.find(shape, PRODUCTS_TO_REPAY)
    stop.set()
    for thread in threads:
        thread.join()
    assert found
    assert all(found)
