"""Promise 1: matmul accepts what numpy.matmul accepts and returns its shape and dtype."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from shares import looped
from support import LAYOUTS, Array, assert_accurate, filled, rough, unaligned

import tilewright as tw
from tilewright.calls.layout import native_entry_possible
from tilewright.errors import TilewrightError
from tilewright.ops.gemm import call as arrays

needs_native = pytest.mark.skipif(not native_entry_possible(), reason="this interpreter has no native entry")

SHAPES = [
    ((3,), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3,)),
    ((2, 3), (3, 4)),
    ((1, 1), (1, 1)),
    ((1, 7), (7, 1)),
    ((7, 1), (1, 7)),
    ((1, 33), (33, 65)),
    ((33, 65), (65, 1)),
    ((33, 65), (65, 49)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((5, 1, 2, 3), (7, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((5, 2, 3), (1, 3, 4)),
    ((2, 1, 4, 3), (1, 6, 3, 2)),
    ((3,), (5, 3, 4)),
    ((5, 2, 3), (3,)),
    ((2, 5, 2, 3), (3, 4)),
    # zero sizes
    ((0, 3), (3, 4)),
    ((2, 0), (0, 4)),
    ((2, 3), (3, 0)),
    ((0, 0), (0, 0)),
    ((0,), (0,)),
    ((0,), (0, 4)),
    ((2, 0), (0,)),
    ((0, 2, 3), (3, 4)),
    ((5, 0, 3), (3, 4)),
    ((5, 2, 0), (0, 4)),
    ((5, 2, 3), (3, 0)),
    ((0, 1, 2, 3), (7, 3, 4)),
]


def like_numpy(a: Any, b: Any) -> Array:
    """The product after its checks against NumPy's."""
    expected = np.matmul(a, b)
    found = tw.matmul(a, b)
    assert type(found) is type(expected)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert found.dtype.isnative
    assert_accurate(np.asarray(found), np.asarray(a), np.asarray(b))
    return found


@pytest.fixture
def native_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that leave the native entry fail."""
    for dtype in (np.float32, np.float64):
        tw.matmul(np.ones((2, 2), dtype), np.ones((2, 2), dtype))

    def refuse(*arguments: Any, **keywords: Any) -> None:
        raise AssertionError("the call went through Python")

    monkeypatch.setattr(arrays, "matmul", refuse)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@looped(("a", "b"), SHAPES)
def test_shapes(a: tuple[int, ...], b: tuple[int, ...], dtype: type) -> None:
    like_numpy(rough(a, dtype, 1), rough(b, dtype, 2))


@looped(
    ("a", "b"),
    [
        ("f4", "f8"),
        ("f8", "f4"),
        ("f4", "f2"),
        ("f4", "i2"),
        ("u1", "f4"),
        ("i8", "f4"),
        ("?", "f8"),
        (">f4", "f4"),
        ("<f8", ">f8"),
        (">f4", ">f4"),
        (">i4", "f8"),
    ],
)
@looped("shape", [((3, 4), (4, 5)), ((4,), (4,)), ((2, 3, 4), (4, 5))])
def test_mixed_dtypes(a: str, b: str, shape: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    like_numpy(filled(shape[0], a, 1), filled(shape[1], b, 2))


LISTS: list[tuple[Any, Any]] = [
    ([[1.0, 2.0], [3.0, 4.0]], [[1.0], [2.0]]),
    ([[1, 2], [3, 4]], [[0.5], [2]]),
    ([1.5, 2], [3, 4]),
    (((1.0, 2.0),), np.ones((2, 3), np.float32)),
    (np.ones((3, 2), np.float32), [1.0, 2.0]),
    ([[True, False]], [[0.5], [0.25]]),
]


@pytest.mark.parametrize(("a", "b"), LISTS)
def test_lists(a: Any, b: Any) -> None:
    like_numpy(a, b)


@looped("layout_a", LAYOUTS)
@looped("layout_b", LAYOUTS)
@pytest.mark.parametrize("shape", [((9, 37), (37, 41)), ((2, 9, 7), (7, 5)), ((3, 2, 7), (3, 7, 5))])
def test_layouts(layout_a: str, layout_b: str, shape: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = rough(shape[0], seed=1), rough(shape[1], seed=2)
    found = like_numpy(LAYOUTS[layout_a](a), LAYOUTS[layout_b](b))
    assert np.array_equal(found, tw.matmul(a, b))


@pytest.mark.usefixtures("native_only")
@needs_native
@looped("layout_a", LAYOUTS)
@pytest.mark.parametrize("layout_out", LAYOUTS)
def test_any_strides_are_native(layout_a: str, layout_out: str) -> None:
    a, b = LAYOUTS[layout_a](filled((9, 37))), LAYOUTS["reversed columns"](filled((37, 41)))
    out = LAYOUTS[layout_out](np.full((9, 41), np.nan, np.float32))
    assert tw.matmul(a, b, out) is out
    assert np.array_equal(out, a @ b)


def frozen(array: Array) -> Array:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def broadcast_rows(array: Array) -> Array:
    return np.broadcast_to(array[..., :1, :], array.shape)


def broadcast_columns(array: Array) -> Array:
    return np.broadcast_to(array[..., :1], array.shape)


def swapped(array: Array) -> Array:
    return array.astype(array.dtype.newbyteorder())


ODD: list[Callable[[Array], Array]] = [frozen, broadcast_rows, broadcast_columns, swapped, unaligned]


@pytest.mark.parametrize("change", ODD)
@pytest.mark.parametrize("shape", [((9, 37), (37, 41)), ((2, 9, 7), (7, 5)), ((37, 1), (1, 1))])
def test_odd_inputs(change: Callable[[Array], Array], shape: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = rough(shape[0], seed=1), rough(shape[1], seed=2)
    like_numpy(change(a), b)
    like_numpy(a, change(b))
    like_numpy(change(a), change(b))


@pytest.mark.parametrize("change", [swapped, unaligned])
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_odd_out(change: Callable[[Array], Array], beta: float) -> None:
    a, b, c = rough((9, 37), seed=1), rough((37, 41), seed=2), rough((9, 41), seed=3)
    out = change(c)
    assert tw.matmul(a, b, out, beta=beta) is out
    assert_accurate(out, a, b, c, beta=beta)


def test_structured_fields() -> None:
    """Strides that are no multiple of the element, or of its alignment."""
    for second in ("f8", "u1"):
        record = np.zeros((9, 37), [("x", "f4"), ("y", second)])
        record["x"] = rough((9, 37))
        like_numpy(record["x"], rough((37, 5), seed=2))


WILD = [2**40 + 4, -(2**40), 3, 0, 2**62]


@pytest.mark.parametrize("step", WILD)
@pytest.mark.parametrize("through_python", [False, True])
def test_wild_strides_on_single_axes(step: int, through_python: bool, request: pytest.FixtureRequest) -> None:
    """An axis of length 1 is never stepped along, so its stride is meaningless."""
    if not through_python:
        if not native_entry_possible():
            pytest.skip("this interpreter has no native entry")
        request.getfixturevalue("native_only")
    options: dict[str, Any] = {"alpha": 1.0} if through_python else {}
    row, column, many = rough((1, 37), seed=1), rough((37, 1), seed=2), rough((37, 41), seed=3)
    wild_row = as_strided(row, (1, 37), (step, 4))
    wild_column = as_strided(column, (37, 1), (4, step))
    single = as_strided(np.full(1, 3, np.float32), (1, 1), (step, -step))
    for a, b in (
        (wild_row, many),
        (many.T, wild_column),
        (wild_row, wild_column),
        (wild_column, wild_row),
        (single, wild_row),
        (wild_column, single),
        (single, single),
    ):
        out = np.full((a.shape[0], b.shape[1]), np.nan, np.float32)
        for axis in range(2):
            if out.shape[axis] == 1:
                steps = tuple(step if own == axis else out.strides[own] for own in range(2))
                out = as_strided(out, out.shape, steps)
        assert tw.matmul(a, b, out=out, **options) is out
        assert_accurate(out.copy(), a, b)
        assert_accurate(tw.matmul(a, b, **options), a, b)


@pytest.mark.parametrize("step", WILD)
def test_wild_strides_on_empty_arrays(step: int) -> None:
    empty = as_strided(np.zeros(1, np.float32), (0, 5), (step, 4))
    like_numpy(empty, rough((5, 3)))
    like_numpy(empty.T, np.ones((0, 3), np.float32))
    like_numpy(rough((3, 5)), as_strided(np.zeros(1, np.float32), (5, 0), (4, step)))


@pytest.mark.parametrize("a", [2.0, np.float32(2), np.array(2.0), 3])
def test_scalars_are_refused(a: Any) -> None:
    for operands in ((a, np.ones((2, 2))), (np.ones(2), a), (a, a)):
        with pytest.raises(ValueError, match="0 dimensions") as caught:
            tw.matmul(*operands)
        assert isinstance(caught.value, TilewrightError)


# --- out -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@looped(("a", "b"), SHAPES)
def test_out_is_filled_and_returned(a: tuple[int, ...], b: tuple[int, ...], dtype: type) -> None:
    left, right = rough(a, dtype, 1), rough(b, dtype, 2)
    expected = tw.matmul(left, right)
    for positional in (True, False):
        out: Array = np.full(np.shape(expected), np.nan, dtype)
        found = tw.matmul(left, right, out) if positional else tw.matmul(left, right, out=out)
        assert found is out
        assert np.array_equal(out, expected)


def test_out_none_makes_an_array() -> None:
    a, b = filled((3, 4)), filled((4, 5))
    assert np.array_equal(tw.matmul(a, b, None), a @ b)
    assert np.array_equal(tw.matmul(a, b, out=None), a @ b)


@pytest.mark.parametrize(
    ("inputs", "out", "dtype"),
    [
        ("f4", "f8", None),
        ("f8", "f4", None),
        ("f4", "f4", "f8"),
        ("f4", "f8", "f8"),
        ("f8", "f8", "f4"),
        ("f4", ">f4", None),
        ("f4", "c8", None),
        ("f8", "f2", None),
        ("i4", "f4", "f4"),
        ("i4", "f8", "f8"),
    ],
)
def test_out_and_dtype_of_other_kinds(inputs: str, out: str, dtype: str | None) -> None:
    a, b = filled((5, 9), inputs, 1), filled((9, 7), inputs, 2)
    target = np.full((5, 7), 99, out)
    assert tw.matmul(a, b, out=target, dtype=dtype) is target
    assert np.array_equal(target, a.astype(float) @ b.astype(float))
    if dtype is not None:
        assert tw.matmul(a, b, dtype=dtype).dtype == dtype


def test_a_wider_out_is_computed_wide() -> None:
    a, b = rough((5, 900), seed=1), rough((900, 7), seed=2)
    out = np.empty((5, 7))
    tw.matmul(a, b, out=out)
    assert_accurate(out, a, b)


# --- references ----------------------------------------------------------------------------------


def call_plain(a: Array, b: Array, out: Array) -> None:
    tw.matmul(a, b)


def call_positional(a: Array, b: Array, out: Array) -> None:
    tw.matmul(a, b, out)


def call_keyword(a: Array, b: Array, out: Array) -> None:
    tw.matmul(a, b, out=out)


def call_python(a: Array, b: Array, out: Array) -> None:
    tw.matmul(a, b, out=out, alpha=2, beta=0.5)


def call_overlapping(a: Array, b: Array, out: Array) -> None:
    tw.matmul(out[: len(a), : len(b)], b, out=out[:, : b.shape[1]])


def call_wrong_shape(a: Array, b: Array, out: Array) -> None:
    with pytest.raises(ValueError, match="must be equal"):
        tw.matmul(a, a)


def call_wrong_out(a: Array, b: Array, out: Array) -> None:
    with pytest.raises(ValueError, match="out has shape"):
        tw.matmul(a, b, out=a)


def call_wrong_keyword(a: Array, b: Array, out: Array) -> None:
    with pytest.raises(TypeError, match="unexpected"):
        tw.matmul(a, b, nonsense=out)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "call",
    [
        call_plain,
        call_positional,
        call_keyword,
        call_python,
        call_overlapping,
        call_wrong_shape,
        call_wrong_out,
        call_wrong_keyword,
    ],
)
def test_references_are_given_back(call: Callable[[Array, Array, Array], None]) -> None:
    gc.collect()
    gc.freeze()  # so that it takes no time to look at what this test has not made
    a, b, out = filled((4, 5)), filled((5, 7)), np.zeros((4, 7), np.float32)

    def counts() -> list[int]:
        gc.collect()
        return [sys.getrefcount(value) for value in (a, b, out, a.dtype, np.ndarray, tw.matmul)]

    call(a, b, out)
    before = counts()
    for _ in range(200):
        call(a, b, out)
    assert all(abs(after - count) < 50 for count, after in zip(before, counts(), strict=True))


def test_result_has_one_reference() -> None:
    a = filled((4, 4))
    tw.matmul(a, a)
    assert sys.getrefcount(tw.matmul(a, a)) == sys.getrefcount(np.empty((4, 4)))
    assert tw.matmul(a, a).flags.owndata
