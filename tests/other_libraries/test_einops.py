"""einops with NumPy's arrays: its einsum by Tilewright while that is enabled, everything else as before."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

einops = pytest.importorskip("einops")

import tilewright as tw  # noqa: E402
import tilewright.einops  # noqa: E402
from tilewright.einops import backend  # noqa: E402
from tilewright.errors import PackageMissing  # noqa: E402

PATTERN = "batch row k, batch column k -> batch row column"


def operands() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    return random.integers(-3, 4, (2, 3, 4)).astype("f4"), random.integers(-3, 4, (2, 5, 4)).astype("f4")


def test_einsum_is_ours_while_enabled(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = operands()
    patterns: list[str] = []

    def noted(pattern: str, *tensors: Any) -> Any:
        patterns.append(pattern)
        return tw.einsum(pattern, *tensors)

    monkeypatch.setattr(backend, "einsum", noted)
    expected = np.einsum("bij,bkj->bik", a, b)
    np.testing.assert_array_equal(einops.einsum(a, b, PATTERN), expected)
    assert not patterns
    with tilewright.einops.enabled():
        np.testing.assert_array_equal(einops.einsum(a, b, PATTERN), expected)
        assert len(patterns) == 1
        assert einops.rearrange(a, "b i j -> i (b j)").shape == (3, 8)
        assert einops.reduce(a, "b i j -> b", "sum").shape == (2,)
        assert einops.repeat(a, "b i j -> b i j n", n=2).shape == (2, 3, 4, 2)
    np.testing.assert_array_equal(einops.einsum(a, b, PATTERN), expected)
    assert len(patterns) == 1


def test_errors_are_ours() -> None:
    with tilewright.einops.enabled(), pytest.raises(tw.errors.LabelSizes):
        einops.einsum(np.ones((2, 3)), np.ones((2, 4)), "i j, i j -> i")


def test_enabling_twice_and_disabling_twice() -> None:
    tilewright.einops.enable()
    tilewright.einops.enable()
    tilewright.einops.disable()
    tilewright.einops.disable()
    assert type(einops._backends.get_backend(np.ones(1))) is einops._backends.NumpyBackend


def test_einops_missing() -> None:
    program = "import sys; sys.modules['einops'] = None; import tilewright.einops"
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False
    )
    assert PackageMissing.__name__ in found.stderr
    assert "tilewright[einops]" in found.stderr
