"""Measured pages: calls of every operation, peers beside them, and signs of a disturbed measurement."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from explored import PROBLEMS
from tiers import exhaustive

import tilewright as tw
from tilewright.compiler.matrix_example import example_of
from tilewright.compiler.operation import operation_of
from tilewright.compiler.target import resolve_target
from tilewright.errors import InvalidChoice, NotMeasured
from tilewright.spec.dtype import C64, F32, I8
from tilewright.spec.operations import OPS
from tilewright.spec.weights import Weights
from tilewright.tools.explore.page import measured_points
from tilewright.tools.explore.page.kernel_call import ExampleCall
from tilewright.tools.explore.page.kernels import explore_problem, parse_peers
from tilewright.tools.explore.page.measured_points import Points, measure_kernel, measure_peers, unit_of
from tilewright.tools.explore.page.peer_cases import case_of

#: Lengths of open axes, so that calls are short.
SMALL = {
    "m": 40,
    "n": 24,
    "k": 16,
    "m1": 3,
    "n1": 2,
    "k1": 4,
    "queries": 9,
    "keys": 20,
    "rows": 5,
    "columns": 37,
}
QUICK = ("brgemm", "brgemm pointers", "unary", "embedding", "rotary", "gemm i8")
CASES = [pytest.param(name, marks=() if name in QUICK else exhaustive) for name in PROBLEMS]


def a_call(problem: Any, sizes: dict[str, int]) -> tuple[ExampleCall, dict[str, Any]]:
    """A call of a problem, and its operands before it ran."""
    kernel = tw.compile(problem)
    call = ExampleCall(kernel, example_of(kernel, sizes))
    return call, {name: array.copy() for name, array in call.operands.items()}


def test_every_operation_has_a_problem() -> None:
    own = {name for name in OPS.names if OPS[name].problem.__module__.startswith("tilewright.")}
    assert {problem.operation for problem in PROBLEMS.values()} == own


@pytest.mark.parametrize("name", CASES)
def test_a_call_writes_its_results_and_nothing_behind_them(name: str) -> None:
    problem = PROBLEMS[name]
    call, before = a_call(problem, SMALL)
    call.run(1)
    written = set(operation_of(problem).written(problem))
    for operand, array in call.operands.items():
        same = array.tobytes() == before[operand].tobytes()
        assert not (same and operand in written), operand
        tail = -1024 // array.itemsize
        assert array[tail:].tobytes() == before[operand][tail:].tobytes(), operand
        if array.dtype.kind == "f":
            assert np.isfinite(array).all(), operand
    once = {operand: array.copy() for operand, array in call.operands.items()}
    call.run(2)
    if getattr(problem, "beta", 0) == 0:  # nothing is added to what was there
        for operand, array in call.operands.items():
            np.testing.assert_array_equal(array, once[operand])


def test_a_call_computes_what_its_problem_means() -> None:
    call, before = a_call(tw.BatchReduceGemm(16, 6, 64, a="row", b="row", c="row", beta=0), {})
    call.run(1)
    a, b = before["a"][: 16 * 64].reshape(16, 64), before["b"][: 64 * 6].reshape(64, 6)
    np.testing.assert_allclose(call.operands["c"][: 16 * 6].reshape(16, 6), a @ b, rtol=1e-4, atol=1e-4)
    call, before = a_call(tw.Embedding("f32"), {"rows": 4, "columns": 7, "table": 9})
    call.run(1)
    table = before["table"][: 9 * 7].reshape(9, 7)
    np.testing.assert_array_equal(call.operands["y"][: 4 * 7].reshape(4, 7), table[before["indices"]])


def a_product(row: int) -> tw.Contraction:
    """C of 2 x 4 whose rows are so many elements apart."""
    return tw.Contraction(
        [
            tw.Dimension("m", "sequential", 2, in0=3, out=row),
            tw.Dimension("n", "sequential", 4, in1=1, out=1),
            tw.Dimension("k", "sequential", 3, in0=1, in1=4),
        ]
    )


SIZES = {"m": 8, "n": 256, "k": 128}
ROWS = {"batch": 1, "outer": 1, "rows": 8, "columns": 4}
PEER_CASES = [
    (tw.Gemm(), SIZES, "gemm 8x256x128 nn"),
    (tw.Gemm(a="col", dtype="bf16"), SIZES, "gemm 8x256x128 tn"),
    (tw.Gemm(c="col"), SIZES, None),
    (tw.Gemm(epilogue="relu"), SIZES, None),
    (tw.Gemm(epilogue="bias,gelu", b="col"), SIZES, "linear with GELU gelu 8x256x128"),
    (tw.Gemm(epilogue="bias,relu", b="col"), SIZES, "linear relu 8x256x128"),
    (tw.Gemm(epilogue="bias,gelu"), SIZES, None),
    (tw.Gemm(epilogue="bias", b="packed"), SIZES, "linear, packed weight bias 8x256x128"),
    (
        tw.Gemm(epilogue="bias", b="packed", weights=Weights.parse("i8")),
        SIZES,
        "linear, 8-bit weight bias 8x256x128",
    ),
    (
        tw.Gemm(epilogue="bias", b="packed", weights=Weights.parse("i4g128")),
        SIZES,
        "linear, 4-bit weight bias 8x256x128",
    ),
    (tw.Gemm(epilogue="bias", b="packed", weights=Weights.parse("i4g64")), SIZES, None),
    (tw.Attention(64, bounded=True), {"queries": 8, "keys": 9}, "attention 1x1x8:9x64 causal"),
    (tw.Attention(64, softcap=True), {"queries": 8, "keys": 9}, None),
    (tw.RowFunction("softmax"), ROWS, "softmax 8x4"),
    (tw.RowFunction("sum"), ROWS, "sum of rows 8x4"),
    (tw.RowFunction("softmax"), ROWS | {"outer": 2}, None),
    (tw.RowFunction("softmax", layout="col"), ROWS, None),
    (tw.RowFunction("layer_norm", weight="f32", bias="f32"), ROWS, "layer_norm 8x4"),
    (tw.RowFunction("layer_norm", weight="f32"), ROWS, None),
    (tw.RowFunction("rms_norm", weight="f32"), ROWS, "rms_norm 8x4"),
    (tw.Elementwise("gelu"), ROWS, "gelu 8x4"),
    (tw.Elementwise("gelu", "f64"), ROWS, None),
    (tw.Elementwise("relu"), ROWS, None),
    (tw.Unary("identity", 5, 3, b="row"), {"m": 5, "n": 3}, "transpose 3x5"),
    (tw.Unary("relu", 5, 3), {"m": 5, "n": 3}, None),
    (tw.einsum_contraction("abc,cd->abd", (4, 6, 8), (8, 5)), {}, "einsum abd,dc->abc 4x6x5x8"),
    (tw.einsum_contraction("abc,cd->abd", (4, 6, 8), (8, 5), dtype="f64"), {}, None),
    (a_product(4), {}, "einsum ac,cb->ab 2x4x3"),
    (a_product(5), {}, None),
    (tw.Trmm(), {"m": 8, "n": 8}, None),
]


@pytest.mark.parametrize(("problem", "shape", "name"), PEER_CASES)
def test_the_row_of_peers_is_the_same_call(problem: Any, shape: dict[str, int], name: str | None) -> None:
    case = case_of(problem, shape)
    assert (None if case is None else case.name) == name


def test_a_page_has_the_points_of_its_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured_points, "REPEAT", 2)
    page = tw.compile(tw.BatchReduceGemm(16, 6, 64)).explore(measure=True)
    (target,) = page.record["targets"]
    measured = target["measured"]
    (point,) = measured["points"]
    assert 0 < point["shortest"] <= point["cycles"] <= point["longest"]
    assert target["roofline"]["points"] == [[point["title"], 12288 / point["cycles"]]]
    assert measured["peak"]["gflops"] > 0
    assert json.loads(json.dumps(page.record)) == page.record


@pytest.mark.parametrize(
    "problem", [tw.RowFunction("sum"), pytest.param(tw.Gemm(32, 32, 32), marks=exhaustive)]
)
def test_peers_are_measured_beside_it(problem: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured_points, "REPEAT", 2)
    case = case_of(problem, {"m": 32, "n": 32, "k": 32, "rows": 8, "columns": 16})
    assert case is not None
    without = ("onnxruntime",) * isinstance(problem, tw.RowFunction)
    found = measure_peers(case, ("numpy", *without))
    assert [one.title for one in found.points] == ["Tilewright", "NumPy"]
    assert tuple(note.split()[0] for note in found.notes) == without
    assert len(found.peaks) >= 2 * len(found.points)


def test_a_peer_without_a_call_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    point = measured_points.Point("this kernel", "", 100.0, 50.0, 200.0)
    monkeypatch.setattr(measured_points, "measure_kernel", lambda *_: Points((point,), (100.0, 50.0, 50.0)))
    page = explore_problem(tw.BatchReduceGemm(16, 6, 64), measure=True, peers=["torch"])
    measured = page.record["targets"][0]["measured"]
    assert measured["notes"] == ["torch is left out: it has no call that computes this problem"]
    assert measured["disturbed"] == [
        "the median of the measured peaks was 50 % of the highest one",
        "the median round took longer than the shortest one: this kernel by 100 %",
    ]


def test_the_peak_is_that_of_the_types_of_the_products() -> None:
    assert unit_of(tw.Gemm(dtype="f64"))[0].name == "f64"
    assert unit_of(tw.RowFunction("softmax")) == (F32, F32)
    assert unit_of(tw.Mmt4d(8, 8, 4, "i8")) == (I8, I8)
    assert unit_of(tw.Gemm(dtype="c64")) == (C64, C64)


def test_cycles_are_those_of_the_clock_of_the_peak() -> None:
    kernel = tw.compile(tw.BatchReduceGemm(16, 6, 64))
    found = measure_kernel(kernel, example_of(kernel, {}), (F32, F32))
    assert len(found.peaks) == measured_points.REPEAT
    assert all(peak > 0 for peak in found.peaks)


def test_what_is_not_measured_is_refused() -> None:
    with pytest.raises(NotMeasured, match="leave it out"):
        explore_problem(tw.BatchReduceGemm(16, 6, 64), ["pwr10"], measure=True)
    with pytest.raises(InvalidChoice, match="peer"):
        explore_problem(tw.BatchReduceGemm(16, 6, 64), measure=True, peers=["nunpy"])
    with pytest.raises(InvalidChoice, match="peer"):
        parse_peers("numpy,nunpy")
    assert resolve_target(None) == tw.compile(tw.BatchReduceGemm(16, 6, 64)).machine
