"""Nests of several statements, triangles, factorisations and work behind sums run as array operations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from python_programs import Array
from tiers import each_value

import tilewright as tw
from tilewright.loops.python import vector_call, vector_code


def product_and_transpose(A: Array, x: Array, y: Array, t: Array) -> None:
    for i in range(A.shape[0]):
        t[i] = 0
        for j in range(A.shape[1]):
            t[i] += A[i, j] * x[j]
        for j in range(A.shape[1]):
            y[j] += A[i, j] * t[i]


def triangular_in_place(A: Array, B: Array) -> None:
    n = B.shape[0]
    for i in range(n):
        for j in range(B.shape[1]):
            for k in range(i + 1, n):
                B[i, j] += A[k, i] * B[k, j]
            B[i, j] = 1.5 * B[i, j]


def one_triangle(A: Array, B: Array, C: Array) -> None:
    n = C.shape[0]
    for i in range(n):
        for j in range(i + 1):
            for k in range(n):
                C[i, j] += A[i, k] * B[k, j]


def triangular_factor(A: Array, B: Array, C: Array) -> None:
    n = C.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0
            for k in range(i + 1):
                s += A[i, k] * B[k, j]
            C[i, j] = s


def bias_and_maximum(A: Array, B: Array, C: Array, b: Array) -> None:
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            s = b[j]
            for k in range(A.shape[1]):
                s += A[i, k] * B[k, j]
            C[i, j] = max(s, 0)


def bias_and_condition(A: Array, B: Array, C: Array, b: Array) -> None:
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            s = 0.0
            for k in range(A.shape[1]):
                s += A[i, k] * B[k, j]
            s += b[j]
            s = max(s, 0)
            C[i, j] = s


def lu_by_columns(A: Array) -> None:
    n = A.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            A[i, k] /= A[k, k]
        for i in range(k + 1, n):
            for j in range(k + 1, n):
                A[i, j] -= A[i, k] * A[k, j]


def lu_by_rows(A: Array) -> None:
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[k, j]
            A[i, j] /= A[j, j]
        for j in range(i, n):
            for k in range(i):
                A[i, j] -= A[i, k] * A[k, j]


def cholesky(A: Array) -> None:
    n = A.shape[0]
    for i in range(n):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[j, k]
            A[i, j] /= A[j, j]
        for k in range(i):
            A[i, i] -= A[i, k] * A[i, k]
        A[i, i] = math.sqrt(A[i, i])


def symmetric_factor(A: Array, B: Array, C: Array) -> None:
    n = A.shape[0]
    for i in range(n):
        for j in range(B.shape[1]):
            t = 0.0
            for k in range(i):
                C[k, j] += 2.0 * B[i, j] * A[i, k]
                t += B[k, j] * A[i, k]
            C[i, j] = 0.5 * C[i, j] + 2.0 * B[i, j] * A[i, i] + 2.0 * t


def covariance(X: Array, mean: Array, cov: Array) -> None:
    n, m = X.shape
    for j in range(m):
        mean[j] = 0.0
        for i in range(n):
            mean[j] += X[i, j]
        mean[j] /= n
    for i in range(n):
        for j in range(m):
            X[i, j] -= mean[j]
    for i in range(m):
        for j in range(i, m):
            cov[i, j] = 0.0
            for k in range(n):
                cov[i, j] += X[k, i] * X[k, j]
            cov[i, j] /= n - 1.0
            cov[j, i] = cov[i, j]


def two_vectors(A: Array, B: Array, x: Array, y: Array, t: Array) -> None:
    for i in range(A.shape[0]):
        t[i] = 0.0
        y[i] = 0.0
        for j in range(A.shape[1]):
            t[i] += A[i, j] * x[j]
            y[i] += B[i, j] * x[j]
        y[i] = 1.5 * t[i] + 0.5 * y[i]


def convolution(A: Array, W: Array, C: Array) -> None:
    for o in range(C.shape[0]):
        for y in range(C.shape[1]):
            for x in range(C.shape[2]):
                s = 0
                for c in range(A.shape[0]):
                    for dy in range(3):
                        for dx in range(3):
                            s += A[c, y + dy, x + dx] * W[o, c, dy, dx]
                C[o, y, x] = s


def two_products(A: Array, B: Array, C: Array, D: Array) -> None:
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            for k in range(A.shape[1]):
                C[i, j] += A[i, k] * B[k, j]
                D[i, j] -= B[i, k] * A[j, k]


def gram_schmidt(A: Array, R: Array, Q: Array) -> None:
    m, n = A.shape
    for k in range(n):
        nrm = 0.0
        for i in range(m):
            nrm += A[i, k] * A[i, k]
        R[k, k] = math.sqrt(nrm)
        for i in range(m):
            Q[i, k] = A[i, k] / R[k, k]
        for j in range(k + 1, n):
            R[k, j] = 0.0
            for i in range(m):
                R[k, j] += Q[i, k] * A[i, j]
            for i in range(m):
                A[i, j] = A[i, j] - Q[i, k] * R[k, j]


N = 23


def matrix(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype("f8")


def definite() -> Array:
    a = matrix(N, N)
    return a @ a.T + N * np.eye(N)


#: Functions and their arrays.
PROGRAMS: list[tuple[Callable[..., Any], list[Array]]] = [
    (product_and_transpose, [matrix(N, N), matrix(N), matrix(N), matrix(N)]),
    (triangular_in_place, [matrix(N, N), matrix(N, N - 3)]),
    (one_triangle, [matrix(N, N), matrix(N, N) + 1, matrix(N, N)]),
    (triangular_factor, [matrix(N, N), matrix(N, N) + 1, matrix(N, N)]),
    (bias_and_maximum, [matrix(N, N), matrix(N, N) + 1, matrix(N, N), matrix(N)]),
    (bias_and_condition, [matrix(N, N), matrix(N, N) + 1, matrix(N, N), matrix(N)]),
    (lu_by_columns, [definite()]),
    (lu_by_rows, [definite()]),
    (cholesky, [definite()]),
    (symmetric_factor, [matrix(N, N), matrix(N, N) + 1, matrix(N, N)]),
    (covariance, [matrix(N, N), matrix(N), matrix(N, N)]),
    (two_vectors, [matrix(N, N), matrix(N, N) + 1, matrix(N), matrix(N), matrix(N)]),
    (convolution, [matrix(3, 7, 8), matrix(4, 3, 3, 3), matrix(4, 5, 6)]),
    (two_products, [matrix(N, N), matrix(N, N) + 1, matrix(N, N), matrix(N, N) + 2]),
    (gram_schmidt, [definite(), matrix(N, N), matrix(N, N)]),
]


@pytest.mark.parametrize("strip", [5, 64])
@pytest.mark.parametrize(("function", "arrays"), PROGRAMS, ids=[row[0].__name__ for row in PROGRAMS])
@each_value
def test_programs(
    function: Callable[..., Any], arrays: list[Array], strip: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_code, "STRIP", strip)
    monkeypatch.setattr(vector_call, "FEWEST_ITERATIONS", 1)
    fast = tw.accelerate(function)
    ours, theirs = [one.copy() for one in arrays], [one.copy() for one in arrays]
    fast(*ours)
    function(*theirs)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    last = [nest for nest in tw.accelerate.report(fast) if nest.replaced][-1]
    assert last.call is not None
    assert last.as_written == ""
    assert last.call.runs == 1


@pytest.mark.parametrize("kind", ["negative", "shared", "small", "mixed"])
def test_what_runs_as_written(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_call, "FEWEST_ITERATIONS", 1)
    function = cholesky if kind == "negative" else triangular_factor
    fast = tw.accelerate(function)

    def made() -> list[Array]:
        a, b, c = matrix(N, N), matrix(N, N) + 1, matrix(N, N) + 2
        match kind:
            case "negative":
                return [definite() - 2 * N * np.eye(N)]
            case "shared":
                return [a, b, b[:, ::-1]]
            case "small":
                return [a, b[:-1], c]
            case _:
                return [a, b.astype("f4"), c]

    def outcome(call: Callable[..., Any], arrays: list[Array]) -> str:
        try:
            return repr(call(*arrays))
        except (IndexError, ValueError) as error:
            return repr(error)

    ours, theirs = made(), made()
    assert outcome(fast, ours) == outcome(function, theirs)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)
    (report,) = tw.accelerate.report(fast)
    reasons = {
        "negative": "square root of a negative number",
        "shared": "shares memory",
        "small": "subscripts of B reach",
        "mixed": "several dtypes",
    }
    assert reasons[kind] in report.as_written


def test_errors_of_arithmetic_that_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_call, "FEWEST_ITERATIONS", 1)
    fast = tw.accelerate(lu_by_columns)
    with np.errstate(divide="raise", invalid="raise"), pytest.raises(FloatingPointError):
        fast(np.zeros((N, N)))
    assert "to raise errors" in tw.accelerate.report(fast)[0].as_written


def flat_triangle(A: Array, B: Array, C: Array, m: int, n: int, depth: int) -> None:
    for i in range(m):
        for j in range(i + 1):
            for k in range(depth):
                C[n * i + j] += A[depth * i + k] * B[j + n * k]


@pytest.mark.parametrize(("n", "replaced"), [(0, False), (1, False), (39, False), (40, True), (50, True)])
def test_rows_of_a_flat_triangle_are_apart(n: int, replaced: bool) -> None:
    """With a distance of rows that is too small, the same elements are written again and again."""
    rng = np.random.default_rng(0)
    m, depth = 40, 30
    a, b = (rng.integers(-3, 4, 3000) for _ in range(2))
    ours, theirs = (np.zeros(3000, a.dtype) for _ in range(2))
    fast = tw.accelerate(flat_triangle)
    fast(a, b, ours, m, n, depth)
    flat_triangle(a, b, theirs, m, n, depth)
    np.testing.assert_array_equal(ours, theirs)
    (report,) = tw.accelerate.report(fast)
    assert report.call is not None
    assert report.call.runs == replaced
    assert replaced or "write the same elements" in report.as_written


def negative_products(a: Array, C: Array) -> None:
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            C[i, j] = -a[i] * a[j]


def test_negative_products_do_not_read_what_they_replace() -> None:
    a, ours = np.arange(40.0), np.full((40, 40), np.nan)
    fast = tw.accelerate(negative_products)
    fast(a, ours)
    np.testing.assert_array_equal(ours, -np.outer(a, a))
    (report,) = tw.accelerate.report(fast)
    assert report.call is not None
    assert report.call.runs == 1
