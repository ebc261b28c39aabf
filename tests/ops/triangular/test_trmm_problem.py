"""The record of products with a triangular matrix: what it counts, what it means, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.errors import InvalidChoice, InvalidSize, TilewrightError, UnsupportedDtype


@pytest.mark.parametrize(
    ("problem", "flops", "moved"),
    [
        (tw.Trmm(1, 1), 2, 12),
        (tw.Trmm(4, 10), 4 * 10 * 5, 4 * (10 + 40 + 40)),
        (tw.Trmm(4, 10, side="right"), 4 * 10 * 11, 4 * (55 + 40 + 40)),
        (tw.Trmm(4, 10, "c64"), 4 * 4 * 10 * 5, 8 * (10 + 40 + 40)),
        (tw.Trmm(4, 10, "bf16", out_dtype="f32"), 4 * 10 * 5, 2 * (10 + 40) + 4 * 40),
        (tw.Trmm(4), None, None),
        (tw.Trmm(n=4), None, None),
    ],
)
def test_flops_and_bytes(problem: tw.Trmm, flops: int | None, moved: int | None) -> None:
    assert (problem.flops, problem.bytes) == (flops, moved)


def test_the_meaning() -> None:
    a, b = np.array([[2, 99], [3, 4]]), np.array([[1, 10], [0, 1]])
    assert tw.Trmm().reference(a, b).tolist() == [[2, 20], [3, 34]]
    assert tw.Trmm(lower=False).reference(a, b).tolist() == [[2, 119], [0, 4]]
    assert tw.Trmm(unit=True).reference(a, b, alpha=2).tolist() == [[2, 20], [6, 62]]
    assert tw.Trmm(side="right").reference(a, b).tolist() == [[32, 40], [3, 4]]
    assert tw.Trmm().reference(a * np.nan, b, alpha=0).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("kind", "arguments", "word"),
    [
        (InvalidSize, {"m": -1}, "m is -1"),
        (InvalidSize, {"n": 2.5}, "n is 2.5"),
        (InvalidChoice, {"c": "packed"}, "row, col, strided"),
        (InvalidChoice, {"side": "top"}, "left, right"),
        (UnsupportedDtype, {"dtype": "f128"}, "f128"),
    ],
)
def test_refused(kind: type[TilewrightError], arguments: dict[str, object], word: str) -> None:
    with pytest.raises(kind, match=word):
        tw.Trmm(**arguments)  # type: ignore[arg-type]
