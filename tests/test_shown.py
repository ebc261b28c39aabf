"""Texts of objects fit a screen, those of problems make them again; notebooks show HTML."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

import dataclasses
import inspect
import re
from html.parser import HTMLParser
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.drawing import MOST_SHOWN_NODES
from tilewright.ops.contraction.tables.problem import TableProduct
from tilewright.spec.dtype import DTYPES
from tilewright.spec.operations import OPS

F32 = np.float32
A = np.ones((300, 300), F32)

CONTRACTION = tw.einsum_contraction("bij,bjk->bik", (2, 3, 4), (2, 4, 5), last="relu")
PROBLEMS: list[Any] = [
    tw.Gemm(),
    tw.Gemm(4, 5, 6),
    *(tw.Gemm(dtype=dtype) for dtype in ("f64", "bf16", "f16", "i8", "i16", "c64")),
    tw.Gemm(dtype="i8", out_dtype="i8"),
    tw.Gemm(dtype="i8", out_dtype="i32"),
    tw.Gemm(dtype="bf16", out_dtype="f32"),
    tw.Gemm(dtype="u8", b_dtype="i8"),
    tw.Gemm(a="col"),
    tw.Gemm(b="col"),
    tw.Gemm(c="strided"),
    tw.Gemm(strategy="tiling"),
    tw.Gemm(strategy="packing"),
    *(
        tw.Gemm(epilogue=steps)
        for steps in ("relu", "bias", "bias:row", "bias,gelu", "clamp:0:6", "clamp:0:7")
    ),
    tw.Gemm(epilogue=[tw.Bias("row"), tw.Clamp(0, 6)]),
    tw.BatchReduceGemm(4, 4, 4, 2),
    tw.BatchReduceGemm(4, 4, 4, 2, beta=0),
    tw.BatchReduceGemm(4, 4, 4, 2, "i8", batch="address"),
    TableProduct("f32"),
    TableProduct("f32", sums="f64"),
    TableProduct("i8", b_dtype="i8"),
    tw.Unary("relu", 4, 4),
    tw.Unary("relu", 4, 4, b="row"),
    tw.Mmt4d(8, 8, 1),
    tw.Attention(64),
    tw.Attention(64, 32),
    *(tw.Attention(64, mask=mask) for mask in ("f32", "f64")),
    *(tw.Attention(64, **{name: True}) for name in ("bounded", "softcap", "slopes", "sinks", "paged")),
    tw.Attention(64, schedule="decode"),
    tw.AttentionBackward(64),
    *(tw.Elementwise(op) for op in ("exp", "relu")),
    tw.RowFunction("softmax"),
    tw.Rotary(),
    tw.Embedding(),
    tw.Packing(),
    tw.Packing("a"),
    tw.LinearChain([64, 256, 64]),
    *(tw.Syrk(c=c) for c in ("row", "strided")),
    tw.Syr2k(),
    tw.Trmm(),
    tw.Trmm(side="right"),
    CONTRACTION,
    tw.schedule(CONTRACTION, tw.machine("generic128")),
    tw.Dimension("k", "primitive", 32, in0=1, in1=1),
]
NAMES = {"TableProduct": TableProduct} | {name: getattr(tw, name) for name in tw.__all__}


def test_a_problem_shows_the_call_that_makes_it() -> None:
    for problem in PROBLEMS:
        assert eval(repr(problem), dict(NAMES)) == problem, repr(problem)


def test_problems_that_differ_show_it() -> None:
    """Their texts are parts of the keys of compiled objects."""
    for one, other in combinations(PROBLEMS, 2):
        assert (repr(one) == repr(other)) is (one == other and type(one) is type(other)), repr(one)


def test_each_field_that_differs_is_shown() -> None:
    """Whatever a field holds besides its default, two problems that differ in it alone have two texts."""
    gemm = tw.Gemm()
    for name, value in (("m", 0), ("m", 1), ("b_dtype", DTYPES["f64"]), ("out_dtype", DTYPES["f64"])):
        changed = object.__new__(tw.Gemm)
        for field in dataclasses.fields(gemm):
            object.__setattr__(
                changed, field.name, value if field.name == name else getattr(gemm, field.name)
            )
        assert repr(changed) != repr(gemm), name


def test_every_kind_of_problem_is_tried() -> None:
    tried = {type(one) for one in PROBLEMS}
    missing = {
        OPS[name].problem for name in OPS.names if OPS[name].problem.__module__.startswith("tilewright.")
    }
    assert {kind.__name__ for kind in missing - tried} <= {"SumOfProducts", "BinaryFunction"}


def test_defaults_are_left_out() -> None:
    assert repr(tw.Gemm()) == "Gemm()"
    assert (
        repr(tw.Gemm(64, None, 32, "bf16", out_dtype="f32"))
        == "Gemm(m=64, k=32, dtype='bf16', out_dtype='f32')"
    )
    assert repr(tw.Gemm(epilogue="bias,gelu").epilogue) == "Epilogue.parse('bias,gelu')"
    assert repr(DTYPES["f32"]) == "<DType f32>"


def large_graph(inputs: int) -> tw.Graph:
    graph = tw.Graph()
    for number in range(inputs):
        x = graph.input(f"a_rather_long_name_of_an_input_{number}", shape=("batch", 3))
        graph.output(graph.softmax(x), f"output_{number}")
    return graph


Q = np.ones((1, 2, 200, 64), F32)
OBJECTS: dict[str, Any] = {
    "machine": tw.machine,
    "kernel": lambda: tw.compile(tw.Gemm(dtype="f32")),
    "packed": lambda: tw.pack(A),
    "quantised": lambda: tw.quantize_weights(A),
    "rows": lambda: tw.quantize_rows(A),
    "state": lambda: tw.attention_partial(Q, Q, Q),
    "graph": lambda: large_graph(100),
    "empty graph": tw.Graph,
    "compiled graph": lambda: large_graph(100).compile(),
    "value": lambda: tw.Graph().input("x", shape=("batch", 3)),
    "explanation": lambda: tw.explain(tw.matmul, A, A),
    "calls": tw.show_calls,
    "einsum": lambda: tw.compile_einsum("ij,jk->ik", A, A),
    "configuration": tw.show_config,
}


@pytest.mark.parametrize("name", OBJECTS)
def test_texts_fit_a_screen(name: str) -> None:
    lines = repr(OBJECTS[name]()).splitlines()
    assert len(lines) <= 60
    assert sum(-(-len(line) // 80) for line in lines) <= 70, "lines of 80 letters"
    assert not re.search(r" at 0x[0-9a-f]+", "\n".join(lines)), "an address says nothing"


class _Reader(HTMLParser):
    """Checks that tags are closed and that nothing is loaded."""

    VOID = ("br", "rect", "path", "line", "circle", "polygon", "polyline")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert not {"src", "href", "onclick", "onload"} & {name for name, _ in attrs}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def html_of(value: Any) -> str:
    if hasattr(value, "_repr_mimebundle_"):
        return str(value._repr_mimebundle_()["text/html"])
    return str(value._repr_html_())


@pytest.mark.parametrize("name", ["packed", "quantised", "explanation", "calls", "configuration", "kernel"])
def test_notebooks_show_tables(name: str) -> None:
    reader = _Reader()
    reader.feed(html_of(OBJECTS[name]()))
    assert reader.open == []
    assert {"div", "table", "td"} <= reader.tags
    assert not reader.tags & {"script", "style", "img", "iframe"}


def test_notebooks_show_graphs() -> None:
    graph = large_graph(2)
    for value in (graph, graph.compile()):
        found = value._repr_mimebundle_(include=None, exclude=None)
        assert list(found) == ["text/plain", "text/html", "image/svg+xml"]
        assert found["text/plain"] == repr(value)
        assert found["image/svg+xml"].startswith("<svg ")
        reader = _Reader()
        reader.feed(found["text/html"])
        assert reader.open == []
        assert "svg" in reader.tags


def test_notebooks_keep_no_picture_of_a_graph_without_output_or_of_a_large_one() -> None:
    assert list(tw.Graph()._repr_mimebundle_()) == ["text/plain"]
    assert list(large_graph(MOST_SHOWN_NODES)._repr_mimebundle_()) == ["text/plain"]


def test_what_is_shown_is_escaped() -> None:
    graph = tw.Graph()
    graph.output(graph.softmax(graph.input("<b>x</b>", shape=(2, 3))), "<i>y</i>")
    text = html_of(graph)
    assert "<b>" not in text
    assert "<i>" not in text


def test_an_explanation_shows_every_strategy_in_a_notebook() -> None:
    found = tw.explain(tw.matmul, A, A)
    text = html_of(found)
    assert text.count("<tr>") >= len(found.considered)
    assert "not taken" in text


def test_builtins_have_signatures_and_documentation() -> None:
    """What `help` and interactive programs read of functions that are machine code."""
    kernel = tw.compile(tw.Gemm(dtype="f32"))
    functions = [getattr(tw, name) for name in tw.__all__ if inspect.isbuiltin(getattr(tw, name))]
    for function in (*functions, kernel.native):
        text = function.__text_signature__
        if text is not None:  # where machine code serves calls
            assert text.startswith("(")
        assert inspect.signature(function).parameters
        assert len((inspect.getdoc(function) or "").splitlines()) > 3
