"""tw.transpose: NumPy's elements for any dtype, axes and strides; overlap, errors, how moves are planned."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import Array, unaligned
from tiers import draws

import tilewright as tw
from tilewright.errors import (
    InvalidAxes,
    InvalidOperand,
    OutNotArray,
    OutOtherDtype,
    OutReadOnly,
    OutShape,
)
from tilewright.ops.transpose.call import Axis, TransposePlan, check_axes, merged, plan_move

#: Sizes of 1 to 16 bytes, odd sizes, the other byte order, records, text, dates and objects.
DTYPES = ["i1", "?", "f2", "f4", "f8", "c8", "c16", "g", "U1", "U3", "S5", "M8[s]", "f4,i1", ">i4", "O", "V7"]


def numbered(shape: tuple[int, ...], dtype: str) -> Array:
    """Every element different, as far as its bytes allow."""
    kind = np.dtype(dtype)
    count = int(np.prod(shape))
    if kind.hasobject:
        return np.array([str(number) for number in range(count)], kind).reshape(shape)
    content = np.arange(count * kind.itemsize, dtype=np.uint32) * np.uint32(2654435761) >> np.uint32(24)
    if kind.kind == "b":
        return (content[:count] % 2).astype(kind).reshape(shape)
    if kind.kind == "U":  # only code points are text
        return np.array([f"{number:x}"[-3:] for number in range(count)], kind).reshape(shape)
    raw = content.astype(np.uint8)
    view: Array = np.frombuffer(raw.tobytes(), kind).reshape(shape)
    return view


def cut(array: Array, slices: Iterable[slice]) -> Array:
    """A view, also of an array without axes."""
    index: Any = (..., *slices)
    view: Array = array[index]
    return view


def bits(array: Array) -> object:
    """What two arrays have in common if they are equal byte for byte."""
    return array.tolist() if array.dtype.hasobject else np.ascontiguousarray(array).tobytes()


def check(a: Array, axes: Any = None) -> None:
    expected = np.array(np.transpose(a, axes), order="C")
    found = tw.transpose(a, axes)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert found.flags.c_contiguous
    assert found.flags.writeable
    assert not np.may_share_memory(found, a)
    assert bits(found) == bits(expected)


shapes = st.lists(st.integers(0, 9), max_size=6).map(tuple)
steps = st.sampled_from([1, 1, 1, 2, 3, -1, -2])


@draws(400)
@given(st.data(), shapes, st.sampled_from(DTYPES))
def test_any_array(data: st.DataObject, shape: tuple[int, ...], dtype: str) -> None:
    view = cut(numbered(shape, dtype), [slice(None, None, data.draw(steps)) for _ in shape])
    axes = data.draw(st.none() | st.permutations(range(len(shape))))
    check(view, axes)


@draws(200)
@given(st.data(), shapes, st.sampled_from(DTYPES))
def test_any_out(data: st.DataObject, shape: tuple[int, ...], dtype: str) -> None:
    """Nothing but the elements of a strided `out` changes."""
    a = numbered(shape, dtype)
    axes = tuple(data.draw(st.permutations(range(len(shape)))))
    expected = np.transpose(a, axes)
    base = np.zeros(tuple(2 * size for size in expected.shape), a.dtype)
    order = data.draw(st.permutations(range(len(shape))))
    base = np.transpose(np.array(np.transpose(base, order), order="C"), np.argsort(order).astype(int))
    out = cut(base, [slice(1, None, 2)] * len(shape))
    out = cut(out, [slice(None, None, data.draw(st.sampled_from([1, -1]))) for _ in shape])
    assert tw.transpose(a, axes, out=out) is out
    assert bits(out) == bits(expected)
    out[...] = np.zeros((), a.dtype)
    assert bits(base) == bits(np.zeros_like(base)), "wrote outside of out"


@draws(150)
@given(
    st.tuples(st.integers(1, 150), st.integers(1, 150)),
    st.sampled_from(["i1", "i2", "f4", "f8", "c16"]),
    st.integers(0, 20),
    st.booleans(),
)
def test_matrices(shape: tuple[int, int], dtype: str, padding: int, far: bool) -> None:
    """Around multiples of every square; wide enough for the blocks of larger matrices."""
    rows, columns = shape
    if far:
        columns *= 9
    base = numbered((rows, columns + padding), dtype)
    check(base[:, :columns])
    check(base[:, :columns].T)
    check(base[::-1, :columns])


@pytest.mark.parametrize("dtype", ["i1", "i2", "f4", "f8", "c16"])
@pytest.mark.parametrize("offset", [0, 16, 60])
def test_large_matrices(dtype: str, offset: int) -> None:
    """Beyond every cache, where lines are written past it: leading dimensions that are whole lines or not."""
    for columns in (2048, 2051):
        rows = 2 * tw.machine().l2.size // (np.dtype(dtype).itemsize * columns) + 7
        raw = numbered((rows * columns + 64,), dtype)
        a = raw[offset : offset + rows * columns].reshape(rows, columns)
        np.testing.assert_array_equal(tw.transpose(a), a.T)
        out = np.empty(rows * columns + 64, a.dtype)[offset : offset + rows * columns].reshape(columns, rows)
        np.testing.assert_array_equal(tw.transpose(a, out=out), a.T)


@pytest.mark.parametrize("dtype", ["i2", "f4", "f8", "c16"])
def test_elements_at_any_address(dtype: str) -> None:
    a = unaligned(numbered((37, 53), dtype))
    np.testing.assert_array_equal(tw.transpose(a), a.T)
    out = unaligned(np.zeros((53, 37), a.dtype))
    np.testing.assert_array_equal(tw.transpose(numbered((37, 53), dtype), out=out), a.T)


def test_a_field_of_records() -> None:
    """Elements that are not a whole number of elements apart."""
    records = numbered((20, 30), "i4,f8")
    check(records["f1"])
    check(records["f0"], (1, 0))


def test_broadcast_inputs() -> None:
    check(np.broadcast_to(np.arange(5.0), (4, 5)))
    check(np.broadcast_to(np.float32(3), (4, 5, 6)), (1, 2, 0))


@pytest.mark.parametrize("given", [[[1, 2, 3], [4, 5, 6]], 7, [], [[]], np.float32(2)])
def test_lists_and_scalars(given: Any) -> None:
    np.testing.assert_array_equal(tw.transpose(given), np.transpose(given))


def test_subclasses_give_plain_arrays() -> None:
    class Own(np.ndarray):
        """An array of another type."""

    found = tw.transpose(np.array([[1, 2], [3, 4]]).view(Own))
    assert type(found) is np.ndarray


def test_read_only_inputs() -> None:
    a = np.arange(12).reshape(3, 4)
    a.flags.writeable = False
    check(a)


def test_objects_are_counted() -> None:
    """References of objects are copied by NumPy, so that counts are right."""
    value = "".join(["a", "b"])
    a = np.array([[value] * 5] * 4, object)
    found = tw.transpose(a)
    del a
    assert all(each is value for each in found.ravel())


# --- overlap --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 17, 64, 300])
def test_a_square_onto_itself(size: int) -> None:
    a = numbered((size, size), "f4").copy()
    expected = a.T.copy()
    assert tw.transpose(a, out=a) is a
    np.testing.assert_array_equal(a, expected)


@pytest.mark.parametrize("shift", [-5, -1, 0, 1, 5])
def test_out_that_overlaps(shift: int) -> None:
    raw = numbered((500,), "i4").copy()
    a, out = raw[20:420].reshape(20, 20), raw[20 + shift : 420 + shift].reshape(20, 20)
    expected = a.T.copy()
    tw.transpose(a, out=out)
    np.testing.assert_array_equal(out, expected)


def test_out_that_is_the_view() -> None:
    a = numbered((6, 9), "f8").copy()
    expected = a.T.copy()
    np.testing.assert_array_equal(tw.transpose(a, out=a.T), expected)


# --- errors ---------------------------------------------------------------------------------------------

A = np.arange(6, dtype=np.float32).reshape(2, 3)

BAD_AXES: list[tuple[Any, str]] = [
    ((0,), "there are 1 of them"),
    ((0, 1, 2), "there are 3 of them"),
    ((0, 0), "one of them is repeated"),
    ((0, -2), "one of them is repeated"),
    ((0, 2), "2 is out of range"),
    ((-3, 0), "-3 is out of range"),
    (1, "not a sequence of integers"),
    ((0.0, 1.0), "not a sequence of integers"),
    ("01", "not a sequence of integers"),
]


@pytest.mark.parametrize(("axes", "words"), BAD_AXES, ids=[words for _, words in BAD_AXES])
def test_axes_that_are_no_permutation(axes: Any, words: str) -> None:
    with pytest.raises(InvalidAxes, match=words) as caught:
        tw.transpose(A, axes)
    assert isinstance(caught.value, ValueError)


def test_axes_that_equal_integers_but_are_none() -> None:
    """0.0 == 0: what a cache would take for the same."""
    tw.transpose(A, (0, 1))
    with pytest.raises(InvalidAxes):
        tw.transpose(A, (0.0, 1.0))  # type: ignore[arg-type]


def test_errors_come_before_out_changes() -> None:
    out = np.full((3, 2), 7, np.float32)
    for axes in ((0, 0), (0, 1)):
        with pytest.raises((InvalidAxes, OutShape)):
            tw.transpose(A, axes, out=out)
    assert (out == 7).all()


def test_out_of_another_shape() -> None:
    with pytest.raises(OutShape, match=r"\(2, 3\), the result has shape \(3, 2\)") as caught:
        tw.transpose(A, out=np.zeros((2, 3), np.float32))
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("dtype", ["f8", ">f4", "i4"])
def test_out_of_another_dtype(dtype: str) -> None:
    with pytest.raises(OutOtherDtype, match="float32") as caught:
        tw.transpose(A, out=np.zeros((3, 2), dtype))
    assert isinstance(caught.value, TypeError)


def test_out_that_is_read_only() -> None:
    out = np.zeros((3, 2), np.float32)
    out.flags.writeable = False
    with pytest.raises(OutReadOnly):
        tw.transpose(A, out=out)


def test_out_that_is_no_array() -> None:
    with pytest.raises(OutNotArray, match="list"):
        tw.transpose(A, out=[[0.0]])  # type: ignore[arg-type]


def test_ragged_lists() -> None:
    with pytest.raises(InvalidOperand, match="a is invalid"):
        tw.transpose([[1, 2], [3]])


# --- plans ----------------------------------------------------------------------------------------------

ONE = Axis(1, 4, 4)
#: Shape, axes and item size of a contiguous array -> its plan.
PLANS: dict[tuple[tuple[int, ...], tuple[int, ...], int], TransposePlan] = {
    ((2, 3), (0, 1), 4): TransposePlan(4, Axis(6, 4, 4), ONE, ()),
    ((2, 3), (1, 0), 4): TransposePlan(4, Axis(3, 4, 8), Axis(2, 12, 4), ()),
    ((5, 2, 3), (0, 2, 1), 4): TransposePlan(4, Axis(3, 4, 8), Axis(2, 12, 4), (Axis(5, 24, 24),)),
    ((5, 2, 3), (2, 0, 1), 4): TransposePlan(4, Axis(3, 4, 40), Axis(10, 12, 4), ()),
    ((5, 7, 3), (1, 0, 2), 4): TransposePlan(4, Axis(3, 4, 4), Axis(7, 12, 60), (Axis(5, 84, 12),)),
    ((5, 7, 2), (1, 0, 2), 4): TransposePlan(8, Axis(7, 8, 40), Axis(5, 56, 8), ()),
    ((5, 7), (1, 0), 12): TransposePlan(4, Axis(3, 4, 4), Axis(7, 12, 60), (Axis(5, 84, 12),)),
    ((5, 7), (1, 0), 6): TransposePlan(2, Axis(3, 2, 2), Axis(7, 6, 30), (Axis(5, 42, 6),)),
    ((1, 1), (1, 0), 16): TransposePlan(16, Axis(1, 16, 16), Axis(1, 16, 16), ()),
    ((2, 3), (1, 0), 32): TransposePlan(16, Axis(2, 16, 16), Axis(3, 32, 64), (Axis(2, 96, 32),)),
}


@pytest.mark.parametrize("case", PLANS, ids=str)
def test_plans(case: tuple[tuple[int, ...], tuple[int, ...], int]) -> None:
    shape, axes, size = case
    view = np.zeros(shape, f"V{size}").transpose(axes)
    target = np.empty(view.shape, view.dtype)
    assert plan_move(size, view.shape, view.strides, target.strides) == PLANS[case]


def test_axes_that_walk_evenly_are_merged() -> None:
    assert merged([Axis(2, 60, 60), Axis(3, 20, 20), Axis(5, 4, 4)]) == [Axis(30, 4, 4)]
    assert merged([Axis(2, 60, 60), Axis(3, 20, 24), Axis(5, 4, 4)]) == [
        Axis(2, 60, 60),
        Axis(3, 20, 24),
        Axis(5, 4, 4),
    ]
    assert merged([Axis(3, -8, -8), Axis(2, -4, -4)]) == [Axis(6, -4, -4)]


def test_axes_are_counted_from_either_end() -> None:
    assert check_axes((-1, 0, -2), 3) == (2, 0, 1)
    assert check_axes(np.array([1, 0]), 2) == (1, 0)
    assert check_axes([], 0) == ()
    assert check_axes(None, 3) == (2, 1, 0)


def test_a_second_call_makes_no_plan() -> None:
    a = np.ones((9, 11, 13), np.float32)
    tw.transpose(a, (1, 2, 0))
    before = plan_move.cache_info().misses
    tw.transpose(a + 1, (1, 2, 0))
    assert plan_move.cache_info().misses == before
