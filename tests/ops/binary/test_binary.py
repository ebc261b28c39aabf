"""Functions of pairs of elements: numbers, broadcasting, strides, places, threads, errors."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from other_cuts import kernel_with
from support import LAYOUTS, Array, GuardedMemory, no_flags, rough, unaligned
from tiers import crossed, draws, named

import tilewright as tw
from tilewright.errors import (
    GateHalves,
    InvalidChoice,
    InvalidFlag,
    InvalidTileIr,
    OutOverlapsItself,
    OutReadOnly,
    OutShape,
    PairShapes,
    UnsupportedDtype,
)
from tilewright.ir.expressions import Constant, Name
from tilewright.ir.interpret import interpret
from tilewright.ir.nodes import Buffer, Program, Slice, Space
from tilewright.ir.parse import parse_program
from tilewright.ir.primitives.pairs import CombineRows
from tilewright.ir.text import print_program
from tilewright.ir.verify import verify
from tilewright.machine.catalog import find_machine
from tilewright.ops.binary.call import prepare_pairs
from tilewright.ops.binary.nest import build_pairs, choose_pairs
from tilewright.ops.binary.plan import plan_pairs
from tilewright.ops.binary.problem import BinaryFunction
from tilewright.ops.rows.kernel import RowCall
from tilewright.spec.binary_functions import BinaryOp, binary_meaning
from tilewright.spec.dtype import BF16, F16, F32, F64, DType
from tilewright.spec.epilogue import ACTIVATIONS
from tilewright.spec.functions import UnaryOp

#: Places of the type that is computed in: 4 of an activation (see `micro/elements/math.py`) and 1 of the
#: function; exact values of f64 are computed in f64 too, with an error that grows with the argument.
PLACES = {F32: 5, F64: 17}

NUMPY = {
    BinaryOp.ADD: np.add,
    BinaryOp.SUBTRACT: np.subtract,
    BinaryOp.MULTIPLY: np.multiply,
    BinaryOp.DIVIDE: np.divide,
    BinaryOp.MAXIMUM: np.maximum,
    BinaryOp.MINIMUM: np.minimum,
}
#: Shapes that broadcast: equal, along rows, along columns, both, scalars, axes between.
SHAPES = (
    ((5, 33), (5, 33)),
    ((5, 33), (33,)),
    ((5, 1), (5, 33)),
    ((5, 33), (5, 1)),
    ((7, 1), (1, 40)),
    ((), (3, 70)),
    ((4,), ()),
    ((), ()),
    ((2, 1, 3, 1, 20), (1, 4, 1, 2, 1)),
    ((2, 1, 3, 1, 2, 1, 4), (1, 3, 1, 2, 1, 3, 4)),
    ((0, 5), (5,)),
)


def combined(op: BinaryOp, left: Any, right: Any, **named: Any) -> Array:
    """The function on arrays."""
    return prepare_pairs(op, left, right, **named).run()


def assert_close(found: Array, exact: Array, dtype: DType = F32) -> None:
    """A few roundings of the type computed in, then one of the element type."""
    acc = F64 if dtype == F64 else F32
    unit = 2 * PLACES[acc] * acc.unit_roundoff + dtype.unit_roundoff
    least = 2.0**-24 if dtype == F16 else 2.0**-126 if dtype != F64 else 0.0
    wide = found.astype(np.float64)
    assert (np.isnan(wide) == np.isnan(exact)).all()
    with np.errstate(invalid="ignore"):
        near = np.abs(wide - exact) <= unit * np.abs(exact) + least
    assert (near | (wide == exact) | np.isnan(exact)).all()


@pytest.mark.parametrize(("op", "dtype"), crossed(BinaryOp, [F32, F64, BF16, F16], 2), ids=named)
def test_every_function_of_every_type(op: BinaryOp, dtype: DType) -> None:
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -3.0])
    for a, b in ((rough((7, 45)), rough((7, 45), seed=1)), np.meshgrid(special, special)):
        left, right = a.astype(dtype.numpy), b.astype(dtype.numpy)
        found = combined(op, left, right)
        assert found.dtype == dtype.numpy
        with np.errstate(all="ignore"):
            exact = NUMPY[op](left.astype(np.float64), right.astype(np.float64))
        assert_close(found, exact, dtype)
        if dtype in (F32, F64):  # one operation is correctly rounded
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(found, NUMPY[op](left, right))


@pytest.mark.parametrize(("op", "dtype"), crossed([*ACTIVATIONS, None], [F32, F64, BF16, F16], 2), ids=named)
def test_gates_of_every_type(op: UnaryOp | None, dtype: DType) -> None:
    x, gate = rough((6, 70)).astype(dtype.numpy), rough((6, 70), seed=1).astype(dtype.numpy)
    gate[0, :4] = [np.nan, np.inf, -np.inf, 0.0]
    x[1, 3] = np.nan
    name = None if op is None else op.value
    found = tw.gated(x, gate, name)
    exact = binary_meaning(BinaryOp.MULTIPLY, x, gate, op)
    assert (found.dtype, found.shape) == (x.dtype, x.shape)
    assert_close(found, exact, dtype)
    merged = np.concatenate([gate, x], axis=-1)
    assert np.array_equal(tw.gated(merged, activation=name), found, equal_nan=True)
    last = np.concatenate([x, gate], axis=-1)
    assert np.array_equal(tw.gated(last, activation=name, gate_first=False), found, equal_nan=True)


def test_the_default_gate_is_silu_of_the_first_half() -> None:
    x = rough((3, 5, 16))
    gate, values = x[..., :8].astype(float), x[..., 8:].astype(float)
    assert_close(tw.gated(x), values * gate / (1 + np.exp(-gate)))
    assert_close(tw.gated(x[..., 8:], x[..., :8]), values * gate / (1 + np.exp(-gate)))


@pytest.mark.parametrize("op", BinaryOp, ids=lambda op: op.value)
def test_shapes_that_broadcast(op: BinaryOp) -> None:
    for a, b in SHAPES:
        left, right = rough(a), rough(b, seed=1)
        found = combined(op, left, right)
        np.testing.assert_array_equal(found, NUMPY[op](left, right))
        out = np.full(found.shape, np.nan, np.float32)
        assert combined(op, left, right, out=out) is out
        np.testing.assert_array_equal(out, found)


def test_broadcast_views_of_both_operands() -> None:
    left, right = (np.broadcast_to(rough((9, 1), seed=seed), (9, 30)) for seed in range(2))
    np.testing.assert_array_equal(combined(BinaryOp.ADD, left, right), left + right)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_strides_in_and_out(layout: str) -> None:
    x = LAYOUTS[layout](rough((33, 70)))
    for other in LAYOUTS:
        gate = LAYOUTS[other](rough((33, 70), seed=1))
        exact = binary_meaning(BinaryOp.MULTIPLY, x, gate, UnaryOp.SILU)
        assert_close(tw.gated(x, gate), exact)
        out = LAYOUTS[other](np.full((33, 70), np.nan, np.float32))
        assert tw.gated(x, gate, out=out) is out
        assert_close(out, exact)


def test_in_place_overlapping_and_unaligned() -> None:
    x, gate = rough((9, 40)), rough((9, 40), seed=1)
    expected = tw.gated(x, gate)
    for left, right, out in (
        (x.copy(), gate, "left"),
        (x, gate.copy(), "right"),
        (unaligned(x), gate, "left"),
        (x, np.asfortranarray(gate), "right"),
    ):
        target = left if out == "left" else right
        assert np.array_equal(tw.gated(left, right, out=target), expected)
        assert np.array_equal(target, expected)
    both = x.copy()
    assert np.array_equal(tw.gated(both, both, out=both), tw.gated(x, x.copy()))
    shifted = x.copy()
    assert np.array_equal(tw.gated(shifted[1:], gate[1:], out=shifted[:-1]), expected[1:])
    merged = np.concatenate([gate, x], axis=-1)
    assert np.array_equal(tw.gated(merged, out=merged[:, 40:]), expected)
    # One row of the operand is read for all rows of a result in its place.
    memory = x.copy()
    assert np.array_equal(combined(BinaryOp.ADD, memory, memory[3], out=memory), x + x[3])


def test_types_that_differ_and_numbers() -> None:
    x, narrow = rough((4, 9)), rough((4, 9), seed=1).astype(np.float16)
    found = tw.gated(x, narrow, "relu")
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, x * np.maximum(narrow, 0).astype(np.float32))
    assert tw.gated(narrow, narrow.astype(BF16.numpy)).dtype == np.float32
    whole = np.arange(-4, 4)
    np.testing.assert_array_equal(tw.gated(whole, whole, "relu"), np.maximum(whole, 0.0) * whole)
    out = np.empty((4, 9), np.float64)
    np.testing.assert_array_equal(tw.gated(x, narrow, "relu", out=out), found.astype(np.float64))


def test_threads_change_no_bit() -> None:
    for shape in ((300_001,), (1000, 301), (40, 30, 500)):
        x, gate = rough(shape), rough(shape, seed=1)
        assert np.array_equal(tw.gated(x, gate, threads=1), tw.gated(x, gate, threads=3))
        assert np.array_equal(tw.gated(x, gate[..., :1], threads=1), tw.gated(x, gate[..., :1], threads=3))
    merged = rough((700, 2 * 512))
    assert np.array_equal(tw.gated(merged, threads=1), tw.gated(merged, threads=3))


@draws(60)
@given(data=st.data())
def test_any_shapes_and_orders(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(0, 5), min_size=0, max_size=6)))
    operands = []
    for seed in range(2):
        own = tuple(data.draw(st.sampled_from([1, size])) for size in shape)
        order = data.draw(st.permutations(range(len(own))))
        step = data.draw(st.sampled_from([1, -1, 2]))
        base = rough(tuple(own[axis] * abs(step) for axis in order), seed=seed)
        operands.append(base[(slice(None, None, step),) * base.ndim].transpose(np.argsort(order).tolist()))
    expected = np.subtract(*operands)
    np.testing.assert_array_equal(combined(BinaryOp.SUBTRACT, *operands), expected)
    out = np.empty(expected.shape, np.float32)
    np.testing.assert_array_equal(combined(BinaryOp.SUBTRACT, *operands, out=out), expected)


@pytest.mark.parametrize(("op", "activation"), [("multiply", "gelu"), ("divide", None)])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_no_byte_outside_is_touched(op: str, activation: str | None, dtype: str) -> None:
    """Near the caches and past them; operands of whole rows, and of one element for each row."""
    memories = [GuardedMemory(1 << 16) for _ in range(3)]
    problem = BinaryFunction(op, dtype, activation)
    for stream_from in (1 << 40, 1):
        kernel, kind = kernel_with(problem, stream_from=stream_from, long_row=1), problem.dtype
        for rows, columns, gap in ((1, 1, 0), (3, 7, 3), (1, 1000, 0), (5, 300, 1), (2, 2049, 15)):
            for turn, at_end in enumerate((False, True)):
                steps = ((columns + gap) * kind.size, kind.size)
                contents = [(2 + rough((rows, columns), seed=seed)).astype(kind.numpy) for seed in range(2)]
                contents[turn] = contents[turn][:, :1]
                left, right = (
                    memory.place(content, steps, at_end=at_end)
                    for memory, content in zip(memories, contents, strict=False)
                )
                y = memories[2].place(np.zeros((rows, columns), kind.numpy), steps, at_end=at_end)
                before = memories[2].outside(y)
                strides = (np.broadcast_to(one, y.shape).strides for one in (left, right))
                plan = plan_pairs(kind.size, y.shape, *strides, y.strides)
                assert plan is not None
                RowCall(kernel, [left, right, y], plan.sizes, plan.elements).run()
                assert_close(y, problem.reference(left, right), kind)
                assert np.array_equal(memories[2].outside(y), before)


def test_padding_raises_no_flag() -> None:
    x, y = 1 + rough((5, 7)) ** 2, np.empty((5, 7), np.float32)
    for op in BinaryOp:
        combined(op, x, x, out=y)
        with no_flags():
            combined(op, x, x, out=y)
    for activation in ACTIVATIONS:
        tw.gated(x, x, activation.value, out=y)
        with no_flags():
            tw.gated(x, x, activation.value, out=y)


@pytest.mark.parametrize("target", tw.targets())
def test_the_oracle_computes_every_element(target: str) -> None:
    problem = BinaryFunction("multiply", activation="sigmoid")
    program = verify(build_pairs(problem, choose_pairs(problem, find_machine(target)), "kernel"))
    assert parse_program(print_program(program)) == program
    left, right = rough((2, 3, 4, 5)), rough((2, 1, 4, 1), seed=1)
    arrays = {"left": left.ravel(), "right": right.ravel(), "y": np.full(left.size, np.nan, np.float32)}
    strides = (60, 20, 5, 4, 0, 1, 60, 20, 5, 1, 0)
    interpret(program, dict(zip(program.sizes, (2, 3, 4, 5, *strides), strict=True)), {}, arrays, threads=3)
    assert_close(arrays["y"].reshape(left.shape), problem.reference(left, right))


def test_windows_and_choices_that_are_refused() -> None:
    one, zero, n = Constant(1), Constant(0), Name("n")

    def program(**changed: Any) -> Program:
        fields = {
            "op": BinaryOp.ADD,
            **{name: Slice(name, zero, (n, one)) for name in ("to", "left", "right")},
            "rows": one,
            "columns": n,
            "stream": zero,
            "activation": None,
        }
        buffers = tuple(
            Buffer(name, dtype, Space.ARGUMENT)
            for name, dtype in (("to", F32), ("left", F32), ("right", F32), ("wide", F64))
        )
        return Program("p", ("n",), (), buffers, (CombineRows(**{**fields, **changed}),))

    verify(program())
    for changed, words in (
        ({"to": Slice("to", zero, (one, n))}, "must be adjacent in to"),
        ({"left": Slice("left", zero, (one, n))}, "left has adjacent elements, or one for each row"),
        ({"right": Slice("wide", zero, (n, one))}, "have one type"),
        ({"activation": UnaryOp.RECIPROCAL}, "activation is one of"),
        ({"op": UnaryOp.RELU}, "is not a choice of this field"),
    ):
        with pytest.raises(InvalidTileIr, match=words):
            verify(program(**changed))


def test_errors() -> None:
    x = np.ones((3, 4), np.float32)
    with pytest.raises(PairShapes, match=r"^gated: x has shape \(3, 4\) and gate has shape \(3,\)"):
        tw.gated(x, x[:, 0])
    for odd in (np.ones((2, 3)), np.float32(2)):
        with pytest.raises(GateHalves, match="must have an even length"):
            tw.gated(odd)
    with pytest.raises(InvalidChoice, match="activation"):
        tw.gated(x, x, "exp")
    with pytest.raises(InvalidFlag, match="gate_first"):
        tw.gated(x, gate_first="yes")
    with pytest.raises(UnsupportedDtype):
        tw.gated(x, x.astype(np.complex64))
    out = np.full((3, 4), 7.0, np.float32)
    with pytest.raises(OutShape):
        tw.gated(x, x[:, :1], out=out[:2])
    with pytest.raises(OutOverlapsItself):
        tw.gated(x, x, out=np.lib.stride_tricks.as_strided(out, (3, 4), (4, 4)))
    assert (out == 7).all()
    out.flags.writeable = False
    with pytest.raises(OutReadOnly):
        tw.gated(x, x, out=out)
    with pytest.raises(InvalidChoice, match="op"):
        BinaryFunction("power")
    with pytest.raises(InvalidChoice, match="activation"):
        BinaryFunction("add", activation="exp")


def test_a_header_and_explanations() -> None:
    kernel = tw.compile(BinaryFunction("multiply", activation="silu"))
    for name in ("*left", "*right", "*y", *(f" {size}" for size in kernel.nest.sizes)):
        assert name in kernel.header
    x = rough((20, 80))
    assert tw.explain(tw.gated, x).kernel.startswith("binary_multiply_silu_f32_")
    assert tw.explain(tw.gated, x, x, "relu").strategy == "pairs of elements, in whole vectors along rows"
    moved = tw.explain(tw.gated, x, x, out=np.asfortranarray(x))
    assert moved.strategy.startswith("arrays are moved")
