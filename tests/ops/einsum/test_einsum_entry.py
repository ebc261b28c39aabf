"""Calls of einsum that machine code repeats: NumPy's numbers, views, references, keys."""

from __future__ import annotations

import gc
import inspect
import pickle
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from repeated_calls import python_lines
from shares import looped
from support import Array, filled, unaligned

import tilewright as tw
from tilewright.calls import repeated
from tilewright.calls.layout import native_entry_possible
from tilewright.errors import LabelSizes, OutNotArray, OutReadOnly, OutShape, SublistLabel
from tilewright.ops.gemm import call as arrays

pytestmark = pytest.mark.skipif(not native_entry_possible(), reason="the entry is not native here")

#: Calls that machine code repeats, and shapes of their operands.
CALLS: dict[str, tuple[tuple[int, ...], ...]] = {
    "ij->ji": ((3, 5),),
    "ijk->kij": ((3, 5, 2),),
    "ii->i": ((4, 4),),
    "ij,jk": ((3, 5), (5, 4)),
    "ij,jk->ki": ((3, 5), (5, 4)),
    "ji,jk->ik": ((5, 3), (5, 4)),
    "bij,bjk->bik": ((2, 3, 5), (2, 5, 4)),
    "bhqd,bhkd->bhqk": ((2, 3, 4, 5), (2, 3, 6, 5)),
    "ijk,kl->ijl": ((2, 3, 5), (5, 4)),
    "ij,j->i": ((3, 5), (5,)),
    "ij->": ((3, 5),),
    "ij->i": ((3, 5),),
    "ij->j": ((3, 5),),
    "ijk->j": ((3, 5, 4),),
    "ii": ((4, 4),),
    "i,i->": ((5,), (5,)),
    "ij,ij->": ((3, 5), (3, 5)),
    "bij,bij->b": ((2, 3, 5), (2, 3, 5)),
    "i,j->ij": ((3,), (5,)),
    "ij,i->ij": ((3, 5), (3,)),
    "ij,ij->ij": ((3, 5), (3, 5)),
    # several steps
    "ij,jk,kl->il": ((3, 5), (5, 4), (4, 2)),
    "ij,jk,kl,lm->mi": ((3, 5), (5, 4), (4, 2), (2, 3)),
    "ii,ij->j": ((5, 5), (5, 4)),
    "ij,kl->ik": ((3, 5), (4, 2)),
    "i,ij,j->": ((3,), (3, 5), (5,)),
    "ij,jk->": ((3, 5), (5, 4)),
    "bij,bjk->bki": ((1, 3, 5), (1, 5, 4)),
    "ij,ij,ij->i": ((3, 5), (3, 5), (3, 5)),
}


@pytest.fixture(autouse=True)
def no_other_recipes() -> None:
    """Recipes of other tests may fill the slots that a call of this one would have."""
    repeated.replay().table.clear()


def repeats(*arguments: Any, **options: Any) -> Any:
    """The result of a call that machine code makes."""
    found: list[Any] = []
    assert python_lines(lambda: found.append(tw.einsum(*arguments, **options))) == 0, arguments[0]
    return found[0]


def known(text: str, *given: Array) -> Any:
    """The result of a call that has been made before."""
    tw.einsum(text, *given)
    return tw.einsum(text, *given)


@looped("dtype", ["f4", "f8", "f2", "i1", "u2", "i8", "c8", "c16"])
@pytest.mark.parametrize("text", CALLS)
def test_repeated_calls_are_machine_code(text: str, dtype: str) -> None:
    given = [filled(shape, dtype, seed) for seed, shape in enumerate(CALLS[text])]
    tw.einsum(text, *given)
    by_numpy = dtype == "f2" and text in ("ij,kl->ik", "ij,jk->", "ij,ij,ij->i")  # what is summed in f4
    found, expected = (tw.einsum if by_numpy else repeats)(text, *given), np.einsum(text, *given)
    assert (type(found), found.dtype, found.shape) == (type(expected), expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)


def test_out_is_written() -> None:
    for text, shapes in CALLS.items():
        given = [filled(shape, "f8", seed) for seed, shape in enumerate(shapes)]
        expected = np.einsum(text, *given)
        out = np.full(expected.shape, np.nan)
        tw.einsum(text, *given, out=out)
        out.fill(np.nan)
        assert repeats(text, *given, out=out) is out, text
        np.testing.assert_array_equal(out, expected, text)


def test_out_of_any_strides() -> None:
    a, b = filled((3, 5)), filled((5, 4), seed=1)
    for text, one, two in (
        ("ij,jk->ik", a, b),
        ("ij,jk->ki", a, b),
        ("ij,ij->ij", a, a),
        ("ij,kj->ik", a, b.T),
    ):
        expected = np.einsum(text, one, two)
        rows, columns = expected.shape
        wide = np.full((2 * rows, 2 * columns), np.nan, np.float32)
        for out in (
            wide[::2, ::2],
            wide[:rows, :columns][::-1],
            np.full((columns, rows), np.nan, np.float32).T,
        ):
            for _ in range(2):
                out[...] = np.nan
                assert tw.einsum(text, one, two, out=out) is out
                np.testing.assert_array_equal(out, expected)
        assert np.isnan(wide[1::2, columns:]).all()


@pytest.mark.parametrize("text", ["ij,jk->ik", "ij,ij->ij", "ij,jk,kl->il"])
def test_out_that_overlaps_an_operand(text: str) -> None:
    """The same call as one that was known with an out apart."""
    memory = np.zeros((9, 6))
    count = text.count(",") + 1
    for shift in (6, 3, 1, 0):
        given = [filled((3, 3), "f8", seed) for seed in range(count)]
        base = memory.reshape(-1)
        first, out = base[:9].reshape(3, 3), base[shift * 3 : shift * 3 + 9].reshape(3, 3)
        first[...] = given[0]
        expected = np.einsum(text, *given)
        assert tw.einsum(text, first, *given[1:], out=out) is out
        np.testing.assert_array_equal(out, expected)


def test_bad_out_of_a_known_call() -> None:
    a, b = filled((3, 5)), filled((5, 4), seed=1)
    for text, given, shape in (("ij,jk->ik", (a, b), (3, 4)), ("ij,ij->ij", (a, a), (3, 5))):
        out = np.zeros(shape, np.float32)
        for _ in range(2):
            tw.einsum(text, *given, out=out)
        out[...] = 77
        out.flags.writeable = False
        with pytest.raises(OutReadOnly):
            tw.einsum(text, *given, out=out)
        assert (out == 77).all()
    with pytest.raises(OutShape):
        tw.einsum("ij,jk->ik", a, b, out=np.zeros((4, 3), np.float32))
    with pytest.raises(OutNotArray):
        tw.einsum("ij,jk->ik", a, b, out=[[0.0] * 4] * 3)  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        tw.einsum("ij,jk->ik", a, b, outer=out)  # type: ignore[call-overload]


@pytest.mark.parametrize("optimize", [True, False, "greedy", "optimal", "auto", [(0, 1), (0, 1)]])
def test_orders_are_parts_of_the_key(optimize: Any) -> None:
    given = [filled((4, 4), "f8", seed) for seed in range(3)]
    tw.einsum("ij,jk,kl->il", *given, optimize=optimize)
    found = repeats("ij,jk,kl->il", *given, optimize=optimize)
    np.testing.assert_array_equal(found, np.einsum("ij,jk,kl->il", *given))


@pytest.mark.parametrize(
    "keywords",
    [{"order": "F"}, {"casting": "unsafe"}, {"dtype": "f8"}, {"threads": 1}, {"out": None}],
    ids=str,
)
def test_other_keywords(keywords: dict[str, Any]) -> None:
    a, b = filled((3, 5)), filled((5, 4), seed=1)
    known("ij,jk->ik", a, b)
    found = tw.einsum("ij,jk->ik", a, b, **keywords)
    np.testing.assert_array_equal(found, a @ b)
    assert found.dtype == keywords.get("dtype", "f4")
    assert found.flags.f_contiguous is (keywords.get("order") == "F")


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a[:, ::2],
        lambda a: a[::-1],
        lambda a: a.T,
        lambda a: a[1:],
        lambda a: a.astype(a.dtype.newbyteorder()),
        lambda a: a.astype("f4"),
        lambda a: a[np.newaxis, 0],
        unaligned,
        lambda a: a.view(np.matrix),
        lambda a: a.tolist(),
        lambda a: a.reshape(1, 1, 1, 1, 1, *a.shape)[0, 0, 0, 0, 0],
    ],
)
def test_other_operands_are_not_taken_for_known_ones(change: Any) -> None:
    a, b = filled((6, 6), "f8"), filled((6, 6), "f8", seed=1)
    known("ij,jk", a, b)
    for given in ((change(a), b), (a, change(b))):
        try:
            expected = np.einsum("ij,jk", *given)
        except ValueError:
            with pytest.raises(LabelSizes):
                tw.einsum("ij,jk", *given)
            continue
        for _ in range(2):
            np.testing.assert_array_equal(tw.einsum("ij,jk", *given), expected)


def test_arrays_of_as_many_axes_as_numpy_has() -> None:
    a = np.ones((1,) * 20)
    assert known("...->...", a).shape == a.shape


def test_an_equal_text_that_is_another_object_is_known() -> None:
    a = filled((3, 5))
    known("ij->ji", a)
    np.testing.assert_array_equal(repeats("".join(["ij", "->", "ji"]), a), a.T)


def test_views_are_those_of_numpy() -> None:
    a = np.arange(12.0).reshape(3, 4).copy()
    found = known("ij->ji", a)
    assert found.base is a
    assert found.flags.writeable
    found[1, 2] = -1
    assert a[2, 1] == -1
    fixed = a.view()
    fixed.flags.writeable = False
    assert not tw.einsum("ij->ji", fixed).flags.writeable
    part = known("ii->i", a[:, 1:])
    assert part.base is a, "the owner of the memory, as NumPy has it"
    np.testing.assert_array_equal(part, np.diagonal(a[:, 1:]))


def test_a_view_keeps_its_memory() -> None:
    a = np.arange(1000.0).reshape(10, 100).copy()
    seen = known("ij->ji", a)
    owner = weakref.ref(a)
    del a
    gc.collect()
    assert owner() is not None
    assert seen[99, 9] == 999
    del seen
    assert owner() is None


def test_references_are_given_back() -> None:
    for text, shapes in CALLS.items():
        given = [filled(shape) for shape in shapes]
        known(text, *given)
        held = [*given, given[0].dtype, text, tw.einsum]
        before = [sys.getrefcount(one) for one in held]
        for _ in range(100):
            tw.einsum(text, *given)
        assert [sys.getrefcount(one) for one in held] == before, text


def test_large_calls_share_their_work() -> None:
    """Without the GIL, in a team of threads."""
    a, b = filled((600, 700)), filled((600, 700), seed=1)
    for text in ("ij,ij->i", "ij,ij->ij", "ij,ij->"):
        np.testing.assert_array_equal(known(text, a, b), np.einsum(text, a, b))


def test_results_are_new_each_time() -> None:
    a, b = filled((3, 5)), filled((5, 4), seed=1)
    first, second = known("ij,jk->ki", a, b), tw.einsum("ij,jk->ki", a, b)
    assert not np.shares_memory(first, second)


def test_an_error_inside_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was recorded until then is not repeated."""
    a, b = filled((40, 2, 6, 4)), filled((2, 40, 4, 6), seed=1)
    text = "abij,bajk->abik"

    def fails(*_arguments: Any, **_keywords: Any) -> Any:
        raise MemoryError("none left")

    held = [a, b]
    before = [sys.getrefcount(one) for one in held]
    with monkeypatch.context() as patch:
        patch.setattr(arrays, "matmul", fails)
        for _ in range(2):
            with pytest.raises(MemoryError, match="none left"):
                tw.einsum(text, a, b)
    gc.collect()
    assert [sys.getrefcount(one) for one in held] == before
    for _ in range(2):
        np.testing.assert_array_equal(tw.einsum(text, a, b), np.einsum(text, a, b))


def test_threads() -> None:
    a, b = filled((8, 8)), filled((8, 8), seed=1)
    expected = a @ b
    wrong: list[Array] = []

    def call() -> None:
        for _ in range(300):
            found = tw.einsum("ij,jk->ik", a, b)
            if not np.array_equal(found, expected):
                wrong.append(found)

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def test_it_is_a_function_like_others() -> None:
    assert pickle.loads(pickle.dumps(tw.einsum)) is tw.einsum
    assert list(inspect.signature(tw.einsum).parameters)[:3] == ["subscripts", "operands", "out"]
    assert tw.einsum.__doc__ is not None
    assert "Examples" in tw.einsum.__doc__


def test_lists_of_labels() -> None:
    a, b = filled((3, 5)), filled((5, 4), seed=1)
    forms: tuple[tuple[Any, ...], ...] = (
        (a, [0, 1], b, [1, 2], [2, 0]),
        (a, (0, 1), b, (1, 2)),
        (a, [..., 1], b, [1, 2], [..., 2]),
    )
    for form in forms:
        tw.einsum(*form)
        np.testing.assert_array_equal(repeats(*form), np.einsum(*form))
        out = np.full_like(tw.einsum(*form), 77)
        assert tw.einsum(*form, out=out) is out
        np.testing.assert_array_equal(out, np.einsum(*form))
    tw.einsum(a, [0, 1], [1, 0])
    with pytest.raises(SublistLabel):
        tw.einsum(a, [0, 1.0], [1, 0])  # type: ignore[list-item]


def test_types_that_differ_are_converted_first() -> None:
    a, b = filled((3, 5), "f4"), filled((5, 4), "f8", seed=1)
    for one, two in ((a, b), (a.astype("i4"), b), (a.astype("c8"), b), (a.astype("i1"), b.astype("u1"))):
        found = known("ij,jk", one, two)
        expected = np.einsum("ij,jk", one, two)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    large = filled((90, 80), "f4")
    np.testing.assert_array_equal(known("ij,ij->i", large, large.astype("f8")), (large**2).sum(axis=1))


def test_numbers_of_threads() -> None:
    a = filled((3, 5))
    for threads in (1, 2):
        tw.einsum("ij->i", a, threads=threads)
        np.testing.assert_array_equal(repeats("ij->i", a, threads=threads), a.sum(axis=1))
