"""Random products around the register tile and the cache blocks, exact because they are of small integers."""

# mypy: disable-error-code="arg-type"
# Problems are made of words from tables, which type checkers do not know one by one.

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import LAYOUTS, Array, filled, host_rows
from tiers import draws, pairwise

import tilewright as tw
from tilewright.compiler.kernel import Kernel
from tilewright.machine.isa import Isa
from tilewright.ops.gemm.problem import Gemm

DTYPES = ("f32", "f64")
ALPHAS = (1.0, 0.0, -0.5, 2.0)
BETAS = (0.0, 1.0, 0.5, -1.0)


@cache
def blocking(dtype: str) -> Any:
    return tw.compile(tw.Gemm(dtype=dtype)).blocking


@cache
def strided(dtype: str, strategy: str, row: str) -> Kernel:
    problem = Gemm(dtype=dtype, a="strided", b="strided", c="strided", strategy=strategy)
    return tw.compile(problem, tw.machine(row))


def around(unit: int, most: int) -> st.SearchStrategy[int]:
    """Sizes 0, 1 and within one of a multiple of `unit`."""
    near = st.builds(
        lambda count, offset: max(0, count * unit + offset), st.integers(0, most), st.integers(-1, 1)
    )
    return st.one_of(near, st.integers(0, most * unit))


@st.composite
def products(draw: st.DrawFn, dtype: str) -> tuple[Array, Array, Array]:
    cut = blocking(dtype)
    m, n = draw(around(cut.mr, 4)), draw(around(cut.nr, 3))
    k = draw(st.one_of(around(cut.kr, 40), around(8, 5), around(cut.kc, 2)))
    seed = draw(st.integers(0, 2**32 - 1))
    layouts = [LAYOUTS[draw(st.sampled_from(sorted(LAYOUTS)))] for _ in range(3)]
    kind = tw.Gemm(dtype=dtype).dtype.numpy
    shapes = ((m, k), (k, n), (m, n))
    a, b, c = (
        layout(filled(shape, kind, seed + i))
        for i, (shape, layout) in enumerate(zip(shapes, layouts, strict=True))
    )
    return a, b, c


def exact(a: Array, b: Array, c: Array, alpha: float, beta: float) -> Array:
    wide = alpha * (a.astype(np.float64) @ b.astype(np.float64)) + beta * c.astype(np.float64)
    return wide.astype(c.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@draws(300)
@given(data=st.data())
def test_matmul(dtype: str, data: st.DataObject) -> None:
    a, b, c = data.draw(products(dtype))
    alpha, beta = data.draw(st.sampled_from(ALPHAS)), data.draw(st.sampled_from(BETAS))
    expected = exact(a, b, c, alpha, beta)
    tw.matmul(a, b, out=c, alpha=alpha, beta=beta)
    assert np.array_equal(c, expected)
    plain = exact(a, b, c, 1, 0)
    assert np.array_equal(tw.matmul(a, b), plain)
    tw.matmul(a, b, c)
    assert np.array_equal(c, plain)


@pytest.mark.parametrize(
    ("row", "strategy", "dtype"),
    pairwise([isa.name for isa in host_rows()], ["tiling", "packing"], DTYPES),
)
@draws(100)
@given(data=st.data())
def test_forced_strategies(dtype: str, strategy: str, row: str, data: st.DataObject) -> None:
    a, b, c = data.draw(products(dtype))
    alpha, beta = data.draw(st.sampled_from(ALPHAS)), data.draw(st.sampled_from(BETAS))
    expected = exact(a, b, c, alpha, beta)
    strided(dtype, strategy, row)(a, b, c, alpha=alpha, beta=beta)
    assert np.array_equal(c, expected)


def block_sizes(isa: Isa) -> list[tuple[int, int, int]]:
    """Products of more than one cache block in each size."""
    cut = tw.compile(tw.Gemm(), tw.machine(isa.name)).blocking
    return [(2 * cut.mc + 5, 100, 3), (30, cut.nc + cut.nr + 1, 5), (2 * cut.mc + 1, 70, 2 * cut.kc + 3)]


@pytest.mark.parametrize("isa", host_rows(), ids=lambda isa: isa.name)
@pytest.mark.parametrize("strategy", ["auto", "tiling", "packing"])
def test_several_cache_blocks(isa: Isa, strategy: str) -> None:
    kernel = strided("f32", strategy, isa.name)
    for m, n, k in block_sizes(isa):
        a, b, c = filled((m, k), seed=1), filled((k, n), seed=2), filled((m, n), seed=3)
        for other in (b, np.array(b, order="F")):
            out = c.copy()
            kernel(a, other, out, alpha=-0.5, beta=2)
            assert np.array_equal(out, exact(a, other, c, -0.5, 2))
