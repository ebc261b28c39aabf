"""sum, mean, max and min of arrays: numbers, axes, strides, NaN, places, threads, errors."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shares import looped
from support import FENV, LAYOUTS, Array, no_flags, rough, unaligned
from tiers import crossed, draws

import tilewright as tw
from tilewright.errors import (
    AxisOutOfRange,
    EmptyReduction,
    InvalidAxis,
    OutDtype,
    OutOverlapsItself,
    OutReadOnly,
    OutShape,
    RepeatedAxis,
    UnsupportedDtype,
)
from tilewright.spec.dtype import BF16, F16, F32, F64, DType

NAMES = ("sum", "mean", "max", "min")
every_name = pytest.mark.parametrize("name", NAMES)
every_dtype = pytest.mark.parametrize("dtype", [F32, F64, BF16, F16], ids=str)


def exact(name: str, x: Array, axis: Any = None, **given: Any) -> Array:
    """In float64."""
    return np.asarray(getattr(np, name)(x.astype(np.float64), axis=axis, **given))


def assert_close(name: str, found: Any, x: Array, axis: Any = None, dtype: DType = F32, **given: Any) -> None:
    """Extremes exactly; sums within places of the magnitudes that were added, and one rounding."""
    expected = exact(name, x, axis, **given)
    result = np.asarray(found).astype(np.float64)
    assert result.shape == expected.shape
    if name in ("max", "min"):
        np.testing.assert_array_equal(result, expected)
        return
    bound = 16 * (F64 if dtype == F64 else F32).unit_roundoff * exact(name, np.abs(x), axis, **given)
    assert (np.abs(result - expected) <= bound + 1.01 * dtype.unit_roundoff * np.abs(expected)).all()


@pytest.mark.parametrize(("name", "dtype"), crossed(NAMES, [F32, F64, BF16, F16], 2), ids=str)
def test_every_axis(name: str, dtype: DType) -> None:
    for shape in ((1,), (5,), (3, 7), (33, 70), (4, 5, 6), (2, 100, 3), (70, 17)):
        x = (3 * rough(shape)).astype(dtype.numpy)
        every_axis = (None, *range(-len(shape), len(shape)), tuple(range(len(shape))))
        for axis, keepdims in product(every_axis, (False, True)):
            for _ in range(2):  # the second time in machine code
                found = getattr(tw, name)(x, axis, keepdims=keepdims)
                assert_close(name, found, x, axis, dtype, keepdims=keepdims)
            like = getattr(np, name)(x, axis=axis, keepdims=keepdims)
            assert (type(found), found.dtype) == (type(like), like.dtype)


@every_name
@looped("layout", LAYOUTS)
def test_any_strides_and_out(name: str, layout: str) -> None:
    x = LAYOUTS[layout](rough((33, 70)))
    for axis in (None, 0, 1):
        assert_close(name, getattr(tw, name)(x, axis), x, axis)
        for step in (1, 2, -1):
            memory = np.full(300, np.nan, np.float32)
            length = {None: 1, 0: 70, 1: 33}[axis]
            out = memory[: 2 * length : 2] if step == 2 else memory[:length][::step]
            out = out.reshape(()) if axis is None else out
            assert getattr(tw, name)(x, axis, out=out) is out
            assert_close(name, out, x, axis)
            assert np.isnan(memory).sum() == 300 - length


@every_name
def test_axes_that_are_not_beside_one_another(name: str) -> None:
    x = rough((3, 4, 5, 6))
    for axis in ((0, 2), (1, 3), (0, 3), (2, 0), (1, 2)):
        for keepdims in (False, True):
            assert_close(name, getattr(tw, name)(x, axis, keepdims=keepdims), x, axis, keepdims=keepdims)


@draws(60)
@given(data=st.data())
def test_any_shape_axis_and_order(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 9), min_size=0, max_size=4)))
    order = data.draw(st.permutations(range(len(shape))))
    axis = data.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1)) if shape else None
    step = data.draw(st.sampled_from([1, -1, 2]))
    name = data.draw(st.sampled_from(NAMES))
    base = rough(tuple(shape[axis] * abs(step) for axis in order))
    x = base[(slice(None, None, step),) * base.ndim].transpose(np.argsort(order).tolist())
    axes = None if axis is None else tuple(axis)
    assert_close(name, getattr(tw, name)(x, axes), x, axes)


def test_means_of_narrow_floats_do_not_overflow() -> None:
    x = np.full((3, 5000), 60000, np.float16)
    assert (tw.mean(x, 1) == 60000).all()
    assert (tw.mean(np.ascontiguousarray(x.T), 0) == 60000).all()
    assert np.isinf(tw.sum(x, 1)).all()


@pytest.mark.parametrize("axis", [0, 1])
@every_dtype
def test_nan_infinities_and_zeros(dtype: DType, axis: int) -> None:
    """NaN anywhere among vectors and rests."""
    columns = 150
    x = np.tile(np.linspace(-2, 2, columns), (7, 1))
    for row, column in enumerate((0, 1, 63, 64, 128, 149)):
        x[row, column] = np.nan
    x[6, [3, 70]] = np.inf, -np.inf
    given = np.ascontiguousarray((x if axis else x.T).astype(dtype.numpy))
    assert np.isnan(tw.sum(given, axis)).all()
    for name in ("max", "min"):
        assert np.isnan(getattr(tw, name)(given, axis)[:6]).all()
    assert (tw.max(given, axis)[6], tw.min(given, axis)[6]) == (np.inf, -np.inf)
    zeros = np.full((3, 20), -0.0, dtype.numpy)
    assert np.signbit(tw.sum(zeros, axis)).all()


@pytest.mark.skipif(not FENV, reason="no known fenv.h")
@every_name
def test_lanes_of_nobody_raise_no_flags(name: str) -> None:
    x = np.ones((5, 7), np.float32)
    for axis in (0, 1):
        getattr(tw, name)(x, axis)
        with no_flags():
            getattr(tw, name)(x, axis)


def test_nothing() -> None:
    x = np.zeros((0, 3), np.float32)
    assert tw.sum(x) == 0
    assert np.array_equal(tw.sum(x, 0), np.zeros(3))
    assert np.isnan(tw.mean(x, 0)).all()
    for name in NAMES:
        assert getattr(tw, name)(x, 1).shape == (0,)
        assert getattr(tw, name)(x, 1, keepdims=True).shape == (0, 1)
    out = np.full(3, 7, np.float32)
    assert (tw.sum(x, 0, out) == 0).all()


@every_name
def test_places(name: str) -> None:
    function, x = getattr(tw, name), rough((6, 7))
    expected = function(x, 0)
    for other in (unaligned(x), x.astype(">f4"), np.broadcast_to(x, (6, 7))):
        assert np.array_equal(function(other, 0), expected)
    memory = x.copy()
    assert np.array_equal(function(memory, 0, out=memory[0]), expected)
    for row in range(6):  # which others are read after
        memory = x.copy()
        assert np.array_equal(function(memory, 1, out=memory[row, :6]), function(x, 1))
    wide = np.empty(7)
    function(x, 0, out=wide)
    assert np.array_equal(wide, expected)
    assert_close(name, function([[1.0, 2.0], [3.0, 4.5]], 1), np.array([[1.0, 2.0], [3.0, 4.5]]), 1)


@every_name
@pytest.mark.parametrize("axis", [0, 1])
def test_lines_and_threads_change_no_bit(name: str, axis: int) -> None:
    function, x = getattr(tw, name), rough((700, 513))
    whole = function(x, axis, threads=1)
    assert np.array_equal(whole, function(x, axis, threads=3))
    part = x[11:40] if axis else x[:, 11:40]
    assert np.array_equal(whole[11:40], function(part, axis))


WRONG: list[tuple[type[Exception], tuple[Any, ...], dict[str, Any]]] = [
    (AxisOutOfRange, (np.ones((2, 3)), 2), {}),
    (InvalidAxis, (np.ones(3), "rows"), {}),
    (RepeatedAxis, (np.ones((2, 3)), (1, -1)), {}),
    (UnsupportedDtype, (np.ones(3, np.complex64),), {}),
    (UnsupportedDtype, (["a", "b"],), {}),
    (InvalidAxis, (np.ones(3), []), {}),
    (EmptyReduction, (np.ones((0, 2), np.int8), 0), {}),
    (OutDtype, (np.ones((2, 3), np.int64), 0), {"out": np.full(3, 7, np.uint8)}),
    (EmptyReduction, (np.ones((0, 2)), 0), {}),
    (OutShape, (np.ones((2, 3)), 0), {"out": np.full(2, 7.0)}),
    (OutShape, (np.ones((2, 3)), 0), {"out": np.full(3, 7.0), "keepdims": True}),
    (OutDtype, (np.ones((2, 3)), 0), {"out": np.full(3, 7)}),
]


@pytest.mark.parametrize(("error", "arguments", "given"), WRONG)
def test_errors(error: type[Exception], arguments: tuple[Any, ...], given: dict[str, Any]) -> None:
    with pytest.raises(error):
        tw.max(*arguments, **given)
    if "out" in given:
        assert (given["out"] == 7).all()


@every_name
@looped("dtype", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i4"])
def test_integers_and_truth_values(name: str, dtype: str) -> None:
    """NumPy's results in its types; means by kernels of float64, sums of 64 bits by those of einsum."""
    function, like = getattr(tw, name), getattr(np, name)
    values = np.random.default_rng(3).integers(-(2**40), 2**40, (5, 6, 70))
    x = values.astype(dtype)
    for axis in (None, 0, -1, (0, 2), (1,), ()):
        for keepdims in (False, True):
            found, expected = function(x, axis, keepdims=keepdims), like(x, axis=axis, keepdims=keepdims)
            assert (type(found), found.dtype, found.shape) == (type(expected), expected.dtype, expected.shape)
            np.testing.assert_allclose(found, expected, rtol=1e-12 if name == "mean" else 0)
    if dtype in ("i8", "u8"):
        np.testing.assert_array_equal(tw.sum(x << 30, 1), np.sum(x << 30, axis=1))  # wraps around
    out = np.zeros(70, like(x, axis=(0, 1)).dtype)
    assert function(x, (0, 1), out=out) is out
    np.testing.assert_allclose(out, like(x, axis=(0, 1)))
    strided = x[::-1, ::2, ::3]
    np.testing.assert_allclose(function(strided, (0, 2)), like(strided, axis=(0, 2)))


@looped("dtype", ["?", "i1", "u1", "i2", "u4", "i8", "f4", "f8"])
@looped("given", ["?", "i1", "u2", ">i4", "u8", "f4", "f8"])
def test_sums_in_a_type(given: str, dtype: str) -> None:
    """Elements are converted to it first, as NumPy does; integers wrap around."""
    for shape in ((5, 6, 7), (0, 3, 2), (90, 60)):
        x = np.random.default_rng(4).integers(0, 100, shape).astype(given)
        for axis in (None, 0, (0, 1), ()):
            found, expected = tw.sum(x, axis, dtype=dtype), np.sum(x, axis=axis, dtype=dtype)
            assert (type(found), found.dtype, found.shape) == (type(expected), expected.dtype, expected.shape)
            np.testing.assert_array_equal(found, expected)
    out = np.zeros((1, 60), dtype)
    assert tw.sum(x, 0, out, dtype=dtype, keepdims=True) is out
    np.testing.assert_array_equal(out, np.sum(x, axis=0, dtype=dtype, keepdims=True))
    half = np.array([1.5, 2.5], np.float32)
    np.testing.assert_array_equal(tw.sum(half, dtype=dtype), np.sum(half, dtype=dtype))


def test_means_in_a_type() -> None:
    x = np.arange(12, dtype=np.int16).reshape(3, 4)
    found = tw.mean(x, 1, dtype=np.float32)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.mean(x, axis=1, dtype=np.float32))
    for function, dtype in ((tw.mean, "i4"), (tw.sum, "c8"), (tw.sum, "M8[s]"), (tw.sum, object)):
        with pytest.raises(UnsupportedDtype):
            function(x, dtype=dtype)


@every_name
@looped("dtype", [F32, F64, BF16, F16])
def test_no_axes(name: str, dtype: DType) -> None:
    """Of no axes, every element is a number of its own."""
    for x in (rough((3, 4)), rough((3, 4)).T[::-1], np.zeros((0, 3), np.float32)):
        given = x.astype(dtype.numpy)
        found = getattr(tw, name)(given, ())
        assert found is not given
        assert found.dtype == dtype.numpy
        np.testing.assert_array_equal(found, given)
        np.testing.assert_array_equal(getattr(tw, name)(given, (), keepdims=True), given)
        overlapping = np.concatenate([given, given])
        out = overlapping[1 : 1 + len(given)] if len(given) else overlapping
        getattr(tw, name)(overlapping[: len(given)], (), out=out)
        np.testing.assert_array_equal(out, given)
    scalar = getattr(tw, name)(np.float32(2.5), ())
    assert (type(scalar), scalar) == (np.float32, 2.5)


@every_name
def test_empty_results_of_every_type(name: str) -> None:
    """Nothing is filled in, also not of types without a value for it."""
    for dtype in (*(kind.numpy for kind in (F32, F64, BF16, F16)), np.dtype("i2"), np.dtype("?")):
        x = np.zeros((0, 3), dtype)
        assert getattr(tw, name)(x, 1).shape == (0,)
        assert getattr(tw, name)(x, (), keepdims=True).shape == (0, 3)


def test_outs_that_cannot_be() -> None:
    memory = np.zeros(3)
    with pytest.raises(OutOverlapsItself):
        tw.sum(np.ones((2, 3)), 0, out=np.lib.stride_tricks.as_strided(memory, (3,), (0,)))
    memory.flags.writeable = False
    with pytest.raises(OutReadOnly):
        tw.sum(np.ones((2, 3)), 0, out=memory)
    assert (memory == 0).all()
