"""Loops over sequences, rows and counters, sums of comprehensions, and names for rows are replaced."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from accelerated_calls import made, same
from tiers import each_value

Array = np.ndarray[Any, Any]


def zipped_vectors(A: Array, B: Array, C: Array) -> None:
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            s = 0
            for x, y in zip(A[i], B[:, j], strict=False):
                s += x * y
            C[i, j] += s


def zipped_strictly(A: Array, B: Array, C: Array) -> None:
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            for x, y in zip(A[i, :], B[:, j], strict=True):
                C[i, j] += x * y


def zipped_rows(A: Array, B: Array, C: Array) -> None:
    for arow, crow in zip(A, C, strict=False):
        for k, x in enumerate(arow):
            for j in range(B.shape[1]):
                crow[j] += x * B[k, j]


def columns(A: Array, B: Array, C: Array) -> None:
    for row, out in zip(A, C, strict=False):
        for j, column in enumerate(B.T):
            out[j] = sum(x * y for x, y in zip(row, column, strict=True))


def numbered_from_one(A: Array, B: Array, C: Array) -> int:
    for i, row in enumerate(A, 1):
        for j in range(B.shape[1]):
            for k, x in enumerate(row, start=0):
                C[i - 1, j] += x * B[k, j]
    return i + j


def numbered_pairs(A: Array, B: Array, C: Array) -> int:
    for i, (arow, crow) in enumerate(zip(A, C, strict=False)):  # noqa: B007 (read behind the loop)
        for j in range(B.shape[1]):
            for k in range(len(arow)):
                crow[j] += arow[k] * B[k, j]
    return i + j


def numbers_beside_rows(A: Array, B: Array, C: Array) -> None:
    for i, row in zip(range(len(A)), A, strict=False):
        for j in range(B.shape[1]):
            for k in range(row.shape[0]):
                C[i, j] += row[k] * B[k, j]


def backwards(A: Array, B: Array, C: Array) -> tuple[int, int, int]:
    for i in reversed(range(len(A))):
        for j in reversed(range(1, B.shape[1], 3)):
            for k in reversed(range(A.shape[1] - 1, -1, -2)):
                C[i, j] += A[i, k] * B[k, j]
    return i, j, k


def rows_backwards(A: Array, B: Array, C: Array) -> None:
    for i, row in enumerate(reversed(A)):
        for j in range(B.shape[1]):
            for k in range(B.shape[0]):
                C[i, j] += row[k] * B[k, j]


def nested_comprehension(A: Array, B: Array, C: Array) -> None:
    for i in range(4):
        for j in range(5):
            C[i, j] = sum(A[i + p, k] * B[k, j + p] for k in range(B.shape[0]) for p in range(3))


def comprehension_of_a_list(A: Array, B: Array, C: Array) -> None:
    n = len(B)
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            C[i, j] = sum([A[i, k] * B[k, j] for k in range(n)], C[i, j])


def dots_of_rows(A: Array, B: Array, C: Array) -> None:
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            C[i, j] = np.dot(A[i], B[:, j])


def dot_methods(A: Array, B: Array, C: Array) -> None:
    for i in range(A.shape[0]):
        row = A[i]
        for j in range(B.shape[1]):
            C[i, j] += row.dot(B[:, j])


def sums_of_products(A: Array, B: Array, C: Array) -> None:
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            C[i, j] += np.sum(A[i, :] * B[:, j])


def sum_methods(A: Array, B: Array, C: Array) -> None:
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            C[i, j] = (A[i] * B[:, j]).sum()


def aliases(A: Array, B: Array, C: Array) -> None:
    for i in range(A.shape[0]):
        left, right = A, B
        depth, n = right.shape
        row, out = left[i], C[i]
        for j in range(n):
            s = 0
            for k in range(depth):
                place = k + 0
                s += row[place] * right[k, j]
            out[j] = s


def flat(A: Array, B: Array, C: Array) -> None:
    a, b, c = A.reshape(-1), B.reshape(-1), C.reshape(-1)
    m, n, depth = C.shape[0], C.shape[1], B.shape[0]
    for i in range(m):
        for j in range(n):
            place = i * n + j
            for k in range(depth):
                c[place] += a[i * depth + k] * b[k * n + j]


def counters(A: Array, B: Array, C: Array) -> tuple[int, int, int]:
    i = 0
    while i < len(A):
        j = B.shape[1] - 1
        while j >= 0:
            k, s = A.shape[1], 0
            while k > 0:
                k -= 1
                s += A[i, k] * B[k, j]
            C[i, j] = s
            j = j - 1
        i += 1
    return i, j, k


def counter_and_ranges(A: Array, B: Array, C: Array) -> int:
    i = 1
    while len(A) > i:
        for j in range(B.shape[1]):
            for k in range(A.shape[1]):
                C[i, j] -= A[i, k] * B[k, j]
        i += 2
    return i


FORMS: list[tuple[Callable[..., Any], str]] = [
    (zipped_vectors, "->ij"),
    (zipped_strictly, "->ij"),
    (zipped_rows, "kj"),
    (columns, ""),
    (numbered_from_one, "kj->ij"),
    (numbered_pairs, "ik,kj->ij"),
    (numbers_beside_rows, "k,kj->"),
    (backwards, "ik,kj->ij"),
    (rows_backwards, "ik,kj->ij"),
    (nested_comprehension, "->ij"),
    (comprehension_of_a_list, "->ij"),
    (dots_of_rows, "->ij"),
    (dot_methods, "->ij"),
    (sums_of_products, "->ij"),
    (sum_methods, "->ij"),
    (aliases, "ik,kj->ij"),
    (flat, "->ij"),
    (counters, "ik,kj->ij"),
    (counter_and_ranges, "ik,kj->ij"),
]


@pytest.mark.parametrize("dtype", ["f8", "i1", "c8"])
@pytest.mark.parametrize(("function", "subscripts"), FORMS, ids=[row[0].__name__ for row in FORMS])
@each_value
def test_forms(function: Callable[..., Any], subscripts: str, dtype: str) -> None:
    report = same(function, made(dtype), made(dtype))
    assert report.replaced, str(report)
    assert subscripts in report.subscripts
    widened = dtype == "i1" and function in (sums_of_products, sum_methods)
    assert report.as_written == ("sums of int8 are computed in larger integers" if widened else "")
    assert report.call is not None
    assert report.call.runs == (not widened)


@pytest.mark.parametrize("shape", [(0, 13, 12), (11, 0, 12), (11, 13, 0)])
@pytest.mark.parametrize("function", [row[0] for row in FORMS], ids=[row[0].__name__ for row in FORMS])
@each_value
def test_empty_ranges(function: Callable[..., Any], shape: tuple[int, int, int]) -> None:
    same(function, made("f8", shape), made("f8", shape))


@pytest.mark.parametrize("function", [row[0] for row in FORMS], ids=[row[0].__name__ for row in FORMS])
def test_arrays_that_do_not_fit(function: Callable[..., Any]) -> None:
    for part, cut in ((0, np.s_[:7]), (0, np.s_[:, :7]), (1, np.s_[:7]), (1, np.s_[:, :7]), (2, np.s_[:7])):
        ours, theirs = made("f8"), made("f8")
        for arrays in (ours, theirs):
            arrays[part] = np.ascontiguousarray(arrays[part][cut])
        same(function, ours, theirs)


@pytest.mark.parametrize("function", [row[0] for row in FORMS], ids=[row[0].__name__ for row in FORMS])
def test_arrays_that_overlap(function: Callable[..., Any]) -> None:
    for part in range(2):
        ours, theirs = made("f8", (12, 12, 12)), made("f8", (12, 12, 12))
        for arrays in (ours, theirs):
            arrays[2] = arrays[part]
        report = same(function, ours, theirs)
        assert "shares memory" in report.as_written


def exact_sums(A: Array, B: Array, C: Array) -> None:
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            C[i, j] = math.fsum(A[i, k] * B[k, j] for k in range(A.shape[1]))


def filtered(A: Array, B: Array, C: Array) -> None:
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            C[i, j] = sum(A[i, k] * B[k, j] for k in range(A.shape[1]) if k != j)


def numbers_looked_up(A: Array, B: Array, C: Array) -> None:
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            for k in range(A.shape[1]):
                place = A[i, k]
                C[i, j] += A[i, place] * B[k, j]


def endless(A: Array, B: Array, C: Array) -> None:
    i = 0
    while True:
        for k in range(A.shape[1]):
            C[i, 0] += A[i, k] * B[k, 0]
        i += 1
        if i == len(A):
            break


def pairs(A: Array, B: Array, C: Array) -> None:
    for i in range(A.shape[0]):
        for x, y in iterated(B):
            C[i, 0] += x * y


def iterated(B: Array) -> Iterator[tuple[float, float]]:
    yield from ((float(x), 2.0) for x in B[0])


REFUSED = [
    (exact_sums, "calls math.fsum", "C[i, j] = math.fsum("),
    (filtered, "sums over a part of a range", "C[i, j] = sum("),
    (numbers_looked_up, "counts with place", "C[i, j] += A[i, place] * B[k, j]"),
    (endless, "without a range", "while True:"),
    (pairs, "more than one variable", "for x, y in iterated(B)"),
]


@pytest.mark.parametrize(("function", "reason", "source"), REFUSED, ids=[row[0].__name__ for row in REFUSED])
def test_what_stays(function: Callable[..., Any], reason: str, source: str) -> None:
    dtype = "i8" if function is numbers_looked_up else "f8"
    report = same(function, made(dtype), made(dtype))
    assert not report.replaced, str(report)
    assert reason in report.text
    assert source in report.text
