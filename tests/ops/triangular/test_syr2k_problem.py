"""The records of symmetric products: what they count, what they mean, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.errors import InvalidChoice, InvalidSize, TilewrightError, UnsupportedDtype
from tilewright.ops.triangular.syr2k_problem import Syrk


@pytest.mark.parametrize(
    ("problem", "flops", "moved"),
    [
        (tw.Syrk(1, 1), 2, 8),
        (tw.Syrk(4, 10), 200, 4 * (40 + 10)),
        (tw.Syr2k(4, 10), 400, 4 * (80 + 10)),
        (tw.Syr2k(4, 10, "c64"), 1600, 8 * (80 + 10)),
        (tw.Syr2k(4, 10, "bf16", out_dtype="f32"), 400, 2 * 80 + 4 * 10),
        (tw.Syr2k(0, 10), 0, 0),
        (tw.Syr2k(n=4), None, None),
        (tw.Syrk(k=4), None, None),
    ],
)
def test_flops_and_bytes(problem: Syrk, flops: int | None, moved: int | None) -> None:
    assert (problem.flops, problem.bytes) == (flops, moved)


def test_the_meaning_is_a_triangle() -> None:
    a, b, c = np.array([[1, 2], [3, 4]]), np.array([[1, 0], [0, 1]]), np.array([[1, np.nan], [10, 100]])
    assert tw.Syr2k().reference(a, b).tolist() == [[2, 0], [5, 8]]
    assert tw.Syr2k(lower=False).reference(a, b).tolist() == [[2, 5], [0, 8]]
    assert tw.Syrk().reference(a).tolist() == [[5, 0], [11, 25]]
    assert tw.Syr2k().reference(a, b, c, alpha=2, beta=3).tolist() == [[7, 0], [40, 316]]
    turning = np.array([[1j, 1]])  # not conjugated: 1j² + 1² = 0
    assert tw.Syrk(dtype="c128").reference(turning).tolist() == [[0]]
    with pytest.raises(InvalidSize, match="when beta is not 0"):
        tw.Syrk().reference(a, beta=1)


def test_a_pair_of_factors_is_no_single_one() -> None:
    assert tw.Syrk(4, 8) != tw.Syr2k(4, 8)
    assert [operand.name for operand in tw.Syrk().operands] == ["a", "c"]
    assert [operand.name for operand in tw.Syr2k().operands] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("kind", "arguments", "word"),
    [
        (InvalidSize, {"n": -1}, "n is -1"),
        (InvalidSize, {"k": 2.5}, "k is 2.5"),
        (InvalidChoice, {"c": "packed"}, "row, col, strided"),
        (InvalidChoice, {"b": "diagonal"}, "diagonal"),
        (UnsupportedDtype, {"dtype": "f128"}, "f128"),
        (UnsupportedDtype, {"dtype": "f32", "out_dtype": "f64"}, "f64"),
    ],
)
def test_refused(kind: type[TilewrightError], arguments: dict[str, object], word: str) -> None:
    with pytest.raises(kind, match=word):
        tw.Syr2k(**arguments)  # type: ignore[arg-type]
