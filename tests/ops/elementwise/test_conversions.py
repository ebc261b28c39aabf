"""Conversions between types of floats: every pair, any strides, nothing outside, as by `ndarray.astype`."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from other_cuts import kernel_with
from support import LAYOUTS, Array, GuardedMemory, rough

import tilewright as tw
from tilewright.errors import InvalidTileIr, UnsupportedDtype
from tilewright.ir.expressions import Constant
from tilewright.ir.interpret import interpret
from tilewright.ir.nodes import Buffer, Program, Slice, Space, UnaryMap
from tilewright.ir.verify import verify
from tilewright.machine.catalog import find_machine
from tilewright.ops.elementwise.call import convert
from tilewright.ops.elementwise.nest import build_elementwise, choose_elements
from tilewright.ops.elementwise.problem import Elementwise
from tilewright.ops.rows.kernel import RowCall
from tilewright.ops.rows.lines import plan_elements
from tilewright.spec.dtype import BF16, F16, F32, F64, DType
from tilewright.spec.functions import UnaryOp

PAIRS = [*itertools.permutations((F32, F64, F16, BF16), 2)]
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -3e38, 65519.0, 65520.0, 1 + 2.0**-8, 1 + 3 * 2.0**-8]


def as_numpy(x: Array, to: np.dtype[Any]) -> Array:
    """The conversion by NumPy."""
    with np.errstate(all="ignore"):
        return x.astype(to)


def assert_same(found: Array, expected: Array) -> None:
    """The same numbers with the same signs; any NaN for a NaN."""
    assert found.dtype == expected.dtype
    wide, right = found.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_array_equal(wide, right)
    assert (np.signbit(wide) == np.signbit(right))[~np.isnan(right)].all()


@pytest.mark.parametrize(("source", "to"), PAIRS, ids=str)
def test_every_pair_of_types(source: DType, to: DType) -> None:
    random = np.random.default_rng(3)
    for count in (1, 2, 3, 5, 8, 15, 16, 17, 40, 1027):
        x = random.standard_normal((2, count)) * 10.0 ** random.integers(-9, 9, (2, count))
        x[0, : len(SPECIAL)] = SPECIAL[:count]
        x = as_numpy(x, source.numpy)
        y = np.full(x.shape, 7, to.numpy)
        assert convert(x, y)
        assert_same(y, as_numpy(x, to.numpy))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_strides(layout: str) -> None:
    """Where adjacent elements of both are the same; else nothing is written."""
    x = LAYOUTS[layout](rough((33, 70)))
    for other in LAYOUTS:
        y = LAYOUTS[other](np.full((33, 70), 7, BF16.numpy))
        if convert(x, y):
            assert_same(y, as_numpy(x, BF16.numpy))
        else:
            assert (y == 7).all()
    assert convert(x.copy(), np.empty((33, 70), BF16.numpy))


def test_what_no_kernel_converts() -> None:
    assert not convert(np.ones((0, 4), np.float32), np.ones((0, 4)))
    assert not convert(np.ones(4, np.int32), np.ones(4, np.float32))
    assert not convert(np.ones((4, 4), np.float32), np.ones((4, 4)).T)


@pytest.mark.parametrize(("source", "to"), [(F32, BF16), (BF16, F32), (F64, F16)], ids=str)
def test_no_byte_outside_is_touched(source: DType, to: DType) -> None:
    """Near the caches, and past them."""
    memories = [GuardedMemory(1 << 16) for _ in range(2)]
    problem = Elementwise("identity", source, y_dtype=to)
    for stream_from in (1 << 40, 1):
        kernel = kernel_with(problem, stream_from=stream_from, long_row=1)
        for rows, columns, gap in ((1, 1, 0), (3, 7, 3), (1, 1000, 0), (5, 300, 1), (2, 2049, 15)):
            for at_end in (False, True):
                content = rough((rows, columns)).astype(source.numpy)
                steps = [((columns + gap) * dtype.size, dtype.size) for dtype in (source, to)]
                x = memories[0].place(content, steps[0], at_end=at_end)
                y = memories[1].place(as_numpy(content, to.numpy) * 0, steps[1], at_end=at_end)
                before = memories[1].outside(y)
                plan = plan_elements(source.size, x.shape, x.strides, steps[0])
                assert plan is not None
                RowCall(kernel, [x, y], plan.sizes, plan.elements).run()
                assert_same(y, as_numpy(content, to.numpy))
                assert np.array_equal(memories[1].outside(y), before)


def test_the_oracle_converts() -> None:
    problem = Elementwise("identity", "f64", y_dtype="f16")
    program = verify(build_elementwise(problem, choose_elements(problem, find_machine("znver5")), "kernel"))
    x = rough((2, 3, 4, 5)).astype(np.float64)
    arrays: dict[str, Array] = {"x": x.ravel(), "y": np.full(x.size, np.nan, np.float16)}
    interpret(program, dict(zip(program.sizes, (2, 3, 4, 5, *(60, 20, 5) * 2), strict=True)), {}, arrays)
    assert_same(arrays["y"], as_numpy(x.ravel(), np.dtype(np.float16)))


def test_graphs_convert() -> None:
    graph = tw.Graph()
    graph.output(graph.cast(graph.input("x", shape=("n", 40)), "bfloat16"))
    run = graph.compile()
    for rows in (1, 7):
        x = rough((rows, 40))
        assert_same(run(x), as_numpy(x, BF16.numpy))


def test_errors() -> None:
    with pytest.raises(UnsupportedDtype, match="bf16 results of relu"):
        Elementwise("relu", "f32", y_dtype="bf16")
    assert (
        repr(Elementwise("identity", "f32", y_dtype="bf16")) == "Elementwise(op='identity', y_dtype='bf16')"
    )
    buffers = (Buffer("x", F32, Space.ARGUMENT), Buffer("y", BF16, Space.ARGUMENT))
    row = (Constant(1), Constant(4))
    for op, strides in ((UnaryOp.RELU, row), (UnaryOp.IDENTITY, row[::-1])):
        move = UnaryMap(op, Slice("y", Constant(0), strides), Slice("x", Constant(0), row), *row)
        with pytest.raises(InvalidTileIr, match="element type"):
            verify(Program("kernel", (), (), buffers, (move,)))
