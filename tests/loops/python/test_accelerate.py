"""`tilewright.accelerate`: functions compute what they did, nests are calls, everything else is as it was."""

from __future__ import annotations

import asyncio
import functools
import inspect
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import numpy as np
import pytest
import python_programs as programs
from tiers import crossed

import tilewright as tw
from tilewright.errors import InvalidThreads, NotAccelerated
from tilewright.loops.python import calls as python_nest
from tilewright.ops.matmul.public import matmul
from tilewright.threads.pool import wanted_threads

Array = np.ndarray[Any, Any]

#: Function, shapes of its arrays and the subscripts of its nests.
PROGRAMS: list[tuple[Callable[..., Any], list[tuple[int, ...]], list[str]]] = [
    (programs.plain, [(7, 9), (9, 8), (7, 8)], ["ik,kj->ij"]),
    (programs.scalar_sum, [(7, 9), (9, 8)], ["ik,kj->ij"]),
    (programs.generator, [(7, 9), (9, 8)], ["ik,kj->ij"]),
    (programs.scaled, [(7, 9), (9, 8), (7, 8)], ["ik,kj->ij"]),
    (programs.transposed, [(8, 9), (9, 7), (7, 8)], ["ik,kj->ji"]),
    (programs.offsets, [(13, 19), (18, 12), (13, 9)], ["ik,kj->ij"]),
    (programs.blocked, [(11, 11), (11, 11), (11, 11)], ["ik,kj->ij"]),
    (programs.batched, [(3, 5, 6), (3, 6, 4), (3, 5, 4)], ["bik,bkj->bij"]),
    (programs.matrix_vector, [(17, 19), (19,), (17,)], ["ik,k->i"]),
    (programs.vector_matrix, [(17, 19), (17,), (19,)], ["ij,i->j"]),
    (programs.lower, [(9, 6), (9, 9)], ["ik,jk->ij"]),
    (programs.upper, [(9, 6), (9, 6), (9, 9)], ["ik,jk->ij"]),
    (programs.contraction, [(3, 4, 2, 5), (3, 2, 6, 3), (6, 4, 5, 3)], ["pjqk,mqip->ijkm"]),
    (programs.elementwise, [(13, 17), (17, 13), (13, 17)], ["ij,ji->ij"]),
    (programs.correlation, [(14, 4), (5, 4), (10,)], ["ikc,kc->i"]),
    (programs.dot, [(15, 17), (17, 15)], ["ij,ji->"]),
    (programs.rows_of_dots, [(7, 9), (9, 8), (7, 8)], ["ik,kj->ij"]),
    (programs.rows_of_products, [(7, 9), (9, 8), (7, 8)], ["ik,kj->ij"]),
    (programs.rows, [(7, 9), (9, 8), (7, 8)], ["ik,kj->ij"]),
    (programs.parts, [(7, 9), (9, 8), (7, 8)], ["ik,kj->ij"]),
    (programs.outer_products, [(9, 7), (9, 8), (7, 8)], ["ki,kj->ij"]),
    (programs.two_nests, [(9, 9), (9, 9), (9, 9)], ["ik,kj->ij", "ij,kj->ik"]),
]


def arrays_of(shapes: list[tuple[int, ...]], dtype: str) -> list[Array]:
    rng = np.random.default_rng(0)
    return [rng.integers(-4, 5, shape).astype(dtype) for shape in shapes]


def replaced(function: Callable[..., Any]) -> list[str]:
    return [nest.subscripts for nest in tw.accelerate.report(function) if nest.replaced]


@pytest.mark.parametrize(
    ("function", "shapes", "subscripts", "dtype"),
    crossed(PROGRAMS, ["f8", "f4", "i4", "c16"], 2),
    ids=lambda part: getattr(part, "__name__", None),
)
def test_programs(
    function: Callable[..., Any], shapes: list[tuple[int, ...]], subscripts: list[str], dtype: str
) -> None:
    fast = tw.accelerate(function)
    assert replaced(fast) == subscripts
    ours, theirs = arrays_of(shapes, dtype), arrays_of(shapes, dtype)
    if dtype == "c16" and function is programs.dot:
        return
    result, expected = fast(*ours), function(*theirs)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)
    assert type(result) is type(expected)
    np.testing.assert_array_equal(result, expected)
    with_floats = (programs.scaled, programs.batched, programs.two_nests, programs.upper)
    mixed = dtype == "i4" and function in with_floats
    assert all(bool(nest.as_written) == mixed for nest in tw.accelerate.report(fast) if nest.replaced)


@pytest.mark.parametrize(
    ("dtypes", "called"),
    [
        (("f4", "f4", "f8"), True),
        (("f8", "f8", "f4"), True),
        (("f4", "f8", "f8"), True),
        (("f2", "f2", "f2"), True),
        (("f2", "f2", "f4"), True),
        (("c8", "f4", "c8"), True),
        (("i1", "i1", "i4"), False),
        (("i4", "i4", "f8"), False),
        (("f8", "f8", "i4"), False),
        (("i8", "i4", "i8"), True),
        (("?", "?", "i4"), False),
        (("O", "O", "O"), False),
    ],
)
def test_types(dtypes: tuple[str, str, str], called: bool) -> None:
    fast = tw.accelerate(programs.plain)
    rng = np.random.default_rng(0)
    shapes = [(7, 9), (9, 8), (7, 8)]
    made = [rng.integers(0, 3, shape).astype(dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
    expected = made[2].copy()
    programs.plain(made[0], made[1], expected)
    fast(*made)
    assert made[2].dtype == expected.dtype
    np.testing.assert_array_equal(made[2], expected)
    assert (tw.accelerate.report(fast)[0].as_written == "") == called


def negated(D: Array, B: Array, n: int) -> Any:
    s = np.int32(0)
    for j in range(n):
        s += -D[j] * B[j]
    return s


def test_factors_of_narrower_integers_wrap_around() -> None:
    narrow, wide = np.arange(1, 301, dtype=np.uint16), np.ones(300, np.int32)
    fast = tw.accelerate(negated)
    with np.errstate(over="ignore"):
        assert fast(narrow, wide, 300) == negated(narrow, wide, 300) == 300 * 65536 - narrow.sum()
    assert "wraps around" in tw.accelerate.report(fast)[0].as_written


def test_loop_variables_keep_their_last_values() -> None:
    fast = tw.accelerate(programs.last_values)
    a, b, c = arrays_of([(7, 9), (9, 8), (7, 8)], "f8")
    assert fast(a, b, c) == programs.last_values(a, b, c.copy())
    assert tw.accelerate.report(fast)[0].as_written == ""


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_results_too_large_for_a_second_step(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    monkeypatch.setattr(python_nest, "SMALL_RESULT", 0)
    for function in (programs.plain, programs.scaled, programs.transposed, programs.scalar_sum):
        ours, theirs = (arrays_of([(8, 8), (8, 8), (8, 8)], dtype) for _ in range(2))
        count = 2 if function is programs.scalar_sum else 3
        fast: Callable[..., Any] = tw.accelerate(function)
        fast(*ours[:count])
        function(*theirs[:count])
        np.testing.assert_array_equal(ours[2], theirs[2])
        assert tw.accelerate.report(fast)[0].as_written == ""


def test_lists_run_as_written() -> None:
    fast = tw.accelerate(programs.depth_first)
    a, b, c = arrays_of([(7, 9), (9, 8), (7, 8)], "i8")
    lists = [x.tolist() for x in (a, b, c)]
    fast(*lists)
    np.testing.assert_array_equal(lists[2], c - a @ b)
    assert "list" in tw.accelerate.report(fast)[0].as_written


@pytest.mark.parametrize("part", ["result", "factor", "rows"])
def test_shared_memory_runs_as_written(part: str) -> None:
    fast = tw.accelerate(programs.plain)

    def made() -> tuple[Array, Array, Array]:
        (w,) = arrays_of([(30, 40)], "f8")
        a, b = w[:8, :8], w[8:16, :8]
        c = {"result": w[:8, :8], "factor": w[9:17, :8], "rows": w[4:12, 4:12]}[part]
        return a, b, c

    ours, theirs = made(), made()
    fast(*ours)
    programs.plain(*theirs)
    np.testing.assert_array_equal(ours[2], theirs[2])
    assert "shares memory" in tw.accelerate.report(fast)[0].as_written


def test_blocks_of_one_array_are_apart() -> None:
    fast = tw.accelerate(programs.plain)
    (w,) = arrays_of([(30, 40)], "f8")
    expected = w[:8, 20:28] + w[:8, :8] @ w[8:16, :8]
    fast(w[:8, :8], w[8:16, :8], w[:8, 20:28])
    np.testing.assert_array_equal(w[:8, 20:28], expected)
    assert tw.accelerate.report(fast)[0].as_written == ""


def test_a_result_that_repeats_runs_as_written() -> None:
    fast = tw.accelerate(programs.plain)
    a, b = arrays_of([(7, 9), (9, 8)], "f8")
    one, other = (np.lib.stride_tricks.as_strided(np.zeros(8), (7, 8), (0, 8)) for _ in range(2))
    fast(a, b, one)
    programs.plain(a, b, other)
    np.testing.assert_array_equal(one, other)


def negative(A: Array, B: Array, C: Array) -> None:
    for i in range(-6, 0):
        for j in range(8):
            for k in range(-9, 0):
                C[i, j] += A[i, k] * B[k, j]


def wrapping(A: Array, B: Array, C: Array) -> None:
    for i in range(-3, 3):
        for j in range(8):
            for k in range(9):
                C[i, j] += A[i, k] * B[k, j]


@pytest.mark.parametrize(("function", "called"), [(negative, True), (wrapping, False)])
def test_negative_subscripts(function: Callable[..., Any], called: bool) -> None:
    fast = tw.accelerate(function)
    a, b, c = arrays_of([(7, 9), (9, 8), (7, 8)], "f8")
    expected = c.copy()
    function(a, b, expected)
    fast(a, b, c)
    np.testing.assert_array_equal(c, expected)
    assert (tw.accelerate.report(fast)[0].as_written == "") == called


def test_subscripts_out_of_bounds_raise_where_they_did() -> None:
    fast = tw.accelerate(programs.plain)
    a, b, c = arrays_of([(7, 9), (8, 8), (7, 8)], "f8")
    theirs = c.copy()
    with pytest.raises(IndexError) as ours:
        fast(a, b, c)
    with pytest.raises(IndexError) as original:
        programs.plain(a, b, theirs)
    np.testing.assert_array_equal(c, theirs)
    frames = [traceback.extract_tb(error.tb)[-1] for error in (ours, original)]
    assert frames[0].lineno == frames[1].lineno
    assert frames[0].filename == frames[1].filename
    assert frames[0].name == frames[1].name


@pytest.mark.parametrize("sizes", [(0, 9, 8), (7, 0, 8), (7, 9, 0)])
def test_empty_loops(sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    c = np.ones((m, n))
    tw.accelerate(programs.plain)(np.ones((m, k)), np.ones((k, n)), c)
    np.testing.assert_array_equal(c, np.ones((m, n)))


def test_attributes() -> None:
    ours, theirs = programs.Layer(7), programs.Layer(7)
    fast = tw.accelerate(programs.Layer.forward)
    (x,) = arrays_of([(7, 7)], "f8")
    np.testing.assert_array_equal(fast(ours, x), theirs.forward(x))
    assert tw.accelerate.report(fast)[0].as_written == ""


def test_properties_run_as_written() -> None:
    fast = tw.accelerate(programs.Layer.lost)
    layer = programs.Layer(7)
    fast(layer, layer.weight)
    assert "self.fresh is a property" in tw.accelerate.report(fast)[0].as_written


def test_shadowed_built_in_functions_run_as_written() -> None:
    range = reversed_range  # noqa: A001

    @tw.accelerate
    def product(A: Array, B: Array, C: Array) -> None:
        for i in range(7):
            for j in range(7):
                for k in range(7):
                    C[i, j] += A[i, k] * B[k, j]

    a, b, c = arrays_of([(7, 7), (7, 7), (7, 7)], "f8")
    expected = c + a @ b
    product(a, b, c)
    np.testing.assert_array_equal(c, expected)
    assert "range is not the built-in" in tw.accelerate.report(product)[0].as_written


def reversed_range(count: int) -> list[int]:
    return list(range(count))[::-1]


def test_closures_defaults_and_attributes_stay() -> None:
    scale, calls = 3.0, 0

    def product(A: Array, B: Array, /, C: Array, n: int = 7, *, add: float = 1.0) -> Array:
        """A product."""
        nonlocal calls
        calls += 1
        for i in range(n):
            for j in range(n):
                for k in range(n):
                    C[i, j] += scale * A[i, k] * B[k, j]
        return C + add

    product.mark = "kept"  # type: ignore[attr-defined]
    fast = tw.accelerate(product)
    a, b, c = arrays_of([(7, 7), (7, 7), (7, 7)], "f8")
    expected = c + 3 * a @ b + 1
    np.testing.assert_array_equal(fast(a, b, c), expected)
    assert calls == 1
    scale = 5.0
    np.testing.assert_array_equal(fast(a, b, np.zeros((7, 7)), add=0), 5 * a @ b)
    assert inspect.signature(fast) == inspect.signature(product)
    assert (fast.__doc__, fast.__name__, fast.__module__) == ("A product.", "product", __name__)
    assert fast.__qualname__ == product.__qualname__
    assert fast.mark == "kept"  # type: ignore[attr-defined]
    assert fast.__wrapped__ is product  # type: ignore[attr-defined]
    assert inspect.getsource(fast) == inspect.getsource(product)


def test_functions_with_another_name() -> None:
    def product(C: Array) -> None:
        for i in range(17):
            for k in range(17):
                C[i] += C17[i, k] * C17[k, 0]

    product.__name__ = "renamed"
    fast = tw.accelerate(product)
    assert fast.__name__ == "renamed"
    assert replaced(fast) == ["ik,k->i"]


class Base:
    """What a method finds by super()."""

    def size(self) -> int:
        return 7


class Derived(Base):
    """Methods of all kinds."""

    @tw.accelerate
    def size(self) -> int:
        C = np.zeros((7, 7))
        for i in range(7):
            for j in range(7):
                for k in range(7):
                    C[i, j] += C7[i, k] * C7[k, j]
        return super().size() + int(C[0, 0])

    @tw.accelerate
    @staticmethod
    def still(A: Array, C: Array) -> None:
        for i in range(7):
            for j in range(7):
                for k in range(7):
                    C[i, j] += A[i, k] * A[k, j]

    @tw.accelerate
    def private(self, C: Array) -> None:
        self.__hidden = C
        for i in range(7):
            for j in range(7):
                for k in range(7):
                    C[i, j] += C7[i, k] * C7[k, j]


C7 = np.ones((7, 7))


def test_methods() -> None:
    assert Derived().size() == 14
    c = np.zeros((7, 7))
    Derived.still(C7, c)
    assert c[0, 0] == 7
    assert replaced(Derived.size) == replaced(Derived.still) == ["ik,kj->ij"]
    Derived().private(c)
    assert c[0, 0] == 14
    assert "private name" in tw.accelerate.report(Derived.private)[0].text


@tw.accelerate
def again(C: Array, times: int) -> Array:
    """Calls itself by its global name, which the module lacks while the function is made."""
    for i in range(7):
        for j in range(7):
            for k in range(7):
                C[i, j] += C7[i, k] * C7[k, j]
    return again(C, times - 1) if times else C


@tw.accelerate
def shadowed(C: Array) -> Any:
    for i in range(7):
        for j in range(7):
            for k in range(7):
                C[i, j] += C7[i, k] * C7[k, j]
    shadowed = 3  # a variable of its own
    return C * shadowed


class Recursive:
    """Methods that call what has their name, in the module and in the class."""

    @tw.accelerate
    def again(self, C: Array, times: int) -> Array:
        for i in range(7):
            for j in range(7):
                for k in range(7):
                    C[i, j] += C7[i, k] * C7[k, j]
        return self.again(C, times - 1) if times else again(C, 0)


def test_functions_that_call_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    assert replaced(again) == replaced(shadowed) == replaced(Recursive.again) == ["ik,kj->ij"]
    assert again(np.zeros((7, 7)), 2)[0, 0] == 21
    assert shadowed(np.zeros((7, 7)))[0, 0] == 21
    assert Recursive().again(np.zeros((7, 7)), 2)[0, 0] == 28
    first = again
    monkeypatch.setitem(globals(), "again", lambda C, _times: C + 100)
    assert first(np.zeros((7, 7)), 2)[0, 0] == 107, "the name is looked up when the function calls"
    monkeypatch.delitem(globals(), "again")
    with pytest.raises(NameError, match="'again'"):
        first(np.zeros((7, 7)), 2)


def test_closures_that_call_themselves() -> None:
    calls = 0

    @tw.accelerate
    def inner(C: Array, times: int) -> Array:
        nonlocal calls
        calls += 1
        for i in range(7):
            for j in range(7):
                for k in range(7):
                    C[i, j] += C7[i, k] * C7[k, j]
        return inner(C, times - 1) if times else next(later(C) for _ in range(1))

    def later(C: Array) -> Array:
        return C * 2

    assert replaced(inner) == ["ik,kj->ij"]
    assert inner(np.zeros((7, 7)), 2)[0, 0] == 42
    assert calls == 3


def test_text_that_is_not_indented_and_a_second_call() -> None:
    @tw.accelerate
    def product(C: Array) -> str:
        text = """
begins at the margin"""
        for i in range(17):
            for k in range(17):
                C[i] += C17[i, k] * C17[k, 0]
        return text

    c = np.zeros(17)
    again = tw.accelerate(product)
    assert again is product
    assert again(c) == "\nbegins at the margin"
    assert c[0] == 17
    assert replaced(again) == ["ik,k->i"]


def test_what_may_be_left_in_the_middle_stays() -> None:
    @tw.accelerate
    def generator(C: Array) -> Iterator[int]:
        for i in range(7):
            for k in range(7):
                C[i] += C7[i, k] * C7[k, 0]
            yield i

    @tw.accelerate
    async def coroutine(C: Array) -> float:
        for i in range(7):
            for k in range(7):
                C[i] += C7[i, k] * C7[k, 0]
        return float(C[0])

    @tw.accelerate
    async def both(C: Array) -> AsyncIterator[int]:
        for i in range(7):
            yield int(C[i])

    c = np.zeros(7)
    assert list(generator(c)) == list(range(7))
    assert asyncio.run(coroutine(c)) == 14
    for function in (generator, coroutine, both):
        assert "left in the middle" in tw.accelerate.report(function)[0].text


def test_other_decorators() -> None:
    with pytest.raises(NotAccelerated, match="found _lru_cache_wrapper"):
        tw.accelerate(functools.lru_cache(programs.plain))

    def outside(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*values: Any) -> Any:
            return function(*values)

        return call

    @outside
    @tw.accelerate
    def above(C: Array) -> None:
        for i in range(17):
            for k in range(17):
                C[i] += C17[i, k] * C17[k, 0]

    c = np.zeros(17)
    above(c)
    assert c[0] == 17
    assert replaced(above) == ["ik,k->i"]
    assert "nearest to the function" in tw.accelerate.report(tw.accelerate(outside(programs.plain)))[0].text


C17 = np.ones((17, 17))


def test_threads_of_one_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """They hold for the products of that function, and change no bits."""
    seen: list[int] = []

    def noted(*arguments: Any, **options: Any) -> Any:
        seen.append(wanted_threads())
        return matmul(*arguments, **options)

    monkeypatch.setattr(python_nest, "matmul", noted)

    def product(a: Array, b: Array, c: Array, n: int) -> None:
        for i in range(n):
            for j in range(n):
                for k in range(n):
                    c[i, j] += a[i, k] * b[k, j]

    n = 150
    a, b = (np.random.default_rng(seed).random((n, n)) for seed in range(2))
    results = []
    first = tw.accelerate(threads=1)(product)
    for made in (first, tw.accelerate(product, threads=3), tw.accelerate(first, threads=2)):
        results.append(np.zeros((n, n)))
        made(a, b, results[-1], n)
    assert seen == [1, 3, 2]
    assert wanted_threads() == tw.get_num_threads()
    assert all(np.array_equal(one, results[0]) for one in results)
    with pytest.raises(InvalidThreads, match="threads is 0"):
        tw.accelerate(threads=0)
