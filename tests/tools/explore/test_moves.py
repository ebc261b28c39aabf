"""Transposes measured: shapes on the command line, what a report holds, a wrong result is not timed."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tilewright.errors import InvalidChoice, InvalidSize, WrongMove
from tilewright.tools.explore import moves
from tilewright.tools.explore.moves import SYSTEMS, Array, MovePlan, Runner, measure_moves, parse_shapes

SHAPES = {
    "64": ((64, 64),),
    "64, 1000x3": ((64, 64), (1000, 3)),
    "8,8x8,8": ((8, 8),),
}


@pytest.mark.parametrize("text", SHAPES)
def test_shapes(text: str) -> None:
    assert parse_shapes(text) == SHAPES[text]


@pytest.mark.parametrize("text", ["", "8x", "x8", "8x8x8", "-8", "eight"])
def test_no_shapes(text: str) -> None:
    with pytest.raises(InvalidChoice, match="N or MxN"):
        parse_shapes(text)


def test_shapes_without_elements() -> None:
    with pytest.raises(InvalidSize, match="at least 1"):
        parse_shapes("8x0")


@pytest.mark.parametrize("dtype", ["i8", "i16", "f32", "f64", "c128"])
def test_a_report(dtype: str) -> None:
    plan = MovePlan.parse("5x7,16", dtype, "numpy", repeat=2, seed=1)
    steps = []
    report = measure_moves(plan, {"cpu": "this"}, lambda: steps.append(1))
    assert len(steps) == 2 * 2
    assert [(row.rows, row.columns, row.system) for row in report.rows] == [
        (rows, columns, system)
        for rows, columns in ((5, 7), (16, 16))
        for system in ("kernel", "tilewright", "numpy")
    ]
    for row in report.rows:
        assert row.dtype == dtype
        assert row.gib_per_second_ci[0] <= row.gib_per_second <= row.gib_per_second_ci[1]
        assert row.share_of_memcpy > 0
    written = json.loads(report.to_json())
    assert written["machine"] == {"cpu": "this"}
    assert written["rows"][0]["problem"] == "transpose 5x7"


def test_memcpy_copies_every_byte() -> None:
    a, b = np.arange(1000.0), np.zeros(1000)
    moves._memcpy(a, b)(1)
    np.testing.assert_array_equal(a, b)


def test_a_wrong_result_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(a: Array, b: Array) -> Runner:
        return b.fill

    monkeypatch.setitem(SYSTEMS, "numpy", wrong)
    with pytest.raises(WrongMove, match=r"numpy did not transpose a \(5, 7\) array of float32"):
        measure_moves(MovePlan.parse("5x7", "f32", "numpy", repeat=1, seed=0), {})
