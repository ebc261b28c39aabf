"""`append_kv` in machine code: other lengths, pages and rows in each call, and contents that it refuses."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from repeated_calls import check, python_lines
from support import GUARD_PAGES, Array, GuardedMemory
from tiers import each_pair

import tilewright as tw
from tilewright.calls.layout import native_entry_possible
from tilewright.calls.recording import new_array, repeatable, restartable
from tilewright.calls.repeated import in_python, repeated, replay
from tilewright.errors import BlockOutsideCache, CacheFull, InvalidLengths, TilewrightError
from tilewright.ops.attention.kv_cache import AppendRequest, prepare_append

pytestmark = pytest.mark.skipif(not native_entry_possible(), reason="no native entries in this interpreter")

RNG = np.random.default_rng(11)
BATCH, HEADS, CAPACITY, NEW, PAGES = 3, 2, 12, 4, 40

append: Any = tw.append_kv  # called with options from tables


def values(*shape: int, dtype: Any = np.float32) -> Array:
    found = 3 * RNG.standard_normal(shape)
    return found.astype(dtype)


def traced(*operands: Any, **options: Any) -> tuple[Array, int]:
    """The new lengths, and the lines of Python of the call."""
    found: list[Array] = []
    lines = python_lines(lambda: found.append(append(*operands, **options)))
    return found[0], lines


def oracle(cache: Array, rows: Array, before: Array, count: Array, table: Array | None, layout: str) -> Array:
    """The cache with the rows in their places, one by one."""
    found = cache.copy()
    to, new = (one if layout == "bhsd" else one.swapaxes(1, 2) for one in (found, rows))
    page = to.shape[2]
    for sequence in range(len(new)):
        for row in range(count[sequence]):
            place = int(before[sequence]) + row
            matrix = sequence if table is None else table[sequence, place // page]
            place = place if table is None else place % page
            to[matrix, :, place] = new[sequence, :, row].astype(cache.dtype)
    return found


def lengths() -> Iterator[tuple[Array, Array]]:
    """Lengths before and new ones: random, all full, none new."""
    for _ in range(6):
        before = RNG.integers(0, CAPACITY + 1, BATCH)
        yield before, RNG.integers(0, np.minimum(NEW, CAPACITY - before) + 1)
    yield np.full(BATCH, CAPACITY - NEW), np.full(BATCH, NEW)
    yield np.full(BATCH, CAPACITY), np.zeros(BATCH, np.int64)


def contiguous(shape: tuple[int, ...], dtype: Any) -> Array:
    return values(*shape, dtype=dtype)


def strided(shape: tuple[int, ...], dtype: Any) -> Array:
    """Every other row, backwards, of heads that are far apart."""
    return values(shape[0], 2 * shape[1], 2 * shape[2], shape[3], dtype=dtype)[:, ::2, ::-2]


def apart(shape: tuple[int, ...], dtype: Any) -> Array:
    """Elements of a row that are not adjacent."""
    return values(*shape[:3], 3 * shape[3], dtype=dtype)[..., ::3]


def unaligned(shape: tuple[int, ...], dtype: Any) -> Array:
    memory = np.zeros(values(*shape, dtype=dtype).nbytes + 1, np.uint8)
    found: Array = np.ndarray(shape, dtype, memory, 1)
    found[...] = values(*shape, dtype=dtype)
    return found


Maker = Callable[[tuple[int, ...], Any], Array]
MAKERS: tuple[Any, ...] = (contiguous, strided, apart, unaligned)
TYPES = (np.float64, np.float32, np.float16, ml_dtypes.bfloat16, np.int8, np.complex128, np.bool_)
#: Elements of rows of K and of V: copies of every unit.
COLUMNS = 24, 5


def _name(make: Any) -> str:
    return str(make.__name__)


class Case:
    """Caches and new rows of a form, new ones for each call."""

    def __init__(
        self, make: Maker, dtype: Any, layout: str, page: int | None, make_rows: Maker | None = None
    ) -> None:
        self.make, self.make_rows = make, make_rows or make
        self.dtype, self.layout, self.page = dtype, layout, page

    def arrays(self, make: Maker, matrices: int, rows: int, dtype: Any = None) -> list[Array]:
        """Those of K and V."""
        axes = (HEADS, rows) if self.layout == "bhsd" else (rows, HEADS)
        return [make((matrices, *axes, columns), dtype or self.dtype) for columns in COLUMNS]

    def caches(self) -> list[Array]:
        places = (BATCH, CAPACITY) if self.page is None else (PAGES, self.page)
        return self.arrays(self.make, *places)

    def rows(self, dtype: Any = None) -> list[Array]:
        return self.arrays(self.make_rows, BATCH, NEW, dtype)

    def table(self) -> Array | None:
        """Pages of sequences, no page twice."""
        if self.page is None:
            return None
        most = CAPACITY // self.page
        return RNG.permutation(PAGES)[: BATCH * most].reshape(BATCH, most)

    def call(self, before: Any, count: Any, dtype: Any = None, lengths_type: Any = np.int64) -> int:
        """Lines of Python of a call that is right."""
        caches, new, table = self.caches(), self.rows(dtype), self.table()
        counts = np.broadcast_to(NEW if count is None else count, BATCH)
        firsts = np.broadcast_to(before, BATCH)
        with np.errstate(all="ignore"):
            expected = [
                oracle(cache, rows, firsts, counts, table, self.layout)
                for cache, rows in zip(caches, new, strict=True)
            ]
        given = [one if one is None else one.astype(lengths_type) for one in (before, count, table)]
        options = {"new_lengths": given[1], "block_table": given[2], "layout": self.layout}
        found, lines = traced(*caches, *new, given[0], **options)
        assert found.dtype == np.int64
        assert np.array_equal(found, firsts + counts)
        for cache, wanted in zip(caches, expected, strict=True):
            assert cache.tobytes() == wanted.tobytes()
        return lines


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
@pytest.mark.parametrize("page", [None, 1, 3, 4])
@each_pair
def test_lengths_and_pages_are_read_at_every_call(
    make: Maker, dtype: Any, layout: str, page: int | None
) -> None:
    case = Case(make, dtype, layout, page)
    replay().table.clear()
    lines = [case.call(before, count) for before, count in lengths()]
    assert lines[0] > 0
    assert lines[2:] == [0] * (len(lines) - 2)


@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
@pytest.mark.parametrize("dtype", [np.float64, np.int8], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize(
    "makers", list(itertools.permutations(MAKERS, 2)), ids=lambda both: "-".join(map(_name, both))
)
def test_caches_and_rows_of_other_strides(makers: tuple[Maker, Maker], dtype: Any, layout: str) -> None:
    case = Case(makers[0], dtype, layout, None, makers[1])
    lines = [case.call(*both) for both in lengths()]
    assert lines[2:] == [0] * (len(lines) - 2)


@pytest.mark.parametrize("lengths_type", ["i4", ">i4", "i2", "u8", "u4", ">i8"])
@pytest.mark.parametrize("page", [None, 3])
def test_integers_of_any_type(lengths_type: str, page: int | None) -> None:
    case, kind = Case(contiguous, np.float32, "bhsd", page), np.dtype(lengths_type)
    lines = [case.call(*both, lengths_type=kind) for both in lengths()]
    assert lines[2:] == [0] * (len(lines) - 2)


@pytest.mark.parametrize("page", [None, 3])
def test_one_length_for_all_and_all_new_rows(page: int | None) -> None:
    case = Case(contiguous, np.float32, "bshd", page)
    for count in (None, np.array(2)):
        lines = [case.call(np.array(before), count) for before in (0, 5, 8, 3)]
        assert lines[2:] == [0, 0]


#: Types that rows are converted between by machine code.
FLOATS = tuple(map(np.dtype, ("f8", "f4", "f2", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn)))
CONVERTED = [
    *itertools.permutations(FLOATS, 2),
    *(
        (np.dtype(to), np.dtype(new))
        for to, new in (("f4", "i4"), (">f4", "f4"), ("f4", ">f2"), ("c8", "f4"))
    ),
]


@pytest.mark.parametrize("both", CONVERTED, ids=lambda both: "-".join(map(str, both)))
def test_rows_of_another_type(both: tuple[np.dtype[Any], np.dtype[Any]]) -> None:
    """Lengths of rows are whole vectors and rests of them."""
    for make in (contiguous, apart):
        case = Case(make, both[0], "bhsd", None)
        lines = [case.call(*some, dtype=both[1]) for some in lengths()]
        assert lines[2:] == [0] * (len(lines) - 2)


@pytest.mark.parametrize(
    "to", ["f2", ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn, "f4"]
)
def test_numbers_of_every_size_are_rounded_as_by_numpy(to: Any) -> None:
    """Ties, subnormal numbers, numbers too large, infinities and NaN; whatever `numpy.errstate` says."""
    source = np.float64 if to == "f4" else np.float32
    word = np.uint64 if to == "f4" else np.uint32
    bits = RNG.integers(0, np.iinfo(word).max, 4096, word, endpoint=True)
    ties = np.ldexp(np.arange(2048) / 256, RNG.integers(-30, 20, 2048)).astype(source)
    special = np.array([np.nan, np.inf, -np.inf, -0.0] * 512, source)
    rows = np.concatenate((bits.view(source), ties, special)).reshape(1, 1, 64, 128)
    with np.errstate(all="ignore"):
        expected = rows.astype(to)
    for _ in range(3):
        caches = [np.zeros((1, 1, 64, 128), to) for _ in "kv"]
        with np.errstate(all="raise"):
            append(*caches, rows, rows, np.array([0]))
        for cache in caches:
            assert np.array_equal(np.isnan(cache), np.isnan(expected))
            kept = ~np.isnan(expected)
            assert cache[kept].tobytes() == expected[kept].tobytes()


@pytest.mark.parametrize("kind", ["cache", "other cache"])
def test_new_rows_that_are_those_of_a_cache(kind: str) -> None:
    """Both caches are read before one is written."""
    for number in range(4):
        caches = [values(BATCH, HEADS, CAPACITY, 8) for _ in "kv"]
        new = [one[:, :, number : number + NEW] for one in caches]
        new = new if kind == "cache" else new[::-1]
        before, count = np.array([1, 2, 8]), np.array([4, 0, 4])
        expected = [
            oracle(cache, rows, before, count, None, "bhsd") for cache, rows in zip(caches, new, strict=True)
        ]
        append(*caches, *new, before, new_lengths=count)
        for cache, wanted in zip(caches, expected, strict=True):
            assert np.array_equal(cache, wanted)


def test_new_rows_in_place_are_repeated() -> None:
    whole = values(BATCH, HEADS, CAPACITY, 8)
    five = np.array(5)
    check(
        lambda k, v: append(k, v, k[:, :, 2:4], v[:, :, 3:5], five), whole, values(BATCH, HEADS, CAPACITY, 8)
    )


def test_numbers_that_grow_leave_no_recipes() -> None:
    caches, new = np.zeros((2, 1, 2, 50, 4)), np.ones((2, 1, 2, 1, 4))
    replay().table.clear()
    for length in range(50):
        assert append(*caches, *new, length).tolist() == [length + 1]
    assert caches.all()
    assert len(replay().table) == 0


#: kv_lengths, new_lengths and block_table that are refused, with the class and words of its message.
REFUSED: dict[str, tuple[Any, Any, Any, type[TilewrightError], str]] = {
    "negative": ([0, -1, 0], [1, 1, 1], None, InvalidLengths, r"kv_lengths\[1\] is -1"),
    "far": ([0, 0, 2**62], [1, 1, 1], None, InvalidLengths, r"kv_lengths\[2\]"),
    "new, negative": ([0, 1, 0], [1, -1, 1], None, InvalidLengths, r"new_lengths\[1\] is -1"),
    "new, too many": ([0, 1, 0], [1, 1, 5], None, InvalidLengths, r"new_lengths\[2\] is 5"),
    "full": ([0, 9, 0], [1, 4, 1], None, CacheFull, "sequence 1 has 9 keys.* 4 more"),
    "page": ([0, 3, 3], [1, 4, 1], [[0, 1], [2, 40], [3, 4]], BlockOutsideCache, r"\[1, 1\] is page 40"),
    "page, negative": ([0, 3, 3], [1, 1, 1], [[0, 1], [-1, 2], [3, 4]], BlockOutsideCache, "is page -1"),
    "former page": (
        [0, 6, 3],
        [1, 1, 1],
        [[0, 1], [90, 2], [3, 4]],
        BlockOutsideCache,
        r"\[1, 0\] is page 90",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_contents_are_refused_before_anything_is_written(name: str) -> None:
    """In the first call and in repeated ones, which go on being machine code afterwards."""
    before, count, table, kind, words = REFUSED[name]
    lines: list[int] = []
    replay().table.clear()

    def call(first: Any, rows: Any, pages: Any) -> None:
        options = {} if pages is None else {"block_table": np.array(pages)}
        append(*caches, *new, np.array(first), new_lengths=np.array(rows), **options)

    good = [0, 1, 2], [1, 0, 3], None if table is None else [[5, 6], [7, 8], [9, 10]]
    for repeat in range(5):
        caches = [values(40 if table else BATCH, HEADS, 4 if table else CAPACITY, 8) for _ in "kv"]
        new = [values(BATCH, HEADS, NEW, 8) for _ in "kv"]
        kept = [one.copy() for one in caches]
        if repeat % 2 == 0:
            with pytest.raises(kind, match=f"^append_kv: .*{words}"):
                call(before, count, table)
            assert all(np.array_equal(one, former) for one, former in zip(caches, kept, strict=True))
        else:
            lines.append(python_lines(lambda: call(*good)))
            assert not np.array_equal(caches[0], kept[0])
    assert lines[0] > 0
    assert lines[1] == 0


def test_pages_behind_the_last_key_are_ignored() -> None:
    case = Case(contiguous, np.float32, "bhsd", 4)
    for _ in range(3):
        caches, new, table = case.caches(), case.rows(), case.table()
        assert table is not None
        table[:, 2] = 99, -5, 1 << 40
        before, count = np.array([0, 4, 5]), np.array([4, 4, 3])
        expected = [
            oracle(cache, rows, before, count, table, "bhsd") for cache, rows in zip(caches, new, strict=True)
        ]
        found = append(*caches, *new, before, new_lengths=count, block_table=table)
        assert found.tolist() == [4, 8, 8]
        assert all(np.array_equal(one, wanted) for one, wanted in zip(caches, expected, strict=True))


def test_nothing_to_append() -> None:
    for batch, rows, capacity, columns in ((0, 4, 12, 8), (3, 0, 12, 8), (3, 0, 0, 8), (3, 4, 12, 0)):
        caches, new = np.ones((2, batch, 2, capacity, columns)), np.zeros((2, batch, 2, rows, columns))
        for _ in range(3):
            found = append(*caches, *new, np.zeros(batch, np.int64))
            assert found.tolist() == [rows] * batch
            assert caches.all()
    pages = np.ones((2, 0, 2, 4, 8)), np.zeros((2, 3, 2, 0, 8)), np.zeros((3, 0), np.int64)
    for _ in range(3):
        assert append(*pages[0], *pages[1], np.zeros(3, np.int64), block_table=pages[2]).tolist() == [0] * 3


@pytest.mark.skipif(not GUARD_PAGES, reason="needs mprotect")
@pytest.mark.parametrize("at_end", [False, True])
@pytest.mark.parametrize("page", [None, 3])
def test_no_byte_beside_an_array_is_touched(page: int | None, at_end: bool) -> None:
    """Operands beside inaccessible pages."""
    case = Case(contiguous, np.float32, "bhsd", page)
    for _ in range(3):
        memories: list[tuple[GuardedMemory, Array]] = []

        def guarded(array: Array, memories: list[tuple[GuardedMemory, Array]] = memories) -> Array:
            memory = GuardedMemory(array.nbytes)
            view = memory.place(array, array.strides, at_end=at_end)
            memories.append((memory, view))
            return view

        table, caches = case.table(), case.caches()
        options = {} if table is None else {"block_table": guarded(table)}
        new, before, count = case.rows(), np.array([0, 3, 8]), np.array([4, 0, 4])
        expected = [
            oracle(cache, rows, before, count, table, "bhsd") for cache, rows in zip(caches, new, strict=True)
        ]
        views = [guarded(one) for one in caches]
        append(*views, *map(guarded, new), guarded(before), new_lengths=guarded(count), **options)
        for view, wanted in zip(views, expected, strict=True):
            assert np.array_equal(view, wanted)
        for memory, view in memories:
            outside = memory.outside(view)
            assert (outside[outside != 0] == memory.PATTERN).all()
            assert np.count_nonzero(outside) == outside.size - view.nbytes


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.float64])
@pytest.mark.parametrize("layout", ["bhsd", "bshd"])
@pytest.mark.parametrize("page", [None, 3])
def test_rows_are_quantised_into_caches_of_int8(dtype: Any, layout: str, page: int | None) -> None:
    """The same integers and scales as those of `quantize_rows`, appended one after the other."""
    for number, (before, count) in enumerate(lengths()):
        case = Case(contiguous, np.int8, layout, page)
        caches, new, table = case.caches(), case.rows(dtype), case.table()
        new[0][0] *= dtype(0)
        new[1][1, 1, 1] = np.nan
        scales = [values(*one.shape[:-1]) for one in caches]
        quantised = [tw.quantize_rows(rows) for rows in new]
        expected = [
            oracle(cache, rows.q, before, count, table, layout)
            for cache, rows in zip(caches, quantised, strict=True)
        ]
        expected_scales = [
            oracle(one[..., None], rows.scales[..., None], before, count, table, layout)[..., 0]
            for one, rows in zip(scales, quantised, strict=True)
        ]
        options: dict[str, Any] = {"key_scales": scales[0], "value_scales": scales[1]}
        options |= {"new_lengths": count, "block_table": table, "layout": layout}
        found, lines = traced(*caches, *new, before, **options)
        assert np.array_equal(found, before + count)
        for one, wanted in zip((*caches, *scales), (*expected, *expected_scales), strict=True):
            assert np.array_equal(one, wanted, equal_nan=one.dtype != np.int8)
        assert lines == 0 or number < 2


def test_only_keys_are_quantised() -> None:
    for _ in range(3):
        (k, v), (k_cache, v_cache) = values(2, 1, 2, 1, 8), np.zeros((2, 1, 2, 4, 8), np.float32)
        k_cache, scales = k_cache.astype(np.int8), np.zeros((1, 2, 4), np.float32)
        append(k_cache, v_cache, k, v, np.array([2]), key_scales=scales)
        assert np.array_equal(v_cache[:, :, 2:3], v)
        np.testing.assert_allclose(k_cache[:, :, 2:3] * scales[:, :, 2:3, None], k, atol=scales.max() / 1.9)


def test_a_model_with_quantised_caches() -> None:
    """Attention over them is near to that over the floats."""
    rng = np.random.default_rng(0)
    k, v, q = (rng.standard_normal((1, 2, 9, 64)).astype(np.float32) for _ in "kvq")
    caches = [np.zeros((1, 2, 16, 64), np.int8) for _ in "kv"]
    scales = [np.zeros((1, 2, 16), np.float32) for _ in "kv"]
    found: Any = np.array([0])
    for first, last in ((0, 5), (5, 6), (6, 7), (7, 8), (8, 9)):
        part = (..., slice(first, last), slice(None))
        found = append(*caches, k[part], v[part], found, key_scales=scales[0], value_scales=scales[1])
        out = tw.attention(
            q[part],
            caches[0],
            caches[1],
            kv_lengths=found,
            key_scales=scales[0],
            value_scales=scales[1],
            causal=True,
        )
        exact = tw.attention(q, k, v, causal=True)[part]
        assert np.abs(out - exact).max() < 0.05 * np.abs(exact).max()


#: Calls beside a thread that changes lengths, and seconds in which some are refused and some are not.
CALLS, LONGEST = 4000, 60


def test_lengths_that_another_thread_changes() -> None:
    """Every call either writes within the cache or is refused; its result fits what it has written."""
    before, stop = np.zeros(BATCH, np.int64), threading.Event()

    def change() -> None:
        while not stop.is_set():
            for value in (3, 1 << 40, -7, 12, 9, 0):
                before[...] = value

    thread = threading.Thread(target=change)
    thread.start()
    refused = written = 0
    deadline = time.monotonic() + LONGEST
    try:
        # On a busy machine the other thread may have few turns meanwhile.
        while refused + written < CALLS or (not (refused and written) and time.monotonic() < deadline):
            caches = np.zeros((2, BATCH, HEADS, CAPACITY, 8), np.float32)
            new = np.ones((2, BATCH, HEADS, 3, 8), np.float32)
            try:
                found = append(*caches, *new, before)
            except (InvalidLengths, CacheFull):
                refused += 1
                assert not caches.any()
                continue
            written += 1
            for sequence, end in enumerate(found):
                rows = np.flatnonzero(caches[0, sequence, 0, :, 0])
                assert rows.tolist() == [end - 3, end - 2, end - 1]
    finally:
        stop.set()
        thread.join()
    assert refused > 0
    assert written > 0


LAYERS = 40
_attention = in_python(tw.attention)


@repeated
def decode(x: Array, caches: tuple[Array, ...], before: Array) -> tuple[Array, Array]:
    """A step of a model: each layer appends its input and attends to its cache."""
    restartable()
    after = np.zeros(0)
    for k_cache, v_cache in zip(caches[::2], caches[1::2], strict=True):
        after = new_array((len(x),), np.int64)
        request = AppendRequest((k_cache, v_cache), (x, x), before)
        prepare_append(request, after).run()
        out = new_array(x.shape, x.dtype)
        x = _attention(x, k_cache, v_cache, kv_lengths=after, causal=True, out=out)
    repeatable()
    return x, after


def test_a_model_is_one_recipe() -> None:
    """Steps of 40 layers, each with caches of its own, give the results of single calls."""
    before = np.array([3, 6])
    caches = [values(2, 2, 32, 16) for _ in range(2 * LAYERS)]
    copies = [one.copy() for one in caches]
    lengths_so_far: Any = before.copy()
    for step in range(8):
        x = values(2, 2, 1, 16)
        results: list[Any] = []
        lines = python_lines(lambda x=x, r=results: r.append(decode(x, tuple(caches), before)))  # type: ignore[misc]
        y = x
        for k_cache, v_cache in zip(copies[::2], copies[1::2], strict=True):
            after = tw.append_kv(k_cache, v_cache, y, y, lengths_so_far)
            y = tw.attention(y, k_cache, v_cache, kv_lengths=after, causal=True)
        lengths_so_far = after
        out, found = results[0]
        assert np.array_equal(found, after)
        assert np.array_equal(out, y)
        assert all(np.array_equal(one, other) for one, other in zip(caches, copies, strict=True))
        before[...] = found
        assert lines == 0 or step < 2
    before[1] = 32
    with pytest.raises(CacheFull, match="sequence 1 has 32 keys"):
        decode(values(2, 2, 1, 16), tuple(caches), before)
    assert all(np.array_equal(one, other) for one, other in zip(caches, copies, strict=True))
