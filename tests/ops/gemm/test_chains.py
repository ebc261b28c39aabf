"""Promise 4: at most 256 sums depend on each other before they join a total, whatever path a product takes.

One huge element absorbs everything that is added to the same chain behind it, and nothing else. So the result
tells the length of the chain.
"""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import Array, host_rows
from tiers import pairwise

import tilewright as tw
from tilewright.machine.isa import SUMS_OF_A_CHAIN
from tilewright.spec.dtype import DTYPES

#: The first number to which adding 1 changes nothing, of each type of sums.
ABSORBING = {"f32": 2.0**24, "f64": 2.0**53}
#: Depths of one chain, of several, and of several depth blocks.
DEPTHS = (256, 512, 1026, 2048, 5000)
#: Few rows, one tile, several tiles; columns of one vector and of several panels.
SIZES = ((1, 40), (3, 300), (6, 16), (30, 70), (70, 33))


def absorbing_product(m: int, k: int, n: int, dtype: str, first: int) -> tuple[Array, Array, float]:
    """A of ones with one huge column at depth `first`, B of ones, and the result by chains of 256."""
    huge = ABSORBING[dtype]
    a, b = np.ones((m, k), DTYPES[dtype].numpy), np.ones((k, n), DTYPES[dtype].numpy)
    a[:, first] = huge
    begin = first // SUMS_OF_A_CHAIN * SUMS_OF_A_CHAIN
    # The first depths of the chain are kept if their sum is even; what follows is absorbed.
    kept = k - (min(k, begin + SUMS_OF_A_CHAIN) - first)
    return a, b, huge + kept


def multiplied(row: str, strategy: str, dtype: str) -> Callable[[Array, Array], Array]:
    kernel = tw.compile(
        tw.Gemm(dtype=dtype, a="strided", b="strided", c="strided", strategy=strategy), tw.machine(row)
    )

    def multiply(a: Array, b: Array) -> Array:
        c = np.full((a.shape[0], b.shape[1]), np.nan, a.dtype)
        kernel(a, b, c)
        return c

    return multiply


ROWS = [isa.name for isa in host_rows()]


@pytest.mark.parametrize(
    ("row", "strategy", "dtype"), pairwise(ROWS, ["auto", "tiling", "packing"], list(ABSORBING))
)
def test_chains_of_every_strategy(row: str, strategy: str, dtype: str) -> None:
    multiply = multiplied(row, strategy, dtype)
    for m, n in SIZES:
        for k in DEPTHS:
            for first in (0, 128):
                a, b, expected = absorbing_product(m, k, n, dtype, first)
                for right in (b, np.asfortranarray(b)):
                    assert np.all(multiply(a, right) == expected), (m, n, k, first)


PUBLIC: dict[str, Callable[[Array, Array], Any]] = {
    "matmul": tw.matmul,
    "linear": lambda a, b: tw.linear(a, np.ascontiguousarray(b.T)),
    "packed": lambda a, b: tw.linear(a, tw.pack(b)),
    "einsum": lambda a, b: tw.einsum("ij,jk->ik", a, b),
    "strided": lambda a, b: tw.einsum("xij,yjk->ik", a[None], b[None]),
}


@pytest.mark.parametrize("dtype", ABSORBING)
@pytest.mark.parametrize("name", PUBLIC)
def test_chains_of_public_functions(name: str, dtype: str) -> None:
    for m, n in SIZES:
        for k in DEPTHS:
            a, b, expected = absorbing_product(m, k, n, dtype, 0)
            found = np.asarray(PUBLIC[name](a, b))
            # einsum sums one row of few columns in shorter chains.
            assert np.all(found == expected) or (m == 1 and np.all(found > expected)), (m, n, k)


def test_chains_of_batches() -> None:
    """Products of a batch are parts of one sum."""
    for k, count in ((64, 16), (100, 10), (256, 4), (300, 3), (1000, 2)):
        kernel = tw.compile(tw.BatchReduceGemm(6, 16, k, count, beta=0, a="row", b="row", c="row"))
        a, b = np.ones((count, 6, k), np.float32), np.ones((count, k, 16), np.float32)
        a[0, :, 0] = ABSORBING["f32"]
        chain = 256 // k * k if k <= SUMS_OF_A_CHAIN else SUMS_OF_A_CHAIN
        expected = ABSORBING["f32"] + k * count - min(chain, k * count)
        assert np.all(kernel(a, b, np.full((6, 16), np.nan, np.float32)) == expected), (k, count)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_root_mean_square_error(dtype: type) -> None:
    """The error grows as that of chains of 256, not with the depth."""
    rng = np.random.default_rng(0)

    def drawn(*shape: int) -> Array:
        parts = rng.standard_normal((2, *shape))
        found: Array = parts[0] + 1j * parts[1] if dtype is np.complex64 else parts[0]
        return found.astype(dtype)

    unit = np.finfo(dtype).eps / 2
    wide = np.clongdouble if dtype is np.complex64 else np.longdouble
    for k in (256, 1024, 4096):
        a, b = drawn(40, k), drawn(k, 48)
        error = tw.matmul(a, b) - a.astype(wide) @ b.astype(wide)
        found = float(np.sqrt(np.mean(np.abs(error) ** 2)))
        # Squares of errors of chains of L sums of N(0, 1), and of their totals. A complex product has four
        # times the variance.
        chains, parts = k / SUMS_OF_A_CHAIN, 2 if dtype is np.complex64 else 1
        expected = unit * np.sqrt(chains * (SUMS_OF_A_CHAIN**2) / 2 + chains**2 * SUMS_OF_A_CHAIN / 2) * parts
        assert found < 1.1 * expected, k
