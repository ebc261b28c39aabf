"""`while` loops that count and loops over rows of an array, replaced; what only looks like them stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tw


def counting(A: Any, B: Any, C: Any) -> None:
    for i in range(A.shape[0]):
        j = 0
        while j < B.shape[1]:
            k = 1
            while k <= A.shape[1] - 2:
                C[i, j] += A[i, k] * B[k, j]
                k += 2
            j += 1


def rows(A: Any, B: Any, C: Any) -> None:
    for i, row in enumerate(A):
        for j in range(B.shape[1]):
            for k in range(len(row)):
                C[i, j] += row[k] * B[k, j]


def bound_that_changes(A: Any, B: Any, C: Any) -> Any:
    n = A.shape[1]
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            k = 0
            while k < n:
                C[i, j] += A[i, k] * B[k, j]
                n = 5
                k += 1
    return n


def counter_that_is_read(A: Any, B: Any, C: Any) -> int:
    k = 7
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            k = 0
            while k < A.shape[1]:
                C[i, j] += A[i, k] * B[k, j]
                k += 1
    return k


def left_early(A: Any, B: Any, C: Any) -> None:
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            k = 0
            while k < A.shape[1]:
                if k == 3:
                    break
                C[i, j] += A[i, k] * B[k, j]
                k += 1


def rows_that_change(A: Any, B: Any, C: Any) -> None:
    for i, row in enumerate(C):
        for j in range(B.shape[1]):
            for k in range(A.shape[1]):
                C[i, j] += row[k] * B[k, j]


def row_that_is_read(A: Any, B: Any, C: Any) -> Any:
    row = None
    for i, row in enumerate(A):
        for j in range(B.shape[1]):
            for k in range(A.shape[1]):
                C[i, j] += row[k] * B[k, j]
    return row


@pytest.mark.parametrize(
    ("function", "replaced"),
    [
        (counting, True),
        (rows, True),
        (bound_that_changes, False),
        (counter_that_is_read, True),
        (left_early, False),
        (rows_that_change, True),
        (row_that_is_read, False),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_loops_that_count(function: Callable[..., Any], replaced: bool) -> None:
    generator = np.random.default_rng(0)
    a, b, c = (generator.integers(-4, 4, (12, 12)).astype("f8") for _ in range(3))
    expected = c.copy()
    wanted = function(a, b, expected)
    fast = tw.accelerate(function)
    found = fast(a, b, c)
    np.testing.assert_array_equal(c, expected)
    np.testing.assert_array_equal(found, wanted)
    (report, *_) = tw.accelerate.report(fast)
    assert report.replaced is replaced, str(report)
    assert report.as_written == ""


def test_another_enumerate(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = tw.accelerate(rows)
    monkeypatch.setitem(rows.__globals__, "enumerate", lambda A: [(0, A[0])])
    a, b, c = np.ones((12, 12)), np.ones((12, 12)), np.zeros((12, 12))
    fast(a, b, c)
    assert c.sum() == 12 * 12
    assert "enumerate" in tw.accelerate.report(fast)[0].as_written
