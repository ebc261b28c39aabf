"""docs/reference/install.md: its examples run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "install.md").read_text(encoding="utf-8")


def test_its_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    a, b = np.ones((2, 96, 96), np.float32)
    names: dict[str, Any] = {"np": np, "tw": tw, "a": a, "b": b}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE):
        exec(block, names)
    np.testing.assert_array_equal(names["c"], 96)
    text = capsys.readouterr().out
    assert "in NumPy's own loop" in text
    assert "numpy.matmul float32" in text
