"""Logarithms of rows' sums: every number of rows, sums of 0, what is not finite, arrays of any strides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.ops.attention.log_sum_exp import log_sum_exp


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_number_of_rows(dtype: Any) -> None:
    generator = np.random.default_rng(1)
    for count in (*range(36), 1000):
        total = (1 + generator.exponential(50, count)).astype(dtype)
        most = generator.standard_normal(count).astype(dtype)
        exact = np.log(total.astype(np.longdouble)) + most
        found = log_sum_exp(most, total)
        assert (found.shape, found.dtype) == (total.shape, dtype)
        assert np.all(np.abs(found - exact) <= 3 * np.finfo(dtype).eps * np.maximum(np.abs(exact), 1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_without_keys_and_what_is_not_finite(dtype: Any) -> None:
    with np.errstate(all="raise"):
        most = np.array([-np.inf, np.nan, 1, 0, 1, 1], dtype)
        found = log_sum_exp(most, np.array([0, np.nan, np.inf, np.nan, 1, -1], dtype))
    np.testing.assert_array_equal(found, [-np.inf, np.nan, np.inf, np.nan, 1, np.nan])


def test_strides_and_shapes() -> None:
    total, most = np.arange(1.0, 25).reshape(4, 6), np.arange(24.0).reshape(6, 4).T
    np.testing.assert_allclose(log_sum_exp(most, total), np.log(total) + most)
    np.testing.assert_allclose(log_sum_exp(most[:, :1], total), np.log(total) + most[:, :1])
    with pytest.raises(ValueError, match="broadcast"):
        log_sum_exp(most[:, :5], total)
