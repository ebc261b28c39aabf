"""How weights are rounded: half-quadratic fits and error feedback, compared with plain forms of both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.errors import InvalidChoice, InvalidOperand, UnsupportedArgument
from tilewright.ops.quantized.affine import to_nearest
from tilewright.ops.quantized.gptq import _inverse_factor, error_feedback, second_moments, shrunk_moments
from tilewright.ops.quantized.hqq import _shrunk, fitted
from tilewright.ops.quantized.quantise import quantised
from tilewright.spec.weights import Weights

Array = np.ndarray[Any, Any]
FORMS = ("i4g64", "i4g64z", "i4", "i4z", "i8g32z", "i4g128", "i8")


def drawn(depth: int, n: int, *, heavy: bool = False) -> Array:
    rng = np.random.default_rng(depth)
    found = rng.standard_t(3, (depth, n)) if heavy else rng.standard_normal((depth, n))
    return (found + 0.3 * rng.standard_normal(n)).astype(np.float32)


def correlated(samples: int, depth: int, seed: int = 3) -> Array:
    mix = np.random.default_rng(1).standard_normal((depth // 8, depth))
    rng = np.random.default_rng(seed)
    low = rng.standard_normal((samples, depth // 8)) @ mix
    return (low + rng.standard_normal((samples, depth))).astype(np.float32)


def quantize(w: Array, form: str, **named: Any) -> Array:
    """The floats that a quantised weight stands for."""
    weights = Weights.parse(form)
    return tw.unpack(
        tw.quantize_weights(
            w, bits=weights.elements.bits, group=weights.group or None, symmetric=not weights.zeros, **named
        )
    )


def squares(error: Array, group: int) -> Array:
    """Sums of squares by group and column."""
    starts = np.arange(0, len(error), group or len(error))
    found: Array = np.add.reduceat(np.square(error, dtype=np.float64), starts)
    return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("heavy", [False, True])
def test_no_group_is_worse_than_to_nearest(form: str, heavy: bool) -> None:
    w, group = drawn(300, 70, heavy=heavy), Weights.parse(form).group
    nearest, fit = (squares(quantize(w, form, rounding=r) - w, group) for r in ("nearest", "hqq"))
    assert (fit <= nearest * (1 + 1e-4)).all()
    bits = Weights.parse(form).elements.bits
    assert fit.sum() < (0.96 if bits == 4 else 1.0) * nearest.sum()


def test_the_fit_knows_outliers() -> None:
    """One large element of 64 may lose its own precision for that of the others, which nearest never does."""
    w = drawn(64, 200)
    w[0] = 12
    nearest, fit = (quantize(w, "i4g64", rounding=r) - w for r in ("nearest", "hqq"))
    assert np.abs(fit[0]).max() > np.abs(nearest[0]).max() + 0.5
    assert np.square(fit).sum() < 0.95 * np.square(nearest).sum()


def test_the_proximal_operator() -> None:
    error = np.array([-2, -0.5, -0.01, 0, 1e-30, 0.3, 1], np.float32)
    size = np.abs(error.astype(np.float64))
    with np.errstate(divide="ignore"):
        expected = np.sign(error) * np.maximum(size - size ** (0.5 - 1) / 3, 0)
    np.testing.assert_allclose(_shrunk(error, 3.0), expected, rtol=1e-6, atol=1e-7)
    assert _shrunk(error, 3.0)[2:5].tolist() == [0, 0, 0]


def plain_gptq(w: Array, x: Array, form: Weights) -> Array:
    """The algorithm as the paper writes it: column by column, with the Cholesky factor of the inverse."""
    hessian = x.T.astype(np.float64) @ x
    hessian += 0.01 * hessian.diagonal().mean() * np.eye(len(w))
    factor = np.linalg.cholesky(np.linalg.inv(hessian)).T
    w, found, group = w.astype(np.float64), np.empty(w.shape), form.group or len(w)
    for i in range(len(w)):
        if i % group == 0:
            scale, zero = (a[0] for a in fitted(w[np.newaxis, i : i + group].astype(np.float32), form))
        u = to_nearest(w[i], scale, zero, form)
        found[i] = scale * (u - zero)
        w[i:] -= np.outer(factor[i, i:], (w[i] - found[i]) / factor[i, i])
    return found


@pytest.mark.parametrize("form", FORMS)
def test_error_feedback_is_the_algorithm_of_the_paper(form: str) -> None:
    """But for roundings that float32 and float64 decide differently, and what follows from them."""
    w, x = drawn(300, 40), correlated(600, 300)
    found, expected = quantize(w, form, rounding="gptq", inputs=x), plain_gptq(w, x, Weights.parse(form))
    same = np.isclose(found, expected, rtol=1e-4, atol=1e-5)
    assert same.mean() > 0.98
    assert same[: 64 if Weights.parse(form).group == 64 else 1].all()


@pytest.mark.parametrize("form", FORMS)
def test_error_feedback_makes_up_for_errors(form: str) -> None:
    w, x, other = drawn(256, 60), correlated(1024, 256), correlated(200, 256, seed=4)
    errors = {
        rounding: np.linalg.norm(other @ (quantize(w, form, rounding=rounding, **given) - w))
        for rounding, given in (("nearest", {}), ("hqq", {}), ("gptq", {"inputs": x.reshape(4, 256, 256)}))
    }
    assert errors["gptq"] < 0.75 * errors["hqq"] <= 0.75 * errors["nearest"]


@pytest.mark.parametrize("depth", [40, 130])
def test_the_factor_of_the_inverse(depth: int) -> None:
    x = correlated(100, depth)
    factor = _inverse_factor(second_moments(x)).astype(np.float64)
    hessian = x.T.astype(np.float64) @ x
    hessian += 0.01 * hessian.diagonal().mean() * np.eye(depth)
    assert np.array_equal(factor, np.triu(factor))
    np.testing.assert_allclose(factor.T @ factor @ hessian, np.eye(depth), atol=1e-4)


def test_moments_of_few_samples() -> None:
    moments = second_moments(correlated(100, 40))
    few, many = shrunk_moments(moments, 4), shrunk_moments(moments, 12 * 99)
    off = ~np.eye(40, dtype=bool)
    for found, share in ((few, 0.25), (many, 0.99)):
        np.testing.assert_allclose(found[off], share * moments[off])
        assert np.array_equal(found.diagonal(), moments.diagonal())


def test_inputs_that_are_zero_leave_rounding_to_nearest() -> None:
    form = Weights.parse("i4g32z")
    w, x = drawn(96, 20), np.zeros((5, 96), np.float32)
    u, scales, zeros = error_feedback(w, form, second_moments(x))
    for number in range(3):
        rows = slice(32 * number, 32 * number + 32)
        assert np.array_equal(u[rows], to_nearest(w[rows], scales[number], zeros[number], form))


@pytest.mark.parametrize("rounding", ["hqq", "gptq"])
@pytest.mark.parametrize("form", ["i4g32", "i4g32z", "i8z"])
@pytest.mark.parametrize("value", [0.0, 3.0, -3e38, 3e38, 1e-42, 1e-30])
def test_columns_of_one_value(rounding: str, form: str, value: float) -> None:
    w = np.full((70, 3), value, np.float32)
    named = {"inputs": correlated(10, 70)} if rounding == "gptq" else {}
    found = quantize(w, form, rounding=rounding, **named)
    np.testing.assert_allclose(found, w, rtol=0.1, atol=1e-42)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (1, 1), (33, 1)])
@pytest.mark.parametrize("rounding", ["hqq", "gptq"])
def test_small_weights(shape: tuple[int, int], rounding: str) -> None:
    w = np.ones(shape, np.float32)
    named = {"inputs": np.ones((2, shape[0]))} if rounding == "gptq" else {}
    assert np.allclose(quantize(w, "i8g32", rounding=rounding, **named), w, rtol=0.01)


def test_to_nearest_is_what_it_was() -> None:
    """The formulas of the documentation, for each group by itself."""
    w = drawn(100, 7)
    for form in ("i4g64z", "i8g32"):
        weights = Weights.parse(form)
        u, scales, zeros = quantised(w, weights)
        most = 15 if form == "i4g64z" else 255
        for number in range(weights.groups(100)):
            rows = slice(number * weights.group, (number + 1) * weights.group)
            low, high = np.minimum(w[rows].min(0), 0), np.maximum(w[rows].max(0), 0)
            scale = (high - low) / most if weights.zeros else np.abs(w[rows]).max(0) / 127
            np.testing.assert_allclose(scales[number], scale, rtol=1e-6)
            zero = np.rint(-low / scales[number]) if weights.zeros else 128
            assert np.array_equal(zeros[number], np.broadcast_to(zero, 7))
            found = np.clip(np.rint(w[rows] / scales[number]) + zero, 0, most)
            assert np.array_equal(u[rows], found)


W = np.ones((64, 8), np.float32)


@pytest.mark.parametrize(
    ("named", "error", "words"),
    [
        ({"rounding": "awq"}, InvalidChoice, "nearest, hqq, gptq"),
        ({"rounding": "gptq"}, InvalidOperand, "needs what the weight is multiplied with"),
        ({"inputs": W.T}, UnsupportedArgument, "pass rounding='gptq'"),
        ({"rounding": "gptq", "inputs": W}, InvalidOperand, r"must be \(\.\.\., 64\)"),
        ({"rounding": "gptq", "inputs": 1.0}, InvalidOperand, "its shape is"),
        ({"rounding": "gptq", "inputs": W.T * np.inf}, InvalidOperand, "NaN or infinities"),
        ({"rounding": "gptq", "inputs": W.T.astype("M8[s]")}, InvalidOperand, "dtype"),
    ],
)
def test_wrong_arguments(named: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        tw.quantize_weights(W, bits=4, group=32, **named)
