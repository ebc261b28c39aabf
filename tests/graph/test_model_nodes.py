"""Nodes that model files need: run and meaning against formulas of NumPy, repeated in machine code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import Array, graphs_by_python

from tilewright.calls.layout import native_entry_possible
from tilewright.errors import GraphDtype, GraphShape
from tilewright.graph.builder import Graph
from tilewright.graph.execute import evaluate_network
from tilewright.graph.nodes.base import Node
from tilewright.graph.nodes.generated import IotaNode, SizesNode
from tilewright.graph.nodes.indexing import FlipNode, GatherNDNode, PadNode, ScatterNode, TakeAlongNode
from tilewright.graph.nodes.integers import MatmulIntegerNode
from tilewright.graph.nodes.scans import ArgReduceNode, CumulativeNode, SortedNode
from tilewright.graph.sizes import shape_of, size_of

RANDOM = np.random.default_rng(8)
ROWS = np.array([[2, 0, 1, 1], [3, 3, 0, 2]])
PAIRS = np.array([[1, 2], [0, -1], [1, 2]])
BYTES, ZEROS = RANDOM.integers(0, 256, (4, 3)).astype(np.uint8), np.array([3, 200, 0], np.uint8)


def scattered(x: Array, function: str) -> Array:
    """Elements of axis 1 replaced or combined, one after the other."""
    out = x.copy()
    for (row, column), place in np.ndenumerate(ROWS[:, :2]):
        one = x[row, column] * 3
        now = out[row, place]
        values = {"none": one, "add": now + one, "mul": now * one, "max": max(now, one), "min": min(now, one)}
        out[row, place] = values[function]
    return out


def scattered_pairs(x: Array) -> Array:
    out = x.copy()
    for row, column in PAIRS:
        out[row, column] += 2
    return out


def stable(x: Array, count: int, *, largest: bool) -> Array:
    """Places of the first elements of each row; of equal ones the first."""
    return np.argsort(-x if largest else x, axis=1, kind="stable")[:, :count]


Case = tuple[type[Node], list[Any], dict[str, Any], Callable[[Array], Any]]

#: A node of x (2, 4), its further operands and options, and what it computes. x has equal elements.
NODES: dict[str, Case] = {
    "flip": (FlipNode, [], {"axis_": 1}, lambda x: x[:, ::-1]),
    "pad": (
        PadNode,
        [np.float32(7)],
        {"before": shape_of((1, 0)), "after": shape_of((0, 2))},
        lambda x: np.pad(x, ((1, 0), (0, 2)), constant_values=7),
    ),
    "take along": (TakeAlongNode, [ROWS], {"axis_": 1}, lambda x: np.take_along_axis(x, ROWS, 1)),
    "take along of fewer rows": (
        TakeAlongNode,
        [ROWS[:1, :3]],
        {"axis_": 1},
        lambda x: x[:1][:, ROWS[0, :3]],
    ),
    "gather": (GatherNDNode, [PAIRS], {}, lambda x: np.array([x[row, column] for row, column in PAIRS])),
    "gather rows": (GatherNDNode, [PAIRS[:, :1]], {}, lambda x: x[PAIRS[:, 0]]),
    "gather by batch": (
        GatherNDNode,
        [PAIRS[:2, 1:]],
        {"batch": 1},
        lambda x: np.array([x[0, 2], x[1, -1]]),
    ),
    "scatter pairs": (
        ScatterNode,
        [PAIRS, np.full(3, 2, np.float32)],
        {"function": "add"},
        scattered_pairs,
    ),
    "iota": (
        IotaNode,
        [],
        {"length": size_of("n") * 2, "start": size_of("m") + 1, "step": -3, "dtype": np.dtype("i4")},
        lambda x: np.array([5, 2, -1, -4], np.int32),
    ),
    "sizes": (
        SizesNode,
        [],
        {"elements": (size_of("n") * size_of("m"), size_of(3)), "lengths": (1, 2)},
        lambda x: np.array([[8, 3]]),
    ),
    "sums": (CumulativeNode, [], {"axis_": 1}, lambda x: np.cumsum(x, 1)),
    "products to the end, exclusive": (
        CumulativeNode,
        [],
        {"axis_": -1, "function": "prod", "reverse": True, "exclusive": True},
        lambda x: np.stack([x[:, 1] * x[:, 2] * x[:, 3], x[:, 2] * x[:, 3], x[:, 3], np.ones(2, "f4")], 1),
    ),
    "first maximum": (ArgReduceNode, [], {"axis_": 1}, lambda x: np.argmax(x, 1)),
    "last minimum": (
        ArgReduceNode,
        [],
        {"axis_": 1, "function": "min", "last": True, "keepdims": True},
        lambda x: np.array([[max(at for at in range(4) if row[at] == row.min())] for row in x]),
    ),
    "largest": (SortedNode, [], {"count": 3}, lambda x: -np.sort(-x, 1)[:, :3]),
    "places of the largest": (
        SortedNode,
        [],
        {"count": 3, "positions": True},
        lambda x: stable(x, 3, largest=True),
    ),
    "places of the smallest": (
        SortedNode,
        [],
        {"count": 4, "positions": True, "largest": False},
        lambda x: stable(x, 4, largest=False),
    ),
}


def built(
    kind: type[Node],
    operands: list[Any],
    options: dict[str, Any],
    *,
    dtype: str = "f32",
    shape: tuple[int | str, ...] = ("n", "m"),
) -> Graph:
    g = Graph()
    x = g.input("x", dtype, shape)
    own = [] if kind in (IotaNode, SizesNode) else [x]
    g.output(g._node(kind, [*own, *operands], **options))
    return g


def check(g: Graph, expected: Callable[[Array], Any], draw: Callable[[], Array]) -> None:
    run, before = g.compile(), graphs_by_python()
    for _ in range(3):
        x = draw()
        for found in (run(x), *evaluate_network(g.network, [x])):
            right = expected(x)
            assert (found.shape, found.dtype) == (right.shape, right.dtype)
            np.testing.assert_allclose(found, right, rtol=1e-6)
    if native_entry_possible():
        assert graphs_by_python() == before


def few_values() -> Array:
    return RANDOM.integers(-2, 3, (2, 4)).astype(np.float32)


@pytest.mark.parametrize("name", NODES)
def test_a_node(name: str) -> None:
    kind, operands, options, expected = NODES[name]
    shape = (2 if "batch" in options else "n", "m")
    check(built(kind, operands, options, shape=shape), expected, few_values)


@pytest.mark.parametrize("function", ["none", "add", "mul", "max", "min"])
def test_scatter(function: str) -> None:
    """Updates that are three times the first two columns."""
    g = Graph()
    x = g.input("x", shape=("n", 4))
    updates = g.expand(x[:2, :2] * 3.0, (2, 2))
    g.output(g._node(ScatterNode, [x, ROWS[:, :2], updates], function=function, axis_=1))
    check(g, lambda x: scattered(x, function), few_values)


@pytest.mark.parametrize("zeros", [(), (0,), (1,), (0, 1)])
def test_integer_products(zeros: tuple[int, ...]) -> None:
    options = {"a_zero": 0 in zeros, "b_zero": 1 in zeros}
    operands = [BYTES, *((np.int8(-7), ZEROS)[one] for one in zeros)]
    g = built(MatmulIntegerNode, operands, options, dtype="i8", shape=("n", 4))

    def expected(x: Array) -> Array:
        a, b = x.astype(int) + 7 * (0 in zeros), BYTES.astype(int) - ZEROS * (1 in zeros)
        return (a @ b).astype(np.int32)

    check(g, expected, lambda: RANDOM.integers(-128, 128, (2, 4)).astype(np.int8))


@pytest.mark.parametrize(
    ("kind", "operands", "options"),
    [
        (FlipNode, [], {"axis_": 2}),
        (PadNode, [np.float32(0)], {"before": shape_of((1,)), "after": shape_of((1,))}),
        (PadNode, [np.float64(0)], {"before": shape_of((1, 1)), "after": shape_of((1, 1))}),
        (TakeAlongNode, [ROWS[0]], {"axis_": 1}),
        (TakeAlongNode, [ROWS.astype("f4")], {"axis_": 1}),
        (GatherNDNode, [np.zeros((2, 3), int)], {}),
        (GatherNDNode, [PAIRS], {"batch": 1}),
        (ScatterNode, [ROWS, np.ones((2, 4))], {"axis_": 1}),
        (ScatterNode, [ROWS, np.ones((2, 3), "f4")], {"axis_": 1}),
        (MatmulIntegerNode, [BYTES], {}),  # x is of floats
        (SortedNode, [], {"count": -1}),
        (CumulativeNode, [], {"axis_": 2}),
        (ArgReduceNode, [], {"axis_": -3}),
    ],
)
def test_what_does_not_fit_is_refused(kind: type[Node], operands: list[Any], options: dict[str, Any]) -> None:
    with pytest.raises((GraphShape, GraphDtype)):
        built(kind, operands, options)


def test_more_elements_than_there_are() -> None:
    run = built(SortedNode, [], {"count": 5}).compile()
    assert run(np.ones((1, 6), np.float32)).shape == (1, 5)
    with pytest.raises(GraphShape, match="5 of 4 elements"):
        run(np.ones((1, 4), np.float32))
