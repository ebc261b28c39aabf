"""What run time looks at before a product goes around its loop: each condition, met and broken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from spliced import FOURS, LDA, LDB, LDC, K, M, N, Spliced, gemm, numbers, under

from tilewright.loops.nests.nest import Extent, Injective, Within
from tilewright.loops.nests.polynomial import Index, Polynomial
from tilewright.spec.dtype import F32


def test_overlap_keeps_the_loop() -> None:
    memory = np.ones((40, 8), np.float32)
    a, b = memory[:8], memory[8:16]
    for first, looped in ((0, True), (7, True), (15, True), (16, False), (30, False)):
        assert (
            under(gemm(F32, (M, N, K), FOURS))(a, b, memory[first : first + 8], 8, 8, 8, 8, 8, 8).looped
            is looped
        )


def test_sizes_that_overflow_keep_the_loop() -> None:
    a, b, c = (np.ones((8, 8), "f4") for _ in "abc")
    assert under(gemm(F32, (M, N, K), FOURS))(a, b, c, 8, 8, 8, 8, 8, 2**62).looped


def test_byte_strides_that_are_no_elements_keep_the_loop() -> None:
    product = gemm(F32, (M, N, K), (LDA, 4, LDB, 4, LDC, 4))
    spliced = under(product)
    a, b, c = np.ones((8, 9), "f4"), np.ones((8, 9), "f4"), np.zeros((8, 9), "f4")
    assert spliced(a, b, c, 8, 8, 8, 34, 36, 36).looped
    assert not spliced(a, b, c, 8, 8, 8, 36, 36, 36).looped
    assert (c[:, :8] == 8).all()
    assert (c[:, 8] == 0).all()


def blocks_of_one_array(pitch: Polynomial | int) -> Spliced:
    return under(gemm(F32, (M, N, K), (pitch, 4, pitch, 4, pitch, 4)))


@pytest.mark.parametrize("pitch", [LDC * 4, 160], ids=["run time", "known"])
def test_blocks_of_one_array_whose_rows_do_not_meet(pitch: Polynomial | int) -> None:
    """A, B and C side by side in 20 rows of 40 elements; then moved, so that the last columns meet."""
    spliced = blocks_of_one_array(pitch)
    memory = numbers((20, 40), F32)
    for a, b, c, looped in ((0, 10, 20, False), (30, 20, 0, False), (0, 10, 19, True), (12, 30, 21, True)):
        before = memory.copy()
        left, right, result = memory[:9, a : a + 10], memory[5:15, b : b + 10], memory[8:17, c : c + 10]
        expected = result + left @ right
        assert spliced(left, right, result, 9, 10, 10, 40, 40, 40).looped is looped
        if not looped:
            np.testing.assert_array_equal(result, expected)
            before[8:17, c : c + 10] = expected
        np.testing.assert_array_equal(memory, before)


def test_rows_that_reach_into_the_next_ones_meet() -> None:
    """Rows longer than their pitch, and no pitch at all."""
    spliced = blocks_of_one_array(LDC * 4)
    memory = np.ones(2000, "f4")
    assert spliced(memory[7:], memory[14:], memory, 9, 10, 10, 8, 8, 8).looped
    assert spliced(memory, memory[4:], memory[12:], 9, 10, 10, 0, 0, 0).looped
    assert (memory == 1).all()


ROW, DEPTH = Index("m"), Index("k")


@pytest.mark.parametrize(
    ("value_", "low", "high", "sizes", "looped"),
    [
        (Polynomial.of(ROW) * 3 + DEPTH, 0, 3 * 8 + 9, (9, 8, 9), False),
        (Polynomial.of(ROW) * 3 + DEPTH, 0, 3 * 8 + 8, (9, 8, 9), True),
        (Polynomial.of(DEPTH) - ROW, -8, 2000, (9, 8, 9), False),
        (Polynomial.of(DEPTH) - ROW, -7, 2000, (9, 8, 9), True),
        (LDA * ROW, 0, 81, (9, 8, 9), False),
        (LDA * ROW, 0, 80, (9, 8, 9), True),
    ],
)
def test_numbers_in_range(
    value_: Polynomial, low: int, high: int, sizes: tuple[int, int, int], looped: bool
) -> None:
    condition = Within(
        value_, Polynomial.of(low), Polynomial.of(high), ((ROW, Extent.of(M)), (DEPTH, Extent.of(K)))
    )
    product = gemm(F32, (M, N, K), FOURS)
    spliced = under(replace(product, conditions=(condition,)))
    a, b, c = (np.ones((10, 10), "f4") for _ in "abc")
    assert spliced(a, b, c, *sizes, 10, 10, 10).looped is looped


def test_triangular_ranges() -> None:
    """i + j < n for j <= i: the largest is at the last corner."""
    j = Index("j")
    loops = ((ROW, Extent.of(M)), (j, Extent.of(Polynomial.of(ROW) + 1)))
    for high, looped in ((17, False), (16, True)):
        condition = Within(Polynomial.of(ROW) + j, Polynomial(), Polynomial.of(high), loops)
        product = gemm(F32, (M, N, K), FOURS)
        spliced = under(replace(product, conditions=(condition,)))
        a, b, c = (np.ones((10, 10), "f4") for _ in "abc")
        assert spliced(a, b, c, 9, 9, 9, 10, 10, 10).looped is looped


@pytest.mark.parametrize(
    ("rows", "columns", "looped"),
    [(10, 1, False), (9, 1, False), (8, 1, True), (1, 9, False), (1, 8, True), (0, 1, True), (-20, 2, False)],
)
def test_elements_of_c_that_are_shared(rows: int, columns: int, looped: bool) -> None:
    """Nine rows of nine columns, so many elements apart."""
    strides = (36, 4, 36, 4, LDC * 4, LDA * 4)
    spliced = under(gemm(F32, (M, N, K), strides, conditions=(Injective(),)))
    a, b, c = np.ones((9, 9), "f4"), np.ones((9, 9), "f4"), np.zeros(400, "f4")
    start = c[200:] if rows < 0 else c
    assert spliced(a, b, start, 9, 9, 9, columns, 0, rows).looped is looped
    assert np.count_nonzero(c) == (0 if looped else 81)
