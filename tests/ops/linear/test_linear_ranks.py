"""`linear` of x of any number of axes, with every form of weight: one product of all rows."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from repeated_calls import python_lines
from support import Array

import tilewright as tw

K, N = 64, 48
RNG = np.random.default_rng(8)
WEIGHT = RNG.standard_normal((N, K)).astype(np.float32)
BIAS = RNG.standard_normal(N).astype(np.float32)
X = RNG.standard_normal((24, K)).astype(np.float32)

#: Leading axes of x, 24 rows in all but the first.
LEADING = ((), (24,), (4, 6), (2, 3, 4), (1, 2, 3, 1, 2, 2, 1))
#: Forms of a weight.
FORMS = ("array", "packed", "bf16", "f8e4m3", "8 bits", "8 bits in groups", "4 bits, zeros", "rows")


@cache
def weight_of(form: str) -> Any:
    """The weight in one form."""
    match form:
        case "array":
            return WEIGHT
        case "packed":
            return tw.pack(WEIGHT.T)
        case "bf16" | "f8e4m3":
            return tw.pack(WEIGHT.T, form=form)
        case "8 bits" | "rows":
            return tw.quantize_weights(WEIGHT.T)
        case "8 bits in groups":
            return tw.quantize_weights(WEIGHT.T, group=32)
        case _:
            return tw.quantize_weights(WEIGHT.T, bits=4, group=32, symmetric=False)


def layer(x: Array, form: str, **named: Any) -> Any:
    return tw.linear(tw.quantize_rows(x) if form == "rows" else x, weight_of(form), BIAS, "relu", **named)


@pytest.mark.parametrize("form", FORMS)
def test_any_rank_is_the_product_of_its_rows(form: str) -> None:
    """In the same bits as the rows in a matrix, also of strided x and into strided `out`."""
    expected = layer(X, form)
    assert expected.shape == (24, N)
    np.testing.assert_allclose(
        expected, np.maximum(X @ WEIGHT.T + BIAS, 0), atol=4 if "4" in form or "f8" in form else 0.5
    )
    for leading in LEADING:
        x = X.reshape(*leading, K) if leading else X[0]
        wanted = expected.reshape(*leading, N) if leading else layer(X[:1], form)[0]
        assert layer(x, form).shape == (*leading, N)
        np.testing.assert_array_equal(layer(x, form), wanted)
        out = np.zeros((*leading, N), np.float32)
        assert layer(x, form, out=out) is out
        np.testing.assert_array_equal(out, wanted)
    turned = np.ascontiguousarray(X.reshape(2, 3, 4, K).transpose(2, 1, 0, 3)).transpose(2, 1, 0, 3)
    strided = np.zeros((4, 3, 2, 2 * N), np.float32).transpose(2, 1, 0, 3)[..., ::2]
    assert layer(turned, form, out=strided) is strided
    np.testing.assert_array_equal(strided, expected.reshape(2, 3, 4, N))
    np.testing.assert_array_equal(layer(turned, form), expected.reshape(2, 3, 4, N))


@pytest.mark.parametrize("form", ["packed", "8 bits", "4 bits, zeros", "rows"])
def test_leading_axes_take_no_loop_in_python(form: str) -> None:
    """As many lines for many rows that do not merge as for few."""
    counts = []
    for leading in ((3, 2, 2), (9, 8, 7)):
        x = np.ones((*leading[::-1], K), np.float32).transpose(2, 1, 0, 3)
        layer(x, form, threads=1)
        rows = tw.quantize_rows(x) if form == "rows" else x
        tw.linear(rows, weight_of(form), BIAS[:, np.newaxis].T, threads=1)
        counts.append(python_lines(lambda x=rows: tw.linear(x, weight_of(form), list(BIAS), threads=1)))  # type: ignore[misc]
    assert 0 < counts[1] < counts[0] + 40  # 72 leading indices against 6


@pytest.mark.parametrize("leading", [(), (5,), (2, 3), (2, 1, 3)])
def test_quantised_rows_of_any_rank(leading: tuple[int, ...]) -> None:
    x = RNG.standard_normal((*leading, 40)).astype(np.float32)
    rows = tw.quantize_rows(x)
    flat = tw.quantize_rows(x.reshape(-1, 40))
    assert rows.shape == x.shape
    assert rows.q.dtype == np.int8
    assert rows.scales.shape == leading
    assert isinstance(rows.scales, np.ndarray)
    np.testing.assert_array_equal(rows.q.reshape(-1, 40), flat.q)
    np.testing.assert_array_equal(rows.scales.reshape(-1), flat.scales)
    np.testing.assert_allclose(np.asarray(rows), x, atol=0.03)
    again = tw.QuantizedRows(rows.q, rows.scales)
    np.testing.assert_array_equal(again.sums, rows.sums)


def test_a_bias_for_each_row_of_quantised_rows() -> None:
    rows, weight = tw.quantize_rows(X.reshape(4, 6, K)), weight_of("rows")
    column = np.arange(6, dtype=np.float32)[:, np.newaxis]
    found = tw.linear(rows, weight, column)
    np.testing.assert_array_equal(found, tw.linear(rows, weight) + column)


def test_quantised_rows_without_elements() -> None:
    weight = weight_of("rows")
    assert tw.linear(tw.quantize_rows(np.ones((2, 0, K), np.float32)), weight).shape == (2, 0, N)
    assert tw.quantize_rows(np.ones((2, 3, 0), np.float32)).scales.shape == (2, 3)
