"""Products spliced into functions of hand-made LLVM IR, run through the JIT against NumPy."""

from __future__ import annotations

import numpy as np
from spliced import Spliced, gemm, value

from tilewright.frontend.nests import Factor, Product
from tilewright.frontend.polynomial import Polynomial
from tilewright.spec.dtype import F32

ROW_MAJOR = [
    *(("a", "ptr"), ("b", "ptr"), ("c", "ptr")),
    *((name, "i64") for name in ("m", "n", "k", "lda", "ldb", "ldc")),
]


def row_major_product(beta: Factor | None = None) -> Product:
    m, n, k, lda, ldb, ldc = (value(name) for name in ("m", "n", "k", "lda", "ldb", "ldc"))
    strides = (Polynomial.of(lda) * 4, 4, Polynomial.of(ldb) * 4, 4, Polynomial.of(ldc) * 4, 4)
    return gemm(F32, (m, n, k), strides, beta=beta)


def test_product_goes_around_its_loop() -> None:
    spliced = Spliced(row_major_product(), ROW_MAJOR)
    rng = np.random.default_rng(1)
    for m, n, k in ((5, 7, 9), (64, 64, 64), (100, 33, 517), (1, 19, 40), (90, 1, 4)):
        a, b, c = (rng.standard_normal(shape, np.float32) for shape in ((m, k), (k, n), (m, n)))
        expected = c + a.astype(float) @ b
        run = spliced(a, b, c, m, n, k, k, n, n)
        assert not run.looped
        np.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-4)


def test_overlap_keeps_the_loop() -> None:
    spliced = Spliced(row_major_product(), ROW_MAJOR)
    memory = np.ones((40, 8), np.float32)
    a, b, c = memory[:8], memory[8:16], memory[4:12]
    assert spliced(a, b, c, 8, 8, 8, 8, 8, 8).looped
    assert (memory == 1).all()


def test_beta_zero_never_reads_c() -> None:
    spliced = Spliced(row_major_product(beta=Factor(0)), ROW_MAJOR)
    a, b, c = np.ones((30, 4), np.float32), np.ones((4, 5), np.float32), np.full((30, 5), np.nan, np.float32)
    assert not spliced(a, b, c, 30, 5, 4, 4, 5, 5).looped
    assert (c == 4).all()
