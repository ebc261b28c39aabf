"""Conditions in nests: those that choose between products, and those that cut ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from accelerated_calls import made, same
from tiers import each_value

import tilewright as tw

Array = np.ndarray[Any, Any]


def cleared_or_scaled(A: Array, B: Array, C: Array, beta: float = 0) -> None:
    if not A.shape or not B.shape:
        return
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            if beta == 0:
                C[i, j] = 0
            else:
                C[i, j] *= beta
            for k in range(A.shape[1]):
                C[i, j] += A[i, k] * B[k, j]


def transposed_or_not(A: Array, B: Array, C: Array, transpose: Any = None, *, add: bool = True) -> None:
    for i in range(11):
        for j in range(11):
            s = C[i, j] if add else 0
            for k in range(11):
                if transpose is None:
                    s += A[i, k] * B[k, j]
                elif transpose:
                    s += A[i, k] * B[j, k]
                else:
                    s -= A[i, k] * B[k, j]
            C[i, j] = s


def lower(A: Array, B: Array, C: Array) -> None:
    n = C.shape[0]
    for i in range(n):
        for j in range(n):
            if j <= i:
                for k in range(A.shape[1]):
                    C[i, j] += A[i, k] * A[j, k]


def upper_by_continue(A: Array, B: Array, C: Array) -> None:
    n = C.shape[0]
    for i in range(n):
        for j in range(n):
            if j < i:
                continue
            s = 0
            for k in range(A.shape[1]):
                s += A[i, k] * A[j, k]
            C[i, j] = s


def without_first_row(A: Array, B: Array, C: Array, first: int = 3) -> None:
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            for k in range(A.shape[1]):
                if i >= first and k != 5:
                    C[i, j] += A[i, k] * B[k, j]


def around_a_nest(A: Array, B: Array, C: Array, n: int = 11) -> None:
    if n > 0:
        for i in range(n):
            for j in range(n):
                for k in range(n):
                    C[i, j] += A[i, k] * B[k, j]


def by_their_elements(A: Array, B: Array, C: Array) -> None:
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            for k in range(A.shape[1]):
                if A[i, k] != 0:
                    C[i, j] += A[i, k] * B[k, j]


def read_behind(A: Array, B: Array, C: Array) -> int:
    for i in range(11):
        for j in range(11):
            if j <= i:
                for k in range(11):
                    C[i, j] += A[i, k] * A[j, k]
    return k


def many(A: Array, B: Array, C: Array, a: int = 0, b: int = 0, c: int = 0, d: int = 0) -> None:
    for i in range(11):
        for k in range(11):
            C[i, 0] += (
                (1 if a else 2) * (1 if b else 2) * (1 if c else 2) * (1 if d else 2) * A[i, k] * B[k, 0]
            )


SQUARE = (11, 11, 11)
#: Functions, values of further arguments, and how often a product runs.
GUARDED: list[tuple[Callable[..., Any], tuple[Any, ...], int]] = [
    (cleared_or_scaled, (), 1),
    (cleared_or_scaled, (2,), 1),
    (cleared_or_scaled, (np.float64(0),), 1),
    (transposed_or_not, (), 1),
    (transposed_or_not, (True,), 1),
    (transposed_or_not, (0,), 1),
    (transposed_or_not, ([],), 0),
    (lower, (), 1),
    (upper_by_continue, (), 1),
    (around_a_nest, (), 1),
    (around_a_nest, (0,), 0),
]


@pytest.mark.parametrize("dtype", ["f8", "c8"])
@pytest.mark.parametrize(("function", "further", "runs"), GUARDED)
@each_value
def test_guards(function: Callable[..., Any], further: tuple[Any, ...], runs: int, dtype: str) -> None:
    ours, theirs = made(dtype, SQUARE), made(dtype, SQUARE)
    report = same(function, [*ours, *further], [*theirs, *further])
    assert report.replaced, str(report)
    assert report.call is not None
    assert report.call.runs == runs


@pytest.mark.parametrize("shape", [(0, 3, 3), (3, 0, 3), (12, 13, 4), (13, 12, 9)])
@pytest.mark.parametrize("function", [cleared_or_scaled, lower, upper_by_continue, without_first_row])
@each_value
def test_shapes_that_do_not_fit(function: Callable[..., Any], shape: tuple[int, int, int]) -> None:
    same(function, made("f8", shape), made("f8", shape))


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (by_their_elements, "has a condition, in line"),
        (read_behind, "leaves k for other code to read"),
        (many, "has 4 conditions"),
    ],
)
def test_what_stays(function: Callable[..., Any], reason: str) -> None:
    report = same(function, made("f8", SQUARE), made("f8", SQUARE))
    assert not report.replaced
    assert reason in report.text


def test_conditions_are_in_the_report() -> None:
    (report,) = tw.accelerate.report(cleared_or_scaled)
    assert report.text.endswith("; by beta == 0")
    assert "C[m,n] = A[m,k]*B[k,n]" in report.text
    assert "C[m,n] = beta*C[m,n] + A[m,k]*B[k,n]" in report.text
