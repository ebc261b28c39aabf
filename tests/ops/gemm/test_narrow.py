"""Few rows against a packed matrix: bit for bit the rows of many, whatever the sizes, and no byte beside."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from support import Array

import tilewright as tw

BF16 = np.dtype(ml_dtypes.bfloat16)
#: Depths of several blocks (kc divides none of them), of one, and less than one word; columns of whole blocks
#: of panels, of one panel and a few, and less than a vector.
SIZES = [(2500, 391), (1000, 257), (530, 128), (64, 33), (7, 130), (2, 5), (1, 1)]


def data(shape: tuple[int, int], dtype: np.dtype[np.generic], seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.dtype(np.float32), BF16])
@pytest.mark.parametrize(("k", "n"), SIZES)
def test_rows_are_those_of_many_rows(dtype: np.dtype[np.generic], k: int, n: int) -> None:
    b, x = data((k, n), dtype, 1), data((64, k), dtype, 2)
    packed = tw.pack(b)
    whole = tw.matmul(x, packed)
    assert whole.tobytes() == tw.matmul(x, b).tobytes()
    for rows in range(1, 10):
        found = tw.matmul(x[5 : 5 + rows], packed)
        assert found.tobytes() == whole[5 : 5 + rows].tobytes(), rows


@pytest.mark.parametrize("rows", [1, 3, 8])
def test_sums_of_bfloat16_as_float32(rows: int) -> None:
    b, x = data((2500, 140), BF16, 3), data((rows, 2500), BF16, 4)
    found = tw.matmul(x, tw.pack(b), dtype=np.float32)
    assert found.tobytes() == tw.matmul(x, b, dtype=np.float32).tobytes()


@pytest.mark.parametrize("rows", range(1, 9))
def test_rows_and_columns_with_strides(rows: int) -> None:
    """Rows that lie apart, and a C whose columns do: only its own elements change."""
    b, x = data((300, 270), np.dtype(np.float32), 5), data((16, 600), np.dtype(np.float32), 6)
    packed = tw.pack(b)
    expected = tw.matmul(np.ascontiguousarray(x[:rows, :300]), packed)
    assert tw.matmul(x[:rows, :300], packed).tobytes() == expected.tobytes()
    assert tw.matmul(x[:rows, ::2], packed).tobytes() == tw.matmul(x[:rows, ::2].copy(), packed).tobytes()
    wide = np.full((rows, 540), 7, np.float32)
    tw.matmul(x[:rows, :300], packed, out=wide[:, ::2])
    assert np.array_equal(wide[:, ::2], expected)
    assert (wide[:, 1::2] == 7).all()


def test_alpha_and_beta_of_few_rows() -> None:
    b, x = data((700, 200), np.dtype(np.float32), 7), data((32, 700), np.dtype(np.float32), 8)
    c, packed = data((32, 200), np.dtype(np.float32), 9), tw.pack(b)
    whole = tw.matmul(x, packed, out=c.copy(), alpha=0.5, beta=-2.0)
    few = tw.matmul(x[:3], packed, out=c[:3].copy(), alpha=0.5, beta=-2.0)
    assert few.tobytes() == whole[:3].tobytes()
    assert np.array_equal(tw.matmul(x[:2], packed, out=c[:2].copy(), alpha=0, beta=2.0), 2 * c[:2])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_one_row_holds_stays_in_it(value: float) -> None:
    b, x = np.abs(data((100, 200), np.dtype(np.float32), 10)) + 1, np.ones((2, 100), np.float32)
    x[1, 40] = value
    found = tw.matmul(x, tw.pack(b))
    assert np.isfinite(found[0]).all()
    assert np.array_equal(found[1], np.full(200, value, np.float32), equal_nan=True)
