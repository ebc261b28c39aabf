"""softmax, log_softmax, layer_norm and rms_norm of arrays: numbers, axes, strides, special values, errors."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shares import looped
from support import FENV, LAYOUTS, Array, host_rows, no_flags, rough, unaligned
from tiers import crossed, draws, named, pairwise

import tilewright as tw
from tilewright.compiler.kernel import Kernel
from tilewright.errors import (
    AxisOutOfRange,
    InvalidAxis,
    InvalidChoice,
    InvalidOperand,
    InvalidScalar,
    InvalidSize,
    NegativeEps,
    NormOperandShape,
    OutDtype,
    OutNotArray,
    OutOverlapsItself,
    OutReadOnly,
    OutShape,
    RepeatedAxis,
    UnsupportedDtype,
)
from tilewright.ops.rows.kernel import RowCall
from tilewright.ops.rows.lines import plan_lines
from tilewright.ops.rows.nest import RowCut, choose_rows
from tilewright.ops.rows.problem import RowFunction
from tilewright.spec.dtype import BF16, F16, F32, F64, DType, find_numpy_dtype
from tilewright.spec.problem import Layout
from tilewright.spec.row_functions import RowOp

FUNCTIONS: dict[RowOp, Any] = {
    RowOp.SOFTMAX: tw.softmax,
    RowOp.LOG_SOFTMAX: tw.log_softmax,
    RowOp.LAYER_NORM: tw.layer_norm,
    RowOp.RMS_NORM: tw.rms_norm,
}
DTYPES = (F32, F64, BF16, F16)
INF, NAN = np.inf, np.nan
every_op = pytest.mark.parametrize("op", FUNCTIONS, ids=lambda op: op.value)
#: In `make test` every function with two types, and every type with two functions.
every_op_and_dtype = pytest.mark.parametrize(("op", "dtype"), crossed(FUNCTIONS, DTYPES, 2), ids=named)


def exact(op: RowOp, x: Array, axis: int = -1, **given: Any) -> Array:
    """The function in float64, along any axis."""
    found = RowFunction(op).reference(np.moveaxis(np.asarray(x), axis, -1), **given)
    return np.moveaxis(found, -1, axis)


def assert_close(found: Array, expected: Array, scale: float = 1.0) -> None:
    """Within a few places of the type they were computed in, and half a place of the type of the result."""
    dtype = find_numpy_dtype(found.dtype)
    assert dtype is not None
    unit = 16 * (F64 if dtype == F64 else F32).unit_roundoff
    bound = dtype.unit_roundoff * np.abs(expected) * 1.01 + unit * (np.abs(expected) + scale)
    least = 2.0**-14 * dtype.unit_roundoff if dtype == F16 else 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        rounded = expected.astype(found.dtype)
        near = np.abs(found.astype(np.float64) - expected) <= bound + least
    same = np.isnan(found) == np.isnan(expected)
    assert (same & (near | np.isnan(expected) | (found == rounded))).all()


def beside(op: RowOp, length: int, dtype: Any) -> dict[str, Array]:
    """A weight and a bias of what takes them."""
    names = {RowOp.LAYER_NORM: ("weight", "bias"), RowOp.RMS_NORM: ("weight",)}.get(op, ())
    return {name: rough((length,), dtype, seed) for seed, name in enumerate(names, 7)}


@every_op_and_dtype
def test_every_axis(op: RowOp, dtype: DType) -> None:
    shapes = ((1, 1), (3, 5), (2, 16), (5, 17), (4, 64), (70, 63), (3, 4, 130), (9,))
    for shape, axis in ((each, axis) for each in shapes for axis in range(len(each))):
        x = (3 * rough(shape)).astype(dtype.numpy)
        given = beside(op, shape[axis], dtype.numpy)
        eps = {"eps": 1e-5} if op.takes_eps else {}
        found = FUNCTIONS[op](x, axis=axis, **given, **eps)
        assert found.dtype == x.dtype
        assert found.shape == x.shape
        expected = exact(op, x, axis, **given, **eps)
        assert_close(found, expected, scale=float(np.abs(expected).max()))


@every_op
@looped("layout", LAYOUTS)
def test_any_strides_and_out_of_any_strides(op: RowOp, layout: str) -> None:
    x = LAYOUTS[layout](rough((33, 70)))
    for axis in (0, 1):
        expected = exact(op, x, axis, eps=1e-6 if op.takes_eps else 0.0)
        for other in LAYOUTS:
            out = LAYOUTS[other](np.full((33, 70), np.nan, np.float32))
            eps = {"eps": 1e-6} if op.takes_eps else {}
            assert FUNCTIONS[op](x, axis=axis, out=out, **eps) is out
            assert_close(out, expected, scale=4)


@every_op
def test_results_take_the_strides_of_x(op: RowOp) -> None:
    x = rough((4, 5, 6)).transpose(1, 2, 0)
    assert FUNCTIONS[op](x).strides == x.strides


@every_op_and_dtype
def test_in_place_and_overlapping(op: RowOp, dtype: DType) -> None:
    memory = rough((9, 40)).astype(dtype.numpy)
    for axis in (0, 1):
        x, given = memory.copy(), beside(op, memory.shape[axis], dtype.numpy)
        expected = FUNCTIONS[op](memory, axis=axis, **given)
        assert np.array_equal(FUNCTIONS[op](x, axis=axis, out=x, **given), expected)
        shifted, given = memory.copy(), beside(op, memory[1:].shape[axis], dtype.numpy)
        expected = FUNCTIONS[op](memory[1:], axis=axis, **given)
        assert np.array_equal(FUNCTIONS[op](shifted[1:], axis=axis, out=shifted[:-1], **given), expected)


def test_a_weight_in_the_memory_of_out() -> None:
    x = rough((6, 6))
    out = rough((6, 6), seed=3)
    expected = tw.layer_norm(x, out[2].copy())
    assert np.array_equal(tw.layer_norm(x, out[2], out=out), expected)


@every_op
def test_lines_that_do_not_count(op: RowOp) -> None:
    """A row has the same bits alone, among others, and beside NaN."""
    x = rough((40, 97))
    whole = FUNCTIONS[op](x)
    for row in (0, 17, 39):
        assert np.array_equal(FUNCTIONS[op](x[row]), whole[row])
    x[[0, 38]] = np.nan
    assert np.array_equal(FUNCTIONS[op](x)[1:38], whole[1:38])


@every_op
@pytest.mark.parametrize("axis", [0, 1])
def test_threads_change_no_bit(op: RowOp, axis: int) -> None:
    x = rough((700, 513))
    assert np.array_equal(FUNCTIONS[op](x, axis=axis, threads=1), FUNCTIONS[op](x, axis=axis, threads=3))


@pytest.mark.parametrize(
    ("op", "layout", "dtype"), pairwise(FUNCTIONS, ["row", "col"], [F32, BF16]), ids=named
)
def test_past_the_caches_the_same_bits(
    op: RowOp, layout: str, dtype: DType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lengths of adjacent elements below and above vectors, lines and what is computed side by side."""
    problem = RowFunction(op, dtype, layout=layout)
    together = choose_rows(problem, tw.machine()).together
    monkeypatch.setattr(
        "tilewright.ops.rows.nest.choose_rows", lambda _problem, _machine: RowCut(together, 64, 128, 1)
    )
    kernel = Kernel.compiled(problem)
    axis = 1 if layout == "row" else 0
    for columns, padding in ((1, 0), (15, 1), (64, 0), (97, 3), (128, 0), (129, 0), (300, 20), (250, 6)):
        memory = rough((6, columns + padding)).astype(dtype.numpy)
        x, y = memory[:, :columns], np.full_like(memory, 7)[:, :columns]
        plan = plan_lines(x.itemsize, x.shape, x.strides, y.strides, (axis,))
        if plan is None or plan.layout.value != layout:
            continue  # one column has no neighbours
        RowCall(kernel, [x, y], plan.sizes, plan.elements, [0.25] if op.takes_eps else []).run()
        eps = {"eps": 0.25} if op.takes_eps else {}
        assert np.array_equal(y, FUNCTIONS[op](x, axis=axis, **eps))
        assert y.base is not None
        assert (y.base[:, columns:] == 7).all()


@pytest.mark.parametrize("op", [RowOp.SOFTMAX, RowOp.LOG_SOFTMAX], ids=lambda op: op.value)
def test_maxima_that_come_late(op: RowOp) -> None:
    """Side by side the sum follows a maximum that grows, starts at -inf, or is met first."""
    count = 700
    rising = np.linspace(-30, 30, count)
    late = np.where(np.arange(count) < 17, -INF, 0.125)
    x = np.stack([rising, rising[::-1], late, late[::-1], rising * 1e36, np.full(count, -3e38)], axis=1)
    x = x.astype(np.float32)
    found = FUNCTIONS[op](x, axis=0)
    assert np.isfinite(found[:, :2]).all()
    assert_close(found, exact(op, x, 0), scale=2)


# --- values that are not ordinary -----------------------------------------------------------------

SPECIAL = np.array(
    [
        [0, 1, 2, -INF],
        [-INF, -INF, -INF, -INF],
        [INF, 1, 2, 3],
        [NAN, 1, 2, 3],
        [-0.0, 0, 0, 0],
        [3e38, 3e38, -3e38, 0],
        [1e9, 1e9 + 64, 1e9, 1e9],
        [5, 5, 5, 5],
    ]
)


@every_op
@looped("dtype", [F32, F64])
@looped("axis", [0, 1])
def test_special_values(op: RowOp, dtype: DType, axis: int) -> None:
    x = SPECIAL.astype(dtype.numpy)
    rows = [0, 1, 2, 3, 4, 7] if op.takes_eps else list(range(8))
    x = x[rows]
    eps: dict[str, Any] = {"eps": 0.5} if op.takes_eps else {}
    found = FUNCTIONS[op](x if axis else np.ascontiguousarray(x.T), axis=axis, **eps)
    assert_close(found if axis else found.T, exact(op, x, **eps), scale=float(dtype == F32))


def test_a_mean_that_hides_everything() -> None:
    """Beside a mean of 10,000 differences of 1e-3 are a few places of float32; none of them is lost."""
    x = (1e4 + 1e-3 * rough((3, 5000))).astype(np.float32)
    assert_close(tw.layer_norm(x, eps=0), exact(RowOp.LAYER_NORM, x), scale=4)


def test_long_rows() -> None:
    for columns in (20_000, 100_003):
        x = rough((2, columns))
        for op, function in FUNCTIONS.items():
            expected = exact(op, x, eps=1e-5 if op.takes_eps else 0.0)
            scale = 1e-3 if op is RowOp.SOFTMAX else 4
            assert_close(function(x, **({"eps": 1e-5} if op.takes_eps else {})), expected, scale)


@every_op
@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
def test_nothing(op: RowOp, shape: tuple[int, ...]) -> None:
    assert FUNCTIONS[op](np.zeros(shape, np.float32), axis=0).shape == shape


@pytest.mark.skipif(not FENV, reason="no known fenv.h")
@pytest.mark.parametrize(
    ("row", "dtype", "op", "layout"),
    crossed(product((isa.name for isa in host_rows()), DTYPES), product(FUNCTIONS, ("row", "col")), 8),
    ids=named,
)
def test_lanes_of_nobody_raise_no_flags(row: str, dtype: DType, op: RowOp, layout: str) -> None:
    kernel = Kernel.compiled(RowFunction(op, dtype, layout=layout), tw.machine(row))
    x = np.full((5, 7), -100, dtype.numpy) if op.takes_eps else rough((5, 7)).astype(dtype.numpy)
    x = x if layout == "row" else np.asfortranarray(x)
    y = np.empty_like(x)
    plan = plan_lines(x.itemsize, x.shape, x.strides, y.strides, (1,))
    assert plan is not None
    with no_flags():
        RowCall(kernel, [x, y], plan.sizes, plan.elements, [1.0] if op.takes_eps else []).run()
    eps: dict[str, Any] = {"eps": 1.0} if op.takes_eps else {}
    assert_close(y, exact(op, x, **eps), scale=1)


# --- arguments --------------------------------------------------------------------------------------


def test_several_axes() -> None:
    x, weight, bias = rough((2, 3, 4, 5)), rough((4, 5), seed=1), rough((4, 5), seed=2)
    found = tw.layer_norm(x, weight, bias, axis=(-1, 2))
    rows = exact(RowOp.LAYER_NORM, x.reshape(6, 20), eps=1e-5).reshape(x.shape)
    assert_close(found, rows * weight + bias, scale=4)
    apart = tw.rms_norm(x, axis=(0, 2))
    squares = np.square(x.astype(np.float64)).mean(axis=(0, 2), keepdims=True)
    assert_close(apart, x / np.sqrt(squares + 2.0**-23), scale=4)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64, np.int32])
def test_weights_of_other_types(dtype: Any) -> None:
    weight = np.arange(1, 9).astype(dtype)
    for x in (rough((3, 8)), rough((3, 8)).astype(np.float16)):
        found = tw.rms_norm(x, weight, eps=1e-3)
        assert found.dtype == x.dtype
        assert_close(found, exact(RowOp.RMS_NORM, x, weight=weight, eps=1e-3), scale=16)


def test_integers_become_the_floats_of_numpy() -> None:
    for dtype in (np.bool_, np.int8, np.uint16, np.int64):
        x = np.array([[1, 0, 1]], dtype)
        assert tw.softmax(x).dtype == np.exp(x).dtype
        assert_close(tw.softmax(x), exact(RowOp.SOFTMAX, x))


def test_unaligned_and_swapped() -> None:
    x = rough((5, 9))
    for other in (unaligned(x), x.astype(">f4"), x.tolist()):
        assert_close(tw.softmax(other), exact(RowOp.SOFTMAX, x))
    out = unaligned(np.zeros_like(x))
    assert_close(tw.softmax(x, out=out), exact(RowOp.SOFTMAX, x))
    assert_close(tw.softmax(x, out=np.empty(x.shape, np.float64)).astype(np.float32), exact(RowOp.SOFTMAX, x))


def test_rows_that_repeat() -> None:
    x = np.broadcast_to(rough((1, 9)), (4, 9))
    assert_close(tw.softmax(x), exact(RowOp.SOFTMAX, x))
    assert_close(tw.softmax(np.broadcast_to(rough((4, 1)), (4, 9))), np.full((4, 9), 1 / 9))


def test_more_loops_than_a_kernel_has() -> None:
    x = rough((2, 4, 6, 8, 10))[::2, ::2, ::2, ::2]
    assert_close(tw.softmax(x), exact(RowOp.SOFTMAX, x))
    assert_close(tw.log_softmax(x, axis=1), exact(RowOp.LOG_SOFTMAX, x, 1), scale=4)


@draws(60)
@given(data=st.data())
def test_any_shape_axis_and_order(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
    order = data.draw(st.permutations(range(len(shape))))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    step = data.draw(st.sampled_from([1, -1, 2]))
    op = data.draw(st.sampled_from(list(FUNCTIONS)))
    base = rough(tuple(shape[axis] * abs(step) for axis in order))
    x = base[(slice(None, None, step),) * base.ndim].transpose(np.argsort(order))
    eps = {"eps": 1e-4} if op.takes_eps else {}
    expected = exact(op, x, axis, **eps)
    assert_close(FUNCTIONS[op](x, axis=axis, **eps), expected, scale=4)
    out = np.empty(x.shape, np.float32)
    assert_close(FUNCTIONS[op](x, axis=axis, out=out, **eps), expected, scale=4)


WRONG: list[tuple[type[Exception], str, tuple[Any, ...], dict[str, Any]]] = [
    (AxisOutOfRange, "softmax", (np.ones((2, 3)),), {"axis": 2}),
    (AxisOutOfRange, "softmax", (1.0,), {}),
    (InvalidAxis, "softmax", (np.ones(3),), {"axis": "rows"}),
    (InvalidAxis, "layer_norm", (np.ones(3),), {"axis": ()}),
    (RepeatedAxis, "rms_norm", (np.ones((2, 3)),), {"axis": (1, -1)}),
    (UnsupportedDtype, "softmax", (np.ones(3, np.complex64),), {}),
    (InvalidOperand, "softmax", ([[1.0], [2.0, 3.0]],), {}),
    (NormOperandShape, "layer_norm", (np.ones((2, 3)), np.ones(2)), {}),
    (NormOperandShape, "layer_norm", (np.ones((2, 3)), None, np.ones((1, 3))), {}),
    (NegativeEps, "layer_norm", (np.ones((2, 3)),), {"eps": -1.0}),
    (NegativeEps, "rms_norm", (np.ones((2, 3)),), {"eps": np.nan}),
    (InvalidScalar, "rms_norm", (np.ones((2, 3)),), {"eps": "small"}),
    (OutShape, "softmax", (np.ones((2, 3)),), {"out": np.full((3, 2), 7.0)}),
    (OutDtype, "softmax", (np.ones((2, 3)),), {"out": np.full((2, 3), 7)}),
    (OutNotArray, "softmax", (np.ones((2, 3)),), {"out": [1]}),
]


@pytest.mark.parametrize(("error", "name", "arguments", "given"), WRONG)
def test_errors(error: type[Exception], name: str, arguments: tuple[Any, ...], given: dict[str, Any]) -> None:
    with pytest.raises(error):
        getattr(tw, name)(*arguments, **given)
    if isinstance(given.get("out"), np.ndarray):
        assert (given["out"] == 7).all()


def test_an_out_that_overlaps_itself() -> None:
    memory = np.zeros(9)
    steps = np.lib.stride_tricks.as_strided(memory, (3, 3), (8, 8))
    for function in (tw.softmax, tw.relu):
        with pytest.raises(OutOverlapsItself):
            function(np.ones((3, 3)), out=steps)
    assert (memory == 0).all()


def test_a_read_only_out() -> None:
    out = np.zeros(3)
    out.flags.writeable = False
    with pytest.raises(OutReadOnly):
        tw.softmax(np.ones(3), out=out)


def test_problems_that_are_none() -> None:
    with pytest.raises(InvalidChoice, match="weight of softmax"):
        RowFunction("softmax", weight="f32")
    with pytest.raises(InvalidChoice, match="layout"):
        RowFunction("softmax", layout="strided")
    with pytest.raises(InvalidSize, match="kept"):
        RowCut(1, 1, 0, 1)


# --- kernels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("layout", "op"), crossed([Layout.ROW, Layout.COL], FUNCTIONS, 2), ids=named)
def test_a_header_names_every_parameter(op: RowOp, layout: Layout) -> None:
    kernel = tw.compile(RowFunction(op, layout=layout))
    for buffer in kernel.nest.arguments:
        assert f"*{buffer.name}" in kernel.header
    for name in (*kernel.nest.sizes, *kernel.nest.scalars):
        assert f" {name}" in kernel.header


@pytest.mark.parametrize("dtype", [F32, F64, BF16, F16], ids=str)
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_statistics_of_norms(name: str, dtype: DType) -> None:
    """Means and inverse deviations in the type that rows are computed in; also where x is `out`."""
    function = getattr(tw, name)
    x = (rough((4, 5, 70)) + 3).astype(dtype.numpy)
    wide, acc = x.astype(np.float64), np.float64 if dtype == F64 else np.float32
    for axis in (-1, 0, (0, 2), (0, 1, 2)):
        mean = wide.mean(axis=axis, keepdims=True)
        if name == "layer_norm":
            expected = [mean, 1 / np.sqrt(np.square(wide - mean).mean(axis=axis, keepdims=True) + 0.25)]
        else:
            expected = [1 / np.sqrt(np.square(wide).mean(axis=axis, keepdims=True) + 0.25)]
        result, *stats = function(x, axis=axis, eps=0.25, return_stats=True)
        np.testing.assert_array_equal(result, function(x, axis=axis, eps=0.25))
        for found, one in zip(stats, expected, strict=True):
            assert (found.shape, found.dtype) == (one.shape, acc)
            np.testing.assert_allclose(found, one, rtol=1e-14 if dtype == F64 else 1e-6)
        same = x.copy()
        again = function(same, axis=axis, eps=0.25, out=same, return_stats=True)
        assert again[0] is same
        for found, one in zip(again, (result, *stats), strict=True):
            np.testing.assert_array_equal(found, one)


@pytest.mark.parametrize("axis", [0, 1])
def test_statistics_of_special_rows(axis: int) -> None:
    """Equal elements, whose variance is 0, infinities, NaN, squares that are too large; no warnings."""
    values = np.array([0.1, 3.0, np.inf, np.nan, 1e30], np.float32)
    x = np.repeat(values[:, np.newaxis], 38, axis=1)
    x[2, 1:] = x[3, 1:] = 1
    x[4, ::2] *= -1
    turned = np.ascontiguousarray(x if axis == 1 else x.T)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, mean, inverse = tw.layer_norm(turned, axis=axis, eps=0.25, return_stats=True)
        _, root = tw.rms_norm(turned, axis=axis, eps=0.25, return_stats=True)
    expected = np.array([2, 2, np.nan, np.nan, 0])
    np.testing.assert_allclose(inverse.ravel(), expected, rtol=1e-6)
    np.testing.assert_allclose(mean.ravel()[:3], values[:3], rtol=1e-6)
    np.testing.assert_allclose(root.ravel(), [0.26**-0.5, 9.25**-0.5, 0, np.nan, 0], rtol=1e-6)


def test_statistics_of_nothing() -> None:
    result, mean, inverse = tw.layer_norm(np.zeros((3, 0), np.float32), return_stats=True)
    assert (result.shape, mean.shape, inverse.shape) == ((3, 0), (3, 1), (3, 1))
    result, inverse = tw.rms_norm(np.zeros((0, 4), np.float32), return_stats=True, threads=1)
    assert (result.shape, inverse.shape) == ((0, 4), (0, 1))


@pytest.mark.parametrize("dtype", [BF16, F16], ids=str)
def test_wide_weights_are_rounded_to_float32(dtype: DType) -> None:
    """Weights and biases of float64, and of another 16-bit type, meet rows that are computed in float32."""
    x = rough((6, 40)).astype(dtype.numpy)
    other = F16 if dtype == BF16 else BF16
    fine = 1 + np.arange(40) / 4096
    for weight in (fine, fine.astype(other.numpy), np.arange(40)):
        narrow = weight.astype(np.float32)
        assert np.array_equal(tw.layer_norm(x, weight, weight), tw.layer_norm(x, narrow, narrow))
        assert np.array_equal(tw.rms_norm(x, weight), tw.rms_norm(x, narrow))
