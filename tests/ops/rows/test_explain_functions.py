"""What `explain` says of functions of rows and of elements: vectors, caches, copies, the entry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.calls.layout import native_entry_possible
from tilewright.errors import OutShape
from tilewright.ops.elementwise.problem import Elementwise
from tilewright.ops.rows.nest import RowCut
from tilewright.ops.rows.problem import RowFunction


def said(explanation: Any, words: str) -> bool:
    return words in str(explanation)


@pytest.mark.parametrize(("axis", "kind"), [(1, "r"), (0, "c")])
def test_the_axis_decides_the_kernel(axis: int, kind: str) -> None:
    x = np.ones((30, 500), np.float32)
    found = tw.explain(tw.softmax, x, axis, threads=1)
    assert found.kernel.startswith(f"rows_softmax_f32_{kind}_")
    assert found.strategy == tw.explain(RowFunction("softmax", layout="row" if axis else "col")).strategy
    assert ("in pairs" in found.strategy) is (axis == 1)
    assert said(found, "one thread")
    assert said(found, "15,000 elements, 120,000 bytes at least")
    assert said(found, "native entry") is native_entry_possible()


def test_where_results_go() -> None:
    cut = tw.compile(RowFunction("rms_norm")).blocking
    assert isinstance(cut, RowCut)
    condition = f"{cut.stream_from} <= batch * outer * rows * columns"
    for rows, taken in ((1, "through"), (cut.stream_from // 1000 + 1, "past")):
        x = np.empty((rows, 1000), np.float32)  # of which nothing is read
        found = tw.explain(tw.rms_norm, x, out=x)
        first, *others = found.considered
        assert first.taken
        assert not any(path.taken for path in others)
        assert f"stores {taken} the caches" in str(first)
        assert any(condition in str(path) for path in others)


def test_which_calls_are_native() -> None:
    x = np.ones((3, 4), np.float32)
    native = "native entry" if native_entry_possible() else "through Python"
    assert said(tw.explain(tw.layer_norm, x, x[0], x[1], eps=0.5), native)
    assert said(tw.explain(tw.relu, x, out=x), native)
    assert said(tw.explain(tw.relu, x.tolist()), "x is copied")
    assert said(tw.explain(tw.relu, x[:, ::-1]), native)
    assert said(tw.explain(tw.softmax, x, out=np.empty((3, 4), np.float16)), "through Python")
    memory = np.ones(40, np.float32)
    assert said(tw.explain(tw.exp, memory[:20], out=memory[1:21]), "copied to out")


def test_what_is_moved_and_what_is_nothing() -> None:
    x = np.ones((4, 6), np.float32)
    moved = tw.explain(tw.gelu, x, out=np.empty((4, 6), np.float32, order="F"))
    assert moved.strategy.startswith("arrays are moved")
    assert tw.explain(tw.tanh, x[:0]).strategy == "nothing to do: the array is empty"


def test_reductions() -> None:
    x = np.ones((30, 500), np.float32)
    assert tw.explain(tw.sum, x, 1).strategy == "vectors along each row, one pass"
    for axis in (0, 1):
        assert tw.explain(tw.min, x, axis, keepdims=True).kernel.startswith("rows_min_f32_")
    found = tw.explain(tw.max, x, 0)
    assert found.strategy == "vectors across rows, one pass"
    assert said(found, "15,000 elements, 62,000 bytes at least")
    assert tw.explain(tw.mean, np.ones((3, 4, 5)), (0, 2)).strategy.startswith("arrays are moved")


def test_problems() -> None:
    assert tw.explain(Elementwise("gelu")).strategy == "element by element, in whole vectors"
    assert "vectors across rows" in tw.explain(RowFunction("layer_norm", layout="col")).strategy


def test_errors_and_nothing_computed() -> None:
    x, out = np.ones((3, 4), np.float32), np.zeros((3, 4), np.float32)
    tw.explain(tw.softmax, x, out=out)
    assert not out.any()
    with pytest.raises(OutShape):
        tw.explain(tw.softmax, x, out=np.zeros((4, 3), np.float32))
