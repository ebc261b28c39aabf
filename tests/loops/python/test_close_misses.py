"""Nests that are almost what `tilewright.accelerate` reads: results and errors are those of the loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from accelerated_calls import Array, same

import tilewright as tw

N = 12


def matrix(dtype: str = "f8", least: int = -4, seed: int = 0, shape: tuple[int, ...] = (N, N)) -> Array:
    return np.random.default_rng(seed).integers(least, 5, shape).astype(dtype)


# Names that mean something else where they are read


def read_by_another_nest(A: Array, B: Array, C: Array, s: float = 3.0) -> None:
    for i in range(N):
        for j in range(N):
            s = 0
            for k in range(N):
                s += A[i, k] * B[k, j]
            C[i, j] = s
    for i in range(N):
        for k in range(N):
            C[i, 0] += s * A[i, k] * B[k, 0]


def row_behind_its_loop(A: Array, B: Array, C: Array, row: Any = None) -> None:
    row = B[0] if row is None else row
    for i in range(N):
        for j in range(N):
            row = A[i]
            for k in range(N):
                C[i, j] += row[k] * B[k, j]
        for k in range(N):
            C[i, 0] += row[k] * B[k, 0]


def integer_behind_its_loop(A: Array, B: Array, C: Array) -> None:
    for i in range(N):
        p = 2
        for j in range(N - 1):
            p = j + 1
            for k in range(N):
                C[i, p] += A[i, k] * B[k, p]
        for k in range(N):
            C[i, k] += p * A[i, k] * B[k, k]


def name_of_a_row_in_a_comprehension(A: Array, B: Array, C: Array, q: int = 3) -> None:
    for i in range(N):
        row = A[q]
        for j in range(N):
            C[i, j] = sum(row[q] * B[q, j] for q in range(5))


def sequence_before_a_comprehension(A: Array, B: Array, C: Array, q: int = 3) -> None:
    for i in range(N):
        for j in range(N):
            C[i, j] = sum(x * B[q, j] for x in A[q] for q in range(5))


def deleted_behind(A: Array, B: Array, C: Array) -> None:
    for i in range(N):
        for j in range(N):
            s = 0
            for k in range(N):
                s += A[i, k] * B[k, j]
            C[i, j] = s
    del s


def first_of_a_comprehension(A: Array, B: Array, C: Array) -> list[int]:
    for i in range(N):
        for j in range(N):
            if j <= i:
                for k in range(N):
                    C[i, j] += A[i, k] * B[k, j]
    return [2 * k for k in range(k)]


# Errors that must not be lost


def root_that_is_not_needed(A: Array, B: Array, C: Array) -> None:
    for i in range(N):
        for j in range(N):
            t = math.sqrt(A[i, j])  # noqa: F841
            for k in range(N):
                C[i, j] += A[i, k] * B[k, j]


def root_that_is_overwritten(A: Array, B: Array, C: Array) -> None:
    for i in range(N):
        for j in range(N):
            C[i, j] = math.sqrt(C[i, j])
            C[i, j] = 0
            for k in range(N):
                C[i, j] += A[i, k] * B[k, j]


def element_that_is_not_there(A: Array, B: Array, C: Array) -> None:
    for i in range(N):
        for j in range(N):
            t = A[i + j, 0] / 2  # noqa: F841
            for k in range(N):
                C[i, j] += A[i, k] * B[k, j]


def division_by_an_empty_sum(A: Array, B: Array, C: Array) -> None:
    for i in range(N):
        s = 0
        for k in range(i):
            s += A[i, k] * B[k, 0]
        C[i, 0] = 1 / s


def division_by_zero(A: Array, B: Array, C: Array, q: int = 0) -> None:
    for i in range(N):
        for j in range(N):
            s = 0
            for k in range(j):
                s += A[i, k] * B[k, 0]
            C[i, 0] = s / q


def negative_factor(A: Array, B: Array, C: Array) -> None:
    for i in range(N):
        for j in range(N):
            for k in range(N):
                C[i, j] += -1 * (-1 * A[i, k]) * B[k, j]


def large_power(A: Array, B: Array, C: Array, alpha: float = 1e200) -> None:
    for i in range(N):
        for j in range(N):
            for k in range(N):
                C[i, j] += A[i, k] * B[k, j] * alpha**2


# Other values and types


def slices_that_overlap(A: Array, B: Array, C: Array) -> None:
    for i in range(N):
        B[i, 1:N] = 2 * B[i, 0 : N - 1]
        for j in range(N):
            for k in range(N):
                C[i, j] += A[i, k] * A[k, j]


def columns_of_three_axes(A: Array, B: Array, C: Array) -> None:
    for k, plane in enumerate(A.T):
        for j, column in enumerate(plane):
            for i, x in enumerate(column):
                C[i, j] += x * B[k, 0]


def sum_of_small_integers(A: Array, B: Array, C: Array) -> Any:
    s = 0
    for i in range(N):
        s += np.sum(A[i] * B[i])
    return s


def counter_of_numpy(A: Array, B: Array, C: Array, start: Any = np.int64(0)) -> Any:  # noqa: B008
    i = start
    while i < N:
        for j in range(N):
            for k in range(N):
                C[i, j] += A[i, k] * B[k, j]
        i += 1
    return i


class Counter:
    """A place, and a method that moves it."""

    start = 0

    def moved(self) -> int:
        self.start += 3
        return self.start


def start_that_changes(A: Array, B: Array, C: Array, counter: Any = None) -> Any:
    counter = Counter()
    i = counter.start
    first = counter.moved()
    while i < N:
        for j in range(N):
            for k in range(N):
                C[i, j] += A[i, k] * B[k, j]
        i += 1
    return i, first


def condition_on_a_result(A: Array, B: Array, C: Array) -> None:
    first = C[0:1, 0]
    for i in range(N):
        for j in range(N):
            if first > 0:
                C[i, j] = 0
            for k in range(N):
                C[i, j] -= A[i, k] * B[k, j]


def element_of_the_result(A: Array, B: Array, C: Array) -> None:
    for j in range(N):
        for k in range(N):
            C[k, j] += C[N - 1 - j, j] * A[k, k]


def infinite_factor(A: Array, B: Array, C: Array, alpha: float = math.inf) -> None:
    for i in range(N):
        for j in range(N):
            for k in range(N):
                C[i, j] += alpha * A[i, k] * B[k, j]


def zero_times_nan(A: Array, B: Array, C: Array, alpha: float = 0.0) -> None:
    A[0, 0] = math.nan
    for i in range(N):
        for j in range(i + 1):
            for k in range(N):
                C[i, j] += alpha * A[i, k] * A[j, k]


def positive(dtype: str) -> list[Array]:
    return [matrix(dtype, 1), matrix(dtype, 1, 1), matrix(dtype, 1, 2)]


def three_axes(dtype: str) -> list[Array]:
    return [matrix(dtype, shape=(N, N, N)), matrix(dtype, seed=1), matrix(dtype)]


def signed(dtype: str) -> list[Array]:
    return [matrix(dtype), matrix(dtype, seed=1), matrix(dtype, seed=2)]


#: Functions, their arrays, a dtype, and what the report says of the nest; nothing if it is replaced.
CLOSE_MISSES: list[tuple[Callable[..., Any], Callable[[str], list[Array]], str, str]] = [
    (read_by_another_nest, signed, "f8", "leaves s for other code"),
    (row_behind_its_loop, signed, "f8", "reads row outside"),
    (integer_behind_its_loop, signed, "f8", "reads p outside"),
    (name_of_a_row_in_a_comprehension, signed, "f8", "counts with q"),
    (sequence_before_a_comprehension, signed, "f8", "has a loop over A[q]"),
    (deleted_behind, signed, "f8", "leaves s for other code"),
    (first_of_a_comprehension, signed, "f8", "leaves k for other code"),
    (root_that_is_not_needed, signed, "f8", "computes t, which no statement needs"),
    (root_that_is_overwritten, signed, "f8", "square root of a negative number"),
    (element_that_is_not_there, signed, "f8", "computes t, which no statement needs"),
    (division_by_an_empty_sum, positive, "f8", "divides by zero"),
    (division_by_zero, positive, "f8", "divides by zero"),
    (negative_factor, positive, "u1", "-1 is no uint8"),
    (negative_factor, positive, "i1", ""),
    (large_power, positive, "f8", "Numerical result out of range"),
    (slices_that_overlap, signed, "f8", "stores into B"),
    (columns_of_three_axes, three_axes, "f8", "number of axes"),
    (sum_of_small_integers, signed, "i1", "sums of int8 are computed in larger integers"),
    (sum_of_small_integers, signed, "i8", ""),
    (counter_of_numpy, signed, "f8", "start is int64"),
    (start_that_changes, signed, "f8", "without a range"),
    (condition_on_a_result, positive, "f8", "depends on the value of a ndarray"),
    (element_of_the_result, signed, "i8", "shares memory"),
    (infinite_factor, signed, "f8", "inf is infinite"),
    (zero_times_nan, signed, "f8", "a factor is 0"),
]


def other_iterables(A: Any, B: Array, C: Array) -> None:
    for name, x in A.items():
        for i in range(N):
            C[i, 0] += x * B[i, len(name)]
    for x, y in zip(A.values(), iter(B), strict=False):
        for i in range(N):
            C[i, 1] += x * y[i]
    for entry in A.values():
        if entry.real > 0:
            C[0, 0] += entry.real
    for row in B[:, 0:3]:
        for x in row.tolist():
            C[0, 1] += x * x


def test_other_iterables() -> None:
    numbers = {"a": np.float64(2), "bc": np.float64(3)}
    ours, theirs = signed("f8"), signed("f8")
    tw.accelerate(other_iterables)(numbers, *ours[1:])
    other_iterables(numbers, *theirs[1:])
    np.testing.assert_array_equal(ours[2], theirs[2])


@pytest.mark.filterwarnings("ignore:.* encountered in")
@pytest.mark.parametrize(
    ("function", "arrays", "dtype", "reason"),
    CLOSE_MISSES,
    ids=[f"{row[0].__name__}-{row[2]}" for row in CLOSE_MISSES],
)
def test_close_misses(
    function: Callable[..., Any],
    arrays: Callable[[str], list[Array]],
    dtype: str,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tilewright.loops.python.calls.FEWEST_ITERATIONS", 1)
    monkeypatch.setattr("tilewright.loops.python.vector_call.FEWEST_ITERATIONS", 1)
    report = same(function, arrays(dtype), arrays(dtype))
    if reason:
        assert reason in f"{report.text} {report.as_written}", str(report)
    else:
        assert report.call is not None
        assert report.call.runs == 1
