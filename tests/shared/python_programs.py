"""Functions with loops over NumPy arrays, as people write them: what `tilewright.accelerate` reads."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def plain(A: Array, B: Array, C: Array) -> None:
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            for k in range(A.shape[1]):
                C[i, j] += A[i, k] * B[k, j]


def depth_first(A: Array, B: Array, C: Array) -> None:
    for k in range(len(B)):
        for i in range(len(A)):
            for j in range(len(B[0])):
                C[i][j] -= A[i][k] * B[k][j]


def scalar_sum(A: Array, B: Array) -> Array:
    C = np.zeros((A.shape[0], B.shape[1]), A.dtype)
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            s = 0
            for k in range(A.shape[1]):
                s += A[i, k] * B[k, j]
            C[i, j] = s
    return C


def generator(A: Array, B: Array) -> Array:
    n, m, depth = A.shape[0], B.shape[1], B.shape[0]
    C = np.empty((n, m), A.dtype)
    for i in range(n):
        for j in range(m):
            C[i, j] = sum(A[i, k] * B[k, j] for k in range(depth))
    return C


def scaled(A: Array, B: Array, C: Array, alpha: float = 0.5, *, beta: float = 2.0) -> None:
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            C[i, j] *= beta
        for k in range(A.shape[1]):
            t = alpha * A[i, k]
            for j in range(B.shape[1]):
                C[i, j] += t * B[k, j]


def transposed(A: Array, B: Array, C: Array) -> None:
    for j in range(C.shape[0]):
        for i in range(C.shape[1]):
            for k in range(A.shape[1]):
                C[j, i] += A[i, k] * B[k, j]


def offsets(A: Array, B: Array, C: Array, n: int = 6) -> None:
    for i in range(1, 2 * n, 2):
        for j in range(n - 1, -1, -1):
            for k in range(0, 3 * n, 3):
                C[i, j + 2] += A[i - 1, k + 1] * B[k, 2 * j]


def blocked(A: Array, B: Array, C: Array) -> None:
    n = A.shape[0]
    for ii in range(0, n, 4):
        for kk in range(0, n, 8):
            for i in range(ii, min(ii + 4, n)):
                for j in range(n):
                    for k in range(kk, min(kk + 8, n)):
                        C[i, j] += A[i, k] * B[k, j]


def batched(A: Array, B: Array, C: Array) -> None:
    for b in range(A.shape[0]):
        for i in range(A.shape[1]):
            for j in range(B.shape[2]):
                C[b, i, j] = 0.0
                for k in range(A.shape[2]):
                    C[b, i, j] += A[b, i, k] * B[b, k, j]


def matrix_vector(A: Array, x: Array, y: Array) -> None:
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            y[i] += A[i, k] * x[k]


def vector_matrix(A: Array, x: Array, y: Array) -> None:
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            y[j] += x[i] * A[i, j]


def lower(A: Array, C: Array) -> None:
    for i in range(A.shape[0]):
        for j in range(i + 1):
            for k in range(A.shape[1]):
                C[i, j] += A[i, k] * A[j, k]


def upper(A: Array, B: Array, C: Array, alpha: float = 3.0) -> None:
    for i in range(A.shape[0]):
        for j in range(i, A.shape[0]):
            for k in range(A.shape[1]):
                C[i, j] += alpha * A[i, k] * B[j, k]
                C[i, j] += alpha * B[i, k] * A[j, k]


def contraction(A: Array, B: Array, C: Array) -> None:
    a, b, c, d = C.shape
    e, f = A.shape[0], A.shape[2]
    for i in range(a):
        for j in range(b):
            for k in range(c):
                for m in range(d):
                    for p in range(e):
                        for q in range(f):
                            C[i, j, k, m] += A[p, j, q, k] * B[m, q, i, p]


def elementwise(A: Array, B: Array, C: Array) -> None:
    for i in range(C.shape[0]):
        for j in range(C.shape[1]):
            C[i, j] += 2 * A[i, j] * B[j, i]


def diagonal(A: Array, B: Array, y: Array) -> None:
    for i in range(len(y)):
        for j in range(A.shape[1]):
            y[i] += A[i, j] * B[i, i]


def correlation(A: Array, x: Array, y: Array) -> None:
    for i in range(len(y)):
        for k in range(len(x)):
            for c in range(A.shape[1]):
                y[i] += A[i + k, c] * x[k, c]


def dot(A: Array, B: Array) -> float:
    total = 0
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            total += A[i, j] * B[j, i]
    return float(total)


def two_nests(A: Array, B: Array, C: Array) -> int:
    steps = 0
    for step in range(3):
        steps += step
        for i in range(A.shape[0]):
            for j in range(B.shape[1]):
                s = 0.0
                for k in range(A.shape[1]):
                    s += A[i, k] * B[k, j]
                C[i, j] = s
        for i in range(A.shape[0]):
            for k in range(A.shape[1]):
                s = 0.0
                for j in range(B.shape[1]):
                    s += C[i, j] * B[k, j]
                A[i, k] = s
    return steps


def last_values(A: Array, B: Array, C: Array) -> tuple[int, int, int]:
    for i in range(2, A.shape[0] + 2):
        for j in range(0, B.shape[1], 2):
            for k in range(A.shape[1] - 1, -1, -1):
                C[i - 2, j] += A[i - 2, k] * B[k, j]
    return i, j, k


class Layer:
    """Arrays as attributes; a property that is another array each time."""

    def __init__(self, size: int) -> None:
        self.weight = np.arange(size * size, dtype=float).reshape(size, size)
        self.out = np.zeros((size, size))
        self.size = size
        self.scale = 0.25

    @property
    def fresh(self) -> Array:
        return np.zeros_like(self.out)

    def forward(self, x: Array) -> Array:
        for i in range(self.size):
            for j in range(self.size):
                for k in range(self.size):
                    self.out[i, j] += self.scale * x[i, k] * self.weight[k, j]
        return self.out

    def lost(self, x: Array) -> None:
        for i in range(self.size):
            for j in range(self.size):
                for k in range(self.size):
                    self.fresh[i, j] += x[i, k] * self.weight[k, j]


def rows_of_dots(A: Array, B: Array, C: Array) -> None:
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            C[i, j] = np.dot(A[i, :], B[:, j])


def rows_of_products(A: Array, B: Array, C: Array) -> None:
    for i in range(len(C)):
        for j in range(B.shape[1]):
            C[i, j] += 2 * (A[i, :] @ B[:, j])


def rows(A: Array, B: Array, C: Array) -> None:
    for i in range(A.shape[0]):
        C[i, :] = 0
        for k in range(A.shape[1]):
            C[i, :] += A[i, k] * B[k, :]


def parts(A: Array, B: Array, C: Array, n: int = 6) -> None:
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            C[i, 1:n] -= A[i, k] * B[k, 2 : n + 1]


def outer_products(A: Array, B: Array, C: Array) -> None:
    for k in range(A.shape[0]):
        for i in range(A.shape[1]):
            C[i, :] += A[k, i] * B[k, :]
