"""Kernels of attention against float64: everything that scores can meet, on every row of this host."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import attention_calls as calls
import numpy as np
import pytest
from attention_calls import FEATURES, Made, Sizes, allowed, check, make, parameters
from shares import share
from support import GUARD_PAGES, Array, GuardedMemory, no_flags
from tiers import crossed

import tilewright as tw
from tilewright.compiler.pipeline import LAST_PROGRAM, run_stages
from tilewright.ir.interpret import interpret
from tilewright.ir.parse import parse_program
from tilewright.ir.text import print_program
from tilewright.ops.attention.problem import Attention
from tilewright.spec.dtype import parse_dtype
from tilewright.threads.pool import limited

DTYPES = ("f32", "f64", "bf16", "f16")
each_feature = pytest.mark.parametrize("features", FEATURES, ids=lambda given: "-".join(given) or "plain")
each_dtype = pytest.mark.parametrize("dtype", DTYPES)
#: Rows that every x86-64 host here can run, and the host's own.
TARGETS = ("host", "x86-64-v3", "x86-64-v2")


@cache
def kernel_of(problem: Attention, target: str = "host") -> Any:
    return tw.compile(problem, target)


def ran(made: Made, target: str = "host") -> Made:
    made.call.run(kernel_of(made.problem, target))
    return made


#: Each feature with one type in `make test`; tests of one kernel take these.
each_kernel = pytest.mark.parametrize(("dtype", "features"), crossed(DTYPES, FEATURES, 4), ids=str)


@each_kernel
def test_every_feature(features: dict[str, Any], dtype: str) -> None:
    check(ran(make(Attention(20, 24, dtype, **features))))


@pytest.mark.parametrize("target", TARGETS[1:])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_other_rows(target: str, dtype: str) -> None:
    """In `make test` each feature with one row and type."""
    if tw.machine().arch != "x86_64":
        pytest.skip("rows of x86-64")
    for features in share(FEATURES, 4, TARGETS.index(target) + 2 * (dtype == "bf16")):
        check(ran(make(Attention(20, 24, dtype, **features), Sizes(1, 1, 2, 13, 37)), target))


@pytest.mark.parametrize(
    ("head", "dtype", "value"),
    crossed([1, 3, 16, 64, 65, 128, 200], [("f32", None), ("bf16", None), ("f32", 7), ("bf16", 7)], 4),
)
def test_heads_of_any_size(head: int, value: int | None, dtype: str) -> None:
    check(ran(make(Attention(head, value or head, dtype, bounded=True), Sizes(1, 2, 1, 26, 33))))


@pytest.mark.parametrize("keys", [1, 15, 16, 17, 31, 33, 479, 480, 481, 1000])
def test_keys_around_vectors_panels_and_blocks(keys: int) -> None:
    for bounded in (False, True):
        for queries in (1, 5, 12, 13):
            check(ran(make(Attention(8, bounded=bounded), Sizes(1, 1, 1, queries, keys))))


@pytest.mark.parametrize("queries", [1, 11, 12, 191, 192, 193, 500])
def test_queries_around_tiles_and_blocks(queries: int) -> None:
    check(ran(make(Attention(8, bounded=True), Sizes(2, 1, 1, queries, queries))))


@pytest.mark.parametrize("ranges", [(-5, 1), (3, 9), (-100, -50), (0, 0), (50, 70), (-7, 500), (-600, 2)])
def test_ranges_of_keys(ranges: tuple[int, int]) -> None:
    """Windows before, inside and behind the keys; a row that sees nothing is zeros."""
    for dtype in ("f32", "bf16"):
        check(ran(make(Attention(8, dtype=dtype, bounded=True), Sizes(1, 1, 1, 60, 70), ranges=ranges)))


def test_windows_of_long_sequences() -> None:
    """Blocks of keys that nobody of a block of queries sees are skipped, and those at its ends are not."""
    for low in (-1, -31, -32, -33, -480, -700):
        check(ran(make(Attention(8, bounded=True), Sizes(1, 1, 1, 700, 1400), ranges=(700 + low, 701))))


@each_feature
def test_the_nest_means_the_same(features: dict[str, Any]) -> None:
    """Interpreted with NumPy, with three threads last task first, and read back from its text."""
    problem = Attention(5, 6, "f32", **features)
    program = run_stages(problem, tw.machine(), LAST_PROGRAM).program
    assert parse_program(print_program(program)) == program
    made = make(problem, Sizes(1, 1, 2, 14, 37))
    interpret(program, *parameters(made), threads=3)
    check(made)


@each_kernel
def test_threads_and_company_change_no_bit(features: dict[str, Any], dtype: str) -> None:
    problem = Attention(20, 24, dtype, **features)
    sizes = Sizes(2, 2, 2, 250, 300)
    found = []
    for threads in (1, 2):
        with limited(threads):
            found.append(ran(make(problem, sizes)).call.out.copy())
    assert found[0].tobytes() == found[1].tobytes()
    if features:
        return
    alone = make(problem, sizes)
    call = alone.call
    kernel = kernel_of(problem)
    row = call._replace(q=call.q[:, :, 100:101], out=call.out[:, :, 100:101], queries=1)
    items = call.items.copy()
    items[:, 8] = 1  # the views begin at the query
    row._replace(items=items).run(kernel)
    assert call.out[:, :, 100].tobytes() == found[0][:, :, 100].tobytes(), "one query has the bits of many"


@each_dtype
def test_nan_of_what_is_masked_out_does_not_leak(dtype: str) -> None:
    """In keys and values; a key that a query sees gives NaN to this query, and to no other."""
    every: tuple[dict[str, Any], ...] = ({"bounded": True}, {"mask": "u8"})
    for features in share(every, 2, DTYPES.index(dtype) + 1):  # kernels of `test_every_feature`
        made = make(Attention(20, 24, dtype, **features), Sizes(1, 1, 1, 40, 60))
        clean = ran(made).call.out.copy()
        for name in ("k", "v"):
            for bad in (np.nan, np.inf, -np.inf):
                again = make(made.problem, made.sizes)
                array = again.call.k if name == "k" else again.call.v
                array[0, 0, 45] = bad
                sees = hides(again)
                ran(again)
                assert 0 < sees.sum() < sees.size
                found = again.call.out[0, 0]
                assert found[~sees].tobytes() == clean[0, 0, ~sees].tobytes()
                if np.isnan(bad):
                    assert np.isnan(found[sees].astype(np.float64)).all()


def hides(made: Made, key: int = 45) -> Array:
    """Which queries see a key."""
    i = np.arange(made.sizes.queries)
    if made.call.mask is not None:
        seen: Array = made.call.mask[0, 0, :, key] != 0
        return seen
    low, high = made.ranges[0]
    return (low + i <= key) & (key < high + i)


@each_dtype
def test_bits_of_a_row_do_not_depend_on_the_rows_beside_it(dtype: str) -> None:
    """Softmax takes several rows at once, and the last ones one by one."""
    random, kind = np.random.default_rng(5), parse_dtype(dtype).numpy
    q, k, v = (random.standard_normal((1, 1, rows, 24)).astype(kind) for rows in (7, 45, 45))
    whole = tw.attention(q, k, v, strategy="blocks")
    for row in range(7):
        alone = tw.attention(q[:, :, row : row + 1], k, v, strategy="blocks")
        assert alone.tobytes() == whole[:, :, row : row + 1].tobytes()


def test_rows_beside_rows_that_see_nothing_yet() -> None:
    """Their maximum is -inf before and after a block whose keys others see: -inf less -inf is NaN."""
    random = np.random.default_rng(6)
    q, k, v = (random.standard_normal((1, 1, rows, 32), dtype=np.float32) for rows in (8, 2000, 2000))
    seen = np.ones((8, 2000), bool)
    seen[::2, :1900] = False
    with no_flags():
        found = tw.attention(q, k, v, mask=seen, strategy="blocks")
    scores = np.where(seen, q[0, 0].astype(np.float64) @ k[0, 0].T / np.sqrt(32), -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    right = weights @ v[0, 0] / weights.sum(-1, keepdims=True)
    np.testing.assert_allclose(found[0, 0], right, rtol=1e-5, atol=1e-5)


@each_dtype
def test_nan_in_a_query_stays_in_its_row(dtype: str) -> None:
    bounded = DTYPES.index(dtype) % 2 == 1  # kernels of `test_every_feature`
    made = make(Attention(20, 24, dtype, bounded=bounded), Sizes(1, 1, 1, 40, 60))
    clean = ran(made).call.out.copy()
    again = make(made.problem, made.sizes)
    again.call.q[0, 0, 7, 3] = np.nan
    ran(again)
    others = np.arange(40) != 7
    assert again.call.out[0, 0, others].tobytes() == clean[0, 0, others].tobytes()
    assert np.isnan(again.call.out[0, 0, 7].astype(np.float64)).all()


def test_lowest_numbers_of_a_mask_hide() -> None:
    for dtype in ("f32", "bf16", "f16", "f64"):
        made = make(Attention(8, mask=dtype), Sizes(1, 1, 1, 20, 30))
        mask = made.call.mask
        assert mask is not None
        writable = np.zeros((1, 1, 20, 30), mask.dtype)
        lowest = {"f32": -3.4028235e38, "bf16": -3.38e38, "f16": -65504, "f64": -1.7976931348623157e308}
        writable[..., 10:] = lowest[dtype]
        writable[:, :, 5] = lowest[dtype]
        found = ran(calls.moved(made, mask=writable)).call
        hidden = make(Attention(8, mask="u8"), Sizes(1, 1, 1, 20, 30))
        expected = ran(calls.moved(hidden, mask=(writable == 0).astype(np.uint8))).call
        np.testing.assert_allclose(found.out, expected.out, rtol=1e-6, atol=1e-6)
        assert not found.out[0, 0, 5].any(), "a row that sees nothing"
        assert found.row_max[0, 0, 5] == -np.inf


@pytest.mark.parametrize("height", [-1e4, -1e9, -3e10, 1e12, -1e30])
def test_rows_far_below_or_above_zero(height: float) -> None:
    """Masks of -1e9 on all of a row, as of padding: the scores that are left in its rounding decide."""
    for dtype in ("f32", "bf16"):
        made = make(Attention(8, dtype=dtype, mask="f32"), Sizes(1, 1, 1, 20, 600))
        added = np.full((1, 1, 20, 600), height, np.float32)
        call = ran(calls.moved(made, mask=added)).call
        t = (call.q.astype(np.float32)[0, 0] @ call.k.astype(np.float32)[0, 0].T) * np.float32(call.scale)
        t = t.astype(np.float32) + np.float32(height)
        weights = np.exp((t - t.max(axis=1, keepdims=True)).astype(np.float64))
        expected = weights @ call.v[0, 0].astype(np.float64) / weights.sum(axis=1, keepdims=True)
        if abs(height) > 1e8:  # all scores round to one number
            np.testing.assert_allclose(call.out[0, 0].astype(np.float64), expected, rtol=2e-2, atol=2e-2)
        assert np.isfinite(call.out.astype(np.float64)).all()


def test_large_scores_neither_overflow_nor_vanish() -> None:
    for scale in (1e3, 1e-3, -2.0, 0.0):
        made = make(Attention(8, bounded=True), Sizes(1, 1, 1, 20, 30))
        made = Made(made.problem, made.call._replace(scale=scale), made.sizes, made.ranges)
        ran(made)
        out, _, _ = made.expected()
        np.testing.assert_allclose(made.call.out, out, rtol=1e-3 if scale > 1 else 1e-5, atol=1e-4)


@pytest.mark.parametrize("keys", [5, 600])
def test_masks_of_any_strides(keys: int) -> None:
    """Transposed, repeated along keys, repeated along queries."""
    random = np.random.default_rng(0)
    for mask in (
        random.standard_normal((1, 1, keys, 40)).swapaxes(2, 3),
        np.broadcast_to(random.standard_normal((1, 2, 40, 1)), (1, 2, 40, keys)),
        np.broadcast_to(random.standard_normal((1, 1, 1, keys)), (1, 2, 40, keys)),
    ):
        made = make(Attention(8, mask="f64"), Sizes(1, 1, 2, 40, keys))
        shape = (1, 2, 40, keys)
        check(ran(calls.moved(made, mask=np.broadcast_to(mask, shape))))


def test_views_of_any_strides() -> None:
    """(batch, rows, heads, columns) in memory, reversed rows, and columns two apart."""
    problem, sizes = Attention(20, 24, bounded=True), Sizes(2, 2, 2, 30, 41)
    made = make(problem, sizes)
    expected = ran(made).call.out.copy()

    def turned(array: Array) -> Array:
        return np.ascontiguousarray(array.swapaxes(1, 2)).swapaxes(1, 2)

    def spread(array: Array) -> Array:
        wide = np.zeros((*array.shape[:3], 2 * array.shape[3]), array.dtype)
        wide[..., ::2] = array
        return wide[..., ::2]

    call = made.call
    other = calls.moved(made, q=turned(spread(call.q)), k=spread(turned(call.k)), out=turned(call.out))
    items = call.items.copy()
    for column, array in ((0, other.call.q), (1, other.call.k), (3, other.call.out)):
        items[:, column] = np.arange(2) * (array.strides[0] // array.itemsize)
    other.call._replace(items=items).run(kernel_of(problem))
    for item in range(2):
        queries, _ = sizes.lengths(item)
        assert np.array_equal(other.call.out[item, :, :queries], expected[item, :, :queries])


@pytest.mark.skipif(not GUARD_PAGES, reason="needs guard pages")
@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64"])
def test_nothing_outside_of_operands_is_touched(dtype: str, at_end: bool) -> None:
    held: list[tuple[GuardedMemory, Array]] = []

    def place(array: Array) -> Array:
        memory = GuardedMemory(array.nbytes)
        view = memory.place(array, array.strides, at_end=at_end)
        held.append((memory, view))
        return view

    # Kernels of `test_every_feature`, and some of short, odd heads.
    number = DTYPES.index(dtype)
    known = [Attention(20, 24, dtype, **features) for features in share(FEATURES, 2, number)]
    short = [Attention(9, 7, dtype, **features) for features in share(FEATURES, 6, number)]
    for problem, sizes in product((*known, *short), (Sizes(1, 1, 2, 13, 37), Sizes(1, 1, 1, 3, 5))):
        held.clear()
        made = make(problem, sizes, place=place)
        before = [memory.outside(view) for memory, view in held]
        check(ran(made))
        for (memory, view), bytes_before in zip(held, before, strict=True):
            assert np.array_equal(memory.outside(view), bytes_before)


def test_accuracy_of_normal_variates() -> None:
    """What issue and documentation promise of f32: 2e-6 of absolute error."""
    for head, keys in ((64, 1), (64, 384), (128, 2000)):
        for bounded in (False, True):
            made = make(Attention(head, bounded=bounded), Sizes(1, 1, 1, 64, keys))
            out, _, _ = ran(made).expected()
            assert np.abs(made.call.out - out).max() < 2e-6 < allowed(made.problem)
