"""Functions of arrays at every number of axes that NumPy allows: values, strides, out, overlap."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from shares import share
from support import Array
from tiers import each_value

import tilewright as tw
from tilewright.calls.operands import broadcast_shapes
from tilewright.errors import BatchMismatch, ContractionAxes
from tilewright.spec.arguments import MOST_AXES

RANKS = (1, 5, 6, 7, 8, 16, 31, 32, 33, 48, 64)

#: Labels that einsum takes: as many as NumPy's, letters.
MOST_LABELS = 52


def shape_of(rank: int, *tail: int) -> tuple[int, ...]:
    """A shape of so many axes: mostly 1, longer at its ends and in the middle, before some last axes.

    >>> shape_of(5, 7)
    (2, 1, 3, 2, 7)
    """
    count = rank - len(tail)
    lead = [1] * count
    for axis, length in ((0, 2), (count // 2, 3), (count - 1, 2)):
        if 0 <= axis < count:
            lead[axis] = length
    return (*lead, *tail)


def filled(rank: int, *tail: int, seed: int = 0) -> Array:
    return np.random.default_rng([rank, seed]).standard_normal(shape_of(rank, *tail))


def strided(rank: int, *tail: int, seed: int = 0) -> Array:
    """The same with its axes reversed in memory, every second element along the last one."""
    x = filled(rank, *tail, seed=seed)
    memory = np.zeros((2 * x.shape[-1], *x.shape[-2::-1]))
    view = memory.transpose(*range(rank - 1, -1, -1))[..., ::2]
    view[...] = x
    return view


FILLS: dict[str, Callable[..., Array]] = {"contiguous": filled, "strided": strided}
every_fill = pytest.mark.parametrize("fill", FILLS)


def assert_same(found: Any, expected: Array, rank: int) -> None:
    assert np.shape(found) == expected.shape, rank
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12, err_msg=str(rank))


def softmax(x: Array, axis: Any) -> Array:
    weights = np.exp(x - x.max(axis=axis, keepdims=True))
    return np.asarray(weights / weights.sum(axis=axis, keepdims=True))


def layer_norm(x: Array, axis: Any) -> Array:
    around = x - x.mean(axis=axis, keepdims=True)
    return np.asarray(around / np.sqrt(np.square(around).mean(axis=axis, keepdims=True) + 1e-5))


def rms_norm(x: Array, axis: Any) -> Array:
    return np.asarray(x / np.sqrt(np.square(x).mean(axis=axis, keepdims=True) + np.finfo(x.dtype).eps))


#: Functions along axes, and what they mean.
ALONG: dict[str, Callable[[Array, Any], Array]] = {
    "softmax": softmax,
    "log_softmax": lambda x, axis: np.log(softmax(x, axis)),
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "sum": lambda x, axis: np.asarray(x.sum(axis=axis)),
    "mean": lambda x, axis: np.asarray(x.mean(axis=axis)),
    "max": lambda x, axis: np.asarray(x.max(axis=axis)),
    "min": lambda x, axis: np.asarray(x.min(axis=axis)),
}


def erf(x: Array) -> Array:
    return np.asarray(np.vectorize(math.erf)(x.ravel())).reshape(x.shape)


EACH: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "exp": np.exp,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "erf": erf,
    "gelu": lambda x: x * (1 + erf(x / math.sqrt(2))) / 2,
}


@every_fill
@pytest.mark.parametrize("name", ALONG)
@each_value
def test_along_axes(name: str, fill: str) -> None:
    """In `make test` a function meets each number of axes with one of the two ways to be filled."""
    function = getattr(tw, name)
    for rank in share(RANKS, len(FILLS), list(FILLS).index(fill) + list(ALONG).index(name)):
        x = FILLS[fill](rank)
        for axis in (-1, 0, tuple(range(0, rank, 2)), tuple(range(rank))):
            expected = ALONG[name](x, axis)
            for _ in range(2):  # the second time in machine code
                assert_same(function(x, axis=axis), expected, rank)
            out = np.full(expected.shape[::-1], np.nan).T
            assert function(x, axis=axis, out=out) is out
            assert_same(out, expected, rank)
            if expected.shape == x.shape:
                same, other = x.copy(), np.concatenate([x, x])
                assert_same(function(same, axis=axis, out=same), expected, rank)
                assert_same(function(other[: len(x)], axis=axis, out=other[1 : 1 + len(x)]), expected, rank)


@every_fill
@pytest.mark.parametrize("name", EACH)
def test_each_element(name: str, fill: str) -> None:
    function = getattr(tw, name)
    for rank in share(RANKS, len(FILLS), list(FILLS).index(fill) + list(EACH).index(name)):
        x = FILLS[fill](rank)
        expected = np.asarray(EACH[name](x))
        for _ in range(2):
            assert_same(function(x), expected, rank)
        out = np.full(expected.shape[::-1], np.nan).T
        assert function(x, out=out) is out
        assert_same(out, expected, rank)
        other = np.concatenate([x, x])
        assert_same(function(other[: len(x)], out=other[1 : 1 + len(x)]), expected, rank)


def test_norms_with_weights() -> None:
    for rank in RANKS:
        x, weight, bias = filled(rank), filled(rank, seed=1), filled(rank, seed=2)
        found = tw.layer_norm(x, weight, bias, axis=tuple(range(rank)))
        assert_same(found, layer_norm(x, None) * weight + bias, rank)


@every_fill
def test_products_of_matrices(fill: str) -> None:
    make = FILLS[fill]
    for rank in RANKS[1:]:
        a, b, bias = make(rank, 3, 4), make(rank, 4, 5, seed=1), np.arange(5.0)
        expected = a @ b
        for _ in range(2):
            assert_same(tw.matmul(a, b), expected, rank)
        assert_same(tw.matmul(a, b[(0,) * (rank - 2)]), a @ b[(0,) * (rank - 2)], rank)
        assert_same(tw.matmul(a[(0,) * (rank - 2)], b), a[(0,) * (rank - 2)] @ b, rank)
        assert_same(tw.matmul(a, bias[:4]), a @ bias[:4], rank)
        assert_same(tw.matmul(a, b, bias=bias, activation="relu"), np.maximum(expected + bias, 0), rank)
        assert_same(tw.matmul(a + 1j * a, b), expected + 1j * expected, rank)
        np.testing.assert_array_equal(tw.matmul(a > 0, b > 0), (a > 0) @ (b > 0))
        out = np.ones(expected.shape[::-1]).T
        assert tw.matmul(a, b, out, alpha=2, beta=3) is out
        assert_same(out, 2 * expected + 3, rank)
        square = make(rank, 4, 4, seed=2)
        twice = square @ square
        assert_same(tw.matmul(square, square, square), twice, rank)
        weight = filled(2, 5, 4)
        assert_same(tw.linear(a, weight, bias), a @ weight.T + bias, rank)
        assert_same(tw.matmul(a, tw.pack(np.ascontiguousarray(weight.T))), a @ weight.T, rank)
        assert_same(tw.matmul(tw.pack(a[(0,) * (rank - 2)], role="a"), b), a[(0,) * (rank - 2)] @ b, rank)


def test_quantised_weights() -> None:
    weight = tw.quantize_weights(np.eye(32, 8, dtype=np.float32))
    for rank in RANKS:
        x = filled(rank, 32).astype(np.float32)
        np.testing.assert_allclose(tw.matmul(x, weight), x @ np.asarray(weight), atol=1e-5)


@every_fill
def test_products_of_triangles(fill: str) -> None:
    make = FILLS[fill]
    for rank in RANKS[1:]:
        a, b, square = make(rank, 4, 3), make(rank, 4, 3, seed=1), make(rank, 4, 4)
        triangle = np.tril(np.ones((4, 4)))
        turned = np.swapaxes(a, -1, -2)
        other = np.swapaxes(b, -1, -2)
        assert_same(tw.syrk(a), a @ turned * triangle, rank)
        assert_same(tw.syr2k(a, b), (a @ other + b @ turned) * triangle, rank)
        out = np.ones((*a.shape[:-1], 4))
        tw.syrk(a, out=out, beta=2)
        assert_same(out * triangle, (a @ turned + 2) * triangle, rank)
        assert_same(tw.trmm(square, b), (square * triangle) @ b, rank)
        first = square[(0,) * (rank - 2)]
        expected = (first * triangle) @ b
        assert_same(tw.trmm(first, b, out=b), expected, rank)


@every_fill
def test_products_of_vectors(fill: str) -> None:
    make = FILLS[fill]
    for rank in RANKS:
        x, y, short = make(rank, 4), make(rank, 4, seed=1), np.arange(4.0)
        for a, b in ((x, y), (x, short), (short, y), (x + 1j * y, y)):
            assert_same(tw.vecdot(a, b), np.vecdot(a, b), rank)
        assert_same(tw.vecdot(x, y, axis=0), np.vecdot(np.moveaxis(x, 0, -1), np.moveaxis(y, 0, -1)), rank)
        matrix = filled(2, 3, 4)
        assert_same(tw.matvec(matrix, x), np.matvec(matrix, x), rank)
        assert_same(tw.vecmat(x, matrix.T), np.vecmat(x, matrix.T), rank)
        if rank > 1:
            matrices = make(rank, 3, 4)
            assert_same(tw.matvec(matrices, short), np.matvec(matrices, short), rank)
            assert_same(tw.vecmat(short[:3], matrices), np.vecmat(short[:3], matrices), rank)
            for out in (np.zeros(x.shape[:-1]), x[..., 0]):
                expected = np.vecdot(x, y)
                assert tw.vecdot(x, y, out) is out
                assert_same(out, expected, rank)
            assert_same(tw.matvec(matrix, x, np.zeros((*x.shape[:-1], 3))), np.matvec(matrix, x), rank)
            out = np.zeros((*x.shape[:-1], 3))
            assert_same(tw.vecmat(x, matrix.T, out), np.vecmat(x, matrix.T), rank)


@every_fill
def test_products_over_axes(fill: str) -> None:
    make = FILLS[fill]
    for rank in RANKS:
        x, y = make(rank), make(rank, seed=1)
        flat = [np.ascontiguousarray(one).reshape(-1) for one in (x, y)]
        every = tuple(range(rank))
        assert_same(tw.tensordot(x, y, axes=(every, every)), np.asarray(flat[0] @ flat[1]), rank)
        matrix = filled(2, 2, 5, seed=3)
        assert_same(tw.tensordot(x, matrix, axes=1), x @ matrix, rank)
        assert_same(tw.inner(x, matrix.T[0]), x @ matrix.T[0], rank)
        whole, part = np.ascontiguousarray(x).squeeze(), filled(1)
        kron = np.multiply.outer(whole, part)
        expected = kron.reshape(*whole.shape[:-1], -1).reshape(*x.shape[:-1], -1)
        assert_same(tw.kron(x, part), expected, rank)
        both = tw.kron(x, y)
        assert both.shape == tuple(length**2 for length in x.shape)
        assert_same(both.squeeze(), np.kron(whole, np.ascontiguousarray(y).squeeze()), rank)
        assert_same(tw.transpose(x), x.T, rank)
        order = (*range(1, rank), 0)
        assert_same(tw.transpose(x, order), x.transpose(order), rank)


@every_fill
def test_einsum(fill: str) -> None:
    make = FILLS[fill]
    for rank in RANKS:
        x, y = make(rank), make(rank, seed=1)
        assert_same(tw.einsum("...a->...", x), np.asarray(x.sum(axis=-1)), rank)
        assert_same(tw.einsum("...a,...a->...", x, y), np.asarray((x * y).sum(axis=-1)), rank)
        assert_same(tw.einsum("...,...,...->...", x, y, x), x * y * x, rank)
        out = np.zeros(x.shape[::-1]).T
        assert tw.einsum("...,...->...", x, y, out=out) is out
        assert_same(out, x * y, rank)
        if rank > 1:
            a, b = make(rank, 3, 4), make(rank, 4, 5)
            assert_same(tw.einsum("...ab,...bc->...ac", a, b), a @ b, rank)
        if rank < MOST_LABELS:
            labels = [*range(rank)]
            assert_same(tw.einsum(x, labels, labels[::-1]), x.T, rank)
            assert_same(tw.einsum(x, labels, y, labels, [0]), (x * y).reshape(len(x), -1).sum(axis=1), rank)


def test_attention() -> None:
    for rank in RANKS[1:]:
        q, k, v = (filled(rank, 2, 3, 4, seed=seed) for seed in range(3))
        scores = q @ np.swapaxes(k, -1, -2) / 2
        mask = np.tri(3, dtype=bool).reshape((1,) * (rank - 2) + (3, 3))
        expected = softmax(np.where(mask, scores, -np.inf), -1) @ v
        assert_same(tw.attention(q, k, v, mask=mask), expected, rank)
        out, lse = tw.attention(q, k, v, return_lse=True)
        assert_same(lse, np.log(np.exp(scores).sum(axis=-1)), rank)
        narrow = [one.astype(np.float32) for one in (out, q, k, v, out, lse)]
        found = tw.attention_backward(*narrow)[0]
        np.testing.assert_allclose(found, _gradient(out, q, k, v), rtol=1e-4, atol=1e-5)


def _gradient(grad: Array, q: Array, k: Array, v: Array) -> Array:
    """With respect to q."""
    weights = softmax(q @ np.swapaxes(k, -1, -2) / 2, -1)
    products = grad @ np.swapaxes(v, -1, -2)
    scores = weights * (products - (weights * products).sum(axis=-1, keepdims=True))
    return np.asarray(scores @ k / 2)


def test_too_many_axes_in_a_result() -> None:
    """What would need more axes than an array has is refused before anything is computed."""
    x = filled(40)
    for call in (lambda: tw.tensordot(x, x, axes=0), lambda: tw.inner(x, x)):
        with pytest.raises(ContractionAxes, match=f"at most {MOST_AXES}"):
            call()  # type: ignore[no-untyped-call]


def test_shapes_that_do_not_broadcast() -> None:
    first, second = np.ones((1,) * 40 + (2, 3, 3)), np.ones((1,) * 40 + (4, 3, 3))
    with pytest.raises(BatchMismatch):
        tw.matmul(first, second)


def test_broadcast_shapes() -> None:
    """As NumPy's where that computes, and without its limit."""
    shapes = [(), (1,), (3,), (0,), (2, 1), (1, 3), (2, 3), (5, 1, 3), (4, 1, 1), (0, 1), (1, 1, 1)]
    for first in shapes:
        for second in shapes:
            for third in shapes:
                try:
                    expected = np.broadcast_shapes(first, second, third)
                except ValueError:
                    expected = None
                assert broadcast_shapes(first, second, third) == expected, (first, second, third)
    assert broadcast_shapes((1,) * 64, (2,)) == (1,) * 63 + (2,)


@pytest.mark.parametrize("rank", [2, 7, 33, 64])
def test_zero_points(rank: int) -> None:
    """One for all, and one for each row and column, beside batches of as many axes as the operands."""
    random = np.random.default_rng(rank)
    a = random.integers(0, 255, shape_of(rank, 3, 4)).astype(np.uint8)
    b = random.integers(-128, 127, shape_of(rank, 4, 5)).astype(np.int8)
    for zero_a, zero_b in ((3, -2), (a[..., :1], b[..., :1, :])):
        expected = (a.astype(np.int64) - zero_a) @ (b.astype(np.int64) - zero_b)
        found = tw.matmul_integer(a, b, zero_a, zero_b)
        assert found.shape == expected.shape
        assert (found == expected).all()
