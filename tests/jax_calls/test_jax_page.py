"""The examples of docs/reference/jax.md run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

jax = pytest.importorskip("jax")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "jax.md"


def test_examples() -> None:
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(block, names)
    assert names["gradient"].shape == (64, 32)
    assert names["many"].shape == (10, 4, 32)
    assert names["to_q"].shape == names["q"].shape
    assert names["exported"].in_avals[0].shape == (4, 64)
