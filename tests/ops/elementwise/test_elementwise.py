"""Elementwise functions of arrays: numbers, strides, places, threads, errors."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from other_cuts import kernel_with
from shares import looped
from support import LAYOUTS, Array, GuardedMemory, rough, unaligned
from tiers import crossed, draws, named

import tilewright as tw
from tilewright.errors import InvalidChoice, InvalidSize, OutShape, UnsupportedDtype
from tilewright.ir.interpret import interpret
from tilewright.ir.verify import verify
from tilewright.machine.catalog import find_machine
from tilewright.ops.elementwise.nest import ElementCut, build_elementwise, choose_elements
from tilewright.ops.elementwise.problem import Elementwise
from tilewright.ops.rows.kernel import RowCall
from tilewright.ops.rows.lines import plan_elements
from tilewright.spec.dtype import BF16, F16, F32, F64, DType
from tilewright.spec.functions import UnaryOp, meaning

FUNCTIONS: dict[UnaryOp, Any] = {
    UnaryOp.RELU: tw.relu,
    UnaryOp.EXP: tw.exp,
    UnaryOp.TANH: tw.tanh,
    UnaryOp.SIGMOID: tw.sigmoid,
    UnaryOp.SILU: tw.silu,
    UnaryOp.ERF: tw.erf,
    UnaryOp.GELU: tw.gelu,
    UnaryOp.GELU_TANH: lambda x, **given: tw.gelu(x, approximate="tanh", **given),
}
every_op = pytest.mark.parametrize("op", FUNCTIONS, ids=lambda op: op.value)
#: Places of the type that is computed in: `micro/elements/math.py` states up to 3.4, and the exact values of
#: f64 are computed in f64 too.
PLACES = {F32: 4, F64: 16}


def assert_close(op: UnaryOp, found: Array, x: Array, dtype: DType = F32) -> None:
    """A few places of the type computed in, then one rounding."""
    expected = meaning(op, x)
    acc = F64 if dtype == F64 else F32
    unit = 2 * PLACES[acc] * acc.unit_roundoff + dtype.unit_roundoff
    least = 2.0**-24 if dtype == F16 else 0.0
    wide = found.astype(np.float64)
    assert (np.isnan(wide) == np.isnan(expected)).all()
    with np.errstate(invalid="ignore"):
        near = np.abs(wide - expected) <= unit * np.abs(expected) + least
    assert (near | (wide == expected) | np.isnan(expected)).all()


@pytest.mark.parametrize(("op", "dtype"), crossed(FUNCTIONS, [F32, F64, BF16, F16], 2), ids=named)
def test_every_type_and_special_values(op: UnaryOp, dtype: DType) -> None:
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0])
    for shape in ((), (1,), (7, 5), (3, 4, 33)):
        x = rough(shape).astype(dtype.numpy)
        found = FUNCTIONS[op](x)
        assert (found.dtype, found.shape) == (x.dtype, shape)
        assert_close(op, found, x, dtype)
    assert_close(op, FUNCTIONS[op](special.astype(dtype.numpy)), special, dtype)


@every_op
@looped("layout", LAYOUTS)
def test_any_strides_in_and_out(op: UnaryOp, layout: str) -> None:
    x = LAYOUTS[layout](rough((33, 70)))
    assert_close(op, FUNCTIONS[op](x), x)
    for other in LAYOUTS:
        out = LAYOUTS[other](np.full((33, 70), np.nan, np.float32))
        assert FUNCTIONS[op](x, out=out) is out
        assert_close(op, out, x)


@every_op
def test_in_place_overlapping_and_unaligned(op: UnaryOp) -> None:
    memory = rough((9, 40))
    expected = FUNCTIONS[op](memory)
    for x in (memory.copy(), np.asfortranarray(memory), unaligned(memory)):
        assert np.array_equal(FUNCTIONS[op](x, out=x), expected)
    half = memory.copy()[:, ::2]
    assert np.array_equal(FUNCTIONS[op](half, out=half), expected[:, ::2])
    shifted = memory.copy()
    assert np.array_equal(FUNCTIONS[op](shifted[1:], out=shifted[:-1]), expected[1:])


@every_op
def test_threads_change_no_bit(op: UnaryOp) -> None:
    for x in (rough((300_001,)), rough((1000, 301))[:, :300], rough((40, 30, 500)).transpose(1, 0, 2)):
        assert np.array_equal(FUNCTIONS[op](x, threads=1), FUNCTIONS[op](x, threads=3))


@draws(40)
@given(data=st.data())
def test_any_shape_and_order(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(0, 6), min_size=0, max_size=5)))
    order = data.draw(st.permutations(range(len(shape))))
    step = data.draw(st.sampled_from([1, -1, 2]))
    base = rough(tuple(shape[axis] * abs(step) for axis in order))
    x = base[(slice(None, None, step),) * base.ndim].transpose(np.argsort(order).tolist())
    found = tw.gelu(x)
    assert found.shape == shape
    assert_close(UnaryOp.GELU, found, x)
    assert_close(UnaryOp.GELU, tw.gelu(x, out=np.empty(shape, np.float32)), x)


@pytest.mark.parametrize("name", ["relu", "tanh"])
def test_no_byte_outside_is_touched(name: str) -> None:
    """Near the caches, and past them."""
    memories = [GuardedMemory(1 << 16) for _ in range(2)]
    for stream_from in (1 << 40, 1):
        kernel = kernel_with(Elementwise(name), stream_from=stream_from, long_row=1)
        for rows, columns, gap in ((1, 1, 0), (3, 7, 3), (1, 1000, 0), (5, 300, 1), (2, 2049, 15)):
            for at_end in (False, True):
                content = rough((rows, columns))
                steps = ((columns + gap) * 4, 4)
                x, y = (memory.place(content, steps, at_end=at_end) for memory in memories)
                before = memories[1].outside(y)
                plan = plan_elements(4, x.shape, x.strides, y.strides)
                assert plan is not None
                RowCall(kernel, [x, y], plan.sizes, plan.elements).run()
                assert_close(UnaryOp(name), y, content)
                assert np.array_equal(memories[1].outside(y), before)


def test_the_oracle_computes_every_element() -> None:
    problem = Elementwise("relu")
    cut = choose_elements(problem, find_machine("znver5"))
    program = verify(build_elementwise(problem, cut, "kernel"))
    x = rough((2, 3, 4, 5))
    arrays = {"x": x.ravel(), "y": np.full(x.size, np.nan, np.float32)}
    sizes = dict(zip(program.sizes, (2, 3, 4, 5, *(60, 20, 5) * 2), strict=True))
    interpret(program, sizes, {}, arrays)
    assert np.array_equal(arrays["y"].reshape(x.shape), np.maximum(x, 0))


def test_errors() -> None:
    with pytest.raises(InvalidChoice, match="approximate"):
        tw.gelu([1.0], approximate="erf")
    with pytest.raises(UnsupportedDtype):
        tw.exp(np.ones(3, np.complex64))
    out = np.full(3, 7.0)
    with pytest.raises(OutShape):
        tw.exp(np.ones(4), out=out)
    assert (out == 7).all()
    with pytest.raises(InvalidChoice, match="op"):
        Elementwise("identity")
    with pytest.raises(InvalidSize, match="long_row"):
        ElementCut(1, 0)


def test_a_header_names_every_parameter() -> None:
    kernel = tw.compile(Elementwise("silu"))
    for name in ("*x", "*y", *(f" {size}" for size in kernel.nest.sizes)):
        assert name in kernel.header


@pytest.mark.parametrize("low", [-2.95, -0.0066, -1e-3])
def test_gelu_of_float64_where_the_textbook_formula_cancels(low: float) -> None:
    """x·(1 + erf(x/√2))/2 is off by 1e-17 where the result, or x, is near -0.0065: hundreds of places."""
    mpmath = pytest.importorskip("mpmath")
    x = np.linspace(low, low * 0.93, 400)
    with mpmath.workprec(120):
        exact = [
            mpmath.mpf(each) * mpmath.erfc(-mpmath.mpf(each) / mpmath.sqrt(2)) / 2 for each in x.tolist()
        ]
        for found in (tw.gelu(x), tw.matmul(np.ones((1, 1)), x[np.newaxis], activation="gelu")[0]):
            places = [
                abs(mpmath.mpf(each) - wanted) / float(np.spacing(abs(each)))
                for each, wanted in zip(found.tolist(), exact, strict=True)
            ]
            assert max(places) <= 4
