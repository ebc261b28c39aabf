"""What `explain` says of packed operands, mmt4d and chains."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw


def test_products_with_packed_matrices() -> None:
    x, packed = np.ones((64, 100), np.float32), tw.pack(np.ones((100, 70), np.float32))
    found = tw.explain(tw.matmul, x, packed)
    assert found.strategy == "the tiles of B one after the other; A in place"
    assert "_sps_" in found.kernel
    assert any("packed" in note for note in found.notes)
    tall = np.ones((5000, 2000), np.float16)
    deep = tw.pack(np.ones((2000, 2000), np.float32))
    found = tw.explain(tw.matmul, tall, deep, activation="relu")
    assert found.strategy == "five loops around the tiles of B; the other operand is packed"
    assert any("copied: float16" in note for note in found.notes)
    assert tw.explain(tw.matmul, x[:0], packed).strategy.startswith("nothing")
    left = tw.explain(tw.matmul, tw.pack(x, role="a"), np.ones((100, 70), np.float32))
    assert "tiles of A" in left.strategy


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (tw.Gemm(64, 70, 100, a="packed", b="packed"), "mmt4d: five loops"),
        (tw.Gemm(64, 70, 100, b="packed"), "tiles of B one after the other"),
        (tw.Mmt4d(6, 16, 1), "read in place by register tiles of 6x16"),
        (tw.Mmt4d(4, 4, 2), "packed again for register tiles of 6x16"),
        (tw.Packing("b", "f32"), "tiles of 16 lanes and 1 depths"),
        (tw.LinearChain((64, 32, 64)), "2 layers"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_problems(problem: tw.Gemm | tw.Mmt4d | tw.Packing | tw.LinearChain, words: str) -> None:
    assert words in tw.explain(problem, "haswell").strategy
