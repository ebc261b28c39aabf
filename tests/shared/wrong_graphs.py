"""Right arguments of the methods of graphs, for the generator of wrong calls."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import tilewright as tw

#: Makes one right value of a parameter.
Make: TypeAlias = Callable[[], Any]
Arguments: TypeAlias = Mapping[str, Make]


@cache
def graph() -> tuple[tw.Graph, dict[str, Any]]:
    """A graph that every subject adds to, and its inputs."""
    g = tw.Graph()
    shapes = {"x": ("n", 6), "y": ("n", 6), "row": (6,), "square": (6, 6)}
    values = {name: g.input(name, shape=shape) for name, shape in shapes.items()}
    values["heads"] = g.input("heads", shape=(1, 2, "n", 4))
    values["numbers"] = g.input("numbers", "i64", ("n",))
    values["truths"] = g.input("truths", "bool", ("n", 6))
    return g, values


@cache
def compiled() -> Any:
    """A graph of one product."""
    return _product().compile()


def _product() -> tw.Graph:
    g = tw.Graph()
    g.output(g.linear(g.input("x", shape=("n", 6)), np.ones((3, 6), np.float32)))
    return g


@cache
def saved() -> Path:
    """Its file."""
    path = Path(tempfile.mkdtemp()) / "graph.twgraph"
    compiled().save(path)
    return path


def fresh_path() -> Path:
    """A path where no file is."""
    return Path(tempfile.mkdtemp()) / "new"


def _always(value: Any) -> Make:
    return lambda: value


def methods() -> Iterator[
    tuple[str, Callable[[], Callable[..., Any]], Mapping[str, Make], Mapping[str, Make]]
]:
    """Each method by name, as a call makes it; its arguments by position, and by name."""
    g, values = graph()
    x, y, row, square = (_always(values[name]) for name in ("x", "y", "row", "square"))
    heads, numbers, truths = (_always(values[name]) for name in ("heads", "numbers", "truths"))
    number = iter(range(1 << 62))
    axis, shape, yes = _always(-1), _always((2, -1)), _always(True)
    table = _always(np.ones((9, 2), np.float32))
    steps = {"bias": row, "activation": _always("gelu"), "residual": y}
    attention = {
        "mask": _always(None),
        "causal": _always(True),
        "scale": _always(0.5),
        "window": _always((2, None)),
        "softcap": _always(3.0),
        "layout": _always("bhsd"),
        "q_offset": _always(None),
    }
    array = _always(np.ones((2, 6), np.float32))
    rows: dict[str, tuple[Arguments, Arguments]] = {
        "input": (
            {"name": lambda: f"i{next(number)}"},
            {"dtype": _always("f32"), "shape": _always(("n",))},
        ),
        "constant": ({"value": array}, {"name": _always("c")}),
        "output": ({"value": x}, {"name": lambda: f"o{next(number)}"}),
        "linear": ({"x": x, "weight": square}, steps),
        "matmul": ({"a": x, "b": square}, {"alpha": _always(0.5), "activation": _always("relu")}),
        "einsum": ({"subscripts": _always("ij,jk->ik"), "a": x, "b": square}, {}),
        "attention": ({"q": heads, "k": heads, "v": heads}, attention),
        "append_kv": (
            {"k_cache": heads, "v_cache": heads, "k": heads, "v": heads, "kv_lengths": numbers},
            {"layout": _always("bhsd"), "block_table": _always(None)},
        ),
        "softmax": ({"x": x}, {"axis": axis}),
        "log_softmax": ({"x": x}, {"axis": axis}),
        "layer_norm": ({"x": x}, {"weight": row, "bias": row, "axis": axis, "eps": _always(1e-5)}),
        "rms_norm": ({"x": x}, {"weight": row, "axis": axis, "eps": _always(1e-5)}),
        "reduce": ({"function": _always("sum"), "x": x}, {"axis": axis, "keepdims": _always(True)}),
        "unary": ({"function": _always("sqrt"), "x": x}, {}),
        "relu": ({"x": x}, {}),
        "binary": ({"function": _always("add"), "a": x, "b": y}, {}),
        "gated": ({"x": x, "gate": y}, {"activation": _always("silu")}),
        "rotary": (
            {"x": heads, "cos": table, "sin": table},
            {"positions": _always(None), "interleaved": yes, "layout": _always("bshd")},
        ),
        "where": ({"condition": truths, "a": x, "b": y}, {}),
        "cast": ({"x": x, "dtype": _always("f64")}, {}),
        "reshape": ({"x": square, "shape": shape}, {}),
        "transpose": ({"x": x, "axes": _always((1, 0))}, {}),
        "expand": ({"x": row, "shape": _always(("n", 6))}, {}),
        "concatenate": ({"values": lambda: [values["x"], values["y"]]}, {"axis": _always(1)}),
        "take": ({"x": x, "indices": numbers}, {"axis": _always(0)}),
        "embedding": ({"table": square, "indices": numbers}, {}),
        "slice": ({"x": x, "index": _always((slice(1), slice(None, None, 2)))}, {}),
    }
    for name, (first, named) in rows.items():
        yield f"Graph.{name}", partial(getattr, g, name), first, named
    yield "Value @", lambda: values["x"].__matmul__, {"other": square}, {}
    yield "Value +", lambda: values["x"].__add__, {"other": y}, {}
    yield "Value []", lambda: values["x"].__getitem__, {"index": _always(slice(2))}, {}
    yield "Graph.compile", _new_graph, {}, {"precision": _always("bf16")}
    calibration = {"precision": _always("i8-dynamic"), "calibration": lambda: [array()]}
    yield "Graph.compile for samples", lambda: _product().compile, {}, calibration
    threads = {"threads": _always(1)}
    yield "CompiledGraph()", compiled, {"x": array}, threads
    yield "CompiledGraph.explain", lambda: compiled().explain, {"x": array}, {"repeat": _always(1)}
    yield "CompiledGraph.plan", lambda: compiled().plan, {"x": array}, {}
    yield "CompiledGraph.save", lambda: compiled().save, {"path": fresh_path}, {}
    yield (
        "CompiledGraph.profile",
        lambda: compiled().profile,
        {"path": fresh_path, "x": array},
        {"repeat": _always(1)},
    )
    yield "load_graph", lambda: tw.load_graph, {"path": saved}, {"mmap": yes, "verify": yes}


def _new_graph() -> Callable[..., Any]:
    g = tw.Graph()
    g.output(g.relu(g.input("x", shape=("n",))))
    return g.compile
