"""docs/reference/functions.md: its example runs, and it names every function of axes and of elements."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "reference" / "functions.md").read_text(
    encoding="utf-8"
)


def test_its_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE):
        exec(block, names)
    np.testing.assert_allclose(names["x"].mean(axis=1), 0, atol=1e-6)
    assert "rows_softmax_f32" in capsys.readouterr().out


def test_it_names_every_function() -> None:
    rooms = (
        "tilewright.ops.rows.",
        "tilewright.ops.elementwise.",
        "tilewright.ops.binary.",
        "tilewright.ops.rotary.",
        "tilewright.ops.embedding.",
    )
    names = [name for name, home in tw._HOMES.items() if home.startswith(rooms) and name.islower()]
    assert {"softmax", "gelu", "sum"} <= set(names)
    for name in names:
        assert f"`tw.{name}`" in PAGE, name
